"""Does the recorder give the bytes that real GPUs gave, and why did its counts change? Scripts of plain PyTorch ask it.

    python -m research.recorded 2.0.1 2.15.0   what people measured on real GPUs (public_reports.toml), of these releases
    python -m research.recorded                the largest changes of counts (recorded_changes.toml) that nobody asked yet

Each release is installed (3 GiB) and removed again. What scripts print is kept in GIVEN and ASKED, from which the pages
are written. The scripts know nothing of the suite. Exit code 1 where a number is not the one that a GPU gave."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from packaging.version import Version

from recorder.build import Built
from recorder.cards import cards
from tools.pages import write_into
from torch_history.measuring.subjects import FOLDER
from torch_history.measuring.upgrading.fits import made
from torch_history.releases.axis import Axis
from torch_history.releases.environments import prune
from torch_history.system.files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
GENERATED = ROOT / "docs" / "generated"
GIVEN, ASKED = GENERATED / "public-reports.json", GENERATED / "recorded-changes.json"
TABLE, PAGE = GENERATED / "public-reports.md", GENERATED / "recorded-changes.md"
COMMAND = "python -m research.recorded"
CARD = "turing"
"""On which changes are asked."""

Reports = dict[str, dict[str, dict[str, Any]]]
"""Issue -> release -> the `card` that was asked, empty where the wheel has no code for one, and its `bytes`."""

Changes = dict[str, dict[str, dict[str, str]]]
"""Id of a change -> `old`, `new`, `old_with` and `new_with` (with the variable set) -> name -> what was printed."""

HELPERS = '''
import collections, re
import torch
from recorder.record import recording

def _seen(call):
    with recording() as seen:
        call()
    return seen

def _counted(names):
    return ", ".join(f"{count} x {name}" for name, count in collections.Counter(names).items()) or "none"

def full_names(call):
    """What `call` launches, by name."""
    return _counted(_seen(call).kernels)

def kernels(call):
    """As full_names, without template arguments."""
    names = (name.replace("(anonymous namespace)", "") for name in _seen(call).kernels)
    return _counted(re.sub(r"^void ", "", re.split(r"[<(]", name)[0]) for name in names)

def waits(call):
    """How often the host waits for the card in `call`."""
    return sum(_seen(call).waits.values())

def allocations(call):
    """How often `call` asks PyTorch's caching allocator for memory."""
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    call()
    return torch.cuda.memory_stats()["allocation.all.allocated"] - before

def peak(call):
    """Bytes that PyTorch has allocated at the highest point of `call`, above what it had before."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    return torch.cuda.max_memory_allocated() - before
'''

AT_ONCE = "import os, sys\nsys.stdout.flush()\nos._exit(0)\n"
"""Ends a script without PyTorch's own end, in which 2.14.1 and 2.15.0 now and then abort on a busy machine."""

RUNS = """
import sys, torch
from contract.architectures import runs
print(*(card for card in sys.argv[1:] if runs(card, torch._C._cuda_getArchFlags().split())))
"""
"""Of the capabilities that it is given, those that the wheel has code for."""


def kept(path: Path) -> Any:
    """What an earlier call has kept in a file of JSON; an empty dictionary where there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def read(name: str) -> list[dict[str, Any]]:
    """The tables of research/NAME.toml."""
    (found,) = tomllib.loads((ROOT / "research" / f"{name}.toml").read_text(encoding="utf-8")).values()
    return list(found)


def installed(release: str) -> Built:
    """The recorder of a release, which is installed. Raises UserError where it cannot be."""
    return made(Axis.load(ROOT / "releases.toml").find(release), ROOT / "env" / FOLDER, print)


def printed(built: Built, script: str, *words: str, card: str = "", **variables: str) -> str:
    """What a script prints on the recorder; nothing where memory runs out. Raises CalledProcessError where it fails."""
    command = [str(built.wheel.packages.parents[2] / "bin" / "python"), "-W", "ignore", "-c", script + AT_ONCE, *words]
    surroundings = {**built.surroundings(card), **variables, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=surroundings, cwd=ROOT, capture_output=True, text=True)
    if ended.returncode and "out of memory" in ended.stderr:
        return ""
    if ended.returncode:
        sys.stderr.write(ended.stderr)
        ended.check_returncode()
    return ended.stdout


def ask_reports(release: str, known: Reports) -> list[str]:
    """Asks each report's script on a release. A sentence for each number that is not the one that a GPU gave."""
    built, wrong = installed(release), []
    for report in read("public_reports"):
        if Version(release) < Version(report.get("since", "0")):
            continue
        capabilities = {card: cards()[card].capability for card in report["cards"]}
        able = printed(built, RUNS, *capabilities.values()).split()
        card = next((card for card, capability in capabilities.items() if capability in able), "")
        memory = {"RECORDER_MEMORY": str(report["memory"])} if "memory" in report else {}
        said = printed(built, report["script"], card=card, **memory) if card else ""
        numbers = [int(line) for line in said.split()]
        known.setdefault(str(report["issue"]), {})[release] = {"card": card, "bytes": numbers}
        wanted = report["published"] if release in report.get("then", ()) else report.get("measured", {}).get(release)
        if wanted and numbers != wanted:
            wrong.append(f"#{report['issue']} on {release}: {_bytes(numbers)}, and a GPU gave {_bytes(wanted)}")
    return wrong


def table(known: Reports) -> str:
    """Every report and what each release gives, as Markdown."""
    lines = ["| report | bytes | measured on a GPU | on the recorder, by release and card |", "|---|---|---|---|"]
    for report in read("public_reports"):
        by_numbers: dict[str, list[str]] = {}
        of_report = known.get(str(report["issue"]), {})
        for release in sorted(of_report, key=Version):
            card, numbers = of_report[release]["card"], of_report[release]["bytes"]
            told = (_bytes(numbers) or "too little memory") if card else "its wheel has no code for such a card"
            by_numbers.setdefault(told, []).append(f"{release} {card}".strip())
        recorded = "; ".join(f"{told} ({', '.join(releases)})" for told, releases in by_numbers.items())
        measured = report.get("measured") or {"release not named": report["published"]}
        on_gpu = "; ".join(f"{_bytes(numbers)} ({release})" for release, numbers in measured.items())
        link, names = f"[#{report['issue']}]({report['source']})", ", ".join(report["numbers"])
        lines.append(f"| {link} | {names} | {on_gpu}, on {report['measured_on']} | {recorded} |")
    reasons = [report for report in read("public_reports") if "difference" in report]
    return "\n".join([*lines, *(f"\n**#{report['issue']}.** {report['difference']}" for report in reasons)]) + "\n"


def _bytes(numbers: list[int]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)


def ask_changes(release: str, known: Changes) -> None:
    """Asks the scripts of the changes to and from a release that are not known, with and without their variable."""
    built = installed(release)
    for change in read("recorded_changes"):
        for side, of in zip(("old", "new"), change["releases"], strict=True):
            for name, variables in ((side, {}), (f"{side}_with", change.get("variable"))):
                found = known.setdefault(change["id"], {})
                if of == release and variables is not None and name not in found:
                    lines = printed(built, HELPERS + change["script"], card=CARD, **variables).splitlines()
                    found[name] = dict(line.split(": ", 1) for line in lines)


def missing(known: Changes) -> list[str]:
    """Releases on which a change is not known, oldest first."""
    found = set()
    for change in read("recorded_changes"):
        sides = zip(("old", "new"), change["releases"], strict=True)
        found |= {release for side, release in sides if side not in known.get(change["id"], {})}
    return sorted(found, key=Version)


def page(known: Changes, changes: list[dict[str, Any]]) -> str:
    """Every change with its explanation, script and numbers, as Markdown."""
    lines = [
        "# Why counts changed on the recorder",
        "",
        f"Made by `{COMMAND}` from the scripts in `research/recorded_changes.toml`; not edited by hand.",
        "**Recorded: no kernel ran.** [What releases ask of CUDA](recorded.md) lists the largest changes.",
        "A script of plain PyTorch that knows nothing of the suite asks each again.",
    ]
    for change in changes:
        numbers = {
            side: {name: f"{int(n):,}" if n.lstrip("-").isdigit() else n for name, n in of.items()}
            for side, of in known.get(change["id"], {}).items()
        }
        if not {"old", "new"} <= numbers.keys():
            continue
        lines += ["", f"## {change['title']}", "", change["explanation"].format(**numbers).strip()]
        lines += ["", f"Source: {change['source']}", "", "```python", change["script"].strip(), "```", ""]
        lines += ["| | " + " | ".join(change["releases"]) + " |", "|---|---|---|"]
        old, new = numbers["old"], numbers["new"]
        lines += [f"| {name} | {_cell(old[name])} | {_cell(new[name])} |" for name in old]
    return "\n".join(lines) + "\n"


def _cell(value: str) -> str:
    return value if value.replace(",", "").isdigit() else f"`{value}`"


def main() -> None:
    """Asks release after release; what was asked stays where this is interrupted."""
    given, asked = kept(GIVEN), kept(ASKED)
    wrong = []
    for release in sys.argv[1:] or missing(asked):
        print(release, flush=True)
        if sys.argv[1:]:
            wrong += ask_reports(release, given)
        else:
            ask_changes(release, asked)
        for path, known in ((GIVEN, given), (ASKED, asked)):
            write_atomically(path, json.dumps(known, indent=1, sort_keys=True) + "\n")
        prune(ROOT / "env" / FOLDER, f"v{release}".__eq__)
    write_into(TABLE, COMMAND, table(given))
    in_order = kept(ASKED)  # in which the next call reads it
    write_atomically(PAGE, page(in_order, read("recorded_changes")))
    print("\n".join(wrong) or "Every number that was measured on a GPU is given.")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
