"""How is a changed number of bytes, allocations or operators explained? Both are counted, operator by operator."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from contract.metrics import GROWTH_MARGIN, METRICS, NO_GROWTH

from ..analysis.causes import listed
from ..store.causes import Place, Pulled
from . import places, verdict
from .estimates import Group, Ratio
from .explanation import Found, Open, Say
from .launching import CannotExplain, Launch, Side, Sides, Subject
from .levers import Lever

GROWTH = tuple(name for name, metric in METRICS.items() if metric.is_growth)
COUNTED = ("peak_memory", "retained", "allocations", "operators", *GROWTH)
"""Metrics that are counted, by operator and those of GROWTH by line: by `by_allocation` and `left` of measure/explain.py."""

WENT = "the difference is in"  # what is said of where a count is higher, where nothing is its cause
MOST_NAMED = 3  # operators that are named because one release alone calls them
LAUNCHES = 2  # of each release, to see that a launch counts what another one counts

Answer = Mapping[str, Any]


def explain(subject: Subject, sides: Sides, levers: Sequence[Lever], say: Say, opened: Open = Launch) -> Found:
    """Explains one counted series. Raises CannotExplain where a release cannot run it, counts 0, or counts vary."""
    metric, levers = subject.metric, [lever for lever in levers if not lever.variables and subject.metric not in GROWTH]
    launches, what = (1, "line") if metric in GROWTH else (LAUNCHES, "operator")
    say(f"Where is it? Launches of each release are counted by {what}: {launches}.")
    first, second = (_counted(side, subject, levers, opened, launches) for side in sides)
    old, new = (float(answer[metric]) for answer in (first, second))
    found = Found(
        clock="none",
        base=Group([old] * launches, [new] * launches),
        ratio=Ratio(*[max(new, NO_GROWTH) / max(old, NO_GROWTH)] * 3),
        environments=(first["environment"], second["environment"]),
        commits=(first["commit"], second["commit"]),
    )
    if metric in GROWTH:
        _say_what_is_left(found, metric, first["rows"], second["rows"])
    elif old == new:
        found.words = f"the difference is not there: both count {old:,.0f}"
    else:
        found.places = table(metric, first["rows"], second["rows"])
        found.levers = [_pulled(lever, metric, (first, second), new - old) for lever in levers]
        because = {lever.name: lever.because for lever in levers}
        said = in_one_alone(first["rows"], second["rows"])
        changed = False, said
        found.verdict, found.words = verdict.of_all(found.levers, because, found.places, went=WENT, changed=changed)
        if said and found.verdict == "UNKNOWN":
            found.verdict, found.words = "PART", f"in part because {found.words.removeprefix('cause unknown; ')}"
        elif said and not any(lever.verdict == "CAUSE" for lever in found.levers):
            found.words += f"; {said}"
    return found


def in_one_alone(old: Mapping[str, Answer], new: Mapping[str, Answer]) -> str:
    """Operators that one release calls alone, unless another one of these calls them, in words; empty without any."""
    clauses = []
    for rows, other, state in ((new, old, "new"), (old, new, "no longer called")):
        alone = {name for name in rows if rows[name].get("operators") and not other.get(name, {}).get("operators")}
        calls = ((name, *call) for name in alone for call in rows[name].get("callers", {}).items())
        within = {name for name, caller, count in calls if caller in alone and count >= rows[name]["operators"]}
        most = sorted(alone - within, key=lambda name: (-rows[name]["operators"], name))[:MOST_NAMED]
        clauses += [f"{listed(most)} {'is' if len(most) == 1 else 'are'} {state}"] if most else []
    return ", while ".join(clauses)


def _counted(side: Side, subject: Subject, levers: Sequence[Lever], opened: Open, launches: int) -> dict[str, Any]:
    """What launches of one release count, its facts, and what it counts `under` each lever that may matter."""
    counted: list[dict[str, Any]] = []
    step = {"do": "left" if subject.metric in GROWTH else "allocations"}
    for _ in range(launches):
        with contextlib.closing(opened(side, subject)) as launch:
            facts, traces = launch.ask({"do": "facts"}), launch.ask({"do": "traces"})
            answer = launch.ask(step)
            tried = [lever for lever in levers if not counted and not lever.refusal(traces.get("traces", []))]
            under = {lever.name: launch.ask({**step, "set": list(lever.set)}) for lever in tried}
        if "failed" in answer:
            raise CannotExplain(f"{side.tag} cannot run it: {answer['failed']}.")
        counted.append({**facts, **traces, **answer, "under": under})
    found = [answer[subject.metric] for answer in counted]
    if len(set(found)) > 1:
        numbers = " and ".join(f"{number:,}" for number in found)
        raise CannotExplain(f"Launches of {side.tag} count {numbers}: what varies cannot be explained by counting.")
    if found[0] <= 0 and subject.metric not in GROWTH:
        raise CannotExplain(f"{side.tag} counts {found[0]:,.0f}, so there is no ratio to explain.")
    return counted[0]


def _pulled(lever: Lever, metric: str, answers: tuple[Answer, Answer], difference: float) -> Pulled:
    """What a lever does to the difference, exactly."""
    under = [answer["under"].get(lever.name) for answer in answers]
    refused = next((each["failed"] for each in under if each and "failed" in each), "")
    if not refused and not all(under):
        refused = lever.refusal({*answers[0]["traces"], *answers[1]["traces"]}) or "a release does not use it"
    if refused:
        return Pulled(lever.name, lever.words, lever.proves, refused=refused[:500])
    old, new = (float(each[metric]) for each in under)
    gone = 1 - (new - old) / difference
    kind = verdict.of_lever(gone, gone, gone)
    return Pulled(lever.name, lever.words, lever.proves, kind, (old,), (new,), removed=gone, low=gone, high=gone)


def _say_what_is_left(found: Found, metric: str, old: Mapping[str, Answer], new: Mapping[str, Answer]) -> None:
    """Says in `found` which lines led to what one release leaves at each call and the other does not."""
    found.verdict, found.words = "UNKNOWN", "cause unknown; asked again, calls leave as much in both"
    if 1 / (1 + GROWTH_MARGIN) <= found.ratio.ratio <= 1 + GROWTH_MARGIN:
        return
    found.places, found.words = table(metric, old, new, "line"), "cause unknown; no line of Python made what differs"
    told = sorted((place.verdict, place.name) for place in found.places if place.verdict in ("CAUSE", "PART"))
    if told:
        found.verdict = told[0][0]
        clauses = [_of_line(metric, name, old.get(name, {}), new.get(name, {})) for _, name in told[:MOST_NAMED]]
        found.words = f"{'in part ' * (found.verdict == 'PART')}because {', and '.join(clauses)}"


def _of_line(metric: str, line: str, old: Answer, new: Answer) -> str:
    """`each call leaves 1 Tensor of float32 (1000,), made at mine.py:12, and none before`"""
    more, less = (new, old) if new.get(metric, 0) > old.get(metric, 0) else (old, new)
    kinds = sorted(name for name in more if name.startswith("of ") and more[name] != less.get(name))[:MOST_NAMED]
    inner = max((size, name) for name, size in more.items() if name.startswith("at "))[1].removeprefix("at ")
    said = "leaves {}, made at {}, and {} before" if more is new else "left {}, made at {}, and leaves {} now"
    where = line if inner == line else f"{line} ({inner})"
    return f"each call {said.format(_amount(metric, more, kinds), where, _amount(metric, less, kinds))}"


def _amount(metric: str, row: Answer, kinds: Sequence[str]) -> str:
    """`4,450 B with 1 Tensor of float32 (1000,)`, or without the bytes if objects are counted."""
    counts = [(row[kind], kind.split(" ")) for kind in kinds if kind in row]
    objects = " and ".join(f"{n:.3g} {' '.join((of[1] + 's' * (n != 1), *of[2:]))}" for n, of in counts)
    size = f"{row.get(metric, 0):,.0f} {METRICS[metric].unit}".replace(" bytes", " B")
    said = ("" if metric == "kept_objects" and objects else size, objects)
    return " with ".join(filter(None, said)) if row.get(metric) else "none"


def table(metric: str, old: Mapping[str, Answer], new: Mapping[str, Answer], kind: Any = "operator") -> list[Place]:
    """Operators or lines that hold most of the difference, and one row of all that is left over: they add up to it."""
    rows = [_place(kind, name, metric, old.get(name, {}), new.get(name, {})) for name in {*old, *new}]
    rows.sort(key=lambda row: (-abs(row.new - row.old), row.name))
    shown = [row for row in rows[: places.MOST_ROWS] if row.new != row.old]
    left = [row for row in rows if row not in shown]
    before, now = sum(row.old for row in left), sum(row.new for row in left)
    shown.append(Place(kind, places.LEFT, before, now, now - before, now - before))
    difference = sum(row.new - row.old for row in rows)
    return [places.judged(row, shown, difference) for row in shown]


def _place(kind: Any, name: str, metric: str, old: Answer, new: Answer) -> Place:
    before, now = float(old.get(metric, 0)), float(new.get(metric, 0))
    calls = float(old.get("operators", 0)), float(new.get("operators", 0))
    return Place(kind, places.shortened(name), before, now, now - before, now - before, calls=calls)
