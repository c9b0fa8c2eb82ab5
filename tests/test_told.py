"""Does a page show what the command says? Lanes drawn at random, compared number by number, word by word."""

import dataclasses
import itertools
import json
import math
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from torch_history.analysis import causes as why
from torch_history.analysis import compare
from torch_history.analysis.series import History, Series, Verdict, history
from torch_history.analysis.verdicts import BOUND, Change, compare_history, human, times
from torch_history.releases.axis import Axis
from torch_history.site import data
from torch_history.site.data import Lane, lanes
from torch_history.site.told import told
from torch_history.site.typical import MEMORY, rounded
from torch_history.store.launches import Case, Launch, append_environment, read_environment, read_launches

from .result_files import append
from .test_launches import ENVIRONMENT, some_launch

SITE = Path(__file__).resolve().parents[1] / "torch_history" / "site"
SEEDS = 24

VARIANTS = ("eager", "scripted", "re_traced", "frozen", "<img src=x> | *a*", "under_score_ @me #1", "o'brien", "")
LINE = ("1.13.0", *(f"2.{minor}.0" for minor in range(11)))
LOOKED_AT = (
    ("intersection.Intersection", "compiled", "v2.6.0"),
    ("selection.Selection", "index_select_reused", "v2.6.0"),
    ("saved_tensors.Saved", "subprocess_start", "v2.1.0"),
)
"""Questions and variants of which why.py tells a cause that somebody found, and a release of it. The second is told up to
2.7.1 alone, the third of 2.0.0 too."""
SIZES = ("small", "vector 4,096 x 64")
EXACT = ("operators", "allocations", "kernels", "host_syncs", "fusion_groups", "peak_memory", "retained", "gradients")
SCATTERS = "process_peak_memory"
"""Bytes that differ a little from launch to launch."""

REASONS = (
    "torch.compile needs torch >= 2.0",
    "RuntimeError: expected <Tensor> | got **None** from `f` of @someone, see #12\n[x](http://y)...",
    "a sentence\x1cwith\u00a0odd\u2003space and $x_1$ ~ naïve_ _é.",
)
FACTS: dict[str, list[Any]] = {
    **{"fuses_on_cpu": [True, False], "cpu_capability": ["AVX2", "AVX512"], "onednn": ["2.6.0", "3.1.1", None]},
    **{"mkl": ["2022.2"], "cuda": ["11.7", "12.1"], "cudnn": ["8.5.0", "8.9.2"], "compiler": ["GCC 9.3", "GCC 13.3"]},
    **{"threads": [1, 2], "numpy": ["1.26.4"]},
}
Sessions = list[tuple[list[str], list[int]]]


def sessions_of(chance: random.Random, tags: list[str]) -> Sessions:
    """The releases of each session and its rounds: all at once, a chain of neighbours, what chance gives, or plain asv."""
    rounds = list(range(1, chance.choice((1, 2, 3, 5, 9, 14)) + 1))
    kind = chance.choice(("together", "chain", "chain", "any", "plain"))
    if kind == "together":
        return [(tags, rounds)] * chance.choice((1, 2))
    if kind == "chain":
        return [*((tags[i : i + 2], rounds) for i in range(len(tags) - 1)), (tags[-1:], [1, 2, 3])]
    if kind == "any":
        return [(chance.sample(tags, chance.randint(1, len(tags))), rounds[: chance.randint(1, 14)]) for _ in range(4)]
    return [(chance.sample(tags, chance.randint(1, len(tags))), [0] * chance.choice((1, 2, 4))) for _ in range(3)]


class Truth:
    """What is measured: a level for each release, which is mostly that of another one, and noise for each case; and with it
    all that a launch can be but a number: out of line, a count that varies, missing now and then or always."""

    def __init__(self, chance: random.Random, tags: list[str]) -> None:
        self.chance, self.tags = chance, tags
        looked_at, self.explained, _ = chance.choice([cause for cause in LOOKED_AT if cause[2] in tags] or LOOKED_AT)
        self.questions = [looked_at, chance.choice(("batching.Batching", "warm_up.WarmUp"))]
        variants = [self.explained, *chance.sample(VARIANTS, 5)]
        self.params = [(repr(variant), repr(size)) for variant in variants for size in SIZES]
        self.timed = ["time", chance.choice(("forward_time", "first_call", "worst_over_median"))]
        self.metrics = [*self.timed, "stalls", *chance.sample(EXACT, 5)]
        self.noises: dict[tuple[str, ...], float] = {
            case: chance.choice((0.0, 0.001, 0.01, 0.01, 0.03, 0.4)) for case in self.params
        }
        self.absent = chance.choice((0.0, 0.02, 0.1))
        self.levels: dict[tuple[str, ...], float] = {}

    def level(self, tag: str, *series: str) -> float:
        known = [self.levels[other, *series] for other in self.tags if (other, *series) in self.levels]
        if (tag, *series) not in self.levels:
            metric = series[1]
            if metric in self.timed:
                step = self.chance.choice((1.0, 1.0, 1.0, 1.0103, 1.0507, 1.2011, 3.7003, 0.8017, 0.3119))
                step = 3.7003 if repr(self.explained) in series else step
                value = (known[-1] if known else 10 ** self.chance.uniform(-7, 3)) * step
            elif known and self.chance.random() < 0.6:
                value = known[-1]
            elif metric in ("fusion_groups", "stalls"):
                value = self.chance.choice((0, 0, 1, 2))
            else:
                value = self.chance.choice((0, 7, 9, 53, 1200, 24 * 10**7))
            self.levels[tag, *series] = value
        return self.levels[tag, *series]

    def case(self, tag: str, question: str, metric: str, case: tuple[str, ...], drift: float) -> Case:
        never = random.Random(f"{tag} {question} {case}").random() < self.absent
        if never or self.chance.random() < self.absent / 10:
            reason = self.chance.choice(REASONS)
            return structs.replace(Case(case), **{self.chance.choice(("failed", "unavailable", "unmeasured")): reason})
        value = self.level(tag, question, metric, *case)
        if metric not in self.timed:
            return Case(case, value=value + (self.chance.random() < 0.01))
        noise = self.noises[case]
        value *= math.exp(drift + self.chance.gauss(0, noise)) * (3 if noise and self.chance.random() < 0.05 else 1)
        value = float(f"{value:.13g}")
        return Case(case, samples=(value, 1.2 * value)) if metric == "time" else Case(case, value=value)


def launches_of(chance: random.Random, tags: list[str]) -> list[Launch]:
    """Some are disturbed, some of these asked again; a session asks for most cases but not always for all."""
    truth = Truth(chance, tags)
    found: list[Launch] = []
    for session, (together, rounds) in enumerate(sessions_of(chance, tags)):
        for question, metric in itertools.product(truth.questions, truth.metrics):
            asked = [case for case in truth.params if chance.random() > 0.02]
            for turn in rounds if metric in (*truth.timed, "stalls") else rounds[:1]:
                drift = chance.gauss(0, 0.2)
                for tag in chance.sample(together, len(together)) * chance.choice((1, 1, 1, 2)):
                    disturbed = {"conditions": {"disturbed": "a neighbour"}} if chance.random() < 0.1 else {}
                    which = {"session": f"session-{session}", "round": turn, "release": tag}
                    which |= {"benchmark": f"{question}.track_{metric}", "facts": disturbed}
                    which |= {"started_at": f"2026-01-01T00:00:00.{len(found):06}"}
                    cases = tuple(truth.case(tag, question, metric, case, drift) for case in asked)
                    found.append(some_launch(f"{len(found):08x}", cases=cases, **which))
    return found + [scattered(launch) for launch in found if launch.benchmark.endswith(".track_time")]


def scattered(launch: Launch) -> Launch:
    """A launch of bytes that differ a little from one to the next, beside one of times."""

    def bytes_of(case: Case) -> Case:
        level = 10**8 * random.Random(f"{launch.release} {case.parameters}").choice((1.0, 1.0, 1.04, 1.3))
        noise = random.Random(f"{case.parameters}").choice((0.0, 0.001, 0.02, 0.1))
        return Case(case.parameters, value=round(level * math.exp(random.Random(launch.launch).gauss(0, noise))))

    benchmark = f"{launch.benchmark.rpartition('.')[0]}.track_{SCATTERS}"
    cases = tuple(bytes_of(case) for case in launch.cases)
    return structs.replace(launch, launch=f"{launch.launch}-b", benchmark=benchmark, cases=cases)


def write(results: Path, chance: random.Random, tags: list[str]) -> None:
    machine = results / "here"
    machine.mkdir(parents=True)
    record = {"machine": "here", "device": chance.choice(("cpu", "cuda")), "cpu": "a processor", "version": 1}
    (machine / "machine.json").write_text(json.dumps(record))
    facts: dict[str, Any] = {}
    append(results, *launches_of(chance, tags))
    for tag in tags:
        if not facts or chance.random() < 0.5:
            facts = {name: chance.choice(values) for name, values in FACTS.items() if chance.random() < 0.9}
        if chance.random() < 0.85:
            version = chance.choice((f"{tag[1:]}+cu121", tag[1:], tag[1:], "none"))
            append_environment(machine / f"{tag}-{ENVIRONMENT}.environments", {"torch": version, **facts})


def drawn_evidence(chance: random.Random, lane: Lane) -> list[why.Known]:
    """Evidence of some series between releases that are near each other, of which some has nothing to do with a change."""
    words = {"CAUSE": "because aten::index holds 90 %", "PART": "in part because of it", "UNKNOWN": "cause unknown"}
    found: list[why.Known] = []
    for series in lane.found:
        old, new = sorted(chance.sample(range(len(lane.releases)), 2))
        verdict = chance.choice(why.TOLD)
        if series.varies and chance.random() < 0.4:
            span = lane.releases[old], lane.releases[new]
            ratio = math.exp(chance.gauss(0, 0.5))
            if len(found) % 3 == 0:
                ratio = 1 / ratio_of(lane, series, *lane.releases[new : new + 2])
            if len(found) % 3 == 1:
                ratio = ratio_of(lane, series, lane.releases[0], lane.releases[-1])
            one = why.Known(ENVIRONMENT, series.benchmark, series.parameters, *span, ratio, verdict, words[verdict])
            elsewhere = verdict in why.FOUND_ON and chance.random() < 0.5
            found.append(one._replace(seen_on="another", words=f"{one.words}; elsewhere") if elsewhere else one)
    return found


def ratio_of(lane: Lane, series: Series, *tags: str) -> float:
    """That of a change between two releases; 2 where there is none."""
    changes = compare_history(History({series: lane.found[series]}), *tags) if len(tags) == 2 else []
    return changes[0].ratio or 2.0 if changes else 2.0


SEEN: Counter[str] = Counter()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_pair_of_random_lanes_is_told_as_the_command_tells_it(
    seed: int, tmp_path: Path, write_releases: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    first = chance.choice((0, 6, 6))
    versions = LINE[first : first + chance.randint(2, 6)]
    tags = [f"v{version}" for version in versions]
    results = tmp_path / "results"
    write(results, chance, tags)
    axis = Axis.load(write_releases(*versions))
    (plain,) = lanes(results, axis)
    known = drawn_evidence(chance, plain)
    some = [series for series in plain.found if chance.random() < 0.3]
    missed = {(chance.choice(tags), chance.choice(tags)): {series: None} for series in some}
    monkeypatch.setattr(data, "evidence", lambda *_: known)
    monkeypatch.setattr(data, "unconfirmed", lambda *_: missed)
    (lane,) = lanes(results, axis)
    stored = history(read_launches(results, "here"))
    facts = {tag: read_environment(results, "here", tag, ENVIRONMENT) for tag in tags}
    of_neighbours = dict(zip(lane.releases, data.lane_data(lane, axis)["changes"], strict=True))
    assert of_neighbours[lane.releases[0]] is None
    for number, (old, new) in enumerate(itertools.combinations(lane.releases, 2)):
        found = compare.compared("here", ENVIRONMENT, old, new, stored, facts, lane.device, known=known)
        found = dataclasses.replace(found, unconfirmed=missed.get((old, new), ()))
        said = expected(found, lane)
        assert differences(said, shown(told(lane, number), lane))[:4] == [], (old, new)
        if (old, new) in itertools.pairwise(lane.releases):
            of_neighbours[new]["changed"].sort()
            changed = sorted(lane.place[one.series] for one in found.changed)
            assert of_neighbours[new] == {"old": old, "tally": said["tally"], "changed": changed}
        if [old, new] == lane.releases[-2:]:
            assert (newest := data.newest(lane))
            assert [each.as_data() for each in newest.findings] == [each.as_data() for each in found.findings]
        SEEN.update(of for one in found.changes for of in (one.verdict.words, one.reason.partition(":")[0]))
        causes = [*map(found.because, found.why)]
        SEEN.update(text.partition(" ")[0] for text in causes)
        SEEN.update(text for text in causes if " (since " in text or text.startswith("because aten::"))


NUMBERS = ("old", "new", "ratio", "low", "high")


def expected(found: compare.Comparison, lane: Lane) -> dict[str, Any]:
    """What the command says of a pair, of its rows those that a page lists: what has a number, and exact numbers that are
    the same only where they are the main memory of their question."""
    document = json.loads(compare.as_json(found))
    known = {(series.question, series.metric) for series in lane.found}
    memory = {question: next((name for name in MEMORY if (question, name) in known), "") for question, _ in known}

    def is_listed(row: dict[str, Any]) -> bool:
        is_same = row["verdict"] == "SAME" and row["margin"] is None and row["metric"] != memory[row["question"]]
        return row["verdict"] != "NEVER RAN" and not is_same

    of_row = ("benchmark", "parameters", "verdict", *NUMBERS, "reason", "why")
    of_finding = ("title", "words", "verdict", "rows")
    return {
        "tally": document["tally"],
        "rows": [[row[name] for name in of_row] for row in document["changes"] if is_listed(row)],
        "findings": [[finding[name] for name in of_finding] for finding in document["findings"]],
        "sure": [line for line in document["answer"]["sure"] if "disturbed" not in line],
        "not_measured": document["answer"]["not_measured"],
    }


def shown(document: dict[str, Any], lane: Lane) -> dict[str, Any]:
    """The same of what a page loads."""
    keys = [[series.benchmark, [each.strip("'") for each in series.parameters]] for series in lane.found]
    of = document["changes"]
    rows = []
    for i, place in enumerate(of["series"]):
        verdict, *why = (
            of[f"{all}s"][of[one][i]] for all, one in (("verdict", "verdict"), ("reason", "reason"), ("cause", "why"))
        )
        rows.append([*keys[place], verdict, *(of[name][i] for name in NUMBERS), *why])
    findings = [
        [each["title"], each["words"], each["verdict"], [keys[place] for place in each["series"]]]
        for each in document["findings"]
    ]
    said = {name: document[name] for name in ("sure", "not_measured")}
    return {"tally": dict(document["tally"]), "rows": rows, "findings": findings, **said}


def differences(command: Any, page: Any, where: str = "") -> list[str]:
    """Where two values differ, numbers by more than their fifth digit."""
    if isinstance(command, dict) and isinstance(page, dict) and command.keys() == page.keys():
        return [each for key in command for each in differences(command[key], page[key], f"{where}.{key}")]
    if isinstance(command, list) and isinstance(page, list) and len(command) == len(page):
        both = enumerate(zip(command, page, strict=True))
        return [each for i, (one, other) in both for each in differences(one, other, f"{where}[{i}]")]
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (command, page))
    same = math.isclose(command, page, rel_tol=6e-5, abs_tol=1e-12) if numbers else command == page
    return [] if same else [f"{where}: {command!r} and {page!r}"]


def test_what_chance_drew_holds_every_verdict_and_every_kind_of_cause() -> None:
    if not SEEN:
        pytest.skip("it looks at what the test before it drew")
    assert {verdict.words for verdict in Verdict} <= SEEN.keys()
    assert {"because", "in", "cause", "although", "unexplained", "as"} <= SEEN.keys()
    assert "the launches scatter too much" in SEEN
    assert any(text.endswith(")") and " (from v" in text for text in SEEN)
    causes = [cause for cause in why.FOUND if cause.release == "2.6.0" and cause.verdict == Verdict.SLOWER.words]
    assert {f"because {cause.words} (since {cause.release})" for cause in causes} <= SEEN.keys()
    assert any(text.endswith(" (since 2.0.0 and 2.1.0)") for text in SEEN)
    assert {"a single launch of a release cannot be confirmed", "the count differs between launches"} <= SEEN.keys()
    assert any(reason.startswith("no round has a number for both") for reason in SEEN)


SAY = "rows => rows.map(row => torchHistory.common.human(...row))"


@pytest.mark.browser
def test_numbers_are_said_as_python_says_them(page: Any) -> None:
    for name in ("app.js", "common.js", "picture.js"):
        page.add_script_tag(path=str(SITE / "templates" / name))
    chance = random.Random(1)
    numbers = [10 ** chance.uniform(-12, 4.5) for _ in range(2000)]
    numbers += [base * 10.0**power for base in (1, 9.995, 9.996, 99.95, 999.5, 1.25, 2.675) for power in range(-12, 2)]
    numbers += [0.0, 1.0, 59.99, 60.0, 90.0, 3600.0]
    for unit, values in (("seconds", numbers), ("bytes", numbers), ("", numbers), ("ratio", numbers)):
        said = page.evaluate(SAY, [[value, unit] for value in values])
        assert said == [human(value, unit) for value in values], unit
    assert page.evaluate(SAY, [[None, "seconds"]]) == [""]
    said = page.evaluate("factors => factors.map(torchHistory.common.times)", [2**17, BOUND])
    assert said == [times(2**17), times(BOUND)] == ["131,072", "any"]
    for metric, verdict, old, new, low, high, command, words in (
        ("peak_memory", Verdict.HUNGRIER, 24 * 10**7, 24 * 10**7 + 48, 1, 1, "by 48 B", "48 B more memory"),
        ("peak_memory", Verdict.LEANER, 24 * 10**7, 239 * 10**6, 1, 1, "by 1,000,000 B", "1,000,000 B less memory"),
        ("operators", Verdict.MORE, 1000, 1003, 1, 1, "from 1,000 to 1,003", "3 more"),
        ("operators", Verdict.SAME, 1000, 1000, 1, 1, "at 1,000", "no change"),
        ("time", Verdict.SLOWER, 1, 1.05, 1.003, 1.1, "(1.003 to 1.10)", "1.05 times slower (1.003 to 1.10)"),
        ("time", Verdict.FASTER, 1.06, 1, 0.9, 0.9998, "(1.0002 to 1.11)", "1.06 times faster (1.0002 to 1.11)"),
        ("time", Verdict.CANT_TELL, 1, 1.05, 1.003, 1.1, "(1.00 to 1.10 times)", "1.05 times slower (1.00 to 1.10)"),
    ):
        change = Change(Series("e", f"q.Q.track_{metric}", ()), verdict, old, new, new / old, low, high)
        assert command in compare.clause(change)
        row = {name: getattr(change, name) for name in NUMBERS}
        row |= {"verdict": verdict.words, "ratio": rounded(new / old)}
        assert page.evaluate("of => torchHistory.ratioWords(...of)", [row, change.series.unit]) == words
