"""Is work that is shared between processes done, in order, and are its errors heard?"""

from __future__ import annotations

import contextlib
import os
import signal
from functools import partial
from pathlib import Path

import pytest
from asv.util import UserError

from torch_history import errors
from torch_history.site.processes import at_once, beside


def test_answers_come_in_the_order_of_the_tasks_from_other_processes() -> None:
    here = os.getpid()

    def answer(i: int) -> tuple[int, bool]:
        return i, os.getpid() != here

    assert at_once([partial(answer, i) for i in range(5)]) == [(i, True) for i in range(5)]
    assert at_once([os.getpid]) == [here]
    assert at_once([]) == []


def test_error_of_a_task_is_raised() -> None:
    def fails() -> None:
        raise UserError("there is no such thing")

    with pytest.raises(UserError, match="there is no such thing"):
        at_once([fails, os.getpid])
    with pytest.raises(UserError, match="there is no such thing") as raised, beside(fails):
        pass
    assert "in fails" in raised.value.__notes__[0]


def test_block_and_task_go_on_together_and_the_task_is_waited_for(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    os.mkfifo(first)

    def task() -> None:
        second.write_text(first.read_text())

    with beside(task):
        first.write_text("from the block")
    assert second.read_text() == "from the block"


def test_error_of_the_block_ends_the_task(tmp_path: Path) -> None:
    # also where the parent takes a request to end for an interruption, as the command does
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = tmp_path / "began"
    os.mkfifo(began)

    def task() -> None:
        began.write_text("")
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()

    try:
        with pytest.raises(ValueError, match="of the block"), beside(task):
            raise ValueError(f"of the block{began.read_text()}")
    finally:
        signal.signal(signal.SIGTERM, before)


def test_task_that_was_killed_is_told() -> None:
    with pytest.raises(errors.UserError, match="killed"), beside(lambda: os.kill(os.getpid(), signal.SIGKILL)):
        pass
