"""Is a whole line ever lost, or half a line taken for whole, when the process that writes it is killed?"""

import io
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.test_launches import some_launch
from torch_history.store.launches import append_environment, append_launches, read_environment, read_launches
from torch_history.system.files import read_object, warn, write_atomically

from .tally import Attacks

HITS = 40
"""Kills that must hit an append; those that came before its first byte or after its last one are not counted."""

PIECE = 32
PAUSE = 0.0004
"""A slowed writer takes a pause of so many seconds after each piece of so many bytes."""


class _Slow(io.FileIO):
    """A file whose writes reach the disk in small pieces."""

    def write(self, data: Any) -> int:
        whole = bytes(data)
        for first in range(0, len(whole), PIECE):
            super().write(whole[first : first + PIECE])
            time.sleep(PAUSE)
        return len(whole)


def _slowly(path: Any, mode: str = "r", *arguments: Any, **more: Any) -> Any:
    """As `open`, except that what is written is written slowly."""
    if not set(mode) & set("wax"):
        return _open(path, mode, *arguments, **more)
    slow = _Slow(path, mode.replace("b", "").replace("t", ""))
    return slow if "b" in mode else io.TextIOWrapper(io.BufferedWriter(slow), encoding="utf-8", write_through=True)


_open = io.open


def killed_while(work: Callable[[], None], after: float) -> None:
    """Runs `work` with a slowed writer in a process of its own and kills that `after` so many seconds of it."""
    receiver, sender = os.pipe()
    child = os.fork()
    if not child:
        try:
            io.open = _slowly  # type: ignore[assignment]
            os.write(sender, b"!")
            work()
        finally:
            os._exit(0)
    os.read(receiver, 1)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(receiver)
    os.close(sender)


def torn_by(
    work: Callable[[Path], None], before: Callable[[Path], None], name: str, folder: Path, attack: Attacks, hits: int
) -> Iterator[tuple[Path, Path, bytes]]:
    """Folders of results, the file in each to which `work` was appending when it was killed after `before`, and the part of
    a line, with the lines before it, that this left."""
    for number in range(20 * hits):
        path = folder / f"{number}" / "here" / name
        before(path)
        whole = path.read_bytes()
        killed_while(lambda: work(path), after=attack.random.uniform(0, 0.03))  # noqa: B023
        assert path.read_bytes().startswith(whole)
        left = path.read_bytes()[len(whole) :]
        if left and not left.endswith(b"\n"):
            yield folder / f"{number}", path, left
        if attack.tried == hits:
            return
    raise AssertionError(f"only {attack.tried} kills hit an append")


def test_every_whole_line_is_read_after_a_kill_during_an_append(tmp_path, warned, attacks):
    attack = attacks("killed")
    earlier, torn, later = (
        [some_launch(session=name, round=number) for number in (1, 2, 3)] for name in ("earlier", "torn", "later")
    )
    work, before = (lambda path, of=of: append_launches(path, of) for of in (torn, earlier))
    for folder, path, left in torn_by(work, before, "v2.0.1-release-py3.11.jsonl", tmp_path, attack, HITS):
        with attack(f"{len(left)} bytes were written"):
            warn.cache_clear()
            warned.clear()
            whole = left.count(b"\n")
            found = list(read_launches(folder, "here"))
            assert found[: 3 + whole] == [*earlier, *torn[:whole]]
            complete = len(found) == 3 + whole + 1
            assert not complete or found[-1] == torn[whole]
            assert [str(path) in sentence for sentence in warned] == ([] if complete else [True])
            append_launches(path, later)
            assert list(read_launches(folder, "here")) == [*found, *later]


def test_environments_are_read_after_a_kill_during_an_append(tmp_path, warned, attacks):
    attack = attacks("killed")
    old, new, newer = ({"torch": name, "packages": [f"p{i}=={name}" for i in range(60)]} for name in "123")
    work, before = (lambda path, of=of: append_environment(path, of) for of in (new, old))
    for folder, path, left in torn_by(work, before, "v2.0.1-release-py3.11.environments", tmp_path, attack, 10):
        with attack(f"{len(left)} bytes of an environment were written"):
            assert read_environment(folder, "here", "v2.0.1", "release-py3.11") == old
            append_environment(path, newer)
            assert read_environment(folder, "here", "v2.0.1", "release-py3.11") == newer


def test_a_file_that_is_replaced_is_the_old_or_the_new_one_after_a_kill(tmp_path, attacks):
    attack, path = attacks("replaced"), tmp_path / "state.json"
    old, new = (json.dumps({"id": name, "more": 600 * name}) for name in "ab")
    while attack.tried < 30:
        path.write_text(old)
        with attack("a state"):
            killed_while(lambda: write_atomically(path, new), after=attack.random.uniform(0, 0.03))
            assert path.read_text() in (old, new)
            assert read_object(path)["id"] in ("a", "b")
