"""Does a verdict say what was planted? Launches are made here with a known truth, times as lognormal numbers."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import ArrayLike
from scipy import stats

from torch_history.analysis.levels import REPEATED, USUAL, Array
from torch_history.analysis.series import Verdict, history
from torch_history.analysis.verdicts import (
    ERROR_RATE,
    FALSE_RATE,
    LEAST_STEP,
    MARGIN,
    SINGLE,
    STEP,
    TOLD,
    Change,
    Evidence,
    compare,
    error_rates,
    evidence_between,
    human,
    penalty,
    rounded_up,
)
from torch_history.store.launches import Case, Launch

from .test_launches import some_launch

CHANGED = (Verdict.SLOWER, Verdict.FASTER)
OLD, NEW = "v2.0.1", "v2.1.0"
TIME = "intersection.Intersection.track_time"
BYTES = "intersection.Intersection.track_peak_memory"
COUNT = "intersection.Intersection.track_operators"
EAGER = ("'eager'", "'small'")
_names = itertools.count()


def launch(release: str, benchmark: str, *cases: Case, **changed: Any) -> Launch:
    number = next(_names)
    when = f"2026-11-21T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}+00:00"
    which = {"session": "s1", "launch": f"{number:08x}", "release": release, "benchmark": benchmark, "cases": cases}
    return some_launch(**{**which, "started_at": when, "duration": 1.0, "facts": {}, **changed})


def timed(release: str, seconds: Iterable[float], **changed: Any) -> list[Launch]:
    """A launch for each of `seconds`, in rounds from 1, of whose samples it is the quickest."""
    return [
        launch(release, TIME, Case(EAGER, samples=(1.1 * second, second, 1.3 * second)), **{"round": turn, **changed})
        for turn, second in enumerate(seconds, 1)
    ]


def counted(release: str, values: Iterable[float], benchmark: str = BYTES, **changed: Any) -> list[Launch]:
    return [
        launch(release, benchmark, Case(EAGER, value=value), **{"round": turn, **changed})
        for turn, value in enumerate(values, 1)
    ]


def only(launches: Sequence[Launch]) -> Change:
    (change,) = compare(launches, OLD, NEW)
    return change


def noisy(random: np.random.Generator, seconds: float, noise: float, launches: int) -> list[float]:
    return [float(value) for value in seconds * np.exp(random.normal(0, noise, launches))]


def modelled(
    random: np.random.Generator,
    sessions: Sequence[Sequence[str]],
    level: Callable[[str], Array],
    rounds: int,
    noise: ArrayLike,
    shared: float = 0.0,
    session: float = USUAL[True].session,
    round: float = USUAL[True].round,
    benchmark: str = "selection.S.track_time",
) -> list[Launch]:
    """Sessions of these releases from the model: `level` gives the logarithms of the seconds of each series on a release;
    with what a session does to all series and to each, a release of it to each, a round to each, and a launch (standard
    deviations of logarithms, `noise` one of all series or one of each)."""
    found, series = [], np.size(level(sessions[0][0]))
    for number, tags in enumerate(sessions):
        of_session = random.normal(0, shared) + random.normal(0, session, series)
        again = random.normal(0, REPEATED, (len(tags), series))
        for turn in range(1, rounds + 1):
            of_round = random.normal(0, round, series)
            for tag, here in zip(tags, again, strict=True):
                launched = random.normal(0, np.broadcast_to(noise, here.shape))
                seconds = np.exp(level(tag) + of_session + here + of_round + launched)
                cases = tuple(Case((f"'{i}'",), samples=(float(of),)) for i, of in enumerate(seconds))
                found.append(launch(tag, benchmark, *cases, session=f"s{number}", round=turn))
    return found


def question(
    random: np.random.Generator,
    planted: ArrayLike,
    rounds: int,
    noise: ArrayLike = 0.015,
    name: str = "q",
    releases: Sequence[str] = (OLD, NEW),
) -> list[Launch]:
    """A session of one question, of which the last release is `planted` times slower."""
    levels = {tag: np.log(planted) * (tag == releases[-1]) for tag in releases}
    benchmark = f"{name}.Q.track_time"
    return modelled(random, [releases], levels.__getitem__, rounds, noise, session=0.0, benchmark=benchmark)


def told(changes: Iterable[Change]) -> set[int]:
    """The series of a `question` that are called changed."""
    return {int(one.series.parameters[0].strip("'")) for one in changes if one.verdict in CHANGED}


@pytest.mark.parametrize(
    ("metric", "ratio", "noise", "verdict"),
    [
        ("time", 2.0, 0.01, Verdict.SLOWER),
        ("time", 1.15, 0.01, Verdict.SLOWER),
        ("time", 0.5, 0.01, Verdict.FASTER),
        ("time", 0.85, 0.01, Verdict.FASTER),
        ("time", 1.0, 0.01, Verdict.SAME),
        ("time", 1.01, 0.005, Verdict.SAME),
        ("time", 1.03, 0.02, Verdict.CANT_TELL),  # on the margin
        ("time", 1.1, 0.3, Verdict.CANT_TELL),  # drowned
        ("time", 1.0, 0.3, Verdict.CANT_TELL),  # sameness must be earned
        ("worst_call", 1.15, 0.02, Verdict.SAME),  # calls that are made once have a wider margin
        ("worst_over_median", 1.15, 0.02, Verdict.SAME),
        ("first_call", 1.22, 0.02, Verdict.CANT_TELL),
        ("median_call", 1.6, 0.02, Verdict.SLOWER),
        ("second_call", 0.6, 0.02, Verdict.FASTER),
    ],
)
def test_verdict_on_a_time_is_the_planted_one(metric, ratio, noise, verdict):
    random = np.random.default_rng(20240229)
    launches = timed(OLD, noisy(random, 0.3, noise, 6)) + timed(NEW, noisy(random, 0.3 * ratio, noise, 6))
    change = only([replace(one, benchmark=f"warm_up.WarmUp.track_{metric}") for one in launches])
    assert change.verdict is verdict
    assert change.launches == (6, 6)


def test_ratio_is_that_of_the_geometric_means_and_levels_are_medians():
    # sqrt(1 x 4 x 8) and sqrt(3 x 12 x 24)
    change = only(timed(OLD, [1.0, 4.0, 8.0]) + timed(NEW, [3.0, 12.0, 24.0]))
    assert change.ratio == pytest.approx(3.0, rel=1e-6)
    assert (change.old, change.new) == pytest.approx((4.0, 12.0), rel=1e-5)


def test_launch_counts_once_however_many_samples_it_has():
    few = timed(OLD, [0.3, 0.3003, 0.2997]) + timed(NEW, [0.3, 0.3003, 0.2997])
    many = [replace(few[0], cases=(Case(EAGER, samples=few[0].cases[0].samples * 50),)), *few[1:]]
    assert only(many) == only(few)
    assert only(many).launches == (3, 3)


@pytest.mark.parametrize("ratio", [1.0, 3.0])
@pytest.mark.parametrize("launches", [(1, 1), (4, 1), (1, 4)])
def test_a_single_launch_is_no_evidence(launches, ratio):
    change = only(timed(OLD, [0.3] * launches[0]) + timed(NEW, [0.3 * ratio] * launches[1]))
    assert (change.verdict, change.reason, change.launches) == (Verdict.CANT_TELL, SINGLE, launches)
    assert change.ratio == pytest.approx(ratio, rel=1e-4)
    assert (change.low, change.high, change.detectable) == (None, None, None)


def test_same_is_two_one_sided_tests():
    """Of an interval that is rounded up by at most 3 % for a byte: so it is a little harder to earn."""
    random = np.random.default_rng(3)
    shift, error = random.normal(0, 0.04, 2000), 0.02 * np.exp(random.normal(0, 1, 2000))
    looks: Array = random.integers(1, 4, 2000).astype(float)
    evidence = Evidence(shift, error, random.uniform(1, 30, 2000), MARGIN, looks)
    said = evidence.judged(FALSE_RATE).code
    same, changed = said == TOLD.index(Verdict.SAME), np.isin(said, [TOLD.index(one) for one in CHANGED])
    margin, size = math.log1p(MARGIN), np.abs(evidence.shift)
    by_scipy = stats.t.sf((margin - size) / evidence.error, evidence.freedom) <= ERROR_RATE
    surely = stats.t.sf((margin - size) / evidence.error / math.exp(STEP), evidence.freedom) <= ERROR_RATE
    assert 100 < same.sum() < 1000
    assert not (same & ~by_scipy).any()
    assert not (surely & (evidence.error > LEAST_STEP) & ~same & ~changed).any()


def test_an_interval_that_is_rounded_up_is_never_narrower_and_wider_by_three_per_cent_at_most():
    half = np.exp(np.linspace(math.log(LEAST_STEP), math.log(4), 1000))
    kept = rounded_up(half)
    assert (kept >= half * (1 - 1e-12)).all()
    assert (kept <= half * math.exp(STEP) * (1 + 1e-12)).all()
    assert rounded_up(np.array([1e-9, 1e9, math.nan])) == pytest.approx([LEAST_STEP, math.inf, math.inf])


def test_verdict_can_be_read_off_its_interval():
    random = np.random.default_rng(4)
    kinds: Counter[Verdict] = Counter()
    for change in compare(question(random, random.choice([0.8, 1.0, 1.03, 1.12], 60), 4, 0.01), OLD, NEW):
        assert change.low is not None
        assert change.high is not None
        assert change.ratio is not None
        kinds[change.verdict] += 1
        assert (change.verdict is Verdict.SLOWER) == (change.low > 1 and change.ratio > 1 + MARGIN)
        assert (change.verdict is Verdict.FASTER) == (change.high < 1 and change.ratio < 1 / (1 + MARGIN))
        assert change.verdict is not Verdict.SAME or 1 / (1 + MARGIN) <= change.low <= change.high <= 1 + MARGIN
    assert set(kinds) == {Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.CANT_TELL}


def test_changes_among_hundreds_of_uneven_series_are_found_and_what_builds_differ_by_is_not_told():
    """A third of the series of a question are slower by a tenth, a third by a twentieth, and a third by 1 %."""
    random = np.random.default_rng(5)
    planted = np.repeat([1.1, 1.05, 1.01], 100)
    found = Counter(i // 100 for i in told(compare(question(random, planted, 8, 0.012), OLD, NEW)))
    assert found[0] >= 95
    assert found[1] >= 75
    assert found[2] <= 2


@pytest.mark.parametrize(("rounds", "releases"), [(2, 5), (6, 2)])
def test_false_changes_of_quiet_questions_are_no_more_than_the_stated_rate(rounds, releases):
    """Of questions without any change, whose noises are as uneven as real ones, at most FALSE_RATE tells one."""
    random, trials = np.random.default_rng(21), 100
    tags = [OLD, *(f"v2.0.{i}" for i in range(2, releases)), NEW]
    noises = 0.013 * np.exp(random.normal(0, 0.5, (trials, 30)))
    false = [told(compare(question(random, np.ones(30), rounds, noise, releases=tags), OLD, NEW)) for noise in noises]
    assert sum(map(bool, false)) <= stats.binom.ppf(0.999, trials, FALSE_RATE)


def test_error_rates_are_what_scipy_makes_of_many_chances():
    """Of several pairs of releases at once, some of which some series lack, and one all of them."""
    random = np.random.default_rng(0)
    shift = random.normal(0, 0.1, (150, 40))
    shift[random.random(shift.shape) < random.random(40)] = math.nan
    shift[:, 7] = math.nan
    evidence = Evidence(shift, np.full(shift.shape, 0.02), np.full(shift.shape, 6.0))
    for pair, rate in enumerate(error_rates(evidence)):
        chances = np.where(evidence.beyond, evidence.p_value, 1.0)[~np.isnan(shift[:, pair]), pair]
        changed = int((stats.false_discovery_control(chances) <= FALSE_RATE).sum()) if len(chances) else 0
        assert rate == pytest.approx(FALSE_RATE * max(1, changed) / max(1, len(chances)))


def test_true_changes_within_the_margin_do_not_make_room_for_false_ones_beyond_it():
    many = Evidence(np.array([[0.01]] * 99 + [[0.2]]), np.array([[0.0001]] * 99 + [[0.05]]), np.full((100, 1), 20.0))
    assert many.p_value[0] < 1e-9
    assert error_rates(many) == pytest.approx([FALSE_RATE / 100])


def test_more_series_of_its_question_make_a_verdict_harder_and_no_others_do():
    """Neither exact numbers, nor the changes of another question, of which there are hundreds."""
    random = np.random.default_rng(24)
    of_one = question(random, [1.12], 4)
    exact = [replace(one, benchmark="q.Q.track_operators") for one in question(random, np.ones(300), 4)]
    elsewhere = question(random, np.full(300, 2.0), 4, name="selection")

    def confidence(others: Sequence[Launch]) -> float | None:
        changes = compare([*of_one, *others], OLD, NEW)
        return next(one.confidence for one in changes if one.series.benchmark == "q.Q.track_time")

    assert confidence([]) == confidence([*exact, *elsewhere]) == 1 - FALSE_RATE
    more = [replace(one, benchmark="q.Q.track_first_call") for one in question(random, np.ones(300), 4)]
    assert confidence(more) == pytest.approx(1 - FALSE_RATE / 301)


@pytest.mark.parametrize("series", [1, 20])
def test_a_lone_change_of_the_detectable_size_is_told_four_times_of_five(series):
    random, trials = np.random.default_rng(6), 200
    quiet = [compare(question(random, np.ones(series), 8), OLD, NEW) for _ in range(40)]
    size = float(np.median([change.detectable for changes in quiet for change in changes]))
    planted = np.ones(series)
    planted[0] = size
    found = sum(0 in told(compare(question(random, planted, 8), OLD, NEW)) for _ in range(trials))
    # three standard deviations of 200 tosses at 80 % are 8.5 %
    assert 0.715 <= found / trials <= 0.885


@pytest.mark.parametrize("rounds", [2, 3, 6])
def test_intervals_of_one_series_of_its_own_hold_the_truth_where_it_is_as_usual(rounds):
    """Nothing lends it noise, so what times of its kind are in the history does: drawn from that, 99 of 100 are held."""
    random = np.random.default_rng(26)
    held, trials = 0, 400
    for _ in range(trials):
        noise = USUAL[True].noise * math.sqrt(USUAL[True].freedom / random.chisquare(USUAL[True].freedom))
        (change,) = compare(question(random, [1.2], rounds, noise), OLD, NEW)
        assert change.confidence == 1 - FALSE_RATE
        held += (change.low or 0) <= 1.2 <= (change.high or 0)
    assert stats.binom.ppf(0.001, trials, 1 - FALSE_RATE) <= held


def test_launches_of_plain_asv_that_have_no_rounds_are_compared_by_their_means():
    olds, news = [1.0, 1.02, 0.99], [1.3, 1.28, 1.31, 1.27]
    change = only(timed(OLD, olds, round=0) + timed(NEW, news, round=0))
    assert (change.verdict, change.launches) == (Verdict.SLOWER, (3, 4))
    assert change.ratio == pytest.approx(math.exp(np.log(news).mean() - np.log(olds).mean()), rel=1e-6)


def test_machine_of_another_speed_on_another_day_is_no_change():
    # The second day takes three times as long; the third session holds the new release alone, five times as slow.
    launches = [
        *timed(OLD, [1.00, 1.01, 0.995], session="monday"),
        *timed(NEW, [1.005, 1.00, 1.00], session="monday"),
        *timed(OLD, [3.00, 3.01, 2.99], session="tuesday"),
        *timed(NEW, [2.99, 3.02, 3.00], session="tuesday"),
        *timed(NEW, [5.0, 5.0, 5.0], session="wednesday"),
    ]
    assert only(launches).verdict is Verdict.SAME


def test_round_that_holds_one_release_only_does_not_count_where_the_machine_had_become_slow():
    """A session was stopped in its fourth round."""
    launches = timed(OLD, [1.0, 1.01, 1.0, 9.0]) + timed(NEW, [1.0, 1.0, 1.01])
    assert only(launches).verdict is Verdict.SAME


@pytest.mark.parametrize(("launches", "disturbed"), [(2, 1), (4, 1), (6, 1), (10, 1), (10, 2)])
def test_launches_out_of_line_make_no_change(launches, disturbed):
    random = np.random.default_rng(launches)
    for _ in range(30):
        olds, news = noisy(random, 1.0, 0.003, launches), noisy(random, 1.0, 0.003, launches)
        news[-disturbed:] = [3 * second for second in news[-disturbed:]]
        assert only(timed(OLD, olds) + timed(NEW, news)).verdict is Verdict.CANT_TELL


@pytest.mark.parametrize(("rounds", "verdict"), [(4, Verdict.FASTER), (1, Verdict.CANT_TELL)])
def test_releases_that_sessions_tie_by_another_are_compared_though_machines_differ(rounds, verdict):
    """One release and another on a slow Monday, that and a third on a fast Tuesday: 1.0, 1.2 and 0.9 seconds."""
    random = np.random.default_rng(13)
    days = {"monday": (2.0, {OLD: 1.0, "v2.0.2": 1.2}), "tuesday": (0.5, {"v2.0.2": 1.2, NEW: 0.9})}
    found = []
    for day, (speed, levels) in days.items():
        for release, level in levels.items():
            found += timed(release, noisy(random, speed * level, 0.005, rounds), session=day)
    change = only(found)
    assert change.verdict is verdict
    assert (change.low is None) is (rounds == 1)
    assert rounds == 1 or (change.low or 0) < 0.9 < (change.high or 0)


def test_launches_that_agree_to_the_last_digit_are_no_proof_of_the_smallest_change():
    change = only(timed(OLD, [1.0, 1.0, 1.0]) + timed(NEW, [1.0, 1.0, 1.0]))
    assert change.verdict is Verdict.SAME
    assert (change.low or 1) < 1


DISTURBED = {"conditions": {"disturbed": "another process took 40 % of a core"}}


def test_all_fair_askings_of_a_round_count_and_none_that_was_disturbed():
    def asked(*numbers: float, facts: dict[str, Any] | None = None) -> Launch:
        case = Case(("'eager'",), samples=numbers) if numbers else Case(("'eager'",), failed="it was killed")
        return launch(OLD, TIME, case, facts=facts or {})

    def samples(*launches: Launch) -> tuple[float, ...]:
        (releases,) = history(launches).values()
        ((_, case),) = releases[OLD]
        return case.samples

    assert samples(asked(1.2), asked(1.0, 1.1)) == (1.2, 1.0, 1.1)
    assert samples(asked(1.2, facts=DISTURBED), asked(1.0)) == (1.0,)
    assert samples(asked(1.2), asked(1.0, facts=DISTURBED)) == (1.2,)
    assert samples(asked(1.2, facts=DISTURBED), asked(1.0, facts=DISTURBED)) == (1.2, 1.0)
    assert samples(asked(1.2), asked()) == (1.2,)


def test_disturbed_launch_that_was_not_repeated_counts_and_is_counted():
    quiet = timed(OLD, [0.30, 0.301]) + timed(NEW, [0.30, 0.300])
    noise = timed(OLD, [0.5], facts=DISTURBED, round=3) + timed(NEW, [0.51], facts=DISTURBED, round=3)
    change = only([*quiet, *noise])
    assert (change.launches, change.disturbed) == ((3, 3), 2)


@pytest.mark.parametrize(
    ("benchmark", "old", "new", "verdict"),
    [
        *((BYTES, 240_000_000, 240_000_001, Verdict.HUNGRIER), (BYTES, 240_000_000, 239_999_999, Verdict.LEANER)),
        *((BYTES, 240_000_000, 240_000_000, Verdict.SAME), (COUNT, 53, 54, Verdict.MORE)),
        *((COUNT, 53, 52, Verdict.FEWER), (COUNT, 53, 53, Verdict.SAME), (COUNT, 0, 1, Verdict.MORE)),
        (COUNT, 0, 0, Verdict.SAME),
    ],
)
def test_any_difference_of_an_exact_number_is_real(benchmark, old, new, verdict):
    change = only(counted(OLD, [old], benchmark) + counted(NEW, [new], benchmark))
    assert change.verdict is verdict
    assert (change.old, change.new) == (old, new)
    if old:
        assert change.ratio == change.low == change.high == new / old


def test_count_that_varies_between_launches_cannot_tell_and_shows_the_values():
    change = only(counted(OLD, [53, 54], COUNT) + counted(NEW, [60, 60], COUNT))
    assert change.verdict is Verdict.CANT_TELL
    assert all(values in change.reason for values in ("[53, 54]", "[60]"))


STALLS = "warm_up.WarmUp.track_stalls"


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        *(([1], [9], Verdict.CANT_TELL), ([1, 1], [9, 9], Verdict.MORE), ([1, 1], [1, 1], Verdict.SAME)),
        ([1, 2], [9, 9], Verdict.CANT_TELL),
    ],
)
def test_stalls_changed_where_all_launches_agree(old, new, verdict):
    assert only(counted(OLD, old, STALLS) + counted(NEW, new, STALLS)).verdict is verdict


NEEDS = "torch.compile needs torch >= 2.0"
WRONG = "WrongResult: an overlap area is off by 3.2 square pixels"
MISSING = {"unavailable": Case(EAGER, unavailable=NEEDS), "failed": Case(EAGER, failed=WRONG)}
UNMEASURED = Case(EAGER, unmeasured="no process can be forked")


@pytest.mark.parametrize(("kind", "reason"), [("unavailable", NEEDS), ("failed", WRONG)])
def test_number_that_was_lost_broke_and_that_was_won_is_fixed_with_the_reason(kind, reason):
    lost = only([*timed(OLD, [0.25, 0.5]), launch(NEW, TIME, MISSING[kind])])
    assert lost == Change(lost.series, Verdict.BROKE, old=0.375, launches=(2, 0), reason=reason)
    won = only([launch(OLD, TIME, MISSING[kind]), *timed(NEW, [0.25, 0.5])])
    assert won == Change(won.series, Verdict.FIXED, new=0.375, launches=(0, 2), reason=reason)


@pytest.mark.parametrize(("there", "lacking", "numbers"), [(OLD, NEW, (1, None)), (NEW, OLD, (None, 1))])
@pytest.mark.parametrize("metric", [TIME, BYTES])
def test_what_was_not_measured_neither_breaks_nor_mends_a_release(there, lacking, numbers, metric):
    """By the suite, or by the recorder, which cannot count everything; what failed on it did fail."""
    measured = timed(there, [1.0]) if metric == TIME else counted(there, [1])
    recorder = {"device": "recorder"}
    for case, facts, reason in (
        (UNMEASURED, {}, f"was not measured, because {UNMEASURED.unmeasured}"),
        (MISSING["unavailable"], recorder, f"was not counted: {NEEDS}"),
    ):
        change = only([*measured, launch(lacking, metric, case, facts=facts)])
        assert (change.verdict, change.old, change.new) == (Verdict.CANT_TELL, *numbers)
        assert change.reason == f"{lacking} {reason}"
    failed = launch(lacking, metric, MISSING["failed"], facts=recorder)
    assert only([*measured, failed]).verdict in (Verdict.BROKE, Verdict.FIXED)


@pytest.mark.parametrize("unmeasured_on", [OLD, NEW])
@pytest.mark.parametrize("kind", MISSING)
def test_what_the_suite_could_not_measure_is_not_said_to_have_never_run(unmeasured_on, kind):
    other = OLD if unmeasured_on == NEW else NEW
    change = only([launch(other, TIME, MISSING[kind]), launch(unmeasured_on, TIME, UNMEASURED)])
    assert change.verdict is Verdict.CANT_TELL
    assert change.reason.startswith(f"{unmeasured_on} was not measured, because ")


def test_failure_of_the_suite_in_the_same_round_leaves_the_number_before_it():
    (before,) = counted(NEW, [1])
    later = launch(NEW, BYTES, UNMEASURED, launch=before.launch, round=before.round)
    assert only([*counted(OLD, [1]), before, later]).verdict is Verdict.SAME


def test_failure_of_one_launch_does_not_hide_the_numbers_of_the_others():
    failed = launch(NEW, TIME, MISSING["failed"], round=4)
    launches = [*timed(OLD, [0.30, 0.31, 0.30, 0.31]), *timed(NEW, [0.60, 0.61, 0.60]), failed]
    assert only(launches).verdict is Verdict.SLOWER


def test_times_of_separate_sessions_cannot_tell_and_exact_numbers_can():
    # Two sessions may differ by the machine alone.
    change = only(timed(OLD, [0.30, 0.31, 0.30], session="s1") + timed(NEW, [0.40, 0.41, 0.40], session="s2"))
    no_chain = "no round has a number for both, and no chain of rounds with common releases connects them"
    assert (change.verdict, change.reason) == (Verdict.CANT_TELL, no_chain)
    assert (change.low, change.high) == (None, None)
    assert only(counted(OLD, [10], session="s1") + counted(NEW, [11], session="s2")).verdict is Verdict.HUNGRIER


def test_only_the_newest_version_of_a_benchmark_counts():
    earlier = timed(OLD, [9.0, 9.0], version="0") + timed(NEW, [1.0, 1.0], version="0")
    later = timed(OLD, [0.30, 0.31]) + timed(NEW, [0.30, 0.31])
    change = only(earlier + later)
    assert change.launches == (2, 2)
    assert change.old == pytest.approx(0.305, rel=1e-5)
    assert only([*later, *earlier]) == change  # whatever the order of the files


def test_other_releases_and_other_series_are_left_alone():
    scripted = ("'scripted'", "'small'")
    launches = [
        *timed(OLD, [0.30, 0.31, 0.30]),
        *timed(NEW, [0.30, 0.31, 0.30]),
        *timed("v2.2.0", [9.0, 9.0, 9.0]),
        *timed(NEW, [9.0, 9.0, 9.0], environment="release-py3.9"),
        launch(OLD, TIME, Case(scripted, samples=(1.0,))),
        launch(NEW, TIME, Case(scripted, samples=(2.0,))),
    ]
    changes = {(change.series.environment, change.series.parameters): change for change in compare(launches, OLD, NEW)}
    assert len(changes) == 3
    assert changes["release-py3.11", EAGER].verdict is Verdict.SAME
    assert changes["release-py3.11", scripted].ratio == pytest.approx(2.0)
    assert changes["release-py3.9", EAGER].reason == "it was not measured"


def test_rounds_of_one_start_of_the_interpreter_are_one_launch():
    # Plain asv takes two rounds in one start: their samples are pooled, and one launch each cannot tell.
    launches = [
        launch(release, TIME, Case(EAGER, samples=samples), launch=f"start of {release}", round=0)
        for release, rounds in ((OLD, [(6.0,), (1.0, 2.0)]), (NEW, [(60.0,), (10.0, 20.0)]))
        for samples in rounds
    ]
    change = only(launches)
    assert change.launches == (1, 1)
    assert (change.old, change.new) == pytest.approx((1.0, 10.0))
    assert change.verdict is Verdict.CANT_TELL


def spent(first: int, rate: float, division: Callable[[int], Any], walks: int = 500_000) -> float:
    """How often a series in which nothing changed is told at one of 25 looks, in times of `rate`; the first look comes after
    `first` rounds."""
    random = np.random.default_rng(22)
    total, told = random.standard_normal(walks) * math.sqrt(first), np.zeros(walks, bool)
    for looks in range(1, 26):
        told |= np.abs(total) > math.sqrt(first + looks - 1) * stats.norm.isf(rate / division(looks) / 2)
        total += random.standard_normal(walks)
    return float(told.mean()) / rate


@pytest.mark.parametrize("first", [2, 6])
@pytest.mark.parametrize("rate", [0.01, 0.001])
def test_all_looks_together_spend_little_more_than_one_does(first, rate):
    assert 1.1 < spent(first, rate, penalty) < 1.7
    assert spent(first, rate, lambda looks: 1.0) > 5


@pytest.mark.parametrize(("name", "looked"), [("q", [3, 1, 1]), ("mine.Own", [4, 2, 2])])
def test_rounds_beyond_those_of_the_question_are_looks(name, looked):
    """Two of three series were measured in three rounds, and one in two more: it was looked at three times, so its chance of
    being false counts six times. In an own file all were looked at after the second round already."""
    random = np.random.default_rng(23)
    launches = question(random, np.ones(3), 5, name=name)
    launches = [replace(one, cases=one.cases if one.round <= 3 else one.cases[:1]) for one in launches]
    (fit,) = history(launches).fits.values()
    looks = np.asarray(evidence_between(fit, [(OLD, NEW)]).looks)[:, 0]
    of_series = {one.parameters[0]: int(of) for one, of in zip(fit.levels, looks, strict=True)}
    assert of_series == {f"'{place}'": of for place, of in enumerate(looked)}
    once, thrice = (Evidence(np.array(0.1), np.array(0.02), np.array(8.0), MARGIN, looks) for looks in (1, 3))
    assert once.p_value == pytest.approx(2 * stats.t.sf(5.0, 8))
    assert thrice.p_value == pytest.approx(6 * once.p_value)
    assert penalty(1) == 1


def test_half_a_count_between_launches_is_not_told_as_none():
    said = [human(0.5, "stalls"), human(53.0, "count"), human(1234.5, "count"), human(1234.5, "bytes")]
    assert said == ["0.5", "53", "1,234.5", "1,234 B"]
