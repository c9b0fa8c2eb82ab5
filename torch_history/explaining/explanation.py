"""How is one changed series explained? Both releases are asked in turn, first whether they differ, then where and why.

Every turn asks the old release and then the new one, the next turn the other way round, so that a machine that slows down
meanwhile slows both. Nothing is looked for until the difference is there.
"""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from packaging.version import Version

from ..analysis.verdicts import human_seconds
from ..errors import UserError
from ..releases import added
from ..store.causes import Code, Kind, Place, Pulled
from . import machine_code, places, verdict
from .estimates import Group, Noise, Ratio, ratio, removed
from .launching import Launch, LaunchFailed, Side, Subject
from .levers import Lever

LEAST_TURNS, MOST_TURNS, MOST_NOISY_TURNS = 4, 8, 16
"""Launches of each release that say whether the difference is there: more where the first ones cannot tell."""

LOOKING_TURNS = 3
"""Launches of each release that are profiled and in which levers within the process are pulled."""

LEVER_TURNS, MOST_LEVER_TURNS = 2, 5
"""Launches of each release under a lever: no other verdict than CLEARED is given after fewer, and no more are made."""

FRESH_TURNS = 3
"""Launches of each release in which a lever that seems to remove some of the difference is pulled again: of some ten levers
one may seem to by chance, and the launches that made it seem so cannot show that it was not."""

TIMING_SECONDS, PROFILING_SECONDS, SAMPLED_SECONDS, PERF_SECONDS = 0.3, 0.15, 0.5, 0.7

PROFILES = ("symbols", "stacks", "functions", "operators")
"""As benchmarks/explained.py names them."""

SAME_CLOCK = 0.05
"""Where a call's wall time and processor time are this close in some turn, the processor's is taken in all: what others do
shows less in it."""

TIMINGS = (0, 1, 1, 0)
"""The order in which a turn times the two releases; the quicker timing of each counts."""

TIMES_ONCE = 40
"""How often both releases together do what a process does only once, after the first turn, where a lever seems to matter."""

LONG = 2.5
"""Seconds that a timing takes, most of them to build and warm up the call, from which on a turn times each release once."""

Say = Callable[[str], None]
Open = Callable[..., Any]


class CannotExplain(UserError):
    """This series cannot be explained here; the text says why."""


@dataclass
class Found:
    """All that was found of one series: as `Evidence` in store/causes.py, before it has a name."""

    clock: Literal["wall", "cpu", "none"] = "wall"
    base: Group = field(default_factory=lambda: Group([], []))
    ratio: Ratio = field(default_factory=lambda: Ratio(1.0, 0.0, 0.0))
    verdict: Kind = "NOT THERE"
    words: str = ""
    levers: list[Pulled] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    code: list[Code] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    commits: tuple[str, str] = ("", "")
    environments: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    took: float = 0.0
    steps: dict[str, float] = field(default_factory=dict)


class Explanation:
    """Explains one series of `subject` between two releases."""

    def __init__(
        self,
        subject: Subject,
        sides: tuple[Side, Side],
        levers: Sequence[Lever],
        scratch: Path,
        say: Say,
        seconds: float = 210.0,
        opened: Open = Launch,
        read: Callable[[Path], tuple[places.Shares, places.Shares, places.Raw]] = places.read_perf,
        read_stacks: Callable[[Path], places.Shares] = places.read_stacks,
    ) -> None:
        """`opened` gives a launch, `read` and `read_stacks` what perf recorded: tests give some that draw numbers.
        `scratch` is an empty folder. After `seconds` no lever is pulled any more, and a note says so."""
        self._subject, self._sides, self._levers = subject, sides, levers
        self._scratch, self._say, self._opened = scratch, say, opened
        self._read, self._read_stacks = read, read_stacks
        self._seconds, self._ends = seconds, time.monotonic() + seconds
        self._turn = 0
        self._traces: set[str] = set()
        self._timings: tuple[int, ...] = TIMINGS
        self._times: dict[str, tuple[list[dict[str, float]], list[dict[str, float]]]] = defaultdict(lambda: ([], []))
        self._profiles: dict[str, tuple[list[Any], list[Any]]] = defaultdict(lambda: ([], []))
        self._raw: tuple[places.Raw, places.Raw] = ({}, {})
        self._stacks: tuple[list[Path], list[Path]] = ([], [])
        self._failed: dict[str, str] = {}
        self._packages: dict[str, Path] = {}
        self._steps: dict[str, float] = defaultdict(float)

    def explain(self) -> Found:
        """All steps. Raises CannotExplain where a release cannot run the case."""
        began = time.monotonic()
        found = Found()
        with self._step("is it there"):
            self._confirm(found)
        if found.ratio.is_there:
            if self._subject.is_once:
                self._look_once(found)
            else:
                self._look(found)
            with self._step("levers in processes of their own"):
                self._pull(found)
            found.verdict, found.words = verdict.of_all(
                found.levers,
                {lever.name: lever.because for lever in self._levers},
                found.places,
                own=self._own,
                code=found.code,
            )
        found.took = round(time.monotonic() - began, 1)
        found.steps = {name: round(seconds, 1) for name, seconds in self._steps.items()}
        return found

    @property
    def _own(self) -> str:
        """The name of the workload's file."""
        return Path(self._subject.workload).name.removesuffix(".py") + ".py"

    @contextlib.contextmanager
    def _step(self, name: str) -> Iterator[None]:
        """Adds the seconds that pass to a step's."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._steps[name] += time.monotonic() - began

    # --- is it there?

    def _confirm(self, found: Found) -> None:
        for turn in range(MOST_NOISY_TURNS):
            began = time.monotonic()
            self._time_both()
            self._measure(found)
            if self._subject.is_once and not turn:
                each = max(found.base.levels)
                minutes = math.ceil((time.monotonic() - began + TIMES_ONCE * each) / 60)
                self._say(f"It takes {human_seconds(each)} each time, so this takes {minutes} minutes or more in all.")
            if turn + 1 >= LEAST_TURNS and found.ratio.is_there:
                break
            if turn + 1 >= MOST_TURNS and (found.ratio.is_absent or 2 * self._left() < self._seconds):
                break
        at = found.ratio
        said = f"new / old is {at.ratio:.3f} ({at.low:.3f} to {at.high:.3f}, {len(found.base.old)} turns)"
        if at.is_there:
            answer = "yes"
        elif at.is_absent:
            answer, found.words = "no, so nothing is looked for", f"the difference is not there: {said}"
        else:
            answer, found.verdict = "the times scatter too much to tell, so nothing is looked for", "INCONCLUSIVE"
            found.words = f"the times scatter too much to tell whether the difference is there: {said}"
        self._say(f"Is it there? {said}: {answer}.")

    def _left(self) -> float:
        """Seconds that are left."""
        return self._ends - time.monotonic()

    def _time_both(self) -> None:
        """One more turn without any lever."""
        with self._both() as launches:
            for launch in launches:
                launch.ask({"do": "facts"})  # which waits for what it imports
            began = time.monotonic()
            self._time("", launches, _timing(), needed=True)
            if time.monotonic() - began > LONG * len(self._timings):
                self._timings = TIMINGS[:2]

    def _measure(self, found: Found) -> None:
        """Brings the base, its clock and the ratio up to what was measured so far."""
        found.clock = self._clock()
        found.base = self._group("", found.clock)
        found.ratio = ratio(found.base, Noise.of([found.base]))

    def _clock(self) -> Literal["wall", "cpu"]:
        """The processor's, unless a call waits or has several threads: then no turn shows both alike."""
        alike = [min(abs(one["cpu"] / one["wall"] - 1) for one in side) for side in self._times[""]]
        return "cpu" if max(alike) <= SAME_CLOCK else "wall"

    # --- where and why?

    def _look(self, found: Found) -> None:
        """Profiles, and levers that need no process of their own, in the same launches as more plain times."""
        for turn in range(LOOKING_TURNS):
            with self._both() as launches:
                with self._step("levers within a process"):
                    if not turn:
                        self._ask_facts(found, launches)
                        within = [lever for lever in self._levers if lever.within and not lever.refusal(self._traces)]
                        said = f"{LOOKING_TURNS} launches of each with profilers and {len(within)} levers"
                        self._say(f"Where did it go? {said}.")
                    self._time("", launches, _timing(), needed=True)
                    for lever in within:
                        self._time(lever.name, launches, _timing(lever.set))
                with self._step("profiles"):
                    for number in self._order():
                        self._look_at(number, launches[number])
            self._measure(found)
            within = [lever for lever in within if self._is_open(lever, found)]
        with self._step("profiles"):
            self._tabulate(found)

    def _look_once(self, found: Found) -> None:
        """Profiles of what a process does once. Levers come later: each turn of one takes as long as all of it."""
        self._say(f"Where did it go? {LOOKING_TURNS} launches of each that are looked at.")
        with self._step("profiles"):
            for turn in range(LOOKING_TURNS):
                with self._both() as launches:
                    if not turn:
                        self._ask_facts(found, launches)
                    for number in self._order():
                        self._keep_once(number, launches[number].ask({"do": "profiles"}))
            if why := self._failed.get("once", ""):
                found.notes.append(f"no table of processes, packages and functions: {why}")
                return
            for kind in ("process", "package", "function"):
                old, new = self._profiles[kind]
                found.places += places.table(kind, old, new, found.base)

    def _keep_once(self, number: int, answer: Mapping[str, Any]) -> None:
        if "failed" in answer:
            self._failed["once"] = answer["failed"]
            return
        self._traces.update(answer["traces"])
        self._traces.update(["torch.compile"] if "torch._inductor" in answer["packages"] else [])
        for kind, profile in places.of_once(answer).items():
            self._profiles[kind][number].append(profile)

    def _ask_facts(self, found: Found, launches: tuple[Any, Any]) -> None:
        """The environments and the commits of both, and what the call uses."""
        answers = [launch.ask({"do": "facts"}) for launch in launches]
        for launch in () if self._subject.is_once else launches:
            self._traces.update(launch.ask({"do": "traces"}).get("traces", []))
        found.environments = answers[0].get("environment", {}), answers[1].get("environment", {})
        found.commits = answers[0].get("commit", ""), answers[1].get("commit", "")

    def _look_at(self, number: int, launch: Any) -> None:
        """Profiles of one launch, all made in one process: the one that disturbs least comes first."""
        recorded = self._scratch / "perf.data"
        recorded.unlink(missing_ok=True)
        stacks = self._scratch / f"stacks-{number}-{len(self._stacks[number])}.data"
        step = {
            "do": "profiles",
            "seconds": PROFILING_SECONDS,
            "sampled": SAMPLED_SECONDS,
            "perf": PERF_SECONDS,
            "file": str(recorded),
            "stacks": str(stacks),
        }
        answer = launch.ask(step)
        if "failed" in answer:
            # A release may end under one profiler, and not under the others.
            each = {name: launch.ask({**step, "only": [name]}) for name in PROFILES}
            answer = {name: one.get(name, one) for name, one in each.items()}
        if "failed" in answer["stacks"]:
            self._failed["caller"] = answer["stacks"]["failed"]
        else:
            self._stacks[number].append(stacks)
        self._keep_perf(number, answer["symbols"], recorded)
        self._keep_profile("function", number, answer["functions"])
        self._keep_profile("operator", number, answer["operators"])

    def _keep_profile(self, kind: str, number: int, answer: Mapping[str, Any]) -> None:
        if "failed" in answer:
            self._failed[kind] = answer["failed"]
        else:
            self._profiles[kind][number].append(answer)

    def _keep_perf(self, number: int, answer: Mapping[str, Any], recorded: Path) -> None:
        if "failed" in answer:
            self._failed["symbol"] = answer["failed"]
            return
        try:
            symbols, libraries, raw = self._read(recorded)
        except (OSError, subprocess.CalledProcessError) as error:
            self._failed["symbol"] = f"perf report failed: {error}"
            return
        self._profiles["symbol"][number].append(symbols)
        self._profiles["library"][number].append(libraries)
        self._raw[number].update(raw)

    def _tabulate(self, found: Found) -> None:
        for kind, words in (("operator", "operators"), ("function", "Python functions")):
            answers = self._profiles[kind]
            if kind in self._failed or not all(answers):
                found.notes.append(f"no table of {words}: {self._failed.get(kind, 'there was no profile')}")
                continue
            times = max(places.inflation(side) for side in answers)
            old_level, new_level = found.base.levels
            if not all(places.is_believed(side, new_level - old_level) for side in answers):
                if all("samples" in answer for side in answers for answer in side):
                    old, new = ([places.of_samples(answer) for answer in side] for side in answers)
                    found.places += places.table(kind, old, new, found.base)
                    continue
                found.notes.append(
                    f"no table of {words}: with their profiler a call takes {times:.1f} times as long, so that says "
                    "little about a plain call"
                )
                continue
            old, new = ([places.of_rows(answer) for answer in side] for side in answers)
            found.places += places.table(kind, old, new, found.base)
        if "symbol" in self._failed:
            found.notes.append(f"no table of native symbols: {self._failed['symbol']}")
            return
        for kind in ("symbol", "library"):
            old, new = self._profiles[kind]
            found.places += places.table(kind, old, new, found.base)
        self._tabulate_callers(found)
        self._compare_code(found)

    def _tabulate_callers(self, found: Found) -> None:
        """Which of PyTorch's compiled functions had called what took the time, where no table says it yet: reading stacks
        takes seconds."""
        if verdict.is_narrow(found.places, self._own):
            return
        self._say("Who called it? The stacks of all samples are read.")
        try:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                old, new = (list(filter(None, pool.map(self._read_stacks, side))) for side in self._stacks)
        except (OSError, subprocess.SubprocessError) as error:
            found.notes.append(f"no table of callers: perf script failed: {error}")
            return
        if "caller" in self._failed or not (old and new):
            found.notes.append(f"no table of callers: {self._failed.get('caller', 'perf gave no samples')}")
            return
        found.places += places.table("caller", old, new, found.base)

    def _compare_code(self, found: Found) -> None:
        """Whether the symbols that hold the difference are the same code in both wheels."""
        names = [place.name for place in found.places if place.kind == "symbol" and place.verdict in ("CAUSE", "PART")]
        folders = [side.python.parent.parent for side in self._sides]
        for name in names:
            try:
                found.code += machine_code.compare([name], (folders[0], self._raw[0]), (folders[1], self._raw[1]))
            except machine_code.CannotDisassemble as error:
                found.notes.append(f"no comparison of machine code: {error}")

    def _pull(self, found: Found) -> None:
        """Levers that need processes of their own, and then the verdict on each lever."""
        if self._subject.is_once:
            self._ends = time.monotonic() + self._seconds
            self._levers = [lever for lever in self._levers if lever.once]
        refused = {lever.name: lever.refusal(self._traces) for lever in self._levers}
        for lever in self._levers:
            if lever.package and not refused[lever.name]:
                refused[lever.name] = self._share(lever.package, found)
        pulled_already = [lever.name for lever in self._levers if lever.within and not self._subject.is_once]
        alone = [lever for lever in self._levers if lever.name not in pulled_already and not refused[lever.name]]
        by_profile = {lever.name: self._cleared_by_profile(lever, found) for lever in alone}
        alone = [lever for lever in alone if not by_profile[lever.name]]
        self._say(f"Why? {len(alone)} levers in processes of their own.")
        for turn in range(MOST_LEVER_TURNS):
            for lever in alone:
                if time.monotonic() < self._ends or (self._subject.is_once and turn < LEVER_TURNS):
                    self._pull_one(lever)
            alone = [lever for lever in alone if self._is_open(lever, found)]
        if alone and time.monotonic() >= self._ends:
            found.notes.append(f"no time for another turn with {', with '.join(lever.words for lever in alone)}")
        tried = [lever for lever in self._levers if not refused[lever.name] and not by_profile.get(lever.name)]
        self._pull_again([lever for lever in tried if self._judged(lever, found).verdict in ("CAUSE", "PART")])
        found.levers = [
            Pulled(lever.name, lever.words, lever.proves, refused=refused[lever.name])
            if refused[lever.name]
            else by_profile.get(lever.name) or self._judged(lever, found)
            for lever in self._levers
        ]

    def _pull_again(self, levers: Sequence[Lever]) -> None:
        """Pulls levers in fresh launches, which alone count from then on; the earlier ones still tell of noise."""
        if levers:
            self._say(f"Again, to be sure: {', '.join(lever.words for lever in levers)}.")
        for lever in levers:
            self._times[f"{lever.name}, at first"] = self._times.pop(lever.name)
        for _ in range(FRESH_TURNS):
            for lever in levers:
                self._pull_one(lever)

    def _cleared_by_profile(self, lever: Lever, found: Found) -> Pulled | None:
        """A lever that cannot remove a fifth of the difference, because the libraries whose work it changes hold less than
        that; None where the profile does not say so."""
        profiles = self._profiles["library"]
        if not lever.libraries or "symbol" in self._failed or not all(profiles):
            return None
        held = places.held(lever.libraries, *profiles, found.base)
        if held.verdict != "CLEARED":
            return None
        old_level, new_level = found.base.levels
        ends = sorted(100 * end / (new_level - old_level) for end in (held.low, held.high))
        said = f"what it changes holds {ends[0]:.0f} to {ends[1]:.0f} % of the difference"
        return Pulled(lever.name, lever.words, lever.proves, verdict="CLEARED", by_profile=said)

    def _share(self, package: str, found: Found) -> str:
        """Gets both releases the same version of a package. Returns why that cannot be; empty where it can."""
        versions = [str(environment.get(package, "")) for environment in found.environments]
        if not all(versions):
            return f"it is not known which {package} each release has"
        if versions[0] == versions[1]:
            return f"both have {package} {versions[0]}"
        try:
            self._packages[package] = added.alone(
                f"{package}=={min(versions, key=Version)}", self._sides[0].python.parent.parent, self._scratch / package
            )
        except added.AddingError as error:
            return str(error)
        return ""

    def _is_open(self, lever: Lever, found: Found) -> bool:
        """Whether more turns may tell what a lever does."""
        if lever.name in self._failed:
            return False
        return self._judged(lever, found).verdict in ("UNKNOWN", "PART")

    def _pull_one(self, lever: Lever) -> None:
        step = {**_timing(lever.set), **({"fresh": True} if lever.fresh else {})}
        try:
            variables = lever.surroundings(self._scratch)
            if lever.package:
                variables["PYTHONPATH"] = str(self._packages[lever.package])
            with self._both(variables=variables, command=lever.command) as launches:
                self._time(lever.name, launches, step)
        except LaunchFailed as error:
            self._failed[lever.name] = str(error)

    def _judged(self, lever: Lever, found: Found) -> Pulled:
        """What a lever was found to do."""
        if lever.name in self._failed:
            return Pulled(lever.name, lever.words, lever.proves, refused=self._failed[lever.name][:500])
        clock = lever.clock or found.clock
        group, base = self._group(lever.name, clock), self._group("", clock)
        if not group.old:
            return Pulled(lever.name, lever.words, lever.proves, refused="the time was over before it was tried")
        every = [self._group(name, clock) for name in self._times if name not in self._failed]
        share = removed(base, group, Noise.of(every))
        kind = verdict.of_lever(share)
        return Pulled(
            lever.name,
            lever.words,
            lever.proves,
            verdict=kind if kind == "CLEARED" or len(group.old) >= LEVER_TURNS else "UNKNOWN",
            old=tuple(group.old),
            new=tuple(group.new),
            removed=_bounded(share.share),
            low=_bounded(share.low),
            high=_bounded(share.high),
        )

    # --- launches

    def _order(self) -> tuple[int, int]:
        """Old and new, in the next turn the other way round."""
        self._turn += 1
        return (0, 1) if self._turn % 2 else (1, 0)

    @contextlib.contextmanager
    def _both(self, **how: Any) -> Iterator[tuple[Any, Any]]:
        """A launch of each release; they import at the same time."""
        opened = []
        try:
            for side in self._sides:
                opened.append(self._opened(side, self._subject, **how))
            yield opened[0], opened[1]
        finally:
            for launch in opened:
                launch.close()

    def _time(self, name: str, launches: tuple[Any, Any], step: Mapping[str, Any], needed: bool = False) -> None:
        """One more turn of a lever, or of none: both releases or neither, so that turns stay pairs."""
        swapped = self._order()[0]
        answers: tuple[list[Any], list[Any]] = ([], [])
        for number in (each ^ swapped for each in self._timings):
            answer = launches[number].ask(step)
            if "failed" in answer:
                tag = self._sides[number].tag
                if needed:
                    raise CannotExplain(f"{tag} cannot run it: {answer['failed']}.")
                self._failed[name] = f"{tag} cannot run under it: {answer['failed']}"
                return
            answers[number].append(answer)
        for kept, side in zip(self._times[name], answers, strict=True):
            kept.append({clock: min(answer[clock] for answer in side) for clock in ("wall", "cpu")})

    def _group(self, name: str, clock: str) -> Group:
        old, new = self._times[name]
        return Group([one[clock] for one in old], [one[clock] for one in new])


def _timing(settings: Sequence[str] = ()) -> dict[str, Any]:
    return {"do": "time", "seconds": TIMING_SECONDS, **({"set": list(settings)} if settings else {})}


def _bounded(share: float) -> float:
    return max(-1e6, min(share, 1e6))
