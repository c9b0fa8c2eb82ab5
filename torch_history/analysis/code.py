"""What changed in the code that runs in a series? Read from results/code/; docs/explain.md says what each class means."""

import enum
import functools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..store import code as stored
from ..store.code import Code, Hot, Loop, Symbol
from .series import TIMES, Series, Verdict
from .verdicts import Change

PART = 0.2  # share of the samples from which on changed or moved code may be what changed
MOSTLY = 0.8  # share of the samples for code outside PyTorch; of the difference for changed code to be its cause
NEXT_TO_NONE = 0.05  # share of the samples in changed code up to which a size tells that another did not change
SURE = 0.02  # share of the samples of a function that would hardly be missed by chance at the other end
LEAST_SAMPLES = 100  # samples of a case of which fewer tell nothing
LEAST = 0.5  # share of the difference by which the time in changed code must have changed, where it is called the cause
LEAST_EACH = 0.1  # as LEAST, of the source file of each function that is named
LEAST_SHOWN = 0.02  # share of the samples from which on a library outside PyTorch is told
MOST_NAMED = 3  # functions or operators that are kept, those with most of the time first
RELEASE = "release-py"  # how the environments begin that hold a release as it was published
PYTHONS = ("3.11", "3.9")  # of the environments whose wheels' code is stored
LOOKED_AT = "release-py3.11"  # the environment in which it was seen what runs
OF_TORCH = ("libtorch", "libc10")  # how the names of PyTorch's own libraries begin
REUSED = "_reused "  # what is in the name of a variant of selection that makes its index once
INSTALLERS = ("_distutils_hack", "_virtualenv")  # begin of functions of Python that an environment brings
INTERPRETER = "Python"  # the library whose samples are those of functions written in Python


class Kind(enum.Enum):
    """What changed; the value is what is shown."""

    OPERATORS = "OPERATORS CHANGED"
    CODE = "CODE CHANGED"
    PYTHON = "PYTHON CHANGED"
    OUTSIDE = "OUTSIDE TORCH"
    MOVED = "SAME CODE, MOVED"
    SAME = "SAME CODE"


SAME_CODE = (Kind.MOVED, Kind.SAME)  # classes in which no instruction differs


class State(enum.Enum):
    """What became of a function."""

    CHANGED = "changed"
    NEW = "new"
    GONE = "gone"
    RUNS = "runs in the newer release alone"
    RESTS = "runs in the older release alone"
    MOVED = "moved"
    SAME = "same"


CHANGED = (State.CHANGED, State.NEW, State.GONE, State.RUNS, State.RESTS)  # states of code that is another one


Loops = tuple[tuple[int, int], tuple[int, int]]  # a hot loop's instructions and first byte of 64, old and new


@dataclass(frozen=True)
class Function:
    """A function with its share of the samples, `old` and `new`, and the `loops`; `stays`: of a library that PyTorch's hold,
    whether its code runs at both ends."""

    name: str
    state: State
    share: float
    old: Symbol | None
    new: Symbol | None
    loops: Loops | None = None
    stays: bool = True

    @property
    def symbol(self) -> Symbol:
        found = self.new or self.old
        assert found
        return found

    @property
    def kernel(self) -> str:
        """Of a loop that is handed to a function, the kernel that it belongs to; else its own name."""
        return self.name.partition(" in ")[0]

    @property
    def source(self) -> str:
        """Its source file, since a compiler moves code within one; its kernel where that is not known."""
        return self.symbol.source or self.kernel


def library_of(name: str) -> str:
    """Whose code a function is that PyTorch's libraries hold and PyTorch's source does not; empty where it is PyTorch's."""
    if re.match(r"(mkl|LM)_", name):
        return "MKL"
    return "oneDNN" if name.startswith("dnnl") else ""


@dataclass(frozen=True)
class Operator:
    """An operator that is called another number of times, and the share of the operators' own time of the calls that
    one release lacks, `inside` with all that they call. `is_redeclared`: its entry in native_functions.yaml differs."""

    name: str
    old: float
    new: float
    share: float
    inside: float
    is_redeclared: bool = False


@dataclass(frozen=True)
class WhatChanged:
    """The class of a change. `shares` are of the samples at the end where more is changed, `outside` of libraries that
    are not PyTorch's; `case` was looked at. `is_cause`: what changed holds enough for the whole difference."""

    kind: Kind
    case: str
    profiled_on: str
    is_cause: bool
    shares: Mapping[State, float]
    outside: Mapping[str, float]
    functions: tuple[Function, ...] = ()
    operators: tuple[Operator, ...] = ()
    python: tuple[str, ...] = ()


_End = tuple[Mapping[State, float], Mapping[str, float], list[Function]]  # of an end: shares by state, by source


@dataclass(frozen=True)
class CodePair:
    """The code of two releases for one Python."""

    old: Code
    new: Code

    def what_changed(self, series: Series, ratio: float, others: Collection[str] = ()) -> WhatChanged | None:
        """What changed for a time that is `ratio` times as long, not by cases of `others`; None where nothing tells."""
        cases = filter(None, (self.case_of(series, others), self._same_in_all(series, ratio)))
        found = (self.of_case(case, ratio) for case in cases)
        return next((one for one in found if one.kind not in SAME_CODE or _tells(one, series.size)), None)

    def _same_in_all(self, series: Series, ratio: float) -> str | None:
        """As `case_of`, where no instruction differs in any size that begins with the same word as the series' own."""
        case, size = self.case_of(series), series.size
        cases = ((begin, one) for begin, known in self._known(series) for one in known)
        every = [one for begin, one in cases if _alike(size, one.removeprefix(begin))[1]]
        return case if case in every and all(self._is_same(one, ratio > 1) for one in every) else None

    @functools.cached_property
    def _is_same(self) -> Callable[[str, bool], bool]:
        """Whether no instruction differs in a case, for a time that rose or not: by how much it did is all the same."""
        return functools.cache(lambda case, rose: self.of_case(case, 2.0 if rose else 0.5).kind in SAME_CODE)

    def of_case(self, case: str, ratio: float) -> WhatChanged:
        """The same of a case that was looked at in both releases, by its name."""
        ends, operators, python = self._looked_at(case)
        shares, _, functions = max(ends, key=lambda of: _changed(of[0]))
        hot = (self.new if ratio > 1 else self.old).series[case]
        rows = sorted(hot.elsewhere.items(), key=lambda row: -row[1])  # libraries with their samples
        outside = {name: n / max(1, hot.samples) for name, n in rows if not name.startswith(OF_TORCH)}
        more = [one for one in operators if (one.new > one.old) == (ratio > 1)]
        instead = [one for one in operators if one not in more and one.inside >= PART][:1]
        busy = 1 - outside.get(INTERPRETER, 0.0)  # in operators at most: their shares are of their own time
        needed = MOSTLY * (1 - min(ratio, 1 / ratio))
        kind, is_cause = _kind(shares, busy * sum(one.share for one in more), python, outside, needed)
        samples = self.old.series[case].samples, self.new.series[case].samples
        if kind is Kind.CODE:
            functions = _may_have_grown(functions, [by_source for _, by_source, _ in ends], samples, ratio)
        named = [self._within_kernel(one, case) for one in _named(functions, kind, needed)]
        if kind is Kind.CODE:
            old, new = (_unnamed(end.series[case]) for end in (self.old, self.new))
            held, error = _held((_changed(ends[0][0]) + old, _changed(ends[1][0]) + new), samples, ratio)
            is_cause = is_cause and held + error >= LEAST and sum(one.share for one in named) >= needed
        operators = [
            replace(one, is_redeclared=one.name.removeprefix("aten::") in self._redeclared)
            for one in (*more[:MOST_NAMED], *instead)
        ]
        shown = tuple(named), tuple(operators), tuple(python[:MOST_NAMED])
        return WhatChanged(kind, case, self.new.profiled_on, is_cause, shares, outside, *shown)

    @functools.cached_property
    def _looked_at(self) -> Callable[[str], tuple[list[_End], list[Operator], list[str]]]:
        """What of a case is the same for every ratio: both ends, its operators and its functions of Python."""

        def of(case: str) -> tuple[list[_End], list[Operator], list[str]]:
            ends = [self._at_end(case, end) for end in (self.old, self.new)]
            operators = _operators(self.old.series[case], self.new.series[case])
            return ends, operators, _python(self.old, self.new, case)

        return functools.cache(of)

    @functools.cached_property
    def _redeclared(self) -> set[str]:
        """Operators with another entry of native_functions.yaml."""
        if not (self.old.declared and self.new.declared):
            return set()
        return {name.partition(".")[0] for name, _ in self.old.declared.items() ^ self.new.declared.items()}

    def _within_kernel(self, one: Function, case: str) -> Function:
        """What only one end has is a kernel that changed, if others of its kernel run at both. Old MKL has no names."""
        running = (filter(None, map(end.symbols.get, end.series[case].symbols)) for end in (self.old, self.new))
        kernels = [{(of.name.partition(" in ")[0], of.source) for of in of_end} for of_end in running]
        if library := library_of(one.name):
            may_be = [library == "MKL" and _unnamed(end.series[case]) >= PART for end in (self.old, self.new)]
            theirs = [any(library_of(name) == library for name, _ in of_end) for of_end in kernels]
            one = replace(one, stays=all(map(max, theirs, may_be)))
        is_at_both = all((one.kernel, one.symbol.source) in of_end for of_end in kernels)
        return replace(one, state=State.CHANGED) if is_at_both and one.state in (State.NEW, State.GONE) else one

    def case_of(self, series: Series, others: Collection[str] = ()) -> str | None:
        """What was looked at in both: this series, else the most alike size of its variant, first by its first word."""
        size = series.size
        for begin, known in self._known(series):
            if sizes := [case.removeprefix(begin) for case in known if case not in others]:
                return begin + max(sizes, key=lambda other: _alike(size, other, REUSED in begin))
        return None

    def _known(self, series: Series) -> Iterator[tuple[str, list[str]]]:
        """How the cases of a variant begin, of the metric and then of time, with those that both releases were seen in."""
        for metric in dict.fromkeys((series.metric, "time")):
            begin = f"{series.question} {metric} {series.variant} "
            yield begin, self._beginning(begin)

    @functools.cached_property
    def _beginning(self) -> Callable[[str], list[str]]:
        """The cases of such a beginning at which both releases were looked at for long enough."""
        ends = self.old.series, self.new.series
        seen = [case for case in ends[0] if all(case in of and of[case].samples >= LEAST_SAMPLES for of in ends)]
        return functools.cache(lambda begin: [case for case in seen if case.startswith(begin)])

    def _at_end(self, case: str, end: Code) -> _End:
        is_new = end is self.new
        hot, other, of_digest = end.series[case], self.old if is_new else self.new, self._digests[not is_new]
        running = other.series[case].symbols
        digests_there = {other.symbols[key].digest for key in running if key in other.symbols}
        found = []
        for key, (count, loop) in hot.symbols.items():
            if here := end.symbols.get(key):
                share = count / max(1, hot.samples)
                at = key if key in running else self._renumbered(case, end, other, key)
                there = other.symbols.get(at) or of_digest.get(here.digest)  # only its name may have changed
                theirs = running.get(at, (0, ""))[1]
                sides = (there, here) if is_new else (here, there)
                if there and share >= SURE and at not in running and here.digest not in digests_there:
                    found.append(Function(here.name, State.RUNS if is_new else State.RESTS, share, *sides))
                else:
                    found.append(_function(sides, (theirs, loop) if is_new else (loop, theirs), share, here))
        shares, by_source = dict.fromkeys(State, 0.0), defaultdict[str, float](float)
        for function in found:
            shares[function.state] += function.share
            by_source[function.source] += function.share
        return shares, by_source, found

    @staticmethod
    def _renumbered(case: str, end: Code, other: Code, key: str) -> str:
        """Its key at the `other` end: that of the same kernel with the same code or hot loop, else its own."""
        here, loop = end.symbols[key], end.series[case].symbols[key][1]
        for at in sorted(other.series[case].symbols.keys() - end.series[case].symbols.keys()):
            there = other.symbols.get(at)
            is_kernel = there and (there.name, there.source) == (here.name, here.source)
            if there and is_kernel and (there.digest == here.digest or _loop(there, loop)):
                return at
        return key

    @functools.cached_property
    def _digests(self) -> list[Mapping[str, Symbol]]:
        """Of both ends, digest -> function."""
        return [{symbol.digest: symbol for symbol in end.symbols.values()} for end in (self.old, self.new)]


def _tells(found: WhatChanged, size: str) -> bool:
    """Whether what was looked at tells of `size`: the same one, or the same first word and next to no changed code."""
    is_same, begins_alike, *_ = _alike(size, found.case.split(" ", 3)[3])
    return is_same or (begins_alike and _changed(found.shares) <= NEXT_TO_NONE)


@functools.cache
def _alike(size: str, other: str, is_reused: bool = False) -> tuple[bool, bool, int, float]:
    """The same size, the same first word, common words, and how near numbers are in logarithms, the first counting
    most: `99 % x 100` is nearer to `50 % x 100` than to `1 % x 100`. Of what is reused `x 10` is near `x 100`."""
    words, others = (re.findall(r"[^\d\s,]+", one) for one in (size, other))
    numbers = [[float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", one)] for one in (size, other)]
    uses = [of.pop() for of in numbers] if "% x" in size and "% x" in other else []
    pairs = enumerate(zip(*numbers, strict=False), 1)
    apart = sum(abs(math.log1p(one) - math.log1p(another)) / place for place, (one, another) in pairs)
    apart += 2 * abs(1 / uses[0] - 1 / uses[1]) if uses and is_reused else 0
    return size == other, words[:1] == others[:1], len({*words} & {*others}), -apart


def _held(shares: tuple[float, float], samples: tuple[int, int], ratio: float) -> tuple[float, float]:
    """By which share of the whole difference the time in some code changed, and two errors of a binomial of that."""
    errors = [math.sqrt(share * (1 - share) / max(1, count)) for share, count in zip(shares, samples, strict=True)]
    held = (shares[1] * ratio - shares[0]) / (ratio - 1) if ratio != 1 else 0.0
    return held, 2 * (errors[1] * ratio + errors[0]) / max(1e-9, abs(ratio - 1))


def _may_have_grown(
    functions: list[Function], ends: list[Mapping[str, float]], samples: tuple[int, int], ratio: float
) -> list[Function]:
    """Functions of sources whose time may have changed the way of the whole, by their shares at both `ends`; all, if nothing
    else is left. Libraries stay: older ones do not name their loops."""
    found = []
    for one in functions:
        old, new = (min(1.0, by_source.get(one.source, 0.0)) for by_source in ends)
        if library_of(one.name) or sum(_held((old, new), samples, ratio)) >= LEAST_EACH:
            found.append(one)
    return found if any(one.state in CHANGED for one in found) else functions


def of_times(
    changes: Iterable[Change], pair: CodePair | None, beside: Iterable[Change] | None = None
) -> dict[Series, WhatChanged]:
    """Time that is told as changed -> what changed in its code; by no size that is SAME or changed the other way."""
    if pair is None:
        return {}
    found, changes = {}, list(changes)
    told: dict[Verdict, set[str]] = defaultdict(set)
    for each in changes if beside is None else beside:
        if each.series.varies:
            told[each.verdict].add(_case(each.series))
    of_others = {one: set().union(*(told[of] for of in (Verdict.SAME, *TIMES) if of is not one)) for one in TIMES}
    for change in changes:
        series, ratio, others = change.series, change.ratio, of_others.get(change.verdict)
        if ratio and others is not None and (of := pair.what_changed(series, ratio, others - {_case(series)})):
            found[series] = of
    return found


def _case(series: Series) -> str:
    """As what was looked at is named: `selection time mask rows 1 % x 1`."""
    return f"{series.question} {series.metric} {series.case}"


def as_data(found: WhatChanged | None) -> dict[str, Any] | None:
    """As JSON has it; docs/commands.md lists the keys."""
    if found is None:
        return None
    return {
        "class": found.kind.value,
        "is_cause": found.is_cause,
        "looked_at": found.case,
        "profiled_on": found.profiled_on,
        "shares": {state.value: round(share, 3) for state, share in found.shares.items() if share},
        "outside": {name: round(share, 3) for name, share in found.outside.items() if share >= LEAST_SHOWN},
        "functions": [
            {
                "name": one.name,
                "source": one.symbol.source,
                "library": one.symbol.library,
                "state": one.state.value,
                "share": round(one.share, 3),
                "instructions": [symbol and symbol.instructions for symbol in (one.old, one.new)],
                "loop": one.loops and [list(loop) for loop in one.loops],
            }
            for one in found.functions
        ],
        "operators": [[one.name, one.old, one.new, round(one.share, 3)] for one in found.operators],
        "python": list(found.python),
    }


@functools.lru_cache(maxsize=512)
def pair_of(environment: str, old: str, new: str, device: str = "cpu") -> CodePair | None:
    """What is known of the code of two releases in an environment such as `release-py3.11`; None without either, and of what
    another device than a processor ran."""
    if not environment.startswith(RELEASE) or device != "cpu":
        return None
    before, now = (_seen(environment, tag) for tag in (old, new))
    return CodePair(before, now) if before and now else None


def _seen(environment: str, tag: str) -> Code | None:
    """What runs in a release, as it was seen in this environment or in another one with the same binary."""
    known = stored.read(tag, environment.removeprefix(RELEASE))
    if known and not known.series and same_code((environment, LOOKED_AT), tag):
        return stored.read(tag, LOOKED_AT.removeprefix(RELEASE))
    return known if known and known.series else None


def _unnamed(hot: Hot) -> float:
    """The share of the samples that are in no function of PyTorch's libraries that is known, as in the loops of old MKL."""
    return sum(count for name, count in hot.elsewhere.items() if name.startswith(OF_TORCH)) / max(1, hot.samples)


def _kind(
    shares: Mapping[State, float], operators: float, python: list[str], outside: Mapping[str, float], needed: float
) -> tuple[Kind, bool]:
    """The class, and whether what changed holds the share of the time that the whole difference needs."""
    changed = _changed(shares)
    if operators >= max(PART, needed):
        return Kind.OPERATORS, True
    if changed >= PART:
        return Kind.CODE, changed >= needed
    if python and outside.get(INTERPRETER, 0.0) >= PART:
        return Kind.PYTHON, outside[INTERPRETER] >= needed
    if operators >= PART:
        return Kind.OPERATORS, False
    if sum(outside.values()) >= MOSTLY:
        return Kind.OUTSIDE, False
    return (Kind.MOVED if shares[State.MOVED] >= PART else Kind.SAME), False


def _changed(shares: Mapping[State, float]) -> float:
    return sum(shares[state] for state in CHANGED)


def _function(sides: tuple[Symbol | None, Symbol | None], hot: tuple[str, str], share: float, seen: Symbol) -> Function:
    """What became of a function that was `seen` at one end; `hot` are its loops' digests, old and new."""
    old, new = sides
    if not old or not new:
        return Function(seen.name, State.NEW if new else State.GONE, share, old, new)
    shared = hot[0] if old is seen else hot[1]
    loops = [_loop(side, shared) for side in sides]
    if old.digest != new.digest and not all(loops):
        loops = [_loop(side, digest) for side, digest in zip(sides, hot, strict=True)]
        return Function(seen.name, State.CHANGED, share, old, new, _both(sides, loops))
    places = [(side.place + (loop.begin if loop else 0)) % 64 for side, loop in zip((old, new), loops, strict=True)]
    state = State.SAME if places[0] == places[1] else State.MOVED
    return Function(seen.name, state, share, old, new, _both(sides, loops))


def _loop(symbol: Symbol | None, digest: str) -> Loop | None:
    return next((one for one in symbol.loops if digest and one.digest == digest), None) if symbol else None


def _both(sides: tuple[Symbol | None, Symbol | None], loops: list[Loop | None]) -> Loops | None:
    """Of a loop on both sides, how many instructions it has and at which of 64 bytes it begins."""
    both = zip(sides, loops, strict=True)
    known = [(loop.instructions, (side.place + loop.begin) % 64) for side, loop in both if side and loop]
    return (known[0], known[1]) if len(known) == 2 else None


def _named(functions: Iterable[Function], kind: Kind, needed: float) -> list[Function]:
    """Those that show a class, most samples first; of changed ones no more than hold what the difference needs."""
    states = {Kind.MOVED: (State.MOVED,), Kind.SAME: (State.SAME, State.MOVED)}.get(kind, CHANGED)
    found: list[Function] = []
    for one in sorted((one for one in functions if one.state in states), key=lambda one: -one.share):
        if len(found) < MOST_NAMED and (states is not CHANGED or sum(each.share for each in found) < needed):
            found.append(one)
    return found


def _operators(old: Hot, new: Hot) -> list[Operator]:
    """Operators that are called another number of times, those with most of the time first."""
    found, sides = [], [_by_name(hot) for hot in (old, new)]
    for name in {*sides[0], *sides[1]}:
        before, now = (of.get(name, (0.0, 0.0, 0.0)) for of in sides)
        if before[1] != now[1]:
            more = max(before, now, key=lambda one: one[1])
            added = abs(now[1] - before[1]) / more[1]
            found.append(Operator(name, before[1], now[1], added * more[0], added * more[2]))
    return sorted(found, key=lambda one: (-one.inside, one.name))


def _by_name(hot: Hot) -> dict[str, tuple[float, float, float]]:
    """Own share, calls and whole share of each operator, fused ones without the number that a compilation gives."""
    found: dict[str, tuple[float, float, float]] = {}
    for name, (share, calls, *inside) in hot.operators.items():
        plain = re.sub(r"_\d{9,}$", "", name)
        known = found.get(plain, (0.0, 0.0, 0.0))
        found[plain] = known[0] + share, known[1] + calls, known[2] + (inside[0] if inside else share)
    return found


def _python(old: Code, new: Code, case: str) -> list[str]:
    """Functions of Python that differ, or that one release calls alone; these first, and those called most often."""
    before, now = old.series[case].functions, new.series[case].functions
    found: dict[str, tuple[bool, float, str]] = {}
    for name in {*before, *now}:
        digests = old.functions.get(name, ""), new.functions.get(name, "")
        is_other = all(digests) and digests[0] != digests[1]
        is_alone = _is_alone(name, before, now) or _is_alone(name, now, before)
        if any(digests) and (is_other or is_alone) and not name.startswith(INSTALLERS):
            found[name] = not is_alone, -max(before.get(name, 0.0), now.get(name, 0.0)), name
    return sorted(found, key=found.__getitem__)


def _is_alone(name: str, here: Mapping[str, float], there: Mapping[str, float]) -> bool:
    """Whether a function is called `here` alone: also by what was left out `there`, where most were kept."""
    is_kept = len(there) < stored.MOST_FUNCTIONS or here.get(name, 0.0) > min(there.values())
    return name in here and name not in there and is_kept


MOST_OTHER_BLOCKS = 4  # of `.text`, that two equal binaries may differ in: a version is in a few functions
CALCULATE = ("libtorch_cpu.so", "libc10.so")  # the libraries that compute on a CPU


def is_one_binary(one: Code | None, other: Code | None) -> bool:
    """Whether both wheels are known to hold the same machine code for a CPU, the version's number aside."""
    if not one or not other:
        return False
    for library in CALCULATE:
        ours, theirs = (code.libraries.get(library, {}).get(".text") for code in (one, other))
        if not ours or not theirs or ours.size != theirs.size or ours.differing(theirs) > MOST_OTHER_BLOCKS:
            return False
    return True


@functools.cache
def is_nothing_new(environment: str, old: str, new: str) -> bool:
    """Whether two releases of an environment hold one binary, so that what differs between them is none of PyTorch's."""
    return is_one_binary(*(stored.read(tag, environment.removeprefix(RELEASE)) for tag in (old, new)))


def is_built_apart(tag: str) -> bool:
    """Whether a release's wheels of two environments are known to hold different binaries."""
    one, other = (f"{RELEASE}{python}" for python in PYTHONS)
    return same_code((one, other), tag) is False


@functools.cache
def same_code(environments: tuple[str, str], tag: str) -> bool | None:
    """Whether a release's wheels of two environments hold one binary; None where either was not looked at."""
    found = [stored.read(tag, environment.removeprefix(RELEASE)) for environment in environments]
    return is_one_binary(*found) if all(found) else None
