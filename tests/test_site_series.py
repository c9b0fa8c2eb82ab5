"""Does a reader see how a benchmark moved, which claims hold and what a release changed? The pages on series, claims and
releases, used as readers do.

The site is published from the results of tests/lab.py; what those do not hold (many releases, zeros, names that look like
HTML, a lane without claims) is written into a copy's data.
"""

from __future__ import annotations

import copy
import itertools
import json
import random
import re
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pytest

from contract.metrics import metric_of
from torch_history.analysis.compare import find
from torch_history.analysis.verdicts import human
from torch_history.site import charts
from torch_history.site.code import code_of

from .lab import ENVIRONMENT, LANE, MACHINE, OTHER_LANE, RELEASES
from .site_data import history_of, read_lane, serious, write_lane

ROOT = Path(__file__).resolve().parents[1]
HANGS = 10.0
"""Seconds in which no page opens that has something wrong in it."""

SOLVED = 1e-9
"""How closely a page computes what it draws."""

TIME = "intersection.Intersection.track_time"
PEAK = "intersection.Intersection.track_peak_memory"
SIZES = pytest.mark.parametrize("page", [(1200, 900), (360, 740)], indirect=True)
HOSTILE = "<img src=x onerror=alert(1)>"
browser = pytest.mark.browser


# --- specs and intervals, without a browser


@pytest.mark.parametrize(
    ("unit", "values", "labels"),
    [
        ("seconds", [0.011, 0.029], {"10ms", "20ms"}),
        ("seconds", [1.1e-6, 2.9e-6], {"1µs", "2µs"}),
        ("bytes", [60e6, 240e6], {"100 MB", "200 MB"}),
        ("bytes", [1.2e9, 2.4e9], {"1 GB", "2 GB"}),
        ("count", [1, 2], {"1", "2"}),
        ("count", [10_000, 27_000], {"10,000", "20,000"}),
    ],
)
def test_the_axis_has_units(unit: str, values: list[float], labels: set[str]) -> None:
    import vl_convert

    spec = charts.history_spec("linear", ["a"])
    spec["params"] = [{"name": "unit", "value": unit}, {"name": "tags", "value": ["v1", "v2"]}]
    spec["datasets"][charts.DATA] = [{"position": i, "value": value, "variant": "a"} for i, value in enumerate(values)]
    spec["layer"] = [layer for layer in spec["layer"] if layer["mark"]["type"] == "line"]
    svg = vl_convert.vegalite_to_svg({**spec, "width": 400}, charts.VEGA_LITE)
    drawn = set(re.findall(r">([^<>]+)</text>", svg))
    assert labels <= drawn
    assert unit != "count" or not any(re.search(r"\d\.\d", label) for label in drawn)


def test_the_style_sheet_has_the_colours_of_the_picture() -> None:
    style = (ROOT / "torch_history" / "site" / "templates" / "style.css").read_text(encoding="utf-8")
    light = dict(
        re.findall(
            r"(--series-\d): (#[0-9a-f]{6})", style.partition("/* series, claims, release */")[2].partition("@media")[0]
        )
    )
    assert tuple(light[f"--series-{i}"] for i in range(len(charts.PALETTE))) == charts.PALETTE


# --- helpers


def show(page: Any, site: Path, name: str, **keys: str) -> None:
    fragment = f"#{urlencode(keys)}" if keys else ""
    page.goto((site / f"{name}.html").as_uri() + fragment)
    page.reload()  # a changed fragment alone loads nothing
    ready(page)


def ready(page: Any) -> None:
    """Waits until the page shows what its address asks for."""
    page.wait_for_function("document.body.dataset.ready === (location.hash || '#')")


def keys_of(address: str) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(address).fragment).items()}


def data_of(site: Path, lane: str = LANE) -> dict[str, Any]:
    return read_lane(site / "data", lane)


def drawn(page: Any, which: int = 0) -> list[dict[str, Any]]:
    """The points of a chart, as its script has them."""
    chart = page.locator(".chart").nth(which)
    chart.scroll_into_view_if_needed()
    page.wait_for_function("node => node.dataset.drawn === 'true'", arg=chart.element_handle())
    fields = "release, variant, value, low, high"
    return list(chart.evaluate(f"node => node.spec.points.map(({{{fields}}}) => ({{{fields}}}))"))


def table_of(page: Any) -> dict[str, dict[str, str]]:
    """Variant -> release -> what the first table of numbers shows."""
    table = page.locator(".from-the-end table").first
    head = [text.strip() for text in table.locator("thead th").all_text_contents()]
    found = {}
    for row in table.locator("tbody tr").all():
        cells = [text.strip() for text in row.locator("th, td").all_text_contents()]
        found[cells[0]] = dict(zip(head[1:], cells[1:], strict=True))
    return found


def medians(lane: dict[str, Any], benchmark: str, size: str) -> dict[str, dict[str, float]]:
    """Variant -> release -> median of its launches, from the data alone."""
    found: dict[str, dict[str, float]] = {}
    for series in lane["series"]:
        if (series["benchmark"], series["size"]) == (benchmark, size):
            numbers: dict[str, list[float]] = {}
            for (release, _), number in zip(lane["patterns"][series["pattern"]], series["numbers"], strict=True):
                numbers.setdefault(lane["releases"][release]["tag"], []).append(number)
            found[series["variant"]] = {tag: statistics.median(of) for tag, of in numbers.items()}
    return found


def cleared(lane: dict[str, Any], benchmark: str, size: str) -> dict[str, dict[str, float]]:
    """Variant -> release -> median of its times, less what their sessions do to the whole question."""
    found: dict[str, dict[str, float]] = {}
    stored = history_of(lane)
    for row, series in zip(lane["series"], stored, strict=True):
        if (row["benchmark"], row["size"]) == (benchmark, size):
            fit = stored.fits[series.environment, series.question]
            tags = [tag for tag, of in stored[series].items() if any(case.number for _, case in of)]
            found[row["variant"]] = {tag: float(np.median(fit.cleared(series, tag))) for tag in tags}
    return found


def opened(page: Any, address: str) -> float:
    """Seconds until a page is there, the least of three: other processes only add to it."""
    taken = []
    for _ in range(3):
        page.goto("about:blank")
        begun = time.monotonic()
        page.goto(address)
        ready(page)
        taken.append(time.monotonic() - begun)
    return min(taken)


def in_width(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


@pytest.fixture
def changed(site: Path, tmp_path: Path) -> Callable[..., Path]:
    """A copy of the site with the one lane given."""

    def write(lane: dict[str, Any]) -> Path:
        folder = tmp_path / "copy"
        shutil.copytree(site, folder, ignore=shutil.ignore_patterns("asv", "feeds", "data"))
        (folder / "data").mkdir()
        index = json.loads((site / "data" / "index.json").read_text(encoding="utf-8"))
        about = {**index["lanes"][0], "id": lane["id"], "machine": lane["machine"]["machine"]}
        index = json.dumps({**index, "lanes": [about]}).replace("<", "\\u003c")
        (folder / "data" / "index.js").write_text(f"torchHistory.index({index});", encoding="utf-8")
        write_lane(folder / "data", lane)
        return folder

    return write


def made_up(releases: int, variants: int, launches: int = 3, unit: str = "seconds") -> dict[str, Any]:
    """A lane of one benchmark, whose number is the variant's from 1 on, in milliseconds, with noise of 1 %."""
    chance = random.Random(0)
    metric = "time" if unit == "seconds" else "operators"
    tags = [f"v{1 + i // 100}.{i % 100}.0" for i in range(releases)]

    def number(variant: int) -> float:
        return (variant + 1) * 1e-3 * (1 + chance.gauss(0, 0.01)) if unit == "seconds" else float(variant)

    return {
        "schema": 2,
        "id": "made-up",
        "machine": {"machine": "made-up", "device": "cpu"},
        "environment": "release-py3.11",
        "words": "made up",
        "releases": [
            {
                "tag": tag,
                "date": f"{2016 + i // 100}-{1 + i % 100 // 9:02}-{1 + i % 9:02}",
                "estimated": False,
                "facts": {},
            }
            for i, tag in enumerate(tags)
        ],
        "rounds": [[f"session-{i // 4:04}", 1 + k] for i in range(releases) for k in range(launches)],
        "reasons": [],
        "patterns": [[[i, (i - i % 4) * launches + k] for i in range(releases) for k in range(launches)]],
        "series": [
            {
                "question": "question",
                "metric": metric,
                "benchmark": f"question.Question.track_{metric}",
                "parameters": [f"variant_{variant}", "small"],
                "variant": f"variant_{variant}",
                "size": "small",
                "unit": unit if unit == "seconds" else "",
                "pattern": 0,
                "numbers": [number(variant) for _ in range(releases * launches)],
                "disturbed": [],
                "missing": [],
            }
            for variant in range(variants)
        ],
        "steps": [],
        "claims": [],
        "limits": [],
    }


# --- series


@browser
def test_without_a_benchmark_every_series_is_offered(site: Path, page: Any) -> None:
    show(page, site, "series")
    links = page.locator("#content a").evaluate_all("nodes => nodes.map((node) => node.href)")
    offered = {(keys_of(link)["benchmark"], keys_of(link).get("size", "")) for link in links}
    assert offered == {(series["benchmark"], series["size"]) for series in data_of(site)["series"]}
    assert "saved tensors" in page.locator("h2").all_text_contents()
    page.locator("#content a").first.click()
    ready(page)
    assert drawn(page)


@browser
@SIZES
def test_the_chart_has_the_numbers_of_the_table(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=TIME, size="small")
    lane = data_of(site)
    table = table_of(page)
    points = drawn(page)
    expected = cleared(lane, TIME, "small")
    assert set(table) == set(expected)
    assert len([point for point in points if point["value"] is not None]) == sum(map(len, expected.values())) > 20
    for point in points:
        shown = table[point["variant"]][point["release"]]
        if point["value"] is None:
            assert re.fullmatch(r"(none|failed) \(\d+\)", shown)
        else:
            assert point["value"] == pytest.approx(expected[point["variant"]][point["release"]], rel=SOLVED)
            assert point["low"] <= point["value"] <= point["high"]
            assert shown == human(point["value"], "seconds")
    assert in_width(page)


@browser
@SIZES
def test_the_script_of_a_variant_is_loaded_when_it_is_opened(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=TIME, size="small", variant="eager")
    name = "code-intersection-eager"
    assert not page.locator(f"script[src*='{name}']").count()
    page.locator("details.code summary", has_text=re.compile("^eager$")).click()
    code = page.locator("details.code[open] pre code")
    code.wait_for()
    (wanted,) = (
        each["text"]
        for each in json.loads((site / "data" / f"{name}.json").read_text())["scripts"]
        if (each["benchmark"], each["size"]) == (TIME, "small")
    )
    assert code.text_content() == wanted
    assert "def overlap(" in wanted
    assert page.locator(f"script[src*='{name}']").count() == 1


@browser
def test_reproduce_leads_to_the_script_with_both_numbers_and_what_to_install(lab: Path, site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=TIME, size="small", variant="scripted", release="v2.1.0")
    (change,) = (
        each
        for each in find(lab / "results", MACHINE, ENVIRONMENT, "v2.0.1", "v2.1.0").changes
        if each.series.benchmark == TIME and "'scripted'" in each.series.parameters
    )
    before = page.url
    page.get_by_role("link", name="Reproduce scripted").press("Enter")
    code = page.locator("details.code[open]")
    code.locator("pre").wait_for()
    assert page.url == before
    assert code.locator("summary").inner_text() == "scripted"
    assert page.evaluate("document.activeElement.textContent") == "scripted"
    assert "It prints one number: seconds of a call." in code.inner_text()
    numbers = {"2.0.1": change.old, "2.1.0": change.new}
    assert code.locator(".numbers li").all_inner_texts() == [
        f"v{tag}: {human(number, 'seconds')} by the suite, in the rounds that both releases share. "
        f"pip install torch=={tag} numpy=={numpy_of(tag)}"
        for tag, number in numbers.items()
    ]
    assert serious(page) == []
    address = {"benchmark": TIME, "size": "small", "variant": "scripted", "release": "v2.1.0", "reproduce": "1"}
    show(page, site, "series", **address)
    page.locator("details.code[open] pre").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "scripted"
    top = page.evaluate("document.querySelector('details.code[open]').getBoundingClientRect().top")
    assert 0 <= top < page.viewport_size["height"], "an address that asks for the script shows it"
    show(page, site, "series", benchmark="warm_up.WarmUp.track_first_call", size="one shape")
    assert page.locator("#reproduce").count() == 0


def numpy_of(release: str) -> str:
    """As tests/lab.py plants it."""
    return f"1.{20 + RELEASES[ENVIRONMENT].index(release)}.0"


@browser
@SIZES
def test_evidence_of_a_cause_is_on_the_page_of_its_series(site: Path, changed: Callable[..., Path], page: Any) -> None:
    lane = copy.deepcopy(data_of(site))
    known: dict[str, Any] = {
        "environment": ENVIRONMENT,
        "benchmark": TIME,
        "parameters": ["'scripted'", "'small'"],
        "old": "v2.0.1",
    }
    known |= {"new": "v2.1.0", "ratio": 7.0, "verdict": "CAUSE", "words": "because of a lever", "seen_on": ""}
    lane["evidence"] = [
        {**known, "reproduced": [0.001, 0.006]},
        {**known, "new": "v2.2.0", "reproduced": [0.001, 0.002]},
    ]
    folder = changed(lane)
    show(page, folder, "series", benchmark=TIME, size="small", variant="scripted", release="v2.1.0", evidence="1")
    told = page.locator("section[aria-labelledby=evidence] li").all_inner_texts()
    start = "scripted, v2.0.1 to v2.{}.0: CAUSE, because of a lever. "
    start += "A script apart from the suite gave {} on v2.0.1 and {} on v2.{}.0"
    assert told == [
        f"{start.format(1, human(0.001, 'seconds'), human(0.006, 'seconds'), 1)}, which confirms it.",
        f"{start.format(2, human(0.001, 'seconds'), human(0.002, 'seconds'), 2)}, which does not confirm it.",
    ]
    assert in_width(page)
    assert serious(page) == []


def test_a_variant_of_cpp_and_a_first_call_have_a_reason_instead_of_a_script() -> None:
    cpp = ("selection.Selection.track_time", "'cpp_mask'", "'vector 1 % x 1'")
    first = ("warm_up.WarmUp.track_first_call", "'eager'", "'one shape'")
    unknown = ("selection.Selection.track_time", "'../x'", "'vector 1 % x 1'")
    found = code_of([cpp, first, unknown], ROOT)
    assert set(found) == {"code-selection-cpp_mask", "code-warm_up-eager"}
    for of_variant in found.values():
        (case,) = of_variant["scripts"]
        assert case["why"]
        assert not case["text"]


@browser
def test_a_missing_number_has_its_reason_below(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=PEAK, size="small")
    shown = table_of(page)["compiled"]["v1.13.1"]
    number = int(re.fullmatch(r"none \((\d+)\)", shown)[1])  # type: ignore[index]
    reasons = page.locator(".lane").first.locator("ol.sentence-list").last.locator("li").all_text_contents()
    lane = data_of(site)
    wanted = (PEAK, "compiled", "small")
    (series,) = (each for each in lane["series"] if (each["benchmark"], each["variant"], each["size"]) == wanted)
    asked = [
        lane["reasons"][reason]
        for release, reason, _ in series["missing"]
        if lane["releases"][release]["tag"] == "v1.13.1"
    ]
    assert [reasons[number - 1]] == asked


def in_sessions(speeds: list[float], apart: float) -> dict[str, Any]:
    """A lane whose sessions of three releases begin with the last one of the session before, in which everything takes
    `speeds` times as long, and one session of two more releases, tied to none, where it takes `apart`."""
    lane = made_up(2 * len(speeds) + 3, 2, 1)
    blocks = [([2 * i, 2 * i + 1, 2 * i + 2], speed) for i, speed in enumerate(speeds)]
    blocks.append(([2 * len(speeds) + 1, 2 * len(speeds) + 2], apart))
    placed = [(release, block, speed) for block, (of, speed) in enumerate(blocks) for release in of for _ in range(2)]
    lane["rounds"] = [[f"session-{block:04}", 1] for block in range(len(blocks) - 1)] + [["session", 1]]
    lane["patterns"] = [[[release, block] for release, block, _ in sorted(placed)]]
    chance = random.Random(1)
    for variant, series in enumerate(lane["series"]):
        series["numbers"] = [(1 + variant) * speed * chance.uniform(0.98, 1.02) for *_, speed in sorted(placed)]
    return lane


@browser
def test_times_are_drawn_less_what_their_sessions_do_to_the_whole_question(
    changed: Callable[..., Path], page: Any
) -> None:
    lane = in_sessions([1.0, 1.6, 0.8, 1.2], 5.0)
    here = {"benchmark": "question.Question.track_time", "size": "small"}
    folder = changed(lane)
    show(page, folder, "series", **here)
    expected = cleared(lane, here["benchmark"], "small")
    points = drawn(page)
    assert len(points) == sum(map(len, expected.values())) == 22
    for point in points:
        assert point["value"] == pytest.approx(expected[point["variant"]][point["release"]], rel=SOLVED)
    said = "What a session does to all times of its question is taken off."
    assert said in page.locator("figcaption").first.text_content()
    table = table_of(page)
    assert table["variant_1"]["v1.0.0"] == human(expected["variant_1"]["v1.0.0"], "seconds")
    page.get_by_label("Times").select_option("raw")
    ready(page)
    assert keys_of(page.url)["times"] == "raw"
    raw = medians(lane, here["benchmark"], "small")
    assert {(point["variant"], point["release"]): point["value"] for point in drawn(page)} == {
        (variant, tag): value for variant, of in raw.items() for tag, value in of.items()
    }
    assert said not in page.locator("figcaption").first.text_content()


@browser
def test_counts_have_no_scale(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=PEAK, size="small")
    drawn(page)
    assert page.get_by_label("Times").count() == 0
    assert "taken off" not in page.locator("figcaption").first.text_content()


@browser
def test_pickers_choose_what_there_is_and_the_address_keeps_it(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=PEAK, size="small", variant="eager")
    page.get_by_label("Question").select_option("selection")
    ready(page)
    assert keys_of(page.url) == {"benchmark": "selection.Selection.track_peak_memory", "size": "rows 1 % x 1"}
    page.get_by_label("Metric").select_option("time")
    ready(page)
    page.get_by_label("Size").select_option("vector 1 % x 100")
    ready(page)
    expected = {"benchmark": "selection.Selection.track_time", "size": "vector 1 % x 100"}
    assert keys_of(page.url) == expected
    page.get_by_label("Question").select_option("warm_up")
    ready(page)
    assert keys_of(page.url)["benchmark"].startswith("warm_up.")
    page.go_back()
    ready(page)
    assert page.get_by_label("Size").input_value() == "vector 1 % x 100"
    page.reload()
    ready(page)
    assert page.get_by_label("Question").input_value() == "selection"
    assert page.get_by_label("Metric").input_value() == "time"
    assert set(table_of(page)) < set(medians(data_of(site), *expected.values()))
    assert len(table_of(page)) == 8


@browser
def test_views_are_kept_in_the_address(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=TIME, size="small")
    assert page.get_by_label("Scale").input_value() == "log"
    page.get_by_label("Releases").select_option("date")
    page.get_by_label("Scale").select_option("linear")
    page.get_by_label("Relative to").select_option("best")
    page.get_by_role("button", name="eager", exact=True).click()
    ready(page)
    assert {key: keys_of(page.url)[key] for key in ("x", "y", "relative")} == {
        "x": "date",
        "y": "linear",
        "relative": "best",
    }
    before = drawn(page)
    assert before
    assert "eager" not in {point["variant"] for point in before}
    assert page.locator(".chart").first.evaluate("node => [node.spec.x, node.spec.y]") == ["date", "linear"]
    page.reload()
    ready(page)
    assert drawn(page) == before
    assert page.get_by_role("button", name="eager", exact=True).get_attribute("aria-pressed") == "false"
    assert page.get_by_label("Releases").input_value() == "date"


@browser
def test_numbers_relative_to_the_fastest_and_to_the_limit(site: Path, page: Any) -> None:
    lane = data_of(site)
    show(page, site, "series", benchmark=TIME, size="small", relative="best", variants="eager,scripted")
    assert page.get_by_label("Relative to").locator("option").all_text_contents()[1:] == [
        "the fastest variant of each release",
        "the first release, each variant's own",
    ]
    times = cleared(lane, TIME, "small")
    for point in drawn(page):
        fastest = min(of[point["release"]] for of in times.values() if point["release"] in of)
        assert point["value"] == pytest.approx(times[point["variant"]][point["release"]] / fastest, rel=SOLVED)
    for variant, shown in table_of(page).items():
        for release, text in shown.items():
            fastest = min(of[release] for of in times.values() if release in of)
            assert float(text.rstrip("×")) == pytest.approx(times[variant][release] / fastest, rel=0.01)
    show(page, site, "series", benchmark=PEAK, size="small")
    page.get_by_label("Relative to").select_option(label="the bytes of the result")
    ready(page)
    assert table_of(page)["eager"]["v2.15.0"] == "4.00×"
    assert {point["value"] for point in drawn(page) if point["variant"] == "eager"} == {4}
    assert "the bytes of the result" in page.locator("figure .axis").first.inner_text()


@browser
def test_the_chosen_release_is_marked_and_said_against_the_one_before(lab: Path, site: Path, page: Any) -> None:
    measured = list(medians(data_of(site), TIME, "small")["scripted"])
    before, old, new = measured[-3:]
    show(page, site, "series", benchmark=TIME, size="small", variant="scripted", release=new)
    told = page.locator(".told li").first.inner_text()
    comparison = find(lab / "results", MACHINE, ENVIRONMENT, old, new)
    from torch_history.analysis.compare import sentence

    advice = page.locator(".told .instead").inner_text()
    assert re.match(
        rf"What to do instead of scripted: On {new} \w+ \(.+\) does the same [67]\.\d\d times faster \(", advice
    )
    (change,) = (
        each for each in comparison.changes if each.series.benchmark == TIME and "'scripted'" in each.series.parameters
    )
    assert told == sentence(change, comparison.why.get(change.series, ""))
    assert page.locator(".from-the-end th.chosen").all_text_contents() == [new]
    assert drawn(page)
    assert page.locator(".chart").first.evaluate("node => node.spec.tags[node.spec.chosen]") == new
    page.get_by_role("link", name="Mark no release").click()
    ready(page)
    assert page.locator(".told").count() == 0
    page.locator(".from-the-end").first.get_by_role("link", name=old, exact=True).click()
    ready(page)
    assert page.locator(".told h2").inner_text() == f"{old} against {before}"
    oldest = data_of(site)["releases"][0]["tag"]
    show(page, site, "series", benchmark=TIME, size="small", release=oldest)
    assert "the oldest release measured here" in page.locator(".told").inner_text()
    show(page, site, "series", benchmark=TIME, size="small", release="v9.9.9")
    assert "v9.9.9 was not measured on" in page.locator(".told").inner_text()


@browser
def test_what_happened_is_told_and_numbered_in_the_chart(site: Path, page: Any) -> None:
    lane = data_of(site)
    show(page, site, "series", benchmark=PEAK, size="small")
    mine = {i for i, series in enumerate(lane["series"]) if (series["benchmark"], series["size"]) == (PEAK, "small")}
    steps = [step for step in lane["steps"] if step["series"] in mine]
    expected, told = [], set()
    for step in steps:
        first, stop, whole = step["sentence"].rpartition(". ")
        expected.append(f"{first}." if stop and (step["series"], whole) in told else step["sentence"])
        told.add((step["series"], whole))
    assert any("it is no longer fused" in sentence and sentence.startswith("v2.1.0: ") for sentence in expected)
    assert page.locator(".lane").first.locator("ol.sentence-list").first.locator("li").all_text_contents() == expected
    drawn(page)
    marks = page.locator(".chart").first.evaluate("node => node.spec.steps.map(({tag, numbers}) => [tag, numbers])")
    numbered: dict[str, list[int]] = {}
    for number, step in enumerate(steps, 1):
        numbered.setdefault(step["new"], []).append(number)
    assert dict(marks) == numbered
    assert numbers_in(labels_of(page)) == sorted(number for of in numbered.values() for number in of)


def labels_of(page: Any) -> list[str]:
    return [str(text) for text in page.locator(".chart svg text.event").all_text_contents()]


def numbers_in(labels: list[str]) -> list[int]:
    """`3–5, 7` -> 3, 4, 5, 7, of all labels together."""
    ends = [part.split("–") for label in labels for part in label.split(", ")]
    return sorted(number for part in ends for number in range(int(part[0]), int(part[-1]) + 1))


@browser
@pytest.mark.parametrize("page", [(360, 740), (1200, 900)], indirect=True)
def test_numbers_of_what_happened_do_not_touch_in_the_chart(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=TIME, size="small", all="1")
    drawn(page)
    count = page.locator(".lane").first.locator("ol.sentence-list").first.locator("li").count()
    for crowd in (0, 12):
        if crowd:
            page.evaluate(
                """many => { const node = document.querySelector(".chart");
                node.spec.steps = Array.from({length: many}, (_, i) => ({position: Math.floor(i / 2), numbers: [i + 1]}));
                node.replaceChildren(); window.dispatchEvent(new Event("beforeprint")); }""",
                crowd,
            )
        boxes = [label.bounding_box() for label in page.locator(".chart svg text.event").all()]
        boxes.sort(key=lambda box: float(box["x"]))
        assert numbers_in(labels_of(page)) == [*range(1, (crowd or count) + 1)]
        assert all(left["x"] + left["width"] <= right["x"] for left, right in itertools.pairwise(boxes))


@browser
def test_what_happened_to_the_variant_of_the_address_comes_first(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=PEAK, size="small", variant="scripted", variants="eager,scripted", all="1")
    lane = data_of(site)
    named = {
        i for i, series in enumerate(lane["series"]) if series["benchmark"] == PEAK and series["variant"] == "scripted"
    }
    steps = [
        step for step in lane["steps"] if step["series"] in named and lane["series"][step["series"]]["size"] == "small"
    ]
    said = page.locator(".lane").first.locator("ol.sentence-list").first.locator("li").all_text_contents()
    assert [text[:30] for text in said[: len(steps)]] == [step["sentence"][:30] for step in steps]
    assert steps
    assert "What happened, to scripted first, each newest" in page.locator(".lane").first.inner_text()


@browser
def test_the_other_lane_of_the_machine_is_drawn_apart(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=TIME, size="small", variants="eager,scripted")
    assert page.locator(".chart").count() == 1
    loaded = "[...document.scripts].filter((script) => script.src.includes('py3-9')).length"
    assert page.evaluate(loaded) == 0
    other = page.locator("details.lane")
    assert other.locator("summary").first.inner_text().endswith("Python 3.9")
    other.locator("summary").first.click()
    page.wait_for_function("document.querySelectorAll('.chart').length === 2")
    assert page.evaluate(loaded) > 0
    expected = cleared(data_of(site, OTHER_LANE), TIME, "small")
    points = drawn(page, which=1)
    assert {point["variant"] for point in points} == {"eager", "scripted"}
    for point in points:
        assert point["value"] == pytest.approx(expected[point["variant"]][point["release"]], rel=SOLVED)
    show(page, site, "series", lane=OTHER_LANE, benchmark=TIME, size="small")
    assert page.locator("#content h3").first.inner_text().endswith("Python 3.9")


@browser
def test_chips_and_pickers_by_keyboard_alone(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=TIME, size="small")
    page.locator("#choose-relative").focus()
    for focused in ("choose-times", "variant-0"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == focused
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    ready(page)
    chip = page.locator("#variant-1")
    assert chip.get_attribute("aria-pressed") == "false"
    assert page.evaluate("document.activeElement.id") == "variant-1"
    page.keyboard.press("Enter")
    ready(page)
    assert chip.get_attribute("aria-pressed") == "true"
    page.locator("#choose-y").focus()
    page.keyboard.press("ArrowDown")
    ready(page)
    assert keys_of(page.url)["y"] == "linear"
    assert page.evaluate("document.activeElement.id") == "choose-y"
    region = page.locator(".lane .scroll").first
    region.focus()
    assert page.evaluate("document.activeElement.getAttribute('role')") == "region"


@browser
def test_pointing_at_a_mark_tells_its_release_and_number(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=TIME, size="small", variants="eager")
    expected = cleared(data_of(site), TIME, "small")["eager"]
    drawn(page)
    chart = page.locator(".chart").first
    place = chart.evaluate(
        """node => {
            const {point, at} = node.placed[2];
            const box = node.querySelector("svg").getBoundingClientRect();
            return {x: box.left + at[0], y: box.top + at[1], release: point.release};
        }"""
    )
    page.mouse.move(place["x"], place["y"] + 25)  # the nearest point is meant, wherever in the chart the pointer is
    tip = page.locator(".tip")
    tip.wait_for()
    assert place["release"] in tip.inner_text()
    assert human(expected[place["release"]], "seconds") in tip.inner_text()
    page.mouse.move(0, 0)
    tip.wait_for(state="hidden")


@browser
def test_bytes_are_in_units_of_a_person_and_exact_on_demand(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=PEAK, size="small", variants="eager")
    exact = medians(data_of(site), PEAK, "small")["eager"]
    assert set(table_of(page)["eager"].values()) == {"240 MB"}
    page.locator("#choose-exact").check()
    ready(page)
    assert table_of(page)["eager"] == {tag: human(number, "bytes") for tag, number in exact.items()}


@browser
def test_numbers_relative_to_those_of_the_chosen_release(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=PEAK, size="small", relative="start", release="v2.15.0")
    lane = medians(data_of(site), PEAK, "small")
    for point in drawn(page):
        if point["value"] is not None:
            of = lane[point["variant"]]
            assert point["value"] == pytest.approx(of[point["release"]] / of["v2.15.0"])


@browser
def test_charts_are_in_the_colours_of_the_theme(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=TIME, size="small", variants="eager")
    drawn(page)
    colour = "getComputedStyle(document.querySelector('.chart .line')).stroke"
    light = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"{colour} !== '{light}'")


@browser
def test_a_release_is_compared_with_the_base_that_the_map_was_made_with(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=PEAK, size="small", variant="scripted", release="v2.15.0", base="v1.13.1")
    assert page.locator(".told h2").inner_text() == "v2.15.0 against v1.13.1"
    assert "HUNGRIER 4.00 times" in page.locator(".told li").first.inner_text()


@browser
def test_no_variant_chosen_and_unknown_names_are_said(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=PEAK, size="small", variants="eager")
    page.get_by_role("button", name="eager", exact=True).click()
    ready(page)
    assert "choose at least one" in page.locator(".lane").first.inner_text()
    show(page, site, "series", benchmark="nothing.Such.track_time")
    assert "There is no series 'nothing.Such.track_time'" in page.get_by_role("alert").inner_text()
    show(page, site, "series", benchmark=TIME, size="huge", variants="nobody", relative="limit", x="?", y="?")
    assert "There is no size 'huge'" in page.get_by_role("alert").inner_text()
    assert drawn(page)
    show(page, site, "series", benchmark=TIME, size="small", variant="nobody")
    assert page.get_by_role("alert").inner_text() == "There is no variant 'nobody' of it here."


@browser
def test_what_ran_nowhere_has_a_sentence_in_place_of_an_empty_chart(changed: Callable[..., Path], page: Any) -> None:
    lane = made_up(4, 2)
    lane["patterns"], lane["reasons"] = [[]], ["it needs torch >= 9"]
    for series in lane["series"]:
        series.update(numbers=[], missing=[[i, 0, 0] for i in range(4)])
    show(page, changed(lane), "series", benchmark="question.Question.track_time", size="small")
    assert page.locator("canvas").count() == 0
    assert page.get_by_text("There is nothing to draw. No variant shown has a number on any release").is_visible()
    assert page.get_by_text("it needs torch >= 9").first.is_visible()


@browser
def test_asvs_page_shows_the_same_variants(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=PEAK, size="small", variants="eager,scripted")
    page.get_by_role("link", name="asv's page of it").first.click()
    page.locator("#main-graph canvas").first.wait_for()
    legend = page.locator(".legend").inner_text()
    assert "eager" in legend
    assert "scripted" in legend
    assert "traced" not in legend


@browser
def test_zeros_have_no_place_on_a_logarithmic_scale_and_it_is_said(changed: Callable[..., Path], page: Any) -> None:
    site = changed(made_up(4, 2, unit="count"))
    show(page, site, "series", benchmark="question.Question.track_operators", size="small", y="log")
    assert "4 numbers are 0, which a logarithmic scale cannot show" in page.locator("figcaption").inner_text()
    assert [point["value"] for point in drawn(page)] == [None] * 4 + [1] * 4
    show(page, site, "series", benchmark="question.Question.track_operators", size="small", variants="variant_0")
    assert [point["value"] for point in drawn(page)] == [0] * 4


@browser
@SIZES
def test_names_are_text_on_all_three_pages(site: Path, changed: Callable[..., Path], page: Any) -> None:
    lane = copy.deepcopy(data_of(site))
    for series in lane["series"]:
        series["variant"] = series["variant"].replace("eager", HOSTILE)
        series["parameters"] = [each.replace("eager", HOSTILE) for each in series["parameters"]]
    lane["reasons"] = [HOSTILE + reason for reason in lane["reasons"]]
    for claim in lane["claims"]:
        claim["words"] = claim["advice"] = claim["summary"] = HOSTILE
        claim["answers"] = [{**answer, "advice": HOSTILE} for answer in claim["answers"]]
        claim["turns"] = [{**turn, "why": HOSTILE} for turn in claim["turns"]]
        claim["picture"]["variants"] = [each.replace("eager", HOSTILE) for each in claim["picture"]["variants"]]
    for release in lane["releases"]:
        release["facts"]["packages"] = [f"{HOSTILE}==1"]
    folder = changed(lane)
    show(page, folder, "series", benchmark=TIME, size="small")
    assert HOSTILE in table_of(page)
    assert HOSTILE in {point["variant"] for point in drawn(page)}
    page.get_by_role("button", name=HOSTILE, exact=True).click()
    ready(page)
    assert HOSTILE not in {point["variant"] for point in drawn(page)}
    for name in ("series", "claims", "release"):
        show(page, folder, name)
        assert page.locator("img").count() == 0
        assert name == "series" or HOSTILE in page.locator("#content").inner_text()
        assert in_width(page)


@browser
def test_a_thousand_releases_of_eight_variants_open(changed: Callable[..., Path], page: Any) -> None:
    site = changed(made_up(1000, 8))
    taken = opened(
        page, (site / "series.html").as_uri() + "#benchmark=question.Question.track_time&size=small&release=v8.0.0"
    )
    assert len(drawn(page)) == 8000
    assert page.locator(".chart .mark").count() == 8
    assert "24,000 launches are too many" in page.locator("figcaption").inner_text()
    assert page.locator(".from-the-end thead th").count() == 61
    page.get_by_label("all 1000 releases").check()
    ready(page)
    assert page.locator(".from-the-end thead th").count() == 1001
    assert in_width(page)
    assert taken < HANGS, f"{taken:.2f} s"


@browser
def test_of_many_variants_the_most_interesting_are_shown(changed: Callable[..., Path], page: Any) -> None:
    lane = made_up(6, 20)
    lane["steps"] = [
        {"series": 15, "kind": "step", "old": "v1.1.0", "new": "v1.2.0", "until": "v1.2.0", "verdict": "SLOWER", "ratio": 2,
         "sentence": "v1.2.0: question time, variant_15 small: SLOWER 2.00 times."}
    ]  # fmt: skip
    folder = changed(lane)
    show(page, folder, "series", benchmark="question.Question.track_time", size="small", variant="variant_18")
    shown = set(table_of(page))
    assert len(shown) == 8
    assert {"variant_15", "variant_18"} <= shown
    show(page, folder, "series", benchmark="question.Question.track_time", size="small")
    drawn(page)
    looks = page.locator(".chart").first.evaluate("node => node.spec.points.map(({slot}) => slot)")
    assert len(set(looks)) == 8
    show(page, folder, "series", benchmark="question.Question.track_time", size="small", variant="variant_18")
    page.get_by_label("all 20 variants").check()
    ready(page)
    assert len(table_of(page)) == 20
    page.get_by_label("all 20 variants").uncheck()
    ready(page)
    assert set(table_of(page)) == shown


# --- claims


def runs_of(section: Any) -> list[tuple[str, ...]]:
    """What the words under a claim's strip say: an answer, and its first and last release."""
    items = section.locator(".runs li").all()
    return [
        (item.locator(".answer").inner_text().split(" ", 1)[1], *item.locator("a").all_text_contents())
        for item in items
    ]


@browser
@SIZES
def test_claims_are_answered_release_by_release(site: Path, page: Any) -> None:
    show(page, site, "claims")
    lane = data_of(site)
    assert page.locator("#content h2").all_text_contents() == [claim["words"] for claim in lane["claims"]]
    for i, claim in enumerate(lane["claims"]):
        section = page.locator("section.claim").nth(i)
        text = section.inner_text()
        assert claim["summary"] in text
        assert claim["advice"].replace("`", "") in text
        assert f"Advice for {lane['releases'][-1]['tag']}, the newest release" in text
        assert claim["answers"][-1]["sentence"] in text
        cells = section.locator(".strip .cell").evaluate_all("nodes => nodes.map(({title}) => title)")
        assert cells == [f"{answer['release']}: {answer['word']}" for answer in claim["answers"]]
        assert runs_of(section) == [
            (word, *([tags[0], tags[-1]] if len(tags) > 1 else tags))
            for word, tags in (
                (word, [answer["release"] for answer in of])
                for word, of in itertools.groupby(claim["answers"], key=lambda answer: answer["word"])
            )
        ]
        turns = section.locator(".turns li").all_text_contents()
        assert len(turns) == len(claim["turns"])
        assert all(
            each["new"] in said and each["why"] in said for each, said in zip(claim["turns"], turns, strict=True)
        )
        picture = claim["picture"]
        points = drawn(page, which=i)
        numbers = cleared if metric_of(picture["benchmark"]).varies else medians
        expected = numbers(lane, picture["benchmark"], picture["size"])
        assert {point["variant"] for point in points} == set(picture["variants"])
        assert all(
            point["value"] == pytest.approx(expected[point["variant"]][point["release"]], rel=SOLVED)
            for point in points
            if point["value"] is not None
        )
        section.get_by_text("The numbers as a table").click()
        section.locator("details tbody th").first.wait_for()
        assert section.locator("details tbody th").count() == len(picture["variants"])
        section.get_by_text("The numbers behind each").click()
        section.locator("dd").first.wait_for()
        assert section.locator("dd").all_text_contents() == [
            answer["sentence"] for answer in reversed(claim["answers"])
        ]
    assert in_width(page)


@browser
def test_a_claim_is_advised_for_the_chosen_release(site: Path, page: Any) -> None:
    lane = data_of(site)
    show(page, site, "claims", to="v2.0.1")
    for i, claim in enumerate(lane["claims"]):
        (answer,) = (each for each in claim["answers"] if each["release"] == "v2.0.1")
        panel = page.locator("section.claim .panel").nth(i)
        assert panel.locator("h3").inner_text() == "Advice for v2.0.1"
        assert panel.locator("p").inner_text() == answer["advice"].replace("`", "")
    page.get_by_role("combobox", name="Advice for").select_option("v2.1.0")
    ready(page)
    assert page.locator("section.claim .panel h3").first.inner_text() == "Advice for v2.1.0"
    show(page, site, "claims", **{"from": "2.0.1", "to": "v2.1.0"})
    before = next(each for each in lane["claims"][0]["answers"] if each["release"] == "v2.0.1")
    assert before["sentence"] in page.locator("section.claim").first.inner_text()
    show(page, site, "claims", **{"from": "v0.1", "to": "v2.1.0"})
    assert page.get_by_role("alert").inner_text() == "There are no results of 'v0.1' here."
    show(page, site, "claims", to="v2.1.0")
    assert "to=v2.1.0" in page.get_by_role("link", name="Upgrade", exact=True).get_attribute("href")


@browser
def test_a_claims_picture_leads_to_its_series(site: Path, page: Any) -> None:
    show(page, site, "claims")
    picture = data_of(site)["claims"][0]["picture"]
    page.get_by_role("link", name="The series in detail").first.click()
    ready(page)
    assert keys_of(page.url)["benchmark"] == picture["benchmark"]
    assert {point["variant"] for point in drawn(page)} == set(picture["variants"])


@browser
def test_a_claim_that_nothing_answers_says_so(site: Path, changed: Callable[..., Path], page: Any) -> None:
    lane = data_of(site)
    lane["claims"][0]["answers"] = []
    lane["claims"][1]["picture"] = None
    folder = changed(lane)
    show(page, folder, "claims")
    assert "Nothing was measured on" in page.locator("section.claim").first.inner_text()
    assert page.locator("section.claim").nth(1).locator(".chart").count() == 0
    shutil.rmtree(folder)
    show(page, changed({**lane, "claims": []}), "claims")
    assert "that answers any of the claims" in page.locator("#content").inner_text()


# --- a release


@browser
@SIZES
def test_a_release_says_what_it_changed_and_what_it_could_not_run(lab: Path, site: Path, page: Any) -> None:
    show(page, site, "release", release="v2.1.0")
    comparison = find(lab / "results", MACHINE, ENVIRONMENT, "v2.0.1", "v2.1.0")
    for kind, title in (("worse", "Worse"), ("better", "Better"), ("changed", "Changed")):
        many = sum(change.verdict.kind == kind for change in comparison.changes)
        heading = f"{title}: {many:,} series"
        assert page.get_by_role("heading", name=heading, exact=True).count() == (1 if many else 0), heading
    section = page.locator("section[aria-labelledby=missing]").inner_text()
    assert "save_on_cpu with pinned memory needs a GPU" in section
    facts = dict(
        zip(
            page.locator(".facts").first.locator("tbody th").all_text_contents(),
            page.locator(".facts").first.locator("tbody tr td:nth-child(2)").all_text_contents(),
            strict=True,
        )
    )
    recorded = next(release["facts"] for release in data_of(site)["releases"] if release["tag"] == "v2.1.0")
    assert facts["oneDNN"] == recorded["onednn"]
    assert facts["CUDA"] == recorded["cuda"]
    assert len(facts) == len(recorded) - 1
    page.locator("#packages summary").click()
    assert page.locator("#packages tbody th").filter(has_text=re.compile("^numpy$")).count() == 1
    assert "Released on 2023-10-04" in page.locator("#content").inner_text()
    assert re.search(
        r"numbers of [\d,]+ series in \d+ rounds? of \d+ sessions? (on|from) 20\d\d-\d\d-\d\d",
        page.locator("#content").inner_text(),
    )
    begins = {"drift": "old", "step": "new", "excursion": "new"}
    steps = [step["sentence"] for step in data_of(site)["steps"] if step[begins[step["kind"]]] == "v2.1.0"]
    begun = page.locator("section[aria-labelledby=begun] li").all_text_contents()
    assert [text.removesuffix(" history").replace("`", "") for text in begun] == [
        text.replace("`", "") for text in steps
    ]
    assert in_width(page)


@browser
def test_releases_are_walked_through_and_picked(site: Path, page: Any) -> None:
    tags = [release["tag"] for release in data_of(site)["releases"]]
    show(page, site, "release", release=tags[0])
    assert page.locator("#previous").count() == 0
    assert "the oldest release measured here" in page.locator("#content").inner_text()
    page.locator("#next").focus()
    page.keyboard.press("Enter")
    ready(page)
    assert keys_of(page.url)["release"] == tags[1]
    assert page.evaluate("document.activeElement.id") == "next"
    page.locator("#choose-release").select_option(tags[-1])
    ready(page)
    assert page.locator("#next").count() == 0
    assert page.locator(".release-name").inner_text() == tags[-1]
    page.reload()
    ready(page)
    assert page.locator(".release-name").inner_text() == tags[-1]
    page.get_by_role("link", name=f"Every series from {tags[-2]} to {tags[-1]}").click()
    ready(page)
    assert {key: keys_of(page.url)[key] for key in ("from", "to")} == {"from": tags[-2], "to": tags[-1]}


@browser
def test_without_a_release_the_newest_stands_above_all_others(lab: Path, site: Path, page: Any) -> None:
    show(page, site, "release")
    tags = [release["tag"] for release in data_of(site)["releases"]]
    assert page.locator(".release-name").inner_text() == tags[-1]
    rows = page.locator("section[aria-labelledby=every] tbody tr")
    assert rows.locator("th").all_text_contents() == tags[::-1]
    for row in rows.all():
        row.scroll_into_view_if_needed()
    page.wait_for_function("![...document.querySelectorAll('.lazy')].some((node) => node.textContent === '…')")
    comparison = find(lab / "results", MACHINE, ENVIRONMENT, *tags[-2:])
    said = rows.first.inner_text()
    for verdict in ("HUNGRIER", "MORE", "FEWER"):
        many = sum(change.verdict.words == verdict for change in comparison.changes)
        assert (re.search(rf"\b{many} \S {verdict}", said) is not None) == (many > 0)
    rows.locator("a").nth(2).click()
    ready(page)
    assert page.locator(".release-name").inner_text() == tags[-3]


@browser
def test_a_release_that_was_not_measured_is_said(site: Path, page: Any) -> None:
    show(page, site, "release", release="v1.8.0")
    said = page.get_by_role("alert").inner_text()
    assert "v1.8.0 was not measured on" in said
    assert "torch-history run --lane 3.11 1.8.0" in said
    page.locator("#choose-release").select_option("v2.5.1")
    ready(page)
    assert page.locator(".release-name").inner_text() == "v2.5.1"


@browser
def test_a_thousand_releases_are_listed(changed: Callable[..., Path], page: Any) -> None:
    site = changed(made_up(1000, 8))
    taken = opened(page, (site / "release.html").as_uri())
    assert page.locator("section[aria-labelledby=every] tbody tr").count() == 60
    page.get_by_label("all 1000").check()
    ready(page)
    assert page.locator("section[aria-labelledby=every] tbody tr").count() == 1000
    assert page.locator(".lazy").filter(has_text="…").count() > 900
    assert taken < HANGS, f"{taken:.2f} s"
