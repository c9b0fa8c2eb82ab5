"""Does the site say in one look what an upgrade costs? The overview with its map and the upgrade page, used as readers do.

The site is published from the results of tests/lab.py; what those do not hold (a thousand releases, single launches, one
release, names that look like HTML) is written into a copy's data.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from torch_history.analysis import answer
from torch_history.analysis.causes import FOUND
from torch_history.analysis.series import SHOWN

from .lab import LANE, MACHINE, VARIANTS
from .site_data import read_lane, serious, write_lane

WIDE, NARROW = (1200, 900), (360, 740)
SIZES = pytest.mark.parametrize("page", [WIDE, NARROW], indirect=True)
HOSTILE = "<img src=x onerror=alert(1)>"

pytestmark = pytest.mark.browser


def show(page: Any, site: Path, name: str, **keys: str) -> None:
    fragment = f"#{urlencode(keys)}" if keys else ""
    page.goto((site / f"{name}.html").as_uri() + fragment)
    ready(page)


def ready(page: Any) -> None:
    """Waits until the page shows what its address asks for."""
    page.wait_for_function("document.body.dataset.ready === (location.hash || '#')")


def keys_of(address: str) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(address).fragment).items()}


def picker(page: Any, name: str) -> Any:
    return page.get_by_role("combobox", name=name, exact=True)


def in_width(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def newest(site: Path, lane: str = LANE) -> dict[str, Any]:
    """The newest release against the one before it, as Python sees it."""
    return dict(json.loads((site / "data" / f"{lane}-newest.json").read_text(encoding="utf-8")))


def data_of(site: Path, lane: str = LANE) -> dict[str, Any]:
    return read_lane(site / "data", lane)


@pytest.fixture
def copied(site: Path, tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    """Writes a copy of the site that holds the one lane given."""

    def copy(lane: dict[str, Any]) -> Path:
        folder = tmp_path / "copy"
        shutil.copytree(site, folder, ignore=shutil.ignore_patterns("asv", "feeds"))
        index = json.loads((site / "data" / "index.json").read_text(encoding="utf-8"))
        about = {
            "id": lane["id"],
            "machine": lane["machine"]["machine"],
            "environment": lane["environment"],
            "device": "cpu",
            "words": "a machine, CPU",
            "newest": lane["releases"][-1]["tag"],
            "releases": len(lane["releases"]),
            "metrics": sorted({series["metric"] for series in lane["series"]}),
        }
        index = {**index, "newest": {**lane["releases"][-1]}, "lanes": [about]}
        (folder / "data" / "index.js").write_text(f"torchHistory.index({json.dumps(index)});", encoding="utf-8")
        write_lane(folder / "data", lane)
        return folder

    return copy


def lane_of(releases: int, variants: int = 1, rounds: int = 3, change_at: int | None = None) -> dict[str, Any]:
    """A lane of `releases`, whose time of the first variant doubles at `change_at`; sessions hold five neighbours."""
    questions = ("batching", "intersection", "saved_tensors", "selection", "warm_up")
    metrics = {"allocations": "", "operators": "", "peak_memory": "bytes", "time": "seconds"}
    chain = [(release, session) for release in range(releases) for session in sessions_of(release)]
    timed = [[release, session * rounds + round] for release, session in chain for round in range(rounds)]
    exact = [[release, sessions_of(release)[0] * rounds] for release in range(releases)]
    blocks = [
        [f"session-{session:04}", round] for session in range(releases // 4 + 1) for round in range(1, rounds + 1)
    ]
    chance = random.Random(0)

    def number(metric: str, variant: int, release: int) -> float:
        changed = change_at is not None and variant == 0 and release >= change_at
        if metric != "time":
            return 1000.0 * (variant + 1) + (metric == "operators" and changed)
        return float(f"{(variant + 1) * 1e-3 * (1 + changed) * (1 + chance.gauss(0, 0.005)):.6g}")

    series = [
        {
            "question": question,
            "metric": metric,
            "benchmark": f"{question}.Question.track_{metric}",
            "parameters": [f"variant_{variant}", "small"],
            "variant": f"variant_{variant}",
            "size": "small",
            "unit": unit,
            "pattern": int(metric != "time"),
            "numbers": [number(metric, variant, release) for release, _ in (timed if metric == "time" else exact)],
            "disturbed": [],
            "missing": [],
        }
        for question in questions
        for metric, unit in metrics.items()
        for variant in range(variants)
    ]
    return {
        "schema": 2,
        "id": "made-up",
        "machine": {
            "machine": "made-up",
            "cpu": "CPU",
            "num_cpu": "2",
            "ram": "1 GiB",
            "device": "cpu",
            "threads": "1",
        },
        "environment": "release-py3.11",
        "releases": [
            {"tag": f"v{1 + i // 100}.{i % 100}.0", "date": "2026-01-01", "estimated": False, "facts": {}}
            for i in range(releases)
        ],
        "rounds": blocks,
        "reasons": [],
        "patterns": [timed, exact],
        "series": series,
        "steps": [],
        "claims": [],
    }


def sessions_of(release: int) -> list[int]:
    return [release // 4, *([release // 4 - 1] if release and release % 4 == 0 else [])]


# --- overview


@SIZES
def test_newest_release_is_told_as_python_tells_it(site: Path, page: Any) -> None:
    show(page, site, "index")
    comparison = newest(site)
    headline = page.locator("#newest-title").inner_text()
    assert headline.startswith(f"{comparison['new']} against {comparison['old']} on ")
    kinds = {change["verdict"]: change["kind"] for change in comparison["changes"]}
    for verdict, count in comparison["tally"].items():
        assert (f"{count} {verdict}" in headline) == (kinds[verdict] in ("worse", "better", "changed"))
    chips = page.locator(".newest .tally a")
    counted = [re.match(r"(\d+) \S ([^a-z]+)", text.replace("\n", " ")) for text in chips.all_inner_texts()]
    tally = {SHOWN.get(verdict, verdict): count for verdict, count in comparison["tally"].items()}
    assert {match[2].strip(): int(match[1]) for match in counted if match} == tally
    assert in_width(page)


def in_short(page: Any) -> dict[str, str]:
    """The lines that answer what a reader asks first."""
    lines = page.locator("#in-short > div").all()
    return {line.locator("dt").inner_text(): plain(line.locator("dd").inner_text()) for line in lines}


def of_verdict(card: dict[str, str]) -> list[str]:
    """What a card says: of the one on what broke, which series have no number stands at the end of the page."""
    first, of_series, rest = card["verdict"].partition(" In cases that ran, ")
    return [first, of_series.strip() + " " + rest] if rest else [first]


def plain(text: str) -> str:
    """Text of a page without the signs of verdicts."""
    return re.sub(r"\s+", " ", re.sub(r"[▲▼✕✓◆] ", "", text)).strip()


@SIZES
def test_cards_and_findings_are_those_of_python_and_lead_to_their_series(site: Path, page: Any) -> None:
    show(page, site, "index")
    comparison = newest(site)
    cards = [plain(text) for text in page.get_by_label("By what was measured").locator("> li").all_inner_texts()]
    cards.append(f"Broke {in_short(page)['Broke']} {plain(page.locator('#sure').inner_text())}")
    for card, text in zip(comparison["answer"]["cards"], cards, strict=True):
        parts = [card["name"], *of_verdict(card), *(card[key].rstrip(".") for key in ("worst", "best") if card[key])]
        assert all(part.replace("`", "") in text for part in parts)
    items = page.locator("#findings > li")
    assert 0 < items.count() <= 10
    words = {finding["words"].replace("`", ""): finding for finding in comparison["findings"]}
    for item in items.all():
        said = plain(item.inner_text())
        found = next(finding for text, finding in words.items() if plain(text) in said)
        shown = SHOWN.get(found["verdict"], found["verdict"])
        assert said.startswith(f"{shown} {plain(next(t for t, f in words.items() if f is found))}")
        if len(found["rows"]) > 1:
            item.locator("summary").click()
            assert item.locator("details li").count() == len(found["rows"])
            page.wait_for_function("name => torchHistory.address().open.split('|').includes(name)", arg=found["title"])
        keys = keys_of(item.locator("a").first.get_attribute("href"))
        assert [keys["benchmark"], keys["release"]] == [found["rows"][0][0], comparison["new"]]
    opened = page.locator("#findings details[open]").count()
    page.reload()
    page.wait_for_function("document.body.dataset.ready")
    assert page.locator("#findings details[open]").count() == opened > 0
    assert in_width(page)


@SIZES
def test_luck_of_placement_is_muted_by_a_switch_in_the_address(site: Path, page: Any) -> None:
    """tests/lab.py plants no such cause, so that of a fusion is taken for one here."""
    show(page, site, "index", **{"from": "v2.0.1", "to": "v2.2.0"})
    assert page.locator("#choose-muted").count() == 0
    page.evaluate("torchHistory.contents.constants.why.PLACEMENT = 'it is no longer fused'")
    page.evaluate("location.hash = '#from=v2.0.1&to=v2.1.0'")
    ready(page)
    before = page.locator("#findings > li").count()
    fused = page.locator("#findings > li", has_text="it is no longer fused").count()
    assert 0 < fused < before
    page.locator("#choose-muted").press("Space")
    ready(page)
    assert keys_of(page.url)["muted"] == "1"
    assert page.locator("#findings > li", has_text="it is no longer fused").count() == 0
    assert page.locator("#findings > li").count() == before - fused
    assert page.locator("#choose-muted").is_checked()
    assert in_width(page)
    assert serious(page) == []


def test_what_was_not_measured_stands_first_and_bytes_say_since_when(site: Path, page: Any) -> None:
    """The scripted intersection needs four times the memory since 2.1.0."""
    show(page, site, "index", **{"from": "v2.0.1", "to": "v2.9.0"})
    assert "Measured on a CPU: no GPU time" in page.locator("#not-measured").inner_text()
    lost = "v2.9.0 no longer runs on sm_37 (K80), sm_50, sm_60 (P100), on which v2.0.1 runs."
    gpus = in_short(page)["GPUs"]
    assert gpus.startswith(f"{lost} The last to run: v2."), gpus
    page.get_by_text("GPUs that v2.9.0 runs on").click()
    assert "sm_89 (RTX 4090) with the code for sm_86" in in_short(page)["GPUs"]
    assert re.fullmatch(r"v2\.1\.0: [67]\.\d\d times slower\.", in_short(page)["When"])
    said = in_short(page)
    assert [*said] == ["Worst", "When", "Why", "What to do", "GPUs", "Broke", "To install", "How sure", "Not known"]
    assert said["Why"].startswith("Because it is no longer fused.")
    assert said["To install"].endswith("glibc at least 2.17 → 2.28; C++11 ABI no → yes.")
    assert page.locator("#apart a").last.get_attribute("href") == "method.html#glossary"
    item = page.locator("#findings > li", has_text="peak memory").first
    assert "scripted small needs 240,000,000 B since v2.1.0." in item.inner_text()


def test_a_lane_that_measured_start_up_is_named_where_this_one_did_not(site: Path, page: Any, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(site, folder, ignore=shutil.ignore_patterns("asv", "feeds"))
    index = json.loads((site / "data" / "index.json").read_text(encoding="utf-8"))
    here = index["lanes"][0]
    index["lanes"] += [
        {
            **here,
            "id": "starts",
            "words": "a machine that starts",
            "metrics": ["start_time"],
            "counted": ["v2.0.1", "v2.5.1", "v2.9.0"],
            "costs": [["v2.5.1", "v2.9.0", "import: twice as slow."], ["v2.0.1", "v2.5.1", "import: slower."]],
        },
        {**here, "id": "other", "words": "a machine that does not", "metrics": ["time"]},
        {**here, "id": "python", "words": "another Python", "metrics": ["start_time"], "environment": "release-py3.9"},
    ]
    (folder / "data" / "index.js").write_text(f"torchHistory.index({json.dumps(index)});", encoding="utf-8")
    keys = {"from": "v2.0.1", "to": "v2.9.0"}
    show(page, folder, "index", **keys, lane=here["id"])
    said = page.locator("#not-measured")
    assert "Not measured here: import and start-up of a process" in said.inner_text()
    what = "Another machine measured import and start-up of a process"
    assert (
        f"{what}: between these releases 2 changes cost time or memory, the newest at v2.9.0: import: twice as slow."
        in said.inner_text()
    )
    (href,) = [str(link.get_attribute("href")) for link in said.get_by_title("a machine that starts").all()]
    assert dict(parse_qs(href.partition("#")[2])) == {key: [value] for key, value in {**keys, "lane": "starts"}.items()}


def test_an_address_with_a_question_mark_is_read_as_one_with_a_hash(site: Path, page: Any) -> None:
    page.goto((site / "index.html").as_uri() + "?from=2.0.1&to=2.9.0")
    page.wait_for_function("document.body.dataset.ready")
    assert "v2.9.0 against v2.0.1" in page.locator("#newest-title").inner_text()


def test_a_release_is_chosen_by_typing_its_name(site: Path, page: Any) -> None:
    """Each letter chooses another release on the way, and none of them may draw the page again."""
    show(page, site, "index")
    page.locator("#choose-from").focus()
    page.keyboard.type("v2.1.0", delay=60)
    page.wait_for_function("location.hash.includes('from=v2.1.0')")
    assert page.locator("#choose-from").input_value() == "v2.1.0"


def test_words_of_the_glossary_lead_to_their_meaning(site: Path, page: Any) -> None:
    """Every word that the pages make a link is in the glossary, and the link ends at its row."""
    script = (Path(__file__).parents[1] / "torch_history" / "site" / "templates" / "app.js").read_text(encoding="utf-8")
    terms = re.findall(r'"(\w+)"', re.search(r"TERMS = \[(.*?)\]", script, re.DOTALL)[1])  # type: ignore[index]
    assert len(terms) > 5
    show(page, site, "index", **{"from": "v2.0.1", "to": "v2.9.0"})
    linked = page.locator("#sure a.term").first
    word, href = linked.inner_text().lower(), str(linked.get_attribute("href"))
    assert word.startswith(href.partition("#word-")[2])
    page.goto((site / "method.html").as_uri())
    for term in terms:
        row = page.locator(f"tr#word-{term}")
        assert row.count() == 1, term
        assert row.locator("td").first.inner_text().lower().startswith(term)


def test_a_cause_leads_to_its_evidence_and_a_card_to_a_variant_with_a_script(site: Path, page: Any) -> None:
    show(page, site, "index", **{"from": "v2.0.1", "to": "v2.1.0"})
    item = page.locator("#findings > li", has_text="intersection time").first
    assert "because it is no longer fused" in item.inner_text()
    item.get_by_role("link", name="the evidence of this cause").click()
    page.wait_for_selector(".told")
    assert "fusion groups, scripted small: FEWER" in page.locator(".told").inner_text()
    show(page, site, "index", **{"from": "v2.13.0", "to": "v2.15.0"})
    scripted = json.loads((site / "data" / "index.json").read_text())["scripted"]
    assert "code-selection-index_reused" in scripted
    assert "code-selection-cpp_index_reused" not in scripted


def test_memory_of_a_gpu_that_was_counted_without_one_stands_on_the_sheet_of_a_cpu(
    lab: Path, tmp_path: Path, page: Any, publish: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    results = tmp_path / "results"
    shutil.copytree(lab / "results", results)
    card = results / "recorded-a-card"
    shutil.copytree(results / MACHINE, card, ignore=shutil.ignore_patterns("*3.9*"))
    about = json.loads((card / "machine.json").read_text())
    about |= {"machine": card.name, "device": "recorder", "cpu": "A card pretended by the recorder, no kernel ran"}
    (card / "machine.json").write_text(json.dumps(about))
    for path in card.glob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        counted = [line for line in lines if line["benchmark"].endswith(".track_peak_memory")]
        for case in (case for line in counted for case in line["cases"]):
            if "value" in case and path.name.startswith("v2.15.0") and case["parameters"][0] == "'eager'":
                case["value"] *= 3
        path.write_text("".join(json.dumps(line) + "\n" for line in counted))
    for path in card.glob("v2.5.1-*"):
        path.unlink()
    answer = publish(tmp_path / "html", "--results-dir", str(results))
    assert answer.returncode == 0, answer.stderr
    words = "A card, counted without a GPU, Python 3.11"
    show(page, tmp_path / "html", "index", **{"from": "v2.14.1", "to": "v2.15.0"})
    said = page.locator(".sentence-list li", has_text=words).inner_text()
    assert said.startswith(f"On a GPU: {words}: one change costs memory at v2.15.0: intersection peak memory, eager")
    show(page, tmp_path / "html", "index", **{"from": "v2.14.0", "to": "v2.14.1"})
    said = page.locator(".sentence-list li", has_text=words).inner_text()
    assert said == f"On a GPU: {words}: no release between them costs memory."
    page.get_by_role("link", name=words).click()
    ready(page)
    assert "no kernel ran" in page.inner_text("main")
    assert serious(page) == []
    show(page, tmp_path / "html", "index", **{"from": "v2.5.1", "to": "v2.15.0"})
    said = page.locator(".sentence-list li", has_text=words).inner_text()
    assert said == f"On a GPU: {words}: it was not counted for both releases."


def test_evidence_by_hand_leads_to_the_item_that_says_how(site: Path, page: Any) -> None:
    wanted = {cause.item: cause.link for cause in FOUND}
    page.goto((site / "method.html").as_uri())
    for item, link in wanted.items():
        slug = re.sub("[^a-z0-9]+", "-", item.lower()).strip("-")
        anchor = f"{link.removeprefix('docs/').removesuffix('.md').replace('/', '-')}-{slug}"
        place = page.locator(f"li#{anchor}")
        assert place.count() == 1, anchor
        assert place.inner_text().startswith(item.replace("`", ""))


def test_a_finding_of_one_variant_says_what_the_variant_does(site: Path, page: Any) -> None:
    show(page, site, "index", **{"from": "v2.0.1", "to": "v2.1.0"})
    item = page.locator("#findings > li", has_text="intersection time").first
    assert "scripted: the eager function under torch.jit.script." in item.inner_text()
    for question, variants in VARIANTS.items():
        known = json.loads((site / "data" / "index.json").read_text())["meanings"][question]
        assert {*variants} <= {*known}, question


@SIZES
def test_what_to_do_instead_is_told_from_the_numbers_of_the_chosen_release(site: Path, page: Any) -> None:
    """tests/lab.py plants what each variant takes: vstack_rows 8 x 1.3 times 1, cat_rows 1.1; from 2.1.0 on scripted needs
    four results of memory, in_place three."""
    show(page, site, "index", **{"from": "v2.2.0", "to": "v2.5.1"})
    (item,) = (each for each in page.locator("#findings > li").all() if "vstack_rows" in each.inner_text())
    said = item.locator(".instead").first.inner_text()
    told = re.fullmatch(
        r"What to do: On v2.5.1 cat_rows \(a tensor per row by torch.from_numpy, joined by torch.cat and viewed as "
        r"\[B, N\]\) does the same ([\d.]+)(?: to ([\d.]+))? times faster in 2 of 2 cases\. Its code and its history\.",
        said,
    )
    assert told, said
    for factor in (float(part or told[1]) for part in told.groups()):
        assert factor == pytest.approx(8 * 1.3 / 1.1, rel=0.1)
    show(page, site, "index", **{"from": "v2.0.1", "to": "v2.1.0"})
    (item,) = (each for each in page.locator("#findings > li").all() if "peak memory" in each.inner_text())
    advice = item.locator(".instead").first
    means = "what a careful engineer writes without a compiler: three buffers of [N, M]"
    assert advice.inner_text().startswith(
        f"What to do: On v2.1.0 in_place ({means}) does the same with 1.33 times less memory."
    )
    assert keys_of(advice.get_by_role("link").get_attribute("href"))["variant"] == "in_place"
    show(page, site, "index", **{"from": "v2.14.1", "to": "v2.15.0"})
    (item,) = (each for each in page.locator("#findings > li").all() if "selection time" in each.inner_text())
    assert item.locator(".instead").first.inner_text() == (
        "What to do: No variant of this question that does the same is faster on v2.15.0."
    )
    assert in_width(page)
    assert serious(page) == []


def test_any_two_releases_are_answered_and_are_in_the_address(site: Path, page: Any) -> None:
    show(page, site, "index")
    tags = [release["tag"] for release in data_of(site)["releases"]]
    picker(page, "From").select_option(tags[0])
    ready(page)
    assert page.locator("#newest-title").inner_text().startswith(f"{tags[-1]} against {tags[0]} on ")
    assert keys_of(page.url)["from"] == tags[0]
    page.go_back()
    ready(page)
    assert page.locator("#newest-title").inner_text().startswith(f"{tags[-1]} against {tags[-2]} on ")
    show(page, site, "index", **{"from": tags[0].removeprefix("v"), "to": f"{tags[-1]}+cpu"})
    assert page.locator("#newest-title").inner_text().startswith(f"{tags[-1]} against {tags[0]} on ")
    show(page, site, "index", **{"from": "banana"})
    assert "There are no results of 'banana'" in page.locator(".newest [role=alert]").inner_text()


def test_two_chosen_releases_are_kept_on_the_way_to_a_series_and_to_another_page(site: Path, page: Any) -> None:
    show(page, site, "index", **{"from": "v2.0.1", "to": "v2.15.0"})
    found = page.locator("#findings a").first
    assert {"release": "v2.15.0", "base": "v2.0.1"}.items() <= keys_of(found.get_attribute("href")).items()
    page.get_by_role("link", name="Upgrade", exact=True).click()
    page.wait_for_selector("#changes")
    assert page.locator("#headline").inner_text().startswith("v2.0.1 → v2.15.0")
    row = page.locator("#changes tbody th a").first
    assert {"release": "v2.15.0", "base": "v2.0.1"}.items() <= keys_of(row.get_attribute("href")).items()
    row.click()
    page.wait_for_selector(".told")
    assert page.locator(".told h2").first.inner_text() == "v2.15.0 against v2.0.1"


def test_a_chip_leads_to_the_upgrade_page_filtered_by_it(site: Path, page: Any) -> None:
    show(page, site, "index")
    comparison = newest(site)
    verdict, count = next(iter(comparison["tally"].items()))
    page.locator(".newest .tally a", has_text=verdict).click()
    page.wait_for_selector("#changes")
    assert keys_of(page.url) == {
        "lane": LANE,
        "from": comparison["old"],
        "to": comparison["new"],
        "verdict": verdict,
    }
    assert page.locator("#count").inner_text() == f"{count} of {len(comparison['changes'])} series."
    assert page.locator("#changes tbody tr").count() == min(count, 200)


def test_single_launches_decide_counts_and_say_so_of_times(copied: Callable, page: Any) -> None:
    site = copied(lane_of(2, rounds=1, change_at=1))
    show(page, site, "index")
    text = page.locator(".newest").inner_text()
    assert "All times are inconclusive" in text
    assert "torch-history run --lane 3.11 --rounds 5 v1.0.0 v1.1.0" in text
    assert "5 MORE" in page.locator("#newest-title").inner_text()
    assert "MORE" in page.locator("#findings").inner_text()


def test_what_broke_is_said_with_its_reason(copied: Callable, page: Any) -> None:
    lane = lane_of(8, variants=12, rounds=6, change_at=7)
    lane["reasons"] = ["the wheel has no compiler", "it ran out of memory"]
    for i, series in enumerate(lane["series"]):
        if series["variant"] in ("variant_3", "variant_4") or i == 11:
            kept = [at for at, (release, _) in enumerate(lane["patterns"][series["pattern"]]) if release < 7]
            lane["patterns"].append([lane["patterns"][series["pattern"]][at] for at in kept])
            series["numbers"] = [series["numbers"][at] for at in kept]
            series["missing"] = [[7, int(i == 11), 1]]
            series["pattern"] = len(lane["patterns"]) - 1
    show(page, copied(lane), "index")
    said = in_short(page)
    assert "no longer runs" in said["Worst"]
    assert "the wheel has no compiler." in said["Worst"] or "it ran out of memory." in said["Worst"]
    assert not {"When", "Why"} & {*said}
    texts = [plain(text) for text in page.locator("#findings > li").all_inner_texts()]
    broke = [text for text in texts if text.startswith("BROKE")]
    assert any(
        "variant_3" in text and "no longer runs" in text and "the wheel has no compiler." in text for text in broke
    )
    assert any("variant_11" in text and "it ran out of memory." in text for text in broke)
    page.locator(".newest .tally a", has_text="BROKE").click()
    page.wait_for_selector("#changes")
    assert page.locator("#changes tbody tr").count() == 41
    assert page.locator(".tally [aria-pressed=true]").inner_text() == "41 ✕ BROKE"


def test_times_that_cannot_be_told_lead_to_bytes(copied: Callable, page: Any) -> None:
    show(page, copied(lane_of(2, rounds=1)), "index")
    assert re.search(r"undecided: (\d+) of \1 times are inconclusive", page.locator("#newest-title").inner_text())
    page.get_by_role("link", name="show peak memory").click()
    ready(page)
    assert picker(page, "Metric").input_value() == "peak_memory"
    assert page.get_by_role("link", name="show peak memory").count() == 0


def test_nothing_changed_says_what_could_have_been_seen(copied: Callable, page: Any) -> None:
    show(page, copied(lane_of(8, variants=4, rounds=8)), "index")
    assert "no change was detected" in page.locator("#newest-title").inner_text()
    assert re.search(
        r"In half of the series of time a change of up to [\d.]+ times is not excluded\.",
        page.locator(".newest").inner_text(),
    )


def test_a_lane_of_one_release_says_what_to_do(copied: Callable, page: Any) -> None:
    site = copied(lane_of(1))
    show(page, site, "index")
    assert "v1.0.0 is the only release measured" in page.locator("#newest-title").inner_text()
    assert page.locator("#map tbody td.alone").count() > 0
    show(page, site, "upgrade")
    assert "v1.0.0 is the only release measured" in page.get_by_role("alert").inner_text()


# --- the map


def cell(page: Any, variant: str, tag: str) -> Any:
    """The cell of the first row with this variant and of the release."""
    row = page.locator("#map tbody tr", has=page.get_by_role("rowheader", name=variant)).first
    column = page.locator("#map thead th", has_text=tag).first.get_attribute("aria-colindex")
    return row.locator(f"td[aria-colindex='{column}']")


def computed(page: Any) -> None:
    """Waits until no cell in the table waits for its verdict."""
    page.wait_for_function("document.querySelectorAll('#map .waiting').length === 0")


@SIZES
def test_map_begins_at_the_newest_release_and_scrolls_in_its_own_region(site: Path, page: Any) -> None:
    show(page, site, "index")
    assert in_width(page)
    tag = newest(site)["new"]
    box = page.locator("#map").bounding_box()
    column = page.locator("#map thead th", has_text=tag).bounding_box()
    assert column["x"] + column["width"] <= box["x"] + box["width"] + 1
    name = page.locator("#map thead th").first.bounding_box()
    assert name["width"] < box["width"] / 2


def test_cells_say_verdicts_in_text_and_lead_to_their_series(site: Path, page: Any) -> None:
    show(page, site, "index", metric="all")
    computed(page)
    comparison = newest(site)
    wanted = {change["sentence"].partition(":")[0]: change["verdict"] for change in comparison["changes"]}
    column = page.locator("#map thead th", has_text=comparison["new"]).get_attribute("aria-colindex")
    links = page.locator(f"#map tbody td[aria-colindex='{column}'] a").all()
    assert len(links) > 10
    for link in links:
        name, _, said = link.get_attribute("aria-label").partition(f", {comparison['new']}: ")
        assert said.startswith(SHOWN.get(wanted[name], wanted[name]))
        assert link.inner_text().strip()
        keys = keys_of(link.get_attribute("href"))
        assert keys["release"] == comparison["new"]
        assert name.startswith(keys["benchmark"].partition(".")[0].replace("_", " "))


def test_at_a_glance_variants_that_changed_most_come_first_and_open_their_rows(site: Path, page: Any) -> None:
    show(page, site, "index")
    page.locator("#glance").scroll_into_view_if_needed()
    page.locator("#glance[data-whole]").wait_for()
    rows = page.locator("#glance tbody tr")
    names = rows.locator("th").all_inner_texts()
    data = data_of(site)
    wanted = {
        f"{series['question'].replace('_', ' ')}: {series['variant']}"
        for series in data["series"]
        if series["metric"] == "time" and series["numbers"]
    }
    assert set(names) == wanted
    assert [name.partition(":")[0] for name in names] == sorted(name.partition(":")[0] for name in names)
    for question in {name.partition(":")[0] for name in names}:
        changed = [
            row.locator("td[title]").count() for row in rows.all() if row.inner_text().startswith(f"{question}:")
        ]
        assert not any(changed) or changed[0] > 0
    link = rows.first.locator("a")
    variant = keys_of(link.get_attribute("href"))["variant"]
    link.click()
    ready(page)
    below = page.locator("#map tbody th a").evaluate_all("nodes => nodes.map((node) => node.href)")
    assert {keys_of(address)["variant"] for address in below} == {variant}


@SIZES
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_chosen_pair_is_in_width_and_without_serious_violations(site: Path, page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    tags = [release["tag"] for release in data_of(site)["releases"]]
    show(page, site, "index", **{"from": tags[0], "to": tags[-1]})
    page.locator("#glance").scroll_into_view_if_needed()
    page.locator("#glance[data-whole]").wait_for()
    assert in_width(page)
    width = page.evaluate("window.innerWidth")
    for card in page.locator(".cards li").all():
        box = card.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert card.evaluate("node => node.scrollWidth <= node.clientWidth")
    assert serious(page) == []


def test_verdicts_on_several_cards_add_up_to_the_headline(site: Path, page: Any) -> None:
    tags = [release["tag"] for release in data_of(site)["releases"]]
    show(page, site, "index", **{"from": tags[0], "to": tags[-1]})
    changes = page.evaluate(
        """async ([from, to]) => {
            const lane = await torchHistory.lane(torchHistory.contents.lanes[0].id);
            const changes = torchHistory.verdicts.compare(lane, from, to);
            const counts = Object.fromEntries(torchHistory.common.counted(changes.map(({verdict}) => verdict)));
            return {counts, apart: torchHistory.answer.apart(lane, changes)};
        }""",
        [tags[0], tags[-1]],
    )
    headline = page.locator("#newest-title").inner_text()
    for verdict, parts in changes["apart"]:
        assert sum(count for _, count in parts) == changes["counts"][verdict]
        assert f"{changes['counts'][verdict]} {SHOWN.get(verdict, verdict)}" in headline
        assert ", ".join(f"{count} in {card}" for card, count in parts) in page.locator("#apart").inner_text()


def test_map_controls_choose_metric_question_and_base_and_are_restored(site: Path, page: Any) -> None:
    show(page, site, "index")
    data = data_of(site)
    first, last = data["releases"][0]["tag"], data["releases"][-1]["tag"]
    picker(page, "Metric").select_option("peak_memory")
    picker(page, "Question").select_option("intersection")
    picker(page, "Compared with").select_option(first)
    ready(page)
    for _ in range(2):
        assert {"metric": "peak_memory", "question": "intersection", "base": first}.items() <= keys_of(page.url).items()
        assert picker(page, "Metric").input_value() == "peak_memory"
        assert picker(page, "Compared with").input_value() == first
        computed(page)
        wanted = [
            each for each in data["series"] if each["metric"] == "peak_memory" and each["question"] == "intersection"
        ]
        assert page.locator("#map-status").inner_text() == f"{len(wanted)} series, {len(data['releases'])} releases."
        label = cell(page, "eager small", last).locator("a").get_attribute("aria-label")
        assert label.startswith(f"intersection peak memory, eager small, {last}: ")
        assert f"against {first}" in label
        page.reload()
        ready(page)


def test_a_base_that_was_not_measured_is_said(site: Path, page: Any) -> None:
    show(page, site, "index", base="v0.0.0")
    assert "no results of 'v0.0.0'" in page.get_by_role("alert").inner_text()
    show(page, site, "index", variant="nobody")
    assert "no variant 'nobody'" in page.get_by_role("alert").inner_text()
    show(page, site, "index", metric="none")
    assert "Choose another" in page.locator("#map-status").inner_text()


def test_only_series_that_changed(copied: Callable, page: Any) -> None:
    show(page, copied(lane_of(40, variants=4, rounds=4, change_at=20)), "index")
    assert page.locator("#map-status").inner_text() == "20 series, 40 releases."
    page.get_by_label("Only series that changed").check()
    page.wait_for_function("/changed in .*releases\\.$/.test(document.getElementById('map-status').textContent)")
    assert re.match(r"[5-8] of 20 series changed in 40 releases\.", page.locator("#map-status").inner_text())
    page.reload()
    ready(page)
    assert page.get_by_label("Only series that changed").is_checked()
    tag = "v1.20.0"
    computed(page)
    page.evaluate(  # in one step: the head may be drawn anew at any moment
        "tag => [...document.querySelectorAll('#map thead th')].find((th) => th.textContent.includes(tag)).scrollIntoView()",
        tag,
    )
    computed(page)
    assert cell(page, "variant_0", tag).inner_text() in ("▲2.00×", "▲1.99×", "▲2.01×")


def test_focus_stays_on_its_series_while_more_are_found_to_have_changed(copied: Callable, page: Any) -> None:
    lane = lane_of(600, variants=15, rounds=4)
    steps = {"batching": 3, "selection": 595, "warm_up": 595}  # the newest releases are compared first
    for series in lane["series"]:
        if series["metric"] == "time" and series["question"] in steps:
            releases = [release for release, _ in lane["patterns"][series["pattern"]]]
            after = [release >= steps[series["question"]] for release in releases]
            series["numbers"] = [number * (1 + late) for number, late in zip(series["numbers"], after, strict=True)]
    show(page, copied(lane), "index", changed="1")
    table = page.locator("#map table")
    page.locator("#map tbody td a").last.focus()
    page.keyboard.press("Control+End")
    name = "warm up time, variant_14 small"
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith(name)
    assert int(table.get_attribute("aria-rowcount")) < 47
    page.wait_for_function("document.getElementById('map-status').textContent.endsWith('releases.')", timeout=60000)
    assert int(table.get_attribute("aria-rowcount")) >= 49
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith(name)
    focused = page.evaluate("document.activeElement.getBoundingClientRect().toJSON()")
    box = page.locator("#map").bounding_box()
    assert box["y"] < focused["top"]
    assert focused["bottom"] <= box["y"] + box["height"]


def test_map_is_walked_by_keyboard_alone(site: Path, page: Any) -> None:
    show(page, site, "index")
    computed(page)
    page.locator("#map").focus()
    page.keyboard.press("Tab")
    tags = [release["tag"] for release in data_of(site)["releases"]]

    def where() -> str:
        return str(
            page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.innerText")
        )

    start = where()
    assert f", {tags[-1]}: " in start
    assert (
        page.locator("#map-detail")
        .inner_text()
        .startswith(f"{tags[-1]} against {tags[-2]}: {start.partition(', v')[0]}")
    )
    page.keyboard.press("ArrowLeft")
    assert f", {tags[-2]}: " in where()
    page.keyboard.press("ArrowDown")
    assert start.partition(f", {tags[-1]}")[0] not in where()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Home")
    assert f", {tags[0]}: " in where()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.closest('th') !== null")
    page.keyboard.press("Control+End")
    assert f", {tags[-1]}: " in where()
    rows = page.locator("#map table").get_attribute("aria-rowcount")
    assert page.evaluate("document.activeElement.closest('tr').getAttribute('aria-rowindex')") == rows
    page.keyboard.press("Control+Home")
    page.keyboard.press("ArrowUp")
    assert where() == tags[0]
    page.keyboard.press("End")
    assert where() == tags[-1]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/series.html**")
    keys = keys_of(page.url)
    assert keys["release"] == tags[-1]
    assert keys["benchmark"]


def test_pointing_at_a_cell_says_its_sentence(site: Path, page: Any) -> None:
    show(page, site, "index")
    computed(page)
    comparison = newest(site)
    of_top = [change for change in comparison["changes"] if change["benchmark"] == "batching.Batching.track_time"]
    change = next(change for change in of_top if change["new"] is not None and "cat_rows" in change["parameters"])
    name = change["sentence"].partition(":")[0]
    link = page.locator(f"#map a[aria-label^='{name}, {comparison['new']}: ']")
    link.scroll_into_view_if_needed()
    link.hover()
    against = f"{comparison['new']} against {comparison['old']}"
    assert page.locator("#map-detail").inner_text() == f"{against}: {change['sentence']}"


def test_what_could_not_run_says_why(site: Path, page: Any) -> None:
    data = data_of(site)
    series = next(each for each in data["series"] if each["metric"] == "time" and each["missing"])
    release, reason, _ = series["missing"][-1]  # a release in view: the map is entered at the newest
    show(page, site, "index", question=series["question"])
    computed(page)
    tag = data["releases"][release]["tag"]
    name = f"{series['question'].replace('_', ' ')} time, {' '.join(series['parameters'])}"
    link = page.locator(f"#map a[aria-label^='{name}, {tag}: ']")
    assert data["reasons"][reason] in link.get_attribute("aria-label")
    assert link.get_attribute("title") == data["reasons"][reason]


def test_a_release_in_the_head_leads_to_its_page(site: Path, page: Any) -> None:
    show(page, site, "index")
    tag = newest(site)["new"]
    page.locator("#map thead a", has_text=tag).click()
    page.wait_for_url("**/release.html**")
    assert keys_of(page.url)["release"] == tag


def test_a_thousand_releases_are_drawn_as_far_as_they_are_in_view(copied: Callable, page: Any) -> None:
    site = copied(lane_of(1000, variants=15, change_at=500))
    show(page, site, "index", metric="all")
    took = page.evaluate("performance.now()")
    assert took < 2000, f"interactive after {took:.0f} ms"
    table = page.locator("#map table")
    assert (table.get_attribute("aria-rowcount"), table.get_attribute("aria-colcount")) == ("306", "1001")
    assert page.locator("#map td").count() < 3000
    computed(page)
    width = page.locator("#map thead th").nth(1).bounding_box()["width"]
    page.evaluate(f"document.getElementById('map').scrollTo({400 * width}, 2000)")
    page.wait_for_function("[...document.querySelectorAll('#map thead a')].some((a) => a.textContent === 'v5.0.0')")
    computed(page)
    assert page.locator("#map td").count() < 3000
    header = page.locator("#map thead th").first.bounding_box()
    box = page.locator("#map").bounding_box()
    assert abs(header["x"] - box["x"]) < 3
    assert abs(header["y"] - box["y"]) < 3
    page.keyboard.press("Tab")
    page.locator("#map td [tabindex='0'], #map td[tabindex='0']").focus()
    for key in ("Control+Home", "Control+End", "PageUp", "ArrowLeft"):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.closest('#map tbody td') !== null"), key
    focused = page.evaluate("document.activeElement.getBoundingClientRect().toJSON()")
    assert box["x"] <= focused["left"]
    assert focused["right"] <= box["x"] + box["width"]
    page.evaluate("document.getElementById('map').scrollTo(0, 0)")
    page.wait_for_function("document.activeElement.id === 'map'")


def test_scrolled_place_is_kept_when_a_control_is_used(copied: Callable, page: Any) -> None:
    show(page, copied(lane_of(200, variants=15)), "index")
    page.evaluate("document.getElementById('map').scrollTo(1000, 0)")
    page.wait_for_function("[...document.querySelectorAll('#map thead a')].some((a) => a.textContent === 'v1.16.0')")
    picker(page, "Metric").select_option("operators")
    ready(page)
    assert page.evaluate("document.getElementById('map').scrollLeft") == 1000


# --- upgrade


def compare(lab: Path, data: dict[str, Any], old: str, new: str, *options: str) -> str:
    """What `torch-history compare` prints of the same pair."""
    machine, environment = data["machine"]["machine"], data["environment"]
    code = "from torch_history.cli import main; main()"
    asked = ["compare", old, new, "--machine", machine, "--lane", environment, *options]
    answer = subprocess.run([sys.executable, "-c", code, *asked], cwd=lab, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def alike(one: Any, other: Any) -> bool:
    """Equal, numbers to rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-12)
    return bool(one == other)


@pytest.fixture
def data(site: Path) -> dict[str, Any]:
    return data_of(site)


def rows(page: Any) -> list[str]:
    return [str(text) for text in page.locator("#changes tbody th").all_inner_texts()]


@SIZES
def test_default_is_the_newest_release_and_the_one_before(site: Path, page: Any) -> None:
    show(page, site, "upgrade")
    comparison = newest(site)
    assert picker(page, "From").input_value() == comparison["old"]
    assert picker(page, "To").input_value() == comparison["new"]
    assert page.locator("#headline").inner_text().startswith(f"{comparison['old']} → {comparison['new']}: ")
    assert rows(page) == [change["sentence"].partition(":")[0] for change in comparison["changes"]][:200]
    assert in_width(page)


@SIZES
def test_every_row_says_verdict_ratio_interval_and_cause(site: Path, page: Any) -> None:
    show(page, site, "upgrade", all="1")
    changes = newest(site)["changes"]
    found = page.locator("#changes tbody tr").all_inner_texts()
    assert len(found) == len(changes)
    for change, text in zip(changes, found, strict=True):
        assert SHOWN.get(change["verdict"], change["verdict"]) in text
        if change["why"]:
            assert change["why"] in text
        if change["reason"]:
            assert change["reason"] in text
        if change["ratio"] and 0.5 < change["ratio"] < 2 and change["unit"] == "seconds":
            way = re.search(r"([\d.]+) times( slower| faster)?", text)
            assert way, text
            assert float(way[1]) == pytest.approx(max(change["ratio"], 1 / change["ratio"]), abs=0.006)
            assert (way[2] is None) == (way[1] == "1.00")
            assert (way[2] == " faster") <= (change["ratio"] < 1)
    overflowing = page.evaluate(
        "[...document.querySelectorAll('#changes tbody td, #changes tbody th')]"
        ".filter((node) => node.scrollWidth > node.clientWidth + 1).length"
    )
    assert overflowing == 0
    if page.viewport_size["width"] < 400:
        scrolls = "document.querySelector('#changes').parentNode"
        assert page.evaluate(f"{scrolls}.scrollWidth <= {scrolls}.clientWidth")


def test_any_two_releases_are_in_the_address_the_older_one_first(site: Path, page: Any, data: dict[str, Any]) -> None:
    tags = [release["tag"] for release in data["releases"]]
    show(page, site, "upgrade")
    picker(page, "From").select_option(tags[0])
    picker(page, "To").select_option(tags[2])
    ready(page)
    page.reload()
    ready(page)
    assert {"from": tags[0], "to": tags[2]}.items() <= keys_of(page.url).items()
    assert page.locator("#headline").inner_text().startswith(f"{tags[0]} → {tags[2]}: ")
    show(page, site, "upgrade", **{"from": tags[2], "to": tags[0]})
    assert page.locator("#headline").inner_text().startswith(f"{tags[0]} → {tags[2]}: ")


def test_what_cannot_be_compared_is_refused_in_a_sentence(site: Path, page: Any, data: dict[str, Any]) -> None:
    tag, oldest = data["releases"][-1]["tag"], data["releases"][0]["tag"]
    for keys, said in [
        ({"from": tag, "to": tag}, f"{tag} was chosen on both sides: choose two releases."),
        ({"from": "v0.1", "to": tag}, "There are no results of 'v0.1' on "),
        ({"to": "v0.2"}, "There are no results of 'v0.2' on "),
        ({"to": oldest}, f"{oldest} is the oldest release measured on "),
    ]:
        show(page, site, "upgrade", **keys)
        assert page.get_by_role("alert").inner_text().startswith(said)
        assert picker(page, "From").is_visible()
    picker(page, "From").select_option(tag)
    ready(page)
    assert page.locator("#headline").inner_text().startswith(f"{oldest} → {tag}: ")
    show(page, site, "upgrade", **{"from": oldest.removeprefix("v"), "to": tag, "verdict": "WORSE"})
    assert page.get_by_role("alert").inner_text() == "There is no verdict 'WORSE': choose below."
    assert page.locator("#changes tbody tr").count() > 0


def test_filters_work_together_and_are_restored(lab: Path, site: Path, page: Any, data: dict[str, Any]) -> None:
    old, new = data["releases"][-2]["tag"], data["releases"][-1]["tag"]
    show(page, site, "upgrade", lane=LANE, **{"from": old, "to": new})
    changes = json.loads(compare(lab, data, old, new, "--json"))["changes"]
    verdicts = list(dict.fromkeys(change["verdict"] for change in changes))[:2]
    for verdict in verdicts:
        chip = page.locator(".tally button", has_text=verdict)
        assert chip.get_attribute("aria-pressed") == "false"
        chip.click()
        ready(page)
        assert chip.get_attribute("aria-pressed") == "true"
    assert keys_of(page.url)["verdict"] == ",".join(verdicts)
    chosen = [change for change in changes if change["verdict"] in verdicts]
    assert page.locator("#count").inner_text() == f"{len(chosen)} of {len(changes)} series."
    picker(page, "Question").select_option("intersection")
    ready(page)
    picker(page, "Metric").select_option("time")
    ready(page)
    page.get_by_label("Series, verdict or cause contains").press_sequentially("scripted")
    page.wait_for_function("location.hash.includes('search=scripted')")
    ready(page)
    assert page.evaluate("document.activeElement.id") == "choose-search"
    chosen = [
        change
        for change in chosen
        if (change["question"], change["metric"]) == ("intersection", "time") and "scripted" in change["sentence"]
    ]
    wanted = [change["sentence"].partition(":")[0] for change in chosen]
    assert rows(page) == wanted
    page.reload()
    ready(page)
    assert rows(page) == wanted
    assert page.locator(".tally button[aria-pressed=true]").count() == 2
    page.get_by_label("Series, verdict or cause contains").fill("no such words anywhere")
    page.wait_for_function("location.hash.includes('anywhere')")
    ready(page)
    assert page.locator("#count").inner_text().startswith("No series matches")
    page.get_by_role("button", name="Show every series").click()
    ready(page)
    assert page.locator("#count").inner_text() == f"{len(changes)} series."


def test_sorting_by_its_heads_is_in_the_address(lab: Path, site: Path, page: Any, data: dict[str, Any]) -> None:
    old, new = data["releases"][1]["tag"], data["releases"][-1]["tag"]
    show(page, site, "upgrade", all="1", lane=LANE, **{"from": old, "to": new})
    changes = json.loads(compare(lab, data, old, new, "--json"))["changes"]
    ratios = {
        change["sentence"].partition(":")[0]: change["ratio"] and float(f"{change['ratio']:.9g}") for change in changes
    }
    significance = rows(page)
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("Verdict")

    def sort(column: str) -> list[str]:
        page.get_by_role("columnheader", name=column).get_by_role("button").press("Enter")
        ready(page)
        assert page.evaluate("document.activeElement.id").startswith("sort-")
        return rows(page)

    largest = [ratios[name] for name in sort("New / old") if ratios[name] is not None]
    assert largest == sorted(largest, reverse=True)
    assert keys_of(page.url)["sort"] == "ratio"
    smallest = [ratios[name] for name in sort("New / old")]
    known = [ratio for ratio in smallest if ratio is not None]
    assert known == sorted(known)
    assert smallest[: len(known)] == known
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("New / old")
    names = sort("Series")
    assert names[0] < names[-1]
    page.reload()
    ready(page)
    assert rows(page) == names
    assert sort("Verdict") == significance
    assert "sort" not in keys_of(page.url)


def test_long_tables_are_shown_in_full_on_request(copied: Callable, page: Any) -> None:
    show(page, copied(lane_of(8, variants=15)), "upgrade")
    assert page.locator("#changes tbody tr").count() == 200
    page.get_by_role("button", name="Show all 300").press("Enter")
    ready(page)
    assert page.locator("#changes tbody tr").count() == 300
    row = "document.activeElement.closest('tr')"
    assert page.evaluate(f"[...document.querySelectorAll('#changes tbody tr')].indexOf({row})") == 200
    assert keys_of(page.url)["all"] == "1"


def test_a_row_leads_to_its_series_and_back(site: Path, page: Any) -> None:
    show(page, site, "upgrade", verdict="SAME", question="selection")
    address = page.url
    name = page.locator("#changes tbody a").first.inner_text()
    page.locator("#changes tbody a").first.click()
    page.wait_for_url("**/series.html**")
    keys = keys_of(page.url)
    assert keys["benchmark"].startswith("selection.")
    assert keys["variant"] in name
    page.go_back()
    page.wait_for_url(address)
    ready(page)
    assert page.locator("#changes tbody a").first.inner_text() == name


def test_environment_says_what_moved(lab: Path, site: Path, page: Any, data: dict[str, Any]) -> None:
    old, new = data["releases"][-2], data["releases"][-1]
    show(page, site, "upgrade")
    page.locator("#environment summary").click()
    moved = json.loads(compare(lab, data, old["tag"], new["tag"], "--json"))["moved"]
    text = page.locator("#environment").inner_text()
    for before, after in moved.values():
        if not isinstance(before, bool):
            assert str(before) in text
            assert str(after) in text
    ours = {each.partition("==")[0]: each.partition("==")[2] for each in new["facts"]["packages"]}
    theirs = {each.partition("==")[0]: each.partition("==")[2] for each in old["facts"]["packages"]}
    table = page.get_by_role("region", name="Packages that differ").locator("tbody tr").all_inner_texts()
    assert len(table) == len({name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)})
    assert any(row.split() == ["torch", theirs["torch"], ours["torch"]] for row in table)


def test_what_is_taken_along_is_what_the_command_prints(lab: Path, site: Path, page: Any, data: dict[str, Any]) -> None:
    tags = [release["tag"] for release in data["releases"]]
    page.add_init_script(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.taken = text; }}});"
    )
    for old, new in [(tags[-2], tags[-1]), (tags[1], tags[-1])]:
        show(page, site, "upgrade", lane=LANE, verdict="SAME", **{"from": old, "to": new})
        with page.expect_download() as download:
            page.get_by_role("button", name="Download JSON").click()
        assert download.value.suggested_filename == f"torch-history-{old}-{new}-{LANE}.json"
        document = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
        printed = json.loads(compare(lab, data, old, new, "--json"))
        del printed["answer"], printed["findings"]  # the page has rows
        for change in printed["changes"]:
            del change["detectable"]  # of the command alone
        assert document.keys() == printed.keys()
        for key, value in printed.items():
            assert alike(document[key], value), key
        with page.expect_download() as download:
            page.get_by_role("button", name="Download CSV").click()
        text = Path(download.value.path()).read_text(encoding="utf-8")
        table = list(csv.DictReader(io.StringIO(text)))
        assert [row["verdict"] for row in table] == [change["verdict"] for change in printed["changes"]]
        assert [row["benchmark"] for row in table] == [change["benchmark"] for change in printed["changes"]]
        ratios = [float(row["ratio"]) if row["ratio"] else None for row in table]
        assert alike(ratios, [change["ratio"] for change in printed["changes"]])
        page.get_by_role("button", name="Copy as Markdown").click()
        page.get_by_text("Copied.").wait_for()
        assert page.evaluate("window.taken").strip() == compare(lab, data, old, new, "--markdown").strip()
        assert f"torch-history compare {old} {new} --machine" in page.locator(".take").inner_text()


def test_markdown_of_a_published_page_links_to_the_comparison(
    lab: Path, site: Path, browser: Any, data: dict[str, Any]
) -> None:
    old, new = (release["tag"] for release in data["releases"][-2:])
    url = "https://perf.example/torch(1)"
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    page.route("**/*", lambda route: route.fulfill(path=site / route.request.url.split("?")[0].removeprefix(f"{url}/")))
    page.add_init_script(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.taken = text; }}});"
    )
    page.goto(f"{url}/upgrade.html#verdict=SAME")
    ready(page)
    page.get_by_role("button", name="Copy as Markdown").click()
    page.get_by_text("Copied.").wait_for()
    taken = page.evaluate("window.taken").strip()
    context.close()
    assert f"[Every series, with its history](https://perf.example/torch%281%29/upgrade.html#lane={LANE}&from=" in taken
    assert taken == compare(lab, data, old, new, "--markdown", "--url", url).strip()


def test_a_clipboard_that_refuses_leaves_the_text_selected(site: Path, page: Any) -> None:
    page.add_init_script(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: () => Promise.reject(new Error('no'))}});"
    )
    show(page, site, "upgrade")
    page.get_by_role("button", name="Copy as Markdown").click()
    area = page.get_by_label("Text to copy")
    area.wait_for()
    assert area.input_value().startswith("### PyTorch")
    assert page.evaluate("getSelection().toString() || document.activeElement.selectionEnd > 0")


@SIZES
def test_names_that_look_like_html_are_text(copied: Callable, page: Any) -> None:
    lane = lane_of(4, variants=2, change_at=3)
    for series in lane["series"]:
        series["variant"] = series["variant"].replace("variant_0", HOSTILE)
        series["parameters"] = [series["variant"], HOSTILE]
        series["size"] = HOSTILE
    lane["series"][0]["missing"] = []
    lane["reasons"] = [HOSTILE]
    lane["series"][3]["missing"] = [[3, 0, 1]]
    site = copied(lane)
    for name in ("index", "upgrade"):
        show(page, site, name, metric="all" if name == "index" else "", base=HOSTILE)
        assert page.locator("img").count() == 0
        assert HOSTILE in page.locator("main").inner_text()
        assert in_width(page)


@pytest.mark.committed
def test_one_choice_answers_an_upgrade_from_the_committed_results(page: Any, tmp_path: Path) -> None:
    """From 2.3.1 to the newest: what Python says of memory, the first findings, how sure, and what was not measured."""
    root = Path(__file__).resolve().parents[1]
    html = tmp_path / "html"
    command = [str(Path(sys.executable).with_name("torch-history"))]
    subprocess.run([*command, "publish", "--html-dir", str(html)], cwd=root, check=True, capture_output=True)
    page.goto((html / "index.html").as_uri())
    ready(page)
    picker(page, "From").select_option("v2.3.1")
    ready(page)
    newest, shown = picker(page, "To").input_value(), page.locator("#choose-lane").input_value()
    known = json.loads((html / "data" / "index.json").read_text())["lanes"]
    lane = next(each for each in known if each["id"] == shown)
    asked = ["compare", "v2.3.1", newest, "--machine", lane["machine"], "--lane", lane["environment"], "--json"]
    said = json.loads(subprocess.run([*command, *asked], cwd=root, check=True, capture_output=True, text=True).stdout)
    text = plain(page.locator(".newest").inner_text())
    for card in said["answer"]["cards"]:
        first, *others = of_verdict(card)
        assert f"{card['name']} {first}" in text
        assert all(other in text for other in others)
    for finding in said["findings"][:3]:
        assert plain(finding["words"]).replace("`", "") in text
    assert "of the changes reported in them are expected to be false" in text
    assert "no GPU time" in text
    assert ", ".join(answer.UNMEASURED) in text
    assert "Download with all packages" in text
