"""How is one changed series explained? Both releases are asked in turn whether they differ; only then where and why."""

import contextlib
import itertools
import math
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..analysis import causes
from ..analysis.code import LEAST_SAMPLES, State
from ..analysis.verdicts import human
from ..store.causes import LONGEST_DIFFERENCE, Code, Kind, Place, Pulled
from . import fingerprints, places, verdict
from .estimates import Group, Noise, Ratio, ratio, removed
from .launching import CannotExplain, Launch, LaunchFailed, Sides, Subject
from .levers import Lever
from .library import NotALibrary

LEAST_TURNS, MOST_TURNS, MOST_NOISY_TURNS = 4, 8, 16  # launches that say whether the difference is there
LOOKING_TURNS = 3  # launches of each release that are profiled
LEVER_TURNS = 2  # launches of each release under a lever, after which it is CLEARED or tried again
FRESH_TURNS = 3  # in which a lever that is not CLEARED is tried again; these alone count: of ten, one may seem to work
CONFIRMED, LOOKED, PULLED = 0.5, 0.6, 0.85  # shares of the time after which no turn of a kind is begun

PROFILES = {"operator": "operators", "function": "Python functions", "symbol": "native symbols"}
"""Kind of place of a steady call, as benchmarks/explained.py names its profile -> what a note calls its table."""

ONCE = {"process": "processes", "package": "packages", "function": "Python functions"}  # of a process

TIMING: Mapping[str, Any] = {"do": "time", "seconds": 0.3}
LOOKING: Mapping[str, Any] = {"do": "profile", "seconds": 0.15, "sampled": 0.5, "perf": 0.7}
"""Steps as benchmarks/explained.py takes them."""

SAME_CLOCK = 0.05  # where wall and processor time are this close, the processor's is taken: others show less in it
TIMINGS = (0, 1, 1, 0)  # the order in which a turn times the two releases; the quicker timing of each counts
TIMES_ONCE = 40  # how often both releases do what a process does only once, where a lever seems to matter
LONG = 2.5  # seconds of a timing, most to warm up, from which on a turn times each release once

Say = Callable[[str], None]
Open = Callable[..., Any]


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
    python: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    commits: tuple[str, str] = ("", "")
    environments: tuple[dict[str, Any], dict[str, Any]] = ({}, {})


class Explanation:
    """Explains one series of `subject` between two releases."""

    def __init__(
        self,
        subject: Subject,
        sides: Sides,
        levers: Sequence[Lever],
        scratch: Path,
        say: Say,
        seconds: float = math.inf,
        opened: Open = Launch,
    ) -> None:
        """`opened` gives a launch, `scratch` is an empty folder. What a steady call has no time for is noted."""
        self._subject, self._sides, self._scratch, self._say = subject, sides, scratch, say
        self._levers = [lever for lever in levers if lever.once or not subject.is_once]
        self._seconds, self._opened = seconds, opened
        self._kinds = ONCE if subject.is_once else PROFILES
        self._began, self._took = time.monotonic(), 0.0
        self._orders = itertools.cycle([(0, 1), (1, 0)])  # old and new, in the next turn the other way round
        self._timings: tuple[int, ...] = TIMINGS
        self._traces: set[str] = set()
        self._times: dict[str, tuple[list[Any], list[Any]]] = defaultdict(lambda: ([], []))
        self._profiles: dict[str, tuple[list[Any], list[Any]]] = defaultdict(lambda: ([], []))
        self._running: dict[int, Mapping[str, Any]] = {}  # side -> what was seen to run in a call
        self._failed: dict[str, str] = {}  # a kind of place, or a lever -> why there is nothing of it

    def explain(self) -> Found:
        """All steps. Raises CannotExplain where a release cannot run the case, and LaunchFailed."""
        found = Found()
        self._confirm(found)
        if found.ratio.is_there:
            self._look(found)
            changed = self._changed(found)
            self._pull(found)
            because = {lever.name: lever.because for lever in self._levers}
            own = Path(self._subject.workload).name.removesuffix(".py") + ".py"
            called = verdict.called_otherwise(found.places, own)
            changed = (True, called) if called and not self._subject.is_once else changed
            told = (found.levers, because, found.places, own, found.code)
            found.verdict, found.words = verdict.of_all(*told, changed=changed)
        return found

    def _has_time(self, until: float, turns: int = 1) -> bool:
        """Whether so many turns more, as long as the last one, end before this share of the time is over."""
        return time.monotonic() + turns * self._took <= self._began + until * self._seconds

    def _confirm(self, found: Found) -> None:
        for turn in range(1, MOST_NOISY_TURNS + 1):
            began = time.monotonic()
            self._time_both()
            self._took = time.monotonic() - began
            self._measure(found)
            if self._subject.is_once and turn == 1:
                each = max(found.base.levels)
                minutes = math.ceil((time.monotonic() - began + TIMES_ONCE * each) / 60)
                took = f"It takes {human(each, 'seconds')} each time"
                self._say(f"{took}, so this takes {minutes} min or more in all.")
            is_known = turn >= LEAST_TURNS and (found.ratio.is_there or (turn >= MOST_TURNS and found.ratio.is_absent))
            least = MOST_TURNS if self._subject.is_once else LEAST_TURNS
            if is_known or (turn >= least and not self._has_time(CONFIRMED)):
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

    def _time_both(self) -> None:
        """One more turn without any lever."""
        with self._both() as launches:
            for launch in launches:
                launch.ask({"do": "facts"})  # which waits for what it imports
            began = time.monotonic()
            self._time("", launches)
            if time.monotonic() - began > LONG * len(self._timings):
                self._timings = TIMINGS[:2]

    def _measure(self, found: Found) -> None:
        """Brings base, clock and ratio up to date. Calls that wait or have threads are timed by the wall's clock."""
        alike = [min(abs(one["cpu"] / one["wall"] - 1) for one in side) for side in self._times[""]]
        found.clock = "cpu" if max(alike) <= SAME_CLOCK else "wall"
        found.base = self._group("", found.clock)
        found.ratio = ratio(found.base, Noise.of([found.base]))

    def _look(self, found: Found) -> None:
        """Profiles, in the same launches as more plain times of a steady call."""
        self._say(f"Where did it go? {LOOKING_TURNS} launches of each with profilers.")
        began = time.monotonic()
        for turn in range(LOOKING_TURNS):
            each = (time.monotonic() - began) / max(1, turn)
            if turn and not self._subject.is_once and not self._has_time(LOOKED, math.ceil(each / self._took)):
                found.notes.append(f"no time for more than {turn} of {LOOKING_TURNS} launches of each with profilers")
                break
            with self._both() as launches:
                if not turn:
                    self._ask_facts(found, launches)
                if not self._subject.is_once:
                    self._time("", launches)
                for number in next(self._orders):
                    if self._subject.is_once:
                        self._look_once(number, launches[number])
                    else:
                        self._look_at(number, launches[number], with_code=not turn)
        self._measure(found)
        difference = found.base.levels[1] - found.base.levels[0]
        for kind, words in self._kinds.items():
            try:
                old, new = self._shares(kind, difference)
            except places.Distorted as why:
                found.notes.append(f"no table of {words}: {why}")
            else:
                found.places += places.table(kind, old, new, found.base)

    def _ask_facts(self, found: Found, launches: tuple[Any, Any]) -> None:
        """The environments and the commits of both, and what the call uses."""
        answers = [launch.ask({"do": "facts"}) for launch in launches]
        for launch in () if self._subject.is_once else launches:
            self._traces.update(launch.ask({"do": "traces"}).get("traces", []))
        found.environments = answers[0].get("environment", {}), answers[1].get("environment", {})
        found.commits = answers[0].get("commit", ""), answers[1].get("commit", "")

    def _look_at(self, number: int, launch: Any, with_code: bool) -> None:
        """Each profile of one launch, in a process of its own, and where asked what runs in a call."""
        recorded = self._scratch / "perf.data"
        for kind in self._kinds:
            recorded.unlink(missing_ok=True)
            answer = launch.ask({**LOOKING, "profile": kind, "file": str(recorded)})
            if "failed" in answer:
                self._failed[kind] = answer["failed"]
            elif kind == "symbol":
                try:
                    self._profiles[kind][number].append(places.read_perf(recorded))
                except (OSError, subprocess.CalledProcessError) as error:
                    self._failed[kind] = f"perf report failed: {error}"
            else:
                self._profiles[kind][number].append(answer)
        if with_code:
            recorded.unlink(missing_ok=True)
            self._running[number] = launch.ask({**LOOKING, "profile": "hot", "file": str(recorded)})

    def _look_once(self, number: int, launch: Any) -> None:
        """All profiles of what a process does once, which are made at the same time."""
        answer = launch.ask({"do": "profile"})
        if "failed" in answer:
            self._failed |= dict.fromkeys(ONCE, answer["failed"])
            return
        self._traces.update(answer["traces"])
        self._traces.update(["torch.compile"] if "torch._inductor" in answer["packages"] else [])
        for kind, profile in places.of_once(answer).items():
            self._profiles[kind][number].append(profile)

    def _shares(self, kind: str, difference: float) -> tuple[list[places.Profile], list[places.Profile]]:
        """The profiles of both releases. Raises Distorted where there are none that tell of a plain call."""
        old, new = self._profiles[kind]
        if kind in self._failed or not (old and new):
            raise places.Distorted(self._failed.get(kind, "there was no profile"))
        if self._subject.is_once or kind == "symbol":
            return old, new
        return places.profiles(old, new, difference)

    def _changed(self, found: Found) -> tuple[bool, str]:
        """Whether changed code is the cause, and in words what changed in it; the functions are kept as evidence."""
        seen = self._running.values()
        untold = any("failed" in one or fingerprints.samples_in(one) < LEAST_SAMPLES for one in seen)
        if self._subject.is_once or untold:
            return False, ""
        folders = [side.python.parent.parent for side in self._sides]
        try:
            pair = fingerprints.pair(folders, [self._running[number] for number in (0, 1)])
        except (NotALibrary, OSError, subprocess.CalledProcessError) as error:
            found.notes.append(f"no comparison of machine code: {error}")
            return False, ""
        changed = pair.of_case(fingerprints.ONE, found.ratio.ratio)
        shown = {name: fingerprints.difference(folders, name)[:LONGEST_DIFFERENCE] for name in changed.python[:3]}
        found.python = {name: text for name, text in shown.items() if text}
        for one in changed.functions:
            if one.old and one.new and one.state in (State.CHANGED, State.MOVED, State.SAME):
                name = f"{places.library_name(one.symbol.library)}: {one.name}"
                loops = one.loops or ((0, one.old.place), (0, one.new.place))
                same = one.state is not State.CHANGED
                counts = one.old.instructions, one.new.instructions
                found.code.append(Code(name, same, counts, (loops[0][1],), (loops[1][1],)))
        return changed.is_cause, causes.in_code(changed, *found.environments)

    def _pull(self, found: Found) -> None:
        """Tries each lever that may matter, and gives the verdict on it."""
        if self._subject.is_once:
            self._began = time.monotonic()
        tried = [lever for lever in self._levers if not lever.refusal(self._traces)]
        self._say(f"Why? {len(tried)} levers.")
        for turn in range(LEVER_TURNS):
            for lever in tried:
                is_once = self._subject.is_once
                if self._has_time(PULLED, 0 if is_once else 1 + FRESH_TURNS) or (is_once and not turn):
                    self._pull_one(lever)
            able = (lever for lever in tried if lever.name not in self._failed)
            tried = [lever for lever in able if self._judged(lever, found).verdict != "CLEARED"]  # more turns may tell
        again = [lever for lever in tried if self._times[lever.name][0]]
        self._pull_again(sorted(again, key=lambda lever: -self._judged(lever, found).removed))
        if untried := [lever.words for lever in tried if not self._times[lever.name][0]]:
            found.notes.append(f"no time to try {', '.join(untried)}")
        found.levers = [self._judged(lever, found) for lever in self._levers]

    def _pull_again(self, levers: Sequence[Lever]) -> None:
        """Tries levers in fresh launches, which alone count from then on; the earlier ones still tell of noise."""
        if levers:
            self._say(f"Again, to be sure: {', '.join(lever.words for lever in levers)}.")
        for lever in levers:
            self._times[f"{lever.name}, at first"] = self._times.pop(lever.name)
            for _ in range(FRESH_TURNS):
                if self._has_time(PULLED) or self._subject.is_once:
                    self._pull_one(lever)

    def _pull_one(self, lever: Lever) -> None:
        began = time.monotonic()
        try:
            with self._both(variables=lever.variables) as launches:
                self._time(lever.name, launches, lever.set)
        except (LaunchFailed, CannotExplain) as error:
            self._failed[lever.name] = str(error)
        self._took = time.monotonic() - began

    def _judged(self, lever: Lever, found: Found) -> Pulled:
        """What a lever was found to do, or why it was not tried."""
        group = self._group(lever.name, found.clock)
        refused = lever.refusal(self._traces) or self._failed.get(lever.name, "")
        if not refused and not group.old:
            refused = "the time was over before it was tried often enough"
        if refused:
            return Pulled(lever.name, lever.words, lever.proves, refused=refused[:500])
        every = [self._group(name, found.clock) for name in self._times if name not in self._failed]
        share = removed(found.base, group, Noise.of(every))
        numbers = tuple(group.old), tuple(group.new)
        gone, low, high = (max(-1e6, min(of, 1e6)) for of in share)
        return Pulled(lever.name, lever.words, lever.proves, verdict.of_lever(*share), *numbers, gone, low, high)

    @contextlib.contextmanager
    def _both(self, **how: Any) -> Iterator[tuple[Any, Any]]:
        """A launch of each release; they import at the same time."""
        with contextlib.ExitStack() as stack:
            launches = (contextlib.closing(self._opened(side, self._subject, **how)) for side in self._sides)
            old, new = map(stack.enter_context, launches)
            yield old, new

    def _time(self, name: str, launches: tuple[Any, Any], settings: Sequence[str] = ()) -> None:
        """One more turn of a lever, or of none: both releases or neither, so that turns stay pairs. Raises CannotExplain."""
        step, swapped = {**TIMING, **({"set": list(settings)} if settings else {})}, next(self._orders)[0]
        answers: tuple[list[Any], list[Any]] = ([], [])
        for number in (each ^ swapped for each in self._timings):
            answer = launches[number].ask(step)
            if "failed" in answer:
                raise CannotExplain(f"{self._sides[number].tag} cannot run it: {answer['failed']}.")
            answers[number].append(answer)
        for kept, side in zip(self._times[name], answers, strict=True):
            kept.append({clock: min(answer[clock] for answer in side) for clock in ("wall", "cpu")})

    def _group(self, name: str, clock: str) -> Group:
        old, new = self._times[name]
        return Group([one[clock] for one in old], [one[clock] for one in new])
