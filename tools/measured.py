"""What did this machine measure since its last commit, and how does it come into results to which others add meanwhile?

`python -m tools.measured take FOLDER` copies the lines of the machine's own files that the commit lacks into a new
folder, and `add FOLDER` adds them to a checkout. So no line is removed, and none that was excluded comes back."""

import argparse
import subprocess
import sys
from collections import Counter
from pathlib import Path

from torch_history.measuring.machine import describe
from torch_history.store.collecting import collect
from torch_history.store.launches import ENVIRONMENTS
from torch_history.store.machines import RECORD
from torch_history.system.errors import UserError
from torch_history.system.files import read_bytes

RESULTS, ENV = Path("results"), Path("env")
LISTED = "benchmarks.json"
LINES = (".jsonl", ENVIRONMENTS)
"""Endings of files to which lines are appended; others are written anew."""


def take(results: Path, machine: str, folder: Path) -> int:
    """Copies what `machine` has in `results` and the last commit lacks into `folder`; returns how many lines that are.
    Raises UserError, with nothing copied, where lines that are committed are missing."""
    own = results / machine
    now = {path.relative_to(own): read_bytes(path) for path in sorted(own.rglob("*")) if not path.is_dir()}
    names = _git(results, "ls-tree", "-r", "-z", "--name-only", "HEAD", f"{machine}/").decode().split("\0")[:-1]
    before = {Path(name).relative_to(machine): _git(results, "show", f"HEAD:./{name}") for name in names}
    for path, content in before.items():
        if path.name.endswith(LINES) and (lost := _lines(content) - _lines(now.get(path, b""))):
            raise UserError(
                f"{own / path} lacks {lost.total()} lines that are committed. Nothing was copied, because a measurement "
                "only adds lines: restore the file from git, and append what was measured."
            )
    new = {path: content for path, content in now.items() if path.name == RECORD or content != before.get(path)}
    lines = 0
    for path in [path for path in new if path.name.endswith(LINES)]:
        fresh = _lines(new[path]) - _lines(before.get(path, b""))
        new[path] = b"".join(line + b"\n" for line in fresh.elements())
        lines += fresh.total()
    (folder / machine).mkdir(parents=True)
    for path, content in new.items():
        (folder / machine / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / machine / path).write_bytes(content)
    listed = read_bytes(results / LISTED)
    if listed != _git(results, "show", f"HEAD:./{LISTED}"):
        (folder / LISTED).write_bytes(listed)
    return lines


def add(folder: Path, results: Path, env: Path) -> int:
    """Adds such a copy to `results`; returns how many lines of launches were new. Raises UserError where it is of several
    machines, or of another kind of machine than the folder of its name."""
    machines = sorted(path.name for path in folder.iterdir() if path.is_dir())
    if len(machines) > 1:
        raise UserError(f"It is of {', '.join(machines)}. A machine adds to its own folder alone: add one at a time.")
    lines = collect([folder], results, env).lines
    if (folder / LISTED).exists():
        (results / LISTED).write_bytes(read_bytes(folder / LISTED))
    return lines


def _lines(content: bytes) -> Counter[bytes]:
    return Counter(line for line in content.split(b"\n") if line.strip())


def _git(folder: Path, *command: str) -> bytes:
    return subprocess.run(["git", *command], cwd=folder, capture_output=True, check=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("take", "add"))
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args()
    try:
        if asked.what == "take":
            machine = describe()["machine"]
            print(f"{take(RESULTS, machine, asked.folder)} new lines of {machine} are in {asked.folder}.")
        else:
            print(f"{add(asked.folder, RESULTS, ENV)} lines of launches were added.")
    except (UserError, ValueError) as error:
        sys.exit(f"{asked.folder}: {error}")


if __name__ == "__main__":
    main()
