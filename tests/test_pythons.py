"""Is what differs between two Pythons told apart from what is equal?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch_history.releases.axis import Axis
from torch_history.reports.pythons import pythons
from torch_history.store.launches import Case, Launch

AXIS = Axis.load(Path(__file__).resolve().parents[1] / "releases.toml")


def launch(tag: str, python: str, benchmark: str, *numbers: float) -> Launch:
    cases = tuple(Case((f"'variant_{i}'", "'small'"), value=number) for i, number in enumerate(numbers))
    environment = f"release-py{python}"
    return Launch("s", 1, f"{tag}{python}", tag, environment, benchmark, "1", "2026-01-01", 1.0, {}, cases)


def facts(machine: str, tag: str, environment: str) -> dict[str, Any]:
    numpy = "1.24.4" if environment.endswith("3.9") else "1.26.4"
    return {"packages": ["filelock==3.12.0", f"numpy=={numpy}"]}


def test_counts_of_both_pythons_are_held_together_release_by_release() -> None:
    peak, times = "q.Q.track_peak_memory", "q.Q.track_time"
    launches = [
        launch("v1.8.1", "3.9", peak, 1.0),
        launch("v2.8.0", "3.11", peak, 1000.0, 2000.0),
        launch("v2.8.0", "3.9", peak, 1000.0, 2000.0),
        launch("v2.0.1", "3.11", peak, 1000.0, 2000.0),
        launch("v2.0.1", "3.9", peak, 1000.0, 2500.0),
        launch("v2.0.1", "3.9", times, 1.0),
        launch("v2.0.1", "3.11", times, 2.0),
        launch("v9.9.9", "3.9", peak, 1.0),
        launch("v9.9.9", "3.11", peak, 2.0),
    ]
    _, page = pythons({"here": launches, "there": launches[:1]}, facts, AXIS).split("## here\n\n")
    assert page == (
        "| release | measured in | counts and bytes in both | equal |\n"
        "|---|---|---:|---:|\n"
        "| v2.0.1 | release-py3.9, release-py3.11 | 2 | 1 |\n"
        "| v2.8.0 | release-py3.9, release-py3.11 | 2 | 2 |\n"
        "\n"
        "These numbers of v2.0.1 differ:\n\n"
        "- q peak memory, variant_1 small: 2,500 B in release-py3.9, 2,000 B in release-py3.11\n\n"
        "Packages in only one of the environments: numpy==1.24.4, numpy==1.26.4.\n"
        "\n## there\n\nNo release was measured in two Python versions.\n"
    )
