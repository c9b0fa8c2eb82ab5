"""PyTorch's caching allocator as its documentation and comments describe it: it knows nothing of the recorder."""

import itertools
from dataclasses import dataclass

MIB = 2**20
CARD = 15_843_721_216
"""Bytes of the recorder's default card."""

PROGRAMS = {
    "three small": "a=4 b=4 c=4",
    "small at its limit": f"a={MIB}",
    "large from its limit": f"a={MIB + 1}",
    "below ten mebibytes": f"a={10 * MIB - 512}",
    "ten mebibytes": f"a={10 * MIB}",
    "rest that is split": f"a={10 * MIB + 1}",
    "rest that is not split": f"a={11 * MIB + 512}",
    "block is split and filled": f"a={20 * MIB} -a b={12 * MIB} c={8 * MIB}",
    "larger than what was cached": f"a={20 * MIB} -a b={21 * MIB}",
    "charged for a whole block": f"a={20 * MIB} -a b={19 * MIB + 1}",
    "best fit": f"a={30 * MIB} b={40 * MIB} c={50 * MIB} -a -b -c d={35 * MIB} e={35 * MIB} f={28 * MIB} g={10 * MIB}",
    "neighbours are merged": f"a={5 * MIB} b={5 * MIB} c={5 * MIB} d={5 * MIB} -b -c e={10 * MIB - 512}",
    "emptied cache": f"a={30 * MIB} -a empty b={5 * MIB} empty",
    "more than the card has": f"a={6 * 10**9} b={5 * 10**9} -a c={12 * 10**9} d={10**9}",
    "cache is given back before memory runs out": f"a={10**10} -a b={11 * 10**9}",
}
"""What happens to device memory, in order: `a=4` a tensor of so many bytes begins, if there is room, `-a` it ends, `empty`
empties the cache."""

SCRIPT = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import torch
from recorder.record import recording

def bytes_of(events):
    held = {}
    with recording() as recorded:
        for event in events.split():
            name, _, size = event.partition("=")
            if event == "empty":
                torch.cuda.empty_cache()
            elif size:
                try:
                    held[name] = torch.empty(int(size), dtype=torch.uint8, device="cuda")
                except RuntimeError:
                    assert int(size) > 10**10, "memory that the card has was refused"
            else:
                del held[name[1:]]
    found = [torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), torch.cuda.memory_allocated(),
             torch.cuda.memory_reserved(), recorded.peak, recorded.retained]
    recorded.sound()
    return found

for name, events in PROGRAMS.items():  # each in a process that had not touched CUDA before
    if not os.fork():
        print(json.dumps([name, bytes_of(events)]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, name
"""
"""Run inside a release: of each of PROGRAMS, peaks of allocated and reserved bytes, both at the end, and what passed
cudaMalloc."""


@dataclass(eq=False)
class Block:
    """Part of a segment."""

    size: int
    address: int
    held: bool = False


class Allocator:
    """Sizes are multiples of 512 bytes. Up to 1 MiB comes from segments of 2 MiB, less than 10 MiB from segments of 20 MiB,
    more from a segment of its own in multiples of 2 MiB. The smallest free block that is large enough is taken, and split
    where 512 bytes, or in large segments more than 1 MiB, are left."""

    def __init__(self) -> None:
        self.pools: dict[bool, list[list[Block]]] = {True: [], False: []}  # whether it is small -> its segments
        self.allocated = self.reserved = self.peak_allocated = self.peak_reserved = self._next = 0

    def take(self, asked: int) -> Block | None:
        """A block for a tensor; None where the card has no room."""
        size = max(512, -(-asked // 512) * 512)
        is_small = size <= MIB
        pool = self.pools[is_small]
        fitting = [(one, of) for of in pool for one in of if not one.held and one.size >= size]
        if not fitting and not (fitting := self._segment(size, is_small)):
            return None
        block, segment = min(fitting, key=lambda found: (found[0].size, found[0].address))
        rest = block.size - size
        if rest >= 512 if is_small else rest > MIB:
            segment.insert(segment.index(block) + 1, Block(rest, block.address + size))
            block.size = size
        block.held = True
        self.allocated += block.size
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        return block

    def give_back(self, block: Block) -> None:
        block.held = False
        self.allocated -= block.size
        (segment,) = (of for pool in self.pools.values() for of in pool if block in of)
        for left, right in itertools.pairwise([*segment]):
            if not left.held and not right.held:
                right.size, right.address = left.size + right.size, left.address
                segment.remove(left)

    def empty(self) -> None:
        """Returns whole free segments to the card."""
        for pool in self.pools.values():
            for segment in [of for of in pool if len(of) == 1 and not of[0].held]:
                pool.remove(segment)
                self.reserved -= segment[0].size

    def _segment(self, size: int, is_small: bool) -> list[tuple[Block, list[Block]]]:
        """The block of a new one, with that; none where the card has no room."""
        whole = 2 * MIB if is_small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        if self.reserved + whole > CARD:
            self.empty()
        if self.reserved + whole > CARD:
            return []
        segment = [Block(whole, self._next)]
        self.pools[is_small].append(segment)
        self._next += whole
        self.reserved += whole
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        return [(segment[0], segment)]


def expected(events: str) -> list[int]:
    """What SCRIPT should print of a program."""
    allocator, held = Allocator(), {}
    for event in events.split():
        name, _, size = event.partition("=")
        if event == "empty":
            allocator.empty()
        elif size:
            held[name] = allocator.take(int(size))
        else:
            block = held.pop(name[1:])
            assert block
            allocator.give_back(block)
    peaks, ends = (allocator.peak_allocated, allocator.peak_reserved), (allocator.allocated, allocator.reserved)
    return [*peaks, *ends, peaks[1], ends[1]]
