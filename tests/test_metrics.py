"""Does the table of metrics say all that there is to know of what the suite measures, and only that?"""

import json
import random
import re
from typing import Any

import pytest

from contract.metrics import COUNTS, METRICS, PROCESS, RESIDENT, SEQUENCE, START, STEADY, TIMES, metric_of, metrics_of
from contract.own_file import MEASURABLE
from torch_history.analysis.compare import sentence
from torch_history.analysis.series import Series, Verdict
from torch_history.analysis.verdicts import judge
from torch_history.store.launches import Case

from .processes import ROOT
from .test_launches import some_launch


@pytest.mark.committed
def test_the_committed_benchmarks_have_the_units_of_their_rows():
    listed = json.loads((ROOT / "results" / "benchmarks.json").read_text())
    units = {name: of["unit"] for name, of in listed.items() if isinstance(of, dict)}
    assert units == {name: metric_of(name).unit for name in units}


def test_every_row_is_consistent():
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.kind in (TIMES, COUNTS)
        assert metric.measured in (STEADY, SEQUENCE, RESIDENT, PROCESS, START)
        assert (ROOT / "measure" / f"{metric.source}.py").is_file()
        differs = metric.varies or (metric.kind == TIMES and metric.measured in (RESIDENT, PROCESS, START))
        assert (metric.margin > 0) == differs
        assert set(metric.more_and_less) <= {verdict.words for verdict in Verdict}


MEMORY, GROWTH = (
    Series("release-py3.11", f"mine.Memory.track_resident_{metric}", ("'f'", "''")) for metric in ("memory", "growth")
)


def launches_of(numbers: list[float], *detectable: int) -> Any:
    least = detectable or [None] * len(numbers)
    return [(None, Case(GROWTH.parameters, value=n, detectable=of)) for n, of in zip(numbers, least, strict=True)]


@pytest.mark.parametrize(
    ("olds", "news", "verdict"),
    [
        *(([100.0, 101.0], [102.0, 101.0], Verdict.SAME), ([100.0, 101.0], [110.0, 111.0], Verdict.HUNGRIER)),
        *(([110.0, 111.0], [100.0, 101.0], Verdict.LEANER), ([100.0, 110.0], [104.0, 112.0], Verdict.CANT_TELL)),
        *(([0.0, 0.0], [0.0, 0.0], Verdict.SAME), ([0.0, 0.0], [10.0, 11.0], Verdict.HUNGRIER)),
        ([100.0], [200.0, 200.0], Verdict.CANT_TELL),
    ],
)
def test_memory_of_a_process_has_changed_where_all_launches_are_apart(olds, news, verdict):
    assert judge(MEMORY, launches_of(olds), launches_of(news)).verdict is verdict


def test_a_metric_that_is_everywhere_is_of_each_workload_with_such_calls(monkeypatch):
    kept = ("kept_objects", "kept_blocks", "kept_bytes", "kept_on_device")
    assert metrics_of(["resident_growth"]) == ("resident_growth", *kept)
    monkeypatch.setitem(METRICS, "pages", METRICS["operators"]._replace(name="pages", everywhere=True))
    assert metrics_of(["time", "operators"]) == ("time", "operators", "pages")
    assert metrics_of(["pages", "time"]) == ("pages", "time")
    assert metrics_of(["stalls"]) == ("stalls",)


def test_what_can_be_measured_is_listed_with_unit_and_meaning():
    page = (ROOT / "docs" / "own-workload.md").read_text(encoding="utf-8").partition("## What can be measured\n")[2]
    listed = re.findall(r"^\| `(\w+)` \| (\w+) \| \S.+ \|$", page.partition("\n## ")[0], re.M)
    assert listed == [(name, METRICS[name].unit) for name in MEASURABLE]


@pytest.mark.parametrize(
    ("olds", "news", "said"),
    [
        ([0, 0, 0], [900, 1000, 1300], "HUNGRIER by 1,000 B at each call (900 to 1,300 B), from 0 B to 1,000 B."),
        ([900, 1000, 1300], [0, 100, 0], "LEANER by 1,000 B at each call (800 to 1,300 B), from 1,000 B to 0 B."),
        ([1000, 1010], [1005, 1020], "SAME at 1,012 B at each call (-5 to 20 B more)."),
        ([1000, 1300], [1200, 1500], "INCONCLUSIVE, from 1,150 B to 1,350 B at each call (-100 to 500 B more)"),
    ],
)
def test_growth_is_told_with_the_interval_of_its_change(olds, news, said):
    words = sentence(judge(GROWTH, launches_of(olds), launches_of(news)))
    assert words.startswith(f"mine resident growth, f: {said}")


def test_where_nothing_grows_the_growth_is_told_that_every_launch_would_have_shown():
    none = judge(GROWTH, launches_of([0, 0], 700, 1900), launches_of([0, 0], 800, 900))
    assert none.least_growth == 1900
    assert sentence(none).endswith("f: SAME at 0 B at each call; a growth of 1,900 B would have been seen.")
    grows = judge(GROWTH, launches_of([0, 0], 700, 700), launches_of([3150, 3160], 700, 700))
    assert "would have been seen" not in sentence(grows)


@pytest.mark.parametrize("count", [3, 5])
def test_interval_of_growth_holds_the_true_change_as_often_as_the_page_says(count):
    draw, held = random.Random(count), 0
    for _ in range(4000):
        olds, news = ([draw.gauss(mean, 200) for _ in range(count)] for mean in (5000, 9000))
        difference = judge(GROWTH, launches_of(olds), launches_of(news)).difference
        assert difference is not None
        held += difference[0] <= 4000 <= difference[1]
    assert held / 4000 == pytest.approx({3: 0.9, 5: 0.992}[count], abs=0.015)


def test_a_process_that_begins_to_grow_is_not_broken():
    def judged(**found: Any) -> Any:
        return judge(MEMORY, launches_of([1e8]), [(some_launch(), Case(MEMORY.parameters, **found))])

    grows = judged(unavailable="it grows by 9 B at each call")
    assert grows.verdict is Verdict.CANT_TELL
    assert "it grows by 9 B" in grows.reason
    assert judged(failed="RuntimeError: gone").verdict is Verdict.BROKE
