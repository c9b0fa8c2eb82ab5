"""What is attacked: a folder of results with two releases, and the command run on it within bounds of time and memory."""

import json
import os
import resource
import signal
import tempfile
import time
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


def within(seconds: float, work: Callable[[], Any], memory: int = MEMORY) -> Any:
    """What `work` returns, as JSON carries it, from a forked process that may use `memory` bytes. Raises AssertionError
    where it raises, or takes longer: then it is ended."""
    with tempfile.TemporaryFile("w+") as answered:
        child = os.fork()
        if not child:
            try:
                os.setpgid(0, 0)
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
                try:
                    answer = {"answer": work()}
                except BaseException as error:
                    answer = {"raised": f"{type(error).__name__}: {error}"[-3000:]}
                answered.write(json.dumps(answer))
                answered.flush()
            finally:
                os._exit(0)  # whatever happens: a second process must never go on with the tests of the first
        ends = time.monotonic() + seconds
        while not os.waitpid(child, os.WNOHANG)[0]:
            if time.monotonic() > ends:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                raise AssertionError(f"it did not end within {seconds:.0f} seconds")
            time.sleep(0.005)
        answered.seek(0)
        found = json.loads(answered.read() or '{"raised": "it ended without an answer"}')
    assert "answer" in found, found["raised"]
    return found["answer"]
