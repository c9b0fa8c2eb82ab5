"""What is one process asked to measure? One record, and its one translation to the variables by which it travels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

DEVICES = ("cpu", "cuda", "recorder")
"""Where a measurement runs. The recorder runs nothing: it counts what a release asks of a GPU, see docs/recorder.md."""

PREFIX = "TORCH_HISTORY_"


@dataclass(frozen=True)
class Request:
    """What is measured, and with what.

    `device` is one of DEVICES, empty where nobody has decided. `sizes`: empty for the device's default. `only` is `times`,
    `counts` or empty for both. `threads` of the CPU. `planted`: a change of measure/planted.py, empty for none. `workload`:
    the path of a user's own file, and `text` that of its text as the measurement found it, empty where the file itself is
    read. `channel`: the file in which facts are told. `card`: the one that the recorder pretends, empty for its default.
    `turns`: the pipes through which processes take turns, `in:out`, empty where none are taken. `values`: the folder
    in which a process leaves the numbers of what its case returns, empty where nobody compares them.
    """

    device: str = ""
    sizes: tuple[str, ...] = ()
    only: str = ""
    threads: int = 1
    planted: str = ""
    workload: str = ""
    text: str = ""
    channel: str = ""
    card: str = ""
    turns: str = ""
    values: str = ""

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> Request:
        """What `variables` ask for. Raises ValueError with a sentence where the threads are no number above 0."""

        told = {key: variables.get(PREFIX + name, "") for key, name in _NAMES.items()}
        sizes, threads = told.pop("sizes"), told.pop("threads") or "1"
        if not threads.isdecimal() or threads == "0":
            raise ValueError(f"{PREFIX}THREADS is '{threads}', and threads are a whole number, 1 or more")
        named = tuple(size.strip() for size in sizes.split(",") if size.strip())
        return cls(sizes=named, threads=int(threads), **told)

    def variables(self) -> dict[str, str]:
        """The variables that ask for this. All are there, so that none is inherited from elsewhere."""
        texts = {**vars(self), "sizes": ",".join(self.sizes), "threads": str(self.threads)}
        return {PREFIX + name: texts[key] for key, name in _NAMES.items()}

    @property
    def problem(self) -> str:
        """Why nothing can be measured as asked, in words without a full stop; empty where it can."""
        if self.device and self.device not in DEVICES:
            return (
                f"'{self.device}' is no device, and a measurement runs on 'cpu' or 'cuda', or on the 'recorder': choose one "
                f"with --device or {PREFIX}DEVICE"
            )
        return ""


_NAMES = {field.name: field.name.upper() for field in fields(Request)}
_NAMES["text"] = "WORKLOAD_TEXT"
"""Field of a request -> the end of its variable's name."""

ADDED = PREFIX + "ADDED"
"""The variable that names the folder of packages that a user's own file needs besides those of the release."""

CHANNEL = PREFIX + "CHANNEL"
"""The variable that a measuring process takes out of its surroundings before it imports a workload."""

ASKED, ASKED_ONLY = "asked", "only"
"""Keys of the first line of that file: the parameters of the one case that is asked for, as asv writes them, and what is
measured of it, as `Request.only`."""

ONLY = PREFIX + "ONLY"
"""The variable of `Request.only`."""

TURNS = PREFIX + "TURNS"
"""The variable of `Request.turns`."""

TAKE, END, ALONE = b"t", b"e", b"a"
"""What a process that takes turns is told, a byte each: take one; that was all; that was all, and no other took any."""
