"""How is a history cut into jobs, sessions of neighbouring releases, and how long does each take by stored launches?"""

import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from contract.metrics import metric_of

from ...store.launches import Launch, files_of, machines_in, of_file
from ...store.machines import record_of
from ...store.sources import versions
from ..plan import SHARED, gigabytes, in_sessions, middle

Rates = Mapping[tuple[str, str], float]
"""Question and kind -> the usual seconds of one release in one round. Who takes times and counts takes those of both."""


@dataclass(frozen=True)
class Work:
    """What is asked of each release, which says how long it takes: `questions`, `only` times or counts or both where empty,
    the `launches` that measure everything, a session's `budget` in seconds, 0 for none, and those `within` which it ends."""

    questions: tuple[str, ...]
    only: str
    launches: int
    budget: float = 0.0
    within: float = math.inf

    def seconds(self, rates: Rates, releases: Sequence[str]) -> float:
        """Seconds of a session of `releases`; counts that come with times are taken in the first round only."""
        rounds = {"times": self.launches, "counts": self.launches if self.only == "counts" else 1}
        kinds = [(question, kind) for question in self.questions for kind in rounds if self.only in ("", kind)]
        # Of a question of which nothing is stored: the slowest on a CPU takes 104 seconds a round.
        of_release = sum(rounds[kind] * rates.get((question, kind), 100.0) for question, kind in kinds)
        needed = math.inf if self.budget and self.only != "counts" else len(releases) * of_release
        return min(needed, self.budget or math.inf, self.within)


def rates(launches: Iterable[Launch]) -> Rates:
    """What stored launches say of the time that a release takes, as if each round had all cases of its question. A round of
    both kinds counts as half of each, and only where there is none of one kind."""
    rounds: dict[tuple[str, str, str, int], list[Launch]] = defaultdict(list)
    for launch in launches:
        rounds[launch.benchmark.partition(".")[0], launch.release, launch.session, launch.round].append(launch)
    cases = {key: len({case.parameters for launch in of for case in launch.cases}) for key, of in rounds.items()}
    whole: Counter[str] = Counter()
    for key, number in cases.items():
        whole[key[0]] = max(whole[key[0]], number)
    found: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for key, of_round in rounds.items():
        kinds = {metric_of(launch.benchmark).kind for launch in of_round}
        seconds = sum(launch.duration for launch in of_round)
        for kind in kinds if seconds and cases[key] else ():
            found[key[0], kind][len(kinds)].append(seconds / cases[key] * whole[key[0]] / len(kinds))
    return {key: statistics.median(by_kinds[min(by_kinds)]) for key, by_kinds in found.items()}


def all_questions(root: Path) -> tuple[str, ...]:
    """The questions of the suite in `root`, those of a user's own file excepted."""
    return tuple(sorted({benchmark.partition(".")[0] for benchmark in versions(root)}))


def cut(releases: Sequence[str], nodes: int, apart: bool) -> tuple[list[tuple[str, ...]], str]:
    """The sessions of `releases` that keep so many nodes busy, and the release that all measure besides, empty for none.
    Neighbouring sessions share releases, so that every pair is measured on one node. Where they are measured `apart`, as
    counts allow, which no node changes, each release is in one session."""
    jobs = in_sessions(releases, 0 if apart else SHARED, nodes=nodes)
    return [tuple(job) for job in jobs], middle(releases) if len(jobs) > 1 and not apart else ""


def machine_with_durations(results: Path, ours: str, device: str, lane: str, tell: Callable[[str], None]) -> str:
    """This machine where anything of the lane is stored, else that of the device with most stored; empty where none is."""
    of_lane = {path.parent.name for path in results.glob("*/*.jsonl*") if of_file(path)[1] in ("", lane)}
    machines = [name for name in machines_in(results) if name in of_lane]
    known = [name for name in machines if record_of(results / name).get("device", "cpu") == device]
    if ours in known or not known:
        return ours if known else ""
    most = max(known, key=lambda name: sum(path.stat().st_size for path in files_of(results / name)))
    tell(f"Nothing of this machine is stored: durations are those of {most}.")
    return most


def sessions(every: Sequence[Sequence[str]], work: Work, known: Rates, what: str, installs: bool = True) -> Table:
    """The sessions, `what` one is called, and how long each takes by what is `known`; `every` has the tags of each."""
    minutes = [work.seconds(known, tags) / 60 for tags in every]
    needed = sum(map(gigabytes, {*itertools.chain(*every)}))
    room = f", at most {needed:.0f} GB to install" if installs else ""
    said = f"About {max(1, round(sum(minutes)))} min in all{room}. Nothing was measured."
    if unknown := [question for question in work.questions if not any(question == of for of, _ in known)]:
        said += f" No duration of {', '.join(unknown)} is stored, so that of these is a guess."
    table = Table(box=None, caption=said, caption_justify="left")
    for title in (what, "minutes", "releases"):
        table.add_column(title, justify="right" if title == "minutes" else "left")
    for number, (tags, of_session) in enumerate(zip(every, minutes, strict=True), start=what == "session"):
        table.add_row(str(number), f"{of_session:.0f}", ", ".join(tags))
    return table
