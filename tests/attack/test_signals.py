"""What does a command leave behind that is told to stop at any moment? A sentence, its exit code, and nothing else."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import ran, until

from .material import RELEASES, fill

COMMAND = "import sys; from torch_history import __main__ as start; sys.exit(start.main())"


def started(words: list[str], folder: Path, **variables: str) -> "subprocess.Popen[str]":
    """The command in a session of its own, which hears what `nohup` may have made to be ignored."""
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: [signal.signal(one, signal.SIG_DFL) for one in (signal.SIGHUP, signal.SIGINT)],
        env={**os.environ, **variables},
    )


def of_group(group: int) -> list[str]:
    listed = ran("ps", "-eo", "pgid=,stat=,args=").stdout
    found = [line.split(None, 2) for line in listed.splitlines()]
    return [line[-1] for line in found if line[0] == str(group) and not line[1].startswith("Z")]


def has_handlers(process: int) -> bool:
    """Whether the program's handlers of signals are there. Python alone has one for Ctrl-C, and none for SIGTERM."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False
    caught = re.search(r"^SigCgt:\s*(\w+)$", status, re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_command_that_is_stopped_leaves_nothing(results, tmp_path, root, attacks, number):
    fill(results)
    attack, html = attacks("signals"), tmp_path / "html"
    asked = {
        "compare": ["compare", *RELEASES, "--markdown"],
        "publish": ["publish", "--html-dir", str(html), "--results-dir", str(results)],
    }
    answered = 0
    for name, arguments in asked.items():
        for part in (0.1, 0.3, 0.6, 1.2, 2.0):
            after = part * attack.random.uniform(0.8, 1.2)
            with attack(f"{number.name} {after:.2f} s into {name}"):
                process = started(arguments, root, HOME=str(tmp_path))
                time.sleep(after)
                heard = has_handlers(process.pid)
                process.send_signal(number)
                said = process.communicate(timeout=30)[1]
                until(lambda: not of_group(process.pid), 2)  # noqa: B023
                answered += heard
                if number == signal.SIGKILL or not heard:
                    continue  # nothing of the program can answer: Python has not run its first line yet
                assert "Traceback" not in said, said[-400:]
                assert process.returncode in (0, 128 + number), process.returncode
                assert process.returncode != 128 + number or "Stopped." in said
                left = [path.name for path in tmp_path.iterdir() if path.name.startswith(".publishing")]
                assert not left, left
    assert answered >= 3, "hardly a signal came to a program that could answer"
