"""Where do the seconds of a round go? This checkout beside another one, counts and times apart, and `asv run` beside them.

    make bench-rounds OTHER=../earlier QUESTION=batching

Each checkout measures one round of a question on the two newest releases: times, then counts. Copies of both are measured,
in the releases that are installed in `env/` here. What was measured is kept in `env/rounds.json`: after an interruption the
same command goes on, and a new commit is measured anew.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from torch_history.releases.axis import Axis

from .deciding import commit

PAGE = Path("docs/generated/rounds.md").absolute()
KEPT = Path("env/rounds.json").absolute()
FOLDERS = ("benchmarks", "contract", "measure", "recorder", "torch_history", "workloads")
FILES = ("asv.conf.json", "releases.toml", "releases.lock", "wheels.json")

TIMED = """
def _timed(owner, name, phase):
    import functools, time
    plain = getattr(owner, name, None)
    if plain is None or hasattr(plain, "_timed"):
        return

    @functools.wraps(plain)
    def call(*arguments, **named):
        began = time.monotonic()
        try:
            return plain(*arguments, **named)
        finally:
            with open(RECORD, "a") as stream:
                stream.write(f"{phase}={time.monotonic() - began}\\n")

    call._timed = True
    setattr(owner, name, call)
"""
"""Has a function say how long each call of it took; one that a checkout lacks is left out."""

IN_PROCESSES = """
def _timed_case(plain):
    def call(workload, *rest):
        _timed(workload, "inputs", "inputs")
        return plain(workload, *rest)
    return call

_MEASURED_BY.update({key: _timed_case(plain) for key, plain in _MEASURED_BY.items()})
_timed(clock, "warm_up", "warm-up")
_timed(clock, "samples", "blocks")
_timed(globals().get("turns"), "_stretch", "blocks")
_timed(sys.modules[__name__], "_check", "check")
_timed(sys.modules[__name__], "_counts", "counts")
"""
"""Added to the end of benchmarks/common.py in a copy, where the calls of one case are made."""

HERE = """
from torch_history.measuring import conditions, recording, session
_timed(session.Session, "_round", "in all")
_timed(session, "prepare_all", "start of interpreters")
_timed(getattr(conditions, "Quiet", conditions.Watch), "wait", "waiting")
_timed(conditions.Watch, "control", "control")
_timed(recording.RecordedResults, "record", "writing")
from torch_history.cli import main
main()
"""
"""The program, whose own steps are timed as well."""

PHASES = ("start of interpreters", "inputs", "check", "warm-up", "blocks", "counts", "waiting", "control", "writing")
REST = "fork, answer, and what else"


def copied(checkout: Path, folder: Path) -> Path:
    """What measures in a checkout, in a folder that shares the releases installed here; returns the file of durations."""
    for name in FOLDERS:
        shutil.copytree(checkout / name, folder / name)
    for name in FILES:
        shutil.copy(checkout / name, folder / name)
    (folder / "env").symlink_to(Path("env").absolute())
    record = folder / "durations.txt"
    with (folder / "benchmarks/common.py").open("a") as stream:
        stream.write(f"\n\nRECORD = {str(record)!r}\n{TIMED}{IN_PROCESSES}")
    return record


def measured(checkout: Path, only: str, question: str) -> dict[str, float]:
    """Seconds of each phase of one round, or of `asv run` alone, on the two newest releases. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as scratch:
        record = copied(checkout, Path(scratch))
        options = ["run", "--only", only, "--rounds", "1", "--again", "--question", question]
        commands = [["-c", f"RECORD = {str(record)!r}\n{TIMED}{HERE}", *options]]
        if only == "asv run":
            tags = [release.tag for release in Axis.load("releases.toml").releases[-2:]]
            commands = [["-m", "asv", "run", "--bench", rf"^{question}\.", tag] for tag in tags]
        began, surroundings = time.monotonic(), {**os.environ, "PYTHONPATH": scratch}
        for command in commands:
            whole = [sys.executable, *command]
            subprocess.run(whole, cwd=scratch, env=surroundings, stdout=subprocess.DEVNULL, check=True)
        if only == "asv run":
            return {"in all": time.monotonic() - began}
        found: Counter[str] = Counter()
        for phase, seconds in (line.split("=") for line in record.read_text().splitlines()):
            found[phase] += float(seconds)  # type: ignore[assignment]
    return {**found, REST: found["in all"] - sum(found[phase] for phase in PHASES)}


def page(found: dict[str, dict[str, float]], question: str, other: Path | None) -> str:
    """The page, from what was measured by the name of its column."""
    lines = [["seconds", *found], ["---", *("---:" for _ in found)]]
    for phase in (*PHASES, REST, "in all"):
        lines.append([phase, *(f"{of[phase]:.1f}" if phase in of else "" for of in found.values())])
    where, beside = (" OTHER=FOLDER", f" and {commit(other)} (other)") if other else ("", "")
    lead = (
        f"`make bench-rounds{where} QUESTION={question}` writes this page. It measures one round of `{question}` on the two "
        f"newest releases with the commits {commit(Path())} (this){beside}. *asv run* measures times and counts, one after "
        "the other, its start counted in. A phase is the sum over all processes, beside each other or not; while one "
        "release is measured the other waits, which is not counted."
    )
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return "\n\n".join(["# Where the seconds of a round go", lead, table]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Where do the seconds of a round go?")
    parser.add_argument("--other", type=Path, help="a clone of another commit")
    parser.add_argument("--question", default="batching")
    given = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    checkouts = {"this": Path(), **({"other": given.other.resolve()} if given.other else {})}
    found: dict[str, dict[str, float]] = {}
    for name, only in [*((name, only) for name in checkouts for only in ("times", "counts")), ("this", "asv run")]:
        key = f"{commit(checkouts[name])} {only} {given.question}"
        if key not in kept:
            kept[key] = measured(checkouts[name], only, given.question)
            KEPT.write_text(json.dumps(kept))
        found[only if only == "asv run" else f"{name}: {only}"] = kept[key]
        print(name, only, kept[key], flush=True)
        PAGE.write_text(page(found, given.question, given.other), encoding="utf-8")


if __name__ == "__main__":
    main()
