"""Does what a process started end with it, even where that process is killed?"""

import os
import signal
import subprocess
import sys

import pytest

from torch_history.system.children import side_by_side

from .processes import ROOT, lives, ran, until

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


def test_a_child_whose_parent_is_gone_before_it_could_ask_dies_at_once():
    code = (
        "import os\nfrom contract import children\nfunction = children.dies_with_parent()\n"
        "os.fork() or (os.fork() or (function(), os.write(1, b'lived'))); os.wait() if os.getpid() else 0"
    )
    done = ran(sys.executable, "-c", code, cwd=ROOT, code=None)
    assert "lived" not in done.stdout


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
    if len(os.sched_getaffinity(0)) > 1:
        with pytest.raises(MemoryError):  # and no wait without end
            side_by_side(lambda _: os.kill(os.getpid(), signal.SIGKILL), range(3))
