"""Are the largest steps of the history there without this suite? Each is looked for again by a script of plain torch.

`python -m research.confirm` runs a step's script on the release before it and the one after, in turns, and puts a table into
docs/generated/confirmed.md. Nothing of the suite runs in there: memory is the process's own peak as the kernel has it,
allocations of large tensors are page faults, operators are events of torch's profiler.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from pathlib import Path

from asv.repo import get_repo
from rich.progress import track

from torch_history.analysis.compare import choose_machine, tell
from torch_history.analysis.series import history
from torch_history.analysis.steps import Step, costliest, largest, of_history
from torch_history.measuring.session import load_suite
from torch_history.releases.environments import ReleaseEnvironment
from torch_history.store.launches import read_on_axis

from .page import write_into

PAGE = Path(__file__).resolve().parents[1] / "docs" / "generated" / "confirmed.md"
COMMAND = "python -m research.confirm"
LANES = ("release-py3.11", "release-py3.9")
"""The first is the one of which README.md tells."""

MOST = 12
"""Steps that are looked for again, with those that README.md shows."""

TURNS = 3
"""Processes of each release; the least number of each counts, since what disturbs only adds."""

CLOSE = 0.5
"""A step is confirmed where the script's factor differs from the suite's by at most half of it, in logarithms: a script has
other sizes of a result, another allocator's view and a machine of another day."""

_OVERLAP = """
import ctypes, resource, torch
torch.set_num_threads(1)

def overlap(boxes, others):
    x_min, y_min, x_max, y_max = boxes.split(1, dim=1)
    left, top, right, bottom = others.split(1, dim=1)
    width = (torch.min(x_max, right.t()) - torch.max(x_min, left.t())).clamp(min=0)
    height = (torch.min(y_max, bottom.t()) - torch.max(y_min, top.t())).clamp(min=0)
    return width * height

corners = [torch.rand(count, 2) * 600 for count in (30_000, 500)]
boxes, others = (torch.cat([corner, corner + 1 + torch.rand_like(corner) * 400], 1) for corner in corners)
"""

_SCRIPTED = """
call = torch.jit.script(overlap)
for _ in range(4):
    call(boxes, others)
"""

_LEAST = """
import time

def least(call, calls):
    found = []
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return min(found)
"""

_PEAK = """
def kilobytes(field):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(field))

def peak(call):
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew: proc(5)
    before = kilobytes("VmRSS")
    result = call()
    return kilobytes("VmHWM") - before
"""

_CALLS = """
import time, torch
from torch import nn
torch.set_num_threads(1)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolutions = nn.ModuleList(
            [nn.Conv2d(3, 64, 3, 2, 1), nn.Conv2d(64, 64, 3, 2, 1), nn.Conv2d(64, 64, 3, 1, 1)]
        )
        self.norms = nn.ModuleList([nn.BatchNorm2d(64), nn.BatchNorm2d(64), nn.BatchNorm2d(64)])
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        for convolution, norm in zip(self.convolutions, self.norms):
            y = norm(convolution(x))
            x = torch.relu(y + x if y.shape == x.shape else y)
        return self.linear(x.mean([2, 3]))

network = Network().eval()
sides = (136, 144, 160, 176, 192) if size == "changing shapes" else (160,)
pictures = [torch.rand(1, 3, side, side) for side in sides]

def seconds(call):
    found = []
    for i in range(50):
        begin = time.perf_counter()
        call(pictures[i % len(pictures)])
        found.append(time.perf_counter() - begin)
    return found
"""

_ROWS = """
import numpy, torch
count, width = (int(number.replace(",", "")) for number in size.split(" x "))
rows = [numpy.zeros(width, numpy.float32) for _ in range(count)]

def operators(call):
    with torch.autograd.profiler.profile() as profile:
        call()
    return len(profile.function_events)
"""

SCRIPTS = {
    ("intersection", "time", "scripted"): f"""{_OVERLAP}{_SCRIPTED}{_LEAST}
print(least(lambda: call(boxes, others), 10))
""",
    ("intersection", "time", "traced"): f"""{_OVERLAP}{_LEAST}
call = torch.jit.trace(overlap, (boxes, others))
for _ in range(4):
    call(boxes, others)
print(least(lambda: call(boxes, others), 10))
""",
    ("intersection", "peak_memory", "scripted"): f"""{_OVERLAP}{_SCRIPTED}{_PEAK}
print(peak(lambda: call(boxes, others)))
""",
    ("intersection", "allocations", "scripted"): f"""{_OVERLAP}{_SCRIPTED}
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # no huge pages: prctl(2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
call(boxes, others)
pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(round(pages * resource.getpagesize() / (4 * len(boxes) * len(others)), 1))
""",
    ("batching", "time", "tensor_of_lists"): f"""{_ROWS}{_LEAST}
lists = [row.tolist() for row in rows]
print(least(lambda: torch.tensor(lists), 10))
""",
    ("batching", "operators", "cat_rows"): f"""{_ROWS}
print(operators(lambda: torch.cat([torch.from_numpy(row) for row in rows]).view(count, width)))
""",
    ("batching", "operators", "stack_rows"): f"""{_ROWS}
print(operators(lambda: torch.stack([torch.from_numpy(row) for row in rows])))
""",
    ("saved_tensors", "peak_memory", "checkpoint"): f"""{_PEAK}
import torch
from torch.utils.checkpoint import checkpoint
torch.set_num_threads(1)
x = torch.rand(9_000_000, requires_grad=True)  # 36 MB: above 32 MiB the C library maps each block apart

def squares(x):
    y = x * x
    return y * y

def loop(turns):
    total = 0.0
    for _ in range(turns):
        total = total + checkpoint(squares, x, use_reentrant=False, preserve_rng_state=False)
    total.sum().backward()

loop(2)
print(peak(lambda: loop(120)))
""",
    ("saved_tensors", "time", "subprocess_start"): f"""{_LEAST}
import os, torch

def call():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)

print(least(call, 100))
""",
    ("selection", "time", "where_product"): f"""{_LEAST}
import torch
torch.set_num_threads(1)
layout, percent, _, _, uses = size.split()
x = torch.rand(5_000, 16) if layout == "rows" else torch.rand(80_000)
mask = torch.rand(len(x), *[1] * (x.dim() - 1)) < int(percent) / 100

def call():
    for _ in range(int(uses)):
        x * mask

print(least(call, 30))
""",
    ("selection", "time", "index_reused"): f"""{_LEAST}
import torch
torch.set_num_threads(1)
layout, percent, _, _, uses = size.split()
x = torch.rand(5_000, 16) if layout == "rows" else torch.rand(80_000)
index = torch.nonzero(torch.rand(len(x)) < int(percent) / 100).squeeze(1)

def call():
    for _ in range(int(uses)):
        x[index]

print(least(call, 30))
""",
    ("warm_up", "worst_over_median", "traced"): f"""{_CALLS}
import statistics
with torch.no_grad():
    found = seconds(torch.jit.trace(network, pictures[0], check_trace=False))
print(max(found[1:]) / statistics.median(found[10:]))
""",
    ("warm_up", "second_call", "frozen"): f"""{_CALLS}
with torch.no_grad():
    call = torch.jit.freeze(torch.jit.script(network))
    if hasattr(torch.jit, "optimize_for_inference"):
        call = torch.jit.optimize_for_inference(call)
    print(seconds(call)[1])
""",
}
"""Question, metric and variant -> the script that looks for a step of it; it finds the variant's size in `size`."""


def main() -> None:
    conf, axis = load_suite(PAGE.parents[2])
    results = Path(conf.results_dir)
    machine = choose_machine(results, None, "")
    stored = list(read_on_axis(results, machine, axis))
    of_lanes = [of_history(history(one for one in stored if one.environment == lane), axis) for lane in LANES]
    steps = list(dict.fromkeys([*largest(itertools.chain(*of_lanes))[:MOST], *costliest(of_lanes[0])]))
    sentences = tell(steps, history(stored), results, machine)
    lines = [
        "| what the suite says | its factor | the script's numbers | its factor | confirmed |",
        "|---|---:|---:|---:|---|",
    ]
    for step, sentence in track(list(zip(steps, sentences, strict=True)), description="steps"):
        said = f"Python {step.series.environment.rpartition('py')[2]}, {sentence}"
        lines.append(f"| {said} | {step.ratio or math.nan:.3g} | {cells(step, by_script(step, conf))} |")
    write_into(PAGE, COMMAND, "\n".join([*lines, ""]))


def by_script(step: Step, conf: object) -> tuple[float, float] | None:
    """The least number that the script of a step prints on the release before it and on the one after; None without one."""
    series = step.series
    variant, size = (parameter.strip("'") for parameter in series.parameters)
    script = SCRIPTS.get((series.question, series.metric, variant))
    if script is None:
        return None
    environment = ReleaseEnvironment(conf, series.environment.rpartition("py")[2], {}, {})
    numbers: dict[str, list[float]] = {step.old: [], step.new: []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.py")  # TorchScript wants to read its source
        path.write_text(f"size = {size!r}\n{script}", encoding="utf-8")
        for _ in range(TURNS):
            for tag, found in numbers.items():
                environment.install_project(conf, get_repo(conf), tag)
                found.append(float(environment.run(["-W", "ignore", str(path)]).split()[-1]))
    return min(numbers[step.old]), min(numbers[step.new])


def cells(step: Step, numbers: tuple[float, float] | None) -> str:
    """The script's numbers, their factor, and whether it confirms the step's."""
    if numbers is None or not step.ratio:
        return " | | no script"
    old, new = numbers
    confirmed = abs(math.log(new / old / step.ratio)) <= CLOSE * abs(math.log(step.ratio))
    return f"{old:.4g} → {new:.4g} | {new / old:.3g} | {'yes' if confirmed else '**no**'}"


if __name__ == "__main__":
    main()
