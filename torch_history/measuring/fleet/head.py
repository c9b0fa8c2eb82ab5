"""Who looks after a fleet? A process that may be killed at any time: what it knows is on disk and in the queue."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from ...store.asv_results import read_benchmarks
from ...store.collecting import Collected, collect
from ...system.errors import UserError
from ...system.files import read_bytes, write_atomically
from .attempts import OPEN, Job, Order
from .slurm import Slurm

FAILURES = 3
"""A job that was started so often and ended without a new launch is given up."""

LOOKS = 20  # at cancelled jobs, which end within half a minute unless their node is gone


def jobs_of(fleet: Path) -> list[Job]:
    """All jobs of a fleet, by number."""
    return [Job(fleet, number, releases) for number, releases in enumerate(Order.load(fleet).jobs)]


def watch(fleet: Path, slurm: Slurm, nodes: int, tell: Callable[[str], None], detach: bool = False) -> dict[int, str]:
    """Submits what is missing until every job is done, cancelled or given up; to `detach`, once. Returns how jobs stand that
    are not done, by number. Raises UserError where Slurm refuses at first; later it is asked again."""
    jobs = jobs_of(fleet)
    starts: Counter[int] = Counter()
    lines: dict[int, int] = {}
    said: dict[int, str] = {}
    away = ""
    while True:
        try:
            live = slurm.live()
            open_ = [number for number, job in enumerate(jobs) if job.state == OPEN]
            ended = [number for number in open_ if number not in live]
            for number in ended:
                if lines.get(number) != (now := jobs[number].lines):
                    lines[number], starts[number] = now, 0
            missing = [number for number in ended if starts[number] < FAILURES]
            chosen = missing if not live else missing[: max(0, nodes - len(live))]
            if chosen:
                slurm.submit(chosen, nodes)
                starts.update(chosen)
            live |= dict.fromkeys(chosen, "submitted")
            away = ""
        except UserError as error:
            if not said:
                raise
            if not away:
                tell(f"{error} Jobs continue, and this command asks again.")
            away = str(error)
        for number, job in enumerate(jobs):
            words = sentence(job, live, starts[number])
            if said.get(number) != words:
                tell(words)
                said[number] = words
        left = {number: words for number, words in said.items() if jobs[number].state != "done"}
        if detach or not (away or any(number in live or number in missing for number in open_)):
            return left
        time.sleep(slurm.seconds)


def sentence(job: Job, live: Mapping[int, str], starts: int = 0) -> str:
    """How a job stands: as the disk has it, and Slurm, which has those that are `live`."""
    named = f"Job {job.number}, {' to '.join(dict.fromkeys((job.releases[0], job.releases[-1])))}"
    if (state := job.state) != OPEN or job.number in live:
        return f"{named}: {state if state != OPEN else live[job.number]}."
    failed = f"failed {FAILURES} times" if starts >= FAILURES else "waits"
    said = job.log.read_text(encoding="utf-8", errors="replace").strip() if job.log.exists() else ""
    return f"{named}: {failed}. Its last words: {said.splitlines()[-1][:300]}" if said else f"{named}: {failed}."


def cancel(fleet: Path, slurm: Slurm) -> None:
    """Ends all jobs for good, and waits for what they still write, which counts. Raises UserError where Slurm is away."""
    slurm.live()
    for job in jobs_of(fleet):
        job.close(job.attempts[-1] if job.attempts else None)
    slurm.cancel()
    for _ in range(LOOKS):
        if not slurm.live():
            break
        time.sleep(slurm.seconds)


def collect_jobs(fleet: Path, results: Path, env: Path) -> Collected:
    """Adds what counts of a fleet's jobs to `results`. Raises UserError as `store.collecting.collect` does."""
    sources = [job.results for job in jobs_of(fleet) if job.state != OPEN]
    collected = collect(sources, results, env)
    for source in sources:
        with contextlib.suppress(ValueError):  # torn where a job was ended while asv wrote it; any run writes it again
            read_benchmarks(source / "benchmarks.json")
            write_atomically(results / "benchmarks.json", read_bytes(source / "benchmarks.json"))
    return collected
