"""At which step is a command, and when will it end? By what the same steps took the last time."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ..system.files import is_number, read_object, write_atomically

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console


class Steps:
    """Says each of `names` on `out` when it begins, as `Step 2 of 4: comparing releases, about 40 s left`. `memory` is the
    file that keeps what each of them took; without it no end is told. A line each and nothing that moves, because that would
    be a thread, and steps may fork. Use it in a `with` block."""

    def __init__(self, out: Console, names: Sequence[str], memory: Path) -> None:
        self._out, self._names, self._memory = out, names, memory
        self._took = self._remembered()
        self._seconds: dict[str, float] = {}

    def _remembered(self) -> dict[str, float]:
        try:
            found = read_object(self._memory)
        except (OSError, ValueError):
            return {}
        return {name: seconds for name, seconds in found.items() if is_number(seconds)}

    def __enter__(self) -> Self:
        self._now, self._began = "", time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        if error is None:
            self._memory.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._memory, json.dumps(self._seconds))

    def begin(self, name: str) -> None:
        """One of the names."""
        self._end()
        self._now, self._began = name, time.monotonic()
        number = self._names.index(name)
        left = [self._took.get(each) for each in self._names[number:]]
        known = [seconds for seconds in left if seconds is not None]
        end = f", about {max(1.0, sum(known)):.0f} s left" if len(known) == len(left) else ""
        self._out.print(f"Step {number + 1} of {len(self._names)}: {name}{end}", highlight=False)

    def _end(self) -> None:
        if self._now:
            self._seconds[self._now] = round(time.monotonic() - self._began, 1)
