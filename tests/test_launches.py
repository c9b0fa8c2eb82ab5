"""Is every launch kept, with its samples or the reason for having none, and is none ever lost, not even where lines are
compressed? asv's answers are made by hand."""

import datetime
import gzip
import itertools
import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest
from asv import util
from asv.results import Results
from asv.runner import BenchmarkResult, fail_benchmark

from tools import pack_results
from torch_history.measuring import recording
from torch_history.measuring.recording import RecordedResults, Told, of_sibling
from torch_history.releases import environments
from torch_history.store.launches import (
    Case,
    Launch,
    append_launches,
    machines_in,
    of_file,
    packages_words,
    read_environment,
    read_launches,
)
from torch_history.system import files

MACHINE = {"machine": "a-machine", "arch": "x86_64", "cpu": "a cpu", "num_cpu": "2", "os": "Linux", "ram": "8 GiB"}
ENVIRONMENT = "release-py3.11"
TIME: dict[str, Any] = {
    **{"name": "intersection.Intersection.track_time", "version": "1", "type": "time", "unit": "seconds"},
    "params": [["'eager'", "'scripted'"], ["'small'", "'paper'"]],
}
"""Cases in asv's order: (eager, small), (eager, paper), (scripted, small), (scripted, paper)."""
CASES = [("'eager'", "'small'"), ("'eager'", "'paper'"), ("'scripted'", "'small'"), ("'scripted'", "'paper'")]
BYTES = {**TIME, "name": "intersection.Intersection.track_peak_memory", "type": "track", "unit": "bytes"}

FACTS = {"torch": "2.0.1+cu117", "python": "3.11.7", "threads": 1, "device": "cpu"}
TRACEBACK = """\
Traceback (most recent call last):
  File "benchmarks/common.py", line 103, in setup
    self._workload.check(arguments, result)
workloads.WrongResult: an overlap area is off by 3.2 square pixels"""


def results(tag: str = "v2.0.1", machine: dict[str, str] = MACHINE) -> RecordedResults:
    """What asv makes once for each start of its fork server."""
    return RecordedResults({**machine, "python": "3.11"}, {}, tag, 0, "3.11", ENVIRONMENT, {})


SAID: dict[int, Told] = {}
"""What the cases of the last `answer` told, as if their processes had just ended."""


def answer(
    values: list[Any], said: dict[int, dict[str, Any]] | None = None, status: int = 0, printed: str = ""
) -> BenchmarkResult:
    """asv's answer: a list stands for samples, anything else is a value; `said` are the facts that each case told, and
    `printed` is what those that have no result printed."""
    samples = [value if isinstance(value, list) else None for value in values]
    results = [value if of_case is None else True for value, of_case in zip(values, samples, strict=True)]
    SAID.clear()
    for i, facts in (said or {}).items():
        SAID[i] = Told(facts, printed if results[i] is None else "", status, results[i], samples[i])
    number = [None if of_case is None else 1 for of_case in samples]
    return BenchmarkResult(results, samples, number, errcode=status, stderr="", profile=None)


def add(recorded: RecordedResults, benchmark: dict[str, Any], given: BenchmarkResult, **more: Any) -> None:
    for i, told in SAID.items():
        recording.channel().ended[benchmark["name"], i] = told
    recorded.add_result(benchmark, given, record_samples=True, append_samples=True, **more)


def keep(folder: Path, benchmark: dict[str, Any], given: BenchmarkResult, **more: Any) -> None:
    """Stores one answer, as one start of asv's fork server would."""
    recorded = results()
    add(recorded, benchmark, given, **more)
    recorded.save(str(folder))


def stored(folder: Path) -> list[Launch]:
    return list(read_launches(folder, "a-machine"))


def file_of(folder: Path, tag: str = "v2.0.1", ending: str = "jsonl") -> Path:
    return folder / "a-machine" / f"{tag}-{ENVIRONMENT}.{ending}"


def asvs(folder: Path, tag: str = "v2.0.1") -> Results:
    return Results.load(str(file_of(folder, tag, "json")), machine_name="a-machine")


@pytest.fixture(autouse=True)
def anew(warned) -> None:
    """Nothing was refused or said before, and warnings go to the list `warned`."""
    environments.refusals.clear()
    SAID.clear()
    recording.channel().ended.clear()


SAMPLES = [[0.30, 0.31, 0.32], [2.4, 2.6, 2.5], [0.03, 0.05, 0.04], [0.3, 0.3, 0.4]]


def test_launch_keeps_samples_case_by_case(tmp_path):
    keep(tmp_path, TIME, answer(SAMPLES, dict.fromkeys(range(4), FACTS)), duration=12.345)
    (launch,) = stored(tmp_path)
    assert [case.parameters for case in launch.cases] == CASES
    assert [list(case.samples) for case in launch.cases] == SAMPLES
    assert [case.number for case in launch.cases] == [0.30, 2.4, 0.03, 0.3]
    of = (launch.release, launch.environment, launch.benchmark, launch.version)
    assert of == ("v2.0.1", ENVIRONMENT, "intersection.Intersection.track_time", "1")
    assert launch.duration == pytest.approx(12.345, abs=0.01)
    facts = dict(launch.facts)
    assert facts.pop("load") >= 0
    assert facts == FACTS


def test_asv_records_launches_once_the_plugin_is_loaded(monkeypatch):
    import asv.commands.find
    import asv.commands.run

    for command in (asv.commands.run, asv.commands.find):
        monkeypatch.setattr(command, "Results", Results)
    recording.setup()
    assert asv.commands.run.Results is RecordedResults
    assert asv.commands.find.Results is RecordedResults


def test_each_case_keeps_its_own_exit_status(tmp_path):
    empty = "asv: failed to parse benchmark result: Expecting value: line 1 column 1 (char 0)"
    given = answer([None] * 4)
    ends = [("", -11), (empty, -257), ("", 3), ("asv: benchmark timed out (timeout 300s)", util.TIMEOUT_RETCODE)]
    SAID.update({i: Told({}, output, status) for i, (output, status) in enumerate(ends)})
    keep(tmp_path, TIME, given._replace(errcode=3))
    words = [case.reason for case in stored(tmp_path)[0].cases]
    assert words == [
        "the process was ended by signal 11 before it could answer",
        "the process ended without an answer",
        "the process ended with exit status 3 and no answer",
        f"{OURS}benchmark timed out (timeout 300s)",
    ]


def test_benchmarks_of_one_start_share_a_launch_and_another_start_is_another(tmp_path):
    for _ in range(2):
        recorded = results()
        add(recorded, TIME, answer(SAMPLES))
        add(recorded, BYTES, answer([1, 2, 3, 4]))
        recorded.save(str(tmp_path))
    launches = stored(tmp_path)
    assert [launch.launch == launches[0].launch for launch in launches] == [True, True, False, False]
    assert len({launch.session for launch in launches}) == 1


def test_skipped_case_keeps_the_reason_it_printed(tmp_path):
    said = {**FACTS, "unavailable": "torch.compile needs torch >= 2.0"}
    keep(tmp_path, TIME, answer([*SAMPLES[:2], math.nan, math.nan], {2: said}))
    launch = stored(tmp_path)[0]
    assert launch.cases[2] == Case(CASES[2], unavailable="torch.compile needs torch >= 2.0")
    assert launch.cases[3] == Case(CASES[3], unavailable="skipped without a reason")
    assert launch.cases[2].number is None
    assert "unavailable" not in launch.facts


def reason(tmp_path: Path, printed: str) -> str:
    keep(tmp_path, TIME, answer([*SAMPLES[:3], None], {3: FACTS}, 1, printed))
    case = stored(tmp_path)[0].cases[3]
    assert case.number is None
    assert not case.unavailable
    return case.reason


OURS = "not measured, because "
"""How the reason of a case begins that the suite failed to measure."""

LONG = """
benchmarks.common.CaseFailed: UnpicklingError: Weights only load failed, \x1b[1mdo those steps\x1b[0m:
    \t(1) Set `weights_only` to False.
Look into the documentation to learn more.
"""


def test_failed_case_keeps_what_a_long_message_says_first(tmp_path):
    before = TRACEBACK.rstrip().rpartition("\n")[0]
    first = "UnpicklingError: Weights only load failed, do those steps: (1) Set `weights_only` to False."
    assert reason(tmp_path, before + LONG) == first
    raised = "\ntorch._dynamo.exc.BackendCompilerFailed: backend raised:\nInvalidCxxCompiler: No compiler\n\nSet TORCH"
    (tmp_path / "other").mkdir()
    said = reason(tmp_path / "other", before + raised)
    assert said == "BackendCompilerFailed: backend raised: InvalidCxxCompiler: No compiler"


BY_ASV = """\
Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/asv_runner/server.py", line 190, in _run_server
    _run(run_args)
  File "/env/lib/python3.11/site-packages/asv_runner/run.py", line 81, in _run
    with open(result_file, "w") as fp:
OSError: [Errno 28] No space left on device"""
BY_SUITE = TRACEBACK.rpartition("\n")[0] + "\nmeasure.device.NotMeasured: what it found could not be kept: full"
BY_THE_CASE = BY_ASV.replace("    with open(", '    track()\n  File "/place/mine.py", line 3, in f\n    open(')


@pytest.mark.parametrize(
    ("said", "ours"),
    [
        *((BY_ASV, True), (BY_SUITE, True)),
        *((BY_SUITE.replace("measure.device.", "benchmarks.common.CaseFailed: "), True), (BY_THE_CASE, False)),
        (TRACEBACK, False),
    ],
    ids=["asv's file", "a file of the suite", "told by the process before", "a file of the case", "a wrong result"],
)
def test_failure_of_the_suite_is_told_apart_from_one_of_what_it_measures(tmp_path, said, ours):
    assert reason(tmp_path, said).startswith(OURS) == ours


def test_case_that_the_suite_could_not_measure_keeps_why(tmp_path):
    given = answer([*SAMPLES[:3], math.nan])
    SAID[3] = Told({"unmeasured": "no process can be forked"}, "", 0, math.nan)
    keep(tmp_path, TIME, given)
    (launch,) = stored(tmp_path)
    assert launch.cases[3] == Case(CASES[3], unmeasured="no process can be forked")
    assert "unmeasured" not in launch.facts


def test_answer_that_is_no_number_is_stored_as_a_failure(tmp_path):
    keep(tmp_path, BYTES, answer([4, math.inf, 8, -math.inf]))
    (launch,) = stored(tmp_path)
    assert [case.number for case in launch.cases] == [4, None, 8, None]
    assert launch.cases[1].failed == "its answer, inf, is no number"


FORKED = "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must"


@pytest.mark.parametrize(
    ("failed", "device", "ours"),
    [
        *((FORKED, "recorder", True), (FORKED, "cuda", False), ("benchmark timed out (timeout 300s)", "cpu", True)),
        ("RuntimeError: no kernel", "recorder", False),
    ],
)
def test_stored_failure_of_the_suite_is_read_as_one(failed, device, ours):
    launch = some_launch(release="v1.12.0", facts={"device": device}, cases=(Case((), failed=failed),))
    (case,) = Launch.from_json(launch.to_json()).cases
    assert (case.unmeasured, case.failed) == ((failed, "") if ours else ("", failed))


def tell(text: str) -> None:
    """Writes to the channel as a measuring process does."""
    with open(recording.channel().path, "a") as stream:
        stream.write(text)


@pytest.mark.parametrize("garbage", ['{"a": ', "[1]", '{"facts": 5}', '{"facts": {"found": 3}}', "[" * 5000])
def test_malformed_record_is_a_sentence_and_costs_no_other_case(warned, garbage):
    good = {"metric": "track_time", "parameters": list(CASES[1]), "facts": {"found": {"time": [0.5]}}}
    tell(f"{garbage}\n")
    recording.channel().note_end(TIME, 0, "", 0)
    tell(f"{json.dumps(good)}\n")
    recording.channel().note_end(TIME, 1, "", 0)
    told = [recording.told_of(TIME, i, answer([1, 1, 1, 1])) for i in (0, 1)]
    assert [each.facts for each in told] == [{}, {"found": {"time": [0.5]}}]
    assert len(warned) == 1
    assert "'eager' 'small' is skipped" in warned[0]


def test_answer_of_a_process_that_named_another_case_is_kept_under_no_name(tmp_path):
    facts = {"torch": "2.0.1", "found": {"time": [0.5]}}
    tell(json.dumps({"metric": "track_time", "parameters": list(CASES[1]), "facts": facts}) + "\n")
    recording.channel().note_end(TIME, 0, "", 0, True, [0.5])
    tell(json.dumps({"metric": "track_time", "parameters": list(CASES[1]), "facts": facts}) + "\n")
    recording.channel().note_end(TIME, 1, "", 0, True, [0.5])
    recorded = results()
    began = datetime.datetime.now(datetime.timezone.utc)
    for index in (0, 1):
        recorded.take(index, recording.channel().ended.pop((TIME["name"], index)), began)
    recorded.record([TIME], {}, str(tmp_path))
    assert [case.number for case in stored(tmp_path)[0].cases] == [None, 0.5]
    assert stored(tmp_path)[0].cases[0].unmeasured == recording.ANOTHER_CASE


def test_process_is_asked_for_one_case_by_its_name():
    """Its place among all cases is another one in a process that lists them in another order."""
    asked = []

    def ask(benchmark: dict[str, Any], spawner: Any, place: int) -> BenchmarkResult:
        (parameters,) = itertools.product(*benchmark["params"])
        with open(recording.channel().path) as stream:
            asked.append((parameters, place, json.loads(stream.readline())))
        tell(json.dumps({"metric": "track_time", "parameters": parameters, "facts": {"torch": "2.0.1"}}) + "\n")
        return BenchmarkResult([True], [[0.25]], [1], 0, "", None)

    remembered = recording._remember(ask)
    assert remembered(TIME, None, 2).samples == [[0.25]]
    assert remembered(TIME, None, 0).samples == [[0.25]]
    assert asked == [(CASES[i], 0, {"asked": list(CASES[i]), "only": ""}) for i in (2, 0)]
    assert {i: recording.told_of(TIME, i, answer([])).samples for i in (0, 2)} == {0: [0.25], 2: [0.25]}


@pytest.mark.parametrize(
    "words", ["caf\udce9", "a\0b", "x" * 10**7, "y\n" * 10**6], ids=["half", "NUL", "long", "lines"]
)
def test_what_a_case_prints_can_be_stored_whatever_it_is(tmp_path, words):
    said = recording.channel().note_end(TIME, 0, f"{TRACEBACK}{words}", 1)
    recorded = results()
    recorded.take(0, said, datetime.datetime.now(datetime.timezone.utc))
    recorded.record([TIME], {}, str(tmp_path))
    (case,) = stored(tmp_path)[0].cases
    assert case.failed.startswith("WrongResult: an overlap area is off by 3.2 square pixels")
    assert file_of(tmp_path, ending="json").stat().st_size < 300_000


def test_what_a_case_prints_is_output_and_nothing_else():
    printed = 'torch-history: {"a": \nFor parameters: \'eager\', \'paper\'\ntorch-history: {"unavailable": "ha"}'
    recording.channel().note_end(TIME, 0, f"For parameters: 'eager', 'small'\n{printed}", 0)
    assert recording.told_of(TIME, 0, answer([1, 1, 1, 1])) == Told({}, printed, 0)


def test_sibling_of_which_nothing_was_told_is_not_given_the_number_of_another_metric():
    told = of_sibling(TIME, {0: Told({}, "", 0, 8)})
    assert math.isnan(told[0].value)
    assert told[0].facts["unmeasured"] == "its process did not tell what it had found as time"


def test_suite_that_could_not_be_imported_says_so_for_every_case(tmp_path):
    # So asv answers where a release's torch crashes while it is imported.
    keep(tmp_path, TIME, fail_benchmark(TIME, stderr="asv: benchmark suite import failed"))
    for case in stored(tmp_path)[0].cases:
        assert "import failed" in case.failed


NOT_ASKED = {"not_asked": "size paper was not asked for: set TORCH_HISTORY_SIZES=paper"}


def test_size_not_asked_for_is_no_case_and_leaves_what_asv_knew(tmp_path):
    first, second = results(), results()
    add(first, TIME, answer(SAMPLES))
    first.save(str(tmp_path))
    second.load_data(str(tmp_path))
    add(second, TIME, answer([[0.9], math.nan, [0.8], math.nan], {0: FACTS, 1: NOT_ASKED, 2: FACTS, 3: NOT_ASKED}))
    second.save(str(tmp_path))
    assert [case.parameters for case in stored(tmp_path)[1].cases] == [CASES[0], CASES[2]]
    assert "not_asked" not in stored(tmp_path)[1].facts
    kept = asvs(tmp_path).get_result_samples(TIME["name"], TIME["params"])
    assert kept == [[*SAMPLES[0], 0.9], SAMPLES[1], [*SAMPLES[2], 0.8], SAMPLES[3]]


def test_cases_that_asv_did_not_select_are_no_cases(tmp_path):
    keep(tmp_path, TIME, answer([math.nan, math.nan, SAMPLES[2], math.nan]), selected_idx={2})
    assert [case.parameters for case in stored(tmp_path)[0].cases] == [CASES[2]]


def test_asv_reads_its_file_with_the_samples_of_all_launches_pooled(tmp_path):
    for shift in (0.0, 1.0):
        recorded = results()
        recorded.load_data(str(tmp_path))
        add(recorded, TIME, answer([[sample + shift for sample in samples] for samples in SAMPLES]))
        recorded.save(str(tmp_path))
    read = asvs(tmp_path)
    pooled = [samples + [sample + 1.0 for sample in samples] for samples in SAMPLES]
    assert read.get_result_samples(TIME["name"], TIME["params"]) == pooled
    medians = [statistics.median(samples) for samples in pooled]
    assert read.get_result_value(TIME["name"], TIME["params"]) == pytest.approx(medians)
    assert read.commit_hash == "v2.0.1"


def test_refused_release_writes_nothing(tmp_path, monkeypatch):
    keep(tmp_path, TIME, answer(SAMPLES))
    files = {path: path.read_bytes() for path in file_of(tmp_path).parent.iterdir()}
    assert len(files) == 2
    monkeypatch.setitem(environments.refusals, ("v2.0.1", ENVIRONMENT), "it has no wheel")
    monkeypatch.setitem(environments.refusals, ("v2.1.0", ENVIRONMENT), "it has no wheel")
    for tag in ("v2.0.1", "v2.1.0"):
        # asv records a release that it could not install as failed in every benchmark
        refused = results(tag)
        refused.load_data(str(tmp_path))
        add(refused, TIME, fail_benchmark(TIME))
        refused.save(str(tmp_path))
    assert {path: path.read_bytes() for path in file_of(tmp_path).parent.iterdir()} == files


@pytest.mark.parametrize(
    ("torch", "warns"), [("2.0.1+cu117", False), ("2.0.1", False), ("2.1.0+cu121", True), ("2.0.1.post2", False)]
)
def test_another_torch_than_the_release_is_warned_of(tmp_path, warned, torch, warns):
    keep(tmp_path, TIME, answer(SAMPLES, {0: {"torch": torch}}))
    assert len(warned) == warns
    if warns:
        assert f"torch {torch} was measured" in warned[0]
        assert "v2.0.1" in warned[0]


def some_launch(launch: str = "aa", **changed: Any) -> Launch:
    which = {"session": "20261121T043720-2c12", "round": 1, "launch": launch, "release": "v2.0.1", "version": "1"}
    when = {"started_at": "2026-11-21T04:37:20+00:00", "duration": 1.5, "facts": {"torch": "2.0.1"}}
    found = {"environment": ENVIRONMENT, "benchmark": TIME["name"], "cases": (Case(CASES[0], samples=(0.1, 0.2)),)}
    return Launch(**{**which, **when, **found, **changed})


@pytest.mark.parametrize(
    "cases",
    [
        (Case(CASES[0], samples=(0.1, 1.2345678901234567e-10, 0.30000000000000004)),),
        (Case(CASES[0], value=0), Case(CASES[1], value=240_000_000), Case(CASES[2], value=-0.5)),
        (Case(CASES[0], unavailable="needs torch ≥ 2.0 — „Größe“ \u2028 \x85 \t\r\n 盒 🙂"),),
        *((Case(CASES[0], failed='said "no" \\ {}\x00\x1c'),), (Case(("'a, b'", "5", "'µ'"), value=1),)),
        *((Case((), value=1),), (Case(CASES[0], value=0, detectable=771),), ()),
    ],
    ids=["samples", "values", "unicode", "control characters", "parameters", "no parameters", "detectable", "no cases"],
)
def test_launch_comes_back_from_one_line_as_it_was(tmp_path, cases):
    launch = some_launch(cases=cases, facts={"torch": "2.0.1", "név": "é\u2029"}, benchmark="models.M.track_retained")
    line = launch.to_json()
    assert len(line.splitlines()) == 1
    assert Launch.from_json(line) == launch
    append_launches(file_of(tmp_path), [launch, some_launch("bb")])
    assert stored(tmp_path) == [launch, some_launch("bb")]


def environment_said(torch: str) -> dict[str, Any]:
    return {**FACTS, "environment": {"torch": torch, "packages": ["numpy==1.26.4"]}}


def test_environment_that_a_launch_said_is_kept_once_and_named_by_all_its_benchmarks(tmp_path):
    for torch in ("2.0.1+cu117", "2.0.1+cu117", "2.0.1+cpu"):
        recorded = results()
        add(recorded, TIME, answer([[0.25], [1.0], [0.5], [2.0]], said={0: environment_said(torch)}))
        add(recorded, BYTES, answer([4.0, 8.0, 4.0, 8.0], said={0: FACTS}))
        recorded.save(str(tmp_path))
    names = [launch.facts["environment"] for launch in stored(tmp_path)]
    assert names[0] == names[1] == names[2] == names[3] != names[4] == names[5]
    lines = file_of(tmp_path, ending="environments").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [names[0], names[4]]
    newest = read_environment(tmp_path, MACHINE["machine"], "v2.0.1", ENVIRONMENT)
    assert newest == {"torch": "2.0.1+cpu", "packages": ["numpy==1.26.4"]}


def test_launch_whose_environment_cannot_be_stored_is_not_stored_and_so_measured_again(tmp_path):
    file_of(tmp_path, ending="environments").mkdir(parents=True)
    with pytest.raises(OSError, match="Is a directory"):
        keep(tmp_path, TIME, answer([[0.25], [1.0], [0.5], [2.0]], said={0: environment_said("2.0.1")}))
    assert not file_of(tmp_path).exists()


def test_who_answered_is_kept_with_the_environment_and_stays_where_a_later_launch_did_not_ask(tmp_path):
    answers = {"products float32 square": "MKL SGEMM"}
    asked = environment_said("2.0.1")
    for said in ({**asked, "libraries": answers}, asked, environment_said("2.0.1+cpu")):
        keep(tmp_path, TIME, answer([[0.25], [1.0], [0.5], [2.0]], said={0: said}))
        newest = read_environment(tmp_path, MACHINE["machine"], "v2.0.1", ENVIRONMENT)
        assert newest["libraries"] == answers
    assert newest["torch"] == "2.0.1+cpu"
    assert all("libraries" not in launch.facts for launch in stored(tmp_path))


def test_sibling_is_answered_from_what_the_processes_of_the_first_metric_found(tmp_path):
    said = {
        0: {**FACTS, "found": {"peak_memory": 8, "time": [0.25, 0.5]}},
        1: {**FACTS, "found": {"peak_memory": 16, "time": {"unavailable": "no time here"}}},
        2: FACTS,
        3: {**FACTS, **NOT_ASKED},
    }
    given = answer([8, 16, None, math.nan], said=said, status=1, printed=TRACEBACK)
    recorded = results()
    add(recorded, BYTES, given)
    told = of_sibling(TIME, SAID)
    add(recorded, TIME, recording._joined(TIME, told), told=told)
    recorded.save(str(tmp_path))
    first, sibling = stored(tmp_path)
    assert [(case.parameters, case.value) for case in first.cases[:2]] == [(CASES[0], 8), (CASES[1], 16)]
    assert sibling.benchmark == TIME["name"]
    assert [case.parameters for case in sibling.cases] == CASES[:3]
    assert sibling.cases[0].samples == (0.25, 0.5)
    assert sibling.cases[1].unavailable == "no time here"
    failed = "WrongResult: an overlap area is off by 3.2 square pixels"
    assert sibling.cases[2].failed == first.cases[2].failed == failed
    assert first.facts.keys() == sibling.facts.keys()
    assert "found" not in first.facts
    assert asvs(tmp_path).get_result_samples(TIME["name"], TIME["params"])[0] == [0.25, 0.5]


def test_what_would_have_been_told_of_a_metric_is_kept_with_its_number_and_with_no_other(tmp_path):
    grown = {"peak_memory": {"value": 0, "detectable": 771}, "time": [0.25], "kept": {"value": 21, "detectable": 1}}
    given = answer([0, 0, 0, 0], said={0: {**FACTS, "found": grown, "detectable": 771}})
    recorded = results()
    add(recorded, BYTES, given, selected_idx=[0])
    for sibling in (TIME, {**BYTES, "name": "intersection.Intersection.track_kept"}):
        told = of_sibling(sibling, SAID)
        add(recorded, sibling, recording._joined(sibling, told), told=told, selected_idx=[0])
    recorded.save(str(tmp_path))
    assert [launch.cases for launch in stored(tmp_path)] == [
        (Case(CASES[0], value=0, detectable=771),),
        (Case(CASES[0], samples=(0.25,)),),
        (Case(CASES[0], value=21, detectable=1),),
    ]
    assert "detectable" not in stored(tmp_path)[0].facts


def launch(number: int) -> Launch:
    case = Case(("'a'",), value=3)
    return some_launch(f"l{number}", release="v2.15.0", benchmark="batching.Batching.track_operators", cases=(case,))


@pytest.fixture
def lines(tmp_path) -> Path:
    """A file of two launches."""
    path = file_of(tmp_path, "v2.15.0")
    append_launches(path, [launch(1), launch(2)])
    return path


def read(lines: Path) -> list[Launch]:
    return [*read_launches(lines.parents[1], "a-machine", "release-py3.11")]


def test_what_is_compressed_and_what_is_appended_are_read_as_one(lines):
    before = lines.read_bytes()
    pack_results.pack(lines)
    packed = lines.with_name(f"{lines.name}.gz")
    assert not lines.exists()
    assert gzip.decompress(packed.read_bytes()) == before
    append_launches(lines, [launch(3)])
    assert read(lines) == [launch(1), launch(2), launch(3)]
    assert machines_in(lines.parents[1]) == ["a-machine"]
    assert of_file(packed) == of_file(lines) == ("v2.15.0", "release-py3.11")
    pack_results.pack(lines)
    assert read(lines) == [launch(1), launch(2), launch(3)]


@pytest.mark.parametrize("step", ["write_atomically", "read_bytes"])
def test_whatever_interrupts_it_the_next_one_finishes_without_loss_or_copy(lines, step, monkeypatch):
    pack_results.pack(lines)
    append_launches(lines, [launch(3)])
    real = getattr(files, step)
    calls = []

    def interrupted(*given: object) -> object:
        calls.append(given)
        if step == "write_atomically" or len(calls) == 3:  # the third reading is after the writing
            raise KeyboardInterrupt
        return real(*given)

    with monkeypatch.context() as patched:
        patched.setattr(pack_results, step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            pack_results.pack(lines)
    append_launches(lines, [launch(4)])
    for path in dict.fromkeys(pack_results.due(lines.parents[1])):
        pack_results.pack(path)
    assert read(lines) == [launch(number) for number in (1, 2, 3, 4)]
    assert [path.name for path in lines.parent.iterdir()] == [f"{lines.name}.gz"]


@pytest.mark.parametrize(
    "content",
    [b"no gzip", gzip.compress(b"x" * 100)[:-4], gzip.compress(b"{}\n") + b"more", b""],
    ids=["no gzip", "cut", "more after it", "empty"],  # The bytes hold the second, in which workers of xdist differ.
)
def test_a_damaged_compressed_file_is_skipped_in_words(lines, content, warned):
    packed = lines.with_name(f"{lines.name}.gz")
    packed.write_bytes(content)
    assert read(lines) == [launch(1), launch(2)]
    assert any(str(packed) in sentence and "is skipped" in sentence for sentence in warned)


def test_a_file_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_FILE", 1000)
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(bytes(100_000)))
    with pytest.raises(ValueError, match="it holds more than"):
        files.read_bytes(path)


def test_packages_that_come_with_torch_hide_no_others():
    old, new = (
        {"packages": [f"{name}=={at}" for name in ("torch", "triton", "nvidia-nccl", "einops")]} for at in (1, 2)
    )
    besides = "Packages that differ besides torch and CUDA's:"
    assert packages_words(old, new, ["einops"]) == f"{besides} einops 1 -> 2."
    assert packages_words(old, old, []) == f"{besides} none."
