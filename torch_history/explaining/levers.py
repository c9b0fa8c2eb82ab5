"""What may be switched off on both releases? The levers of levers.toml."""

import re
import tomllib
from collections.abc import Collection
from pathlib import Path

from msgspec import Struct, convert

ANOTHER_PROCESS = "another process"  # trace of a call by a new process, which settings do not reach


class Lever(Struct, frozen=True, forbid_unknown_fields=True):
    """One row of levers.toml, whose head says what each key is."""

    name: str
    words: str
    because: str
    proves: str
    variables: dict[str, str] = {}
    set: tuple[str, ...] = ()
    when: str = ""
    once: bool = False

    def refusal(self, traces: Collection[str]) -> str:
        """Why it is not tried on a call that uses `traces`; empty where it is."""
        if ANOTHER_PROCESS in traces and not self.variables:
            return "a new process does it, and the lever is a setting within a process"
        if self.when and not any(re.search(self.when, trace) for trace in traces):
            return "the call uses nothing of it"
        return ""


def load() -> list[Lever]:
    """All levers, in the order in which they are tried. Raises ValidationError where a row has a key that no lever has."""
    text = Path(__file__).with_name("levers.toml").read_text(encoding="utf-8")
    return convert(tomllib.loads(text)["lever"], list[Lever])
