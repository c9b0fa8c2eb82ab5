"""Does the recorder give the bytes that people measured on real GPUs? Runs the scripts of tests/public_reports.toml.

    python -m tools.public_reports env/recorder/v2.0.1-py3.11 ...

What the releases in these environments give is kept in docs/generated/public-reports.json, and the table in
docs/recorder.md is written from that. Exit code 1 where a number is not the published one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from packaging.version import Version

from recorder.build import Built, build
from recorder.cards import cards
from torch_history.system.files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
REPORTS = ROOT / "tests" / "public_reports.toml"
GIVEN = ROOT / "docs" / "generated" / "public-reports.json"
PAGE = ROOT / "docs" / "recorder.md"
BEGIN, END = "<!-- public reports: by `python -m tools.public_reports` -->", "<!-- end of public reports -->"


def reports() -> list[dict[str, Any]]:
    """The public reports, each with its script, its numbers and what was measured."""
    return list(tomllib.loads(REPORTS.read_text(encoding="utf-8"))["report"])


AT_ONCE = "import os, sys\nsys.stdout.flush()\nos._exit(0)\n"
"""Ends the script without PyTorch's own end, in which 2.14.1 and 2.15.0 now and then abort on a busy machine."""

RUNS = """
import sys, torch
from measure.device import runs
print(*(card for card in sys.argv[1:] if runs(card, torch._C._cuda_getArchFlags().split())))
"""
"""Of the capabilities that it is given, those that the wheel has code for."""


def card_for(built: Built, report: dict[str, Any]) -> str:
    """The first of the report's cards that the wheel has code for; empty where there is none."""
    known = cards()
    command = [str(_python(built)), "-W", "ignore", "-c", RUNS, *(known[card].capability for card in report["cards"])]
    surroundings = {**built.surroundings(), "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=surroundings, check=True, capture_output=True, text=True)
    able = ended.stdout.split()
    return next((card for card in report["cards"] if known[card].capability in able), "")


def given(built: Built, report: dict[str, Any], card: str) -> list[int]:
    """What the report's script prints on the recorder; nothing where `card` has too little memory for it. Ends the program
    where it fails otherwise."""
    command = [str(_python(built)), "-W", "ignore", "-c", report["script"] + AT_ONCE]
    surroundings = built.surroundings(card)
    if "memory" in report:
        surroundings["RECORDER_MEMORY"] = str(report["memory"])
    ended = subprocess.run(command, env=surroundings, capture_output=True, text=True)
    if ended.returncode and "out of memory" in ended.stderr:
        return []
    if ended.returncode:
        sys.exit(f"#{report['issue']} ended with {ended.returncode} on {built.wheel.version}:\n{ended.stderr}")
    return [int(line) for line in ended.stdout.split()]


def _python(built: Built) -> Path:
    return built.wheel.packages.parents[2] / "bin" / "python"


def measured_of(report: dict[str, Any], release: str) -> list[int]:
    """The numbers that a real GPU gave on that release, empty where nobody published them."""
    if release in report.get("then", ()):
        return list(report["published"])
    return list(report.get("measured", {}).get(release, ()))


def table(known: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Every report and what each release gives, as Markdown."""
    lines = [
        "| report | bytes | measured on a GPU | on the recorder, by release and card |",
        "|---|---|---|---|",
    ]
    for report in reports():
        by_numbers: dict[str, list[str]] = {}
        of_report = known.get(str(report["issue"]), {})
        for release, found in sorted(of_report.items(), key=lambda item: Version(item[0])):
            by_numbers.setdefault(_told(found), []).append(f"{release} {found['card']}".strip())
        recorded = "; ".join(f"{told} ({', '.join(releases)})" for told, releases in by_numbers.items())
        measured = "; ".join(
            f"{_bytes(numbers)} ({release})" for release, numbers in report.get("measured", {}).items()
        )
        if "published" in report:
            measured = f"{_bytes(report['published'])} (release not named)"
        link = f"[#{report['issue']}]({report['source']})"
        names = ", ".join(report["numbers"])
        lines.append(f"| {link} | {names} | {measured}, on {report['measured_on']} | {recorded} |")
    lines += [f"\n**#{report['issue']}.** {report['difference']}" for report in reports() if "difference" in report]
    return "\n".join(lines)


def _told(found: dict[str, Any]) -> str:
    if not found["card"]:
        return "its wheel has no code for such a card"
    return _bytes(found["bytes"]) or "too little memory"


def _bytes(numbers: list[int]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)


def main() -> None:
    """Asks the environments that are named, and writes the table from all that is known."""
    known = json.loads(GIVEN.read_text(encoding="utf-8")) if GIVEN.exists() else {}
    wrong = []
    for path in sys.argv[1:]:
        built = build(Path(path).resolve())
        release = Version(built.wheel.version).base_version
        for report in reports():
            card = card_for(built, report)
            numbers = given(built, report, card) if card else []
            known.setdefault(str(report["issue"]), {})[release] = {"card": card, "bytes": numbers}
            wanted = measured_of(report, release)
            if wanted and numbers != wanted:
                wrong.append(f"#{report['issue']} on {release}: {_bytes(numbers)}, and a GPU gave {_bytes(wanted)}")
        write_atomically(GIVEN, json.dumps(known, indent=1, sort_keys=True) + "\n")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    write_atomically(PAGE, f"{before}{BEGIN}\n{table(known)}\n{END}{after}")
    print("\n".join(wrong) or "Every number that was measured on a GPU is given.")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
