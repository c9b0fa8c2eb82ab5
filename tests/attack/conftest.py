"""Counts the attacks and prints, at the end of the run, how many were tried and survived."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .tally import CLASSES, SEED, SURVIVED, TRIED, Attacks


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.attack)


@pytest.fixture
def attacks() -> Iterator[Callable[[str], Attacks]]:
    """Makes the attacks of a kind; the test fails at its end where one was not survived, or none was tried."""
    made: list[Attacks] = []
    yield lambda kind: made.append(Attacks(kind)) or made[-1]  # type: ignore[func-returns-value]
    for each in made:
        each.all_survived()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if TRIED:
        terminalreporter.section(f"attacks (seed {SEED})")
    for kind in TRIED:
        terminalreporter.write_line(f"{SURVIVED[kind]:>5} of {TRIED[kind]:>5} survived: {CLASSES[kind]}")
