"""Does each page say what Python says of the same results? The pages, used as readers do, of the site of tests/lab.py."""

import itertools
import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pytest

from torch_history.analysis.compare import find
from torch_history.analysis.series import SHOWN, Series, history
from torch_history.analysis.verdicts import human
from torch_history.site.build import code_of
from torch_history.store.launches import read_launches

from .lab import ENVIRONMENT, LANE, MACHINE, OTHER_LANE
from .test_site import read_lane

SOLVED = 1e-9
"""How closely a page computes what it draws."""

TIME = "intersection.Intersection.track_time"
PEAK = "intersection.Intersection.track_peak_memory"

pytestmark = pytest.mark.browser


def show(page: Any, site: Path, name: str, **keys: str) -> None:
    page.goto((site / f"{name}.html").as_uri() + (f"#{urlencode(keys)}" if keys else ""))
    page.reload()  # a changed fragment alone loads nothing
    ready(page)


def ready(page: Any) -> None:
    """Waits until the page shows what its address asks for."""
    page.wait_for_function("document.body.dataset.ready === (location.hash || '#')")


def keys_of(address: str) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(address).fragment).items()}


def picker(page: Any, name: str) -> Any:
    return page.get_by_role("combobox", name=name, exact=True)


def choose(control: Any, *options: Any, **more: Any) -> None:
    control.select_option(*options, **more)
    ready(control.page)


def newest(site: Path) -> dict[str, Any]:
    """The newest release against the one before it, as Python sees it."""
    return dict(json.loads((site / "data" / f"{LANE}-newest.json").read_text(encoding="utf-8")))


def data_of(site: Path) -> dict[str, Any]:
    return read_lane(site / "data", LANE)


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


def medians(lab: Path, raw: bool = False) -> dict[str, dict[str, float]]:
    """Variant -> release -> median of its times of intersection, less what their sessions do to it unless they are raw."""
    stored = history(read_launches(lab / "results", MACHINE, ENVIRONMENT, ("intersection",)))
    (fit,) = stored.fits.values()
    found: dict[str, dict[str, float]] = {}
    for series in (each for each in stored if each.benchmark == TIME):
        numbers = {tag: [case.number for _, case in of if case.number] for tag, of in stored[series].items()}
        found[series.parameters[0].strip("'")] = {
            tag: float(np.median(of if raw else fit.cleared(series, tag))) for tag, of in numbers.items() if of
        }
    return found


def plain(text: str) -> str:
    """Text of a page without the signs of verdicts."""
    return re.sub(r"\s+", " ", re.sub(r"[▲▼✕✓◆=?–] ", "", text)).strip()


def is_main(change: dict[str, Any]) -> bool:
    """Whether it is the main time of its question, and both releases have it."""
    main = {"warm_up": "median_call", "start_up": "start_time"}.get(change["question"], "time")
    return bool(change["metric"] == main and change["ratio"])


def typical_of(changes: list[dict[str, Any]]) -> float:
    """The geometric mean over the cases of each question, and of these over the questions, from the command's rows."""
    logs: dict[str, list[float]] = {}
    for change in changes:
        if is_main(change) and change["low"]:
            logs.setdefault(change["question"], []).append(math.log(change["ratio"]))
    return float(np.exp(np.mean([np.mean(of) for of in logs.values()])))


def test_the_first_screen_says_what_the_command_finds_and_draws_every_case(site: Path, page: Any) -> None:
    show(page, site, "index")
    comparison = newest(site)
    headline = page.locator("#headline").inner_text()
    assert headline.startswith(f"{comparison['old']} → {comparison['new']}: typically ")
    ratio = typical_of(comparison["changes"])
    told = re.search(r"typically ([\d.]+) times (slower|faster) in |typically no change in |: inconclusive", headline)
    assert told, headline
    if told[1]:
        assert float(told[1]) == pytest.approx(max(ratio, 1 / ratio), abs=0.01)
        assert (told[2] == "slower") == (ratio > 1)
    timed = [each for each in comparison["changes"] if is_main(each)]
    points = page.locator(".point[href]")
    assert page.get_by_role("button", name=f"Times ({points.count()})").get_attribute("aria-pressed") == "true"
    counts = Counter(each["verdict"] for each in timed)
    key = plain(page.locator(".first .legend").inner_text())
    assert all(f"{count} {SHOWN.get(verdict, verdict)}" in key for verdict, count in counts.items())
    worst = max((each for each in timed if each["verdict"] == "SLOWER"), key=lambda each: each["ratio"])
    said = page.locator("#bottom-line a").first
    assert f"{worst['ratio']:.2f} times slower" in said.inner_text()
    keys = keys_of(str(said.get_attribute("href")))
    assert [keys["benchmark"], keys["variant"]] == [worst["benchmark"], worst["parameters"][0]]


def test_points_are_reached_with_the_keyboard_and_lead_to_their_history(site: Path, page: Any) -> None:
    show(page, site, "index")
    page.locator(".point[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".cases .tip").is_visible()
    active = page.evaluate("document.activeElement.getAttribute('href')")
    assert page.locator(".point[tabindex='0']").get_attribute("href") == active
    page.keyboard.press("Enter")
    page.wait_for_url("**/series.html**")
    ready(page)
    assert page.locator(".told").count() == 1


def findings_of(page: Any) -> list[str]:
    """All findings that a page tells, after their verdicts."""
    page.locator("#more-findings > summary").evaluate_all("nodes => nodes.forEach((node) => node.click())")
    items = page.locator(".findings > li > details > summary").all_inner_texts()
    return sorted(plain(text).partition(" ")[2] for text in items)


def test_findings_are_those_of_the_command_and_stay_open(site: Path, page: Any) -> None:
    show(page, site, "index")
    comparison = newest(site)
    words = [finding["words"].replace("`", "") for finding in comparison["findings"]]
    assert findings_of(page) == sorted(plain(text) for text in words)
    page.emulate_media(media="print")
    assert page.locator(".findings > li > details > summary").last.is_visible(), "paper shows what stands closed"
    first = page.locator(".findings > li").first
    first.locator("summary").first.click()
    title = next(each for each in comparison["findings"] if each["words"].replace("`", "") in plain(first.inner_text()))
    page.wait_for_function("name => (torchHistory.address().open || '').split('|').includes(name)", arg=title["title"])
    assert first.locator("ul.sentence-list li").count() == len(title["rows"])
    page.reload()
    page.wait_for_function("document.body.dataset.ready")
    assert page.locator(".findings > li > details[open]").count() == 1


def test_what_to_do_instead_is_told_from_the_numbers_of_the_chosen_release(site: Path, page: Any) -> None:
    """tests/lab.py plants what each variant takes: vstack_rows 8 x 1.3 times 1, cat_rows 1.1; from 2.1.0 on scripted needs
    four results of memory, in_place three."""

    def instead(old: str, new: str, of: str) -> str:
        show(page, site, "index", **{"from": old, "to": new})
        item = page.locator(".findings > li").filter(has=page.locator("summary", has_text=of)).first
        item.locator("summary").first.click()
        return str(item.locator(".instead").first.inner_text())

    said = instead("v2.2.0", "v2.5.1", "vstack_rows")
    told = re.fullmatch(
        r"What to do: On v2.5.1 cat_rows \(torch.cat, a tensor per row\) does the same "
        r"([\d.]+)(?: to ([\d.]+))? times faster in (?:(\d) of \3 cases|its case)\.",
        said,
    )
    assert told, said
    for factor in (float(part or told[1]) for part in told.groups()[:2]):
        assert factor == pytest.approx(8 * 1.3 / 1.1, rel=0.1)
    means = "in-place operators on three buffers"
    said = instead("v2.0.1", "v2.1.0", "peak memory")
    assert said.startswith(f"What to do: On v2.1.0 in_place ({means}) does the same with 1.33 times less memory.")
    said = instead("v2.14.1", "v2.15.0", "selection time")
    assert said == "What to do: No variant of this question that does the same is surely faster on v2.15.0."


def test_any_two_releases_are_answered_and_are_in_the_address(site: Path, page: Any) -> None:
    show(page, site, "index")
    tags = [release["tag"] for release in data_of(site)["releases"]]
    choose(picker(page, "From"), tags[0])
    assert page.locator("#headline").inner_text().startswith(f"{tags[0]} → {tags[-1]}: ")
    assert keys_of(page.url)["from"] == tags[0]
    for link in page.locator("nav a[data-page]").all():
        assert keys_of(str(link.get_attribute("href")))["from"] == tags[0], "it stays chosen on every page"
    page.go_back()
    ready(page)
    assert page.locator("#headline").inner_text().startswith(f"{tags[-2]} → {tags[-1]}: ")
    show(page, site, "index", **{"from": tags[0].removeprefix("v"), "to": f"{tags[-1]}+cpu"})
    assert page.locator("#headline").inner_text().startswith(f"{tags[0]} → {tags[-1]}: ")


def test_two_releases_that_change_places_do_so_in_the_address(site: Path, page: Any) -> None:
    page.goto(f"{(site / 'index.html').as_uri()}#from=v2.9.0&to=v2.0.1")
    page.wait_for_url("**#from=v2.0.1&to=v2.9.0")
    assert page.locator("#headline").inner_text().startswith("v2.0.1 → v2.9.0: ")
    assert page.locator("#unasked").inner_text() == "v2.0.1 is older than v2.9.0, so it stands first."


def test_a_lane_of_a_cpu_does_not_stand_beside_cuda(site: Path, page: Any) -> None:
    show(page, site, "index", **{"from": "v2.0.1", "to": "v2.1.0"})
    dd = page.locator("#bottom-line dd")
    rows = dict(zip(page.locator("#bottom-line dt").all_inner_texts(), dd.all_text_contents(), strict=True))
    assert rows["CUDA"] == "Not measured on both."
    assert "Peak memory" in rows, "other memory is among the findings"
    page.get_by_role("button", name="Peak memory").click()
    page.locator(".first .legend", has_text="HUNGRIER").wait_for()
    assert "within 4 %" not in page.locator(".first .legend").inner_text()
    assert "Python 3.9: typically" in rows["Other CPUs"]
    page.evaluate(f"""async () => {{
        const {{lanes}} = await torchHistory.file("pairs/v2.0.1-v2.1.0");
        delete lanes.find(({{lane}}) => lane === "{OTHER_LANE}").questions.selection;
        window.dispatchEvent(new Event("hashchange"));
    }}""")
    of_others = "Python 3.9, other questions (batching, intersection, saved tensors, warm up): typically"
    dd.filter(has_text=of_others).first.wait_for()


def rows(page: Any) -> list[str]:
    return [str(text) for text in page.locator(".changes tbody th a").all_text_contents()]


def listed(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that a page lists: what has a number; exact numbers that are the same only where they are memory."""
    memory = ("peak_memory", "start_memory")
    exact = [each["verdict"] == "SAME" and each["margin"] is None and each["metric"] not in memory for each in changes]
    others = (each for each, is_exact in zip(changes, exact, strict=True) if not is_exact)
    return [each for each in others if each["verdict"] != "NEVER RAN"]


def test_every_row_says_verdict_ratio_and_cause(site: Path, page: Any) -> None:
    show(page, site, "index", all="1")
    changes = listed(newest(site)["changes"])
    found = page.locator(".changes tbody tr").all_inner_texts()
    assert len(found) == len(changes) > 50
    for change, text in zip(changes, found, strict=True):
        assert SHOWN.get(change["verdict"], change["verdict"]) in text
        assert change["why"] in text
        if change["ratio"] and 0.5 < change["ratio"] < 2 and change["unit"] == "seconds":
            way = re.search(r"([\d.]+) times (slower|faster)|no change", text)
            assert way, text
            assert float(way[1] or 1) == pytest.approx(max(change["ratio"], 1 / change["ratio"]), abs=0.006)
            assert not way[2] or (way[2] == "faster") == (change["ratio"] < 1)
    show(page, site, "index", cases="1")
    assert len(rows(page)) == 50


def test_what_cannot_be_compared_is_refused_in_a_sentence(site: Path, page: Any) -> None:
    data = data_of(site)
    tag, oldest = data["releases"][-1]["tag"], data["releases"][0]["tag"]
    for keys, said in [
        ({"from": tag, "to": tag}, f"{tag} was chosen on both sides: choose two releases."),
        ({"from": "v0.1", "to": tag}, "There are no results of 'v0.1' on "),
        ({"to": "v0.2"}, "There are no results of 'v0.2' on "),
        ({"to": "2.0.2"}, f"There are no results of '2.0.2' on {data['words']}: choose v2.0.1 or v2.1.0."),
        ({"to": oldest}, f"{oldest} is the oldest release measured on "),
    ]:
        show(page, site, "index", **keys)
        assert page.get_by_role("alert").inner_text().startswith(said)
        assert picker(page, "From").is_visible()
    choose(picker(page, "From"), tag)
    assert page.locator("#headline").inner_text().startswith(f"{oldest} → {tag}: ")
    show(page, site, "index", **{"from": oldest.removeprefix("v"), "to": tag, "verdict": "WORSE"})
    assert page.get_by_role("alert").inner_text() == "There is no verdict 'WORSE': choose below."
    assert page.locator(".changes tbody tr").count() > 0
    show(page, site, "series", benchmark=TIME, size="small", variants="%ZZ")
    assert drawn(page), "an address that was cut short"
    show(page, site, "series", question="nothing")
    assert page.get_by_role("alert").inner_text().startswith("Nothing of that kind was measured here")


def test_filters_work_together_and_are_restored(site: Path, page: Any) -> None:
    show(page, site, "index", lane=LANE, cases="1")
    changes = listed(newest(site)["changes"])
    verdicts = list(dict.fromkeys(change["verdict"] for change in changes))[:2]
    for verdict in verdicts:
        chip = page.locator(".tally button", has_text=verdict)
        assert chip.get_attribute("aria-pressed") == "false"
        chip.click()
        ready(page)
        assert chip.get_attribute("aria-pressed") == "true"
    assert keys_of(page.url)["verdict"] == ",".join(verdicts)
    chosen = [change for change in changes if change["verdict"] in verdicts]
    assert page.locator("#count").inner_text().startswith(f"{len(chosen)} of {len(changes)} series")
    choose(picker(page, "Question"), "intersection")
    choose(picker(page, "Metric"), "time")
    page.get_by_label("Contains").press_sequentially("scripted")
    page.wait_for_function("location.hash.includes('search=scripted')")
    ready(page)
    assert page.evaluate("document.activeElement.id") == "choose-search"
    of = ("intersection", "time")
    chosen = [each for each in chosen if (each["question"], each["metric"]) == of and "scripted" in each["sentence"]]
    wanted = [change["sentence"].partition(":")[0] for change in chosen]
    assert rows(page) == wanted
    page.reload()
    ready(page)
    assert rows(page) == wanted
    assert page.locator(".tally button[aria-pressed=true]").count() == 2


def test_two_releases_have_a_file_for_programs(site: Path, page: Any) -> None:
    show(page, site, "index")
    page.locator("#sure > summary").click()
    href = page.get_by_role("link", name="these two releases as JSON").get_attribute("href")
    found = json.loads((site / href).read_text(encoding="utf-8"))
    comparison = newest(site)
    assert (found["old"], found["new"]) == (comparison["old"], comparison["new"])
    (lane,) = (each for each in found["lanes"] if each["lane"] == LANE)
    assert lane["tally"] == comparison["tally"]
    assert lane["typical"]["ratio"] == pytest.approx(typical_of(comparison["changes"]), rel=1e-3)
    totals = (lane["typical"]["cases"], comparison["looked_at"], len(listed(comparison["changes"])))
    said = "The typical change is over {} cases, each by its main time. In all, {} times were compared. With "
    said += "memory and the counts that changed {} series are listed."
    assert said.format(*totals) in page.locator("#sure").inner_text()
    assert lane["typical"]["low"] <= lane["typical"]["ratio"] <= lane["typical"]["high"]
    schema = json.loads((site / "pair.schema.json").read_text(encoding="utf-8"))
    of_lane = schema["properties"]["lanes"]["items"]
    assert set(found) == set(schema["required"])
    assert found["schema"] == schema["properties"]["schema"]["const"]
    assert set(lane) == set(of_lane["required"]) == set(of_lane["properties"])
    assert set(lane["typical"]) == set(schema["$defs"]["typical"]["required"])


def test_without_a_benchmark_every_variant_is_drawn_in_small(lab: Path, site: Path, page: Any) -> None:
    show(page, site, "series", **{"from": "v2.0.1"})
    links = page.locator(".multiples a")
    hrefs = "all => all.map(({href}) => href)"
    offered = {tuple(map(keys_of(href).get, ("benchmark", "variant"))) for href in links.evaluate_all(hrefs)}
    known = {(series["benchmark"], series["variant"]) for series in data_of(site)["series"] if series["numbers"]}
    assert {each for each in known if each[0].endswith("track_time")} <= offered
    assert page.locator(".multiples .spark path").count() >= links.count()
    assert page.locator(".multiples .rule").count() == links.count(), "the chosen release is marked in each"
    assert "Dashed rules mark v2.0.1, which you chose." in page.locator("#content").inner_text()
    spec = {"tags": [*"abc"], "releases": [*"abc"], "lines": [["x", [1, None, 2]]], "marked": [], "label": ""}
    drawn_line = "spec => torchHistory.sparkline(spec).querySelector('path').getTotalLength()"
    assert page.evaluate(drawn_line, spec) > 0, "a release without neighbours is seen"
    numbers = medians(lab)["scripted"]
    ratios = [of / numbers[data_of(site)["releases"][0]["tag"]] for of in numbers.values()]
    chart = page.locator(f".multiples a[href*='{TIME}'][href*='variant=scripted']")
    assert chart.locator(".scale").inner_text() == f"{min(ratios):.2f}× to {max(ratios):.2f}×"
    choose(picker(page, "What"), "memory")
    assert all("memory" in keys_of(href)["benchmark"] for href in links.evaluate_all(hrefs))
    links.first.click()
    page.wait_for_url("**benchmark**")
    ready(page)
    assert drawn(page)


def test_the_chart_has_the_numbers_of_the_table(lab: Path, site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=TIME, size="small")
    table, points = table_of(page), drawn(page)
    expected = medians(lab)
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
    told = """async ([lane, benchmark, isScattered]) => {
        const measured = structuredClone(await torchHistory.measured(await torchHistory.lane(lane)));
        measured.series.forEach(({numbers}) => numbers.forEach((_, i) => { numbers[i] += isScattered && i; }));
        const all = torchHistory.history.members(measured, benchmark, "small");
        return torchHistory.history.figure(measured, all, all, {y: "linear", label: ""}).textContent;
    }"""
    assert "All launches of a release agree." in page.evaluate(told, [LANE, PEAK, False])
    assert "Bands are their range" in page.evaluate(told, [LANE, PEAK, True]), "what a process holds varies"
    choose(page.get_by_label("Times"), "raw")
    raw = medians(lab, raw=True)
    assert keys_of(page.url)["times"] == "raw"
    for point in drawn(page):
        assert point["value"] is None or point["value"] == pytest.approx(raw[point["variant"]][point["release"]])


def test_a_variant_of_cpp_and_a_first_call_have_a_reason_instead_of_a_script() -> None:
    cpp = Series("e", "selection.Selection.track_time", ("'cpp_mask'", "'vector 1 % x 1'"))
    first = Series("e", "warm_up.WarmUp.track_first_call", ("'eager'", "'one shape'"))
    unknown = Series("e", "selection.Selection.track_time", ("'../x'", "'vector 1 % x 1'"))
    found = code_of([cpp, first, unknown])
    assert set(found) == {"code-selection-cpp_mask", "code-warm_up-eager"}
    for of_variant in found.values():
        (case,) = of_variant["scripts"]
        assert case["why"]
        assert not case["text"]


def test_a_missing_number_has_its_reason_below(site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=PEAK, size="small")
    shown = table_of(page)["compiled"]["v1.13.1"]
    number = int(re.fullmatch(r"none \((\d+)\)", shown)[1])  # type: ignore[index]
    reasons = page.locator(".lane").first.locator("ol.sentence-list").last.locator("li").all_text_contents()
    lane = data_of(site)
    wanted = (PEAK, "compiled", "small")
    (series,) = (each for each in lane["series"] if (each["benchmark"], each["variant"], each["size"]) == wanted)
    tags = [release["tag"] for release in lane["releases"]]
    asked = [lane["reasons"][reason] for release, reason, _ in series["missing"] if tags[release] == "v1.13.1"]
    assert [reasons[number - 1]] == asked
    in_short = (site / "method.html").read_text(encoding="utf-8").partition('id="unknown"')[0]
    assert not any(stored in in_short for stored in SHOWN), "it names verdicts as pages show them"


def test_numbers_relative_to_the_fastest_and_to_the_limit(lab: Path, site: Path, page: Any) -> None:
    show(page, site, "series", benchmark=TIME, size="small", relative="best", variants="eager,scripted")
    offered = page.get_by_label("Relative to").locator("option").all_text_contents()
    assert offered[1:] == ["the fastest variant of each release", "the first release, each variant's own"]
    times = medians(lab)
    for point in drawn(page):
        fastest = min(of[point["release"]] for of in times.values() if point["release"] in of)
        assert point["value"] == pytest.approx(times[point["variant"]][point["release"]] / fastest, rel=SOLVED)
    for variant, shown in table_of(page).items():
        for release, text in shown.items():
            fastest = min(of[release] for of in times.values() if release in of)
            assert float(text.rstrip("×")) == pytest.approx(times[variant][release] / fastest, rel=0.01)
    show(page, site, "series", benchmark=PEAK, size="small")
    choose(page.get_by_label("Relative to"), label="the bytes of the result")
    assert table_of(page)["eager"]["v2.15.0"] == "4.00×"
    assert {point["value"] for point in drawn(page) if point["variant"] == "eager"} == {4}
    assert "the bytes of the result" in page.locator("figure .axis").first.inner_text()


def test_the_chosen_release_is_marked_and_said_against_the_one_before(lab: Path, site: Path, page: Any) -> None:
    before, old, new = [release["tag"] for release in data_of(site)["releases"]][-3:]
    show(page, site, "series", benchmark=TIME, size="small", variant="scripted", release=new)
    told = page.locator(".told li").first.inner_text()
    comparison = find(lab / "results", MACHINE, ENVIRONMENT, old, new)
    advice = page.locator(".told .instead").inner_text()
    begin = rf"What to do instead of scripted: On {new} \w+ \(.+\) does the same [67]\.\d\d times faster \("
    assert re.match(begin, advice)
    mine = (TIME, ("'scripted'", "'small'"))
    (change,) = (each for each in comparison.changes if (each.series.benchmark, each.series.parameters) == mine)
    means = "the plain function under torch.jit.script (30,000 x 500 boxes)"
    assert plain(told).startswith(f"{change.verdict.shown} {means}")
    assert comparison.because(change.series) in told
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
    told = page.locator(".told")
    assert "v9.9.9 was not measured on" in told.inner_text()
    for release, offered in (("v2.15.0", 0), ("v2.4.0", 1)):  # no wheel of 2.15.0 runs in Python 3.9
        show(page, site, "series", lane=OTHER_LANE, benchmark=TIME, size="small", release=release)
        assert told.get_by_text(f"torch-history run --lane 3.9 {release[1:]}").count() == offered
    show(page, site, "index", lane=OTHER_LANE)
    page.get_by_text("The newest release, v2.15.0, is not measured here.", exact=True).wait_for()


def test_what_happened_is_told_and_numbered_in_the_chart(site: Path, page: Any) -> None:
    lane = data_of(site)
    show(page, site, "series", benchmark=PEAK, size="small")
    page.evaluate(f"""async () => {{
        const seen = {{benchmark: "{PEAK}", parameters: ["eager", "small"], old: "v1", new: "v2", words: "seen"}};
        (await torchHistory.lane("{LANE}")).evidence = ["NOT THERE", "CAUSE"].map((verdict) => ({{...seen, verdict}}));
        window.dispatchEvent(new Event("hashchange"));
    }}""")
    for how in ("measured again", "by a profile"):
        page.get_by_text(f"eager, v1 to v2: {how}, seen.").wait_for()
    mine = {i for i, series in enumerate(lane["series"]) if (series["benchmark"], series["size"]) == (PEAK, "small")}
    steps = [step for step in lane["steps"] if step["series"] in mine]
    size = {id(step): abs(math.log(step["ratio"])) if step["ratio"] else math.inf for step in steps}
    largest = sorted(steps, key=lambda step: -size[id(step)])[:8]
    steps = [step for step in steps if step in largest]
    expected, told = [], set()
    for step in steps:
        first, stop, whole = step["sentence"].rpartition(". ")
        expected.append(f"{first}." if stop and (step["series"], whole) in told else step["sentence"])
        told.add((step["series"], whole))
    assert any("it is no longer fused" in sentence and sentence.startswith("v2.1.0: ") for sentence in expected)
    assert page.locator(".lane").first.locator("ol.sentence-list").first.locator("li").all_text_contents() == expected


def test_claims_are_answered_by_device_and_release_by_release(site: Path, page: Any) -> None:
    show(page, site, "claims")
    lane = data_of(site)
    bases = json.loads((site / "data" / "bases.json").read_text(encoding="utf-8"))
    assert page.locator("#content h2").all_text_contents() == [claim["words"] for claim in bases["claims"]]
    for i, of in enumerate(bases["claims"]):
        (claim,) = (each for each in lane["claims"] if each["question"] == of["question"])
        section = page.locator("section.claim").nth(i)
        text = section.text_content()
        assert all(said.replace("`", "") in text for said in (of["cpu"], of["gpu"], *of["cells"], claim["summary"]))
        band = section.locator(".band .cells").first.get_attribute("aria-label")
        assert band == f"CPU measured: {of['cells'][0]}"
        tags = bases["releases"]
        assert section.locator(".ends span").all_inner_texts() == [tags[0], tags[len(tags) // 2], tags[-1]]
        section.locator("> details").last.locator("> summary").click()
        runs = itertools.groupby(claim["answers"], key=lambda answer: answer["word"])
        spans = [(word, [answer["release"] for answer in of_word]) for word, of_word in runs]
        words_of_runs = [
            (item.locator(".answer").inner_text().split(" ", 1)[1], *item.locator("a").all_text_contents())
            for item in section.locator(".runs li").all()
        ]
        assert words_of_runs == [(word, *dict.fromkeys((tags[0], tags[-1]))) for word, tags in spans]
        turns = section.locator(".turns li").all_text_contents()
        told = zip(claim["turns"], turns, strict=True)
        assert all(each["new"] in said_of and each["why"] in said_of for each, said_of in told)
        section.get_by_text("The numbers behind each").click()
        section.locator(".answers dd").first.wait_for()
        sentences = [answer["sentence"] for answer in reversed(claim["answers"])]
        assert section.locator(".answers dd").all_text_contents() == sentences


def test_advice_is_for_the_release_that_is_chosen(site: Path, page: Any) -> None:
    """tests/lab.py: up to 2.0.1 a scripted function needs one result of memory, from 2.1.0 on four."""
    show(page, site, "claims")
    for tag, said in (("v2.0.1", "Script it where memory"), ("v2.1.0", "Do not script it"), ("v2.0.1", "Script it")):
        choose(picker(page, "Advice for"), tag)
        advice = page.locator(".claim dl.advice dd").first.inner_text()
        assert advice.startswith(said)
        assert advice.endswith(f"({tag}).")


def test_a_release_says_what_it_changed_and_what_it_could_not_run(lab: Path, site: Path, page: Any) -> None:
    show(page, site, "release", release="v2.1.0")
    comparison = find(lab / "results", MACHINE, ENVIRONMENT, "v2.0.1", "v2.1.0")
    words = [plain(finding.words.replace("`", "")) for finding in comparison.findings]
    assert findings_of(page) == sorted(words)
    page.get_by_text("Its packages").click()
    packages = page.locator("[aria-labelledby=wheel] details li").all_inner_texts()
    brought = json.loads((site / "data" / "wheels.json").read_text(encoding="utf-8"))["v2.1.0"]["packages"]
    assert len(packages) == len(brought) - 1, "all but torch, and nothing that is no package"
    page.locator("#missing > summary").click()
    page.locator("#missing .reasons").first.wait_for()
    assert "save_on_cpu with pinned memory needs a GPU" in page.locator("#missing").inner_text()
    page.locator("#environment > summary").click()
    page.locator("#environment .facts").first.wait_for()
    table = page.locator(".facts").first
    values = table.locator("tbody tr td:nth-child(2)").all_text_contents()
    facts = dict(zip(table.locator("tbody th").all_text_contents(), values, strict=True))
    recorded = next(release["facts"] for release in data_of(site)["releases"] if release["tag"] == "v2.1.0")
    assert facts["onednn"] == recorded["onednn"]
    assert facts["cuda"] == recorded["cuda"]
    assert len(facts) == len(recorded) - 1
    begins = {"drift": "old", "step": "new", "excursion": "new"}
    steps = [step["sentence"] for step in data_of(site)["steps"] if step[begins[step["kind"]]] == "v2.1.0"]
    begun = page.locator("section[aria-labelledby=begun] li").all_text_contents()
    assert [text.removesuffix(" history") for text in begun] == [text.replace("`", "") for text in steps]


def test_what_is_loaded_is_asked_for_once_and_what_fails_is_said_in_its_place(site: Path, page: Any) -> None:
    show(page, site, "release", release="v2.1.0")
    page.evaluate("""() => {
        const [asked, {measured, steps}] = [window.asked = [], torchHistory];
        torchHistory.measured = (lane) => new Promise((done, fail) => asked.push({fail, done: () => done(measured(lane))}));
        torchHistory.steps = () => new Promise((_, fail) => { asked.push({fail}); torchHistory.steps = steps; });
    }""")
    for _ in range(3):
        page.locator("#missing > summary").click()
    page.wait_for_timeout(200)  # a browser tells a page of clicks later: one of them would ask again
    page.evaluate("asked[0].fail(new Error('The file is missing.'))")
    assert page.locator("#missing [role=alert]").inner_text() == "The file is missing."
    for _ in range(4):
        page.locator("#missing > summary").click()
    page.evaluate("asked[1].done()")
    page.locator("#missing .reasons").first.wait_for()
    page.evaluate("location.hash = 'release=v2.2.0'")
    page.wait_for_function("asked.length === 3")
    page.evaluate("location.hash = 'release=v2.5.1'")
    ready(page)
    page.evaluate("asked[2].fail(new Error('of a page before'))")
    assert page.locator(".release-name").inner_text() == "v2.5.1"
    said = page.evaluate("""async () => {
        document.head.append = (script) => script.dispatchEvent(new Event("error"));
        const {message} = await torchHistory.file("wheels").catch((error) => error);
        delete document.head.append;
        return [message, typeof await torchHistory.file("wheels")];
    }""")
    assert said == ["The file data/wheels.js is missing or damaged: publish the site again.", "object"]
