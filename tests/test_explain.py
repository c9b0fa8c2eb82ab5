"""Is the right cause found where one was planted, and none where nothing changed? Launches are drawn here, so that the
verdict can be judged."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from torch_history.cli.explaining import COUNTING_MINUTES, MINUTES
from torch_history.explaining import explanation, places, verdict
from torch_history.explaining.estimates import Group, Noise, ratio
from torch_history.explaining.explanation import MOST_NOISY_TURNS, Explanation, Found
from torch_history.explaining.launching import Side, Subject
from torch_history.explaining.levers import Lever
from torch_history.store.causes import Place

SUBJECT = Subject(Path(), "question", "variant", "small", "time")
SIDES = Side("v1.0.0", Path("old/bin/python")), Side("v2.0.0", Path("new/bin/python"))
LEVERS = [Lever(f"lever {i}", f"lever {i} pulled", f"of lever {i}", "", set=(f"lever {i}",)) for i in range(8)]


@dataclass
class Drawn:
    """Releases whose calls take what is planted: `operators` by release, and what levers make of the seconds."""

    operators: tuple[Mapping[str, float], Mapping[str, float]]
    by_lever: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    noise: float = 0.02
    drift: float = 0.1
    chance: random.Random = field(default_factory=random.Random)
    opened: int = 0

    def open(self, side: Side, subject: Subject, variables: object = None) -> Any:
        number = SIDES.index(side)
        if number == 0:
            self.turn = self.chance.gauss(0, self.drift)
        self.opened += 1
        slower = self.turn + self.chance.gauss(0, self.noise)

        def ask(step: Mapping[str, Any]) -> dict[str, Any]:
            return self.answered(step, self._drawn(step, number, slower), number)

        return SimpleNamespace(ask=ask, close=lambda: None)

    def answered(self, step: Mapping[str, Any], answer: dict[str, Any], number: int) -> dict[str, Any]:
        """What a launch of release `number` answers, where releases of another kind answer otherwise."""
        return answer

    def _drawn(self, step: Mapping[str, Any], number: int, slower: float) -> dict[str, Any]:
        if step.get("profile") == "hot":
            return {"failed": "there is no code here"}
        rows = self.operators[number]
        total = sum(rows.values())
        jitter = pow(2.718281828, slower + self.chance.gauss(0, self.noise / 4))
        if step["do"] == "facts":
            return {"environment": {"torch": str(number)}, "commit": f"{number:040}"}
        if step["do"] == "traces":
            return {"traces": sorted(rows)}
        if step["do"] == "time":
            for name in step.get("set", ()):
                total = self.by_lever.get(name, (total, total))[number]
            return {"wall": total * jitter, "cpu": total * jitter}
        if step.get("profile") == "operator":
            found = {name: [seconds * self.chance.gauss(1, self.noise), 1.0] for name, seconds in rows.items()}
            return {"seconds": sum(own for own, _ in found.values()), "cpu": total, "plain": total, "rows": found}
        if step["do"] == "profile":
            return {"failed": "there is no such profiler here"}
        raise AssertionError(step)


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
    drawn = (Drawn((SAME, slower), noise=0.1, chance=random.Random(seed)) for seed in range(20))
    assert max(len(explained(each).base.old) for each in drawn) > 8
    few = explained(Drawn((SAME, SAME), noise=0.01, chance=random.Random(0)))
    assert (few.verdict, len(few.base.old)) == ("NOT THERE", 8)


@pytest.mark.parametrize("slower", [1.1, 1.5, 4.0])
def test_operator_that_became_slower_is_the_cause(slower: float) -> None:
    new = {**SAME, "aten::index": 0.8e-3 * slower}
    found = [explained(Drawn((SAME, new), noise=0.01, chance=random.Random(seed)), []) for seed in range(20)]
    assert sum(one.verdict == "CAUSE" and "aten::index holds" in one.words for one in found) >= 19


SLOWER = {"aten::a": 5e-4, "aten::b": 5e-4}, {"aten::a": 8e-4, "aten::b": 8e-4}


@pytest.mark.parametrize("number", [0, 1])
def test_lever_that_takes_the_difference_away_is_the_cause(number: int) -> None:
    """Whether it makes the slow release quick or the quick one slow."""
    level = (1e-3, 1.6e-3)[number]
    right = 0
    for seed in range(20):
        drawn = Drawn(SLOWER, {"lever 3": (level, level)}, noise=0.01, chance=random.Random(seed))
        found = explained(drawn)
        right += found.verdict == "CAUSE" and "of lever 3" in found.words
        assert [lever.name for lever in found.levers if lever.verdict == "CAUSE"] in (["lever 3"], [])
    assert right >= 19


@pytest.mark.parametrize(
    ("both", "verdicts"), [((10e-3, 10.6e-3), ("CLEARED", "PART", "UNKNOWN")), ((1e-4, 1.6e-4), ("CLEARED",))]
)
def test_lever_that_makes_both_slower_or_quicker_alike_is_no_cause(both: Any, verdicts: tuple[str, ...]) -> None:
    """The ratio falls from 1.6 to 1.06, but the seconds between the releases are as many as before; or the seconds are a
    tenth, but the ratio is what it was."""
    drawn = Drawn(SLOWER, {"lever 3": both}, noise=0.005, chance=random.Random(1))
    assert {lever.name: lever.verdict for lever in explained(drawn).levers}["lever 3"] in verdicts


def test_lever_that_is_lucky_at_first_is_no_cause() -> None:
    """It takes the difference away in its first two turns, and leaves it in those that follow."""
    drawn = Drawn(SLOWER, {"lever 3": (1e-3, 1e-3)}, noise=0.005, chance=random.Random(1))
    opened = drawn.open

    def open(*asked: Any, **how: Any) -> Any:
        if drawn.opened >= 2 * (4 + 3 + 2):
            drawn.by_lever = {}
        return opened(*asked, **how)

    found = Explanation(SUBJECT, SIDES, LEVERS[3:4], Path(), lambda words: None, opened=open).explain()
    assert (found.levers[0].verdict, len(found.levers[0].old)) == ("CLEARED", 3)


def test_what_is_called_another_number_of_times_is_the_cause_before_what_only_holds_time():
    gone = Place("function", "Tensor.zero_", 5e-5, 0.0, -6e-5, -4e-5, "PART", (100.0, 0.0))
    rows = [Place("symbol", "libc: memset", 4e-5, 0.0, -5e-5, -3e-5, "PART"), gone]
    assert "because Tensor.zero_ holds" in verdict.of_all([], {}, rows)[1]
    rows[1] = structs.replace(gone, calls=(100.0, 100.0))
    assert "because libc: memset holds" in verdict.of_all([], {}, rows)[1]


@pytest.mark.parametrize(("calls", "said"), [((9.0, 909.0), True), ((9.0, 9.0), False)])
def test_functions_of_python_that_are_called_more_often_are_the_cause_where_they_take_the_difference(calls, said):
    """Each call of `collate` makes a tensor; a function that only calls it is called as often as before."""
    rows = [
        Place("function", "torch/collate.py collate", 1e-5, 5e-5, 3.5e-5, 4.5e-5, "PART", calls),
        Place("function", "torch/collate.py of_numbers", 0.0, 5e-5, 4.5e-5, 5.5e-5, "PART", (0.0, 800.0)),
        Place("function", "everything else", 1e-5, 2e-5, 0.0, 2e-5),
    ]
    words = (
        "because torch/collate.py of_numbers is called 800 times, before 0 and torch/collate.py collate is called 909 "
    )
    assert verdict.called_otherwise(rows, "mine.py") == (f"{words}times, before 9" if said else "")
    assert verdict.called_otherwise(rows[2:], "mine.py") == verdict.called_otherwise([], "") == ""


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
        def answered(self, step: Mapping[str, Any], answer: dict[str, Any], number: int) -> dict[str, Any]:
            return {**answer, "cpu": 3 * answer["plain"]} if step.get("profile") == "operator" else answer

    found = explained(Slow((SAME, {**SAME, "aten::index": 2e-3}), chance=random.Random(1)), [])
    assert not found.places
    assert any("3.0 times as long" in note for note in found.notes)
    assert found.verdict == "UNKNOWN"


@pytest.mark.parametrize(("load", "left_out", "kind"), [(1, 0, "CAUSE"), (2, 1, "CAUSE"), (4, 2, "UNKNOWN")])
def test_explanation_ends_in_its_time_however_busy_the_machine_is(monkeypatch, load, left_out, kind):
    """Seconds of each step of a quick call, as on two idle processors, times the load. What is left out is said."""
    now, costs = [0.0], {"time": 0.8, "profile": 1.5}
    monkeypatch.setattr(explanation, "time", SimpleNamespace(monotonic=lambda: now[0]))

    class Busy(Drawn):
        def open(self, *arguments: Any, **how: Any) -> Any:
            now[0] += load * 1.2
            return super().open(*arguments, **how)

        def answered(self, step: Mapping[str, Any], answer: dict[str, Any], number: int) -> dict[str, Any]:
            now[0] += load * costs.get(step["do"], 0.4)
            return answer

    drawn = Busy(SLOWER, {"lever 3": (1e-3, 1e-3)}, noise=0.005, chance=random.Random(1))
    found = Explanation(
        SUBJECT, SIDES, LEVERS[1:4], Path(), lambda words: None, 60 * MINUTES, opened=drawn.open
    ).explain()
    assert now[0] <= 60 * MINUTES
    assert sum(note.startswith("no time ") for note in found.notes) == left_out
    assert {lever.name: lever.verdict for lever in found.levers}["lever 3"] == kind
    page = " ".join((Path(__file__).resolve().parents[1] / "docs" / "explain.md").read_text(encoding="utf-8").split())
    assert ("at most four minutes" in page, "minutes, a count one" in page) == (MINUTES == 4, COUNTING_MINUTES == 1)


def test_disturbed_turn_does_not_hide_a_difference() -> None:
    group = Group([1.0, 1.01, 1.0, 3.0, 1.0, 0.99], [1.3, 1.31, 1.29, 1.3, 1.32, 1.3])
    assert ratio(group, Noise.of([group])).ratio == pytest.approx(1.3, rel=0.02)


def test_difference_within_the_margin_is_not_there() -> None:
    group = Group([1.0, 1.001, 1.0, 1.0], [1.03, 1.03, 1.031, 1.03])
    assert not ratio(group, Noise.of([group])).is_there


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        *(((0.95, 0.8, 1.1), "CAUSE"), ((0.95, 0.3, 1.6), "PART"), ((0.95, -0.3, 2.2), "UNKNOWN")),
        *(((0.5, 0.3, 0.7), "PART"), ((0.0, -0.1, 0.1), "CLEARED"), ((-3.0, -3.1, -2.9), "CLEARED")),
        ((3.0, 2.9, 3.1), "UNKNOWN"),
    ],
)
def test_verdict_of_a_lever(share: tuple[float, float, float], expected: str) -> None:
    assert verdict.of_lever(*share) == expected


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
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
        *(("libtorch_cpu.so", "libtorch_cpu"), ("libgomp-a34b3233.so.1", "libgomp")),
        *(("[kernel.kallsyms]", "the kernel"), ("[unknown]", "code made at run time")),
        *(("[JIT] tid 123", "code made at run time"), ("libc.so.6", "libc")),
        ("_multiarray_umath.cpython-311-x86_64-linux-gnu.so", "_multiarray_umath"),
    ],
)
def test_libraries_of_two_releases_share_their_names(name: str, expected: str) -> None:
    assert places.library_name(name) == expected


WAITS = "waits for something that is not profiled"


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("<method 'poll' of 'select.poll' objects>", "UNKNOWN", WAITS),
        ("<built-in method time.sleep>", "UNKNOWN", WAITS),
        ("<method 'acquire' of '_thread.lock' objects>", "UNKNOWN", WAITS),
        ("the kernel: futex_wait_queue", "UNKNOWN", WAITS),
        *(("<built-in method torch.select>", "CAUSE", ""), ("mine.py relu", "UNKNOWN", "")),
        *(("<method 'select' of 'torch._C.TensorBase' objects>", "CAUSE", ""), ("torch/nn.py relu", "CAUSE", "")),
    ],
)
def test_place_that_waits_and_function_of_the_workload_itself_are_no_cause(name: str, kind: str, said: str) -> None:
    rows = [
        Place("function", name, 1e-3, 9e-3, 7.9e-3, 8.1e-3, "CAUSE", (1.0, 1.0)),
        Place("function", "rest", 1e-3, 1e-3, -1e-5, 1e-5),
    ]
    found, words = verdict.of_all([], {}, rows, own="mine.py")
    assert (found, WAITS in words) == (kind, bool(said))


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
    sympy = "sympy holds 57 % of the difference (modules imported: 300, before: 0)"
    assert verdict.of_all([], {}, rows) == ("PART", f"in part because {sympy}")
    calls = [Place("package", "torch.nn", 0.1, 0.5, 0.39, 0.41, "CAUSE"), rows[-1]]  # nothing is imported
    assert verdict.of_all([], {}, calls)[0] == "UNKNOWN"


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
