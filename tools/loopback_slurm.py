"""A Slurm cluster on this machine's loopback, for tests: `python -m tools.loopback_slurm NODES` runs one until Ctrl+C.

Debian's slurm-wlm and munge are all it needs: no systemd, no control groups, no accounting. Each node is a slurmd with one
core of its own in Slurm's books. The real ones are dealt out to the nodes in turn, so two nodes may share one. Jobs that
ask for the licence `alone` run one after the other.
"""

from __future__ import annotations

import argparse
import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch")
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

CREDENTIAL_SECONDS = 10
"""A job's credential expires after so many seconds, and Slurm lets a requeued job wait that long before it starts again. By
default it waits for two minutes, which is nearly all that a trial with a few requeues takes."""

CONFIGURATION = """\
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire={expires}
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmdPidFile={folder}/%n.pid
SlurmctldPidFile={folder}/slurmctld.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=20
KillWait=5
InactiveLimit=0
MinJobAge=300
Prolog={folder}/prolog
JobRequeue=1
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,requeue_delay=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
Licenses=alone:1
{nodes}
PartitionName=cpu Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Why no cluster can be started here, in a sentence; empty where one can."""
    absent = [name for name in NEEDED if shutil.which(name, path=PATH) is None]
    return (
        f"There is no {absent[0]} on this machine: `make slurm` installs Debian's slurm-wlm and munge."
        if absent
        else ""
    )


class Cluster:
    """A running cluster. `kill`, `start` and the like are the faults that a fleet has to bear."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self._folder = folder
        self.names = [f"n{number}" for number in range(1, nodes + 1)]
        self.conf = folder / "slurm.conf"
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        ports = _free_ports(nodes + 1)
        host = socket.gethostname().partition(".")[0]
        listed = [
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1"
            for name, port in zip(self.names, ports[1:], strict=True)
        ]
        text = CONFIGURATION.format(
            host=host,
            port=ports[0],
            user=getpass.getuser(),
            folder=folder,
            nodes="\n".join(listed),
            names=",".join(self.names),
            expires=CREDENTIAL_SECONDS,
        )
        self.conf.write_text(text)
        prolog = folder / "prolog"
        prolog.write_text(f'#!/bin/sh\n[ ! -e "{folder}/broken-$SLURMD_NODENAME" ]\n')
        prolog.chmod(0o755)
        (folder / "state").mkdir()
        for name in self.names:
            (folder / name).mkdir()

    @property
    def surroundings(self) -> dict[str, str]:
        """The variables with which Slurm's commands speak to this cluster."""
        return {**os.environ, "SLURM_CONF": str(self.conf), "PATH": PATH}

    def start(self, name: str) -> None:
        """Starts a node, or the controller by its name `slurmctld`."""
        if name == "slurmctld":
            self._run(name, ["slurmctld", "-D"])
            return
        cores = sorted(os.sched_getaffinity(0))
        core = cores[self.names.index(name) % len(cores)]
        self._run(name, ["taskset", "--cpu-list", str(core), "slurmd", "-D", "-N", name])

    def runs(self, name: str) -> bool:
        """Whether a node, or the controller, was started and not killed since."""
        return name in self._running

    def kill(self, name: str) -> None:
        """Ends the slurmd of a node, or the controller, by SIGKILL. What jobs run lives on."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def break_node(self, name: str, broken: bool) -> None:
        """From now on no job starts on a node: its prolog fails, Slurm drains it and holds the job. Or they do again."""
        mark = self._folder / f"broken-{name}"
        mark.touch() if broken else mark.unlink(missing_ok=True)

    def ask(self, *command: str) -> str:
        """What one of Slurm's commands prints. Raises CalledProcessError."""
        return subprocess.run(
            command, env=self.surroundings, capture_output=True, text=True, check=True, timeout=60
        ).stdout

    def wait_until_idle(self, seconds: float = 30) -> None:
        """Waits until every node can take a job. Raises TimeoutError with the words of the logs."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            with contextlib.suppress(subprocess.CalledProcessError, subprocess.TimeoutExpired):
                if self.ask("sinfo", "--noheader", "--Node", "--format=%T").split() == ["idle"] * len(self.names):
                    return
            time.sleep(0.3)
        logs = "\n".join(path.read_text(errors="replace")[-500:] for path in self._folder.glob("*.log"))
        raise TimeoutError(f"The cluster was not idle after {seconds:.0f} s:\n{logs}")

    def _run(self, name: str, command: list[str]) -> None:
        with (self._folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                ["nice", "-n", "5", *command], env=self.surroundings, stdout=log, stderr=log, start_new_session=True
            )

    def begin(self) -> None:
        """Starts munged, the controller and the nodes. Raises TimeoutError where they do not find each other."""
        munge = self._folder / "munge"
        munge.mkdir(mode=0o700)
        (munge / "key").write_bytes(os.urandom(128))
        (munge / "key").chmod(0o400)
        files = [f"--{what}={munge / name}" for what, name in MUNGE.items()]
        self._run("munged", ["munged", "--foreground", "--force", *files])
        munge.chmod(0o755)
        ends = time.monotonic() + 10
        while not (munge / "socket").exists() and time.monotonic() < ends:
            time.sleep(0.05)
        for name in ("slurmctld", *self.names):
            self.start(name)
        self.wait_until_idle()

    def end(self) -> None:
        """Ends everything that belongs to this cluster, and nothing else."""
        for process in reversed([*self._running.values()]):
            process.terminate()
        for process in self._running.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for number in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)

    def processes(self, words: str = "") -> list[int]:
        """Every process that was started with this cluster's configuration, jobs and what they started, whose command line
        contains `words`."""
        mark = f"SLURM_CONF={self.conf}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (
                    mark in (path / "environ").read_bytes().split(b"\0")
                    and words.encode() in (path / "cmdline").read_bytes()
                ):
                    found.append(int(path.name))
        return sorted(set(found) - {os.getpid()})


MUNGE: dict[str, Any] = {
    "key-file": "key",
    "socket": "socket",
    "pid-file": "pid",
    "log-file": "log",
    "seed-file": "seed",
}


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def cluster(nodes: int) -> Iterator[Cluster]:
    """A cluster of so many nodes, gone when the block ends, by SIGTERM too unless another handles it. Its folder's path is
    short, as sockets need it."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as name:
        found = Cluster(Path(name), nodes)
        try:
            found.begin()
            yield found
        finally:
            found.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nodes", type=int, nargs="?", default=2)
    nodes = parser.parse_args().nodes
    if words := missing():
        print(words, file=sys.stderr)
        return 1
    with cluster(nodes) as running:
        print(f"export SLURM_CONF={running.conf}\n{nodes} nodes run until Ctrl+C.", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
