"""Why did a number change? What looking at it found, else what else moved in the same case, then in the environment.

A case is one variant in one size. Its own exact numbers come first, because only code that ran differently moves them; what
moved beside a time is evidence, no proof.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from contract.metrics import METRICS

from .verdicts import Change, Series, Verdict, human

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
"""Facts of an environment that may explain a time -> their words; `fuses_on_cpu` has words of its own."""

BY_TORCHSCRIPT = ("scripted", "traced", "frozen")
"""Ends of the names of variants that TorchScript runs: a wheel's fuser matters to these alone."""

ON_A_GPU = ("cuda", "cudnn")
"""Facts that say nothing of a time on a CPU."""

PRODUCT_LIBRARIES = ("onednn", "mkl")
NO_PRODUCTS = ("intersection", "batching", "selection")
"""Libraries that multiply matrices say nothing of a time of these questions, whose variants multiply none: tests hold the
operators of every variant to that."""

NO_OPERATORS = ("subprocess_start",)
OF_ANY_PROCESS = ("python",)
"""Variants that run no operator of PyTorch, and what alone of an environment says something of their times."""


class Cause(NamedTuple):
    """Since `release`, `words`: why the `metrics` of `variants` went the way of `verdict`, in sizes that hold `size`.

    Told of releases from `first` to `last` where these are given: what comes and goes explains its neighbours alone.
    """

    release: str
    question: str
    variants: tuple[str, ...]
    size: str
    metrics: tuple[str, ...]
    verdict: str
    words: str
    first: str = ""
    last: str = ""


_INDEX = ("index_reused", "cpp_index_reused", "nonzero_each_time", "mask", "cpp_mask")
"""Variants of selection that use `x[index]`, by themselves or within `x[mask]`."""

_MORE_TO_FORK = "a process holds more memory after import torch, and fork walks its pages"
_ELSEWHERE = "the same instructions are at a different address"
_MOVED = (
    (("index_select_reused",), "SLOWER", "1.13.1", "1.13.0", "1.13.1"),
    (("index_select_reused",), "FASTER", "2.1.0", "2.0.0", "2.1.0"),
    (("index_select_reused",), "FASTER", "2.2.0", "2.1.2", "2.5.1"),
    (("index_select_reused",), "SLOWER", "2.6.0", "2.2.0", "2.7.1"),
    (("index_select_reused",), "SLOWER", "2.12.0", "2.10.0", "2.12.1"),
    (("index_select_reused",), "FASTER", "2.13.0", "2.12.0", "2.14.1"),
    (("where_product",), "SLOWER", "2.1.0", "2.0.1", "2.1.0"),
    (("where_product",), "FASTER", "2.1.1", "2.1.0", "2.2.2"),
    (("where_product",), "SLOWER", "2.4.1", "2.4.0", "2.5.1"),
    (("where_product",), "FASTER", "2.6.0", "2.4.1", "2.6.0"),
    (_INDEX, "SLOWER", "2.1.1", "2.1.0", "2.1.1"),
    (_INDEX, "FASTER", "2.1.2", "2.1.1", "2.2.2"),
)
"""Variants of selection whose loop over a vector lies elsewhere since a release, what that did to its time, and the first
and the last release between which this explains it: the instructions are the same, and it did not move again."""

FOUND = (
    Cause(
        "1.12.0",
        "saved_tensors",
        ("checkpoint",),
        "",
        ("peak_memory",),
        "LEANER",
        "a tensor that the backward pass recomputes is released after its first use",
    ),
    Cause(
        "2.0.0",
        "batching",
        ("tensor_of_lists",),
        "",
        ("time",),
        "SLOWER",
        "every element is checked for being a symbolic number",
    ),
    Cause(
        "2.6.0",
        "intersection",
        ("compiled",),
        "",
        ("time",),
        "SLOWER",
        "Inductor disables loop vectorization in GCC and does not vectorize this loop itself",
    ),
    Cause(
        "2.12.0",
        "saved_tensors",
        ("checkpoint",),
        "no gradient",
        ("time", "forward_time"),
        "FASTER",
        "it keeps the inputs of a step without an autograd function",
    ),
    Cause(
        "2.14.0",
        "selection",
        _INDEX,
        "vector",
        ("time",),
        "SLOWER",
        "an index is read by a function call per element instead of within the loop",
    ),
    *(
        Cause(release, "selection", _INDEX, share, ("time",), verdict, words, first, last)
        for share in ("rows 50 %", "rows 99 %")
        for release, verdict, words, first, last in (
            ("2.5.0", "SLOWER", "the position of a row is read by a function call per row", "2.3.1", "2.6.0"),
            (
                "2.7.0",
                "FASTER",
                "the position of a row is read within the loop again, without a call",
                "2.5.0",
                "2.7.1",
            ),
        )
    ),
    *(
        Cause(release, "saved_tensors", NO_OPERATORS, "", ("time",), "SLOWER", _MORE_TO_FORK)
        for release in ("1.13.0", "2.0.0", "2.1.0")
    ),
    *(
        Cause(release, "selection", variants, "vector", ("time",), verdict, _ELSEWHERE, first, last)
        for variants, verdict, release, first, last in _MOVED
    ),
)
"""Causes that somebody looked for and found: in the release's source, and by a script apart from this suite where it is a
time. How stands in docs/questions; a test holds each to a change in results/ between the neighbours of its release."""

SHARE = 0.5
"""A number explains a time where its ratio is, in logarithms, at least this share of the time's. Time grows at most in
proportion to what is done: one allocation less of eight is no cause of a factor of 2.5, nor one operator of 50 of 9 %."""

CHANGED = (Verdict.FASTER, Verdict.SLOWER, Verdict.HUNGRIER, Verdict.LEANER, Verdict.MORE, Verdict.FEWER)


def why(changes: Iterable[Change], old: Mapping[str, Any], new: Mapping[str, Any], device: str) -> dict[Series, str]:
    """Series -> the end of its sentence, for every changed time and for what a fusion or one of FOUND explains.

    `old` and `new` are the environments of the releases, empty where not on record; `device` is `cpu` or `cuda`.
    """
    beside: dict[tuple[object, ...], dict[str, Change]] = defaultdict(dict)
    changes = list(changes)
    for change in changes:
        beside[_case(change.series)][_metric(change.series)] = change
    found = {}
    for change in changes:
        if change.verdict in CHANGED:
            of_case = beside[_case(change.series)]
            if looked_at := _found(change, old, new):
                found[change.series] = f"because {looked_at}"
            elif change.series.varies:
                found[change.series] = _of_time(change, of_case, old, new, device)
            elif (fusion := of_case.get("fusion_groups")) and fusion is not change and _fused(fusion):
                found[change.series] = f"because {_fused(fusion)}"
    return found


def moved(old: Mapping[str, Any], new: Mapping[str, Any], device: str) -> dict[str, tuple[Any, Any]]:
    """The facts of ENVIRONMENT known in both environments that differ, with their old and new value."""
    names = [name for name in ENVIRONMENT if device != "cpu" or name not in ON_A_GPU]
    facts = {name: (old.get(name), new.get(name)) for name in names}
    return {name: values for name, values in facts.items() if None not in values and values[0] != values[1]}


def in_words(facts: Mapping[str, tuple[Any, Any]]) -> str:
    """`moved` facts as a clause: `oneDNN went from 2.7.3 to 3.1.1`. There must be one."""
    return _listed([_fact(name, *values) for name, values in facts.items()])


def _found(change: Change, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Those of FOUND that lie between the two releases, as a clause; empty where nobody looked."""
    series = change.series
    variant, size = (parameter.strip("'") for parameter in (*series.parameters, "", "")[:2])
    before, now = _version(old.get("torch", "")), _version(new.get("torch", ""))
    since: dict[str, list[str]] = defaultdict(list)
    for cause in FOUND:
        if (
            (cause.question, cause.verdict) == (series.question, change.verdict.words)
            and variant in cause.variants
            and cause.size in size
            and _metric(series) in cause.metrics
            and () < before < _version(cause.release) <= now
            and _version(cause.first) <= before
            and (not cause.last or now <= _version(cause.last))
        ):
            since[cause.words].append(cause.release)
    clauses = [f"since {_listed(releases)}, {words}" for words, releases in since.items()]
    return _listed(clauses) if clauses else ""


def _version(text: str) -> tuple[int, ...]:
    """`2.5.1+cu124` -> (2, 5, 1); () where there is none."""
    numbers = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()


def _case(series: Series) -> tuple[object, ...]:
    return series.environment, series.benchmark.partition(".")[0], series.parameters


def _metric(series: Series) -> str:
    return series.benchmark.rpartition(".")[2].removeprefix("track_")


def _of_time(
    change: Change, beside: Mapping[str, Change], old: Mapping[str, Any], new: Mapping[str, Any], device: str
) -> str:
    own = [beside[name] for name in OWN if name in beside and beside[name].verdict in CHANGED]
    own = [number for number in own if _weighs(number, change)]
    slower = change.verdict is Verdict.SLOWER
    causes = [number for number in own if _costs(number) == slower]
    causes = [number for number in causes if _fused(number)] or causes
    if causes:
        return f"because {_listed([_went(number) for number in causes])}"
    although = f"although {_listed([_went(number) for number in own])}: " if own else ""
    if not old or not new:
        return f"{although}unexplained, and the environments are not recorded"
    facts = {name: values for name, values in moved(old, new, device).items() if _concerns(name, change.series)}
    if not facts:
        return f"{although}unexplained"
    return f"{although}perhaps because {in_words(facts)}"


def _concerns(fact: str, series: Series) -> bool:
    variant = series.parameters[0].strip("'") if series.parameters else ""
    if variant in NO_OPERATORS:
        return fact in OF_ANY_PROCESS
    if fact == "fuses_on_cpu":
        return variant.endswith(BY_TORCHSCRIPT)
    return series.question not in NO_PRODUCTS or fact not in PRODUCT_LIBRARIES


def _costs(change: Change) -> bool:
    """Whether this number moved the way that takes time: more of it, or a fusion lost."""
    if change.old is None or change.new is None:
        return False
    more = change.new > change.old
    return not more if _metric(change.series) == "fusion_groups" and not min(change.old, change.new) else more


def _weighs(number: Change, time: Change) -> bool:
    if not number.ratio or not time.ratio:
        return True
    return abs(math.log(number.ratio)) >= SHARE * abs(math.log(time.ratio))


def _fused(fusion: Change) -> str:
    """What became of the fusion of a case, in words; empty where it is as it was, never was one, or for another number."""
    if _metric(fusion.series) != "fusion_groups":
        return ""
    if fusion.verdict is Verdict.FEWER and fusion.new == 0:
        return "it is no longer fused"
    if fusion.verdict is Verdict.MORE and fusion.old == 0:
        return "it is fused now"
    return ""


def _went(change: Change) -> str:
    unit = change.series.unit
    went = f"{OWN[_metric(change.series)]} went from {human(change.old, unit)} to {human(change.new, unit)}"
    return _fused(change) or went


def _fact(name: str, old: Any, new: Any) -> str:
    if name == "fuses_on_cpu":
        return "the wheel fuses on a CPU now" if new else "the wheel no longer fuses on a CPU"
    return f"{ENVIRONMENT[name]} went from {old} to {new}"


def _listed(clauses: list[str]) -> str:
    """`a went from 1 to 2, b from 3 to 4 and c from 5 to 6`: the verb is said once."""
    said = [clauses[0], *(clause.replace(" went from ", " from ", 1) for clause in clauses[1:])]
    if " went from " not in clauses[0]:
        said = clauses
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
