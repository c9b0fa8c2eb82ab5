"""Is what a user's file says before it is run read right, and is what is misspelled in it refused in a sentence? Is it told
again, without measuring, why a case or a release of it was skipped?"""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from torch_history.cli.report import compare_stored
from torch_history.measuring.subjects import OwnWorkload
from torch_history.store import own as skipped
from torch_history.store.launches import Case
from torch_history.store.sources import own_versions
from torch_history.system.errors import SessionError

from .result_files import append
from .test_verdicts import launch

LANE = "release-py3.11"
OLD, NEW = "v2.14.1", "v2.15.0"
TEXT = "def inputs():\n    return 1\nfunctions = {'f': abs, 'g': abs}\n"


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def read(folder: Path, more: str) -> OwnWorkload:
    path = folder / "mine.py"
    path.write_text(TEXT + more)
    return OwnWorkload.of(path)


@pytest.fixture
def own(tmp_path, monkeypatch) -> OwnWorkload:
    monkeypatch.setenv("TORCH_HISTORY_MACHINE", "here")
    return read(tmp_path, "")


def store(own: OwnWorkload, release: str, metric: str = "time", session: str = "s", **cases: dict[str, Any]) -> None:
    """Two launches of a release, with a case of each name."""
    benchmark = f"mine.Own.track_{metric}"
    found = [Case((repr(name), "''"), **of) for name, of in cases.items()]
    of = {"version": own_versions("mine", own.text)[benchmark], "session": session}
    append(own.folder / "results", *(launch(release, benchmark, *found, **of, round=n) for n in (1, 2)))


RAN: dict[str, Any] = {"samples": (0.25, 0.26)}
LACKS: dict[str, Any] = {"unavailable": "needs torch >= 3.0"}


def told(*words: str) -> str:
    answer = CliRunner().invoke(compare_stored, words)
    return answer.output if answer.exception is None else str(answer.exception)


def test_what_is_printed_measures_and_lists_this_file(own):
    asked = f"--workload {own.path}"
    measure = f"mine.py was not measured as it is now. Measure it with `torch-history run {asked} {OLD} {NEW}`."
    assert told("--workload", str(own.path), OLD, NEW) == measure
    store(own, OLD, f=RAN, g=LACKS)
    store(own, NEW, session="later", f=RAN, g=RAN)
    markdown = told("--workload", str(own.path), OLD, NEW, "--markdown")
    assert "The 2 sessions of the file count together" in markdown
    assert f"### mine.py: PyTorch {OLD} → {NEW}" in markdown
    assert f"torch-history compare {OLD} {NEW} {asked} --machine here --lane {LANE} --all" in markdown
    own.path.write_text(TEXT + "# edited\n")
    assert told("--workload", str(own.path), OLD, NEW) == measure


def test_metrics_that_a_case_lacked_are_one_sentence(own):
    for metric in ("time", "operators"):
        store(own, OLD, metric, f=LACKS)
        store(own, NEW, metric, f={"value": 0.25} if metric == "time" else {"value": 3})
    words = told("--workload", str(own.path), OLD, NEW, "--all")
    assert "mine f: FIXED; before, needs torch >= 3.0 (operators, time)." in words
    for tag in (OLD, NEW):
        store(own, tag, "allocations", g=LACKS)
    assert "Nothing ran, so nothing can be" in told("--workload", str(own.path), OLD, NEW, "--metric", "allocations")


def test_why_a_case_was_skipped_is_told_again(own):
    for tag in (OLD, NEW):
        store(own, tag, f=RAN, g=LACKS)
    assert f"  g did not run on {OLD}, {NEW}: needs torch >= 3.0.\n" in told()
    words = told("--workload", str(own.path), OLD, NEW)
    assert words.startswith(f"mine.py: PyTorch {OLD} -> {NEW}\n")
    assert words.count("g: NO NUMBER: needs torch >= 3.0") == 1


def test_why_a_release_was_skipped_is_told_again_until_it_is_measured(own):
    store(own, OLD, f=RAN)
    skipped.remember(own.folder, LANE, NEW, "torchvision\ncannot be had.")
    assert f"  {NEW} was skipped: torchvision cannot be had.\n" in told()
    assert f"{NEW} was skipped: torchvision cannot be had." in told("--workload", str(own.path), OLD, NEW)
    assert skipped.reasons(own.folder, LANE, {NEW: "2999-01-01"}) == skipped.reasons(own.folder, "release-py3.9") == {}


@pytest.mark.parametrize("text", ["", "[]", '{"release-py3.11": 3}', '{"release-py3.11": {"v2.15.0": [1, 2]}}', "{"])
def test_what_is_damaged_is_told_and_passed_over(own, text, warned):
    (own.folder / skipped.FILE).write_text(text)
    assert skipped.reasons(own.folder, LANE) == {}
    assert any(skipped.FILE in line for line in warned)


def digest_and_versions(folder: Path) -> tuple[str, dict[str, str]]:
    own = read(folder, "needs = ['data.csv']\n")
    return own.digest, own_versions(own.question, own.text)


def test_threads_and_requirements_are_read_and_a_change_is_another_version(tmp_path):
    assert read(tmp_path, "").threads is None
    assert read(tmp_path, "threads = 2\n").threads == 2
    one = read(tmp_path, "requirements = ['torchvision', 'transformers==4.44.*']\n")
    assert one.requirements == ("torchvision", "transformers==4.44.*")
    assert read(tmp_path, "requirements = ['torchvision']\n").digest != one.digest


def test_a_change_of_what_it_needs_begins_a_new_measurement(tmp_path):
    (tmp_path / "data.csv").write_text("1")
    before, versions = digest_and_versions(tmp_path)
    assert digest_and_versions(tmp_path) == (before, versions)
    (tmp_path / "data.csv").write_text("2")
    after, others = digest_and_versions(tmp_path)
    assert after != before
    assert all(others[name] != version for name, version in versions.items()), "what was measured before must not count"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("setups = {}", "mine.py gives `setups`, which nothing reads. Did you mean `setup`"),
        ("metrics = ('time',)", "mine.py gives `metrics`, which nothing reads. Did you mean `METRICS`"),
        ("threads = many()", "`threads` in mine.py must be a whole number"),
        ("needs = 'data.csv'", "`needs` in mine.py must be a list of files"),
        ("needs = ['gone.csv']", "because of .*gone.csv, which it needs: it cannot be read .No such file"),
        ("requirements = 'torchvision'", "`requirements` in mine.py must be a list of packages"),
        ("requirements = ['Torch==2.0']", "names torch, which is what is compared"),
        ("requirements = ['a @ https://index.example/a.whl']", "names an address"),
        *((f"requirements = ['{of}']", "is no package with a version") for of in ("-r a.txt", "./b", "a\\n-i b")),
        ("requirements = [1]", "1 is no name of a package"),
        ("from .near import f", "line [0-9]+ of mine.py imports from `.`, .* Put it beside its package, whose"),
    ],
)
def test_what_is_wrong_is_refused_in_a_sentence(tmp_path, more, sentence):
    with pytest.raises(SessionError, match=sentence):
        read(tmp_path, more + "\n")


@pytest.mark.parametrize(("name", "why"), [("mine.py", "nothing is in it"), ("mine.ipynb", "its name does not end in")])
def test_a_file_that_is_no_program_is_refused(tmp_path, name, why):
    (tmp_path / name).write_text("# later\n")
    with pytest.raises(SessionError, match=f"{name} cannot be measured: {why}.*. Give the path"):
        OwnWorkload.of(tmp_path / name)


def test_names_that_are_used_or_far_from_any_are_left_alone(tmp_path):
    read(tmp_path, "size = 3\nprint(size)\nWIDTH = 3\nnames = []\n")
