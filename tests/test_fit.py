"""Does `fit` find the largest batch, say when it cannot tell, and refuse what only a GPU can tell?"""

import json
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from recorder.build import Built, build
from recorder.cards import DEVICES, cards
from recorder.environments import create, python_for
from torch_history.cli import main
from torch_history.cli.fit import UNSURE, _answer
from torch_history.measuring.subjects import OwnWorkload
from torch_history.measuring.upgrading import counted
from torch_history.measuring.upgrading import fits as answer
from torch_history.measuring.upgrading.counted import MIB, UNLIMITED, Outcome, Process, Try, Wanted, explained, find
from torch_history.measuring.upgrading.fits import TRIES, Largest, largest, said_of
from torch_history.system.errors import UserError

from .lab import AXIS
from .processes import ROOT
from .test_recorder import wheel

EXAMPLE = ROOT / "docs" / "examples" / "transformer_step.py"
PEAKS = {**dict.fromkeys(("peak_allocated", "peak_reserved", "peak_taken"), MIB), "queries": 0, "out_of_memory": False}


def card(took: Callable[[int], int], surely: int, at_most: int, asked: list[int]) -> Callable[[int], Try]:
    """Tries on a card for a workload that takes so many bytes for a batch."""

    def attempt(batch: int) -> Try:
        asked.append(batch)
        if took(batch) > at_most:
            return Try(Outcome.TOO_MUCH)
        return Try(Outcome.FITS if took(batch) <= surely else Outcome.UNCLEAR, took(batch))

    return attempt


@pytest.mark.parametrize("each", [1, 7, 93, 1_000, 20_011])
@pytest.mark.parametrize("start", [1, 8, 500])
def test_largest_batch_is_found_in_few_tries(each, start):
    asked: list[int] = []
    attempt = card(lambda batch: 4_000 + each * batch, 90_000, 100_000, asked)
    found = largest(attempt, start, 90_000, 100_000)
    fits, most = max(0, 86_000 // each), max(0, 96_000 // each)
    assert len(asked) == len(set(asked)) <= TRIES
    assert found.fits == fits
    assert most < found.too_much <= max(most + 2, start)


def test_steps_in_memory_cost_no_more_tries():
    """Segments make memory grow in steps, and a line through two tries is wrong."""
    asked: list[int] = []
    attempt = card(lambda batch: -(-batch * batch * 37 // 20_000) * 20_000, 10**7, 10**7, asked)
    found = largest(attempt, 3, 10**7, 10**7)
    assert len(asked) <= TRIES
    assert attempt(found.fits).outcome is Outcome.FITS
    assert found.too_much is not None
    assert attempt(found.too_much).outcome is Outcome.TOO_MUCH
    assert found.too_much - found.fits <= 40


def test_what_was_found_is_said_and_what_was_not_counted_is_no_answer():
    fits, unclear, no = Try(Outcome.FITS, 1), Try(Outcome.UNCLEAR, 2), Try(Outcome.TOO_MUCH)
    assert said_of(Largest({8: fits, 9: no})) == "8 fits, 9 does not (2 tries)"
    assert "INCONCLUSIVE for 9 to 11; 12 does not fit" in said_of(Largest({8: fits, 10: unclear, 12: no}))
    assert said_of(Largest({1: no})).startswith("none fits surely")
    assert said_of(Largest({8: no, 9: fits})).startswith("INCONCLUSIVE")
    assert "INCONCLUSIVE for 7" in said_of(Largest({7: unclear, 8: fits, 9: no}))


def test_cards_are_known_by_name_and_by_memory_and_others_are_like_one():
    assert find("t4").card.key == find("Tesla T4").card.key == find("16GB").card.key == "turing"
    assert find("24GB").memory == min(of.memory for of in cards().values() if of.sold_with == 24) < find("3090").memory
    assert find("a100-80gb").memory == 85_197_848_576
    other = find("rtx3090", 12.0)
    assert (other.card.key, other.memory) == ("rtx3090", 12 * 10**9)
    assert other.title == "a card like NVIDIA GeForce RTX 3090 (sm_86, 12,000,000,000 bytes)"
    with pytest.raises(UserError, match=r"No card 'abacus' is known\. Name one of these: .*t4 \(16 GB, sm_75\)"):
        find("abacus")


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        ("cudnnCreate, cudnnSetStream of CUDA was called", r"It asks cuDNN \(cudnnCreate\), .* only a GPU can tell"),
        ("The host read 4 bytes back from the device, and no kernel ran: x", "device, and no kernel ran, so .* READS_BY"),
        ("torch 1.8.1 was built without CUDA", "torch 1.8.1 was built without CUDA"),
    ],
)  # fmt: skip
def test_what_only_a_gpu_can_tell_is_refused_in_a_sentence(refused, said):
    assert re.search(said, explained(refused))


@pytest.mark.parametrize(
    ("cuda", "nvrtc", "zero", "said"),
    [
        ("None", True, "", "was built without CUDA"),
        ("'12.8'", False, "", "needs NVRTC to compile fused kernels"),
        ("'12.8'", True, "multiProcessorCount", "multiProcessorCount of the card 'turing' is 0"),
    ],
)
def test_what_would_make_bytes_wrong_is_refused_alone(tmp_path, monkeypatch, results, cuda, nvrtc, zero, said):
    devices = tmp_path / "devices.toml"
    devices.write_text(re.sub(rf"(?m)^{zero or 'none at all'} = .*", f"{zero} = 0", DEVICES.read_text(), count=1))
    environment = wheel(tmp_path / "env", cuda=cuda, nvrtc=nvrtc)
    monkeypatch.setattr(answer, "create", lambda *_: environment)
    monkeypatch.setattr(answer, "build", lambda folder: build(folder, devices=cards(devices)))
    asked = CliRunner().invoke(main, ["fit", str(EXAMPLE), "--to", "2.9.0"])
    assert asked.exit_code == 1
    assert said in " ".join(asked.output.split())
    assert "peak allocated" not in asked.output


def answered(says):
    if isinstance(says, KeyboardInterrupt):
        raise says
    return says


def played(monkeypatch, says, *variants, example="transformer_step"):
    """What `fit` says of an example, and how it ends, on two releases whose processes offer and say what is given."""

    def begin(self, release, *_):
        self.version, self.uncounted, self._wanted = release.version, 0, find("t4")
        self.offer = {"variants": variants, "sizes": ["small", "large"], "batch": 4}
        self._process = SimpleNamespace(tell=self.__dict__.update, close=list)

    monkeypatch.setattr(answer, "made", lambda release, *_: release)
    monkeypatch.setattr(Process, "__init__", begin)
    monkeypatch.setattr(Process, "_answer", lambda self: answered(says.get((self.version, self.variant), PEAKS)))
    ended = CliRunner().invoke(main, ["fit", str(EXAMPLE.with_stem(example)), "--from", "2.8.0", "--to", "2.9.0"])
    return " ".join(ended.output.split()), ended.exit_code


def test_a_file_that_names_no_functions_is_refused_before_anything_is_installed(monkeypatch, results):
    for example in ("script", "import_time", "transformer_step"):
        said, code = played(monkeypatch, {}, example=example)
        assert (code, "names no functions" in said, "installed" in said) == (1, True, "step" in example)


def test_a_function_that_fails_on_a_release_costs_no_other_number(monkeypatch, results):
    why = {("2.8.0", "new"): {"unavailable": "needs torch >= 2.9."}, ("2.9.0", "old"): {"failed": "gone"}}
    said, code = played(monkeypatch, why, "good", "new", "old")
    assert (code, said.count("2.8.0 1.0 1.0"), said.count("2.9.0 1.0 1.0")) == (3, 2, 2)
    assert re.search("good, small, batch 4 r.*'new' .* run on 2.8.0: needs torch >= 2.9. 'old' .* failed on 2.9", said)
    assert played(monkeypatch, {(each, "new"): {"failed": "x"} for each in ("2.8.0", "2.9.0")}, "new")[1] == 1
    monkeypatch.setattr(answer, "missing", lambda *_: [])
    said, code = played(monkeypatch, {}, "good")
    assert (code, re.search(r"releases are installed|1 minutes", said)) == (0, None)


def test_what_was_counted_before_an_interruption_is_told(monkeypatch, results):
    said, code = played(monkeypatch, {("2.9.0", "good"): KeyboardInterrupt()}, "good")
    assert (code, said.count("2.8.0 1.0 1.0")) == (130, 1)


def test_the_text_that_is_counted_is_the_one_that_was_read_at_first(monkeypatch, tmp_path):
    asked = SimpleNamespace(answer=lambda: {"variants": []})
    monkeypatch.setattr(counted, "Answering", lambda words, _: asked.__dict__.update(words=words) or asked)
    wheel = SimpleNamespace(version="2.9.0", cuda=(12, 8), packages=tmp_path / "lib" / "python" / "packages")
    built: Any = SimpleNamespace(wheel=wheel, surroundings=lambda _: {})
    Process(built, find("t4"), EXAMPLE, tmp_path / "kept.py")
    assert asked.words[-2:] == [str(EXAMPLE), str(tmp_path / "kept.py")]


CONVOLUTION = """
import torch
from workloads import Unavailable
def inputs(device):
    return torch.ones(1, 3, 32, 32, device=device), torch.ones(8, 3, 3, 3, device=device)
def item(image, kernel):
    return float(image.sum())
def new(image, kernel):
    raise Unavailable("needs torch >= 9")
functions = {"convolution": torch.conv2d, "item": item, "new": new}
"""

SORT = """
import torch
def inputs(device):
    return torch.zeros(100_000, dtype=torch.int64, device=device)
functions = {"sort": torch.sort}
"""

TWO_STREAMS = """
import torch
def inputs(device):
    return torch.cuda.Stream(device)
def shared(side):
    for _ in range(8):
        block = torch.empty(20 * 2**20, dtype=torch.uint8, device="cuda")
        block.record_stream(side)
        del block
    torch.cuda.synchronize()
def alone(side):
    for _ in range(8):
        torch.empty(20 * 2**20, dtype=torch.uint8, device="cuda")
functions = {"shared": shared, "alone": alone}
"""


def test_where_a_release_has_the_suites_python_the_recorder_takes_it():
    (python,) = json.loads((ROOT / "asv.conf.json").read_text(encoding="utf-8"))["pythons"]
    releases = AXIS.releases
    assert {python_for(each) for each in releases if python in each.pythons} == {python}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Built:
    release = AXIS.find("2.15.0")
    here = ROOT / "env" / "recorder" / f"{release.tag}-py{python_for(release)}"
    folder = here if here.exists() else tmp_path_factory.mktemp("env") / release.tag
    return build(create(release, python_for(release), folder), tmp_path_factory.mktemp("recorder"))


@pytest.mark.releases
def test_out_of_memory_comes_where_the_counted_peak_is(built):
    with Process(built, find("t4"), EXAMPLE, EXAMPLE) as process:
        peak = process.held("step", "", 4, 0, UNLIMITED)
        assert peak["peak_taken"] == peak["peak_reserved"] > peak["peak_allocated"] > 300 * MIB
        exactly = process.held("step", "", 4, 0, peak["peak_taken"])
        assert (exactly["out_of_memory"], exactly["retries"]) == (False, 0)
        occupied = process.held("step", "", 4, 10**9, peak["peak_taken"] + 10**9)
        assert occupied["peak_taken"] == peak["peak_taken"]
        less = process.held("step", "", 4, 0, peak["peak_taken"] - 1)
        assert less["out_of_memory"] or less["retries"]
        assert process.held("step", "", 4, 0, peak["peak_allocated"] - 1)["out_of_memory"]


@pytest.mark.releases
@pytest.mark.parametrize("gpu", ["t4", "rtx3090", "rtx4090", "a100", "h100"])
def test_a_sort_takes_the_code_that_the_wheel_has_for_the_card(built, gpu, tmp_path):
    """The wheel has no code of its own for an RTX 4090 (sm_89), which runs that for sm_86. CUB asks which it is."""
    workload = tmp_path / "sort.py"
    workload.write_text(SORT)
    with Process(built, find(gpu), workload, workload) as process:
        found = process.held("sort", "", None, 0)
    assert not found["out_of_memory"]
    assert found["peak_allocated"] >= 2 * 8 * 100_000


@pytest.mark.releases
def test_what_depends_on_a_device_that_may_not_have_finished_is_a_range(built, tmp_path, monkeypatch):
    """A block of 20 MiB that a second stream uses is free when that has finished: one is enough, or it takes all eight."""
    workload, block = tmp_path / "streams.py", 20 * MIB
    workload.write_text(TWO_STREAMS)
    both = [*answer.count(built, find("t4", 1.2), OwnWorkload.of(workload), [], lambda _: None)]
    assert [each.reserved for each in both] == [(block, 8 * block), (block, block)]
    said = _answer(both, find("t4", 1.2))
    assert re.search(r"20\.0 +20\.0 to 160\.0", said)
    assert "A range: memory that two streams use" in said
    assert UNSURE not in _answer(both[1:], find("t4", 1.2))
    # PyTorch waits for the device before it runs out of memory.
    with Process(built, find("t4"), workload, workload) as process:
        monkeypatch.setattr(process, "uncounted", 0)
        for memory, outcome in ((block, Outcome.FITS), (block - 1, Outcome.TOO_MUCH)):
            monkeypatch.setattr(process, "_wanted", Wanted(find("t4").card, memory))
            assert process.attempt("shared", "", None).outcome is outcome


@pytest.mark.releases
def test_a_convolution_and_a_value_that_is_read_are_refused(built, tmp_path):
    workload = tmp_path / "convolution.py"
    workload.write_text(CONVOLUTION)
    with Process(built, find("t4"), workload, workload) as process:
        for name, said in (
            ("convolution", r"'convolution' cannot be counted on 2\.15\.0\. It asks cuDNN .* only a GPU"),
            ("item", "READS_BY_DESIGN"),
            ("new", r"^'new' cannot run on 2\.15\.0: needs torch >= 9\.$"),
        ):
            with pytest.raises(UserError, match=said):
                process.held(name, "", None, 0)
