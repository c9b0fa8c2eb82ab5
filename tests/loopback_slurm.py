"""A Slurm cluster on this machine's loopback, of Debian's slurm-wlm and munge alone."""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .processes import ran

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

CONFIGURATION = """\
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={folder}/munge/socket,cred_expire=10
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmdPidFile={folder}/%n.pid
SlurmctldPidFile={folder}/slurmctld.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmdTimeout=20
KillWait=5
SchedulerParameters=batch_sched_delay=0,sched_interval=2,requeue_delay=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
{nodes}
PartitionName=cpu Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""
"""A requeued job waits until its credential has expired: ten seconds here, two minutes by default."""


def missing() -> str:
    """Why no cluster can be started here, in a sentence; empty where one can."""
    absent = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if not shutil.which(name, path=PATH)]
    return f"There is no {absent[0]} here: `make slurm` installs Debian's slurm-wlm and munge." if absent else ""


class Cluster:
    """A running cluster: the `names` of its nodes, and the variables with which Slurm's commands speak to it."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self._folder = folder
        self.names = [f"n{number}" for number in range(1, nodes + 1)]
        conf = folder / "slurm.conf"
        self.surroundings = {**os.environ, "SLURM_CONF": str(conf), "PATH": PATH}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        port, *ports = _free_ports(nodes + 1)
        host = socket.gethostname().partition(".")[0]
        lines = [
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={of_node} CPUs=1"
            for name, of_node in zip(self.names, ports, strict=True)
        ]
        known = {"host": host, "port": port, "user": getpass.getuser(), "folder": folder}
        conf.write_text(CONFIGURATION.format(nodes="\n".join(lines), names=",".join(self.names), **known))
        for name in ("state", *self.names):
            (folder / name).mkdir()

    def begin(self) -> None:
        """Starts munged, the controller and the nodes. Raises TimeoutError where they do not find each other."""
        munge = self._folder / "munge"
        munge.mkdir(mode=0o700)
        (munge / "key").write_bytes(os.urandom(128))
        (munge / "key").chmod(0o400)
        options = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        self._run("munged", "munged", "--foreground", "--force", *(f"--{o}={munge / n}" for o, n in options.items()))
        munge.chmod(0o755)
        self._wait((munge / "socket").exists)
        self._run("slurmctld", "slurmctld", "-D")
        for name in self.names:
            self._run(name, "slurmd", "-D", "-N", name)
        self._wait(lambda: self.ask("sinfo", "--noheader", "--Node", "-o", "%T").split() == ["idle"] * len(self.names))

    def ask(self, *command: str) -> str:
        """What one of Slurm's commands prints, empty where it fails."""
        return ran(*command, env=self.surroundings, timeout=60, code=None).stdout

    def end(self) -> None:
        """Ends everything that was started with this cluster's configuration, jobs included, and nothing else."""
        for process in reversed(self._running.values()):
            process.terminate()
        for process in self._running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
        mark = f"SLURM_CONF={self.surroundings['SLURM_CONF']}".encode()
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if int(path.name) != os.getpid() and mark in (path / "environ").read_bytes().split(b"\0"):
                    os.kill(int(path.name), signal.SIGKILL)

    def _run(self, name: str, *command: str) -> None:
        with (self._folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                command, env=self.surroundings, stdout=log, stderr=log, start_new_session=True
            )

    def _wait(self, until: Callable[[], bool]) -> None:
        ends = time.monotonic() + 30
        while not until():
            if time.monotonic() > ends:
                raise TimeoutError((self._folder / "slurmctld.log").read_text(errors="replace")[-2000:])
            time.sleep(0.2)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def cluster(nodes: int) -> Iterator[Cluster]:
    """A cluster of so many nodes, gone when the block ends. Its folder's path is short, as sockets need it."""
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as name:
        found = Cluster(Path(name), nodes)
        try:
            found.begin()
            yield found
        finally:
            found.end()
