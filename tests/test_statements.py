"""Do sentences with numbers, written by hand in docs/questions, say what the committed results hold? Each is looked for in
its page word for word, and each number in it is computed anew."""

import functools
import itertools
import re
import statistics
from collections import defaultdict

import pytest

from torch_history.analysis.series import History, Verdict, history
from torch_history.analysis.verdicts import Change, compare_history
from torch_history.store.launches import read_on_axis

from .lab import AXIS
from .processes import ROOT

pytestmark = pytest.mark.committed

MACHINE, STARTED_ON = "amd-epyc-family-26-model-2-2-cores", "amd-epyc-family-25-model-17-2-cores"
LANES = ("release-py3.9", "release-py3.11")


def said(page: str, sentence: str) -> list[float]:
    """The numbers of `sentence`, in which `#` stands for each, as the page has them."""
    text = " ".join((ROOT / "docs" / "questions" / f"{page}.md").read_text(encoding="utf-8").split())
    pattern = re.escape(sentence).replace(r"\#", "#").replace("#", r"(\d+(?:\.\d+)?)")
    found = re.search(pattern, text)
    assert found, f"docs/questions/{page}.md no longer says: {sentence}"
    return [float(number) for number in found.groups()]


@functools.cache
def measured(question: str, lane: str) -> History:
    """What the machine has of a question of which its page speaks."""
    machine = STARTED_ON if question == "start_up" else MACHINE
    return history(read_on_axis(ROOT / "results", machine, AXIS, lane, (question,)))


def ratio(question: str, lane: str, old: str, new: str, *case: str) -> float:
    """That of the time of a case."""
    changes = compare_history(measured(question, lane), old, new)
    of = "time", tuple(map(repr, case))
    (found,) = (one.ratio for one in changes if (one.series.metric, one.series.parameters) == of)
    return found or 0


def test_what_checkpoint_lost_in_2_1_0():
    sentence = "`checkpoint` of a small step (`loop`) takes # to # times as long on 2.1.0 as on 2.0.1"
    case = "v2.0.1", "v2.1.0", "checkpoint", "loop, no gradient"
    assert said("saved_tensors", sentence) == sorted(round(ratio("saved_tensors", lane, *case), 1) for lane in LANES)


def test_launches_in_which_torchscript_stalled_without_a_fuser():
    first, last = AXIS.position("v1.10.0"), AXIS.position("v2.0.1")
    slowest = [
        case.number
        for lane in LANES
        for series, of in measured("warm_up", lane).items()
        if series.metric == "worst_over_median" and series.parameters[0] in ("'scripted'", "'traced'")
        for release, pairs in of.items()
        if not first <= AXIS.position(release) <= last
        for _, case in pairs
        if case.number is not None
    ]
    sentence = "In # of # launches one took more than #, which counts as a stall; the largest was #."
    stalled, launches, limit, largest = said("warm_up", sentence)
    assert (stalled, launches) == (sum(number > limit for number in slowest), len(slowest))
    assert largest == round(max(slowest), 1)
    assert said("warm_up", "the slowest call after the first takes # to # medians") == [
        round(min(slowest)),
        round(sorted(slowest)[-int(stalled) - 1]),
    ]


def started(lane: str, old: str, new: str) -> dict[tuple[str, str], Change]:
    """Metric and variant of start_up -> what became of it from one release to another."""
    changes = compare_history(measured("start_up", lane), old, new)
    return {(change.series.metric, change.series.parameters[0].strip("'")): change for change in changes}


def megabytes(*numbers: float | None) -> list[float]:
    return [round(number / 1e6) for number in numbers if number is not None]


def resident(lane: str) -> dict[str, dict[str, float]]:
    """Release -> session -> the median of the memory that is resident after the import."""
    every, wanted = measured("start_up", lane), ("start_resident", "'import_torch'")
    (of,) = (of for one, of in every.items() if (one.metric, one.parameters[0]) == wanted)
    numbers: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for tag, pairs in of.items():
        for launch, case in pairs:
            numbers[tag][launch.session] += [case.number] if case.number is not None else []
    return {tag: {name: statistics.median(of) for name, of in found.items()} for tag, found in numbers.items()}


def in_one_session(levels: dict[str, dict[str, float]], old: str, new: str) -> tuple[float, float]:
    """The levels of two releases in the one session that measured both."""
    (session,) = levels[old].keys() & levels[new].keys()
    return levels[old][session], levels[new][session]


def percent(change: Change) -> float:
    assert change.ratio is not None
    return round(100 * (change.ratio - 1))


def test_what_the_import_takes_since_1_13_0():
    of = started("release-py3.9", "v1.12.1", "v1.13.0")
    own, seconds = (of[f"start_{name}", "import_torch"] for name in ("memory", "time"))
    old, new = in_one_session(resident("release-py3.9"), "v1.12.1", "v1.13.0")
    sentence = "after `import torch` # MB are resident on 1.12.1 and # MB on 1.13.0, # % more"
    assert said("start_up", sentence) == [*megabytes(old, new), round(100 * (new / old - 1))]
    sentence = "for itself rose from # MB to # MB, by # %. The import takes # times as long"
    assert said("start_up", sentence) == [*megabytes(own.old, own.new), percent(own), round(seconds.ratio or 0, 1)]
    after = started("release-py3.9", "v1.13.0", "v1.13.1")
    for metric in ("start_time", "start_cpu_time", "start_memory"):
        assert after[metric, "import_torch"].verdict is Verdict.SAME


def test_what_the_import_takes_on_2_15_0():
    levels = resident("release-py3.11")
    sentence = "after the import grew from # MB to # MB, and the import takes # times as long"
    seconds = started("release-py3.11", "v1.13.1", "v2.15.0")["start_time", "import_torch"]
    both = in_one_session(levels, "v1.13.1", "v2.15.0")
    assert said("start_up", sentence) == [*megabytes(*both), round(seconds.ratio or 0, 1)]
    of = started("release-py3.11", "v2.14.1", "v2.15.0")
    held, own = of["start_resident", "import_torch"], of["start_memory", "import_torch"]
    old, new = in_one_session(levels, "v2.14.1", "v2.15.0")
    sentence = "the resident memory grew by # %. What the process has for itself grew by # %, within the margin"
    assert said("start_up", sentence) == [round(100 * (new / old - 1)), percent(own)]
    assert (held.verdict, own.verdict) == (Verdict.HUNGRIER, Verdict.SAME)


def test_which_release_grew_most_after_the_import():
    levels = resident("release-py3.11")
    measured = sorted(levels, key=AXIS.position)
    growth = {
        new: max(levels[new][session] / levels[old][session] for session in levels[old].keys() & levels[new].keys())
        for old, new in itertools.pairwise(measured[measured.index("v2.2.0") :])
    }
    assert max(growth, key=growth.__getitem__) == "v2.8.0"
    of = started("release-py3.11", "v2.7.1", "v2.8.0")
    own, seconds = (of[f"start_{name}", "import_torch"] for name in ("memory", "time"))
    sentence = "the import grew from # MB to # MB, and what the process has for itself from # MB to # MB"
    both = in_one_session(levels, "v2.7.1", "v2.8.0")
    assert said("start_up", sentence) == [*megabytes(*both), *megabytes(own.old, own.new)]
    assert seconds.verdict is Verdict.SAME


def test_by_how_much_sessions_differ_in_resident_memory():
    every = [of for lane in LANES for of in resident(lane).values()]
    most = max(max(of.values()) / min(of.values()) for of in every)
    assert said("start_up", "after `import torch` by up to # %") == [round(100 * (most - 1))]


def test_what_an_index_of_a_vector_takes_since_1_13_1():
    def of(lane: str, old: str, new: str) -> float:
        return ratio("selection", lane, old, new, "index_reused", "vector 99 % x 100")

    releases = sorted({tag for of in measured("selection", LANES[1]).values() for tag in of}, key=AXIS.position)
    later = releases[releases.index("v2.0.1") : releases.index("v2.11.0") + 1]
    ratios = {tag: of(LANES[1], "v1.13.1", tag) for tag in later}
    sentence = "For 99 % of a vector, 100 times, 1.13.1 took # times as long as 1.8.1"
    assert said("selection", sentence) == [round(of(LANES[0], "v1.8.1", "v1.13.1"), 1)]
    sentence = "takes # to # times as long as on 1.13.1, most on 2.1.1, 2.3.0 and 2.3.1; on 2.11.0 it takes # times"
    numbers = (min(ratios.values()), max(ratios.values()), ratios["v2.11.0"])
    assert said("selection", sentence) == [round(number, 1) for number in numbers]
    assert {*sorted(ratios, key=ratios.__getitem__)[-3:]} == {"v2.1.1", "v2.3.0", "v2.3.1"}
    assert all(of(LANES[1], "v2.13.0", tag) > 2 for tag in ("v2.14.0", "v2.14.1", "v2.15.0"))


def test_what_the_first_compile_takes_since_2_7_1():
    def slower(old: str, new: str) -> float:
        return started("release-py3.11", old, new)["start_time", "first_compile"].ratio or 0

    sentence = "the first compile became # times slower: # times at 2.8.0, # times at 2.9.0 and # times at 2.10.0"
    pairs = [("v2.7.1", "v2.12.1"), ("v2.7.1", "v2.8.0"), ("v2.8.0", "v2.9.0"), ("v2.9.1", "v2.10.0")]
    assert said("start_up", sentence) == [round(slower(*pair), 1) for pair in pairs]
    assert said("start_up", "At 2.13.0 it became # times faster") == [round(1 / slower("v2.12.1", "v2.13.0"), 1)]


def test_what_the_first_compile_and_the_first_operators_take():
    seconds = {
        series.parameters[0].strip("'"): {
            tag: statistics.median(case.number for _, case in pairs if case.number is not None)
            for tag, pairs in of.items()
            if any(case.number is not None for _, case in pairs)
        }
        for series, of in measured("start_up", "release-py3.11").items()
        if series.metric == "start_time"
    }
    newest = [seconds["first_compile"][tag] for tag in ("v2.13.0", "v2.14.0", "v2.14.1", "v2.15.0")]
    sentence = "The first compile of a small function takes # to # s from 2.13.0 to 2.15.0"
    assert said("start_up", sentence) == [round(min(newest)), round(max(newest))]
    assert all(0.0005 <= number < 0.0015 for number in seconds["first_operator"].values())


def test_what_workers_take_on_2_15_0():
    of = started("release-py3.11", "v2.14.1", "v2.15.0")
    forked, spawned = (
        [of[f"start_{name}", f"{how}_worker"].new or 0 for name in ("time", "memory")] for how in ("forked", "spawned")
    )
    sentence = "a forked worker takes # s and has # MB for itself. A spawned one takes # s and has # MB for itself"
    expected = [round(forked[0], 2), round(forked[1] / 1e6), round(spawned[0], 1), round(spawned[1] / 1e6)]
    assert said("start_up", sentence) == expected
