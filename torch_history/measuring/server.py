"""How does a release answer, case by case? One launch: a fresh interpreter that forks a process for each case it is asked.
Those of a round are open together, so that one case is measured on all releases within seconds."""

import contextlib
import datetime
import itertools
import os
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from typing import Any

from asv import util
from asv.config import Config
from asv.runner import get_spawner, run_benchmark

from contract.children import all_die_with_this_process
from contract.request import Request

from ..system.errors import SessionError
from ..system.signals import later
from .recording import Channel, RecordedResults
from .turns import Turns


class Server(contextlib.AbstractContextManager["Server"]):
    """The interpreter of one launch; `results` keeps what its processes answer. Use it in a `with`, and prepare it first."""

    def __init__(
        self, conf: Config, environment: Any, results: RecordedResults, request: Request, takes_turns: bool = False
    ) -> None:
        """Starts the interpreter that `environment` has selected, which is asked what `request` says. Where it `takes_turns`
        its processes wait for what `turns` tells them, and `ask` alone would wait forever."""
        self.channel = Channel()
        self.turns = Turns()
        paths = self.turns.paths if takes_turns else ""
        environment.request = replace(request, channel=self.channel.path, turns=paths)
        self.results = results
        self.request = request
        self._conf = conf
        self._ready, self._said, self._closed = False, "", False
        all_die_with_this_process()
        with later():
            self._spawner = get_spawner(environment, conf.benchmark_dir, launch_method="forkserver")
        self._spawner.channel = self.channel

    def prepare(self) -> None:
        """Lets the interpreter import torch and the suite, which every process that it forks will have."""
        self._ready, self._said = self._spawner.preimport()

    @contextlib.contextmanager
    def on(self, processor: int) -> Iterator[None]:
        """Within, the interpreter, and what it forks until they are told otherwise, are on one processor; after that it is
        where this process is. It never sees more of them: torch.compile and OpenMP ask at import how many there are. Raises
        SessionError where it cannot be moved back."""
        here = os.sched_getaffinity(0)
        with contextlib.suppress(OSError):
            os.sched_setaffinity(self._spawner.server_proc.pid, {processor})
        try:
            yield
        finally:
            try:
                os.sched_setaffinity(self._spawner.server_proc.pid, here)
            except ProcessLookupError:
                pass  # it ended, which is said where it is asked
            except OSError as error:
                raise SessionError(f"An interpreter cannot be kept on one processor ({error.strerror}).") from error

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None:
            self.stop()
        elif not self._closed:
            self._closed = True
            self._spawner.close()
        self.turns.close()

    def stop(self) -> None:
        """Ends the interpreter at once, and what it forked; `ask` in another thread then raises."""
        if not self._closed:
            self._closed = True
            self._spawner.interrupt()
            self._spawner.close()

    def ask(self, benchmark: dict[str, Any], index: int) -> None:
        """Measures case `index` of `benchmark` in a process of its own. Raises KeyboardInterrupt if that is interrupted."""
        began = datetime.datetime.now(datetime.timezone.utc)
        if self._ready:
            timeout = benchmark.get("timeout") or self._conf.default_benchmark_timeout
            self._run({**benchmark, "timeout": timeout}, index)
        else:
            self.channel.note_end(benchmark, index, f"{self._said}\nasv: benchmark suite import failed", status=1)
        self.results.take(index, self.channel.ended.pop((benchmark["name"], index)), began)

    def _run(self, benchmark: dict[str, Any], index: int) -> None:
        try:
            run_benchmark(benchmark, self._spawner, profile=False, selected_idx={index}, extra_params={"rounds": 1})
        except util.UserError as error:
            if str(error) == "Interrupted.":
                raise KeyboardInterrupt from error
            raise


def prepare_all(servers: Sequence[Server], processors: Collection[int]) -> None:
    """Prepares them beside each other: nothing is timed meanwhile. Where this process is kept on one processor, they are
    shared out among `processors`. Raises what one of them raised, or an interruption, after all are stopped."""
    kept = len(os.sched_getaffinity(0)) == 1 < len(processors)

    def prepare(server: Server, processor: int) -> None:
        with server.on(processor) if kept else contextlib.nullcontext():
            server.prepare()

    with ThreadPoolExecutor(len(processors)) as pool:
        try:
            pairs = zip(servers, itertools.cycle(processors), strict=False)
            for task in as_completed([pool.submit(prepare, *pair) for pair in pairs]):
                task.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for server in servers:
                server.stop()
            raise
