"""Why did these counts change on the recorder? Runs the scripts of tests/recorded_changes.toml on both releases of each.

    python -m tools.recorded_changes          installs each release, at most two at a time (3 GiB each), and removes it again

What the scripts print is kept in docs/generated/recorded-changes.json, and docs/generated/recorded-changes.md is written
from that. What is kept already is not asked again; delete the file to ask all. The scripts know nothing of the suite.
"""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recorder.build import build
from recorder.environments import create, python_for
from torch_history.measuring.recorded import FOLDER
from torch_history.releases.axis import Axis
from torch_history.releases.environments import prune
from torch_history.system.files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
CHANGES = ROOT / "tests" / "recorded_changes.toml"
GIVEN = ROOT / "docs" / "generated" / "recorded-changes.json"
PAGE = ROOT / "docs" / "generated" / "recorded-changes.md"
CARD = "turing"

Printed = dict[str, str]
Known = dict[str, dict[str, Printed]]
"""Id of a change -> `old`, `new`, `old_with` and `new_with` (with the variable set) -> name -> what was printed."""

HELPERS = '''
import collections, re
import torch
from recorder.record import recording

def _names(events):
    short = [re.sub(r"^void ", "", re.split(r"[<(]", name.replace("(anonymous namespace)", ""))[0]) for name in events]
    return ", ".join(f"{count} x {name}" for name, count in collections.Counter(short).items()) or "none"

def _seen(call):
    with recording() as seen:
        call()
    return seen

def kernels(call):
    """What `call` launches, by name, without template arguments."""
    return _names(_seen(call).kernels)

def full_names(call):
    """As kernels, with template arguments."""
    return ", ".join(f"{count} x {name}" for name, count in collections.Counter(_seen(call).kernels).items()) or "none"

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


def changes() -> list[dict[str, Any]]:
    """The changes, each with its two releases, its script, and the explanation."""
    return list(tomllib.loads(CHANGES.read_text(encoding="utf-8"))["change"])


def printed(release: str, script: str, variable: Mapping[str, str]) -> Printed:
    """What the script prints on that release, by name. Raises CalledProcessError where it fails, Refused where the release
    cannot be installed."""
    axis = Axis.load(ROOT / "releases.toml")
    found = axis.releases[axis.position(f"v{release}")]
    python = python_for(found)
    folder = create(found, python, ROOT / "env" / FOLDER / f"{found.tag}-py{python}")
    built = build(folder)
    surroundings = {**built.surroundings(CARD), **variable, "PYTHONPATH": str(ROOT)}
    command = [str(folder / "bin" / "python"), "-W", "ignore", "-c", HELPERS + script]
    ended = subprocess.run(command, env=surroundings, cwd=ROOT, check=True, capture_output=True, text=True)
    return dict(line.split(": ", 1) for line in ended.stdout.splitlines())


def ask(change: dict[str, Any]) -> dict[str, Printed]:
    """What both releases print, with and without the change's variable."""
    found = {
        side: printed(of, change["script"], {}) for side, of in zip(("old", "new"), change["releases"], strict=True)
    }
    if "variable" in change:
        for side, of in zip(("old", "new"), change["releases"], strict=True):
            found[f"{side}_with"] = printed(of, change["script"], change["variable"])
    return found


def page(known: Known) -> str:
    """Every change with its explanation, script and numbers, as Markdown."""
    lines = [
        "# Why counts changed on the recorder",
        "",
        "Made by `python -m tools.recorded_changes` from the scripts in `tests/recorded_changes.toml`; not edited by hand.",
        "**Recorded: no kernel ran.** [What releases ask of CUDA](recorded.md) lists the largest changes.",
        "A script of plain PyTorch that knows nothing of the suite asks each again.",
    ]
    for change in changes():
        if change["id"] not in known:
            continue
        numbers = {
            side: {name: _readable(value) for name, value in of.items()} for side, of in known[change["id"]].items()
        }
        lines += ["", f"## {change['title']}", "", change["explanation"].format(**numbers).strip()]
        lines += ["", f"Source: {change['source']}", "", "```python", change["script"].strip(), "```", ""]
        lines += ["| | " + " | ".join(change["releases"]) + " |", "|---|---|---|"]
        old, new = numbers["old"], numbers["new"]
        lines += [f"| {name} | {_cell(old[name])} | {_cell(new[name])} |" for name in old]
    return "\n".join(lines) + "\n"


def _readable(value: str) -> str:
    return f"{int(value):,}" if value.lstrip("-").isdigit() else value


def _cell(value: str) -> str:
    return value if value.replace(",", "").isdigit() else f"`{value}`"


def main() -> None:
    """Asks what is not known yet, change after change, and writes the page."""
    known: Known = json.loads(GIVEN.read_text(encoding="utf-8")) if GIVEN.exists() else {}
    left = [change for change in changes() if change["id"] not in known]
    mine = {f"v{release}" for change in left for release in change["releases"]}
    for number, change in enumerate(left):
        print(f"{change['title']} ({' and '.join(change['releases'])})", flush=True)
        known[change["id"]] = ask(change)
        write_atomically(GIVEN, json.dumps(known, indent=1, sort_keys=True) + "\n")
        later = {f"v{release}" for each in left[number + 1 :] for release in each["releases"]}
        prune(ROOT / "env" / FOLDER, (mine - later).__contains__)
    write_atomically(PAGE, page(known))
    print(f"Written: {os.path.relpath(PAGE, ROOT)}.")


if __name__ == "__main__":
    main()
