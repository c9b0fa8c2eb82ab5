"""Is it said how far an installation is, by what lies on the disk?"""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from torch_history.releases import installing
from torch_history.releases.wheels import Package, Wheel


def wheel(*packages: tuple[str, int]) -> Wheel:
    listed = tuple(Package(name, "1.0", f"{name}.whl", "0" * 64, size // 2, size) for name, size in packages)
    return Wheel("3.11", "", "c" * 40, True, "", (), {}, listed)


@pytest.mark.parametrize(
    ("size", "total", "seconds", "said"),
    [
        (1_900_000_000, 4_400_000_000, 40.0, "1.9 of 4.4 GB, about 53 s left"),
        (100_000_000, 4_400_000_000, 10.0, "0.1 of 4.4 GB, about 7 min left"),
        (1_900_000_000, 0, 40.0, "1.9 GB"),
        (4_500_000_000, 4_400_000_000, 40.0, "4.5 GB"),
    ],
)
def test_gigabytes_are_said_with_the_time_that_is_left(size: int, total: int, seconds: float, said: str) -> None:
    assert installing.words(size, total, seconds) == said


def test_what_other_releases_have_is_not_counted(tmp_path: Path) -> None:
    there = tmp_path / "v2.0.0-py3.11"
    there.mkdir()
    (there / "torch-history.json").write_text(json.dumps({"packages": ["nvidia==1.0"], "requirements": []}))
    assert installing.missing(tmp_path, wheel(("torch", 3), ("nvidia", 4))) == 3


def test_what_comes_is_told_while_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    monkeypatch.setattr(installing, "EVERY", 0.01)
    cache = tmp_path / ".uv-cache"
    (cache / "archive-v0" / "earlier").mkdir(parents=True)
    (cache / "archive-v0" / "earlier" / "file").write_bytes(b"x" * 3_000_000)
    told: list[str] = []
    came = threading.Event()

    def tell(words: str) -> None:
        told.append(words)
        came.set()

    with installing.watched(tmp_path, wheel(("torch", 400_000_000)), tell):
        (cache / ".tmpAbCdEf").mkdir()
        (cache / ".tmpAbCdEf" / "libtorch.so").write_bytes(b"x" * 200_000_000)
        assert came.wait(30)
    assert told[-1].startswith("0.2 of 0.4 GB, about ")
