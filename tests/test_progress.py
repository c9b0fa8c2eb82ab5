"""Does a long command say at which step it is, and when it will end?"""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from torch_history.cli.steps import Steps

NAMES = ("reading", "writing")


def said(memory: Path, seconds: float, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is said where each step takes so long."""
    now = iter(seconds * number for number in range(100))
    monkeypatch.setattr("torch_history.cli.steps.time.monotonic", lambda: next(now))
    out = Console(record=True, width=100, force_terminal=False)
    with Steps(out, NAMES, memory) as steps:
        for name in NAMES:
            steps.begin(name)
    return out.export_text().splitlines()


def test_steps_are_counted_and_the_end_is_told_by_the_last_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = tmp_path / "published" / "took.json"
    assert said(memory, 20.0, monkeypatch) == ["Step 1 of 2: reading", "Step 2 of 2: writing"]
    assert said(memory, 1.0, monkeypatch) == [
        "Step 1 of 2: reading, about 40 s left",
        "Step 2 of 2: writing, about 20 s left",
    ]
    memory.write_text("[" * 100)
    assert said(memory, 1.0, monkeypatch) == ["Step 1 of 2: reading", "Step 2 of 2: writing"]


def test_what_failed_leaves_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = tmp_path / "took.json"
    said(memory, 20.0, monkeypatch)
    before = memory.read_text()
    with pytest.raises(ValueError, match="not in tuple"), Steps(Console(), NAMES, memory) as steps:
        steps.begin("sleeping")
    assert memory.read_text() == before
