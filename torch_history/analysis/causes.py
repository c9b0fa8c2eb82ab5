"""Why did a number change? What `explain` found, else somebody by hand, else what else moved in the case: no proof."""

import functools
import math
import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from contract.metrics import METRICS

from ..store import causes as stored
from ..store import sources
from ..store.machines import processor_of, record_of
from . import code as by_code
from .code import Function, State, WhatChanged
from .code import Kind as Code
from .series import History, Series, Verdict
from .verdicts import Change, human

OWN = {
    name: METRICS[name].explains
    for name in ("fusion_groups", "kernels", "host_syncs", "operators", "allocations", "peak_memory", "retained")
}
"""Exact metrics that explain a time -> their words, the most telling first."""

ENVIRONMENT = {
    "fuses_on_cpu": "",
    "cpu_capability": "the CPU capability",
    "onednn": "oneDNN",
    "mkl": "MKL",
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "compiler": "the compiler",
    "threads": "the number of threads",
    "python": "Python",
    "numpy": "NumPy",
}
"""Facts of an environment that a comparison names where they differ -> their words; `fuses_on_cpu` has words of its own."""

ON_A_GPU = ("cuda", "cudnn")  # facts that say nothing of a time on a CPU


class Cause(NamedTuple):
    """Since `release`, `words`: why the `metrics` of `variants` went the way of `verdict`, in sizes that hold `size`; told
    of releases from `first` to `last` where these are given. `link` is the page that says how it was found, in the item that
    begins with `item`; `title` is what all its variants do, as a person says it."""

    release: str
    question: str
    variants: tuple[str, ...]
    metrics: tuple[str, ...]
    verdict: str
    words: str
    link: str
    size: str = ""
    first: str = ""
    last: str = ""
    title: str = ""
    item: str = ""


_ROWS = tomllib.loads(Path(__file__).with_name("causes.toml").read_text(encoding="utf-8"))["found"]
FOUND = tuple(Cause(**{**row, "variants": tuple(row["variants"]), "metrics": tuple(row["metrics"])}) for row in _ROWS)
"""Causes that somebody found by hand; a test holds each to a change in results/ between the neighbours of its release."""


class Basis(Enum):
    """What a cause rests on."""

    BY_HAND = "somebody looked for it"
    FUSION = "the case's own graph"
    LIBRARY = "what the library that answers says of itself"
    CODE = "the code of both wheels"
    EVIDENCE = "`torch-history explain` asked one series"
    BESIDE = "another number of the case moved too, which is no cause"
    NOTHING = "no cause is known"


@dataclass(frozen=True)
class Because:
    """Why a number changed: the end of its sentence, `since` when, by which rows of FOUND, what stands `against` it."""

    clause: str
    basis: Basis
    since: str = ""
    by_hand: tuple[Cause, ...] = ()
    against: str = ""

    @property
    def words(self) -> str:
        since = f" (since {self.since})" if self.since else ""
        return "; ".join(filter(None, (f"{self.clause}{since}", self.against)))

    @property
    def is_common(self) -> bool:
        """Whether it may be the cause of several cases."""
        return self.basis in (Basis.BY_HAND, Basis.FUSION, Basis.LIBRARY, Basis.CODE)

    @property
    def title(self) -> str:
        """What the variants of a cause found by hand do, as a person says it; empty where it has no title."""
        return next((one.title for one in self.by_hand if one.title), "")


class Known(NamedTuple):
    """Evidence of `explain`, reduced to what a sentence needs; `seen_on` is the processor of another machine's."""

    environment: str
    benchmark: str
    parameters: tuple[str, ...]
    old: str
    new: str
    ratio: float
    verdict: str
    words: str
    seen_on: str = ""
    reproduced: tuple[float, float] | None = None
    by_lever: bool = False  # whether it was switched off and on, and is not only where the time goes


TOLD = ("CAUSE", "PART", "UNKNOWN")  # verdicts of evidence that have something to tell
FOUND_ON = ("CAUSE", "PART")  # verdicts that say a cause
ABSENT = "NOT THERE"  # the verdict that a difference was measured again and not seen


def evidence(results: Path, machine: str, version: str = "") -> list[Known]:
    """Evidence of a machine for the benchmarks' present versions, of an own file in this `version`; and what was found
    on other machines' processors, which their words name: causes, and that a difference was not there."""
    own = known_of(results, machine, TOLD, version)
    others = sorted(path.parent for path in results.glob(f"*/{stored.FOLDER}") if path.parent.name != machine)
    for folder in others if _cpu_of(results / machine) else ():
        if other := _cpu_of(folder):
            found = [one for one in known_of(results, folder.name, (*FOUND_ON, ABSENT)) if one not in own]  # no copies
            seen = f"; seen on another machine ({other})"
            own += [each._replace(words=each.words + seen, seen_on=other) for each in found]
    return own


def unconfirmed(results: Path, machine: str, found: History) -> dict[tuple[str, str], dict[Series, None]]:
    """Two releases -> series of which `explain` did not see a change again; what was measured since counts more."""
    here, told = sources.here(), defaultdict[tuple[str, str], dict[Series, None]](dict)
    for one in stored.read(results, machine):
        series = Series(one.environment, one.benchmark, one.parameters)
        launches = found.get(series, {})
        taken = [launch.started_at for tag in (one.old, one.new) for launch, _ in launches.get(tag, ())]
        is_present = here.get(one.benchmark, one.version) == one.version
        if one.verdict in stored.NOT_LOOKED_INTO and is_present and taken and max(taken) <= one.taken_at:
            told[one.old, one.new][series] = None
    return told


def known_of(results: Path, machine: str, verdicts: Collection[str], version: str = "") -> list[Known]:
    """Evidence of a machine itself with one of these verdicts, else as `evidence`."""
    here, same = sources.here(), set(Known._fields) - {"seen_on", "by_lever"}
    every = (one for one in stored.read(results, machine) if one.verdict in verdicts)
    present = [one for one in every if here.get(one.benchmark, version or one.version) == one.version]
    by_lever = (any(lever.verdict in FOUND_ON for lever in one.levers) for one in present)
    both = zip(present, by_lever, strict=True)
    return [Known(**{name: getattr(one, name) for name in same}, by_lever=by) for one, by in both]


def _cpu_of(folder: Path) -> str:
    """The processor that a machine's results were measured on, without brackets; empty where it was none."""
    record = record_of(folder)
    return processor_of(record) if record.get("device", "cpu") == "cpu" else ""


SHARE = 0.5
"""The least share, in logarithms, that a number's ratio has of that of a time that it explains: one allocation less of
eight is no cause of a factor of 2.5. So much of what evidence found is still there between ends further apart."""

Version = tuple[int, ...]
Ends = tuple[Version, Version]  # of PyTorch, old and new

CHANGED = (Verdict.FASTER, Verdict.SLOWER, Verdict.HUNGRIER, Verdict.LEANER, Verdict.MORE, Verdict.FEWER)


def why(
    changes: Iterable[Change],
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    known: Iterable[Known] = (),
    code: Mapping[Series, WhatChanged] | None = None,
) -> dict[Series, Because]:
    """Series -> why it changed, by both environments, the machine's evidence `known`, and `code` of changed times."""
    cases: dict[tuple[object, ...], dict[str, Change]] = defaultdict(dict)
    changes, of_series = list(changes), defaultdict[tuple[str, tuple[str, ...]], list[Known]](list)
    for one in known:
        of_series[one.benchmark, one.parameters].append(one)
    ends = _version(old.get("torch", "")), _version(new.get("torch", ""))
    for change in changes:
        cases[case_of(change.series)][change.series.metric] = change
    found = {}
    for change in changes:
        if change.verdict in CHANGED:
            theirs, of_case = of_series[change.series[1:]], cases[case_of(change.series)]
            moved_beside = _beside(change, of_case)
            is_fusion = moved_beside is not None and moved_beside.basis is Basis.FUSION
            certain = _found(change, ends) or _answered(change, old, new) or (moved_beside if is_fusion else None)
            changed = (code or {}).get(change.series)
            in_wheels = Because(in_code(changed, old, new), Basis.CODE) if changed else None
            certain = certain or (in_wheels if changed and changed.is_cause else None)
            because = _of_evidence(change, ends, theirs, certain, in_wheels)
            worst = of_case.get("worst_call")
            is_worst = change.series.metric == "worst_over_median" and worst and worst.verdict is change.verdict
            if not because and worst and is_worst and _weighs(worst, change):
                because = _of_evidence(worst, ends, of_series[worst.series[1:]])  # of that call, which the ratio is of
            because, against = because or moved_beside, _not_seen_again(change, ends, theirs)
            if because or against:
                found[change.series] = replace(because or Because("", Basis.EVIDENCE), against=against)
    return found


def _answered(change: Change, old: Mapping[str, Any], new: Mapping[str, Any]) -> Because | None:
    """That another library, or other code of it, answers a case whose time changed; None where nobody asked them."""
    case = " ".join((change.series.question, *change.series.plain))
    before, now = (facts.get("libraries", {}).get(case) for facts in (old, new))
    if not before or not now or before == now or not change.series.varies:
        return None
    return Because(f"because {now} answers it, and {before} did before", Basis.LIBRARY)


def _beside(change: Change, of_case: Mapping[str, Change]) -> Because | None:
    """What else moved in the case; None where nothing is said of a number that does not vary."""
    if change.series.varies:
        return _of_time(change, of_case)
    fusion = of_case.get("fusion_groups", change)
    return None if fusion is change or not _fused(fusion) else Because(f"because {_fused(fusion)}", Basis.FUSION)


def _of_evidence(
    change: Change, ends: Ends, known: Sequence[Known], certain: Because | None = None, changed: Because | None = None
) -> Because | None:
    """What is known of a change, the first of: what was switched off on this machine and made the difference; the `certain`
    cause: found by hand, a fusion, or code that changed and holds the whole difference; that a change was taken
    back; what another machine showed; where the time goes; and what else the code of both wheels says."""
    found = [one for one in known if one.verdict in FOUND_ON]
    here, elsewhere = ([one for one in found if bool(one.seen_on) is away] for away in (False, True))
    return (
        _explained(change, ends, [one for one in here if one.by_lever])
        or certain
        or _left(change, ends[0], here)
        or _explained(change, ends, [one for one in elsewhere if one.by_lever])
        or changed
        or _explained(change, ends, here)
        or _explained(change, ends, elsewhere)
        or _explained(change, ends, [one for one in known if one.verdict == "UNKNOWN"])
    )


def _not_seen_again(change: Change, ends: Ends, known: Iterable[Known]) -> str:
    """That another processor was asked for a change between these releases and does not have it; empty where none was."""
    return ", ".join(
        f"measured again on {one.seen_on} it is not there ({one.ratio:.3f} times)"
        for one in known
        if one.verdict == ABSENT and _is_of(one, change.series) and _ends(one) == ends
    )


def in_code(found: WhatChanged, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What changed in the code, as the end of a sentence. No shares: cases with one cause are told together."""
    because = "because" if found.is_cause else "in part because"
    if found.kind is Code.OPERATORS:
        calls = [f"{one.name} {one.old:,.0f} to {one.new:,.0f} times" for one in found.operators]
        return f"{because} a call has other operators ({listed(calls)})"
    if found.kind is Code.CODE:
        return f"{because} {listed([*dict.fromkeys(_of_function(one, old, new) for one in found.functions)])}"
    if found.kind is Code.PYTHON:
        return f"{because} other Python code runs ({', '.join(found.python)})"
    if found.kind is Code.OUTSIDE:
        libraries = [OUTSIDE.get(library, library) for library in found.outside]
        return f"outside PyTorch's code: the time is spent in {listed(libraries[:2])}"
    where = next((f" ({one.kernel}, {source_of(one)})" for one in found.functions[:1] if source_of(one)), "")
    # Another address is luck: where a linker put a loop. Nobody can act on it, and other processors need not show it.
    return f"with the same instructions at {'another' if found.kind is Code.MOVED else 'the same'} address{where}"


OUTSIDE = {"_multiarray_umath": "NumPy", "Python": "the interpreter", "libc": "the C library"}
"""Libraries outside PyTorch -> what a person calls them."""


def _of_function(one: Function, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """`cpu_index_kernel (IndexKernel.cpp) has other instructions`"""
    library = by_code.library_of(one.name)
    if library and not one.stays and one.state in STATES:
        return f"{library}'s code {STATES[State.RUNS if one.state in (State.NEW, State.RUNS) else State.RESTS]}"
    if library:
        before, now = (facts.get(library.lower()) for facts in (old, new))
        return f"{library} {before} became {now}" if before and now and before != now else f"{library}'s code differs"
    source = f" ({source_of(one)})" if source_of(one) else ""
    return f"{one.kernel}{source} {STATES.get(one.state, 'has other instructions')}"


STATES = {
    State.NEW: "is new",
    State.GONE: "is gone",
    State.RUNS: "runs now and did not before",
    State.RESTS: "no longer runs",
}
"""What became of a function that is not compared by its instructions, after its name."""

KERNELS = "https://github.com/pytorch/pytorch/commits/{tag}/aten/src/ATen/native/cpu/{file}"
"""Where the history of a source file is that is compiled once for each instruction set: all of these lie in one folder."""


def in_detail(found: WhatChanged, tag: str) -> list[str]:
    """What shows a class, a sentence each; `tag` is the newer release."""
    lines = [f"{found.kind.value}, by the code of both wheels (looked at: {found.case}, on {found.profiled_on})."]
    lines += [
        f"{one.name} was called {one.old:,.0f} times, and is called {one.new:,.0f} times now."
        + (" Its entry in native_functions.yaml is another one." if one.is_redeclared else "")
        for one in found.operators
    ]
    for one in found.functions:
        where = ", ".join(filter(None, (source_of(one), f"{100 * one.share:.0f} % of the samples")))
        lines.append(f"{one.kernel} ({where}): {_state_of(one)}.")
        if one.state in by_code.CHANGED and source_of(one) != one.symbol.source:
            lines.append(f"History of the file: {KERNELS.format(tag=tag, file=source_of(one))}")
    lines += [f"{name} differs between the releases, or only one of them calls it." for name in found.python]
    lines += [
        f"{100 * share:.0f} % of the samples are in {name}." for name, share in found.outside.items() if share >= 0.1
    ]
    return lines


def _state_of(one: Function) -> str:
    """What became of a function, with what its hot loop says where it has one."""
    if one.state in STATES:
        return f"it {STATES[one.state]}"
    before, now = one.loops or ((0, 0), (0, 0))
    if one.state is State.CHANGED:
        loops = f"; its hot loop has {now[0]}, before {before[0]}" if one.loops else ""
        counts = f" ({one.new.instructions}, before {one.old.instructions})" if one.old and one.new else ""
        return f"it has other instructions{counts}{loops}"
    loops = f"; its hot loop of {now[0]} begins at byte {now[1]} of 64, before at {before[1]}" if one.loops else ""
    return f"the same instructions{loops}"


def source_of(one: Function) -> str:
    """The source file of a function, without the instruction set that it was compiled for; empty where none is told."""
    return re.sub(r"\.(DEFAULT|AVX\w*|ZVECTOR|SVE\w*)\.cpp$", "", one.symbol.source)


def of_ends(change: Change, old: str, new: str, known: Iterable[Known]) -> Because | None:
    """The cause that evidence of exactly these two releases says, such as of a slow change."""
    of_both = [one for one in known if (one.old, one.new) == (old, new) and one.verdict in FOUND_ON]
    return _explained(change, (_version(old[1:]), _version(new[1:])), of_both)


def _explained(change: Change, ends: Ends, known: Iterable[Known]) -> Because | None:
    """What evidence says of a change of the same series, the same way, of at least SHARE of the size; the largest."""
    (before, now), size = ends, abs(math.log(change.factor)) if change.factor else 0.0
    fitting = [
        one
        for one in known
        if (_is_of(one, change.series) or _is_of_same_binary(one, change.series))
        and () < before <= _version(one.old[1:]) < _version(one.new[1:]) <= now
        and change.factor
        and (one.ratio > 1) == (change.factor > 1)
        and abs(math.log(one.ratio)) >= SHARE * size
        and (_ends(one) == ends or SHARE * abs(math.log(one.ratio)) <= size)
    ]
    if not fitting:
        return None
    here = change.series.environment
    most = max(fitting, key=lambda one: (one.environment == here, -TOLD.index(one.verdict), abs(math.log(one.ratio))))
    part = "" if _ends(most) == ends else f" (from {most.old} to {most.new})"
    where = "" if most.environment == here else f"; seen in {most.environment}, which has the same binary"
    return Because(f"{most.words}{part}{where}", Basis.EVIDENCE)


def _left(change: Change, before: Version, known: Iterable[Known]) -> Because | None:
    """That a change takes back the one before it, which evidence explains: the level of before, within the margin."""
    margin = math.log1p(change.series.margin)
    came = [one for one in known if _is_of(one, change.series) and before == _version(one.new[1:])]
    for one in came:
        size = abs(math.log(one.ratio))
        if size > 2 * margin and change.ratio and abs(math.log(one.ratio * change.ratio)) <= margin:
            return Because(f"as before {one.new}, which had changed it {one.words}", Basis.EVIDENCE)
    return None


def _is_of(one: Known, series: Series) -> bool:
    return one[:3] == series


def _is_of_same_binary(one: Known, series: Series) -> bool:
    """Whether a cause is that of the same series in another lane, whose wheels of both releases hold the same binaries."""
    lanes = one.environment, series.environment
    is_of_other = lanes[0] != lanes[1] and one[1:3] == series[1:] and one.verdict in FOUND_ON
    return is_of_other and all(by_code.same_code(lanes, tag) for tag in (one.old, one.new))


def _ends(one: Known) -> Ends:
    return _version(one.old[1:]), _version(one.new[1:])


LOST, GAINED = "it is no longer fused", "it is fused now"


def moved(old: Mapping[str, Any], new: Mapping[str, Any], device: str) -> dict[str, tuple[Any, Any]]:
    """The facts of ENVIRONMENT known in both environments that differ, with their old and new value."""
    names = [name for name in ENVIRONMENT if device != "cpu" or name not in ON_A_GPU]
    facts = {name: (old.get(name), new.get(name)) for name in names}
    return {name: values for name, values in facts.items() if None not in values and values[0] != values[1]}


def in_words(facts: Mapping[str, tuple[Any, Any]]) -> str:
    """`moved` facts as a clause: `oneDNN went from 2.7.3 to 3.1.1`. There must be one."""
    fuses = {True: "the wheel fuses on a CPU now", False: "the wheel no longer fuses on a CPU"}
    said = {name: (ENVIRONMENT[name], f"from {old} to {new}") for name, (old, new) in facts.items()}
    if "fuses_on_cpu" in said:
        said["fuses_on_cpu"] = fuses[bool(facts["fuses_on_cpu"][1])], ""
    return _moves([*said.values()])


def _found(change: Change, ends: Ends) -> Because | None:
    """Those of FOUND that lie between the two releases; None where nobody looked."""
    series = change.series
    (variant, size), (before, now) = (*series.plain, "", "")[:2], ends
    since: dict[str, list[str]] = defaultdict(list)
    fitting = []
    for cause in FOUND:
        if (
            (cause.question, cause.verdict) == (series.question, change.verdict.words)
            and series.metric in cause.metrics
            and variant in cause.variants
            and cause.size in size
            and () < before < _version(cause.release) <= now
            and _version(cause.first) <= before
            and (not cause.last or now <= _version(cause.last))
        ):
            since[cause.words].append(cause.release)
            fitting.append(cause)
    if len(since) == 1:
        ((words, releases),) = since.items()
        return Because(f"because {words}", Basis.BY_HAND, listed(releases), tuple(fitting))
    clauses = [f"{words} (since {listed(releases)})" for words, releases in since.items()]
    return Because(f"because {listed(clauses)}", Basis.BY_HAND, "", tuple(fitting)) if clauses else None


@functools.cache
def _version(text: str) -> Version:
    """`2.5.1+cu124` -> (2, 5, 1); () where there is none."""
    numbers = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()


def case_of(series: Series) -> tuple[object, ...]:
    return series.environment, series.question, series.parameters


def _of_time(change: Change, beside: Mapping[str, Change]) -> Because:
    every = [beside[name] for name in OWN if name in beside]
    own = [number for number in every if number.verdict in CHANGED and _weighs(number, change)]
    causes = [number for number in own if _costs(number) == (change.verdict is Verdict.SLOWER)]
    if fused := [number for number in causes if _fused(number)]:
        return Because(f"because {_moves([_went(number) for number in fused])}", Basis.FUSION)
    if causes:
        return Because(f"while {_moves([_went(number) for number in causes])}", Basis.BESIDE)
    although = f"although {_moves([_went(number) for number in own])}: " if own else ""
    return Because(f"{although}unexplained", Basis.NOTHING)


def _costs(change: Change) -> bool:
    """Whether this number moved the way that takes time: more of it, or a fusion lost."""
    old, new = change.old or 0, change.new or 0
    is_all_or_nothing = change.series.metric == "fusion_groups" and not min(old, new)
    return new < old if is_all_or_nothing else new > old


def _weighs(number: Change, time: Change) -> bool:
    if not number.ratio or not time.ratio:
        return True
    return abs(math.log(number.ratio)) >= SHARE * abs(math.log(time.ratio))


def _fused(fusion: Change) -> str:
    """What became of the fusion of a case, in words; empty where it is as it was, never was one, or for another number."""
    if fusion.series.metric != "fusion_groups":
        return ""
    if fusion.verdict is Verdict.FEWER and fusion.new == 0:
        return LOST
    if fusion.verdict is Verdict.MORE and fusion.old == 0:
        return GAINED
    return ""


_Move = tuple[str, str]  # what moved, and `from 1 to 2`; or a whole clause, and nothing


def _went(change: Change) -> _Move:
    if fused := _fused(change):
        return fused, ""
    old, new = (human(number, change.series.unit) for number in (change.old, change.new))
    return OWN[change.series.metric], f"from {old} to {new}"


def _moves(moves: Sequence[_Move]) -> str:
    """`a went from 1 to 2, b from 3 to 4 and c from 5 to 6`: where it is said of the first, the verb is said once."""
    others = "" if moves[0][1] else "went "
    verbs = ["went ", *(others for _ in moves[1:])]
    return listed([f"{what} {verb}{how}" if how else what for verb, (what, how) in zip(verbs, moves, strict=True)])


def listed(names: Sequence[str], left: int = 0) -> str:
    """`a`; `a and b`; `a, b and c`; where some are `left`, `a, b, c and 8 others`."""
    *others, last = [*names, f"{left} others"] if left else names
    return " and ".join(filter(None, (", ".join(others), last)))
