"""Are the instructions of a function the same in two wheels? By a digest of a form that compilations share: registers
and slots of the stack are numbered by first appearance, a jump counts instructions, what is called has its name, a
constant its value; fillers are left out, and may be the source line that a failed check is given."""

import functools
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import capstone
from capstone import x86

from ..store.code import Loop
from .library import Library

LINE = 64  # bytes of a line of the cache, from which the processor fetches instructions
LONGEST = 2**16  # bytes of a function that are compared
MOST_LOOPS = 40  # loops of a function that are kept, the shortest first
HOT_SHARE = 0.9  # the hot loop of a function is the smallest one that holds this share of its samples

FAILING = re.compile("torch(Check|InternalAssert)Fail|C[12]ENS_14SourceLocation")
"""What a failed check calls. The number of the line of the source where it stands is the third argument, or the third field
of a c10::SourceLocation, which is copied to the stack; FIELDS are the bytes that are made free for it there."""

FIELDS = 32


@dataclass(frozen=True)
class Function:
    """The code of a function: its address, its digest, its instructions and its loops."""

    address: int
    digest: str
    instructions: int
    loops: tuple[Loop, ...]

    def hot_loop(self, samples: Mapping[int, int]) -> Loop | None:
        """The smallest loop that holds HOT_SHARE of `samples`, address -> how many; None where none does."""
        least = HOT_SHARE * sum(samples.values())
        for loop in sorted(self.loops, key=lambda loop: loop.end - loop.begin):
            if sum(n for at, n in samples.items() if loop.begin <= at - self.address < loop.end) >= least:
                return loop
        return None


def function(library: Library, number: int, with_lines: bool = True) -> Function:
    """Of a function by its number; without lines, one that stands some lines further down in its source is the same."""
    code = _decoded(library, number)
    code = code if with_lines else _without_lines(library, code)
    begin = library.begin(number)
    jumps = {
        (target, one.address + one.size)
        for one in code
        if one.mnemonic.startswith("j") and (target := one.target) is not None and begin <= target <= one.address
    }
    shortest = sorted(sorted(jumps, key=lambda ends: ends[1] - ends[0])[:MOST_LOOPS])
    loops = [Loop(first - begin, last - begin, *_digest(library, code, (first, last))) for first, last in shortest]
    return Function(begin, *_digest(library, code, (begin, begin + library.size(number))), tuple(loops))


class _Instruction(NamedTuple):
    address: int
    size: int
    mnemonic: str
    operands: tuple[tuple[object, ...], ...]
    target: int | None


_ENGINE = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
_ENGINE.detail = _ENGINE.skipdata = True


def _decoded(library: Library, number: int) -> list[_Instruction]:
    begin = library.begin(number)
    found = []
    for one in _ENGINE.disasm(library.read(begin, min(library.size(number), LONGEST)), begin):
        no_operation = one.mnemonic in ("nop", "fnop") or one.mnemonic.endswith(" nop")
        if one.id and not no_operation and bytes(one.bytes[-2:]) != b"\x66\x90":
            is_branch = one.group(capstone.CS_GRP_JUMP) or one.group(capstone.CS_GRP_CALL)
            operands = [_operand(one, each) for each in one.operands]
            target = next((each.imm for each in one.operands if is_branch and each.type == x86.X86_OP_IMM), None)
            found.append(_Instruction(one.address, one.size, one.mnemonic, tuple(operands), target))
    return found


def _operand(one: capstone.CsInsn, operand: x86.X86Op) -> tuple[object, ...]:
    if operand.type == x86.X86_OP_REG:
        return "register", one.reg_name(operand.reg)
    if operand.type == x86.X86_OP_IMM:
        return "value", operand.imm
    place = operand.mem
    if place.base == x86.X86_REG_RIP:
        return "place", one.address + one.size + place.disp, operand.size
    names = (one.reg_name(register) if register else "" for register in (place.base, place.index))
    return "memory", *names, place.scale, place.disp, operand.size


def _without_lines(library: Library, code: Sequence[_Instruction]) -> list[_Instruction]:
    """`code` in which each number of a source line that some path takes to a call of FAILING has no value."""
    numbers = {one.address: number for number, one in enumerate(code)}
    before: dict[int, list[int]] = defaultdict(list)
    for number, one in enumerate(code):
        if number + 1 < len(code) and one.mnemonic not in ("jmp", "ret"):
            before[number + 1].append(number)
        if one.target in numbers and one.mnemonic != "call":
            before[numbers[one.target]].append(number)
    found = list(code)
    for number, one in enumerate(code):
        name = library.called(one.target) if one.mnemonic == "call" and one.target else ""
        for line in _lines(code, before, number, "SourceLocation" in name) if FAILING.search(name) else ():
            found[line] = code[line]._replace(operands=(code[line].operands[0], ("value", "line")))
    return found


def _lines(
    code: Sequence[_Instruction], before: Mapping[int, Sequence[int]], call: int, in_memory: bool
) -> Iterator[int]:
    """The instructions that write the line for a call on some path to it: into edx, or `in_memory` into a place that is read
    after it, maybe when FIELDS were made free. `before` has those after which an instruction may come."""
    left, seen, read = [call], {call}, set()
    while left:
        for number in before.get(left.pop(), ()):
            one = code[number]
            to, of = (*one.operands, ("",), ("",))[:2]
            is_number = one.mnemonic == "mov" and of[0] == "value"
            is_there = to[0] == "register" and _family(str(to[1]))[0] == "d"
            if in_memory:
                is_there = is_number and to[:-1] in read and to[-1] == 4
            if is_there and is_number:
                yield number
            elif not is_there and one.mnemonic != "call" and number not in seen:
                seen.add(number)
                left.append(number)
                if of[0] == "memory":
                    read |= {of[:-1], (*of[:-2], int(str(of[-2])) - (FIELDS if of[1] == "rsp" else 0))}


def _digest(library: Library, code: Sequence[_Instruction], ends: tuple[int, int]) -> tuple[str, int]:
    """A digest of the instructions from one address up to another in the form that is compared, and how many they are."""
    chosen = [one for one in code if ends[0] <= one.address < ends[1]]
    numbers = {one.address: number for number, one in enumerate(chosen)}
    names = _Names()
    written = []
    for one in chosen:
        parts = [one.mnemonic]
        for kind, *of in one.operands:
            if kind == "register":
                parts.append(names.register(str(of[0])))
            elif kind == "value" and one.target is None:
                parts.append(f"#{of[0]}")
            elif kind == "place":
                parts.append(_constant(library, one.mnemonic, *of))  # type: ignore[arg-type]
            elif kind == "memory":
                parts.append(names.memory(*of))  # type: ignore[arg-type]
        if one.target is not None:
            parts.append(_jump(library, one.target, numbers, code))
        written.append(" ".join(parts))
    return hashlib.blake2b("\n".join(written).encode(), digest_size=8).hexdigest(), len(written)


def _jump(library: Library, target: int, numbers: Mapping[int, int], code: Sequence[_Instruction]) -> str:
    if target in numbers:
        return f">{numbers[target]}"
    if code and code[0].address <= target <= code[-1].address:
        return ">outside"
    return ">" + library.called(target).partition(".cold")[0]


def _constant(library: Library, mnemonic: str, address: int, size: int) -> str:
    """What code reads at a fixed place: the name of an import, a constant's bytes, else the section."""
    section = library.section_at(address)
    if section == ".rodata" and mnemonic != "lea":
        return "=" + library.read(address, size).hex()
    return "@" + (library.imported(address) or section)


class _Names:
    """Numbers registers and slots of the stack in the order in which they appear."""

    def __init__(self) -> None:
        self._registers: dict[str, int] = {}
        self._slots: dict[int, int] = {}

    def register(self, name: str) -> str:
        family, width = _family(name)
        if family == "sp":
            return "sp"
        kind = "v" if family[0] == "v" else "g"
        return f"{kind}{self._registers.setdefault(family, len(self._registers))}{width}"

    def memory(self, base: str, index: str, scale: int, away: int, size: int) -> str:
        names = [self.register(each) if each else "-" for each in (base, index)]
        place = f"slot{self._slots.setdefault(away, len(self._slots))}" if names[0] == "sp" else str(away)
        return f"[{names[0]},{names[1]},{scale},{place}]{size}"


@functools.cache
def _family(name: str) -> tuple[str, str]:
    """A register's family and width: `eax` -> ("a", "d"), `xmm3` -> ("v3", "x")."""
    if match := re.fullmatch(r"(r|e)?([abcd])x|([abcd])[lh]", name):
        return match[2] or match[3], {"r": "q", "e": "d"}.get(match[1] or "", "b" if match[3] else "w")
    if match := re.fullmatch(r"(r\d+)([dwb]?)", name):
        return match[1], match[2] or "q"
    if match := re.fullmatch(r"([re])?(si|di|bp|sp)(l)?", name):
        return match[2], {"r": "q", "e": "d"}.get(match[1] or "", "b" if match[3] else "w")
    if match := re.fullmatch(r"([xyz])mm(\d+)", name):
        return f"v{match[2]}", match[1]
    return name, ""
