"""What does it take to start: to import torch, to call a first operator, to compile at first, to start a worker?

Each variant is measured once in a process of its own, because a process can import and call first only once. This module is
imported before torch there, so it imports little: what it imported, torch would no longer have to.
"""

from __future__ import annotations

import sys

from . import Unavailable, WrongResult

METRICS = ("start_time", "start_cpu_time", "start_memory", "start_resident")

sizes: dict = {"files cached": {}}
"""The system has the files in its memory, because a process before has read them."""

SIDE = 64
PRODUCT = SIDE**3
"""The sum of a product of two matrices of ones [SIDE, SIDE]. All its sums are whole numbers that float32 holds exactly."""

POINTWISE = SIDE**2
"""The sum of `_pointwise` of a matrix of ones [SIDE, SIDE], each of which stays one."""

WORKER_SECONDS = 300
"""How long a worker may take before it is given up: a fork can inherit a lock that nobody will open."""


class WorkerFailed(RuntimeError):
    """The worker gave no answer; the text says how it ended."""


def check(variant: str, result: object) -> None:
    """Raises WrongResult unless what was imported can multiply, and what was computed is right."""
    if variant in IMPORTS:
        name = IMPORTS[variant]
        if sys.modules.get(name) is not result:
            raise WrongResult(f"the import gave {result!r:.60} and not the module {name}")
        result = _product(result)
    wanted = POINTWISE if variant == "first_compile" else PRODUCT
    if result != wanted:
        raise WrongResult(f"the result is {result!r:.60}, not {wanted}")


def _product(library) -> float:
    """Of torch or NumPy: makes two matrices of ones [SIDE, SIDE], multiplies them and sums the product."""
    ones = library.ones((SIDE, SIDE))
    return float((ones @ ones).sum())


def _pointwise(x):
    return (x - 0.5).clamp(min=0.25) * 2


def _before_torch() -> None:
    """Raises WrongResult where something has imported torch or NumPy already: there would be less to measure."""
    for name in ("torch", "numpy"):
        if name in sys.modules:
            raise WrongResult(f"{name} was imported before the import that is measured")


def import_numpy(look):
    """NumPy alone, which torch imports as well. It is the same version on every release of a lane: where this changes, the
    machine has."""
    _before_torch()

    def step():
        import numpy

        return numpy, None

    return step


def import_torch(look):
    _before_torch()

    def step():
        import torch

        return torch, None

    return step


def first_operator(look):
    """The first operators of a process that has imported torch."""
    import torch

    return lambda: (_product(torch), None)


def first_compile(look):
    """The first call of a function under `torch.compile`, on a tensor that is there; the compiler's caches are empty."""
    import torch

    from .compilers import compiled

    ones = torch.ones(SIDE, SIDE)
    return lambda: (float(compiled(_pointwise, "cpu")(ones).sum()), None)


def forked_worker(look):
    """A worker that is forked from a process which has imported torch, from its start to its end."""
    return _worker("fork", look)


def spawned_worker(look):
    """The same worker as a new process, which imports torch itself."""
    return _worker("spawn", look)


def _worker(method: str, look):
    import torch.multiprocessing

    return lambda: _asked(torch.multiprocessing.get_context(method), look)


def _asked(context, look):
    """What a worker computes, and what `look` sees in it. Raises WorkerFailed."""
    reader, writer = context.Pipe(duplex=False)
    worker = context.Process(target=_work, args=(writer, look))
    worker.start()
    writer.close()
    try:
        answer = reader.recv() if reader.poll(WORKER_SECONDS) else None
    except EOFError:
        answer = None
    if answer is None:
        worker.kill()
    worker.join()
    if answer is None:
        raise WorkerFailed(f"the worker gave no answer; it ended with status {worker.exitcode}")
    return answer


def _work(writer, look) -> None:
    import torch

    writer.send((_product(torch), look()))
    writer.close()


IMPORTS = {"import_numpy": "numpy", "import_torch": "torch"}
"""Variant -> the module that it imports."""

variants = {
    "import_numpy": import_numpy,
    "import_torch": import_torch,
    "first_operator": first_operator,
    "first_compile": first_compile,
    "forked_worker": forked_worker,
    "spawned_worker": spawned_worker,
}
"""Name of a variant -> what prepares its step in a process that has done nothing else. Preparing is not measured. A step
returns what it computed, and what `look` saw in the worker: None where there is none. Both may raise Unavailable."""

__all__ = ["Unavailable", "check", "sizes", "variants"]
