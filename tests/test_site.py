"""Does the site open with no network, and show what was measured? From the results in the repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, published by the command from the committed results."""
    folder = tmp_path_factory.mktemp("published") / "html"
    _publish(folder)
    return folder


def _publish(folder: Path, results: Path | None = None) -> subprocess.CompletedProcess:
    code = "from torch_history.cli import main; main()"
    surroundings = {**os.environ, "HOME": str(folder.parent)}
    command = [sys.executable, "-c", code, "publish", "--html-dir", str(folder)]
    if results:
        command += ["--results-dir", str(results)]
    answer = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True)
    if results is None:
        assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer


def test_a_publish_that_fails_leaves_the_site_as_it_was(site: Path, tmp_path: Path) -> None:
    copy = tmp_path / "html"
    shutil.copytree(site, copy)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    answer = _publish(copy, results=tmp_path / "nothing-here")
    assert answer.returncode == 1
    assert "holds no launches to publish" in answer.stderr
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".publishing")] == []


def test_names_from_data_are_shown_as_text(tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(ROOT / "results", results)
    (machine,) = [path.parent for path in results.glob("*/machine.json")][:1]
    record = json.loads((machine / "machine.json").read_text(encoding="utf-8"))
    record["cpu"] = "<img src=x onerror=alert(1)>"
    (machine / "machine.json").write_text(json.dumps(record), encoding="utf-8")
    for path in machine.glob("*.jsonl"):
        text = path.read_text(encoding="utf-8").replace("'eager'", "'</script><img src=x onerror=alert(1)>'")
        path.write_text(text, encoding="utf-8")
    _publish(tmp_path / "html", results)
    page = (tmp_path / "html" / "index.html").read_text(encoding="utf-8")
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


@pytest.fixture
def page(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page of a headless Chromium without network, which fails the test on a console error or a request elsewhere."""
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        if os.environ.get("CI"):
            pytest.fail("CI must open the site in a browser, and there is no chromium: run `make browser`")
        pytest.skip("no chromium on this machine: `make browser` installs Debian's")
    size = getattr(request, "param", (1200, 900))
    complaints: list[str] = []

    def elsewhere(url: str) -> list[str]:
        return [] if url.startswith(("file:", "data:")) else [url]

    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        context = browser.new_context(viewport={"width": size[0], "height": size[1]})
        context.set_offline(True)
        tab = context.new_page()
        tab.on(
            "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
        )
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda request: complaints.extend(elsewhere(request.url)))
        yield tab
        browser.close()
    assert complaints == []


def _draw(page: Any) -> None:
    """Opens every question of the first lane and scrolls to its first charts, which draws them."""
    for question in page.locator("section").first.locator("details.question").all():
        question.evaluate("details => details.open = true")
        for figure in question.locator("figure").all()[:3]:
            figure.scroll_into_view_if_needed()
            figure.locator("svg").first.wait_for()


@pytest.mark.browser
@pytest.mark.parametrize("page", [(1200, 900), (360, 740)], indirect=True)
def test_charts_are_drawn_and_nothing_is_wider_than_the_screen(site: Path, page: Any) -> None:
    page.goto((site / "index.html").as_uri())
    _draw(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    intersection = page.locator("figure", has_text="intersection time, size small").first
    labels = intersection.locator("svg text").all_text_contents()
    assert "v2.15.0" in labels
    assert {"eager", "scripted", "compiled"} <= set(labels)


@pytest.mark.browser
def test_a_chart_has_the_same_numbers_as_a_table(site: Path, page: Any) -> None:
    page.goto((site / "index.html").as_uri())
    peak = page.locator("figure", has_text="intersection peak memory, size small").first
    page.locator("details.question", has_text="intersection").first.evaluate("details => details.open = true")
    peak.locator("summary").click()
    header = peak.locator("thead th").all_text_contents()
    row = peak.locator("tbody tr", has_text=re.compile("^eager")).locator("td").all_text_contents()
    assert row[header.index("v2.15.0") - 1] == "240,000,000 B"


@pytest.mark.browser
def test_every_link_leads_somewhere(site: Path, page: Any) -> None:
    page.goto((site / "index.html").as_uri())
    links = [link.get_attribute("href") for link in page.locator("a").all()]
    assert links
    for link in links:
        if link.startswith("#"):
            assert page.locator(f"[id='{link[1:]}']").count() == 1
        else:
            page.goto((site / link).as_uri())
            page.wait_for_load_state("networkidle")
            page.get_by_role("link", name="torch-history").first.click()
            page.wait_for_url((site / "index.html").as_uri())
            page.locator("footer").wait_for()


@pytest.mark.browser
def test_asv_dashboard_draws_a_series_with_its_variants_over_release_tags(site: Path, page: Any) -> None:
    page.goto((site / "asv" / "index.html").as_uri() + "#intersection.Intersection.track_peak_memory")
    page.locator("#main-graph canvas").first.wait_for()
    page.locator(".legend >> text=eager").first.wait_for()
    ticks = page.locator("#main-graph .flot-x-axis .flot-tick-label").all_text_contents()
    assert "v2.15.0" in " ".join(ticks)
