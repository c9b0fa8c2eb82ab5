"""Are the numbers right? Overlaps against NumPy, bytes against arithmetic, the clock against a call of known length, and a
GPU that is played here."""

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from .torch_here import np, torch

# isort: split

import measure
from contract.request import END, TAKE
from measure import clock, device, explain, facts, profile, resident, turns
from workloads import WrongResult, intersection

UNCOMPILED = sorted(set(intersection.variants) - {"compiled"})
"""torch.compile takes half a minute to build C++ and is measured with the releases."""


def boxes(seed: int, count: int) -> Any:
    """Corners of `count` boxes in a picture of 100 x 100 pixels, float32."""
    random = np.random.RandomState(seed)
    low = random.uniform(0, 80, (count, 2))
    return torch.from_numpy(np.concatenate([low, low + random.uniform(0, 60, (count, 2))], 1).astype(np.float32))


@pytest.fixture
def arguments() -> tuple:
    return boxes(1, 500), boxes(2, 40)


def overlap_in_float64(arguments: tuple) -> Any:
    """Every pair's overlap, column by column with `outer`: another way than the workload's own `expected`."""
    a, b = (corners.numpy().astype(np.float64) for corners in arguments)
    sides = [np.minimum.outer(a[:, 2 + i], b[:, 2 + i]) - np.maximum.outer(a[:, i], b[:, i]) for i in range(2)]
    return np.where(sides[0] > 0, sides[0], 0) * np.where(sides[1] > 0, sides[1], 0)


@pytest.mark.parametrize("variant", UNCOMPILED)
def test_variant_agrees_with_float64_numpy_in_full(arguments, variant):
    call = intersection.variants[variant](arguments)
    want = overlap_in_float64(arguments)
    for _ in range(3):  # TorchScript profiles the first call and optimises the second
        got = call()
        assert got.dtype == torch.float32
        # a side below 100 is rounded by 2**-18 at most and its product with one below 100 by 2**-11
        assert np.abs(got.numpy() - want).max() < 0.002
    assert 0.2 < (want > 0).mean() < 0.8


def test_inputs_are_the_same_for_the_same_seed_and_hold_proper_boxes():
    first, again, other = (intersection.inputs("small", "cpu", seed) for seed in (1, 1, 2))
    assert [tuple(corners.shape) for corners in first] == [(30_000, 4), (500, 4)]
    assert all(torch.equal(a, b) for a, b in zip(first, again))  # noqa: B905 - Python 3.9 has no strict
    assert not torch.equal(first[0], other[0])
    for corners in first:
        assert corners.dtype == torch.float32
        assert bool((corners[:, 2:] > corners[:, :2]).all())
        assert 0 <= float(corners.min()) < float(corners.max()) <= 1000
    share = (overlap_in_float64((first[0][:500], first[1])) > 0).mean()
    assert 0.2 < share < 0.3


def off_by(row: int, column: int, pixels: float) -> Callable[[Any], Any]:
    def change(result: Any) -> Any:
        result[row, column] += pixels
        return result

    return change


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (off_by(250, 20, 1), r"an overlap area is off by 1 square pixels"),
        (off_by(499, 39, float("nan")), r"an overlap area is off by nan"),
        (lambda result: result[:-1], r"the result is torch\.float32 \(499, 40\), not float32 \(500, 40\)"),
        (lambda result: result.double(), r"the result is torch\.float64 \(500, 40\), not float32 \(500, 40\)"),
    ],
)
def test_wrong_result_is_refused_in_a_sentence(arguments, wrong, sentence):
    right = torch.from_numpy(overlap_in_float64(arguments).astype(np.float32))
    intersection.check(arguments, right)
    with pytest.raises(WrongResult, match=sentence):
        intersection.check(arguments, wrong(right))


RESULT = 30_000 * 500 * 4
"""Bytes of one [N, M] float32 tensor of size small: 60,000,000."""


def small_profile(variant: str) -> Any:
    call = intersection.variants[variant](intersection.inputs("small", "cpu", 1))
    return profile.profile(call, "cpu")


def test_eager_overlap_holds_four_results_at_its_peak():
    # Columns are views. The width takes minimum, maximum, difference and clamped difference, of which only the last stays.
    # The peak is in the height: the width, minimum and maximum, and the difference being written, 4 x 60 MB. At the clamp
    # minimum and maximum are gone; at the product there are width, height and product.
    found = small_profile("eager")
    assert found.peak_memory == 4 * RESULT == 240_000_000
    assert found.allocations == 4 + 4 + 1
    assert found.kernels == 0
    assert found.operators >= 9  # whatever wrappers a release adds


def test_in_place_overlap_holds_three_results_at_its_peak():
    found = small_profile("in_place")  # area, scratch, height
    assert found.peak_memory == 3 * RESULT
    assert found.allocations == 3


def test_what_a_call_returns_or_keeps_is_retained():
    kept = []

    def call() -> Any:
        scratch = torch.empty(1_000_000)
        kept.append(torch.empty(500))
        return scratch[:10].clone()

    found = profile.profile(call, "cpu")
    assert found.retained == 500 * 4 + 10 * 4
    assert found.peak_memory == 4_000_000 + found.retained


def test_fused_groups_of_scripted_overlap_explain_its_allocations(arguments):
    def work() -> tuple:
        call = intersection.variants["scripted"](arguments)
        clock.warm_up(call, "cpu")
        return profile.fusion_groups(call), profile.profile(call, "cpu").allocations

    with ThreadPoolExecutor(1) as pool:  # the graph executed last is remembered per thread
        groups, allocations = pool.submit(work).result()
    # one group makes the result alone; unfused it is the nine tensors of eager
    assert (groups, allocations) in ((1, 1), (0, 9))


class Time:
    """A clock that only moves when it is told to, so that a call takes exactly as long as it says."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def call(self, seconds: float) -> Callable[[], None]:
        def pass_time() -> None:
            self.now += seconds

        return pass_time


@pytest.fixture
def ticking(monkeypatch) -> Time:
    fake = Time()
    monkeypatch.setattr(clock, "time", fake)
    return fake


@pytest.mark.parametrize(
    ("seconds", "samples"), [(2e-7, 5), (1e-6, 5), (1e-3, 5), (0.019, 4), (0.02, 4), (0.04, 4), (0.3, 2), (3.0, 2)]
)
def test_samples_are_seconds_a_call_and_end_after_five_or_a_second(ticking, seconds, samples):
    found = clock.samples(ticking.call(seconds), "cpu")
    assert found == pytest.approx([seconds] * samples, rel=1e-6)
    assert ticking.now <= max(0.8, 3 * seconds) * (1 + 1e-6)


@pytest.mark.parametrize(("seconds", "times"), [(0.0, 2), (1e9, 0)])
def test_a_call_is_built_anew_after_some_turns_unless_that_takes_long(monkeypatch, seconds, times):
    (told, tells), (answers, answered) = os.pipe(), os.pipe()
    monkeypatch.setattr(turns, "_PIPES", [told, answered])
    os.write(tells, TAKE * 12 + END)
    built: list[int] = []

    def build() -> Callable[[], None]:
        built.append(1)
        return lambda: None

    found = turns.measured(lambda: None, "cpu", turns.Anew(build, seconds))
    assert (len(found["turns"]), len(built)) == (12, times)
    assert len(os.read(answers, 10_000).split()) == 1 + 12, "the bytes that it holds, and what each turn took"
    for pipe in (told, tells, answers, answered):
        os.close(pipe)


@pytest.mark.parametrize(("takes", "does_before"), [(1e-5, 1e-6), (1e-5, 0.5), (0.2, 1e-4)])
def test_in_turns_what_is_done_before_a_call_is_not_timed(ticking, monkeypatch, takes, does_before):
    (told, tells), (answers, answered) = os.pipe(), os.pipe()
    monkeypatch.setattr(turns, "_PIPES", [told, answered])
    monkeypatch.setattr(turns, "time", ticking)
    monkeypatch.setattr(ticking, "thread_time", ticking.perf_counter, raising=False)
    os.write(tells, TAKE * 6 + END)
    found = turns.measured(ticking.call(takes), "cpu", None, ticking.call(does_before))
    assert found["turns"] == pytest.approx([takes] * 6, rel=1e-4)
    assert ticking.now < 60 * (takes + does_before) + 1.0, "a stretch ends, however little of it is timed"
    for pipe in (told, tells, answers, answered):
        os.close(pipe)


@pytest.mark.parametrize("before", [None, lambda: time.sleep(1e-3)])
def test_in_turns_processors_seconds_are_those_of_calls_alone(monkeypatch, before):
    (told, tells), (answers, answered) = os.pipe(), os.pipe()
    monkeypatch.setattr(turns, "_PIPES", [told, answered])

    def call() -> None:
        ends = time.process_time() + 0.004
        while time.process_time() < ends:
            pass
        time.sleep(0.006)

    os.write(tells, TAKE * 6 + END)
    found = turns.measured(call, "cpu", None, before, busy=True)
    assert found["turns"] == pytest.approx([0.004] * 6, rel=0.2)
    for pipe in (told, tells, answers, answered):
        os.close(pipe)


@pytest.mark.parametrize("seconds", [1e-6, 1e-4, 2e-3])
def test_blocks_that_were_interrupted_are_left_out(ticking, seconds):
    # A scheduler gives the core to somebody else for 4 ms after every 10 ms
    turns = 0

    def call() -> None:
        nonlocal turns
        ticking.now += seconds
        if ticking.now - turns * 0.014 > 0.01:
            turns += 1
            ticking.now += 0.004

    assert clock.samples(call, "cpu") == pytest.approx([seconds] * 5, rel=1e-6)


def test_device_is_idle_at_both_ends_of_a_block_and_never_asked_between(monkeypatch):
    happened: list[str] = []
    monkeypatch.setattr(clock.device, "synchronize", lambda on: happened.append(f"synchronize {on}"))

    def call() -> None:
        happened.append("call")
        time.sleep(0.005)

    clock.samples(call, "cuda")
    blocks = "".join("s" if what == "synchronize cuda" else "c" for what in happened).strip("s").split("ss")
    assert set("".join(blocks)) == {"c"}
    assert len(set(blocks[-5:])) == 1
    assert len(blocks[-1]) > 1


class Event:
    """One event as the profiler's raw results hold it."""

    def __init__(self, name: str, on: str = "CPU", nbytes: int = 0) -> None:
        self._name, self._on, self._nbytes = name, on, nbytes

    def name(self) -> str:
        return self._name

    def device_type(self) -> str:
        return f"DeviceType.{self._on}"

    def nbytes(self) -> int:
        return self._nbytes


def play_profiler(monkeypatch: pytest.MonkeyPatch, events: list[Event]) -> list[Any]:
    """Lets the profiler record exactly `events`; returns the list of the activities it is asked for."""
    asked: list[Any] = []

    class Profiler:
        def __init__(self, activities: list, profile_memory: bool) -> None:
            asked.extend(activities)
            self.profiler = SimpleNamespace(kineto_results=SimpleNamespace(events=lambda: events))

        def __enter__(self) -> "Profiler":
            return self

        def __exit__(self, *error: object) -> None:
            pass

    monkeypatch.setattr(torch.profiler, "profile", Profiler)
    return asked


@pytest.fixture
def gpu(monkeypatch) -> list[str]:
    """What the GPU was told, in order. Its allocator holds 1,000 bytes before a call and 5,000 at its highest point, and
    has allocated 10 times before and 17 times after; 3,000 bytes stay."""
    happened: list[str] = []

    def told(name: str, answer: Callable[[], Any]) -> None:
        def function() -> Any:
            happened.append(name)
            return answer()

        monkeypatch.setattr(torch.cuda, name, function)

    told("synchronize", lambda: None)
    told("reset_peak_memory_stats", lambda: None)
    told("memory_allocated", lambda: 1000 if happened.count("memory_allocated") == 1 else 3000)
    told("max_memory_allocated", lambda: 5000)
    told("memory_stats", lambda: {"allocation.all.allocated": 10 if happened.count("memory_stats") == 1 else 17})
    return happened


def test_gpus_kernels_are_counted_without_copies_fills_and_annotations(monkeypatch, gpu):
    asked = play_profiler(
        monkeypatch,
        [
            Event("aten::mul"),
            Event("aten::empty"),
            Event("cudaLaunchKernel"),
            Event("my step"),
            Event("[memory]", nbytes=4),
            Event("cudaStreamSynchronize"),
            Event("cudaDeviceSynchronize"),
            Event("cudaStreamSynchronize"),
            Event("cudaStreamSynchronize", "CUDA"),
            Event("void at::native::elementwise_kernel<float>(int)", "CUDA"),
            Event("void at::native::elementwise_kernel<float>(int)", "CUDA"),
            Event("triton_poi_fused_0", "CUDA"),
            Event("Memcpy HtoD (Pageable -> Device)", "CUDA"),
            Event("Memset (Device)", "CUDA"),
            Event("my step", "CUDA"),
            Event("[memory]", "CUDA", nbytes=999_999),
        ],
    )
    found = profile.profile(lambda: None, "cuda")
    assert found.kernels == 3
    assert found.operators == 2
    assert found.host_syncs == 2  # the wait for the whole device is the measurement's own
    assert [str(activity).rpartition(".")[2] for activity in asked] == ["CPU", "CUDA"]


def test_gpus_bytes_are_the_allocators_above_what_was_held_before(monkeypatch, gpu):
    play_profiler(monkeypatch, [Event("aten::mul"), Event("[memory]", nbytes=123)])
    found = profile.profile(lambda: None, "cuda")
    assert found.peak_memory == 5000 - 1000
    assert found.retained == 3000 - 1000
    assert found.allocations == 17 - 10


def test_gpu_is_idle_before_its_counters_are_reset_and_before_they_are_read(monkeypatch, gpu):
    play_profiler(monkeypatch, [Event("aten::mul")])
    profile.profile(lambda: gpu.append("call"), "cuda")
    assert gpu == [
        *("call", "synchronize"),  # under the profiler
        *("synchronize", "reset_peak_memory_stats", "memory_allocated", "memory_stats"),
        *("call", "synchronize", "max_memory_allocated", "memory_allocated", "memory_stats"),
    ]


def test_cpus_bytes_are_a_running_sum_of_the_raw_events(monkeypatch):
    changes = [100, 200, -100, 50, -200, 10]  # levels 100, 300, 200, 250, 50, 60
    asked = play_profiler(monkeypatch, [Event("aten::mul"), *(Event("[memory]", nbytes=n) for n in changes)])
    found = profile.profile(lambda: None, "cpu")
    assert (found.peak_memory, found.retained) == (300, 60)
    assert (found.allocations, found.operators, found.kernels, found.host_syncs) == (4, 1, 0, 0)
    assert [str(activity).rpartition(".")[2] for activity in asked] == ["CPU"]


@pytest.mark.parametrize(("events", "said"), [([], "recorded nothing"), ([Event("aten::mul")], "records no memory")])
def test_profiler_that_recorded_nothing_or_sees_no_memory_is_an_error_and_not_a_zero(monkeypatch, events, said):
    assert profile.profile(lambda: torch.empty(0).view(0), "cpu").peak_memory == 0
    play_profiler(monkeypatch, events)
    with pytest.raises(RuntimeError, match=rf"profiler of torch .* {said}"):
        profile.profile(lambda: None, "cpu")


@pytest.fixture
def system(tmp_path, monkeypatch) -> Path:
    """A root folder whose files say whether there is a GPU; to ask CUDA is an error here."""

    def touched(*arguments: object) -> None:
        raise AssertionError("CUDA was touched: every process forked from here could not use it")

    for name in ("is_available", "device_count", "init", "get_device_capability"):
        monkeypatch.setattr(torch.cuda, name, touched)
    monkeypatch.setattr(device, "Path", lambda path: tmp_path / path.lstrip("/"))
    monkeypatch.delenv("TORCH_HISTORY_DEVICE", raising=False)
    monkeypatch.delenv("TORCH_HISTORY_SIZES", raising=False)
    return tmp_path


@pytest.mark.parametrize("file", ["dev/nvidia0", "proc/driver/nvidia/gpus/0000:01:00.0"])
def test_gpu_is_found_by_the_drivers_files(system, file):
    (system / "proc/driver/nvidia/gpus").mkdir(parents=True)  # as a driver without a GPU has it
    assert not device.gpu_present()
    assert device.name() == "cpu"
    (system / file).mkdir(parents=True)
    assert device.gpu_present()
    assert device.name() == "cuda"
    assert not device.is_cpu()


@pytest.mark.parametrize(
    ("on", "asked", "sizes"),
    [
        *(("cpu", "", ["small"]), ("cuda", "", ["paper"]), ("cpu", "paper", ["paper"])),
        *(("cuda", "small, paper", ["small", "paper"]), ("cpu", " , ", ["small"])),
    ],
)
def test_sizes_are_the_devices_unless_asked_for(system, monkeypatch, on, asked, sizes):
    monkeypatch.setenv("TORCH_HISTORY_DEVICE", on)
    monkeypatch.setenv("TORCH_HISTORY_SIZES", asked)
    assert device.asked_sizes() == sizes


def test_cpu_is_ready_with_the_number_of_threads_that_was_fixed(system):
    torch.set_num_threads(2)
    device.ready("cpu")
    assert torch.get_num_threads() == measure.THREADS


def fake_gpu(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], archs: str) -> list[str]:
    """A usable GPU of that capability, and a wheel for those architectures; returns each start of it."""
    started: list[str] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(torch.cuda, "init", lambda: started.append("init"))
    monkeypatch.setattr(torch._C, "_cuda_getArchFlags", lambda: archs, raising=False)
    return started


def test_wheel_without_code_for_the_gpu_is_refused_in_a_sentence(monkeypatch):
    started = fake_gpu(monkeypatch, (9, 0), "sm_80 sm_86")
    with pytest.raises(device.DeviceUnavailable, match=r"no code for this GPU \(sm_90\), only for sm_80, sm_86"):
        device.ready("cuda")
    assert started == []
    monkeypatch.setattr(torch._C, "_cuda_getArchFlags", lambda: "sm_80 sm_90")
    device.ready("cuda")
    assert started == ["init"]


@pytest.mark.parametrize(("capability", "runs"), [((6, 1), False), ((7, 0), True), ((7, 5), True), ((12, 0), True)])
def test_compiling_on_a_gpu_that_triton_does_not_support_is_refused_in_a_sentence(monkeypatch, capability, runs):
    fake_gpu(monkeypatch, capability, "sm_60 sm_70 sm_75 sm_120")
    device.ready("cuda")
    device.require_capability("intersection", "scripted")
    if runs:
        device.require_capability("warm_up", "compiled")
        return
    with pytest.raises(device.DeviceUnavailable, match=r"needs a GPU of sm_70 or newer, .* and this one is sm_61; the"):
        device.require_capability("warm_up", "compiled")


def test_environment_says_where_its_packages_came_from(tmp_path, monkeypatch):
    monkeypatch.setattr(facts.sys, "prefix", str(tmp_path))
    unknown = {"origin": "unknown, not checked", "installed": None}
    assert facts._installation() == unknown
    mark = tmp_path / facts.MARK
    digests = set()
    for digest in ("a", "b", "b"):
        mark.write_text(
            json.dumps({"origin": "torch from the cpu index, not checked", "digests": {"torch==1": digest}})
        )
        found = facts._installation()
        assert found["origin"] == "torch from the cpu index, not checked"
        assert len(found["installed"]) == 16
        digests.add(found["installed"])
    assert len(digests) == 2
    mark.write_text(json.dumps({"requirements": [], "packages": []}))  # a mark of old
    assert facts._installation() == unknown


def test_what_calls_leave_is_told_by_the_line_that_made_it(monkeypatch):
    monkeypatch.setattr(resident, "measured", lambda call: {"kept_objects": {"value": 2}})
    kept: list[Any] = []
    rows = explain.left(lambda: kept.extend((torch.ones(1000), {"x": kept})), __file__)["rows"]
    ((line, row),) = [one for one in rows.items() if one[0].startswith("test_measure.py:")]
    assert (row["of Tensor of float32 (1000,)"], row["of dict"], row["kept_objects"]) == (1, 1, 2)
    assert row["kept_bytes"] == row[f"at {line}"] == pytest.approx(4700, abs=300)


def test_operators_hold_what_profile_counts():
    """x * 2 and its exp live at the peak, 4,000 bytes each; the sum is 4 bytes. Each operator holds what it took."""
    x = torch.rand(1000)

    def call() -> torch.Tensor:
        return (x * 2.0).exp().sum()

    call()
    found, wanted = explain.by_allocation(call), profile.profile(call, "cpu")
    for metric in ("peak_memory", "retained", "allocations", "operators"):
        assert found[metric] == getattr(wanted, metric)
        assert sum(row.get(metric, 0) for row in found["rows"].values()) == found[metric]
    assert found["rows"]["aten::mul"]["peak_memory"] >= 4000
    assert found["rows"]["aten::exp"]["peak_memory"] == 4000
    assert found["rows"]["aten::sum"]["retained"] == 4
    assert found["rows"]["aten::fill_"]["callers"] == {"aten::sum": 1}
