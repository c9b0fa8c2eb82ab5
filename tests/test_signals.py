"""Does a signal end every command with a sentence and its own exit code, even while modules are imported, and does what a
process started end with it, even where that process is killed?"""

import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from torch_history.system.children import beside, side_by_side

from .processes import ROOT, lives, ran, until

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


STARTED = """
import subprocess, time
from contract.children import dies_with_parent
child = subprocess.Popen(["sleep", "60"], preexec_fn=dies_with_parent())
print(child.pid, flush=True)
time.sleep(60)
"""
STARTED_BY_ASV = """
import time
from asv import util
from contract.children import all_die_with_this_process
all_die_with_this_process()
child = util.check_output(["sleep", "60"], return_popen=True)
print(child.pid, flush=True)
time.sleep(60)
"""
POOLED = """
import os, time
from multiprocessing import get_context
from contract.children import all_die_with_this_process
all_die_with_this_process()
with get_context("fork").Pool(2, lambda: (os.write(1, b"%d\\n" % os.getpid()), time.sleep(60))):
    time.sleep(60)
"""


@pytest.mark.parametrize("code", [STARTED, STARTED_BY_ASV, POOLED], ids=["started", "by asv", "pooled"])
def test_a_child_dies_with_a_parent_that_is_killed(code):
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert parent.stdout
    child = int(parent.stdout.readline())
    try:
        assert lives(child)
        parent.kill()
        parent.wait()
        until(lambda: not lives(child), 5)
    finally:
        parent.stdout.close()
        if lives(child):
            os.kill(child, signal.SIGKILL)


ORPHANED = """
import os
from contract.children import dies_with_parent
ask = dies_with_parent()

def forked(work):
    if os.fork() == 0:
        work()
        os._exit(0)
    os.wait()

forked(lambda: (ask(), os.write(1, b"a child lives")))
forked(lambda: forked(lambda: (ask(), os.write(1, b", a grandchild too"))))
"""
"""To the second that asks, its parent is gone: it is the child of another process."""


def test_a_child_whose_parent_is_gone_before_it_could_ask_dies_at_once():
    assert ran(sys.executable, "-c", ORPHANED, cwd=ROOT).stdout == "a child lives"


def test_work_is_shared_between_copies_of_a_process_and_what_one_raises_comes_back():
    own = {"seen": 0}

    def doubled(number: int) -> tuple[int, int]:
        own["seen"] += 1
        return 2 * number, os.getpid()

    found = side_by_side(doubled, range(20))
    assert [number for number, _ in found] == [*range(0, 40, 2)]
    assert os.getpid() not in {process for _, process in found} or len(os.sched_getaffinity(0)) == 1
    with pytest.raises(KeyError, match="missing"):
        side_by_side(lambda _: own["missing"], range(3))
    with pytest.raises(MemoryError):  # as a system that runs out of memory does
        side_by_side(lambda _: signal.raise_signal(signal.SIGKILL), range(3))
    with beside(lambda: bytes(2**24)) as answer:
        time.sleep(0.5)  # by then it waits until more of its answer is read
        for copy in multiprocessing.active_children():
            copy.kill()
        with pytest.raises(MemoryError):
            answer()


def test_what_a_copy_raises_is_told_in_words_where_it_cannot_be_sent():
    class Odd(Exception):
        def __init__(self, one: str, other: str) -> None:
            super().__init__(f"{one} and {other}")

    def fails() -> None:
        raise Odd("this", "that")

    with beside(fails) as answer, pytest.raises(RuntimeError, match="Odd: this and that"):
        answer()
