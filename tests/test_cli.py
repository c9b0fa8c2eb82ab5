"""Does the command answer in sentences, and do the generated documents say what results/ holds? No release is installed."""

import re
import sys

import pytest
from click.testing import CliRunner, Result
from msgspec import structs

from tools.pages import coverage
from torch_history.analysis.series import history
from torch_history.cli import main, output
from torch_history.measuring import plan
from torch_history.releases.axis import Axis
from torch_history.store.launches import Case, read_launches

from .lab import AXIS, MACHINE
from .processes import ROOT, ran
from .result_files import append
from .test_verdicts import launch


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TORCH_HISTORY_WORKLOAD", raising=False)


def command(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_one_release_brings_the_one_before_it_along(capsys):
    def chosen(*specs: str, lane: str = "3.11") -> list[str]:
        return [release.tag for release in plan.chosen(AXIS, specs, lane, print)]

    assert chosen() == [release.tag for release in AXIS.releases[-2:]]
    assert chosen("2.15.0")[-1] == "v2.15.0"
    assert len(chosen("2.15.0")) == 2
    assert f"{chosen('2.15.0')[0]} is measured as well" in capsys.readouterr().out
    assert chosen("2.0.1", "2.15.0") == ["v2.0.1", "v2.15.0"]
    assert chosen("1.8.0", lane="3.9") == ["v1.8.0"]


def test_new_is_what_follows_the_newest_that_this_machine_measured(results):
    def new(axis: Axis) -> tuple[str, ...]:
        return plan.new_releases(axis, "3.11", read_launches(results, "here"), "release-py3.11")

    tags = [release.tag for release in AXIS.releases]
    shared = plan.SHARED
    assert new(AXIS) == tuple(tags[-1 - shared :])
    for tag, expected in ((tags[-4], tuple(tags[-3 - shared :])), (tags[-1], ())):
        append(results, launch(tag, "q.Q.track_time", Case(("'f'",), value=1.0)))
        assert new(AXIS) == expected
    patch = structs.replace(AXIS.releases[-2], date=AXIS.releases[-1].date)
    late = Axis([*AXIS.releases[:-2], patch, AXIS.releases[-1]])
    assert new(late) == (*tags[-2 - shared : -2], patch.tag)
    answer = command("run", "NEW")
    assert answer.exit_code == 0, answer.output
    assert "Nothing is new." in answer.output


def test_how_much_was_measured_is_said_by_lane_and_question():
    times = {"v2.0.0": (1.0, 1.001, 1.0), "v2.0.1": (1.5, 1.501, 1.499), "v2.1.0": (1.5, 1.6, 1.45)}
    launches = [
        launch(tag, "q.Q.track_time", Case(("'f'", "'small'"), samples=(seconds,)), round=turn)
        for tag, of_tag in times.items()
        for turn, seconds in enumerate(of_tag, 1)
    ]
    peaks = {"v2.0.0": 8.0, "v2.0.1": 8.0, "v2.1.0": 16.0, "v2.1.1": 16.0}
    for tag, peak in peaks.items():
        cases = (Case(("'f'", "'small'"), value=peak), Case(("'g'", "'small'"), unavailable="needs a GPU"))
        launches.append(launch(tag, "q.Q.track_peak_memory", *cases))
    rows = coverage.document({"m": {"release-py3.11": history(launches)}}, AXIS).splitlines()
    assert "| m | release-py3.11 | q | 4: v2.0.0 to v2.1.1 | 8 | 50% | 2 | 3 | 50% | 3 | 1 |" in rows
    assert rows[-1] == "| m | release-py3.11 | 1 | 1 none |"


@pytest.mark.committed
def test_committed_documents_are_up_to_date():
    checked = [sys.executable, "-m", "tools.document", "--check"]
    ran(*checked, cwd=ROOT)


def test_regressions_say_what_happened_with_the_largest_first_and_a_summary_last(lab, monkeypatch):
    monkeypatch.chdir(lab)
    answer = command("regressions", "--question", "intersection", "--limit", "0")
    assert answer.exit_code == 0, answer.output
    *lines, summary = answer.output.splitlines()
    lost = [line for line in lines if "peak memory, scripted small" in line]
    assert lost == [
        "v2.1.0: intersection peak memory, scripted small: HUNGRIER 4.00 times, from 60,000,000 B to 240,000,000 B, "
        "because it is no longer fused. 4.00 times more since v1.13.0 (60,000,000 B to 240,000,000 B), all of it at v2.1.0."
    ]
    assert summary.startswith(f"On {MACHINE} in release-py3.11: ")
    rows = command("regressions", "--question", "intersection", "--limit", "0", "--all").output.splitlines()
    assert rows[-1] == summary
    assert set(lost) <= set(rows)
    largest = command("regressions", "--question", "intersection", "--largest", "--limit", "1").output.splitlines()
    assert re.match(r"v2\.1\.0: intersection time, scripted small: SLOWER 7.*\(scripted: the plain .*\)$", largest[0])
    assert largest[-1].endswith(" are not shown. --limit 0 shows all.")
    assert command("regressions", "--question", "track_intersection", "--limit", "0").output == answer.output
    for wrong in (("--question", "typo"), ("--question", "intersection", "--question", "typo"), ("--lane", "3.99")):
        refused = command("regressions", *wrong)
        assert refused.exit_code == 1
        what = "typo" if "typo" in wrong else "any question"
        assert f"There are no results of {what} in release-py3." in refused.output


@pytest.mark.parametrize(
    ("words", "named", "parameter"),
    [
        (("run", "--installed", "--python"), "venv/bin/python", "interpreter"),
        (("certify", "--python"), "venv/bin/python", "interpreter"),
        (("fleet", "run", "2.0.0..2.1.0", "--scratch"), "scratch", "scratch"),
    ],
)
def test_a_path_is_meant_from_the_callers_folder(tmp_path, monkeypatch, words, named, parameter):
    monkeypatch.chdir(tmp_path)
    place = tmp_path / named
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(sys.executable)  # as the interpreter of a virtual environment is
    group, rest = (main.commands["fleet"], words[1:]) if words[0] == "fleet" else (main, words)
    command = group.commands[rest[0]]  # type: ignore[attr-defined]
    assert command.make_context(rest[0], [*rest[1:], named]).params[parameter] == str(place)


@pytest.mark.parametrize(
    "words",
    [
        *("upgrade mine.py --from 2.5.1", "run 2.15.0 --workload mine.py", "fit mine.py --gpu 24GB --from 2.5.1"),
        *(f"{of} 2.14.1 2.15.0 --workload mine.py" for of in ("explain", "compare")),
    ],
)
def test_a_file_is_meant_from_the_callers_folder(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    answer = command(*words.split())
    assert answer.exit_code == 1
    assert str(tmp_path / "mine.py") in answer.stderr
    assert "Give the path of a Python file" in answer.stderr


def test_a_sentence_moves_no_terminal(capsys, monkeypatch):
    with pytest.raises(SystemExit):
        output.refuse("the card \x1b]0;title\x07 of\nsomebody's")
    assert "the card \\x1b]0;title\\x07 of\nsomebody's" in capsys.readouterr().err
    assert output.plain("\x1b[31mred") == "\\x1b\\[31mred"
    monkeypatch.setattr("sys.stdout", None)  # as where a shell closed it
    assert output.bold("new") == "new"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("lock 2.15.0", "There is no command 'lock' any more: `make sync`, in a clone, pins packages, too."),
        ("calibrate", "There is no command 'calibrate' any more: it is `torch-history run --calibrate` now"),
        ("requirements a.txt", "There is no command 'requirements' any more: `torch-history upgrade FILE`"),
        ("run --calibrate --size small", "--calibrate measures the suite as it is, so it takes no --size."),
        ("run --itself", "--itself says how to calibrate: add --calibrate."),
        ("upgrade a.txt --budget 5m", "--budget is for a file of your own. Requirements are read, and"),
        ("upgrade a.py --from 2.14.1 --json --markdown", "--json and --markdown exclude each other."),
        ("upgrade a.py", "--from is missing, the release in use: give --from 2.3.1"),
        ("upgrade a.py --from 2.14.1 --gpu V100", "--gpu is for requirements."),
        ("fleet check", "There is no command 'check' any more: times are kept in a folder for each node"),
        ("run 2.15.0 --as 2.15.0", "--as is about an installed torch: add --installed."),
        ("run 2.15.0 --python python3", "--python is about an installed torch: add --installed."),
        ("explain 2.14.1 2.15.0 --most 0", "0 is not in the range x>=1"),
        ("fit a.py --memory 0", "'0' is no number of gigabytes above 0."),
        ("upgrade a.py --from 2.0.1 --disk much", "'much' is no number of gigabytes above 0. Write 20GB."),
        *((f"upgrade a.py --from 2.0.1 --budget {of}", f"'{of}' is not a duration.") for of in ("soon", "0")),
        ("upgrade a.py --from 2.0.1 --fail-on faster:x", "'x' is not a threshold."),
        ("upgrade a.py --from 2.0.1 --most 1", "1 is not in the range"),
        *((f"certify --ask {of}", f"{of}: name a file in a folder that is there") for of in ("docs", "nowhere/gpu")),
        ("run 2.15.0 --explain", "There is no option --explain any more: `torch-history explain OLD NEW`"),
        ("fleet run 2.15.0 --executor local", "There is no option --executor any more: `torch-history run`"),
        ("run --no-such", "No such option"),
    ],
)
def test_what_is_gone_says_what_took_its_place_and_what_does_not_go_together_is_refused(words: str, said: str) -> None:
    answer = command(*words.split())
    assert answer.exit_code == 2
    assert said in answer.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("upgrade {} --from 2.15.0 --to 2.0.1", "v2.0.1 is no upgrade of v2.15.0."),
        ("upgrade {} --from 1.8.1 --to 2.15.0", "v1.8.1 has no wheel for Python 3.11, only for "),
        ("run 2.15.0 --device recorder --only times", "no time: measure on cpu or cuda"),
        ("run 2.15.0 --device recorder --budget 5m", "--budget, --within and --installed mean nothing on the recorder"),
        ("run 2.15.0 --device cpu --card hopper", "add --device recorder"),
        ("run 2.15.0 --plan --question selection --question typo", "There is no question 'typo'"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_a_sentence(words: str, said: str) -> None:
    answer = command(*words.format("docs/examples/training_step.py").split())
    assert answer.exit_code == 1
    assert said in " ".join(answer.output.split())
