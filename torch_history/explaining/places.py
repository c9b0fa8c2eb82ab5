"""Where did the time go? Shares of a profile times the seconds of a plain call: rows add up to the difference."""

import math
import re
import shutil
import statistics
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from scipy import special

from ..store.causes import Kind, Place
from ..system.errors import UserError
from .estimates import Group

CONFIDENCE = 0.95  # of the interval of a row
INFLATED = 1.3  # by how much a profiler may slow a call, unless what it adds is less than 0.3 of the difference

CAUSE_SHARE, CAUSE_MOST, OTHERS_MOST = 0.8, 1.25, 0.25
"""Of the difference: a cause's least and most, any other place's most."""

PART_SHARE = 0.2  # from a fifth of the difference on a place holds a part of it
MOST_ROWS = 12  # rows of a table beside the one of what is left over
LEAST_ROW = 0.02  # a row that holds less than 2 % of the difference goes to what is left over

LEFT = "everything else"
OUTSIDE = "outside operators"
ITSELF = "the process itself"
ELSEWHERE = "processes that it waits for"  # in measure/once.py; what runs then is in the table of processes
NO_PLACES = (LEFT, OUTSIDE, ITSELF, ELSEWHERE, "what no line of Python made")  # rows that say where the time is not

INTERPRETER = "Python"
MADE_AT_RUN_TIME = "code made at run time"
LONGEST_NAME = 150

Profile = Mapping[str, tuple[float, float]]  # name -> share of the launch's time, calls a call or 0
Answers = Sequence[Mapping[str, Any]]  # of one release, what each launch answered


def of_rows(answer: Mapping[str, Any], outside: str = OUTSIDE) -> Profile:
    """The profile in an answer of `by_operator` or `by_function`; what no row holds is `outside`."""
    total = max(answer["seconds"], sum(own for own, _ in answer["rows"].values()))
    found = {shortened(name): (own / total, calls) for name, (own, calls) in answer["rows"].items()}
    rest = 1 - sum(share for share, _ in found.values())
    return {**found, outside: (max(rest, 0.0), 0.0)}


def of_once(answer: Mapping[str, Any]) -> dict[str, Profile]:
    """The profiles in an answer of `looked_at` in measure/once.py, by kind of place."""
    rows = {"process": ("processes", ITSELF), "package": ("packages", LEFT), "function": ("functions", LEFT)}
    return {kind: of_rows({**answer, "rows": answer[name]}, rest) for kind, (name, rest) in rows.items()}


def of_samples(answer: Mapping[str, Any]) -> Profile:
    """The profile in the `samples` of an answer of `by_function`, with the calls that its profiler counted."""
    total = sum(answer["samples"].values()) or 1.0
    calls = {name: calls for name, (_, calls) in answer["rows"].items()}
    return {shortened(name): (own / total, calls.get(name, 0.0)) for name, own in answer["samples"].items()}


def profiles(old: Answers, new: Answers, difference: float) -> tuple[list[Profile], list[Profile]]:
    """The profiles, by samples where a profiler distorts beside the `difference` in seconds. Raises Distorted."""
    if is_believed(old, difference) and is_believed(new, difference):
        return [of_rows(answer) for answer in old], [of_rows(answer) for answer in new]
    if all("samples" in answer for answer in (*old, *new)):
        return [of_samples(answer) for answer in old], [of_samples(answer) for answer in new]
    times = max(inflation(old), inflation(new))
    raise Distorted(
        f"with their profiler a call takes {times:.1f} times as long, so that says little about a plain call"
    )


class Distorted(UserError):
    """A profiler changes too much; the text says by how much."""


def inflation(answers: Answers) -> float:
    """How many times as much of the processor a call takes under the profiler."""
    return statistics.median(answer["cpu"] / max(answer["plain"], 1e-12) for answer in answers)


def is_believed(answers: Answers, difference: float) -> bool:
    """Whether what the profiler adds to a call is little beside the call, or beside the `difference` in seconds."""
    added = statistics.median(answer["cpu"] - answer["plain"] for answer in answers)
    return inflation(answers) <= INFLATED or added <= (INFLATED - 1) * abs(difference)


def read_perf(file: Path) -> Profile:
    """The profile by symbol of what perf recorded. Raises OSError and CalledProcessError where perf or c++filt fails."""
    command = ["perf", "report", "-i", str(file), "--stdio", "--no-children", "-F", "sample,dso,sym", "-t", "\t"]
    is_there = shutil.which("c++filt") is not None
    report = _said([*command, "--no-demangle"] if is_there else command)
    report = _said(["c++filt", "-i"], report) if is_there else report
    counts: Counter[str] = Counter()
    for line in report.splitlines():
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) == 3 and cells[0].isdigit():
            count, dso, name = cells
            counts[f"{library_name(dso)}: {symbol_name(name)}"] += int(count)
    total = counts.total() or 1
    return {symbol: (count / total, 0.0) for symbol, count in counts.items()}


def _said(command: Sequence[str], given: str = "") -> str:
    return subprocess.run(command, input=given, capture_output=True, text=True, errors="replace", check=True).stdout


def library_name(shared_object: str) -> str:
    """What two releases share of a library's name: `libgomp-a34b3233.so.1` is `libgomp`."""
    name = shared_object.rpartition("/")[2]
    if name.startswith("[kernel") or name == "[guest.kernel.kallsyms]":
        return "the kernel"
    if re.match(r"\[unknown\]|//anon|anon|\[JIT\]|\[heap\]|perf-\d+\.map|c[a-z2-7]{20,}.*\.so$", name) or not name:
        return MADE_AT_RUN_TIME
    if re.match(r"(lib)?python\d", name):
        return INTERPRETER
    return re.sub(r"(-[0-9a-f]{8,})?\.so[.\d]*$|\.cpython-.*$", "", name) or name


def symbol_name(symbol: str) -> str:
    """What two releases share of a symbol: no templates but the kernel it was made for, arguments or suffixes."""
    text = re.sub(r"^\[.\]\s*", "", symbol)
    if re.fullmatch(r"(0x)?[0-9a-f]{8,}|\[unknown\]", text):
        return "without a name"
    kernel = re.search(r"\b(\w*(?:kernel|_impl|_out)\w*)\b", text)
    text = re.sub(r"\.(isra|constprop|part|cold|lto_priv)(\.\d+)*|@@?\w+[.\d]*$|\[clone .*?\]", "", text)
    plain = _without_brackets(text)
    hint = kernel[1] if kernel and kernel[1] not in plain else ""
    return shortened(f"{hint} in {plain}" if hint else plain)


def _without_brackets(text: str) -> str:
    """`text` without what stands in <> and (), which templates and arguments do; `(anonymous namespace)` stays."""
    text = text.replace("(anonymous namespace)", "{anonymous}").replace("operator<", "operator_less")
    while (outer := re.sub(r"[<(][^<>()]*[>)]", "", text)) != text:  # the innermost ones go first
        text = outer
    plain = re.sub(r"\s+const\b.*$", "", re.sub(r"(?s)[<(].*|[>)]", "", text)).strip()
    return plain.rpartition(" ")[2] if " " in plain and "::" in plain else plain


def shortened(name: str) -> str:
    """`name` of at most LONGEST_NAME characters, without what cannot be printed."""
    seen = "".join(each if each.isprintable() else "?" for each in name)
    return seen if len(seen) <= LONGEST_NAME else f"{seen[: LONGEST_NAME - 1]}…"


def table(kind: Any, old: Sequence[Profile], new: Sequence[Profile], base: Group) -> list[Place]:
    """Rows of what changed most, and one of all that is left over: their differences add up to that of `base`."""
    levels = base.levels
    difference = levels[1] - levels[0]
    names = {name for profile in (*old, *new) for name in profile}
    rows = [_row(kind, name, old, new, levels) for name in sorted(names)]
    rows.sort(key=lambda row: -abs(row.new - row.old))
    shown = [row for row in rows[:MOST_ROWS] if abs(row.new - row.old) >= LEAST_ROW * abs(difference)]
    left = names - {row.name for row in shown}
    rest = [
        [{LEFT: (sum(profile.get(name, (0.0, 0.0))[0] for name in left), 0.0)} for profile in side]
        for side in (old, new)
    ]
    rows = [*shown, _row(kind, LEFT, rest[0], rest[1], levels)]
    return [judged(row, rows, difference) for row in rows]


def _row(kind: Any, name: str, old: Sequence[Profile], new: Sequence[Profile], levels: tuple[float, float]) -> Place:
    """Mean seconds a call on either release, and the interval of their difference by Welch's t."""
    rows = [[profile.get(name, (0.0, 0.0)) for profile in profiles] for profiles in (old, new)]
    sides = [[share * level for share, _ in side] for side, level in zip(rows, levels, strict=True)]
    means = [statistics.fmean(side) for side in sides]
    half = _half(sides)
    calls = [statistics.median(calls for _, calls in side) for side in rows]
    shift = means[1] - means[0]
    counted = (calls[0], calls[1]) if any(calls) else None
    return Place(kind, name, means[0], means[1], shift - half, shift + half, calls=counted)


def _half(sides: Sequence[Sequence[float]]) -> float:
    """Half of the interval of a difference of means. One launch tells none: it is then as wide as the value."""
    if min(map(len, sides)) < 2:
        return max(max(side) for side in sides)
    errors = [statistics.variance(side) / len(side) for side in sides]
    if not sum(errors):
        return 0.0
    freedom = sum(errors) ** 2 / sum(error**2 / (len(side) - 1) for error, side in zip(errors, sides, strict=True))
    return float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * math.sqrt(sum(errors))


def judged(row: Place, rows: Sequence[Place], difference: float) -> Place:
    """The row with its verdict: CAUSE, PART, CLEARED where it surely holds next to nothing, else UNKNOWN."""
    if not difference:
        return row
    share, *ends = ((value / difference) for value in (row.new - row.old, row.low, row.high))
    low, high = sorted(ends)
    others = max((abs(other.new - other.old) / abs(difference) for other in rows if other is not row), default=0.0)
    is_place = row.name not in NO_PLACES
    verdict: Kind = "UNKNOWN"
    if is_place and CAUSE_SHARE <= share <= CAUSE_MOST and low >= CAUSE_SHARE / 2 and others <= OTHERS_MOST:
        verdict = "CAUSE"
    elif is_place and share >= PART_SHARE and low > 0:
        verdict = "PART"
    elif low > -PART_SHARE and high < PART_SHARE:
        verdict = "CLEARED"
    return replace(row, verdict=verdict)
