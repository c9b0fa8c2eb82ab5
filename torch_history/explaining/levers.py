"""What may be taken away on both releases? The levers of levers.toml."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

LIST = Path(__file__).with_name("levers.toml")

LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/local/lib")
"""Folders in which an allocator is looked for."""

PADDING = 3_000
"""Bytes: the stack moves by less than a page, and not by a multiple of a line of the cache."""


ANOTHER_PROCESS = "another process"
"""Trace of a call that a new process makes, which settings of the one that asks do not reach."""


@dataclass(frozen=True)
class Lever:
    """One row of levers.toml, whose head says what each key is."""

    name: str
    words: str
    because: str
    proves: str
    variables: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    preload: tuple[str, ...] = ()
    when: str = ""
    fresh: bool = False
    package: str = ""
    libraries: str = ""
    clock: Literal["", "wall"] = ""
    once: bool = False

    @property
    def within(self) -> bool:
        """Whether it is pulled in a process forked from an interpreter that others use too."""
        return not (self.variables or self.command or self.preload or self.fresh or self.package)

    def surroundings(self, scratch: Path) -> dict[str, str]:
        """The variables of its processes; `scratch` is a folder for what they write."""
        filled = {
            name: value.replace("{scratch}", str(scratch)).replace("{padding}", "x" * PADDING)
            for name, value in self.variables.items()
        }
        return {**filled, **({"LD_PRELOAD": str(found)} if (found := self._library()) else {})}

    def refusal(self, traces: Collection[str]) -> str:
        """Why it is not tried on a call that uses `traces`; empty where it is."""
        if ANOTHER_PROCESS in traces and (self.within or self.fresh):
            return "a new process does it, and the lever is a setting within a process"
        if self.when and not any(re.search(self.when, trace) for trace in traces):
            return "the call uses nothing of it"
        if self.command and shutil.which(self.command[0]) is None:
            return f"{self.command[0]} is not installed"
        if self.preload and self._library() is None:
            return f"none of {', '.join(self.preload)} is installed"
        return ""

    def _library(self) -> Path | None:
        places = (Path(folder, name) for name in self.preload for folder in LIBRARIES)
        return next((place for place in places if place.exists()), None)


def load(path: Path = LIST) -> list[Lever]:
    """All levers, in the order in which they are tried. Raises TypeError where a row has a key that no lever has."""
    return [_lever(row) for row in tomllib.loads(path.read_text(encoding="utf-8"))["lever"]]


def _lever(row: dict[str, Any]) -> Lever:
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    return Lever(**values)
