"""Are the recorder's bytes those of PyTorch's caching allocator, worked out by hand and by a model of our own?

    python -m tools.exact env/recorder/v2.15.0-py3.11 env/recorder/v1.8.1-py3.9

For each small program of exact_programs.py, `EXPECTED` says which tensors live when. A model of the caching allocator
in this file, which knows nothing of the recorder and of no wheel, turns that into allocated and reserved bytes. The
release says its own on the recorder, and the recorder says what passed cudaMalloc. All must agree to the byte. Exit
code 1 where they do not.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version

from recorder.build import build

ROOT = Path(__file__).resolve().parents[1]
MIB = 2**20
CARD_BYTES = 15_843_721_216
WORKSPACE = 8_519_680
"""Bytes of cuBLAS's workspace before sm_90: 2 of 4 MiB and 8 of 16 KiB. Source: PyTorch's chooseCublasWorkspaceSize."""

S = 1000 * 1000 * 4

EXPECTED = {
    "three_small": "a=4 b=4 c=4",
    "small_at_its_limit": f"a={MIB}",
    "large_from_its_limit": f"a={MIB + 1}",
    "below_ten_mebibytes": f"a={10 * MIB - 512}",
    "ten_mebibytes": f"a={10 * MIB}",
    "rest_that_is_split": f"a={10 * MIB + 1}",
    "rest_that_is_not_split": f"a={11 * MIB + 512}",
    "block_is_split_and_filled": f"a={20 * MIB} -a b={12 * MIB} c={8 * MIB}",
    "larger_than_what_was_cached": f"a={20 * MIB} -a b={21 * MIB}",
    "charged_for_a_whole_block": f"a={20 * MIB} -a b={19 * MIB + 1}",
    "best_fit": f"a={30 * MIB} b={40 * MIB} c={50 * MIB} -a -b -c d={35 * MIB} e={35 * MIB} f={28 * MIB} g={10 * MIB}",
    "neighbours_are_merged": f"a={5 * MIB} b={5 * MIB} c={5 * MIB} d={5 * MIB} -b -c e={10 * MIB - 512}",
    "emptied_cache": f"a={30 * MIB} -a empty b={5 * MIB} empty",
    "more_than_the_card_has": f"a={6 * 10**9} b={5 * 10**9} -a c={12 * 10**9} d={10**9}",
    "cache_is_given_back_before_memory_runs_out": f"a={10**10} -a b={11 * 10**9}",
    "from_the_host": f"a={S}",
    "chain": f"a={S} b={S} c={S} -b d={S} -c",
    "in_place": f"a={S}",
    "views": f"a={S}",
    "casts": f"a={S} b={S // 2} c={S * 2} d={S // 4}",
    "comparison": f"a={S} b={S} c={S // 4} d={S} -c",
    "concatenation": "a=1200000 b=2000000 c=3200000 d=2400000",
    "indexing": f"a={S} i=4000 b=2000000 c=2000000 d=2000000",
    "softmax": f"a={S} b={S} c={S}",
    "layer_norm": f"a={S} b={S} m=4000 r=4000 -m -r",
    "sum_of_rows": f"a={S} b=4000",
    "dropout": f"a={S} b={S} m={S // 4}",
    "gelu_forward_and_backward": f"a={S} g={S} b={S} d={S} -b",
    "product": f"a={MIB} b={MIB} c={MIB} workspace",
    "products_one_after_the_other": f"a={S} b={S} workspace c={S} workspace -b b={S} workspace -c",
    "linear_training_step": f"w={S} x=512000 g=512000 y=512000 workspace d={S} workspace_of_backward -y -d "
    f"y=512000 workspace d={S} workspace_of_backward -y -d",
    "batch_of_products": "a=1920000 b=1920000 c=2880000 workspace",
    "sgd_with_momentum": f"w={S} g={S} m={S} -g g={S} -g",
}
"""Program -> what happens to device memory, in order: `a=4` a tensor of so many bytes begins, `-a` it ends, `workspace` is a
product, `workspace_of_backward` one in the thread of a backward pass, `empty` empties the cache."""


class Block:
    """Part of a segment: its bytes, whether a tensor holds it, and its neighbours."""

    def __init__(self, size: int, address: int, pool: str) -> None:
        self.size, self.address, self.pool = size, address, pool
        self.held = False
        self.before: Block | None = None
        self.after: Block | None = None


class Allocator:
    """PyTorch's caching allocator as its documentation and comments describe it, in the sizes of one card.

    Sizes are multiples of 512 bytes. Up to 1 MiB comes from segments of 2 MiB, less than 10 MiB from segments of 20
    MiB, more from a segment of its own in multiples of 2 MiB. The smallest free block that is large enough is taken,
    and split where 512 bytes, or in large segments more than 1 MiB, are left.
    """

    def __init__(self, card: int) -> None:
        self.card = card
        self.blocks: list[Block] = []
        self.allocated = self.reserved = self.peak_allocated = self.peak_reserved = 0
        self._next = 0

    def take(self, asked: int) -> Block | None:
        """A block for a tensor; None where the card has no room."""
        size = max(512, -(-asked // 512) * 512)
        pool = "small" if size <= MIB else "large"
        block = self._cached(size, pool) or self._segment(size, pool)
        if block is None:
            return None
        rest = block.size - size
        if rest >= 512 if pool == "small" else rest > MIB:
            self._split(block, size)
        block.held = True
        self.allocated += block.size
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        return block

    def give_back(self, block: Block) -> None:
        block.held = False
        self.allocated -= block.size
        for left, right in ((block.before, block), (block, block.after)):
            if left and right and not left.held and not right.held:
                self._merge(left, right)
                block = left

    def empty(self) -> None:
        """Returns whole free segments to the card."""
        for block in [b for b in self.blocks if not (b.held or b.before or b.after)]:
            self.blocks.remove(block)
            self.reserved -= block.size

    def _cached(self, size: int, pool: str) -> Block | None:
        fitting = [b for b in self.blocks if b.pool == pool and not b.held and b.size >= size]
        return min(fitting, key=lambda b: (b.size, b.address), default=None)

    def _segment(self, size: int, pool: str) -> Block | None:
        whole = 2 * MIB if pool == "small" else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        if self.reserved + whole > self.card:
            self.empty()
        if self.reserved + whole > self.card:
            return None
        block = Block(whole, self._next, pool)
        self._next += whole
        self.blocks.append(block)
        self.reserved += whole
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        return block

    def _split(self, block: Block, size: int) -> None:
        rest = Block(block.size - size, block.address + size, block.pool)
        rest.before, rest.after = block, block.after
        if block.after:
            block.after.before = rest
        block.size, block.after = size, rest
        self.blocks.append(rest)

    def _merge(self, left: Block, right: Block) -> None:
        left.size += right.size
        left.after = right.after
        if right.after:
            right.after.before = left
        self.blocks.remove(right)


class Bytes(NamedTuple):
    """What a program is told to have taken: the allocator's peaks, and what it holds at the end."""

    peak_allocated: int
    peak_reserved: int
    allocated: int
    reserved: int


def expected(events: str, version: Version) -> Bytes:
    """The bytes of `EXPECTED`'s events on a release, from the model."""
    allocator = Allocator(CARD_BYTES)
    held: dict[str, Block | None] = {}
    for event in events.split():
        name, _, size = event.partition("=")
        if size:
            held[name] = allocator.take(int(size))
        elif event == "empty":
            allocator.empty()
        elif event in ("workspace", "workspace_of_backward"):
            _workspace(allocator, held, version, event)
        else:
            block = held.pop(name[1:])
            assert block
            allocator.give_back(block)
    return Bytes(allocator.peak_allocated, allocator.peak_reserved, allocator.allocated, allocator.reserved)


def _workspace(allocator: Allocator, held: dict[str, Block | None], version: Version, of_thread: str) -> None:
    """A product: cuBLAS's workspace is PyTorch's from 2.0 on, kept for each thread's handle from its first product on, and
    2.15 gives it back."""
    if version < Version("2.0") or of_thread in held:
        return
    block = allocator.take(WORKSPACE)
    assert block
    if version < Version("2.15"):
        held[of_thread] = block
    else:
        allocator.give_back(block)


def differences(environment: Path) -> list[str]:
    """One line for each program of which the release, the recorder and the model do not say the same."""
    built = build(environment.resolve())
    version = Version(Version(built.wheel.version).base_version)
    surroundings = {**built.surroundings(), "PYTHONPATH": str(ROOT)}
    command = [str(environment / "bin" / "python"), str(ROOT / "tools" / "exact_programs.py")]
    told = json.loads(subprocess.run(command, env=surroundings, check=True, capture_output=True, text=True).stdout)
    assert told.keys() == EXPECTED.keys()
    lines = []
    for name, answer in told.items():
        if "failed" in answer or "refused" in answer:
            lines.append(f"{name}: {answer.get('failed') or answer['refused']}")
            continue
        want = expected(EXPECTED[name], version)
        lines += [
            f"{name}: {kind} is {answer[kind]:,} and should be {value:,}"
            for kind, value in [*want._asdict().items(), ("peak_malloc", want.peak_reserved), ("malloc", want.reserved)]
            if answer[kind] != value
        ]
    print(f"torch {version}: {len(told)} programs, {len(lines)} differences")
    return [f"torch {version}: {line}" for line in lines]


def main() -> None:
    """Compares on the environments that are named."""
    found = [line for path in sys.argv[1:] for line in differences(Path(path))]
    print("\n".join(found))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
