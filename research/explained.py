"""Does the program find the release and the cause that public reports name? A file of plain PyTorch for each asks it. And
does an explanation end in its time?

    python -m research.explained             the reports of explained_reports.toml that were not asked yet
    python -m research.explained 139612      these, once more
    python -m research.explained --budget    changes drawn of those that results/ tells: what explaining them takes

Each file is measured and explained by the commands that a user has, for ten minutes. What they say is kept in SAID."""

import itertools
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from typing import Any

from tools.pages import write_into
from torch_history.analysis.markdown import escape
from torch_history.cli.explaining import COUNTING_MINUTES, MINUTES
from torch_history.explaining.finding import COUNTED, TIMES
from torch_history.system.files import write_atomically

from .recorded import GENERATED, ROOT, kept, read

SAID, PAGE = GENERATED / "explained-reports.json", GENERATED / "public-reports.md"
REPORTS = "explained_reports"
COMMAND = "python -m research.explained"
LASTED = GENERATED / "explaining.md"
MACHINE, BETWEEN = "amd-epyc-family-26-model-2-2-cores", ("2.13.0", "2.14.1", "2.15.0")
SEED, DRAWN = 42, 10
"""Of changes that MACHINE tells between neighbours of BETWEEN, how many are drawn, and by which seed."""
TOLD = re.compile(r", v[\d.]+ -> v[\d.]+: (CAUSE|PART|UNKNOWN|NOT THERE|INCONCLUSIVE): (.*)")
"""The line of `torch-history explain` with its verdict and the clause that follows."""

Said = dict[str, dict[str, dict[str, Any]]]
"""Issue -> metric -> `changed`: release -> its verdict against the one before; `verdict` and `words` of the explanation."""


def program(*words: str) -> str:
    """What a command of torch-history prints. Raises CalledProcessError where it fails."""
    command = [sys.executable, "-m", "torch_history", *words]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def asked(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What the program says of a report, as in Said. Raises CalledProcessError where a command fails."""
    path = ROOT / "env" / "reports" / f"report_{report['issue']}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report["file"], encoding="utf-8")
    of_file = "--workload", str(path)
    found: dict[str, dict[str, Any]] = {metric: {"changed": {}} for metric in report["metrics"]}
    rounds = ("--rounds", "2") if "time" in found else ("--only", "counts", "--rounds", "1")
    program("run", *of_file, *report["releases"], *rounds)
    for old, new in itertools.pairwise(report["releases"]):
        for change in json.loads(program("compare", *of_file, old, new, "--json"))["changes"]:
            if change["metric"] in found and change["kind"] in ("worse", "better", "changed"):
                found[change["metric"]]["changed"][new] = f"{change['verdict']} {change['ratio']:.3g}"
            if change["metric"] in found and new == report["changed"]:
                words = f"{change['metric']} {report['function']}".replace("_", " ")
                told = TOLD.search(program("explain", *of_file, old, new, words, "--again"))
                found[change["metric"]] |= {"verdict": told[1], "words": told[2].removesuffix(".")} if told else {}
    return found


def is_right(report: dict[str, Any], said: dict[str, dict[str, Any]]) -> tuple[bool, bool]:
    """Whether the first change that was seen of each number came with the right release; and whether the right cause is told
    of one number at least, and no other CAUSE of any."""
    first = {next(iter(of["changed"])) for of in said.values() if of["changed"]}
    named = [(of.get("verdict"), bool(re.search(report["cause"], of.get("words", "")))) for of in said.values()]
    causes = [right for verdict, right in named if verdict in ("CAUSE", "PART")]
    return first == {report["changed"]}, any(causes) and ("CAUSE", False) not in named


def table(known: Said) -> str:
    """Every report that was asked, a row for each number, as Markdown."""
    of = [(report, known[str(report["issue"])]) for report in read(REPORTS) if str(report["issue"]) in known]
    right = [is_right(report, said) for report, said in of]
    releases, causes = (sum(each) for each in zip(*right, strict=True))
    lines = [f"Right release: {releases} of {len(of)}. Right cause: {causes}.", ""]
    lines += ["| report | what its thread says | number | changed | what the program tells |", "|---|---|---|---|---|"]
    for report, said in of:
        link = f"[#{report['issue']}]({report['source']})"
        for metric, each in said.items():
            changed = ", ".join(f"{release}: {what}" for release, what in each["changed"].items()) or "not seen"
            told = escape(f"{each.get('verdict', '')}: {each.get('words', '')}")
            says = f"{report['says']} ({report['changed']})"
            lines.append(f"| {link} | {says} | {metric.replace('_', ' ')} | {changed} | {told} |")
    return "\n".join(lines) + "\n"


def drawn() -> list[tuple[str, str, dict[str, Any]]]:
    """Old, new and what the JSON of `compare` says of a series, of each change that is drawn."""
    told = []
    for old, new in itertools.pairwise(BETWEEN):
        changes = json.loads(program("compare", old, new, "--machine", MACHINE, "--json"))["changes"]
        told += [(old, new, one) for one in changes if one["kind"] in ("worse", "better", "changed") and one["ratio"]]
    return random.Random(SEED).sample([one for one in told if one[2]["metric"] in (*TIMES, *COUNTED)], DRAWN)


def lasted() -> None:
    """Explains what is drawn, and writes what it took into LASTED. Its evidence is of a machine of its own and removed."""
    os.environ["TORCH_HISTORY_MACHINE"] = named = "explained-in-its-time"
    for old, new in itertools.pairwise(BETWEEN):  # so that both are installed
        program("explain", old, new, "selection operators, mask vector 1 % x 1", "--again")
    lines, took = [], []
    for old, new, one in drawn():
        words = f"{one['question']} {one['metric']}, {' '.join(one['parameters'])}".replace("_", " ")
        budget = 60 * (COUNTING_MINUTES if one["metric"] in COUNTED else MINUTES)
        began = time.monotonic()
        said = TOLD.search(program("explain", old, new, words, "--again"))
        took.append((time.monotonic() - began) / budget)
        cells = old, new, words, f"{one['ratio']:.3g}", said[1] if said else "", f"{budget}", f"{took[-1] * budget:.0f}"
        lines.append(f"| {' | '.join(map(escape, cells))} | {took[-1]:.0%} | {os.getloadavg()[1]:.1f} |")
        print(lines[-1], flush=True)
        sums = f"Median {statistics.median(took):.0%} of the budget, worst {max(took):.0%}."
        write_into(LASTED, f"{COMMAND} --budget", "\n".join([sums, "", *HEAD, *lines, ""]))
    shutil.rmtree(ROOT / "results" / named)


HEAD = (
    "| old | new | series | new / old | verdict | budget (s) | took (s) | of the budget | processes at work |",
    "|---|---|---|---:|---|---:|---:|---:|---:|",
)


def main() -> None:
    """Asks report after report; what was asked stays where this is interrupted."""
    if "--budget" in sys.argv[1:]:
        return lasted()
    known: Said = kept(SAID)
    for report in read(REPORTS):
        issue = str(report["issue"])
        if issue in sys.argv[1:] or (not sys.argv[1:] and issue not in known):
            print(f"#{issue}", flush=True)
            known[issue] = asked(report)
            write_atomically(SAID, json.dumps(known, indent=1) + "\n")
            write_into(PAGE, COMMAND, table(known))
    print(table(known))


if __name__ == "__main__":
    main()
