"""What is attacked: a folder of results with two releases, and the command run on it within bounds of time and memory."""

import multiprocessing
import resource
from collections.abc import Callable
from typing import Any

from click.testing import Result

from tests import test_robust
from tests.test_launches import ENVIRONMENT
from tests.test_robust import RELEASES, file_of, fill
from torch_history.system import files as stored

__all__ = ["ENVIRONMENT", "RELEASES", "command", "file_of", "fill", "within"]

MEMORY = 6 * 2**30
"""Bytes of addresses that an attacked command may use; a machine of 4 GB of memory has them too."""


def command(*arguments: str) -> Result:
    """As tests/test_robust.py runs it, and what was said before is said again."""
    stored.warn.cache_clear()
    return test_robust.command(*arguments)


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """What `work` returns, from a forked process that may use MEMORY bytes. Raises AssertionError where it raises, or takes
    longer: then it is ended."""
    forking = multiprocessing.get_context("fork")
    answers, answered = forking.Pipe(duplex=False)

    def answer() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            answered.send(("", work()))
        except BaseException as error:
            answered.send((f"{type(error).__name__}: {error}"[-3000:], None))

    process = forking.Process(target=answer)
    process.start()
    answered.close()
    try:
        assert answers.poll(seconds), f"it did not end within {seconds:.0f} seconds"
        raised, found = answers.recv()
    except EOFError:
        raised = "it ended without an answer"
    finally:
        process.kill()
        process.join()
    assert not raised, raised
    return found
