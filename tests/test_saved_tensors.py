"""What do the modes of autograd save? Values and gradients by NumPy, bytes against arithmetic, and child processes that die,
hang or raise."""

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from .torch_here import torch

# isort: split

from measure import profile
from workloads import Unavailable, WrongResult, saved_tensors
from workloads.compilers import release

TINY = {"product": {"side": 6}, "loop": {"side": 5, "turns": 7}, "chain": {"batch": 3, "width": 4, "layers": 8}}
SIDE, TURNS, BATCH, WIDTH = 128, 20, 48, 32
SMALL = {
    "product": {"side": SIDE},
    "loop": {"side": SIDE, "turns": TURNS},
    "chain": {"batch": BATCH, "width": WIDTH, "layers": 8},
}
SCRIPTS = ["product", "loop", "chain"]

NEEDS_GPU = "save_on_cpu_pinned"
NO_GRADIENT = ["no_grad", "inference_mode", "subprocess", "numpy"]
GRADIENT = sorted(set(saved_tensors.variants) - {*NO_GRADIENT, "subprocess_start", NEEDS_GPU})

since_1_13 = pytest.mark.skipif(release() < (1, 13), reason="disable_saved_tensors_hooks needs torch >= 1.13")


@pytest.fixture
def made(monkeypatch) -> Callable[..., saved_tensors.Arguments]:
    """Inputs of a script in sizes of our own."""

    def make(script: str, of: dict = TINY, requires_grad: int = 1, seed: int = 3) -> saved_tensors.Arguments:
        monkeypatch.setitem(saved_tensors.sizes, script, {**of[script], "requires_grad": requires_grad})
        return saved_tensors.inputs(script, "cpu", seed)

    return make


def built(variant: str, arguments: saved_tensors.Arguments) -> Any:
    try:
        return saved_tensors.variants[variant](arguments)
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("variant", GRADIENT)
def test_mode_keeps_value_and_gradients(made, variant, script):
    arguments = made(script)
    call = built(variant, arguments)
    for _ in range(2):  # a second call must not add to the first one's gradients
        result = call()
        assert call.gradients == len(result.gradients) == sum(tensor.requires_grad for tensor in arguments.tensors)
        saved_tensors.check(arguments, result)
    assert all(tensor.grad is None for tensor in arguments.tensors)


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("variant", NO_GRADIENT)
def test_mode_without_gradients_keeps_the_value_and_says_none(made, variant, script):
    arguments = made(script)
    call = built(variant, arguments)
    result = call()
    assert (call.gradients, result.gradients, result.value.requires_grad) == (0, (), False)
    assert not hasattr(call, "forward")
    assert variant != "inference_mode" or result.value.is_inference()
    saved_tensors.check(arguments, result)


def test_inputs_are_the_same_for_the_same_seed(made):
    first, again, other = (made("chain", seed=seed).tensors for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[1], other[1])


MATRIX = 4 * SIDE * SIDE
LAYER = 4 * BATCH * WIDTH
WEIGHT = 4 * WIDTH * WIDTH
VALUE = 4

RETAINED: dict[tuple[str, str], int] = {
    ("product", "plain"): MATRIX + VALUE,  # y, which only its name holds
    ("product", "deleted"): VALUE,
    ("product", "hooks_half"): MATRIX + 2 * MATRIX // 2 + VALUE,  # x twice, as the product's two operands
    ("product", "checkpoint"): VALUE,
    ("product", "checkpoint_reentrant"): VALUE,
    ("loop", "plain"): TURNS * MATRIX + VALUE,
    ("loop", "deleted"): TURNS * MATRIX + VALUE,
    ("loop", "hooks_half"): TURNS * 4 * MATRIX // 2 + MATRIX + VALUE,  # x and y twice each
    ("loop", "checkpoint"): VALUE,
    ("loop", "checkpoint_reentrant"): VALUE,
    ("chain", "plain"): 8 * 2 * LAYER + VALUE,  # h @ w and h of every layer
    ("chain", "deleted"): 8 * 2 * LAYER + VALUE,
    # operands of 8 products (the first weight's is not needed), 8 of silu, 2 of h * h; the names h @ w and h
    ("chain", "hooks_half"): (8 + 8 + 2) * LAYER // 2 + 7 * WEIGHT // 2 + 2 * LAYER + VALUE,
    ("chain", "checkpoint"): 2 * LAYER + VALUE,  # what follows the fourth and the last layer
    ("chain", "checkpoint_reentrant"): 2 * LAYER + VALUE,
}
"""Bytes between forward and backward, by script and mode."""


@pytest.mark.parametrize(("script", "variant"), RETAINED)
def test_bytes_between_forward_and_backward_are_those_counted_by_hand(made, script, variant):
    call = built(variant, made(script, SMALL))
    call()
    assert profile.profile(call.forward, "cpu").retained == RETAINED[script, variant]


PEAK = {
    # y; one product's gradient; the second's, and its operand of ones written out; the value and its gradient
    ("product", "plain"): 4 * MATRIX + 2 * VALUE,
    ("product", "deleted"): 3 * MATRIX + 2 * VALUE,
    ("loop, no gradient", "plain"): 5 * MATRIX,  # y and the total, and the next y, y * y and total
}


@pytest.mark.parametrize(("size", "variant"), PEAK)
def test_peak_is_the_one_counted_by_hand(made, size, variant):
    script, _, rest = size.partition(", ")
    call = built(variant, made(script, SMALL, requires_grad=not rest))
    call()
    assert profile.profile(call, "cpu").peak_memory == PEAK[size, variant]


@since_1_13
@pytest.mark.parametrize("requires_grad", [1, 0])
@pytest.mark.parametrize("script", SCRIPTS)
def test_disabling_hooks_changes_no_byte_and_no_gradient(made, script, requires_grad):
    arguments = made(script, SMALL, requires_grad)
    found = []
    for variant in ("plain", "hooks_disabled"):
        call = built(variant, arguments)
        result = call()
        forward = profile.profile(getattr(call, "forward", call), "cpu")
        gradients = [gradient.numpy().tobytes() for gradient in result.gradients]
        found.append((profile.profile(call, "cpu"), forward, call.gradients, gradients))
    assert found[0] == found[1]


@since_1_13
def test_disabled_hooks_refuse_the_modes_that_are_made_of_hooks_and_no_other(made):
    arguments = made("chain")
    disabled = torch.autograd.graph.disable_saved_tensors_hooks
    for variant in ("hooks_identity", "hooks_half", "save_on_cpu", "checkpoint"):
        call = built(variant, arguments)
        with disabled("not in here"), pytest.raises(RuntimeError, match="not in here"):
            call()
    for variant in ("plain", "checkpoint_reentrant", "no_grad"):
        with disabled("not in here"):
            built(variant, arguments)()


def children() -> list[str]:
    """Processes of this one that have not been waited for, by the system's own list."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as file:
            if int(file.read().rpartition(")")[2].split()[1]) == os.getpid():
                found.append(name)
    return found


@pytest.mark.parametrize(
    ("work", "sentence"),
    [
        (lambda _: os._exit(3), "the child process ended with exit code 3 and no answer"),
        (lambda _: int("planted"), "the child process ended with exit code 1 and no answer"),
        (lambda _: time.sleep(60), r"the child process gave no answer in 0\.5 seconds and was killed"),
    ],
)
def test_child_that_fails_is_an_error_in_words_and_leaves_no_process(made, monkeypatch, capfd, work, sentence):
    arguments, before = made("product"), children()
    if "killed" in sentence:
        monkeypatch.setattr(saved_tensors, "CHILD_SECONDS", 0.5)
    began = time.monotonic()
    with pytest.raises(saved_tensors.ChildFailed, match=sentence):
        saved_tensors._in_child(work, arguments)
    assert time.monotonic() - began < 20
    assert children() == before


def test_started_process_is_another_one_and_has_ended(made):
    arguments, before = made("product"), children()
    call = built("subprocess_start", arguments)
    first, second = call(), call()
    assert len({int(first.process), int(second.process), os.getpid()}) == 3
    assert children() == before
    assert call.gradients == 0
    saved_tensors.check(arguments, first)


def test_profile_of_a_child_counts_the_parent_alone(made):
    small, large = (built("subprocess", made("loop", {"loop": {"side": 5, "turns": turns}})) for turns in (1, 50))
    found = [profile.profile(call, "cpu") for call in (small, large)]
    assert found[0] == found[1]
    assert (found[0].peak_memory, found[0].allocations) == (VALUE, 1)


def off_by(share: float, outcome: Any) -> tuple:
    """Its gradients, of which the first is off."""
    worse = outcome.gradients[0].clone()
    worse[-1, 0] += share * worse.abs().max()
    return worse, *outcome.gradients[1:]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda o: {"value": o.value.detach() * 1.001}, r"the value is off by 0\.001 of itself"),
        (lambda o: {"value": o.value.detach() * float("nan")}, "the value is off by nan of itself"),
        (lambda o: {"gradients": off_by(0.001, o)}, r"gradient 0 is off by 0\.001 of its largest entry"),
        (lambda o: {"gradients": off_by(0.02, o), "saved_as": torch.float16}, r"gradient 0 is off by 0\.02 of its"),
        (lambda o: {"gradients": ()}, "0 inputs have a gradient, and [18] should"),
        (lambda o: {"value": o.value.detach()}, "[18] inputs have a gradient, and 0 should"),
        (lambda o: {"gradients": tuple(g.double() for g in o.gradients)}, r"gradient 0 is torch\.float64"),
        (lambda o: {"gradients": tuple(g[:-1] for g in o.gradients)}, r"gradient 0 is .* not float32 \("),
    ],
)
def test_wrong_result_is_refused_in_a_sentence(made, script, change, sentence):
    arguments = made(script)
    outcome = built("plain", arguments)()
    saved_tensors.check(arguments, outcome)
    with pytest.raises(WrongResult, match=sentence):
        saved_tensors.check(arguments, outcome._replace(**change(outcome)))


def test_process_that_is_this_one_or_still_runs_is_refused(made):
    arguments = made("product")
    for process, sentence in ((os.getpid(), "no other process was started"), (os.getppid(), "outlived its call")):
        with pytest.raises(WrongResult, match=sentence):
            saved_tensors.check(arguments, saved_tensors.Started(torch.tensor(process)))
