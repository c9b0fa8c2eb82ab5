"""What is the cause? The rules by which levers and places become a verdict, and its sentence.

CAUSE: a lever removes at least 80 % of the difference, or an operator, function or symbol holds at least 80 % of it, each
with an interval clear of chance. PART: a stated share of it. CLEARED: a lever leaves it. UNKNOWN: none of these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..store.causes import Code, Kind, Place, Pulled
from .estimates import Share
from .places import INTERPRETER, LEFT, NO_PLACES

REMOVES, MOST = 0.8, 1.25
"""A lever is a cause where it removes 80 to 125 % of the difference. One that removes far more makes one of its own."""

SURELY = 0.5
"""...and surely half of it."""

NEXT_TO_NOTHING = 0.02
"""A place that takes 2 % of what it takes on the other release is new, or is gone."""

ALIKE = 1.25
"""What two packages gained and lost is alike up to this factor."""

MOST_ALSO = 2
"""Further parts that a sentence names."""

IN_C = re.compile(r"<(built-in|method)|Tensor\.")
"""Functions of Python that have no source in Python."""

LEAVES = 0.2
"""A lever is cleared where it surely removes less than a fifth."""


def of_lever(share: Share) -> Kind:
    """The verdict of a lever that removes `share`."""
    if share.high < LEAVES:
        return "CLEARED"
    if REMOVES <= share.share <= MOST and share.low >= SURELY:
        return "CAUSE"
    if LEAVES <= share.share <= MOST and share.low > 0:
        return "PART"
    return "UNKNOWN"


def of_all(
    levers: Sequence[Pulled],
    because: dict[str, str],
    places: Sequence[Place],
    own: str = "",
    code: Sequence[Code] = (),
    went: str = "the time went to",
) -> tuple[Kind, str]:
    """The verdict and its clause: `because ...`, or where the time went all the same.

    `because` gives a lever's words by its name, `own` is the name of the workload's file. Levers are in the order of their
    list, where the narrower one comes first. Libraries are too wide a place for a cause."""
    elsewhere = only_elsewhere(places)
    named = [
        place
        for place in places
        if place.kind != "library" and not _is_the_same(place, own) and not waits(place.name) and place not in elsewhere
    ]
    kinds: tuple[Kind, Kind] = ("CAUSE", "PART")
    for kind in kinds:
        pulled = [lever for lever in levers if lever.verdict == kind]
        held = sorted((place for place in named if place.verdict == kind), key=_order)
        clauses = [
            *(_of_lever(pulled[0], because) for _ in pulled[:1]),
            *(_of_place(held[0], places) + _of_code(held[0], code) for _ in held[:1]),
        ]
        if clauses:
            words = f"{'because' if kind == 'CAUSE' else 'in part because'} {', and '.join(clauses)}"
            also = _also(held[1:], held[0], places) if kind == "PART" and held else ""
            more = _within(held[0], named, places) + _compiled(held[0], places, code) if held else ""
            return kind, words + also + more
    return "UNKNOWN", f"cause unknown; {_went(places, went)}"


def is_narrow(places: Sequence[Place], own: str) -> bool:
    """Whether a table says already where the difference is, narrower than an operator or a function in C does: a symbol is a
    cause, or a function in Python."""
    causes = [each for each in places if each.verdict == "CAUSE" and not _is_the_same(each, own)]
    return any(
        (each.kind == "symbol" and not says_nothing(each.name))
        or (each.kind == "function" and not IN_C.match(each.name) and not waits(each.name))
        for each in causes
    )


def only_elsewhere(places: Sequence[Place]) -> list[Place]:
    """Packages whose time is only told of another one now: one grew by about as much as another shrank, as where a package
    is imported while another one is loaded, and then before it. What they hold is no difference."""
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


WAITING = re.compile(
    r"^<(?!.*torch)(built-in )?method '?([\w.]+\.)?(poll|select|epoll|acquire|wait|waitpid|wait4|waitid|sleep|recv\w*"
    r"|accept)\b"
    r"|^[^:]+: (\w*futex\w*|\w*_?poll|\w*_?select|\w*nanosleep\w*|do_wait|wait4|waitpid|epoll_wait)$"
)
"""Functions of Python and symbols that wait for another process or thread, or for a file."""


def waits(name: str) -> bool:
    """Whether a place only waits: what takes the time then is elsewhere, where it is not profiled."""
    return bool(WAITING.search(name))


def _also(others: Sequence[Place], place: Place, places: Sequence[Place]) -> str:
    """The next largest parts in the table of a place, which do not overlap with it."""
    total = sum(_change(each) for each in places if each.kind == place.kind)
    named = [each for each in others if each.kind == place.kind and total][:MOST_ALSO]
    told = [f"{each.name} ({_per_cent(_change(each) / total)})" for each in named]
    return f"; besides, {', '.join(told)}" if told else ""


def _within(place: Place, named: Sequence[Place], places: Sequence[Place]) -> str:
    """Which Python function holds most of an operator's share: some operators, such as an optimizer's step, are Python."""
    inner = [each for each in named if each.kind == "function" and each.verdict in ("CAUSE", "PART")]
    if place.kind != "operator" or not inner:
        return ""
    most = max(inner, key=lambda each: abs(each.new - each.old))
    return f"; of Python functions {_of_place(most, places)}"


def says_nothing(symbol: str) -> bool:
    """Whether a symbol does not say what is done: a rest, one that waits, and the loop of the interpreter."""
    return symbol in NO_PLACES or waits(symbol) or symbol.endswith("_PyEval_EvalFrameDefault")


def _compiled(place: Place, places: Sequence[Place], code: Sequence[Code]) -> str:
    """What is behind an operator or a function in C: it is where the user's call goes in any case, and the compiled code in
    it says what it does now. First what only one release runs, else the symbol that holds most, and its instructions."""
    symbols = [each for each in places if each.kind == "symbol"]
    total = sum(each.new - each.old for each in symbols)
    if not (place.kind == "operator" or IN_C.match(place.name)):
        return ""
    named = sorted(
        (each for each in symbols if not says_nothing(each.name)), key=lambda each: -abs(each.new - each.old)
    )
    outside_python = [each for each in named if not each.name.startswith(f"{INTERPRETER}: ")]
    return (
        _new_code(outside_python, total)
        or _changed_code(outside_python, places, code)
        or _new_code([each for each in named if each not in outside_python], total)
    )


def _changed_code(named: Sequence[Place], places: Sequence[Place], code: Sequence[Code]) -> str:
    callers = sorted((each for each in places if each.kind == "caller"), key=_order)
    most = next((each for each in (*named, *callers) if each.verdict in ("CAUSE", "PART")), None)
    return f"; of compiled code {_of_place(most, places)}{_of_code(most, code)}" if most else ""


def _new_code(named: Sequence[Place], total: float) -> str:
    """Which symbols only one release runs, where they surely hold a fifth of the difference."""
    if not total:
        return ""
    new = [each for each in named if _is_new(each) and each.low > 0]
    gone = [each for each in named if _is_gone(each) and each.high < 0]
    if (sum(each.low for each in new) if total > 0 else sum(each.high for each in gone)) / total < LEAVES:
        return ""
    if new and gone:
        return f"; of compiled code, the time moved from {_listed(gone)} to {_listed(new)}"
    return (
        f"; of compiled code, {_listed(new)} took no time before"
        if new
        else f"; of compiled code, {_listed(gone)} takes none now"
    )


def _is_new(place: Place) -> bool:
    return abs(place.old) < NEXT_TO_NOTHING * abs(place.new)


def _is_gone(place: Place) -> bool:
    return abs(place.new) < NEXT_TO_NOTHING * abs(place.old)


NAMED, LONGEST = 3, 60
"""Symbols that a sentence names, and their characters: names of templates fill a page."""


def _listed(symbols: Sequence[Place]) -> str:
    names = [each.name if len(each.name) <= LONGEST else f"{each.name[:LONGEST]}…" for each in symbols[:NAMED]]
    rest = len(symbols) - NAMED
    return ", ".join(names) + (f" and {rest} more" if rest > 0 else "")


def _is_the_same(place: Place, own: str) -> bool:
    """Whether a row is the same code on both releases: a function of the workload itself, whose time is that of what it
    calls in C without a name, or a symbol of the interpreter, whose time is that of the Python code it runs."""
    if place.kind == "symbol":
        return place.name.startswith(f"{INTERPRETER}: ")
    return place.kind == "function" and bool(own) and place.name.startswith(f"{own} ")


KINDS = ("operator", "process", "symbol", "package", "function", "caller", "library")
"""Of places, those first that say most: operators have names that a user knows; of the rest symbols are the narrowest."""


def _order(place: Place) -> tuple[int, float]:
    """The kinds that come first say most, and of one kind the largest place."""
    return KINDS.index(place.kind), -abs(place.new - place.old)


def _of_lever(lever: Pulled, because: dict[str, str]) -> str:
    return f"{because[lever.name]}: with {lever.words} {_per_cent(lever.removed)} of the difference is gone"


COUNTED_AS = {"process": "started: {1}, before: {0}", "package": "modules imported: {1}, before: {0}"}
"""What is counted of places that are no calls, by kind."""


def _of_place(place: Place, places: Sequence[Place]) -> str:
    total = sum(other.new - other.old for other in places if other.kind == place.kind)
    share = (place.new - place.old) / total if total else 0.0
    often = ""
    if place.kind in COUNTED_AS and place.calls:
        often = f" ({COUNTED_AS[place.kind].format(*map(_times, place.calls))})"
    elif place.calls and abs(place.calls[1] - place.calls[0]) >= ONCE / 2:
        often = _called(*place.calls)
    elif _is_new(place):
        often = ", and took no time before"
    elif _is_gone(place):
        often = ", and takes none now"
    what = f"{place.name}, with what it calls," if place.kind == "caller" else place.name
    return f"{what} holds {_per_cent(share)} of the difference{often}"


def _called(old: float, new: float) -> str:
    often = "once" if round(new, 2) == 1 else f"{_times(new)} times"
    if new < ONCE / 2:
        return ", which is no longer called"
    return f", which is called {often} and " + ("was not called before" if old < ONCE / 2 else f"not {_times(old)}")


ONCE = 1.0
"""Calls a call. What is called at less than half of the calls is called now and then by something else."""


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
    """Where the difference is although no place is its cause."""
    tables = [_largest([place for place in places if place.kind == kind]) for kind in KINDS]
    tables = [(rows, total) for rows, total in tables if rows]
    if not tables:
        return "no place surely holds a tenth of the difference"
    that_say_it = [(rows, total) for rows, total in tables if rows[0].name not in NO_PLACES]
    rows, total = (that_say_it or tables)[0]
    said = f"{went} " + ", ".join(f"{row.name} ({_per_cent((row.new - row.old) / total)})" for row in rows)
    return f"{said}, which waits for something that is not profiled" if waits(rows[0].name) else said


def _largest(rows: Sequence[Place]) -> tuple[list[Place], float]:
    """The three largest rows of a table that surely hold some of the difference, and at least a tenth of it; and the
    difference. The interpreter's symbols are none: what they take is the time of the Python code that they run."""
    total, elsewhere = sum(map(_change, rows)), only_elsewhere(rows)
    if not total:
        return [], 0.0
    sure = [row for row in rows[:-1] if (row.low > 0 if total > 0 else row.high < 0) and row not in elsewhere]
    named = [row for row in sure if not (row.kind == "symbol" and row.name.startswith(f"{INTERPRETER}: "))]
    return [row for row in named if _change(row) / total >= 0.1][:3], total


def _per_cent(share: float) -> str:
    return f"{100 * share:.0f} %"
