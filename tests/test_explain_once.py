"""Is it found where the time goes of what a process does only once: in processes, packages and functions of Python? Asked of
real processes, and then of drawn releases."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from measure import once
from torch_history.analysis.series import Series
from torch_history.explaining import counting, finding, places
from torch_history.explaining.explanation import Explanation, Found
from torch_history.explaining.levers import ANOTHER_PROCESS, Lever, load

from .test_explain import SIDES, SUBJECT, Drawn

NAP, WORK = 0.4, 0.4
SLACK = 0.25
"""Seconds that a busy machine may add, and that a new interpreter takes to start."""


def _work(seconds: float = WORK) -> None:
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        pass


def test_processes_and_functions_take_what_they_take() -> None:
    def step() -> None:
        for _ in range(2):
            subprocess.run([sys.executable, "-S", "-c", f"import time; time.sleep({NAP})"], check=True)
        _work()

    found = once.looked_at(step)
    seconds, number = found["processes"]["python"]
    assert number == 2
    assert 2 * NAP <= seconds <= 2 * NAP + 4 * SLACK
    assert found["functions"]["test_explain_once.py _work"][0] == pytest.approx(WORK, abs=SLACK)
    assert found["functions"][once.ELSEWHERE][0] == pytest.approx(seconds, abs=SLACK)
    assert sum(spent for spent, _ in found["functions"].values()) == pytest.approx(found["seconds"], abs=SLACK)


def test_import_belongs_to_the_package_that_is_imported(tmp_path: Path) -> None:
    (tmp_path / "heavy").mkdir()
    (tmp_path / "heavy" / "__init__.py").write_text("from . import inner\n")
    (tmp_path / "heavy" / "inner.py").write_text(
        f"import time\nends = time.perf_counter() + {WORK}\nwhile time.perf_counter() < ends:\n    pass\n"
    )
    answer = tmp_path / "answer.json"
    words = [sys.executable, str(Path(once.__file__)), "command", str(answer), "-c", "import heavy"]
    subprocess.run(words, cwd=tmp_path, check=True)
    found = json.loads(answer.read_text())
    seconds, modules = found["packages"]["heavy"]
    assert seconds == pytest.approx(WORK, abs=SLACK)
    assert modules == 2


def test_program_with_arguments_is_run_as_python_runs_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import sys\nfrom pathlib import Path\n"
        "if __name__ == '__main__':\n    Path('said').write_text(' '.join(sys.argv))\n    sys.exit(0)\n"
    )
    for words in (["train.py", "--epochs", "3"], ["-m", "train", "--epochs", "3"]):
        command = [sys.executable, str(Path(once.__file__)), "command", str(tmp_path / "answer.json"), *words]
        subprocess.run(command, cwd=tmp_path, check=True)
        assert (tmp_path / "said").read_text().endswith("train.py --epochs 3")


class DrawnOnce(Drawn):
    """Releases that start processes: `operators` are here seconds by program, and how often each is started is `counts`."""

    counts: tuple[Mapping[str, float], Mapping[str, float]] = ({}, {})

    def answered(self, step: Mapping[str, Any], answer: dict[str, Any], number: int) -> dict[str, Any]:
        if step["do"] != "profile":
            return answer
        rows = {
            name: [seconds * self.chance.gauss(1, self.noise), self.counts[number].get(name, 1)]
            for name, seconds in self.operators[number].items()
        }
        total = sum(seconds for seconds, _ in rows.values()) + 0.5
        functions = {once.ELSEWHERE: [total - 0.5, 0], "codecache.py compile": [0.5, 0]}
        return {
            **{"seconds": total, "processes": rows},
            "packages": {once.ELSEWHERE: [total - 0.5, 0], "torch._inductor": [0.5, 40]},
            **{"functions": functions, "traces": [ANOTHER_PROCESS]},
        }


def explained(drawn: DrawnOnce, tried: list[Lever]) -> Found:
    subject = replace(SUBJECT, metric="first_call")
    return Explanation(subject, SIDES, tried, Path(), lambda words: None, opened=drawn.open).explain()


def test_program_that_is_started_more_often_is_the_cause() -> None:
    drawn = DrawnOnce(({"g++ on *.cpp": 2.0, "python": 1.0}, {"g++ on *.cpp": 2.0, "python": 4.0}))
    drawn.counts = ({"python": 1}, {"python": 4})
    found = explained(drawn, [])
    assert found.verdict == "CAUSE"
    assert "python holds" in found.words
    assert "(started: 4, before: 1)" in found.words
    assert {place.kind for place in found.places} == {"process", "package", "function"}
    waited = [place for place in found.places if place.name == places.ELSEWHERE]
    assert waited
    assert all(place.verdict not in ("CAUSE", "PART") for place in waited)


def test_names_that_two_rooms_share() -> None:
    assert (once.IN_ANOTHER, once.ELSEWHERE) == (ANOTHER_PROCESS, places.ELSEWHERE)
    assert any(lever.once for lever in load())


def test_series_of_an_own_file_are_named_as_its_launches_are() -> None:
    """What is found is told of the series of this name."""
    listed = finding.Cases([("f", "")], True, [("first_call", "f", ""), ("process_time", "command", "")])
    every = finding.own_series("mine", listed, "release-py3.11")
    assert [one.benchmark for one in every] == [
        "mine.Own.track_time",
        "mine.FirstCalls.track_first_call",
        "mine.Command.track_process_time",
        *(f"mine.{'Memory' if metric in counting.GROWTH else 'Own'}.track_{metric}" for metric in finding.COUNTED),
    ]


OF_EACH = {"f": ("time", "first_call", "peak_memory", "operators"), "command": ("process_time", "process_cpu_time")}
EVERY = [
    Series("release-py3.11", f"mine.Own.track_{metric}", (repr(name), "''"))
    for name, metrics in OF_EACH.items()
    for metric in metrics
]


@pytest.mark.parametrize(
    ("words", "metrics"),
    [
        *(("f", ["time"]), ("f first call", ["first_call"]), ("f peak memory", ["peak_memory"])),
        *(("mine operators, f", ["operators"]), ("command", ["process_time"])),
        ("process cpu time command", ["process_cpu_time"]),
    ],
)
def test_words_mean_calls_first_and_then_what_is_done_once(words: str, metrics: list[str]) -> None:
    assert [series.metric for series in finding.matching(words, EVERY)] == metrics
