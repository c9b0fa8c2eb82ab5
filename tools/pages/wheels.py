"""docs/generated/facts.md: what the wheels of each release bring."""

from __future__ import annotations

from torch_history.releases.axis import Axis
from torch_history.releases.wheels import Wheel, abi, size

PAGE = """\
# What the wheels bring

Made by `make document` from `wheels.json`, which `python -m tools.wheel_files` reads from the files of installed
releases, without running them. Sizes are those of torch with all packages that `releases.lock` pins, NumPy included, in
powers of ten. The architectures are what `torch.cuda.get_arch_list()` answers. `torch-history facts OLD NEW` says what
differs between two releases.

"""

COLUMNS = (
    "release", "Python", "download", "installed", "torch alone", "CUDA", "cuDNN", "NCCL", "Triton", "NumPy", "glibc",
    "C++11 ABI", "GPU architectures",
)  # fmt: skip


def document(known: dict[str, Wheel], axis: Axis) -> str:
    """A page with a row for each release, oldest first; one that was not read is named."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|---|---:|---:|---:|" + "---|" * (len(COLUMNS) - 5)]
    for release in axis.releases:
        wheel = known.get(release.tag)
        if wheel is None:
            lines.append(f"| {release.tag} | not read |" + " |" * (len(COLUMNS) - 2))
            continue
        has = wheel.versions
        cells = [
            release.tag, wheel.python, size(wheel.download), size(wheel.installed), size(wheel.packages[0].installed),
            wheel.cuda or "none", has.get("nvidia-cudnn", "inside torch"), has.get("nvidia-nccl", "inside torch"),
            has.get("triton", "none"), has.get("numpy", "none"), wheel.glibc or "not known", abi(wheel.cxx11_abi),
            " ".join(wheel.architectures),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return PAGE + "\n".join(lines) + "\n"
