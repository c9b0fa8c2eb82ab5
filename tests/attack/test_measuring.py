"""What does a measurement leave behind that is stopped at any moment? Its exit code, what was finished, and no process."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.processes import until
from tests.test_releases import environments, suite  # noqa: F401

from .test_signals import has_handlers, started

pytestmark = pytest.mark.releases

SLOW = """
import time
import torch

def inputs():
    return torch.ones(1)

def slow(x):
    time.sleep(0.05)
    return x + 1

functions = {f"function {number}": slow for number in range(4)}
"""


def having(token: str) -> list[str]:
    """The living processes that were started with `token` among their variables, as their command lines."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # it has ended, or is another user's
    return found


def stored_lines(suite: Path) -> list[bytes]:  # noqa: F811
    paths = (suite / ".cache" / "torch-history").glob("slow-*/results/test/*.jsonl")
    return [line for path in paths for line in path.read_bytes().splitlines()]


def test_measurement_that_is_stopped_keeps_what_was_finished_and_leaves_no_process(suite, tmp_path, attacks):  # noqa: F811
    mine = tmp_path / "slow.py"
    mine.write_text(SLOW, encoding="utf-8")
    attack = attacks("measuring")
    asked = ["run", "--workload", str(mine), "2.0.1", "2.15.0", "--only", "counts", "--rounds", "40"]
    kept: list[bytes] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        token = f"attack-{os.getpid()}-{number}"
        surroundings = {"HOME": str(suite), "PYTHONPATH": str(suite), "TORCH_HISTORY_MACHINE": "test"}
        with attack(number.name):
            process = started(asked, suite, TORCH_HISTORY_TOKEN=token, **surroundings)
            until(lambda: len(stored_lines(suite)) > len(kept), 120)  # noqa: B023
            time.sleep(attack.random.uniform(0, 4))
            assert has_handlers(process.pid), "it ended by itself"
            process.send_signal(number)
            said = process.communicate(timeout=60)[1]
            until(lambda: not having(token), 5)  # noqa: B023
            assert "Traceback" not in said, said[-400:]
            if number != signal.SIGKILL:
                assert process.returncode == 128 + number, process.returncode
                assert "Stopped." in said
            now = stored_lines(suite)
            assert len(now) > len(kept), "nothing was stored"
            assert set(kept) <= set(now), "a line is lost"
            kept = now
