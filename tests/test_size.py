"""Does `make size` see what imports what, and circles?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import size


def test_imports_of_other_rooms_are_seen_wherever_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size, "ROOT", tmp_path)
    room = tmp_path / "torch_history" / "one"
    (room / "inner").mkdir(parents=True)
    (room / "a.py").write_text("import torch_history.two.x\ndef f():\n    from ..three import y\n    from . import b\n")
    (room / "inner" / "b.py").write_text("from ... import four\nimport json\nfrom torch_history import one\n")
    (tmp_path / "torch_history" / "four.py").write_text("from .one import a\n")
    (tmp_path / "torch_history" / "__init__.py").write_text("")
    assert size.arrows() == {"four": {"one"}, "one": {"two", "three", "four"}}


def test_rooms_in_a_circle_are_counted_and_those_before_and_after_it_are_not() -> None:
    chain = {"a": {"b"}, "b": {"c"}, "c": set()}
    assert size.in_circles(chain) == 0
    assert size.in_circles({**chain, "c": {"b"}, "d": {"a"}, "b": {"c", "e"}, "e": set()}) == 2
