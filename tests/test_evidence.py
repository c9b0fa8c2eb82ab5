"""Is evidence read back as it was found, and refused where it is none? What is made of it?"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from torch_history.analysis.causes import evidence as known_causes
from torch_history.cli.explaining import report
from torch_history.explaining.launching import Subject
from torch_history.explaining.reproduction import script
from torch_history.measuring.kit.check import check
from torch_history.store import causes, sources
from torch_history.store.causes import Evidence, Place, Pulled

from .lab import AXIS
from .processes import ROOT, ran
from .result_files import write_machine

BENCHMARK = "selection.Selection.track_time"
EVIDENCE = Evidence(
    environment="release-py3.11",
    benchmark=BENCHMARK,
    version=sources.versions(ROOT)[BENCHMARK],
    parameters=("'mask'", "'vector 50 % x 10'"),
    old="v2.13.0",
    new="v2.14.0",
    taken_at="2026-11-23T09:00:00+00:00",
    took=200.0,
    clock="cpu",
    numbers=((1e-3, 1.01e-3), (2e-3, 2.02e-3)),
    ratio=2.0,
    low=1.9,
    high=2.1,
    verdict="CAUSE",
    words="because aten::index holds 95 % of the difference",
    levers=(
        Pulled("collector off", "the collector off", "it", "CLEARED", (1e-3,), (2e-3,), 0.01, -0.1, 0.1),
        Pulled("fuser off", "the fuser off", "it", refused="the call uses nothing of it"),
    ),
    places=(
        Place("operator", "aten::index", 0.8e-3, 1.75e-3, 0.9e-3, 1e-3, "CAUSE", (10.0, 10.0)),
        Place("operator", "everything else", 0.2e-3, 0.25e-3, -1e-4, 2e-4),
    ),
    notes=("no table of native symbols: perf is not installed",),
    commits=("a" * 40, "b" * 40),
    environments=({"torch": "2.13.0"}, {"torch": "2.14.0"}),
    script="import torch\nprint(1)\n",
    reproduced=(1e-3, 2e-3),
)


def stored(tmp_path: Path, evidence: Evidence = EVIDENCE) -> Path:
    return causes.write(tmp_path / "results", "here", evidence)


def test_evidence_is_read_back_as_it_was_written(tmp_path):
    stored(tmp_path)
    assert list(causes.read(tmp_path / "results", "here")) == [EVIDENCE]


@pytest.mark.parametrize(
    "changed",
    [
        *({"schema": 2}, {"verdict": "PERHAPS"}, {"ratio": -1}, {"ratio": "2"}),
        *({"words": "x" * (causes.LONGEST_WORDS + 1)}, {"words": "\u202e"}, {"numbers": [[-1], [1]]}),
        {"old": "v2.12.0"},
        {"places": [{"kind": "planet", "name": "a", "old": 1, "new": 1, "low": 1, "high": 1}]},
        {},
    ],
    ids=lambda changed: "-".join(changed) or "too large",
)
def test_what_is_no_evidence_is_left_out_and_named_by_check(tmp_path, caplog, changed):
    path = stored(tmp_path)
    text = json.dumps({**json.loads(path.read_text()), **changed})
    path.write_text(text if changed else text + " " * causes.LARGEST)
    assert list(causes.read(tmp_path / "results", "here")) == []
    assert [problem for problem in problems(tmp_path) if path.name in problem]


def problems(tmp_path: Path) -> list[str]:
    return check(tmp_path / "results", AXIS).problems


def test_check_says_nothing_of_whole_evidence_and_names_unknown_releases(tmp_path):
    stored(tmp_path)
    of_evidence = [problem for problem in problems(tmp_path) if "causes" in problem]
    assert of_evidence == []
    stored(tmp_path, structs.replace(EVIDENCE, new="v9.9.9"))
    assert any("there is no release v9.9.9 on the axis" in problem for problem in problems(tmp_path))


def told(tmp_path: Path, name: str) -> list[tuple[str, str]]:
    return [(one.words, one.seen_on) for one in known_causes(tmp_path / "results", name)]


@pytest.mark.parametrize(
    ("device", "verdict", "said"),
    [("cpu", "CAUSE", "; seen on another machine (AMD EPYC here)"), ("recorder", "CAUSE", ""), ("cpu", "UNKNOWN", "")],
)
def test_a_cause_that_another_processor_showed_names_it_and_nothing_else_is_told(tmp_path, device, verdict, said):
    for name, on in (("here", "cpu"), ("there", device)):
        write_machine(tmp_path / "results" / name, cpu=f"AMD EPYC ({name})", device=on)
    stored(tmp_path, structs.replace(EVIDENCE, verdict=verdict))
    assert told(tmp_path, "here") == [(EVIDENCE.words, "")]
    assert told(tmp_path, "there") == ([(EVIDENCE.words + said, "AMD EPYC here")] if said else [])


@pytest.mark.parametrize(
    ("reproduced", "shows"),
    [
        *(((1e-3, 2e-3), True), ((1e-3, 2.8e-3), True), ((1e-3, 2.9e-3), False), ((1e-3, 1.3e-3), False)),
        *(((2e-3, 1e-3), False), (None, False)),
    ],
)
def test_script_that_does_not_show_the_difference_is_said(reproduced, shows):
    evidence = structs.replace(EVIDENCE, reproduced=reproduced)
    assert evidence.is_reproduced == shows
    assert ("which does not show the difference" in report(evidence)) == (bool(reproduced) and not shows)


@pytest.mark.parametrize(
    ("case", "holds", "lacks"),
    [
        (("selection", "index_reused", "vector 50 % x 10"), ["def by_index("], ["by_take", "operators("]),
        (("batching", "tensor_of_lists", "64 x 128"), ["torch.tensor(lists)"], ["np.stack", "65_536"]),
        (("intersection", "scripted", "small"), ["def overlap(", "def scripted(", "class Unavailable"], ["def check("]),
        (("saved_tensors", "checkpoint", "loop"), ["checkpoint("], ["subprocess"]),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_script_holds_what_the_variant_needs_and_nothing_of_ours(case, holds, lacks):
    workload, variant, size = case
    text = script(Subject(ROOT, workload, variant, size, "time"), "a head")
    compile(text, "script.py", "exec")
    assert text.startswith("# a head\n")
    assert all(part in text for part in holds)
    assert not any(part in text for part in [*lacks, "workloads", "torch_history", "measure"])


def test_script_of_an_own_file_calls_its_function_with_its_inputs(tmp_path):
    own = tmp_path / "mine.py"
    own.write_text(
        "import torch\nSCALE = 2\n\ndef inputs(seed, size):\n    return len(size) * SCALE\n\n"
        "def double(x):\n    return 2 * x\n\ndef other(x):\n    return x\n\n"
        "sizes = {'small': 1, 'large': 2}\nfunctions = {'double': double, 'other': other}\n"
    )
    text = script(Subject(ROOT, str(own), "double", "small", "time"), "")
    assert "def other" not in text
    folder = tmp_path / "torch" / "utils"
    folder.mkdir(parents=True)
    (tmp_path / "torch" / "__init__.py").write_text("def manual_seed(n): pass\n")
    (folder / "benchmark.py").write_text(
        "import timeit\n\nclass Timer:\n    def __init__(self, statement, globals, num_threads, timer):\n"
        "        self.timer = timeit.Timer(statement, globals=globals)\n\n"
        "    def blocked_autorange(self, min_run_time):\n        self.times = [self.timer.timeit(1)]\n        return self\n"
    )
    (tmp_path / "script.py").write_text(text)
    done = ran(sys.executable, "script.py", cwd=tmp_path, code=None)
    unit, _, number = done.stdout.partition(": ")
    assert unit == "seconds a call", done.stderr
    assert 0 < float(number) < 1


def test_script_has_the_threads_of_its_file_and_then_the_clock_on_the_wall():
    one = Subject(ROOT, "batching", "tensor_of_lists", "64 x 128", "time")
    assert "num_threads=1, timer=time.process_time" in script(one, "")
    assert "num_threads=2, timer=time.perf_counter" in script(replace(one, threads=2), "")
