"""What may be said in a user's own file? The names that are read of it; docs/own-workload.md says what each is for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from .metrics import METRICS, PROCESS, RESIDENT, SEQUENCE, STEADY

KEYS = (
    *("inputs", "functions", "variants", "iterators", "command", "commands", "setup", "before", "expected", "check"),
    *("sizes", "METRICS", "TOLERANCE", "WARM_UP_CALLS", "threads", "needs", "requirements"),
)

LITERALS: dict[str, tuple[type, ...]] = {"threads": (int,), "needs": (list, tuple), "requirements": (list, tuple)}
"""Those that are read before the file is run, so they are written out in it -> their types."""

CLASSES = {STEADY: "Own", SEQUENCE: "FirstCalls", RESIDENT: "Memory", PROCESS: "Command"}
"""How a metric is measured -> the class of its benchmarks, such as `mine.Own.track_time`."""


MEASURABLE = tuple(
    metric.name for metric in METRICS.values() if metric.measured in CLASSES and metric.source != "counted"
)
"""What a user's own file may name in METRICS, in the order in which it is listed. The recorder counts more by itself."""

LONGEST_NAME = 100
"""Characters of a name of a function or a size: it stands in sentences, and with others in the name of a file."""

NEEDED = ".needs"
"""The ending of a file that is kept with the text of a user's file: the digests of the files that it needs."""


def nearest(name: str, known: Iterable[str]) -> str:
    """` Did you mean `time`?`, or nothing where no known name is near."""
    by_lower = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), by_lower, 1, 0.8)
    return f" Did you mean `{by_lower[found[0]]}`?" if found else ""
