"""Does every line come through when results are compressed, whatever interrupts that, and is what was compressed bounded?"""

import gzip
from pathlib import Path

import pytest

from tools import pack_results
from torch_history.store.launches import Case, Launch, append_launches, machines_in, of_file, read_launches
from torch_history.system import files

from .test_launches import some_launch

NAME = "v2.15.0-release-py3.11.jsonl"


def launch(number: int) -> Launch:
    case = Case(("'a'",), value=3)
    return some_launch(f"l{number}", release="v2.15.0", benchmark="batching.Batching.track_operators", cases=(case,))


@pytest.fixture
def lines(tmp_path) -> Path:
    path = tmp_path / "machine" / NAME
    append_launches(path, [launch(1), launch(2)])
    return path


def read(lines: Path) -> list[Launch]:
    return [*read_launches(lines.parents[1], "machine", "release-py3.11")]


def test_what_is_compressed_and_what_is_appended_are_read_as_one(lines):
    before = lines.read_bytes()
    pack_results.pack(lines)
    packed = lines.with_name(f"{NAME}.gz")
    assert not lines.exists()
    assert gzip.decompress(packed.read_bytes()) == before
    append_launches(lines, [launch(3)])
    assert read(lines) == [launch(1), launch(2), launch(3)]
    assert machines_in(lines.parents[1]) == ["machine"]
    assert of_file(packed) == of_file(lines) == ("v2.15.0", "release-py3.11")
    pack_results.pack(lines)
    assert read(lines) == [launch(1), launch(2), launch(3)]


@pytest.mark.parametrize("step", ["write_atomically", "read_bytes"])
def test_whatever_interrupts_it_the_next_one_finishes_without_loss_or_copy(lines, step, monkeypatch):
    pack_results.pack(lines)
    append_launches(lines, [launch(3)])
    real = getattr(files, step)
    calls = []

    def interrupted(*given: object) -> object:
        calls.append(given)
        if step == "write_atomically" or len(calls) == 3:  # the third reading is after the writing
            raise KeyboardInterrupt
        return real(*given)

    with monkeypatch.context() as patched:
        patched.setattr(pack_results, step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            pack_results.pack(lines)
    append_launches(lines, [launch(4)])
    for path in dict.fromkeys(pack_results.due(lines.parents[1])):
        pack_results.pack(path)
    assert read(lines) == [launch(number) for number in (1, 2, 3, 4)]
    assert [path.name for path in lines.parent.iterdir()] == [f"{NAME}.gz"]


@pytest.mark.parametrize(
    "content",
    [b"no gzip", gzip.compress(b"x" * 100)[:-4], gzip.compress(b"{}\n") + b"more", b""],
    ids=["no gzip", "cut", "more after it", "empty"],  # The bytes hold the second, in which workers of xdist differ.
)
def test_a_damaged_compressed_file_is_skipped_in_words(lines, content, warned):
    packed = lines.with_name(f"{NAME}.gz")
    packed.write_bytes(content)
    assert read(lines) == [launch(1), launch(2)]
    assert any(str(packed) in sentence and "is skipped" in sentence for sentence in warned)


def test_a_file_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_FILE", 1000)
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(bytes(100_000)))
    with pytest.raises(ValueError, match="it holds more than"):
        files.read_bytes(path)
