"""Does disabling saved-tensor hooks save memory or time?

Each mode runs the same three scripts, forward and backward. Compare `retained` (bytes that wait for the backward),
`peak_memory`, `gradients` and the times with `plain`: where hooks_disabled equals plain in all of them, it saves nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.multiprocessing
import torch.utils.checkpoint

from . import Unavailable, WrongResult
from .compilers import release

METRICS = ("time", "forward_time", "peak_memory", "retained", "gradients", "operators", "allocations", "kernels")

WARM_UP_CALLS = 1
"""Nothing here compiles; the first call takes what later ones find ready, such as a GPU's workspace."""

_SCRIPTS = {
    "product small": {"side": 2_000},
    "product paper": {"side": 10_000},
    "loop": {"side": 100, "turns": 1_000},
    "chain": {"batch": 256, "width": 256, "layers": 8},
}

sizes = {
    **{name: {**size, "requires_grad": 1} for name, size in _SCRIPTS.items()},
    **{re.sub(r"^\w+", r"\g<0>, no gradient", name): {**size, "requires_grad": 0} for name, size in _SCRIPTS.items()},
}

LAYERS_CHECKPOINTED = 4
"""Layers of the chain that are recomputed together: of 8 layers' results, two are kept."""

START_METHOD = {"cpu": "fork", "cuda": "spawn"}
"""How another process is started, by device. A fork shares the inputs and the imported torch and costs a copy of the page
tables. CUDA does not survive a fork: on a GPU the process starts anew, imports torch and opens the inputs where they lie."""

CHILD_SECONDS = 300
"""How long a child process may take before it is given up: a fork can inherit a lock that nobody will open."""

TOLERANCE = {torch.float32: 2e-4, torch.float16: 2**-7}
"""By the type in which tensors were saved, relative to the largest expected entry.

float32: the longest sum taken term by term is the loop's, 1,000 terms of one sign, off by 1,000 x 2**-24 = 6e-5 at most;
libraries take a product's sums in blocks, so 2,000 terms are off by less than 2,000 x 2**-24 = 1.2e-4. float16: each of
the chain's 8 layers saves two rounded tensors, off by 2**-11 each: 16 x 2**-11 = 2**-7.
"""

ROWS_CHECKED = 97
"""Rows of each gradient that are compared with NumPy, first and last among them."""


class Arguments(NamedTuple):
    """`script` is product, loop or chain; `turns` are the loop's; `tensors` are x, then the chain's weights in order."""

    script: str
    turns: int
    tensors: tuple


class Outcome(NamedTuple):
    """What a script leaves behind: its value (a scalar), what its other names still hold, and a gradient for each input that
    requires one. `saved_as` is the type in which the mode saved tensors."""

    value: torch.Tensor
    names: tuple
    gradients: tuple = ()
    saved_as: torch.dtype = torch.float32


class Started(NamedTuple):
    """What subprocess_start leaves behind: the id of the process that ran and ended, an integer scalar. No gradients."""

    process: torch.Tensor
    gradients: tuple = ()


def inputs(size: str, device: str, seed: int) -> Arguments:
    """x and, for the chain, its weights; float32, drawn with NumPy, so that every release sees the same numbers.

    product, loop: x [side, side], uniform in 0.5 .. 1.5, divided by the square root of its side, so that each entry of x @ x
    is near 1 and of one sign: sums do not cancel, and float16 neither overflows nor runs out of digits. chain: x [batch,
    width] is normal and requires no gradient, as data; weights [width, width] are scaled so that each layer's results are as
    large as its inputs.
    """
    numbers = sizes[size]
    random = np.random.RandomState(seed)
    script = re.split(r"\W", size)[0]
    needs = bool(numbers["requires_grad"])
    if script == "chain":
        width = numbers["width"]
        drawn = [(random.standard_normal((numbers["batch"], width)), False)]
        for _ in range(numbers["layers"]):
            drawn.append((random.standard_normal((width, width)) * 1.7 / width**0.5, needs))
    else:
        side = numbers["side"]
        drawn = [(random.uniform(0.5, 1.5, (side, side)) / side**0.5, needs)]
    tensors = [torch.from_numpy(array.astype(np.float32)).to(device).requires_grad_(need) for array, need in drawn]
    return Arguments(script, numbers.get("turns", 1), tuple(tensors))


# --- the scripts, for tensors and NumPy's arrays alike


def product(run: Callable, turns: int, x: Any) -> tuple:
    """The note's first script: y = x @ x, z = sum(y). Autograd saves x alone, which lives anyway. Returns z and (y,)."""
    return run(_sum_of_product, x)


def loop(run: Callable, turns: int, x: Any) -> tuple:
    """The note's loop, each time y = x @ x. The value is the sum over all y * y, so that autograd must save every y.

    Returns the value and the last (y,): an earlier y went when its name was bound anew, unless autograd holds it.
    """
    total: Any = 0.0
    names: tuple = ()
    for _ in range(turns):
        squares, names = run(_squares_of_product, x)
        total = total + squares
    return total.sum(), names


def chain(run: Callable, turns: int, x: Any, *weights: Any) -> tuple:
    """Layers as a network has them, h = silu(h @ w). Returns sum(h * h) of the last and what names hold: (h @ w, h)."""
    h = x
    names: tuple = ()
    for i in range(0, len(weights), LAYERS_CHECKPOINTED):
        h, names = run(_layers, h, *weights[i : i + LAYERS_CHECKPOINTED])
    return (h * h).sum(), (*names, h)


def _sum_of_product(x: Any) -> tuple:
    y = x @ x
    return y.sum(), (y,)


def _squares_of_product(x: Any) -> tuple:
    y = x @ x
    return y * y, (y,)


def _layers(h: Any, *weights: Any) -> tuple:
    silu = torch.nn.functional.silu if isinstance(h, torch.Tensor) else _numpy_silu
    for w in weights:
        a = h @ w
        h = silu(a)
    return h, (a,)


def _numpy_silu(a: np.ndarray) -> np.ndarray:
    return a / (1 + np.exp(-a))


def _run(function: Callable, *tensors: Any) -> tuple:
    return function(*tensors)


_script_of = {"product": product, "loop": loop, "chain": chain}


# --- what they should give


def expected(arguments: Arguments) -> tuple:
    """The value of a script and the gradient of each tensor of `arguments`, in float64 by NumPy.

    Rather than computing the product: sum(x @ x) is the sum over k of (column k's sum) (row k's sum), and its gradient by
    x[i, j] is row j's sum + column i's sum.
    """
    arrays = [tensor.detach().cpu().numpy() for tensor in arguments.tensors]
    x = arrays[0]
    if arguments.script == "product":
        rows, columns = x.sum(1, dtype=np.float64), x.sum(0, dtype=np.float64)
        return columns @ rows, (np.add.outer(columns, rows),)
    if arguments.script == "loop":
        x = x.astype(np.float64)
        y = x @ x
        by_y = 2 * arguments.turns * y
        return arguments.turns * np.sum(y * y), (by_y @ x.T + x.T @ by_y,)
    h = x.astype(np.float64)
    weights = [w.astype(np.float64) for w in arrays[1:]]
    steps = []
    for w in weights:
        a = h @ w
        s = 1 / (1 + np.exp(-a))
        steps.append((h, w, s * (1 + a * (1 - s))))
        h = a * s
    value, by_h = np.sum(h * h), 2 * h
    gradients: list = []
    for h, w, slope in reversed(steps):
        by_a = by_h * slope
        gradients.insert(0, h.T @ by_a)
        by_h = by_a @ w.T
    return value, (by_h, *gradients)


def check(arguments: Arguments, result: Outcome | Started) -> None:
    """Raises WrongResult unless value and gradients are those of `expected`, or the process that was started has ended."""
    if isinstance(result, Started):
        process = int(result.process)
        if process == os.getpid():
            raise WrongResult("no other process was started: the answer comes from this one")
        if os.path.exists(f"/proc/{process}"):
            raise WrongResult(f"the process that was started, {process}, outlived its call")
        return
    value, gradients = expected(arguments)
    error = abs(float(result.value.detach()) / value - 1)
    if not error <= TOLERANCE[torch.float32]:
        raise WrongResult(f"the value is off by {error:.2g} of itself")
    given = result.value.requires_grad
    wanted = [gradients[i] for i, tensor in enumerate(arguments.tensors) if given and tensor.requires_grad]
    if len(result.gradients) != len(wanted):
        raise WrongResult(f"{len(result.gradients)} inputs have a gradient, and {len(wanted)} should")
    for i, (got, want) in enumerate(zip(result.gradients, wanted)):
        if tuple(got.shape) != want.shape or got.dtype != torch.float32:
            raise WrongResult(f"gradient {i} is {got.dtype} {tuple(got.shape)}, not float32 {want.shape}")
        rows = np.unique(np.linspace(0, want.shape[0] - 1, ROWS_CHECKED).astype(np.int64))
        want_rows = want[rows]
        off = (
            np.abs(got[torch.from_numpy(rows).to(got.device)].cpu().numpy() - want_rows).max() / np.abs(want_rows).max()
        )
        if not off <= TOLERANCE[result.saved_as]:
            raise WrongResult(f"gradient {i} is off by {off:.2g} of its largest entry")


# --- the modes


class _Call:
    """A script in a mode. Where gradients are possible a call runs the backward too, and `forward` is the script alone;
    elsewhere there is no `forward`. `gradients` says after a call how many inputs received one."""

    def __init__(self, forward: Callable[[], Any], leaves: tuple = ()) -> None:
        self.gradients = 0
        self._script = forward
        self._leaves = leaves
        if leaves:
            self.forward = forward

    def __call__(self) -> Any:
        outcome = self._script()
        if self._leaves:
            outcome.value.backward()
            outcome = outcome._replace(gradients=tuple(leaf.grad for leaf in self._leaves if leaf.grad is not None))
            for leaf in self._leaves:
                leaf.grad = None
        self.gradients = len(outcome.gradients)
        return outcome


def _mode(
    context: Callable[[], Any] = contextlib.nullcontext,
    run: Callable = _run,
    deletes: bool = False,
    differentiable: bool = True,
    saved_as: torch.dtype = torch.float32,
) -> Callable[[Arguments], _Call]:
    """A variant whose scripts run inside `context()`, each step by `run`; their backward runs outside."""

    def build(arguments: Arguments) -> _Call:
        script = _script_of[arguments.script]

        def forward() -> Outcome:
            with context():
                value, names = script(run, arguments.turns, *arguments.tensors)
            return Outcome(value, () if deletes else names, saved_as=saved_as)

        leaves = tuple(tensor for tensor in arguments.tensors if tensor.requires_grad) if differentiable else ()
        return _Call(forward, leaves)

    return build


def _graph(name: str, since: str) -> Callable:
    """`torch.autograd.graph.<name>`, or Unavailable before torch `since`."""
    found = getattr(getattr(torch.autograd, "graph", None), name, None)
    if found is None:
        raise Unavailable(f"torch.autograd.graph.{name} needs torch >= {since}")
    return found


def _hooks_disabled(arguments: Arguments) -> _Call:
    disabled = _graph("disable_saved_tensors_hooks", "1.13")
    return _mode(lambda: disabled("saved-tensor hooks are disabled here"))(arguments)


def _hooks_identity(arguments: Arguments) -> _Call:
    hooks = _graph("saved_tensors_hooks", "1.10")
    return _mode(lambda: hooks(lambda tensor: tensor, lambda tensor: tensor))(arguments)


def _hooks_half(arguments: Arguments) -> _Call:
    hooks = _graph("saved_tensors_hooks", "1.10")
    return _mode(lambda: hooks(torch.Tensor.half, torch.Tensor.float), saved_as=torch.float16)(arguments)


def _save_on_cpu(arguments: Arguments) -> _Call:
    return _mode(_graph("save_on_cpu", "1.10"))(arguments)


def _save_on_cpu_pinned(arguments: Arguments) -> _Call:
    save_on_cpu = _graph("save_on_cpu", "1.10")
    if arguments.tensors[0].device.type != "cuda":
        raise Unavailable("save_on_cpu with pinned memory needs a GPU")
    return _mode(lambda: save_on_cpu(pin_memory=True))(arguments)


def _inference_mode(arguments: Arguments) -> _Call:
    if not hasattr(torch, "inference_mode"):
        raise Unavailable("torch.inference_mode needs torch >= 1.9")
    return _mode(torch.inference_mode, differentiable=False)(arguments)


def _checkpoint_reentrant(arguments: Arguments) -> _Call:
    keyword = {} if release() < (1, 11) else {"use_reentrant": True}
    return _mode(_unwarned, _checkpointed(keyword))(arguments)


def _checkpoint(arguments: Arguments) -> _Call:
    if release() < (1, 11):
        raise Unavailable("checkpoint without a backward inside the backward (use_reentrant=False) needs torch >= 1.11")
    return _mode(run=_checkpointed({"use_reentrant": False}))(arguments)


def _checkpointed(keyword: dict) -> Callable:
    """A `run` that keeps a step's inputs alone and repeats the step in the backward; there is no random state to repeat."""

    def run(function: Callable, *tensors: Any) -> tuple:
        def step(*tensors: Any) -> Any:
            return function(*tensors)[0]

        return torch.utils.checkpoint.checkpoint(step, *tensors, preserve_rng_state=False, **keyword), ()

    return run


@contextlib.contextmanager
def _unwarned() -> Iterator[None]:
    """Without the reentrant checkpoint's warning that no input requires a gradient, which is what some sizes are about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _numpy(arguments: Arguments) -> _Call:
    arrays = [tensor.detach().cpu().numpy() for tensor in arguments.tensors]

    def forward() -> Outcome:
        value, names = _script_of[arguments.script](_run, arguments.turns, *arrays)
        return Outcome(torch.tensor(float(value)), names)

    return _Call(forward)


# --- another process


class ChildFailed(RuntimeError):
    """The child process gave no answer; the text says how it ended."""


def _in_child(work: Callable[[Arguments], float], arguments: Arguments) -> Any:
    """What `work(arguments)` returns in a child process, which has ended when this returns or raises. Raises ChildFailed."""
    context = torch.multiprocessing.get_context(START_METHOD[arguments.tensors[0].device.type])
    reader, writer = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(writer, work, arguments), daemon=True)
    with reader:
        try:
            with writer:
                child.start()
            if not reader.poll(CHILD_SECONDS):
                raise ChildFailed(f"the child process gave no answer in {CHILD_SECONDS} seconds and was killed")
            answer = reader.recv()
            child.join(CHILD_SECONDS)
        except EOFError:
            child.join()
            raise ChildFailed(f"the child process ended with exit code {child.exitcode} and no answer") from None
        finally:
            if child.is_alive():
                child.kill()
                child.join()
    child.close()
    return answer


def _answer(writer: Any, work: Callable[[Arguments], float], arguments: Arguments) -> None:
    with writer:
        writer.send(work(arguments))


def _value(arguments: Arguments) -> float:
    return float(_script_of[arguments.script](_run, arguments.turns, *arguments.tensors)[0].detach())


def _nothing(arguments: Arguments) -> int:
    return os.getpid()


def _subprocess(arguments: Arguments) -> _Call:
    return _Call(lambda: Outcome(torch.tensor(_in_child(_value, arguments)), ()))


def _subprocess_start(arguments: Arguments) -> _Call:
    return _Call(lambda: Started(torch.tensor(_in_child(_nothing, arguments))))


variants = {
    "plain": _mode(),
    "hooks_disabled": _hooks_disabled,
    "hooks_identity": _hooks_identity,
    "hooks_half": _hooks_half,
    "save_on_cpu": _save_on_cpu,
    "save_on_cpu_pinned": _save_on_cpu_pinned,
    "no_grad": _mode(torch.no_grad, differentiable=False),
    "inference_mode": _inference_mode,
    "checkpoint_reentrant": _checkpoint_reentrant,
    "checkpoint": _checkpoint,
    "deleted": _mode(deletes=True),
    "subprocess": _subprocess,
    "subprocess_start": _subprocess_start,
    "numpy": _numpy,
}
"""Name of a variant -> what builds its zero-argument callable from `inputs`; building is not part of any measurement."""
