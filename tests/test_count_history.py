"""Does `python -m tools.count_history --refused WORDS` count again what was refused in these words, and nothing else?

Releases are not installed here, and no torch is needed: what would count writes the launches that the test names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from contract.request import Request
from tools import bench_recorder, count_history
from torch_history.measuring.plan import Plan
from torch_history.releases.axis import Axis, Release
from torch_history.store.details import add_details
from torch_history.store.launches import Case, Launch, append_launches, read_launches

ROOT = Path(__file__).resolve().parents[1]
MACHINE, TAG, LANE = "recorded-turing-sm75-no-kernel-ran", "v2.14.1", "3.11"
SAVED, SELECTION = "saved_tensors.SavedTensors", "selection.Selection"
VERSIONS = {
    f"{question}.track_{metric}": "now" for question in (SAVED, SELECTION) for metric in ("host_waits", "gradients")
}

SHARED, TWICE, MASK = ("'subprocess'", "'loop'"), ("'subprocess_start'", "'loop'"), ("'mask'", "'vector'")
NO_BODY = "cudaIpcGetMemHandle of CUDA was called, and the recorder has no body for it."
NO_NUMBER = "The host read 4 bytes back from the device."

Store = Callable[..., None]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Writes one launch of some cases into the results of a suite in the test's own folder."""
    monkeypatch.setattr(count_history, "ROOT", tmp_path)
    monkeypatch.setattr(count_history, "versions", lambda root: VERSIONS)
    (tmp_path / "releases.toml").write_bytes((ROOT / "releases.toml").read_bytes())
    minutes: Iterator[int] = iter(range(10, 60))

    def store(
        question: str, *cases: Case, tag: str = TAG, lane: str = LANE, version: str = "now", metric: str = "host_waits"
    ) -> None:
        launch = Launch(
            session="s",
            round=1,
            launch="l",
            release=tag,
            environment=f"release-py{lane}",
            benchmark=f"{question}.track_{metric}",
            version=version,
            started_at=f"2026-01-01T00:{next(minutes)}:00+00:00",
            duration=1.0,
            facts={},
            cases=cases,
        )
        append_launches(tmp_path / "results" / MACHINE / f"{tag}-release-py{lane}.jsonl", [launch])

    (tmp_path / "results" / MACHINE).mkdir(parents=True)
    (tmp_path / "results" / MACHINE / "machine.json").write_text(f'{{"machine": "{MACHINE}"}}', encoding="utf-8")
    return store


def refused(words: str = "cudaIpc", tag: str = TAG, lane: str = LANE) -> dict[str, set[tuple[str, ...]]]:
    release = Axis.load(ROOT / "releases.toml").find(tag)
    return dict(count_history.refused_cases(MACHINE, release, lane, words))


def test_cases_that_were_refused_in_these_words_are_found_by_question(store: Store) -> None:
    store(SAVED, Case(SHARED, unavailable=NO_BODY), Case(("'plain'", "'loop'"), value=1))
    store(SELECTION, Case(MASK, unavailable=NO_NUMBER))
    assert refused() == {"saved_tensors": {SHARED}}
    assert refused("read 4 bytes") == {"selection": {MASK}}
    assert refused("cudnn") == {}


def test_what_was_counted_later_is_not_counted_again_and_what_was_refused_later_is(store: Store) -> None:
    store(SAVED, Case(SHARED, unavailable=NO_BODY), Case(TWICE, value=3))
    store(SAVED, Case(SHARED, value=3), Case(TWICE, unavailable=NO_BODY))
    assert refused() == {"saved_tensors": {TWICE}}


def test_other_releases_lanes_versions_and_metrics_do_not_count(store: Store) -> None:
    case = Case(SHARED, unavailable=NO_BODY)
    store(SAVED, case, tag="v2.15.0")
    store(SAVED, case, lane="3.9")
    store(SAVED, case, version="before an edit of the workload")
    store(SAVED, case, metric="peak_memory")
    assert refused() == {}
    assert refused(tag="v2.15.0") == {"saved_tensors": {SHARED}}


def test_cases_whose_backward_calls_cublas_are_found_until_they_are_counted_again(store: Store) -> None:
    """The launches of the test begin a minute after each other, from 00:10 on."""
    plain, without, other = ("'plain'", "'loop'"), ("'plain'", "'loop, no gradient'"), ("'numpy'", "'loop'")
    found = [Case(plain, value=2), Case(without, value=0), Case(other, value=2), Case(SHARED, unavailable=NO_BODY)]
    store(SAVED, *found, metric="gradients")
    detail = {"kernels": {}, "library_calls": {"cublasSgemm_v2": 2}}
    details = {" ".join((SAVED, *case.parameters)): detail for case in found}
    details[" ".join((SAVED, *other))] = {**detail, "library_calls": {}}
    add_details(count_history.ROOT / "results" / MACHINE / f"{TAG}-release-py{LANE}.recorded", "s", details)

    def named(before: str, tag: str = TAG) -> dict[str, set[tuple[str, ...]]]:
        release = Axis.load(ROOT / "releases.toml").find(tag)
        return dict(count_history.backward_cases(MACHINE, release, LANE, before))

    assert named("2026-01-01T00:11") == {"saved_tensors": {plain}}
    assert named("2026-01-01T00:10") == {}
    assert named("2026-01-01T00:11", tag="v2.15.0") == {}
    store(SAVED, Case(plain, value=2), metric="gradients")
    assert named("2026-01-01T00:11") == {}
    assert named("2026-01-01T00:12") == {"saved_tensors": {plain}}


def test_command_counts_each_refused_case_once_and_goes_on_after_an_interruption(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags = ("v2.14.1", "v2.15.0", "v2.13.0")
    for tag in tags:
        store(SAVED, Case(SHARED, unavailable=NO_BODY), tag=tag)
    counted: list[str] = []
    pruned: list[str] = []
    interrupted = ["v2.14.1"]

    def count(release: Release, lane: str, request: Request, question: str, cases: set[tuple[str, ...]]) -> None:
        if release.tag in interrupted:
            interrupted.remove(release.tag)
            raise KeyboardInterrupt
        assert (lane, request.device, question, cases) == (LANE, "recorder", "saved_tensors", {SHARED})
        counted.append(release.tag)
        store(SAVED, Case(SHARED, value=2), tag=release.tag)

    def prune(folder: Path, wanted: Callable[[str], bool]) -> None:
        assert folder.parts[-2:] == ("env", "recorder")
        pruned.extend(tag for tag in tags if wanted(tag))

    monkeypatch.setattr(count_history, "count_cases", count)
    monkeypatch.setattr(count_history, "prune", prune)
    asked = ["--lane", LANE, "--refused", "cudaIpc", "2.15.0", "2.14.1", "2.13.0"]
    monkeypatch.setattr(sys, "argv", ["count_history", *asked])
    with pytest.raises(KeyboardInterrupt):
        count_history.main()
    assert (counted, pruned) == (["v2.15.0"], ["v2.15.0"])
    count_history.main()
    assert counted == ["v2.15.0", "v2.14.1", "v2.13.0"]
    assert pruned == ["v2.15.0", *counted]
    assert not any(refused(tag=tag) for tag in tags)


def test_refused_cases_are_one_launch_of_counts_of_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plans: list[Plan] = []

    class Session:
        def __init__(self, conf: object, axis: object, plan: Plan, environment: object, request: Request) -> None:
            assert request.card == "hopper"
            plans.append(plan)

        def measure(self, console: object) -> None:
            pass

    conf = SimpleNamespace(env_dir=str(tmp_path))
    monkeypatch.setattr(count_history, "Session", Session)
    monkeypatch.setattr(count_history, "load_suite", lambda root: (conf, None))
    monkeypatch.setattr(count_history, "use", lambda machine: None)
    monkeypatch.setattr(
        count_history, "RecorderEnvironment", lambda conf, lane, card: SimpleNamespace(name=f"release-py{lane}")
    )
    release = Axis.load(ROOT / "releases.toml").find(TAG)
    request = Request(device="recorder", card="hopper")
    count_history.count_cases(release, LANE, request, "saved_tensors", {TWICE, SHARED})
    (plan,) = plans
    assert (plan.releases, plan.environment, plan.questions) == ((TAG,), "release-py3.11", "saved_tensors")
    assert (plan.launches, plan.only, plan.cases) == (1, "counts", (SHARED, TWICE))


def test_a_benchmark_names_each_answer_that_is_not_the_last_stored_one(store: Store) -> None:
    store(SAVED, Case(SHARED, value=1), Case(TWICE, unavailable=NO_BODY))
    store(SAVED, Case(SHARED, value=3))
    launches = list(read_launches(count_history.ROOT / "results", MACHINE))
    stored = bench_recorder.answers(launches, "")
    name = f"{SAVED}.track_host_waits"
    assert stored == {(name, *SHARED): 3, (name, *TWICE): NO_BODY}
    assert bench_recorder.answers(launches, "start") == {(name, *TWICE): NO_BODY}
    assert bench_recorder.differences({(name, *SHARED): 3}, stored) == []
    differing = bench_recorder.differences({(name, *SHARED): 4, (name, *MASK): 0}, stored)
    assert differing == [
        f"{name} 'mask' 'vector': 0 now, nothing stored",
        f"{name} 'subprocess' 'loop': 4 now, 3 stored",
    ]
