"""How much memory do training steps take? The recorder is asked, and two programs that estimate the same without a GPU.

    python -m research.training_peaks FOLDER 2.6.0 2.14.1

The two are PyTorch's mem_tracker and FakeGPU, whose checkout is in FOLDER. Each release is installed (3 GiB) and removed
again. What was said is kept in docs/generated/training-peaks.json, beside the page.
"""

import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from packaging.version import Version

from recorder.build import Built
from torch_history.measuring.subjects import FOLDER
from torch_history.measuring.upgrading.counted import UNLIMITED, Process, find
from torch_history.releases.environments import prune
from torch_history.system.errors import UserError
from torch_history.system.files import write_atomically

from .recorded import GENERATED, ROOT, installed, kept, printed

STEPS = ROOT / "research" / "training_steps.py"
PAGE = GENERATED / "training-peaks.md"
KEPT = PAGE.with_suffix(".json")
CARD = find("a100")
NAMES = ("allocated", "reserved")
NEAR = 0.05
"""Share of the recorder's bytes from which a difference needs a reason."""

REASONS = {
    "": "cuBLAS's workspace and the rests of blocks are not counted. Without them the recorder is within 5% of it",
    "LSTM, Adam, no cuDNN": "on a GPU Adam takes foreach, and a for-loop where tensors are of these programs' classes. "
    "With a for-loop, and without workspace and rests, the recorder is within 5% of it",
}
"""Of which architecture -> why less is allocated; of none where what the recorder says without these explains it."""

STEP = """
import sys
from pathlib import Path
import torch
from benchmarks import own
from measure.fits import CALLS
def call(path, size, made="cpu", after=lambda: None):
    workload = own.load(Path(path), Path(path))
    with torch.device(made):
        inputs = workload.inputs(size, "cuda", 1)
    step = workload.variants["step"](inputs)
    for _ in range(CALLS):
        step()
        after()
"""

REQUESTED = "recorder, requested, no workspace"
PROGRAMS = {
    "recorder": "",
    REQUESTED: f"""
import os
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":0:0"
{STEP}
call(*sys.argv[1:3])
print(torch.cuda.memory_stats()["requested_bytes.all.peak"], torch.cuda.max_memory_reserved())
""",
    "mem_tracker": f"""{STEP}
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
with FakeTensorMode(), MemTracker() as tracker:
    call(*sys.argv[1:3], made="cuda", after=tracker.reset_mod_stats)
print(max(of["Total"] for device, of in tracker.get_tracker_snapshot("peak").items() if device.type == "cuda"))
""",
    "FakeGPU 1.5.5": f"""
import sys
sys.path.insert(0, sys.argv[3])
import fakegpu
assert fakegpu.__version__ == "1.5.5", "Error: this is " + fakegpu.__version__
fakegpu.init(runtime="fakecuda", profile="a100", device_count=1)
{STEP}
call(*sys.argv[1:3])
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
""",
}
"""Name -> what asks it: it prints the bytes allocated at the peak, and perhaps those reserved."""

Told = dict[str, Any]
"""Of NAMES the bytes at the peak, or the two between which they lie, or `refused`: why there are none; `seconds` of a
processor."""

Known = Mapping[str, Mapping[str, Mapping[str, Told]]]
"""Release -> architecture -> program -> what it says."""


def asked(built: Built, size: str, program: str, fakegpu: str) -> Told:
    """What a program says of an architecture. The recorder says it of a device that has always finished, and of one that
    finishes only what the host waits for."""
    told: Told = {}
    before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    try:
        if program == "recorder":
            with Process(built, CARD, STEPS, STEPS) as process:
                ends = process.ends("step", size, None, 0, UNLIMITED)
            told = {name: sorted({end[f"peak_{name}"] for end in ends}) for name in NAMES}
        else:
            said = printed(built, PROGRAMS[program], str(STEPS), size, fakegpu, card=CARD.card.key).split()
            told = {name: [int(number)] for name, number in zip(NAMES, said, strict=False)}
    except UserError as error:
        told["refused"] = re.sub(r".* cannot be counted on [\d.]+ ", "", str(error))
    except subprocess.CalledProcessError as error:
        told["refused"] = [line for line in error.stderr.splitlines() if "Error" in line][-1][:200]
    return {**told, "seconds": round(sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before, 1)}


def rows(known: Known) -> Iterator[tuple[str, str, str, Told, Mapping[str, Told]]]:
    """Architecture, release, program, what it says and what all say there, without refusals of what is requested."""
    for size in next(iter(known.values()), {}):
        for release in sorted(known, key=Version):
            for program, of in known[release][size].items():
                if program != REQUESTED or "refused" not in of:
                    yield size, release, program, of, known[release][size]


def difference(of: Told, other: Told, name: str) -> float:
    """By what share bytes differ from the other's, or the nearest of its range; 0 where one of the two says none."""
    if name not in of or name not in other:
        return 0.0
    nearest = min(max(of[name][0], other[name][0]), other[name][-1])
    return float(of[name][0] / nearest - 1)


def reasons(size: str, of: Told, by: Mapping[str, Told]) -> Iterator[str]:
    """Why bytes are refused, or differ from the recorder's by more than NEAR; nobody asks why of what is requested."""
    if "refused" in of:
        yield of["refused"]
    for name in NAMES:
        if of is not by[REQUESTED] and abs(difference(of, by["recorder"], name)) > NEAR:
            is_asked = name in by[REQUESTED] and abs(difference(of, by[REQUESTED], name)) <= NEAR
            known = REASONS.get("" if is_asked else size) if name == "allocated" else None
            yield f"peak {name}: {known or 'unexplained'}"


def page(known: Known) -> str:
    """Everything as Markdown."""
    lines = [
        "# Peaks of training steps, without a GPU",
        "",
        "Made by `python -m research.training_peaks`; not edited by hand. Three steps of `research/training_steps.py`,",
        f"with inputs, weights and the optimizer's state, on {CARD.title}.",
        "**No GPU was asked.** Per cent say how far from the [recorder](../recorder.md). Where it says two numbers, a GPU's",
        "lies between them. Seconds are a processor's. mem_tracker has the recorder for its CUDA; FakeGPU computes. To find",
        "reasons, the recorder is asked without cuBLAS's workspace, and for the bytes of tensors in place of blocks.",
        "",
        "| architecture | program | peak allocated | peak reserved | releases | seconds |",
        "|---|---|---|---|---|---|",
    ]
    table: dict[str, list[tuple[str, str]]] = {}
    places: dict[str, dict[str, None]] = {}
    for size, release, program, of, by in rows(known):
        cells = " | ".join(_cell(of, by["recorder"], name) for name in NAMES)
        table.setdefault(f"{size} | {program} | {cells}", []).append((release, f"{of['seconds']:.0f}"))
        for why in reasons(size, of, by):
            places.setdefault(why, {})[f"{program} of {size}"] = None
    lines += [f"| {row} | {' | '.join(map(', '.join, zip(*of, strict=True)))} |" for row, of in table.items()]
    lines += ["", f"## What is refused, or differs by more than {NEAR:.0%}", ""]
    return "\n".join(lines + [f"- {why} ({'; '.join(at)})" for why, at in places.items()]) + "\n"


def _cell(of: Told, recorder: Told, name: str) -> str:
    if name not in of:
        return "refused" if "refused" in of else "not told"
    share = f" ({difference(of, recorder, name):+.1%})" if of is not recorder and name in recorder else ""
    return " to ".join(f"{number:,}" for number in of[name]) + share


def main() -> None:
    """Asks release after release; what was asked stays where this is interrupted."""
    known = kept(KEPT)
    for release in sys.argv[2:]:
        built = installed(release)
        with Process(built, CARD, STEPS, STEPS) as process:
            sizes = process.offer["sizes"]
        for size in sizes:
            of = {program: asked(built, size, program, sys.argv[1]) for program in PROGRAMS}
            print(release, size, json.dumps(of), flush=True)
            known = kept(KEPT)  # another of these programs may have ended meanwhile
            known.setdefault(release, {})[size] = of
            write_atomically(KEPT, json.dumps(known, indent=1) + "\n")
        prune(ROOT / "env" / FOLDER, f"v{release}".__eq__)
    write_atomically(PAGE, page(known))


if __name__ == "__main__":
    main()
