"""How large is the project, and is it larger than it may be? `make size` prints it; exit code 1 beyond a cap. A room is
a folder or a single module of torch_history. An arrow leads from a room to another that it imports."""

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
import grimp

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("benchmarks", "contract", "measure", "recorder", "research", "tools", "workloads")
OURS = "torch_history"


def python(folder: str) -> list[Path]:
    return sorted(path for path in (ROOT / folder).rglob("*.py") if "node_modules" not in path.parts)


def lines(paths: list[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def rooms() -> dict[str, list[Path]]:
    """Room of torch_history -> its modules."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in python(OURS):
        found[path.relative_to(ROOT / OURS).parts[0].removesuffix(".py")].append(path)
    del found["__init__"]
    return found


def arrows() -> dict[str, set[str]]:
    """Room of torch_history -> the other rooms that it imports."""
    graph = grimp.build_graph(OURS)
    found: dict[str, set[str]] = defaultdict(set)
    for name in graph.modules - {OURS}:
        others = {other.split(".")[1] for other in graph.find_modules_directly_imported_by(name) if other != OURS}
        found[name.split(".")[1]] |= others - {name.split(".")[1]}
    return found


def commands(command: click.Command) -> Iterator[click.Command]:
    if isinstance(command, click.Group):
        for each in command.commands.values():
            yield from commands(each)
    else:
        yield command


def main() -> None:
    from torch_history.cli import main as program

    of = arrows()
    every = {f"{OURS}/{room}": paths for room, paths in rooms().items()}
    every |= {package: python(package) for package in (*PACKAGES, "tests")}
    for name, paths in every.items():
        imports = sorted(of.get(name.rpartition("/")[2], ()))
        print(f"{name}: {lines(paths):,} lines, {len(paths)} modules", *imports, sep=", ")
    options = [option for command in commands(program) for option in command.params if isinstance(option, click.Option)]
    documents = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "results/NOTES.md")]
    documents += [path for folder in ("docs", "datasets", "research") for path in (ROOT / folder).rglob("*.md")]
    bytes_of_results = sum(path.stat().st_size for path in (ROOT / "results").rglob("*") if path.is_file())
    words = [len(path.read_text(encoding="utf-8").split()) for path in documents]
    # What is counted, how many there are, the most that it may be now, and the goal. Whoever makes something smaller lowers
    # its cap.
    counted: tuple[tuple[str, int, int, int | None], ...] = (
        ("lines of Python outside tests", sum(lines(python(folder)) for folder in (*PACKAGES, OURS)), 34_376, 26_000),
        ("lines of Python in torch_history", lines(python(OURS)), 21_608, 15_000),
        ("lines of Python in tests", lines(python("tests")), 21_409, 17_000),
        ("rooms of torch_history", len(of), 9, 12),
        ("arrows between them", sum(map(len, of.values())), 28, 30),
        ("commands", len([*commands(program)]), 16, 16),
        ("options of commands", len(options), 75, 80),
        ("words of the README", words[0], 450, 450),
        ("words of documents", sum(words), 41_836, None),
        ("MiB of results", bytes_of_results >> 20, 40, 40),
    )
    too_large = False
    for name, number, cap, goal in counted:
        print(f"{name}: {number:,}, at most {cap:,}, goal {goal}", "TOO LARGE" if number > cap else "")
        too_large |= number > cap
    sys.exit(too_large)


if __name__ == "__main__":
    main()
