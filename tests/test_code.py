"""What changed in the code of a series? Asked of wheels whose code is known: compiled here, or written down."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from torch_history.analysis import code
from torch_history.analysis.causes import why
from torch_history.analysis.code import CodePair, Kind, State, WhatChanged, is_one_binary, of_times
from torch_history.analysis.compare import Comparison, failing, of_this_processor
from torch_history.analysis.findings import of_changes
from torch_history.analysis.replication import Elsewhere, OtherPlaces, Place, Replication, Standing
from torch_history.analysis.series import Series, Verdict
from torch_history.analysis.verdicts import Change
from torch_history.explaining import fingerprints, verdict
from torch_history.explaining.fingerprints import difference
from torch_history.explaining.library import Library, NotALibrary
from torch_history.measuring.kit.check import check
from torch_history.store import code as stored
from torch_history.store.causes import Code as Instructions
from torch_history.store.causes import Place as Pin
from torch_history.store.code import BLOCK, Code, Hot, Loop, Section, Symbol

from .lab import AXIS
from .processes import compiled

SERIES = Series("release-py3.11", "selection.Selection.track_time", ("'mask'", "'rows 50 % x 100'"))
CASE = "selection time mask rows 50 % x 100"
WHERE = {"aten::index": (0.3, 1), "aten::where": (0.7, 2)}


def symbol(digest: str = "same", place: int = 0, loops: tuple[Loop, ...] = (), name: str = "kernel") -> Symbol:
    return Symbol(name, "libtorch_cpu.so", "Kernel.cpp.AVX2.cpp", 100, place, digest, 25, loops)


def release(tag: str, hot: dict[str, Any] | None = None, **parts: Any) -> Code:
    """A wheel in which `mask` takes 90 of 100 samples in one function, unless `hot` and `parts` say otherwise."""
    runs = Hot(100, {"k": (90, "")}, {"libc": 10}, {"aten::index": (1.0, 1)}, {"torch/f.py f": 1})
    sections = {name: {".text": Section(4 * BLOCK, "00000000" * 4)} for name in code.CALCULATE}
    made = Code(tag, "3.11", "", sections, {"k": symbol()}, {}, {"torch/f.py f": "one"}, "EPYC")
    return replace(made, series={CASE: replace(runs, **(hot or {}))}, **parts)


def changed(old: Code, new: Code, ratio: float = 1.5) -> WhatChanged:
    found = CodePair(old, new).what_changed(SERIES, ratio)
    assert found
    return found


@pytest.mark.parametrize(
    ("new", "kind", "is_cause"),
    [
        ({"symbols": {"k": symbol("other")}}, Kind.CODE, True),
        ({"symbols": {"k": symbol("other")}, "hot": {"elsewhere": {"Python": 10}}}, Kind.CODE, True),
        ({"symbols": {"k": symbol(place=16)}}, Kind.MOVED, False),
        ({}, Kind.SAME, False),
        ({"symbols": {"renamed": symbol()}, "hot": {"symbols": {"renamed": (90, "")}}}, Kind.SAME, False),
        ({"hot": {"operators": WHERE}}, Kind.OPERATORS, True),
        ({"hot": {"operators": {"aten::index": (0.95, 1), "aten::where": (0.05, 2)}}}, Kind.SAME, False),
        ({"hot": {"operators": {"aten::index": (1.0, 1.02)}}}, Kind.SAME, False),
        ({"hot": {"operators": {"aten::index_9870135744170595077": (1.0, 1)}}}, Kind.SAME, False),
        ({"hot": {"symbols": {"k": (10, "")}, "elsewhere": {"Python": 85}, "operators": WHERE}}, Kind.OUTSIDE, False),
    ],
)
def test_a_change_has_the_class_of_what_was_planted(new: dict[str, Any], kind: Kind, is_cause: bool) -> None:
    found = changed(release("v2.0.1"), release("v2.1.0", **new))
    assert (found.kind, found.is_cause) == (kind, is_cause)


@pytest.mark.parametrize(
    ("size", "case"),
    [
        *(("rows 99 % x 10", "rows 50 % x 100"), ("vector 99 % x 10", "vector 99 % x 1")),
        *(("rows 50 % x 100", "rows 50 % x 100"), ("vector 99 % x 100", "vector 99 % x 1")),
        *(("vector 1 % x 1", "vector 1 % x 100"), ("65,536 x 16", "4,096 x 64")),
        ("take_reused vector 99 % x 10", "vector 50 % x 100"),
    ],
)
def test_a_size_that_was_not_looked_at_has_the_class_of_the_nearest_with_the_same_layout(size: str, case: str) -> None:
    """What is made once (`_reused`) is told by a size that uses it often too."""
    variant, size = size.split(" ", 1) if size.startswith("take") else ("mask", size)
    begin, of = f"selection time {variant} ", release("v2.0.1").series[CASE]
    vectors = ("vector 1 % x 100", "vector 50 % x 100", "vector 99 % x 1")
    looked = {f"{begin}{one}": of for one in ("64 x 128", "4,096 x 64", *vectors, "rows 50 % x 100")}
    old, new = (replace(release(tag), series=looked) for tag in ("v2.0.1", "v2.1.0"))
    series = Series(SERIES.environment, SERIES.benchmark, (repr(variant), repr(size)))
    assert CodePair(old, new).case_of(series) == f"{begin}{case}"


@pytest.mark.parametrize("verdict", [Verdict.SAME, Verdict.FASTER, Verdict.CANT_TELL])
def test_a_size_that_did_not_change_so_explains_no_other(verdict: Verdict) -> None:
    """Only one size was looked at: another that is slower has its class unless that one is the same, or faster."""
    pair = CodePair(release("v2.0.1"), release("v2.1.0", symbols={"k": symbol("other")}))
    other = Series(SERIES.environment, SERIES.benchmark, (SERIES.parameters[0], "'rows 99 % x 100'"))
    slower = Change(other, Verdict.SLOWER, 1.0, 1.9, 1.9, 1.8, 2.0)
    changes = [slower, Change(SERIES, verdict, 1.0, 1.0, 1.0, 0.99, 1.01)]
    assert other in of_times(changes[:1], pair)
    assert (other in of_times(changes, pair)) == (verdict is Verdict.CANT_TELL)
    assert (other in of_times(changes[:1], pair, changes)) == (verdict is Verdict.CANT_TELL)


@pytest.mark.parametrize(
    ("size", "new", "kind"),
    [
        *(("rows 99 % x 100", symbol(place=16), Kind.MOVED), ("rows 99 % x 100", symbol(), Kind.SAME)),
        *(("rows 99 % x 100", symbol("other"), None), ("vector 99 % x 100", symbol(place=16), None)),
    ],
)
def test_a_size_that_is_the_same_tells_of_its_layout_that_no_instruction_differs(size, new, kind):
    other = Series(SERIES.environment, SERIES.benchmark, (SERIES.parameters[0], f"'{size}'"))
    slower = Change(other, Verdict.SLOWER, 1.0, 1.9, 1.9, 1.8, 2.0)
    changes = [slower, Change(SERIES, Verdict.SAME, 1.0, 1.0, 1.0, 0.99, 1.01)]
    ends = release("v2.0.1"), release("v2.1.0", symbols={"k": new})
    more = {CASE.replace("rows", "cube"): ends[0].series[CASE]} if kind else {}  # another layout says nothing of it
    found = of_times(changes, CodePair(*(replace(one, series={**one.series, **more}) for one in ends)))
    assert (found[other].kind if other in found else None) == kind


@pytest.mark.parametrize(
    ("size", "share", "kind"), [("vector 9 %", 0, None), ("rows 9 %", 0, Kind.MOVED), ("rows 9 %", 10, None)]
)
def test_another_size_tells_that_no_code_changed_by_its_layout_and_next_to_no_change(size, share, kind):
    """What holds 10 % of the time of one size may hold most of another one's."""
    runs = {"symbols": {"k": (90 - share, ""), "l": (share, "")}}
    news = {"k": symbol(place=16), "l": symbol("other", name="l")}
    old = release("v2.0.1", runs, symbols={"k": symbol(), "l": symbol(name="l")})
    pair = CodePair(old, release("v2.1.0", runs, symbols=news))
    found = pair.what_changed(Series(SERIES.environment, SERIES.benchmark, (SERIES.parameters[0], f"'{size}'")), 1.5)
    assert (found and found.kind) == kind


def test_python_that_is_another_is_told_where_the_interpreter_takes_the_time() -> None:
    runs: dict[str, Any] = {"symbols": {}, "elsewhere": {"Python": 90}}
    old, new = release("v2.0.1", runs), release("v2.1.0", runs, functions={"torch/f.py f": "other"})
    assert changed(old, old).kind is Kind.OUTSIDE
    found = changed(old, new)
    assert (found.kind, found.python) == (Kind.PYTHON, ("torch/f.py f",))


def test_functions_of_python_that_one_release_calls_alone_come_first_unless_others_were_kept() -> None:
    called = {f"torch/f.py f{number}": 9 for number in range(stored.MOST_FUNCTIONS)}
    now = {"torch/f.py once": 1, "torch/f.py often": 10, "torch/f.py other": 99, "_virtualenv.py an installer's": 50}
    digests = dict.fromkeys((*called, *now), "one")
    runs: dict[str, Any] = {"symbols": {}, "elsewhere": {"Python": 90}}
    old = release("v2.0.1", {**runs, "functions": {**called, "torch/f.py other": 99}}, functions=digests)
    new = release("v2.1.0", {**runs, "functions": now}, functions={**digests, "torch/f.py other": "two"})
    assert set(changed(old, new).python) & {*now} == {"torch/f.py often"}
    few = replace(old, series={CASE: replace(old.series[CASE], functions={"torch/f.py other": 99})})
    assert changed(few, new).python == ("torch/f.py often", "torch/f.py once", "torch/f.py other")


def test_an_operator_that_does_instead_what_others_did_is_named_beside_them() -> None:
    """And which of them is declared otherwise: `tanh` is new."""
    old = release("v2.0.1", {"operators": {"aten::linear": (0.9, 50), "aten::tanh": (0.1, 50)}})
    new = release("v2.1.0", {"operators": {"aten::mkldnn_rnn_layer": (0.95, 1), "aten::empty": (0.05, 1)}})
    linear = fingerprints.declared(b"- func: linear(T x) -> T\n  tags: core\n")
    both = fingerprints.declared(b"- func: tanh(T x) -> T\n- tags: core\n  func: linear(T x) -> T\n")
    found = changed(replace(old, declared=linear), replace(new, declared=both), 0.4)
    assert (found.kind, found.is_cause) == (Kind.OPERATORS, True)
    named = [(one.name, one.is_redeclared) for one in found.operators]
    assert named == [("aten::linear", False), ("aten::tanh", True), ("aten::mkldnn_rnn_layer", False)]


def test_changed_code_that_holds_too_little_of_the_time_is_no_cause() -> None:
    symbols = {"k": symbol(), "small": symbol("one", name="small")}
    hot = {"symbols": {"k": (60, ""), "small": (30, "")}}
    old = release("v2.0.1", hot, symbols=symbols)
    new = release("v2.1.0", hot, symbols={**symbols, "small": symbol("two", name="small")})
    grown = replace(new, series={CASE: replace(new.series[CASE], symbols={"k": (50, ""), "small": (42, "")})})
    assert changed(old, grown, 1.2).is_cause
    assert not changed(old, replace(new, series={CASE: replace(new.series[CASE], samples=10_000)}), 1.2).is_cause
    found = changed(old, new, 3.0)
    assert (found.kind, found.is_cause) == (Kind.CODE, False)
    assert [one.name for one in found.functions] == ["small"]


@pytest.mark.parametrize(("samples", "named"), [(40_000, ["grows"]), (400, ["stays"])])
def test_the_function_is_named_whose_time_may_have_changed_and_not_one_that_holds_more_and_stayed(samples, named):
    """Of 100 parts of time 60 stay in one function, and 30 become 50 in the other, which few samples cannot tell."""

    def ends(digest: str, stays: float, grows: float) -> dict[str, Any]:
        each = {name: replace(symbol(f"{digest} {name}", name=name), source=name) for name in ("stays", "grows")}
        hot = {"stays": (round(samples * stays), ""), "grows": (round(samples * grows), "")}
        return {"symbols": each, "hot": {"samples": samples, "symbols": hot}}

    old, new = ends("old", 60 / 100, 30 / 100), ends("new", 60 / 120, 50 / 120)
    of_case = CodePair(release("v2.0.1", **old), release("v2.1.0", **new)).of_case(CASE, 1.2)
    assert [one.name for one in of_case.functions] == named
    assert of_case.kind is Kind.CODE


def test_new_code_is_the_cause_where_it_does_what_code_without_a_name_did() -> None:
    """Loops of old MKL have no name: four fifths of the old release's samples lie outside every function."""
    old = release("v2.0.1", {"symbols": {"k": (10, "")}, "elsewhere": {"libtorch_cpu": 80}})
    runs: dict[str, Any] = {"symbols": {"zen": (60, "")}, "elsewhere": {"libtorch_cpu": 5, "libc": 35}}
    new = release("v2.1.0", runs, symbols={"zen": symbol("zen", name="mkl_blas_zen")})
    assert changed(old, new, 0.43).is_cause
    named = replace(old, series={CASE: replace(old.series[CASE], elsewhere={"libc": 80})})
    assert not changed(named, new, 0.43).is_cause


def test_a_hot_loop_that_stayed_is_no_changed_code_although_its_function_is_another() -> None:
    loop, moved = Loop(8, 40, "loop", 9), Loop(24, 56, "loop", 9)
    hot = {"symbols": {"k": (90, "loop")}}
    old = release("v2.0.1", hot, symbols={"k": symbol("one", loops=(loop,))})
    for other, state in ((loop, State.SAME), (moved, State.MOVED)):
        new = replace(old, release="v2.1.0", symbols={"k": symbol("two", loops=(other,))})
        assert changed(old, new).functions[0].state is state
    gone = replace(old, release="v2.1.0", symbols={"k": symbol("two", loops=(Loop(8, 40, "another", 7),))})
    assert changed(old, gone).kind is Kind.CODE


def test_a_kernel_whose_loop_moved_into_another_function_of_it_has_other_instructions() -> None:
    loop, whole = (symbol(name, name=f"mul_kernel in {name}") for name in ("loop", "whole"))
    hot = {"symbols": {"loop": (60, ""), "whole": (30, "")}}
    old = release("v2.0.1", hot, symbols={"loop": loop, "whole": whole})
    new = release("v2.1.0", {"symbols": {"whole": (90, "")}}, symbols={"whole": replace(whole, digest="other")})
    assert [one.state for one in changed(old, new).functions] == [State.CHANGED]
    gone = release("v2.1.0", {"symbols": {"k": (90, "")}}, symbols={"k": symbol("k", name="add_kernel")})
    assert {one.state for one in changed(old, gone).functions} == {State.NEW}


@pytest.mark.parametrize(
    ("digest", "loop", "kind"),
    [("same", "", Kind.MOVED), ("tail", "loop", Kind.MOVED), ("float", "another", Kind.CODE)],
)
def test_a_lambda_with_another_number_is_looked_for_where_it_runs(digest: str, loop: str, kind: Kind) -> None:
    """A type was added: #13 of old is #14 of new, whose #13 does not run. `tail` has the same hot loop; `float` is other."""
    hot, was = {"symbols": {"#13": (90, "loop")}}, symbol(loops=(Loop(8, 40, "loop", 9),))
    old = release("v2.0.1", hot, symbols={"#13": was})
    symbols = {"#13": symbol("complex", place=32), "#14": symbol(digest, 16, (Loop(8, 40, loop, 9),))}
    new = release("v2.1.0", {"symbols": {"#14": (90, loop)}}, symbols=symbols)
    assert changed(old, new).kind is kind


def test_a_function_that_both_have_and_one_alone_runs_is_other_code() -> None:
    symbols = {"k": symbol(), "avx": symbol("avx", name="avx")}
    old = release("v2.0.1", symbols=symbols)
    found = changed(old, release("v2.1.0", {"symbols": {"avx": (90, "")}}, symbols=symbols))
    assert (found.kind, {one.state for one in found.functions}) == (Kind.CODE, {State.RESTS})
    before = release("v2.0.1", {"symbols": {"k": (60, "")}}, symbols=symbols)
    found = changed(before, replace(old, series={CASE: Hot(100, {"avx": (90, "")})}))
    assert [(one.name, one.state) for one in found.functions] == [("avx", State.RUNS)]


def test_nothing_is_said_of_a_series_that_was_not_looked_at() -> None:
    other = Series(SERIES.environment, SERIES.benchmark, ("'take'", "'rows 50 % x 100'"))
    assert CodePair(release("v2.0.1"), release("v2.1.0")).what_changed(other, 1.5) is None
    assert CodePair(release("v2.0.1"), release("v2.1.0", {"samples": 99})).what_changed(SERIES, 1.5) is None


@pytest.mark.parametrize(("differing", "is_one"), [(0, True), (4, True), (5, False)])
def test_binaries_are_one_where_only_the_version_differs(differing: int, is_one: bool) -> None:
    old, new = release("v2.0.1"), release("v2.0.2")
    blocks = "11111111" * differing + "00000000" * (10 - differing)
    pair = [
        replace(of, libraries={name: {".text": Section(10 * BLOCK, text)} for name in code.CALCULATE})
        for of, text in ((old, "00000000" * 10), (new, blocks))
    ]
    assert is_one_binary(pair[0], pair[1]) is is_one
    assert not is_one_binary(pair[0], replace(new, libraries={}))


@pytest.mark.usefixtures("no_code")
def test_another_lane_of_the_same_binary_repeats_a_change_and_does_not_replicate_it(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "here", lambda: tmp_path)
    for tag, other in (("v2.0.1", "00000000"), ("v2.1.0", "00000000"), ("v2.2.0", "11111111")):
        for python, blocks in (("3.11", "00000000"), ("3.9", other)):
            libraries = {name: {".text": Section(9 * BLOCK, blocks * 9)} for name in code.CALCULATE}
            stored.write(replace(release(tag), python=python, libraries=libraries))
    change = Change(SERIES, Verdict.SLOWER, 1.0, 1.5, 1.5, 1.4, 1.6)
    place = Place({}, "release-py3.9", {"v2.0.1", "v2.1.0", "v2.2.0"}, lambda old, new: [change])
    others = OtherPlaces([place], environment="release-py3.11")
    for old, new, wheels, repeats in (
        ("v2.0.1", "v2.1.0", Standing.NOT_TESTABLE, Standing.REPLICATED),
        ("v2.1.0", "v2.2.0", Standing.REPLICATED, Standing.NOT_TESTABLE),
    ):
        found = others.of([change], old, new)[SERIES]
        assert (found.wheels.standing, found.repeats.standing) == (wheels, repeats)


def test_code_that_did_not_change_comes_last_and_fails_nothing_where_another_processor_says_same() -> None:
    times = [Change(SERIES, Verdict.SLOWER, 1.0, 1.9, 1.9, 1.8, 2.0)]
    other = Series(SERIES.environment, SERIES.benchmark, ("'take'", "'rows 50 % x 100'"))
    times.append(Change(other, Verdict.SLOWER, 1.0, 1.1, 1.1, 1.08, 1.12))
    moved = changed(release("v2.0.1"), release("v2.1.0", symbols={"k": symbol(place=16)}))
    found = {SERIES: moved, other: changed(release("v2.0.1"), release("v2.1.0", symbols={"k": symbol("other")}))}
    assert [finding.best.series for finding in of_changes(times, {}, found)] == [other, SERIES]
    comparison = Comparison("m", SERIES.environment, "v2.0.1", "v2.1.0", times, {}, {}, 0, code=found)
    assert len(failing(comparison, {"slower": 5.0})) == 2
    for standing, left in ((Standing.NOT_REPLICATED, [SERIES]), (Standing.REPLICATED, []), (Standing.NOT_TESTABLE, [])):
        there = Elsewhere(machines=Replication(standing, "EPYC"))
        of_both = dataclasses.replace(comparison, elsewhere=dict.fromkeys((SERIES, other), there))
        assert [change.series for change in of_this_processor(of_both)] == left
        assert len(failing(of_both, {"slower": 5.0})) == 2 - len(left)


def test_a_library_that_pytorch_holds_is_named_once_with_its_versions() -> None:
    kernel = symbol("one", name="mkl_blas_sgemm")
    old, new = release("v2.0.1", symbols={"k": kernel}), release("v2.1.0", symbols={"k": replace(kernel, digest="two")})
    several = CodePair(*(replace(of, symbols={**of.symbols, "z": replace(of.symbols["k"], name="mkl_z")},
                                 series={CASE: Hot(100, {"k": (30, ""), "z": (30, "")})}) for of in (old, new)))  # fmt: skip
    change = Change(SERIES, Verdict.SLOWER, 1.0, 1.5, 1.5, 1.4, 1.6)
    before, now = ({"torch": tag, "mkl": mkl} for tag, mkl in (("2.0.1", "2020.0"), ("2.1.0", "2022.2")))
    words = why([change], before, now, code=of_times([change], several))[SERIES].words
    assert words.count("MKL 2020.0 became 2022.2") == 1


@pytest.mark.parametrize(
    ("hot", "name", "words"),
    [
        ({"symbols": {"k": (90, "")}}, "mkl_blas_sgemm", "because MKL's code runs now and did not before"),
        ({"symbols": {"k": (60, ""), "copy": (30, "")}}, "mkl_blas_sgemm", "because MKL 2020.0 became 2022.2"),
        ({"elsewhere": {"libtorch_cpu": 90}, "symbols": {}}, "mkl_blas_sgemm", "because MKL 2020.0 became 2022.2"),
        ({"elsewhere": {"libtorch_cpu": 90}, "symbols": {}}, "dnnl_sgemm", "because oneDNN's code runs now"),
    ],
)
def test_a_library_that_only_one_release_runs_did_not_become_another(hot, name, words):
    """Before, PyTorch's own kernel computed it; or MKL, by its name or by code without one."""
    old = release("v2.0.1", hot, symbols={"k": symbol(), "copy": symbol("copy", name="mkl_blas_copy")})
    of_new = {"symbols": {"new": (95, "")}}, {"new": symbol("new", name=name), "copy": old.symbols["copy"]}
    pair = CodePair(old, release("v2.1.0", of_new[0], symbols=of_new[1]))
    facts = [{"torch": tag, "mkl": mkl, "onednn": mkl} for tag, mkl in (("2.0.1", "2020.0"), ("2.1.0", "2022.2"))]
    change = Change(SERIES, Verdict.SLOWER, 1.0, 1.5, 1.5, 1.4, 1.6)
    assert why([change], facts[0], facts[1], code=of_times([change], pair))[SERIES].words.startswith(words)


def test_what_changed_in_a_function_of_python_is_shown_without_docstrings_and_in_twenty_lines(tmp_path: Path) -> None:
    old = 'class A:\n    def f(self, x: int) -> int:\n        """Old."""\n        return x\n'
    new = "def f(): pass\nclass A:\n    def f(self, x):\n        x += 1\n        return x\n    def g(self):\n"
    long = "".join(f"        {letter} = {number}\n" for number, letter in enumerate("abcdefghijklmnopqrstuvwxyz"))
    folders = tmp_path / "old", tmp_path / "new"
    for folder, text in zip(folders, (old + "    def g(self):\n        pass\n", new + long), strict=True):
        path = folder / "lib/python3.11/site-packages/torch/a.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert difference(folders, "torch/a.py A.f").partition("\n")[2] == " def f(self, x):\n+    x += 1\n     return x"
    assert len(difference(folders, "torch/a.py A.g").splitlines()) == 21
    assert difference(folders, "torch/a.py f") == difference(folders, "torch/b.py f") == ""


def test_what_is_stored_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "here", lambda: tmp_path)
    made = release("v2.0.1")
    stored.write(made)
    assert stored.read("v2.0.1", "3.11") == made
    assert stored.known() == [("v2.0.1", "3.11")]
    assert stored.read("v2.1.0", "3.11") is None


@pytest.mark.parametrize("content", [b"", b"no gzip", b"\x1f\x8b\x08\x00"])
def test_a_damaged_file_is_left_out_in_words(tmp_path, monkeypatch, caplog, content):
    monkeypatch.setattr(stored, "here", lambda: tmp_path)
    stored.path_of("v2.0.1", "3.11").write_bytes(content)
    assert stored.read("v2.0.1", "3.11") is None
    assert "is skipped" in caplog.text
    (tmp_path / "results" / "code").mkdir(parents=True)
    (tmp_path / "results" / "code" / "v2.0.1-py3.11.json.gz").write_bytes(content)
    (problem,) = check(tmp_path / "results", AXIS).problems
    assert "it holds no code of a release" in problem


SOURCE = """
__attribute__((noinline)) long total(const long *numbers, long count) {{
    long sum = 0;
    for (long i = 0; i < count; i++) sum += numbers[i] {change};
    return sum;
}}
long other(long a) {{ return a * 3; }}
"""


@pytest.mark.skipif(not all(map(shutil.which, ("gcc", "c++filt"))), reason="gcc and binutils are not installed")
def test_the_code_of_compiled_libraries_is_told_apart(tmp_path: Path) -> None:
    made = {}
    for tag, change, filler in (("v2.0.1", "", 0), ("v2.0.2", "", 1), ("v2.1.0", "* 5 + (i & 7)", 0)):
        folder = tmp_path / tag
        folder.mkdir()
        padding = f'asm(".text\\n.skip {filler}, 0x90\\n");' if filler else ""
        options = ["-O1", "-shared", "-fno-toplevel-reorder", "-falign-functions=1"]
        library = compiled(folder / "libtorch_cpu.so", padding + SOURCE.format(change=change), *options)
        of = Library(library)
        number = of.plain_names.index("total")
        loop = fingerprints.machine_code.function(of, number).loops[0]
        offset = next(at for at in range(library.stat().st_size) if of.address(at) == of.begin(number) + loop.begin)
        answer = {"samples": {str(library): {offset: 95}, "/lib/libc.so.6": {0: 5}}, "operators": {}, "functions": {}}
        made[tag] = fingerprints.of_release(tag, "3.11", "", [library], {CASE: answer}, "here", ())
    assert made["v2.0.1"].series[CASE].elsewhere == {"libc": 5}
    assert {one.name for one in made["v2.0.1"].symbols.values()} == {"total"}
    assert changed(made["v2.0.1"], made["v2.0.1"]).kind is Kind.SAME
    assert changed(made["v2.0.1"], made["v2.0.2"]).kind is Kind.MOVED
    found = changed(made["v2.0.1"], made["v2.1.0"])
    assert (found.kind, found.is_cause, found.functions[0].name) == (Kind.CODE, True, "total")
    assert found.functions[0].share == pytest.approx(0.95)


CHECKED = """
struct SourceLocation {{ const char *function, *file; unsigned line; }};
extern void _ZN3c106detail14torchCheckFailEPKcS2_jS2_(const char *, const char *, unsigned, const char *)
    __attribute__((noreturn));
extern void _ZN3c1010IndexErrorC1ENS_14SourceLocationE(void *, struct SourceLocation);
extern void told(const char *, const char *, unsigned);
long item(const long *numbers, long at) {{
    struct SourceLocation place = {{"item", "a.cpp", {0}}};
    if (at < 0) _ZN3c106detail14torchCheckFailEPKcS2_jS2_("item", "a.cpp", {0}, "it is negative");
    if (at > 9) _ZN3c106detail14torchCheckFailEPKcS2_jS2_("item", "a.cpp", {1}, "it is large");
    if (at == 8) _ZN3c1010IndexErrorC1ENS_14SourceLocationE(0, place);
    told("item", "a.cpp", {2});
    return numbers[at];
}}
"""


@pytest.mark.skipif(not all(map(shutil.which, ("gcc", "c++filt"))), reason="gcc and binutils are not installed")
@pytest.mark.parametrize("option", ["-O1", "-O2", "-Os"])
@pytest.mark.parametrize(
    ("numbers", "kind"), [((340, 350, 7), Kind.SAME), ((10, 20, 8), Kind.CODE), ((350, 340, 9), Kind.CODE)]
)
def test_a_check_that_stands_in_another_line_of_the_source_is_the_same_code(tmp_path, option, numbers, kind):
    """The third number is an argument of an ordinary function."""
    folders, answers = (tmp_path / "old", tmp_path / "new"), []
    for folder, values in zip(folders, ((10, 20, 7), numbers), strict=True):
        library = folder / "lib/python3.11/site-packages/torch/lib/libtorch_cpu.so"
        library.parent.mkdir(parents=True)
        compiled(library, CHECKED.format(*values), option, "-shared", "-fno-reorder-blocks-and-partition")
        of = Library(library)
        begin = of.begin(of.plain_names.index("item"))
        offset = next(at for at in range(library.stat().st_size) if of.address(at) == begin)
        answers.append({"samples": {str(library): {offset: 200}}, "operators": {}, "functions": {}})
    assert fingerprints.pair(folders, answers).of_case(fingerprints.ONE, 1.5).kind is kind


def test_a_file_that_is_no_library_is_refused_in_words(tmp_path: Path) -> None:
    for content in (b"x", b"no library at all" * 10, b"\x7fELF" + b"\xff" * 100):
        (tmp_path / "libtorch_cpu.so").write_bytes(content)
        with pytest.raises(NotALibrary, match=r"libtorch_cpu.so is no library"):
            Library(tmp_path / "libtorch_cpu.so")


@pytest.mark.parametrize(
    ("calls", "same", "changed", "kind", "words"),
    [
        ((1.0, 1.0), True, (False, "with the same instructions at another address"), "UNKNOWN", "cause unknown"),
        ((1.0, 1.0), False, (False, "in part because f has other instructions"), "CAUSE", "with other instructions"),
        ((1.0, 3.0), True, (False, "with the same instructions at another address"), "CAUSE", "calls: 3, before: 1"),
        ((1.0, 1.0), False, (True, "because f has other instructions"), "CAUSE", "because f has other instructions"),
        ((1.0, 1.0), True, (False, ""), "CAUSE", "because libtorch_cpu: f holds 100 %"),
    ],
)
def test_where_the_time_goes_is_no_cause_unless_something_of_it_changed(calls, same, changed, kind, words):
    place = Pin("symbol", "libtorch_cpu: f", 1e-6, 9e-6, 7e-6, 9e-6, verdict="CAUSE", calls=calls)
    of = Instructions("libtorch_cpu: f", same, (9, 9 if same else 12), (16,), (48,))
    rest = Pin("symbol", "everything else", 0.0, 0.0, 0.0, 0.0)
    found = verdict.of_all([], {}, [place, rest], code=[of], changed=changed)
    assert (found[0], words in found[1]) == (kind, True)


def test_the_page_says_the_limits_that_the_program_has() -> None:
    page = " ".join((Path(__file__).resolve().parents[1] / "docs" / "explain.md").read_text(encoding="utf-8").split())
    assert f"at most four blocks of {BLOCK // 2**10} KiB" in page
    assert code.MOST_OTHER_BLOCKS == 4
    assert f"at least {100 * fingerprints.LEAST_SHARE:.1f} % of the samples" in page
    assert f"with {100 * fingerprints.machine_code.HOT_SHARE:.0f} % of the samples" in page
    assert f"at least {code.MOSTLY} of the share of time" in page
    assert f"fewer than {code.LEAST_SAMPLES} samples" in page
    assert f"at least {code.LEAST} of the difference" in page
