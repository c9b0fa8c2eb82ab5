"""Are the instructions of a symbol the same in both wheels, and where do its loops begin?

The bytes of either library are disassembled by `objdump`. Two functions are the same where their instructions are equal once
addresses are taken out: where a jump goes is counted in instructions, what is read relative to the instruction has no
address, and fillers that only align what follows do not count. A loop that begins elsewhere within the 64 bytes of a line of
the cache can take another time with the same instructions.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..store.causes import Code
from ..system.errors import UserError
from .places import Raw

LINE = 64
"""Bytes of a line of the cache, from which the processor fetches instructions."""

LONGEST = 2**16
"""Bytes of a function that are compared."""

_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t(\S.*)$")
_FILLER = re.compile(r"^((data16|cs|ds|es)\s+)*(nop[wl]?\b|xchg\s+%ax,%ax)")
_TARGET = re.compile(r"^(\S+)\s+([0-9a-f]+) <(.+?)(\+0x[0-9a-f]+)?>$")


class CannotDisassemble(UserError):
    """The instructions of a symbol cannot be had; the text follows "no comparison of machine code: "."""


@dataclass(frozen=True)
class Body:
    """A function's `instructions` without addresses, and at which of the LINE bytes each of its `loops` begins."""

    instructions: tuple[str, ...]
    loops: tuple[int, ...]


def compare(name: str, old: tuple[Path, Raw], new: tuple[Path, Raw]) -> Code | None:
    """Whether the code of a symbol, by its name as `places.of_perf` shortens it, is the same; None where a side lacks it, or
    where it is in the system's library or the interpreter, which both share. Each side gives the folder of its environment
    and what perf called its symbols. Raises CannotDisassemble."""
    bodies = []
    for folder, raw in (old, new):
        library, symbol = max(raw[name], key=raw[name].__getitem__) if raw.get(name) else ("", "")
        path = next(iter(sorted(folder.glob(f"lib/python*/site-packages/**/{library}"))), None) if library else None
        if path is None:
            return None
        bodies.append(body(path, symbol))
    return Code(
        name,
        same=bodies[0].instructions == bodies[1].instructions,
        instructions=(len(bodies[0].instructions), len(bodies[1].instructions)),
        old_loops=bodies[0].loops[:20],
        new_loops=bodies[1].loops[:20],
    )


def body(library: Path, symbol: str) -> Body:
    """The code of a mangled `symbol`. Raises CannotDisassemble where the library does not name it or binutils is missing."""
    if symbol not in (known := _symbols(library)):
        raise CannotDisassemble(f"{library.name} does not say where {symbol[:80]} lies")
    start, size = known[symbol]
    ends = f"--start-address={start}", f"--stop-address={start + min(size, LONGEST)}"
    return parse(_run("objdump", "-d", "--no-show-raw-insn", *ends, str(library)))


def parse(listing: str) -> Body:
    """A function from what `objdump -d --no-show-raw-insn` printed of it alone."""
    lines = [(int(match[1], 16), match[2]) for match in map(_INSTRUCTION.match, listing.splitlines()) if match]
    kept = [(address, text) for address, text in lines if not _FILLER.match(text)]
    number = _numbers([address for address, _ in lines], [address for address, _ in kept])
    loops = {
        target
        for address, text in kept
        if (match := _TARGET.match(text)) and match[1].startswith("j") and (target := int(match[2], 16)) <= address
        if target in number
    }
    return Body(
        tuple(_without_addresses(text, number) for _, text in kept), tuple(target % LINE for target in sorted(loops))
    )


def _numbers(every: Sequence[int], kept: Sequence[int]) -> dict[int, int]:
    """Address -> number of the instruction that is there, or that follows the filler that is there."""
    found, number = {}, 0
    for address in every:
        while number < len(kept) and kept[number] < address:
            number += 1
        found[address] = number
    return found


def _without_addresses(text: str, number: Mapping[int, int]) -> str:
    if match := _TARGET.match(text):
        target = int(match[2], 16)
        return f"{match[1]} {number[target]}" if target in number else f"{match[1]} {match[3]}"
    plain = re.sub(r"-?0x[0-9a-f]+\(%rip\)", "(%rip)", text.partition("#")[0])
    return re.sub(r"\s+", " ", plain).strip()


@lru_cache(maxsize=4)
def _symbols(library: Path) -> dict[str, tuple[int, int]]:
    """Mangled name -> address and size in bytes, of every function of a library."""
    found = {}
    for line in _run("nm", "-S", "--defined-only", str(library)).splitlines():
        parts = line.split()
        if len(parts) == 4 and parts[2] in "tTwWi":
            found[parts[3]] = int(parts[0], 16), int(parts[1], 16)
    return found


def _run(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", check=True).stdout
    except FileNotFoundError as error:
        raise CannotDisassemble(f"{command[0]} is not installed: the package binutils has it") from error
    except subprocess.CalledProcessError as error:
        raise CannotDisassemble(f"{command[0]} failed: {error.stderr.strip()[:200]}") from error
