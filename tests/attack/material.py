"""What is attacked: a folder of results with two releases, and the command run on it within bounds of time and memory."""

import json
import os
import resource
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asv import util
from click.testing import CliRunner, Result

from tests.test_launches import BYTES, ENVIRONMENT, TIME
from tests.test_robust import RECORD, RELEASES, SAMPLES, file_of, save
from torch_history import cli
from torch_history.system import files as stored

__all__ = ["BYTES", "ENVIRONMENT", "RECORD", "RELEASES", "SAMPLES", "TIME", "command", "file_of", "fill", "within"]

MEMORY = 6 * 2**30
"""Bytes of addresses that an attacked command may use; a machine of 4 GB of memory has them too."""


def fill(results: Path, machine: str = "here") -> Path:
    """Writes what a session on `machine` leaves for two releases, and asv's list of benchmarks; returns its folder."""
    for release in RELEASES:
        save(results, release)
    folder = (results / "here").rename(results / machine) if machine != "here" else results / machine
    util.write_json(folder / "machine.json", {**RECORD, "machine": machine}, api_version=1)
    names = {"param_names": ["variant", "size"], "pretty_name": "", "code": "", "timeout": 60, "type": "track"}
    util.write_json(results / "benchmarks.json", {of["name"]: {**of, **names} for of in (TIME, BYTES)}, api_version=2)
    return folder


def command(*arguments: str) -> Result:
    """Runs the command in this process. Raises AssertionError where it does not end in sentences."""
    stored.warn.cache_clear()
    found = CliRunner().invoke(cli.main, arguments)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise AssertionError("".join(traceback.format_exception(found.exception))[-1500:])
    assert found.exit_code in (0, 1), f"exit code {found.exit_code}: {found.output}"
    assert found.exit_code == 0 or "torch-history: " in found.stderr
    return found


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
