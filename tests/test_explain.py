"""Is the right cause found where one was planted, and none where nothing changed?

Launches are drawn here: what a call takes on either release, what of it belongs to which place, and what each lever does are
known, so that the verdict can be judged. Real releases are asked in the tests at the end.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from torch_history.explaining import launching, levers, places, verdict
from torch_history.explaining.estimates import Group, Noise, Share, ratio, removed
from torch_history.explaining.explanation import MOST_NOISY_TURNS, Explanation, Found
from torch_history.explaining.launching import LaunchFailed, Side, Subject
from torch_history.explaining.levers import Lever
from torch_history.releases import added
from torch_history.store.causes import Code, Place

SUBJECT = Subject(Path(), "question", "variant", "small", "time")
SIDES = Side("v1.0.0", Path("old/bin/python")), Side("v2.0.0", Path("new/bin/python"))
LEVERS = [Lever(f"lever {i}", f"lever {i} pulled", f"of lever {i}", "", set=(f"lever {i}",)) for i in range(12)]


@dataclass
class Drawn:
    """Releases whose calls take what is planted: `operators` by release, and what levers make of the seconds."""

    operators: tuple[Mapping[str, float], Mapping[str, float]]
    by_lever: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    noise: float = 0.02
    drift: float = 0.1
    chance: random.Random = field(default_factory=random.Random)
    opened: int = 0

    def open(self, side: Side, subject: Subject, variables: object = None, command: object = ()) -> DrawnLaunch:
        number = SIDES.index(side)
        if number == 0:
            self.turn = self.chance.gauss(0, self.drift)
        self.opened += 1
        return DrawnLaunch(self, number, self.turn + self.chance.gauss(0, self.noise))


@dataclass
class DrawnLaunch:
    of: Drawn
    number: int
    slower: float

    def ask(self, step: Mapping[str, Any]) -> dict[str, Any]:
        rows = self.of.operators[self.number]
        total = sum(rows.values())
        jitter = pow(2.718281828, self.slower + self.of.chance.gauss(0, self.of.noise / 4))
        if step["do"] == "facts":
            return {"environment": {"torch": str(self.number)}, "commit": f"{self.number:040}"}
        if step["do"] == "traces":
            return {"traces": sorted(rows)}
        if step["do"] == "time":
            for name in step.get("set", ()):
                total = self.of.by_lever.get(name, (total, total))[self.number]
            return {"wall": total * jitter, "cpu": total * jitter}
        if step["do"] == "profiles":
            found = {name: [seconds * self.of.chance.gauss(1, self.of.noise), 1.0] for name, seconds in rows.items()}
            by = {"seconds": sum(own for own, _ in found.values()), "cpu": total, "plain": total, "rows": found}
            none = {"failed": "there is no such profiler here"}
            return {"symbols": none, "stacks": none, "functions": none, "operators": by}
        raise AssertionError(step)

    def close(self) -> None:
        pass


def explained(drawn: Drawn, tried: Iterable[Lever] = LEVERS) -> Found:
    return Explanation(SUBJECT, SIDES, list(tried), Path(), lambda words: None, opened=drawn.open).explain()


SAME = {"aten::index": 0.8e-3, "aten::add": 0.2e-3}


def test_no_cause_where_nothing_changed() -> None:
    causes = [explained(Drawn((SAME, SAME), chance=random.Random(seed))).verdict for seed in range(200)]
    assert causes.count("CAUSE") <= 2
    assert causes.count("NOT THERE") >= 198


def test_levers_that_do_nothing_are_no_cause_of_a_difference_that_is_there() -> None:
    wrong = 0
    spread = {f"aten::op{i}": 1e-4 for i in range(10)}, {f"aten::op{i}": 1.3e-4 for i in range(10)}
    for seed in range(200):
        wrong += explained(Drawn(spread, chance=random.Random(seed))).verdict == "CAUSE"
    assert wrong <= 2


def test_times_that_scatter_too_much_are_not_said_to_be_the_same() -> None:
    slower = {"aten::index": 1.1e-3, "aten::add": 0.2e-3}
    drawn = Drawn((SAME, slower), noise=0.5, chance=random.Random(3))
    found = explained(drawn)
    assert (found.verdict, len(found.base.old)) == ("INCONCLUSIVE", MOST_NOISY_TURNS)
    assert found.words.startswith("the times scatter too much to tell whether the difference is there: new / old is ")
    assert not found.levers
    assert not found.places


def test_more_turns_are_made_where_the_first_cannot_tell() -> None:
    slower = {"aten::index": 1.1e-3, "aten::add": 0.2e-3}
    turns = [
        len(explained(Drawn((SAME, slower), noise=0.1, chance=random.Random(seed))).base.old) for seed in range(20)
    ]
    assert max(turns) > 8
    few = explained(Drawn((SAME, SAME), noise=0.01, chance=random.Random(0)))
    assert (few.verdict, len(few.base.old)) == ("NOT THERE", 8)


@pytest.mark.parametrize("slower", [1.1, 1.5, 4.0])
def test_operator_that_became_slower_is_the_cause(slower: float) -> None:
    found = [
        explained(Drawn((SAME, {**SAME, "aten::index": 0.8e-3 * slower}), noise=0.01, chance=random.Random(seed)), [])
        for seed in range(20)
    ]
    right = [one for one in found if one.verdict == "CAUSE" and "aten::index holds" in one.words]
    assert len(right) >= 19


@pytest.mark.parametrize("number", [0, 1])
def test_lever_that_takes_the_difference_away_is_the_cause(number: int) -> None:
    """Whether it makes the slow release quick or the quick one slow."""
    old, new = ({"aten::a": 5e-4, "aten::b": 5e-4}, {"aten::a": 8e-4, "aten::b": 8e-4})
    level = (1e-3, 1.6e-3)[number]
    right = 0
    for seed in range(20):
        drawn = Drawn((old, new), {"lever 3": (level, level)}, noise=0.01, chance=random.Random(seed))
        found = explained(drawn)
        right += found.verdict == "CAUSE" and "of lever 3" in found.words
        assert [lever.name for lever in found.levers if lever.verdict == "CAUSE"] in (["lever 3"], [])
    assert right >= 19


def test_lever_that_makes_both_slower_alike_is_no_cause() -> None:
    """The ratio falls from 1.6 to 1.06, but the seconds between the releases are as many as before."""
    old, new = ({"aten::a": 5e-4, "aten::b": 5e-4}, {"aten::a": 8e-4, "aten::b": 8e-4})
    drawn = Drawn((old, new), {"lever 3": (10e-3, 10.6e-3)}, noise=0.005, chance=random.Random(1))
    found = explained(drawn)
    assert {lever.name: lever.verdict for lever in found.levers}["lever 3"] != "CAUSE"


def test_lever_that_makes_both_quicker_alike_is_no_cause() -> None:
    """The seconds between the releases are a tenth, but the ratio is what it was."""
    old, new = ({"aten::a": 5e-4, "aten::b": 5e-4}, {"aten::a": 8e-4, "aten::b": 8e-4})
    drawn = Drawn((old, new), {"lever 3": (1e-4, 1.6e-4)}, noise=0.005, chance=random.Random(1))
    assert {lever.name: lever.verdict for lever in explained(drawn).levers}["lever 3"] == "CLEARED"


def test_lever_that_is_lucky_at_first_is_no_cause() -> None:
    """Its first three turns are all that profiles' launches allow; it leaves the difference in those that follow."""
    old, new = ({"aten::a": 5e-4, "aten::b": 5e-4}, {"aten::a": 8e-4, "aten::b": 8e-4})
    drawn = Drawn((old, new), {"lever 3": (1e-3, 1e-3)}, noise=0.005, chance=random.Random(1))
    opened = drawn.open

    def open(*asked: Any, **how: Any) -> DrawnLaunch:
        if drawn.opened >= 14:
            drawn.by_lever = {}
        return opened(*asked, **how)

    found = Explanation(SUBJECT, SIDES, LEVERS, Path(), lambda words: None, opened=open).explain()
    assert {lever.name: lever.verdict for lever in found.levers}["lever 3"] == "CLEARED"


def test_narrower_of_two_levers_that_take_it_all_away_is_named() -> None:
    both = {"lever 3": (1e-3, 1e-3), "lever 5": (1e-3, 0.95e-3)}
    old, new = ({"aten::a": 5e-4, "aten::b": 5e-4}, {"aten::a": 8e-4, "aten::b": 8e-4})
    found = explained(Drawn((old, new), both, noise=0.005, chance=random.Random(1)))
    assert found.words.startswith("because of lever 3")


def test_function_of_the_workload_itself_is_no_cause_and_another_one_is() -> None:
    rows = [
        Place("function", f"{file}.py relu", 1e-5, 4e-5, 2.9e-5, 3.1e-5, "CAUSE", (1.0, 1.0))
        for file in ("mine", "torch/nn")
    ]
    assert verdict.of_all([], {}, rows[:1], own="mine.py")[0] == "UNKNOWN"
    assert verdict.of_all([], {}, rows[1:], own="mine.py")[0] == "CAUSE"


def test_profiler_that_adds_little_beside_the_difference_is_believed() -> None:
    slow = [{"cpu": 2e-5, "plain": 1e-5}]
    assert not places.is_believed(slow, 2e-5)
    assert places.is_believed(slow, 5e-5)


def test_two_operators_share_the_difference_and_neither_is_the_cause() -> None:
    new = {"aten::index": 1.1e-3, "aten::add": 0.5e-3}
    found = explained(Drawn((SAME, new), noise=0.01, chance=random.Random(1)), [])
    assert found.verdict == "PART"
    assert {place.name: place.verdict for place in found.places}["aten::index"] == "PART"


def test_rows_add_up_to_the_difference() -> None:
    new = {**SAME, **{f"aten::small{i}": 1e-6 for i in range(40)}, "aten::new": 0.4e-3}
    found = explained(Drawn((SAME, new), noise=0.01, chance=random.Random(1)), [])
    old_level, new_level = found.base.levels
    rows = [place for place in found.places if place.kind == "operator"]
    assert len(rows) <= places.MOST_ROWS + 1
    assert sum(row.new - row.old for row in rows) == pytest.approx(new_level - old_level)


def test_rows_of_what_calls_take_under_a_slow_profiler_are_left_out() -> None:
    class Slow(Drawn):
        def open(self, *arguments: Any, **how: Any) -> Any:
            launch = super().open(*arguments, **how)
            asked = launch.ask

            def ask(step: Mapping[str, Any]) -> dict[str, Any]:
                answer = asked(step)
                if "operators" in answer:
                    answer["operators"] = {**answer["operators"], "cpu": 3 * answer["operators"]["plain"]}
                return answer

            launch.ask = ask  # type: ignore[method-assign]
            return launch

    found = explained(Slow((SAME, {**SAME, "aten::index": 2e-3}), chance=random.Random(1)), [])
    assert not found.places
    assert any("3.0 times as long" in note for note in found.notes)
    assert found.verdict == "UNKNOWN"


def test_lever_that_a_release_cannot_run_under_is_left_out_with_a_sentence() -> None:
    class Refusing(Drawn):
        def open(self, side: Side, subject: Subject, variables: object = None, command: object = ()) -> Any:
            if variables:
                raise LaunchFailed("v1.0.0 gave no answer: no such thing.")
            return super().open(side, subject)

    alone = Lever("alone", "something", "of it", "", variables={"A": "1"})
    found = explained(Refusing((SAME, {**SAME, "aten::index": 2e-3}), chance=random.Random(1)), [alone])
    assert [lever.refused for lever in found.levers] == ["v1.0.0 gave no answer: no such thing."]


@pytest.mark.parametrize(
    ("versions", "expected", "refused"),
    [
        (("1.26.4", "2.3.1"), "numpy==1.26.4", ""),
        (("2.10.0", "2.9.1"), "numpy==2.9.1", ""),
        (("2.3.1", "2.3.1"), "", "both have numpy 2.3.1"),
    ],
)
def test_both_releases_get_the_older_one_of_their_versions_of_a_package(
    monkeypatch: pytest.MonkeyPatch, versions: tuple[str, str], expected: str, refused: str
) -> None:
    installed, paths = [], []

    class WithPackages(Drawn):
        def open(self, side: Side, subject: Subject, variables: Any = None, command: object = ()) -> Any:
            launch = super().open(side, subject)
            if variables:
                paths.append(variables["PYTHONPATH"])
            asked = launch.ask
            facts = {"environment": {"numpy": versions[SIDES.index(side)]}, "commit": ""}
            launch.ask = lambda step: facts if step["do"] == "facts" else asked(step)  # type: ignore[method-assign]
            return launch

    def install(requirement: str, environment: Path, folder: Path) -> Path:
        installed.append(requirement)
        return Path("one-package")

    monkeypatch.setattr(added, "alone", install)
    lever = Lever("one NumPy", "the same NumPy on both", "of it", "", package="numpy")
    found = explained(WithPackages((SAME, {**SAME, "aten::index": 2e-3}), chance=random.Random(1)), [lever])
    assert found.levers[0].refused == refused
    assert installed == ([expected] if expected else [])
    assert set(paths) == ({"one-package"} if expected else set())


def test_path_of_a_lever_comes_before_that_of_an_own_file() -> None:
    side = Side("v1.0.0", Path("/env/bin/python"), {"PYTHONPATH": "/added", "A": "1"})
    found = launching.surroundings(side, {"PYTHONPATH": "/numpy", "A": "2"})
    assert found["PYTHONPATH"].split(":") == ["/numpy", "/added"]
    assert found["A"] == "2"
    assert "PYTHONPATH" not in launching.surroundings(Side("v1.0.0", Path("/env/bin/python")), {})


def test_lever_that_surely_leaves_the_difference_is_pulled_no_further() -> None:
    old, new = {"aten::a": 1e-3}, {"aten::a": 3e-3}
    alone = Lever("alone", "something", "of it", "", variables={"A": "1"})
    found = explained(Drawn((old, new), noise=0.005, drift=0.005, chance=random.Random(1)), [alone])
    assert (found.levers[0].verdict, len(found.levers[0].old)) == ("CLEARED", 1)


def test_lever_that_is_not_tried_for_want_of_time_says_so() -> None:
    alone = Lever("alone", "something", "of it", "", variables={"A": "1"})
    drawn = Drawn((SAME, {**SAME, "aten::index": 2e-3}), chance=random.Random(1))
    found = Explanation(SUBJECT, SIDES, [alone], Path(), lambda words: None, seconds=0.0, opened=drawn.open).explain()
    assert found.levers[0].refused == "the time was over before it was tried"
    assert found.notes[-1] == "no time for another turn with something"


# --- estimates


def test_disturbed_turn_does_not_hide_a_difference() -> None:
    group = Group([1.0, 1.01, 1.0, 3.0, 1.0, 0.99], [1.3, 1.31, 1.29, 1.3, 1.32, 1.3])
    assert ratio(group, Noise.of([group])).ratio == pytest.approx(1.3, rel=0.02)


def test_difference_within_the_margin_is_not_there() -> None:
    group = Group([1.0, 1.001, 1.0, 1.0], [1.03, 1.03, 1.031, 1.03])
    assert not ratio(group, Noise.of([group])).is_there


def test_share_that_is_removed_lies_in_its_interval() -> None:
    base, lever = Group([1.0] * 6, [1.5] * 6), Group([1.0] * 3, [1.1] * 3)
    share = removed(base, lever, Noise(0.01, 0.01, 20))
    assert share.low < share.share < share.high
    assert 0.7 < share.share < 0.81


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (Share(0.95, 0.8, 1.1), "CAUSE"),
        (Share(0.95, 0.3, 1.6), "PART"),
        (Share(0.95, -0.3, 2.2), "UNKNOWN"),
        (Share(0.5, 0.3, 0.7), "PART"),
        (Share(0.0, -0.1, 0.1), "CLEARED"),
        (Share(-3.0, -3.1, -2.9), "CLEARED"),
        (Share(3.0, 2.9, 3.1), "UNKNOWN"),
    ],
)
def test_verdict_of_a_lever(share: Share, expected: str) -> None:
    assert verdict.of_lever(share) == expected


# --- names


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("[.] at::native::Indexer::get_1", "at::native::Indexer::get_1"),
        ("[.] at::native::Index::Index(at::Tensor const&, c10::ArrayRef<at::Tensor>)", "at::native::Index::Index"),
        ("[.] malloc", "malloc"),
        ("[.] _int_free.isra.0", "_int_free"),
        ("[.] 0x00007f1234567890", "without a name"),
        ("[.] pthread_getspecific@@GLIBC_2.34", "pthread_getspecific"),
        (
            "[.] c10::function_ref<void (char**, long const*)>::callback_fn<at::native::cpu_index_kernel<float>>",
            "cpu_index_kernel in c10::function_ref::callback_fn",
        ),
        ("[.] void at::native::(anonymous namespace)::loop<float>(float*) const", "at::native::{anonymous}::loop"),
    ],
)  # fmt: skip
def test_symbols_of_two_releases_share_their_names(symbol: str, expected: str) -> None:
    assert places.symbol_name(symbol) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("libtorch_cpu.so", "libtorch_cpu"),
        ("libgomp-a34b3233.so.1", "libgomp"),
        ("libpython3.11.so.1.0", "Python"),
        ("python3.11", "Python"),
        ("[kernel.kallsyms]", "the kernel"),
        ("[unknown]", "code made at run time"),
        ("[JIT] tid 123", "code made at run time"),
        ("libc.so.6", "libc"),
        ("_multiarray_umath.cpython-311-x86_64-linux-gnu.so", "_multiarray_umath"),
    ],
)
def test_libraries_of_two_releases_share_their_names(name: str, expected: str) -> None:
    assert places.library_name(name) == expected


def test_what_perf_reports_becomes_shares() -> None:
    report = "# Samples: 4\n#\n 3\tlibtorch_cpu.so  \t[.] at::native::Indexer::get_1\n 1\tlibc.so.6  \t[.] malloc\n"
    symbols, libraries, _ = places.of_perf(report)
    assert symbols == {"libtorch_cpu: at::native::Indexer::get_1": (0.75, 0.0), "libc: malloc": (0.25, 0.0)}
    assert libraries == {"libtorch_cpu": (0.75, 0.0), "libc": (0.25, 0.0)}


@pytest.mark.parametrize(("in_kernel", "cleared"), [(0.05, True), (0.9, False)])
def test_lever_whose_libraries_hold_little_of_the_difference_is_cleared_by_the_profile(
    in_kernel: float, cleared: bool
) -> None:
    """A call of 1 s takes 2 s now; of the second that was added the library `kernel` has a share."""
    base = Group([1.0] * 3, [2.0] * 3)
    old = [{"kernel": (0.5, 0.0), "python": (0.5, 0.0)} for _ in range(3)]
    share = (0.5 + in_kernel) / 2
    new = [{"kernel": (share + noise, 0.0), "python": (1 - share - noise, 0.0)} for noise in (-1e-3, 0.0, 1e-3)]
    held = places.held("^kernel$", old, new, base)
    assert held.new - held.old == pytest.approx(in_kernel, abs=1e-6)
    assert (held.verdict == "CLEARED") is cleared
    assert places.held("^absent$", old, new, base).verdict == "CLEARED"


# --- levers


def test_each_lever_can_be_pulled_and_says_what_it_proves() -> None:
    source = (Path(__file__).resolve().parents[1] / "measure" / "explain.py").read_text(encoding="utf-8")
    found = levers.load()
    assert len({lever.name for lever in found}) == len(found) > 10
    for lever in found:
        assert all([lever.words, lever.because, lever.proves])
        assert lever.set or lever.variables or lever.command or lever.preload or lever.fresh or lever.package
        assert all(f'"{setting}":' in source for setting in lever.set)


def test_lever_of_what_the_call_does_not_use_is_refused() -> None:
    fuser = next(lever for lever in levers.load() if lever.name == "fuser off")
    assert fuser.refusal({"aten::add"}) == "the call uses nothing of it"
    assert fuser.refusal({"aten::add", "TorchScript"}) == ""


def test_lever_without_its_program_or_library_is_refused() -> None:
    assert Lever("a", "", "", "", command=("no-such-program",)).refusal([]) == "no-such-program is not installed"
    assert Lever("a", "", "", "", preload=("libnone.so",)).refusal([]) == "none of libnone.so is installed"


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("<method 'poll' of 'select.poll' objects>", True),
        ("<built-in method time.sleep>", True),
        ("<method 'acquire' of '_thread.lock' objects>", True),
        ("<built-in method posix.waitpid>", True),
        ("libc: __poll", True),
        ("the kernel: futex_wait_queue", True),
        ("<built-in method torch.select>", False),
        ("<method 'select' of 'torch._C.TensorBase' objects>", False),
        ("aten::select", False),
        ("<method 'index_select' of 'torch._C.TensorBase' objects>", False),
        ("libtorch_cpu: at::native::select", False),
    ],
)
def test_place_that_waits_for_another_process_is_no_cause(name: str, waits: bool) -> None:
    rows = [
        Place("function", name, 1e-3, 9e-3, 7.9e-3, 8.1e-3, "CAUSE"),
        Place("function", "rest", 1e-3, 1e-3, -1e-5, 1e-5),
    ]
    kind, words = verdict.of_all([], {}, rows)
    assert kind == ("UNKNOWN" if waits else "CAUSE")
    assert ("waits for something that is not profiled" in words) == waits


@pytest.mark.parametrize(("old", "new"), [(0.0, 4e-5), (4e-5, 0.0)])
def test_code_in_c_that_one_release_alone_runs_is_told_with_the_function_that_was_called(
    old: float, new: float
) -> None:
    low, high = sorted((1.05 * (new - old), 0.95 * (new - old)))
    called = Place("function", "<built-in method torch.tensor>", 1e-4 + old, 1e-4 + new, low, high, "CAUSE")
    symbols = [
        Place("symbol", "Python: object_isinstance", old, new, low, high),
        Place("symbol", "Python: _PyEval_EvalFrameDefault", old, new, low, high),
        Place("symbol", places.LEFT, old, new, low, high),
        Place("symbol", "libc: malloc", 3e-5, 3e-5, -1e-7, 1e-7),
    ]
    kind, words = verdict.of_all([], {}, [called, *symbols])
    when = "took no time before" if new > old else "takes none now"
    assert (kind, words.partition("; ")[2]) == ("CAUSE", f"of compiled code, Python: object_isinstance {when}")
    python = replace(called, name="torch/nn/functional.py checks")
    assert "of compiled code" not in verdict.of_all([], {}, [python, *symbols])[1]
    assert "of compiled code" not in verdict.of_all([], {}, [called, *symbols[1:]])[1]
    unsure = replace(symbols[0], low=-1e-4, high=1e-4)
    assert "of compiled code" not in verdict.of_all([], {}, [called, unsure])[1]


def test_code_in_c_that_took_the_place_of_other_code_is_told_with_what_it_replaced() -> None:
    called = Place("operator", "aten::index", 1e-4, 1.5e-4, 4.9e-5, 5.1e-5, "CAUSE")
    symbols = [
        Place("symbol", "libtorch_cpu: kernel_1", 1e-4, 0.0, -1.1e-4, -0.9e-4),
        *(Place("symbol", f"libtorch_cpu: kernel_{i}", 0.0, 3e-5, 2.9e-5, 3.1e-5) for i in range(2, 7)),
    ]
    assert verdict.of_all([], {}, [called, *symbols])[1].partition("; ")[2] == (
        "of compiled code, the time moved from libtorch_cpu: kernel_1 to libtorch_cpu: kernel_2, libtorch_cpu: kernel_3, "
        "libtorch_cpu: kernel_4 and 2 more"
    )


@pytest.mark.parametrize(
    ("loops", "told"),
    [
        (((0,), (0,)), "with the same instructions"),
        (((0,), (32,)), "with the same instructions at another address"),
        (None, "with other instructions than before"),
    ],
)
def test_code_in_c_that_both_releases_run_is_told_with_what_became_of_its_instructions(
    loops: tuple[tuple[int, ...], tuple[int, ...]] | None, told: str
) -> None:
    called = Place("operator", "aten::index", 1e-4, 1.5e-4, 4.9e-5, 5.1e-5, "CAUSE")
    kernel = Place("symbol", "libtorch_cpu: cpu_index_kernel", 8e-5, 1.2e-4, 3e-5, 5e-5, "PART")
    rest = Place("symbol", places.LEFT, 2e-5, 3e-5, -1e-6, 2e-5)
    code = Code(kernel.name, loops is not None, (70, 72 if loops is None else 70), *(loops or ((0,), (32,))))
    words = verdict.of_all([], {}, [called, kernel, rest], code=[code])[1]
    assert words.endswith(f"; of compiled code libtorch_cpu: cpu_index_kernel holds 80 % of the difference, {told}")
    unsure = replace(kernel, verdict="UNKNOWN")
    assert "of compiled code" not in verdict.of_all([], {}, [called, unsure, rest], code=[code])[1]


STACKS = """
      fa8e0 unicodekeys_lookup_unicode (/opt/python/lib/libpython3.11.so.1.0)
      cf14f1 torch::check_has_torch_function(_object*, bool) (/env/lib/python3.11/site-packages/torch/lib/libtorch_python.so)
      7dd5c1 torch::autograd::count(_object*) (/env/lib/python3.11/site-packages/torch/lib/libtorch_python.so)
      ff51f _PyEval_EvalFrameDefault (/opt/python/lib/libpython3.11.so.1.0)


      9a1 malloc (/usr/lib/x86_64-linux-gnu/libc.so.6)
      9a2 array_item (/env/lib/python3.11/site-packages/numpy/core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so)
      cf14f1 torch::check_has_torch_function(_object*, bool) (/env/lib/python3.11/site-packages/torch/lib/libtorch_python.so)


    ffffffff8a00 clear_page ([kernel.kallsyms])
      9a3 GOMP_parallel (/env/lib/python3.11/site-packages/torch/lib/libgomp-a34b3233.so.1)
      a11 at::native::fill(at::Tensor&) (/env/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so)


      ff51f _PyEval_EvalFrameDefault (/opt/python/lib/libpython3.11.so.1.0)
      1080 _start (/opt/python/bin/python3.11)
"""


def test_sample_counts_for_the_innermost_function_of_pytorchs_libraries() -> None:
    assert places.of_stacks(STACKS) == {
        "libtorch_python: torch::check_has_torch_function": (0.5, 0.0),
        "libtorch_cpu: at::native::fill": (0.25, 0.0),
        places.NO_LIBRARY: (0.25, 0.0),
    }
    assert places.of_stacks("") == {}
    assert places.of_stacks("\n \n\n\n") == {}
    assert places.of_stacks("  1 f (/memfd:x (deleted))\n  zz\n (\n") == {places.NO_LIBRARY: (1.0, 0.0)}


@pytest.mark.parametrize(
    ("library", "own"),
    [
        ("/env/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so", True),
        ("/env/lib/python3.11/site-packages/torchvision/_C.so", False),
        ("/projects/mine/build/mine.so", False),
        ("/cache/torch_extensions/py311_cpu/mine/mine.so", True),
        ("/projects/torch/env/lib/python3.11/site-packages/numpy/core/_multiarray_umath.so", False),
        ("/projects/torch/env/bin/python3.11", False),
        ("/env/added/1234/scipy.libs/libopenblas-3f.so", False),
        ("/opt/conda/lib/libstdc++.so.6", False),
        ("/nix/store/glibc/lib/libc.so.6", False),
        ("/tmp/torchinductor_me/ab/cabcdefghijklmnopqrstuvwxyzabcdefgh.so", True),
        ("/env/lib/python3.11/site-packages/torch/lib/libgomp-a34b3233.so.1", False),
        ("/opt/python3.11/lib/libpython3.11.so.1.0", False),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", False),
        ("[kernel.kallsyms]", False),
        ("[vdso]", False),
        ("//anon", False),
    ],
)
def test_libraries_of_the_interpreter_and_the_system_are_not_pytorchs(library: str, own: bool) -> None:
    assert places.is_own(library) == own


@dataclass
class Stacks(Drawn):
    """Releases whose stacks are recorded, and whose symbols are spread over the interpreter unless one is `narrow`."""

    narrow: bool = False
    fails: bool = False
    reads: int = 0
    number: int = 0

    def open(self, side: Side, subject: Subject, variables: object = None, command: object = ()) -> Any:
        launch = super().open(side, subject)
        return WithStacks(launch.of, launch.number, launch.slower)

    def symbols(self, file: Path) -> Any:
        rows = {"libtorch_cpu: kernel": 0.9} if self.narrow else {f"Python: f{i}": 0.09 for i in range(10)}
        shares = {name: (share * (self.number or 1e-3), 0.0) for name, share in rows.items()}
        return (
            {**shares, "libc: rest": (1 - sum(share for share, _ in shares.values()), 0.0)},
            {"Python": (1.0, 0.0)},
            {},
        )

    def stacks(self, file: Path) -> Any:
        self.reads += 1
        if self.fails:
            raise subprocess.TimeoutExpired(["perf"], 60.0)
        is_new = file.name.startswith("stacks-1")
        return {"libtorch_python: check": (0.9 if is_new else 0.001, 0.0), places.NO_LIBRARY: (0.1, 0.0)}


class WithStacks(DrawnLaunch):
    def ask(self, step: Mapping[str, Any]) -> dict[str, Any]:
        answer = super().ask(step)
        if step["do"] == "profiles":
            assert isinstance(self.of, Stacks)
            self.of.number = self.number
            answer |= {"symbols": {"calls": 1}, "stacks": {"calls": 1}, "operators": {"failed": "none here"}}
        return answer


def with_stacks(narrow: bool = False, fails: bool = False) -> tuple[Found, int]:
    drawn = Stacks(({"f": 1e-5}, {"f": 1e-3}), chance=random.Random(1), noise=0.005, narrow=narrow, fails=fails)
    read: Any = {"read": drawn.symbols, "read_stacks": drawn.stacks}
    found = Explanation(SUBJECT, SIDES, [], Path(), lambda words: None, opened=drawn.open, **read).explain()
    return found, drawn.reads


def test_stacks_are_read_where_no_symbol_is_the_cause() -> None:
    found, reads = with_stacks()
    assert (found.verdict, reads) == ("CAUSE", 6)
    assert found.words.startswith("because libtorch_python: check, with what it calls, holds ")


def test_stacks_are_not_read_where_a_symbol_is_the_cause() -> None:
    found, reads = with_stacks(narrow=True)
    assert (found.verdict, reads) == ("CAUSE", 0)


def test_stacks_that_cannot_be_read_are_said() -> None:
    found, _ = with_stacks(fails=True)
    assert found.verdict == "UNKNOWN"
    assert any(note.startswith("no table of callers: perf script failed: ") for note in found.notes)


def test_caller_is_the_cause_where_the_difference_is_spread_over_the_interpreter() -> None:
    """An index by an array of NumPy's, of which each number is looked at in 2.9.0: the time is that of many small functions
    of the interpreter, all called by one of PyTorch's."""
    rows = [
        Place("operator", places.OUTSIDE, 0.0, 9e-5, 8.8e-5, 9.2e-5),
        Place("function", "mine.py indexed", 0.0, 9e-5, 8.8e-5, 9.2e-5, "CAUSE"),
        *(Place("symbol", f"Python: lookup_{i}", 0.0, 1e-5, 9e-6, 1.1e-5) for i in range(9)),
    ]
    caller = Place("caller", "libtorch_python: check", 0.0, 8.5e-5, 8e-5, 9e-5, "CAUSE")
    rest = Place("caller", places.LEFT, 0.0, 5e-6, 0.0, 1e-5)
    assert not verdict.is_narrow(rows, "mine.py")
    assert verdict.of_all([], {}, [*rows, caller, rest], own="mine.py") == (
        "CAUSE",
        "because libtorch_python: check, with what it calls, holds 94 % of the difference, and took no time before",
    )
    python = Place("function", "torch/nn/modules/module.py __call__", 0.0, 9e-5, 8.8e-5, 9.2e-5, "CAUSE")
    assert verdict.is_narrow([*rows, python], "mine.py")
    called = replace(python, name="<built-in method torch.tensor>")
    assert not verdict.is_narrow([*rows, called], "mine.py")
    assert verdict.of_all([], {}, [called, caller, rest])[1].endswith(
        "; of compiled code libtorch_python: check, with what it calls, holds 94 % of the difference, and took no time "
        "before"
    )


def test_part_names_the_other_parts_of_its_table() -> None:
    rows = [
        Place("symbol", "libtorch_cpu: cpu_max_pool", 0.0, 6.5e-5, 6e-5, 7e-5, "PART"),
        Place("symbol", "libtorch_cpu: fill_kernel", 0.0, 3e-5, 2.8e-5, 3.2e-5, "PART"),
        Place("function", "<built-in method torch.max_pool2d>", 0.0, 7e-5, 6.8e-5, 7.2e-5, "PART"),
        Place("function", places.LEFT, 0.0, 2.5e-5, 2e-5, 3e-5),
        Place("symbol", places.LEFT, 0.0, 5e-6, 0.0, 1e-5),
    ]
    assert verdict.of_all([], {}, rows) == (
        "PART",
        "in part because libtorch_cpu: cpu_max_pool holds 65 % of the difference, and took no time before; "
        "besides, libtorch_cpu: fill_kernel (30 %)",
    )


def test_time_that_is_only_told_of_another_package_is_no_cause() -> None:
    """1.13.1 imports NumPy while its library in C is loaded, and 2.0.0 before that; sympy is new."""
    rows = [
        Place("package", "numpy", 0.1, 0.511, 0.388, 0.435, "PART", (105, 105)),
        Place("package", "torch._C", 0.5, 0.108, -0.401, -0.383),
        Place("package", "sympy", 0.0, 0.29, 0.269, 0.311, "PART", (0, 300)),
        Place("package", "dataclasses", 0.01, 0.047, 0.014, 0.06, "UNKNOWN", (1, 1)),
        Place("package", places.LEFT, 0.2, 0.362, 0.1, 0.2),
    ]
    assert [place.name for place in verdict.only_elsewhere(rows)] == ["torch._C", "numpy"]
    kind, words = verdict.of_all([], {}, rows)
    assert (kind, words) == (
        "PART",
        "in part because sympy holds 57 % of the difference (modules imported: 300, before: 0)",
    )
    unalike = [replace(rows[1], new=0.3, low=-0.21, high=-0.19), *rows[2:], rows[0]]
    assert verdict.only_elsewhere([*unalike, rows[-1]]) == []


def test_place_that_says_nothing_is_not_where_the_time_went() -> None:
    rows = [
        Place("operator", places.OUTSIDE, 0.0, 9e-5, 8.8e-5, 9.2e-5),
        Place("operator", places.LEFT, 0.0, 0.0, 0.0, 0.0),
        Place("symbol", "Python: _PyEval_EvalFrameDefault", 0.0, 2e-5, 1e-5, 3e-5),
        Place("symbol", "libc10: could be chance", 0.0, 1e-5, -1e-6, 2e-5),
        Place("symbol", "libtorch_cpu: first", 0.0, 3e-5, 2.8e-5, 3.2e-5),
        Place("symbol", places.LEFT, 0.0, 3e-5, 2e-5, 4e-5),
    ]
    assert verdict.of_all([], {}, rows) == ("UNKNOWN", "cause unknown; the time went to libtorch_cpu: first (33 %)")
    assert verdict.of_all([], {}, rows[:2])[1] == "cause unknown; the time went to outside operators (100 %)"


def test_symbol_of_the_interpreter_is_no_cause() -> None:
    """Both releases run on the same interpreter: what it takes is what the Python code takes that it runs."""
    loop = Place("function", "torch/nn/functional.py checks", 0.0, 9e-5, 8.8e-5, 9.2e-5, verdict="CAUSE")
    interpreter = Place("symbol", "Python: _PyEval_EvalFrameDefault", 1e-6, 9e-5, 8.8e-5, 9.2e-5, verdict="CAUSE")
    assert verdict.of_all([], {}, [interpreter, loop])[1].startswith("because torch/nn/functional.py checks holds")
    assert verdict.of_all([], {}, [interpreter])[0] == "UNKNOWN"
