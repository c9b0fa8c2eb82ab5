"""What is the cause? CAUSE: a lever removes at least 80 % of the difference, or a place holds as much, with an interval
clear of chance. PART: a stated share of it. CLEARED: a lever leaves it. UNKNOWN: none of these."""

import re
from collections.abc import Sequence

from ..store.causes import Code, Kind, Place, Pulled
from .places import CAUSE_MOST, CAUSE_SHARE, INTERPRETER, LEFT, NO_PLACES, PART_SHARE

SURELY = 0.5  # a lever is a cause where it removes as much as a place that is one holds, and surely this much
NEXT_TO_NOTHING = 0.02  # a place that takes 2 % of what it takes on the other release is new, or is gone
ALIKE = 1.25  # what two packages gained and lost is alike up to this factor

KINDS = ("operator", "process", "symbol", "package", "function", "line")
"""Of places, those first that say most. Evidence of former versions has callers and libraries, which are not told."""

COUNTED_AS = {"process": "started", "package": "modules imported"}  # of places that are no calls
OFTEN = 0.5  # calls a call. What is called at less than half of the calls is called now and then by something else.
MODULE = "torch/nn/modules/module.py "  # the file of Python that calls a module
IN_C = re.compile(r"<(built-in|method)|Tensor\.")  # functions of Python that have no source in Python

WAITING = re.compile(
    r"^<(?!.*torch)(built-in )?method '?([\w.]+\.)?(poll|select|epoll|acquire|wait|waitpid|wait4|waitid|sleep|recv\w*"
    r"|accept)\b"
    r"|^[^:]+: (\w*futex\w*|\w*_?poll|\w*_?select|\w*nanosleep\w*|do_wait|wait4|waitpid|epoll_wait)$"
)
"""What waits for another process, thread or file: what takes the time then is not profiled."""


def of_lever(share: float, low: float, high: float) -> Kind:
    """The verdict of a lever that removes `share`, at least `low` and at most `high`."""
    if high < PART_SHARE:
        return "CLEARED"
    if CAUSE_SHARE <= share <= CAUSE_MOST and low >= SURELY:
        return "CAUSE"
    if PART_SHARE <= share <= CAUSE_MOST and low > 0:
        return "PART"
    return "UNKNOWN"


def of_all(
    levers: Sequence[Pulled],
    because: dict[str, str],
    places: Sequence[Place],
    own: str = "",
    code: Sequence[Code] = (),
    went: str = "the time went to",
    changed: tuple[bool, str] = (False, ""),
) -> tuple[Kind, str]:
    """The verdict and its clause. `because` gives a lever's words by its name, `own` is the workload's file. `changed`:
    whether changed code holds the whole difference, and its words: then it is the cause, unless a lever is, and a place
    that is called as often as before, by the same code, is none."""
    elsewhere = only_elsewhere(places)
    named = [one for one in places if _holds(one, own) and one not in elsewhere]
    if changed[1]:
        named = [place for place in named if _is_another(place, code)]
    if changed[0] and not any(lever.verdict == "CAUSE" for lever in levers):
        return "CAUSE", f"{changed[1]}; {_went(places, went)}"
    kinds: tuple[Kind, Kind] = ("CAUSE", "PART")
    for kind in kinds:
        first = [lever for lever in levers if lever.verdict == kind][:1]
        gone = "of the difference is gone"
        clauses = [f"{because[one.name]}: with {one.words} {_per_cent(one.removed)} {gone}" for one in first]
        held = sorted((place for place in named if place.verdict == kind), key=_order)
        clauses += [_of_place(place, places) + _of_code(place, code) for place in held[:1]]
        if clauses:
            words = f"{'because' if kind == 'CAUSE' else 'in part because'} {', and '.join(clauses)}"
            return kind, words + (_compiled(held[0], places, code) if held else "")
    return "UNKNOWN", "; ".join(filter(None, ("cause unknown", changed[1], _went(places, went))))


def called_otherwise(places: Sequence[Place], own: str) -> str:
    """Functions of Python called another number of times, in words, where they hold the whole difference."""
    rows = [place for place in places if place.kind == "function"]
    named = [row for row in rows if _calls_changed(row) and _holds(row, own)]
    total = sum(map(_change, rows))
    ends = sorted(sum(getattr(row, end) for row in named) / total for end in ("low", "high")) if total else [0.0]
    if not CAUSE_SHARE <= sum(_share(row, rows) for row in named) <= CAUSE_MOST or ends[0] < CAUSE_SHARE / 2:
        return ""
    most = sorted(named, key=lambda row: -abs(_change(row)))[:2]
    said = [f"{row.name} is called {' times, before '.join(map(_times, reversed(row.calls or ())))}" for row in most]
    return f"because {' and '.join(said)}"


def only_elsewhere(places: Sequence[Place]) -> list[Place]:
    """Packages of which one grew by about as much as another shrank, as if only imported before it: no difference."""
    found = []
    rows = [place for place in places if place.kind == "package" and place.name != LEFT]
    grown = [row for row in rows if row.low > 0 and _change(row) > 0]
    for row in sorted((row for row in rows if row.high < 0 and _change(row) < 0), key=_change):
        alike = [other for other in grown if 1 / ALIKE <= _change(other) / -_change(row) <= ALIKE]
        if alike:
            nearest = min(alike, key=lambda other: abs(_change(other) + _change(row)))
            grown.remove(nearest)
            found += [row, nearest]
    return found


def _change(place: Place) -> float:
    return place.new - place.old


def _share(place: Place, places: Sequence[Place]) -> float:
    """Of the difference, by the table that the place is a row of."""
    total = sum(_change(each) for each in places if each.kind == place.kind)
    return _change(place) / total if total else 0.0


def _holds(place: Place, own: str = "") -> bool:
    """Whether its time is its own, and not that of what it calls or waits for."""
    return not _is_the_same(place, own) and not WAITING.search(place.name)


def _is_the_same(place: Place, own: str) -> bool:
    """Whether a row's time is that of what it calls: of the workload, a module, an empty package, the interpreter."""
    if place.kind == "symbol":
        return place.name.startswith(f"{INTERPRETER}: ")
    if place.kind == "package":
        return place.name != LEFT and not any(place.calls or ())
    return place.kind == "function" and place.name.startswith((f"{own} ", MODULE) if own else MODULE)


def _order(place: Place) -> tuple[bool, int, float]:
    """What is called another number of times says most; then the kinds that come first, and the largest place."""
    is_called_otherwise = place.kind in ("operator", "function") and _calls_changed(place)
    return not is_called_otherwise, KINDS.index(place.kind), -abs(_change(place))


def _calls_changed(place: Place) -> bool:
    before, now = place.calls or (0.0, 0.0)
    return abs(now - before) >= OFTEN


def _compiled(place: Place, places: Sequence[Place], code: Sequence[Code]) -> str:
    """What is behind an operator or a function in C: the symbol that holds most, and which one it replaced."""
    if not (place.kind == "operator" or IN_C.match(place.name)):
        return ""
    symbols = [each for each in places if each.kind == "symbol" and _holds(each)]
    held = sorted((each for each in symbols if each.verdict in ("CAUSE", "PART")), key=_order)
    if not held:
        return ""
    gone = [each for each in symbols if _is_gone(each) and each.high < 0] if _is_new(held[0]) else []
    instead = f", while {min(gone, key=_order).name} takes none now" if gone else ""
    return f"; of compiled code {_of_place(held[0], places)}{instead}{_of_code(held[0], code)}"


def _is_another(place: Place, code: Sequence[Code]) -> bool:
    """Whether more than its time changed: it is new or gone, or its calls or instructions are others."""
    if place.kind in COUNTED_AS or (not place.calls and (_is_new(place) or _is_gone(place))):
        return True
    return _calls_changed(place) or any(not one.same for one in code if one.symbol == place.name)


def _is_new(place: Place) -> bool:
    return abs(place.old) < NEXT_TO_NOTHING * abs(place.new)


def _is_gone(place: Place) -> bool:
    return abs(place.new) < NEXT_TO_NOTHING * abs(place.old)


def _of_place(place: Place, places: Sequence[Place]) -> str:
    often = ""
    if place.calls and (place.kind in COUNTED_AS or _calls_changed(place)):
        before, now = map(_times, place.calls)
        often = f" ({COUNTED_AS.get(place.kind, 'calls')}: {now}, before: {before})"
    elif _is_new(place):
        often = ", and took no time before"
    elif _is_gone(place):
        often = ", and takes none now"
    return f"{place.name} holds {_per_cent(_share(place, places))} of the difference{often}"


def _times(calls: float) -> str:
    return f"{calls:,.0f}" if calls >= 10 else f"{calls:.3g}"


def _of_code(place: Place, code: Sequence[Code]) -> str:
    """What both wheels' machine code of a symbol says."""
    of = next((each for each in code if each.symbol == place.name and place.kind == "symbol"), None)
    if of is None:
        return ""
    if not of.same:
        return ", with other instructions than before"
    return f", with the same instructions{' at another address' if of.old_loops != of.new_loops else ''}"


def _went(places: Sequence[Place], went: str) -> str:
    """Where the difference is although no place is its cause: the first table with a row that says it."""
    tables = [largest for kind in KINDS if (largest := _largest([place for place in places if place.kind == kind]))]
    if not tables:
        return "no place surely holds a tenth of the difference"
    rows = next((rows for rows in tables if rows[0].name not in NO_PLACES), tables[0])
    said = f"{went} " + ", ".join(f"{row.name} ({_per_cent(_share(row, places))})" for row in rows)
    return f"{said}, which waits for something that is not profiled" if WAITING.search(rows[0].name) else said


def _largest(rows: Sequence[Place]) -> list[Place]:
    """The three largest rows that surely hold a tenth of the difference; the interpreter's symbols are none."""
    elsewhere, is_more = only_elsewhere(rows), sum(map(_change, rows)) > 0
    sure = [row for row in rows[:-1] if (row.low > 0 if is_more else row.high < 0) and row not in elsewhere]
    own = (row for row in sure if not (row.kind == "symbol" and _is_the_same(row, "")))
    return [row for row in own if _share(row, rows) >= 0.1][:3]


def _per_cent(share: float) -> str:
    return f"{100 * share:.0f} %"
