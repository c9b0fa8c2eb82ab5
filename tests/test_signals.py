"""Does a signal end every command with a sentence and its own exit code, even while modules are imported?"""

import functools
import signal
import subprocess
import sys

import pytest

from .processes import ROOT, ran

AT_AN_IMPORT = """
import builtins, os, sys
real, number, wanted = builtins.__import__, int(sys.argv[1]), sys.argv[2]
def importing(name, *arguments, **more):
    if name.endswith(wanted):
        builtins.__import__ = real
        os.kill(os.getpid(), number)
    return real(name, *arguments, **more)
from torch_history import __main__ as start
builtins.__import__ = importing
sys.argv = ["torch-history", *sys.argv[3:]]
sys.exit(start.main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("module", ["click", "rich.console", "numpy", "asv"])
def test_signal_while_modules_are_imported_is_a_sentence(number, module):
    command = [
        *(sys.executable, "-c", AT_AN_IMPORT, str(int(number)), module, "run", "--installed", "--python"),
        "nothing",
    ]
    hangup = functools.partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)  # which nohup has made to be ignored
    done = ran(*command, cwd=ROOT, preexec_fn=hangup, code=None)
    assert done.returncode == 128 + number
    assert "Traceback" not in done.stderr
    assert done.stderr.count("Stopped.") == 1


def test_hangup_that_is_ignored_stays_ignored():
    code = (
        "import os, signal\nfrom torch_history.system import signals\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "signals.stop_on_signals(); os.kill(os.getpid(), signal.SIGHUP); print('lives')"
    )
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True) == "lives\n"


def test_signal_is_put_off_while_something_must_not_be_left_half_done():
    code = (
        "import os, signal\nfrom torch_history.system import signals\nsignals.stop_on_signals()\n"
        "try:\n with signals.later():\n  os.kill(os.getpid(), signal.SIGTERM); print('finished')\n print('not here')\n"
        "except KeyboardInterrupt: print('stopped', signals.received())"
    )
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True) == "finished\nstopped 15\n"


AT_EACH_LINE = """
import contextlib, os, signal, sys, time
from pathlib import Path
from torch_history import __main__ as start
from torch_history.system import scratch, signals

def task():
    with scratch.scratch(Path(sys.argv[2]), "kept-") as folder:
        (folder / "made").mkdir()
        raise SystemExit(0)

files = {module.__file__ for module in (contextlib, scratch, signals)}
wanted, seen, parent = int(sys.argv[1]), 0, os.getpid()

def trace(frame, event, argument):
    global seen
    if frame.f_code.co_filename not in files:
        return None
    if event == "line":
        seen += 1
        if seen == wanted and os.getpid() == parent:
            sys.settrace(None)
            (os.killpg if sys.argv[3] == "group" else os.kill)(parent, signal.SIGINT)
    return trace

signals.stop_on_signals()
try:
    sys.settrace(trace)
    task()
except KeyboardInterrupt:
    sys.exit(130)
finally:
    sys.settrace(None)
"""


@pytest.mark.parametrize(("sent_to", "first"), [("process", 1), ("group", 2)])
def test_signal_at_any_line_leaves_no_folder_and_no_traceback(sent_to, first, tmp_path):
    """Every second line of what makes and removes the folder, until the task ends before the line comes."""
    stopped = 0
    for line in range(first, 300, 2):
        command = [sys.executable, "-c", AT_EACH_LINE, str(line), str(tmp_path), sent_to]
        done = ran(*command, cwd=ROOT, timeout=30, start_new_session=True, code=None)
        assert done.returncode in (0, 130), (line, done.stderr)
        assert "Traceback" not in done.stderr, (line, done.stderr)
        assert not list(tmp_path.iterdir()), (line, list(tmp_path.iterdir()))
        if done.returncode == 0:
            break
        stopped += 1
    assert stopped > 20
