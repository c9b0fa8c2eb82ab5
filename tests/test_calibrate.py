"""Does the report of a calibration count what is there: false alarms, what was found, what is exact?"""

import itertools
import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from torch_history import cli
from torch_history.analysis import calibration
from torch_history.analysis.series import Series
from torch_history.cli import running
from torch_history.site import calibration as report
from torch_history.store.launches import Case, Launch

from .test_verdicts import launch as of_release

VARIANTS = [f"variant {i}" for i in range(60)]
ROUNDS = 8


def time_planted_in(variant: str) -> float:
    return calibration.share(Series("e", "selection.Selection.track_time", (f"'{variant}'", "'small'")))


def launch(arm: str, turn: int, metric: str, values: Mapping[str, float | str], **facts: object) -> Launch:
    """One launch; a string is why a case failed."""
    timed = metric == "time"
    cases = (
        Case((f"'{variant}'", "'small'"), failed=value)
        if isinstance(value, str)
        else Case((f"'{variant}'", "'small'"), **({"samples": (value,)} if timed else {"value": value}))
        for variant, value in values.items()
    )
    return of_release(arm, f"selection.Selection.track_{metric}", *cases, round=turn, facts=dict(facts))


def keep(folder: Path, false: str = "", missed: str = "", operators: int = 1) -> Path:
    """Writes a calibration with 0.5 % noise in which all is well, except for what is given."""
    random = np.random.default_rng(5)
    longer = {variant: 1 + time_planted_in(variant) for variant in VARIANTS if variant != missed}
    levels = {calibration.FIRST: {}, calibration.SECOND: {false: 1.2}, calibration.LONGER: longer}
    launches = []
    for turn, (arm, of) in itertools.product(range(1, ROUNDS + 1), levels.items()):
        seconds = {variant: of.get(variant, 1.0) * math.exp(random.normal(0, 0.005)) for variant in VARIANTS}
        launches.append(launch(arm, turn, "time", seconds, conditions={"load": 0.1}))
    for arm, planted in calibration.COUNTS.items():
        failed = planted == "failure"
        peak = 1000 + 4096 * (planted == "peak")
        count = 5 + operators * (planted == "operator")
        launches.append(launch(arm, 1, "peak_memory", dict.fromkeys(VARIANTS, "planted" if failed else peak)))
        launches.append(launch(arm, 1, "operators", dict.fromkeys(VARIANTS, "planted" if failed else count)))
    path = folder / "results" / "here" / calibration.FOLDER / "v2.15.0-release-py3.11.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(each.to_json() + "\n" for each in launches))
    return path


def test_a_good_machine_misses_no_aim(tmp_path):
    found = calibration.read(keep(tmp_path))
    assert found.missed == []
    assert (found.release, found.environment) == ("v2.15.0", "release-py3.11")
    assert len(found.same) == len(VARIANTS)
    assert (found.false_share, found.untold, found.false_counts) == (0.0, 0.0, [])
    planted = {of.words: (of.series, of.hits) for of in found.planted}
    for size, words in ((0.05, "+5% time"), (0.1, "+10% time"), (0.2, "+20% time")):
        number = sum(time_planted_in(variant) == size for variant in VARIANTS)
        assert number > 0
        assert planted[f"{words}: steady calls"] == (number, number)
    assert [*planted.values()][-3:] == [(60, 60), (60, 60), (120, 120)]


def test_a_false_alarm_is_counted_and_named(tmp_path):
    found = calibration.read(keep(tmp_path, false="variant 7"))
    assert [change.series.words for change in found.false_times] == ["selection time, variant 7 small"]
    assert found.false_share == pytest.approx(1 / (60 + len(found.beside)))
    assert "false: selection time, variant 7 small: SLOWER, 1.2" in report.text(found)


def test_a_change_that_is_not_found_is_counted(tmp_path):
    variant = next(variant for variant in VARIANTS if time_planted_in(variant) == 0.2)
    found = calibration.read(keep(tmp_path, missed=variant))
    planted = next(of for of in found.planted if of.words == "+20% time: steady calls")
    assert planted.hits == planted.series - 1
    assert found.missed == [f"+20% time: steady calls found in {100 * planted.share:.1f} %"]


def test_the_command_prints_the_report_and_fails_where_an_aim_is_missed(tmp_path, results, monkeypatch):
    for operators, code in ((1, 0), (2, 3)):
        path = keep(tmp_path, operators=operators)
        monkeypatch.setattr(running, "calibrate", lambda *_, path=path: path)
        answer = CliRunner().invoke(cli.main, ["run", "--calibrate", "2.15.0"])
        assert answer.exit_code == code, answer.output
        assert "The same release under two names" in answer.output
        assert ("one operator more found in 0.0 %" in answer.output) == bool(code)


@pytest.mark.parametrize(
    ("parameters", "size"),
    [
        *((("'eager'", "'small'"), 0.2), (("'mask'", "'vector 1 % x 1'"), 0.1), (("'plain'", "'chain'"), 0.1)),
        (("'vstack_rows'", "'64 x 128'"), 0.0),
    ],
)
def test_the_report_takes_a_case_to_get_what_is_planted_in_it(parameters, size):
    # tests/test_planted.py asks what is planted in the same cases
    assert calibration.share(Series("e", "q.Q.track_time", parameters)) == size
    assert calibration.share(Series("e", "q.Q.track_first_call", parameters)) == calibration.IN_SINGLE * size
    assert calibration.share(Series("e", "q.Q.track_forward_time", parameters)) == 0.0


def test_intervals_are_held_against_what_was_really_planted(tmp_path):
    path = keep(tmp_path)
    (unchanged,) = calibration.read(path).held
    assert (unchanged.words, unchanged.series) == ("unchanged: steady calls", 60 + len(calibration.read(path).beside))
    assert unchanged.share > 0.9
    # each process says that it was slowed by half as much again as it was asked to, which no interval here holds
    told = {f"planted {variant} small": 1 + 1.5 * time_planted_in(variant) for variant in VARIANTS}
    launches = [json.loads(line) for line in path.read_text().splitlines()]
    for one in launches:
        one["facts"] |= told if one["release"] == calibration.LONGER else {}
    path.write_text("".join(json.dumps(one) + "\n" for one in launches))
    found = calibration.read(path)
    shares = {of.words: of.share for of in found.held}
    assert shares.pop("unchanged: steady calls") == unchanged.share
    assert shares.keys() == {f"+{size} time: steady calls" for size in ("5%", "10%", "20%")}
    assert shares["+10% time: steady calls"] == shares["+20% time: steady calls"] == 0.0
    assert "+20% time: steady calls: 0.0 % of intervals hold it" in found.missed
