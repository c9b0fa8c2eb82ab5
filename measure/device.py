"""Which device is measured? A GPU if there is one, else the CPU; TORCH_HISTORY_DEVICE overrides, and may name the recorder.

The question is answered without touching CUDA: asv imports the suite once and forks, and a process forked after CUDA
was initialised cannot use it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch

from contract.architectures import runs
from contract.carried import CARRIED, refusal
from contract.request import Request

from . import THREADS
from .facts import mark

DEFAULT_SIZES = {"cpu": "small", "cuda": "paper", "recorder": "small"}
"""A CPU takes minutes for what a GPU does in milliseconds, so the size that is measured unasked differs."""

WHEELS = Path(__file__).resolve().parents[1] / "wheels.json"
"""What the wheels on the package index hold, by release, oldest first."""

LEAST_CAPABILITY = {("intersection", "compiled"): "sm_70", ("warm_up", "compiled"): "sm_70"}
"""Question and variant -> the oldest GPU that it runs on; all others run wherever the wheel has code. torch.compile makes
code for GPUs with Triton, and PyTorch refuses to for older ones. Source: `GPUTooOldForTriton` in torch/_inductor/exc.py of
2.11.0 and 2.15.0, and the same sentence in torch/_inductor/scheduler.py of 2.0.1."""


class DeviceUnavailable(Exception):
    """The device that was asked for cannot run this release; the text is one sentence that says why."""


class NotMeasured(Exception):
    """What was asked for may well run, and this suite cannot measure it; the text says why, after `because`."""


def cannot_fork() -> bool:
    """Whether this process was forked from one that had used CUDA, and cannot use it any more. Importing torch 1.12.0 asks
    how many GPUs there are (torch/_prims/utils.py), and that is enough."""
    return bool(getattr(torch.cuda, "_is_in_bad_fork", bool)())


def require_fork() -> None:
    """Raises NotMeasured in a forked process that cannot use CUDA."""
    if cannot_fork():
        raise NotMeasured(f"importing torch {torch.__version__} uses CUDA, after which no process that is forked can")


def name() -> str:
    """`cuda`, `cpu` or `recorder`. Raises DeviceUnavailable where TORCH_HISTORY_DEVICE names another."""
    if problem := Request.of(os.environ).problem:
        raise DeviceUnavailable(problem)
    return _named()


def is_cpu() -> bool:
    """Whether the CPU is measured. A device that does not exist is none; `name` refuses it."""
    return _named() == "cpu"


def _named() -> str:
    return Request.of(os.environ).device or ("cuda" if gpu_present() else "cpu")


def gpu_present() -> bool:
    """Whether the system shows an NVIDIA GPU, asked of the driver's files and not of CUDA."""
    return Path("/dev/nvidia0").exists() or any(Path("/proc/driver/nvidia").glob("gpus/*"))


def asked_sizes() -> list:
    """The sizes to measure: TORCH_HISTORY_SIZES (comma-separated), else the device's default."""
    return list(Request.of(os.environ).sizes) or [DEFAULT_SIZES[name()]]


def wanted(what: str) -> bool:
    """Whether `times` or `counts` are measured: both, unless TORCH_HISTORY_ONLY names one of them."""
    return Request.of(os.environ).only in ("", what)


def ready(device: str) -> None:
    """Prepares this process to measure on `device`: fixes the threads, and on a GPU starts CUDA. Raises
    DeviceUnavailable where there is no usable GPU, or the wheel holds no code for it, and NotMeasured where CUDA cannot
    be started. On the recorder nothing is asked, because a process that asked could not fork the ones that count."""
    torch.set_num_threads(THREADS)
    if device != "cuda":
        return
    require_fork()
    if not torch.cuda.is_available():
        raise DeviceUnavailable(f"torch {torch.__version__} sees no usable GPU")
    require_code_for("sm_{}{}".format(*torch.cuda.get_device_capability()))
    torch.cuda.init()


def require_kernels() -> None:
    """Raises DeviceUnavailable where kernels are launched on the GPU and do not run: a sum that is read back is wrong."""
    if float(torch.full((1000,), 3.0, device="cuda").sum()) != 3000.0:
        raise DeviceUnavailable("kernels do not run on this GPU: a sum of 1,000 threes that was read back is no 3,000")


def require_code_for(capability: str) -> None:
    """Raises DeviceUnavailable where the wheel holds no code for `capability` ("sm_75"). The question needs no GPU, but a
    process that asked it cannot fork one that uses CUDA."""
    archs = torch._C._cuda_getArchFlags().split()
    if not runs(capability, archs):
        raise DeviceUnavailable(
            f"the wheel of torch {torch.__version__} carries no code for this GPU ({capability}), only for "
            f"{', '.join(archs)}; {_wheels_for(capability)}"
        )


def _wheels_for(capability: str) -> str:
    """Which releases' wheels run on `capability`, in words."""
    known = json.loads(WHEELS.read_text(encoding="utf-8"))
    able = [tag for tag, wheel in known.items() if runs(capability, wheel["architectures"])]
    if not able:
        return "no wheel of the package index runs on it, so measure on the CPU: --device cpu"
    first, last = able[0][1:], able[-1][1:]
    which = f"of {first} and later" if able[-1] == [*known][-1] else f"from {first} to {last}"
    return f"wheels of the package index {which} run on it"


def require_capability(question: str, variant: str) -> None:
    """Raises DeviceUnavailable where this process's GPU is too old for that variant of that question."""
    least = LEAST_CAPABILITY.get((question, variant), "sm_0")
    have = "sm_{}{}".format(*torch.cuda.get_device_capability())
    if int(have[3:]) < int(least[3:]):
        raise DeviceUnavailable(
            f"torch.compile needs a GPU of {least} or newer, on which Triton is supported, and this one is {have}; the "
            "other variants run on it, and this one on the CPU: --device cpu"
        )


def require_own(question: str, variant: str, size: str, device: str) -> None:
    """Raises DeviceUnavailable where this process runs in the environment of a carried release, whose mark says what it
    cannot answer."""
    carried = mark().get(CARRIED)
    if carried and (why := refusal(carried, question, variant, size, device)):
        raise DeviceUnavailable(why)


def synchronize(device: str) -> None:
    """Waits until everything queued on `device` has run; a CPU has nothing queued."""
    if device == "cuda":
        torch.cuda.synchronize()
