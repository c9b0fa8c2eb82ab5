"""Does asv's dashboard, as torch-history publishes it, open without a network?

From a small results tree made here: the files that were written, and in a headless Chromium what a person
sees, from a web server and from disk, with every other host out of reach.
"""

from __future__ import annotations

import copy
import datetime
import functools
import http.server
import itertools
import json
import math
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from asv import util
from asv.commands.preview import Preview
from asv.config import Config
from asv.results import Results
from asv.runner import BenchmarkResult

import torch_history.releases.axis
import torch_history.releases.repository
from torch_history.errors import UserError
from torch_history.releases.axis import Axis
from torch_history.site import asv_dashboard as classic
from torch_history.system.scratch import mark

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

VERSIONS = (
    "2.1.0",
    "2.2.0",
    "2.3.0",
    "2.4.0",
    "2.5.0",
    "2.5.1",
    "2.6.0",
    "2.7.0",
    "2.8.0",
    "2.9.0",
    "2.10.0",
)
TAGS = [f"v{version}" for version in VERSIONS]
MACHINE = {
    "machine": "test-box",
    "arch": "x86_64",
    "cpu": "Xeon(R) @ 2.10GHz, 100% of #1 / µ <&> 'q'",
    "num_cpu": "8",
    "os": "Linux",
    "ram": "16G",
}
TIME = "intersection.Small.track_time"
BYTES = "intersection.Small.track_peak"
VARIANTS = ["'eager'", "'scripted'", "'in_place'"]
REMOTE = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)\s*=\s*["']?(?:https?:)?//""", re.I)


def seconds(position: int) -> list[float | None]:
    """Per variant: v2.5.0 failed, in_place was not there at first, scripted got slower after v2.4.0."""
    if VERSIONS[position] == "2.5.0":
        return [None, None, None]
    noise = 1 + 0.001 * (position % 3)
    slower = 2.0 if position > 4 else 1.0
    in_place = math.nan if position < 2 else 4e-6 * noise
    return [2e-5 * noise, 1e-5 * noise * slower, in_place]


def write_results(root: Path) -> Config:
    """A results tree of one machine, and the configuration that asv would have loaded for it."""
    axis = root / "releases.toml"
    axis.write_text(
        "".join(
            f'[[release]]\nversion = "{version}"\ndate = "{2023 + i // 4}-{1 + 3 * (i % 4):02}-15"\n'
            'date_source = "estimated"\npythons = ["3.11"]\ncuda = "12.1"\n\n'
            for i, version in enumerate(VERSIONS)
        )
    )
    common = {"version": "1", "code": "def call(): ...", "timeout": 60}
    benchmarks: dict[str, dict[str, Any]] = {
        TIME: {"type": "time", "unit": "seconds", "params": [VARIANTS], "param_names": ["variant"]},
        BYTES: {"type": "track", "unit": "bytes", "params": [], "param_names": []},
    }
    for name, benchmark in benchmarks.items():
        benchmark.update(common, name=name)
    results = root / "results"
    util.write_json(results / "benchmarks.json", benchmarks, api_version=2)
    util.write_json(results / MACHINE["machine"] / "machine.json", MACHINE, api_version=1)
    for position, release in enumerate(torch_history.releases.axis.Axis.load(axis).releases):
        params = {**MACHINE, "python": "3.11"}
        result = Results(params, {}, release.tag, release.timestamp, "3.11", "release-py3.11", {})
        values: dict[str, list[Any]] = {
            TIME: seconds(position),
            BYTES: [None if release.version == "2.3.0" else 7_000_000 + 1000 * position],
        }
        for name, value in values.items():
            empty = [None] * len(value)
            result.add_result(
                benchmarks[name],
                BenchmarkResult(result=value, samples=empty, number=empty, errcode=0, stderr="", profile=None),
                started_at=datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC),
            )
        result.save(str(results))
    return Config.from_json(
        {
            "project": "PyTorch",
            "project_url": "#",
            "repo": str(axis),
            "dvcs": "torch-releases",
            "branches": ["releases"],
            "show_commit_url": "#",
            "results_dir": str(results),
            "html_dir": str(root / "unused"),
        }
    )


@dataclass(frozen=True)
class Published:
    conf: Config
    site: Path

    @property
    def dashboard(self) -> Path:
        return self.site / "asv"


def publish(conf: Config, axis: Axis, html_dir: Path, here: str = "") -> None:
    with tempfile.TemporaryDirectory() as scratch:
        classic.link_readable(conf, axis, Path(scratch))
        classic.publish_linked(conf, Path(scratch), html_dir, here)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    root = tmp_path_factory.mktemp("classic")
    conf = write_results(root)
    site = root / "a site"
    site.mkdir()
    (site / "index.html").write_text("<!doctype html><title>front page</title><link rel=icon href=data:,>")
    before = copy.deepcopy(vars(conf))
    publish(conf, Axis.load(conf.repo), site / "asv")
    assert vars(conf) == before
    return Published(conf, site)


def test_pages_load_nothing_from_other_hosts(published: Published) -> None:
    pages = sorted(published.dashboard.glob("*.html"))
    assert [page.name for page in pages] == ["error.html", "index.html"]
    for page in pages:
        text = page.read_text()
        assert not REMOTE.findall(text)
        assert "integrity" not in text
        assert "crossorigin" not in text
        for file in re.findall(r'<(?:script|link)\b[^>]*(?:src|href)="([^"]+)"', text):
            assert (published.dashboard / file).is_file(), file


def test_shim_comes_between_jquery_and_asv(published: Published) -> None:
    scripts = re.findall(r'<script\b[^>]*src="([^"]+)"', (published.dashboard / "index.html").read_text())
    assert scripts[:3] == ["vendor/failure.js", "vendor/jquery-3.3.1.min.js", "vendor/offline.js"]
    assert scripts.index("vendor/offline.js") < scripts.index("asv.js")


def test_vendored_files_are_those_asv_names(published: Published) -> None:
    vendored = {path.name for path in (published.dashboard / "vendor").iterdir()} - set(classic.OWN_SCRIPTS)
    assert len(vendored) == 10
    for name in vendored:
        assert (published.dashboard / "vendor" / name).read_bytes() == (classic.VENDOR / name).read_bytes()
        assert f"`{name}`" in (classic.VENDOR / "README.md").read_text()


def test_tampered_vendored_file_is_refused(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor = tmp_path / "vendor"
    shutil.copytree(classic.VENDOR, vendor)
    with (vendor / "stupidtable.min.js").open("a") as stream:
        stream.write(" ")
    monkeypatch.setattr(classic, "VENDOR", vendor)
    with pytest.raises(UserError, match=r"vendor/stupidtable\.min\.js is not the file .*sha512.*Restore it"):
        publish(published.conf, Axis.load(published.conf.repo), tmp_path / "html")


def test_missing_vendored_file_is_refused(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor = tmp_path / "vendor"
    shutil.copytree(classic.VENDOR, vendor)
    (vendor / "md5.min.js").unlink()
    monkeypatch.setattr(classic, "VENDOR", vendor)
    with pytest.raises(UserError, match=r"md5\.min\.js, of which torch-history has no copy.*add md5\.min\.js"):
        publish(published.conf, Axis.load(published.conf.repo), tmp_path / "html")


def test_changed_dashboard_is_refused(published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = classic._Edit("a thing", "asv.js", "a line asv never had", "")
    monkeypatch.setattr(classic, "_EDITS", (gone,))
    with pytest.raises(UserError, match=r"asv\.js is not the one .* a thing\. Install asv 0\.6\.6"):
        publish(published.conf, Axis.load(published.conf.repo), tmp_path / "html")


def test_only_the_newest_releases_are_in_it(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classic, "MOST_RELEASES", 2)
    axis = Axis.load(published.conf.repo)
    publish(published.conf, axis, tmp_path / "html")
    graph = tmp_path / "html" / "graphs" / "summary" / f"{BYTES}.json"
    positions = [position for position, _ in json.loads(graph.read_text())]
    assert positions == [len(axis.releases) - 2, len(axis.releases) - 1]


def twin_data(path: Path) -> Any:
    match = re.fullmatch(r"torchHistoryTwin\((.*)\);\n", path.read_text(encoding="ascii"))
    assert match, path
    return json.loads(match[1])


def test_each_json_file_has_a_twin(published: Published) -> None:
    files = list(published.dashboard.rglob("*.json"))
    names = {path.name for path in files}
    assert {"index.json", "info.json", "regressions.json", "summary.json", f"{TIME}.json"} <= names
    for path in files:
        twin = path.with_name(path.name + ".js")
        assert twin_data(twin) == json.loads(path.read_text())
        assert "<" not in twin.read_text()


def test_twin_escapes_what_a_script_cannot_hold(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    data = {"</script>": "\u2028\u2029<!--é", "n": [1.5, None]}
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    classic._write_json_twin(path)
    assert twin_data(tmp_path / "x.json.js") == data
    assert "</script" not in (tmp_path / "x.json.js").read_text()


def test_numbers_no_browser_reads_become_null(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": [NaN, 1, Infinity, -Infinity]}')
    classic._write_json_twin(path)
    assert json.loads(path.read_text()) == {"a": [None, 1, None, None]}
    assert twin_data(tmp_path / "x.json.js") == {"a": [None, 1, None, None]}


@dataclass
class Visit:
    """An open dashboard; `trouble` collects what must not happen."""

    page: Page
    url: str
    trouble: list[str] = field(default_factory=list)

    def open(self, hash_part: str = "") -> Page:
        self.page.goto(self.url + hash_part)
        return self.page


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def served(published: Published) -> Iterator[str]:
    handler = functools.partial(QuietHandler, directory=str(published.site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(params=["file", "http"])
def visit(request: pytest.FixtureRequest, browser: Browser, published: Published) -> Iterator[Visit]:
    on_disk = request.param == "file"
    home = f"{published.site.as_uri()}/" if on_disk else request.getfixturevalue("served")
    context: BrowserContext = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_offline(on_disk)
    page = context.new_page()
    page.set_default_timeout(10_000)
    visit = Visit(page, home + "asv/index.html")

    def guard(route: Any) -> None:
        if route.request.url.startswith((home, "data:")):
            route.continue_()
        else:
            visit.trouble.append(f"request to {route.request.url}")
            route.abort()

    context.route("**/*", guard)

    def hear(message: Any) -> None:
        if message.type == "error":
            visit.trouble.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: visit.trouble.append(str(error)))
    yield visit
    context.close()
    assert visit.trouble == []


def texts(page: Page, selector: str) -> list[str]:
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def ticks(page: Page) -> list[str]:
    labels = page.locator("#main-graph .flot-x-axis .flot-tick-label")
    labels.first.wait_for()
    placed: Callable[[Any], list[str]] = labels.evaluate_all
    return placed(
        "labels => labels.map(l => [l.getBoundingClientRect().left, l.innerText])"
        ".sort((a, b) => a[0] - b[0]).map(l => l[1])"
    )


def markings(page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate("$('#main-graph').data('plot').getOptions().grid.markings")
    return found


@pytest.mark.browser
def test_grid_shows_the_benchmarks(visit: Visit, published: Published) -> None:
    page = visit.open()
    page.locator("#summarygrid-display .benchmark-plot canvas").nth(2).wait_for()
    assert texts(page, "#summarygrid-display .benchmark-text") == ["Small.track_peak", "Small.track_time"]
    assert not page.locator("#error").is_visible()
    link = page.locator("#nav ul li").first
    assert link.inner_text().strip() == "torch-history"
    link.locator("a").click()
    page.wait_for_function("document.title == 'front page'")


HOSTILE = "</code><script>window.stolen = 1</script><img src=x onerror='window.stolen = 2'>"


@pytest.mark.browser
def test_text_of_strangers_runs_nothing_on_asvs_pages(tmp_path: Path, browser: Browser) -> None:
    conf = write_results(tmp_path)
    path = Path(conf.results_dir) / "benchmarks.json"
    benchmarks = json.loads(path.read_text())
    for benchmark in benchmarks.values():
        if isinstance(benchmark, dict):
            benchmark.update(code=HOSTILE, pretty_name=f"a name {HOSTILE}")
    path.write_text(json.dumps(benchmarks))
    publish(conf, Axis.load(conf.repo), tmp_path / "site" / "asv")
    page = browser.new_page()
    for place in ("", f"#{TIME}", "#/summarylist", "#/regressions"):
        page.goto(f"{(tmp_path / 'site' / 'asv' / 'index.html').as_uri()}{place}")
        page.wait_for_timeout(500)
        assert page.evaluate("window.stolen") is None
        assert page.locator("img[src=x]").count() == 0
        page.reload()
    page.goto(f"{(tmp_path / 'site' / 'asv' / 'index.html').as_uri()}#{TIME}")
    page.locator("#main-graph canvas.flot-base").wait_for()
    assert "<script>" in page.content() or "&lt;script&gt;" in page.content(), "the text is shown, and as text"
    page.close()


@pytest.mark.browser
def test_the_policy_of_asvs_pages_stops_what_an_escape_would_miss(visit: Visit) -> None:
    page = visit.open()
    page.evaluate("document.body.insertAdjacentHTML('beforeend', `<img src=x onerror='window.stolen = 1'>`)")
    page.evaluate(
        "const script = document.createElement('script'); script.textContent = 'window.stolen = 2';"
        "document.body.append(script)"
    )
    page.wait_for_timeout(300)
    assert page.evaluate("window.stolen") is None
    visit.trouble.clear()  # the policy says in the console what it stopped


@pytest.mark.browser
def test_graph_draws_each_variant_over_release_tags(visit: Visit) -> None:
    page = visit.open(f"#{TIME}")
    page.locator("#main-graph canvas.flot-base").wait_for()
    page.locator("#main-graph .legendLabel").nth(2).wait_for()
    assert texts(page, "#main-graph .legendLabel") == [
        "variant-eager",
        "variant-scripted",
        "variant-in_place",
    ]
    assert ticks(page) == TAGS
    assert page.locator("#range").input_value() == f"{TAGS[0]}..{TAGS[-1]}"


@pytest.mark.browser
def test_every_scale_of_the_x_axis_shows_release_tags(visit: Visit) -> None:
    page = visit.open(f"#{TIME}?x-axis-scale=even")
    assert set(ticks(page)) <= set(TAGS)
    assert TAGS[-1] in ticks(page)
    page.locator("#date-scale").click()
    page.locator("#main-graph .flot-tick-label", has_text="2025-07-15").wait_for()
    assert all(re.fullmatch(r"v2\.\d+\.\d\n20\d\d-\d\d-15", tick) for tick in ticks(page))


@pytest.mark.browser
def test_narrow_page_shows_only_tags_with_room(visit: Visit) -> None:
    page = visit.open(f"#{TIME}")
    assert ticks(page) == TAGS
    page.set_viewport_size({"width": 620, "height": 800})
    page.locator("#main-graph .flot-tick-label", has_text=TAGS[-2]).wait_for(state="detached")
    shown = ticks(page)
    assert shown[-1] == TAGS[-1]
    assert 2 < len(shown) < len(TAGS)
    boxes = page.locator("#main-graph .flot-x-axis .flot-tick-label").evaluate_all(
        "labels => labels.map(l => l.getBoundingClientRect()).map(b => [b.left, b.right])"
    )
    boxes.sort()
    assert all(left[1] < right[0] for left, right in itertools.pairwise(boxes))


@pytest.mark.browser
def test_variants_stand_side_by_side(visit: Visit) -> None:
    page = visit.open(f"#{TIME}")
    assert ticks(page) == TAGS
    page.locator("#graphdisplay-navigation-params a", has_text="variant").click()
    page.locator("#main-graph .flot-tick-label", has_text="in_place").wait_for()
    assert ticks(page) == ["eager", "scripted", "in_place"]
    offered = texts(page, "#graphdisplay-navigation-params .panel:nth-of-type(2) a")
    assert [text.split()[0] for text in offered] == ["last", *reversed(TAGS)]


@pytest.mark.browser
def test_regression_leads_to_its_graph(visit: Visit) -> None:
    page = visit.open("#/regressions")
    link = page.locator("#regressions-body td a", has_text=TIME)
    link.wait_for()
    assert texts(page, "#regressions-body td a") == [f"{TIME}('scripted')"]
    assert "v2.4.0..v2.5.1" in page.locator("#regressions-body tbody").first.inner_text()
    link.hover()
    page.locator(".popover canvas.flot-base").wait_for()
    link.click()
    page.locator("#main-graph canvas.flot-base").wait_for()
    red = [mark["xaxis"] for mark in markings(page) if mark["color"] != "#ddd"]
    assert [(int(span["from"]), int(span["to"])) for span in red] == [(3, 3), (5, 5), (3, 5)]


@pytest.mark.browser
def test_list_shows_each_variant_and_sorts(visit: Visit) -> None:
    page = visit.open("#/summarylist")
    page.locator("#summarylist-body tbody tr").nth(3).wait_for()
    rows = texts(page, "#summarylist-body tbody tr td:first-child")
    assert sorted(rows) == sorted([*(f"{TIME} ({variant})" for variant in VARIANTS), BYTES])
    page.locator("#summarylist-body th", has_text="Value").click()
    page.locator("#summarylist-body th.asc", has_text="Value").wait_for()
    values = texts(page, "#summarylist-body tbody tr td:nth-child(2)")
    assert values == ["7.005M", "4.004μs", "20.020μs", "20.020μs"]
    page.locator("#summarylist-body td a", has_text="scripted").click()
    page.locator("#main-graph .legendLabel").wait_for(state="attached")


@pytest.mark.browser
def test_hash_navigation_and_back(visit: Visit) -> None:
    page = visit.open()
    page.locator(".benchmark-text", has_text="track_peak").click()
    page.locator("#main-graph canvas.flot-base").wait_for()
    assert page.locator("#title").inner_text().strip() == BYTES
    page.locator("#nav-li-summarylist a").click()
    page.locator("#summarylist-body td").first.wait_for()
    page.locator("#nav-li- a").click()
    page.locator("#summarygrid-display .benchmark-text").first.wait_for()
    page.evaluate("history.go(-3)")
    page.locator("#main-graph canvas.flot-base").wait_for()
    page.go_back()
    page.locator("#summarygrid-display .benchmark-text").first.wait_for()


COUNT = "intersection.Small.track_operators"
OTHER, RECORDED = "a-box-with-less", "a-recorded-card"


@pytest.fixture(scope="module")
def of_three(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """Results of three machines, of which one is the recorder, and one has a Python of its own and half of the releases; and
    a count that rises as a time does."""
    conf = write_results(tmp_path_factory.mktemp("three"))
    results = Path(conf.results_dir)
    listed = json.loads((results / "benchmarks.json").read_text())
    (results / "benchmarks.json").write_text(json.dumps({**listed, COUNT: {**listed[TIME], "name": COUNT, "unit": ""}}))
    for name, params in ((OTHER, {"python": "3.12"}), (RECORDED, {"device": "recorder"}), (MACHINE["machine"], {})):
        (results / name).mkdir(exist_ok=True)
        about = {**MACHINE, **params, "machine": name}
        (results / name / "machine.json").write_text(json.dumps({**about, "version": 1}))
        for path in sorted((results / MACHINE["machine"]).glob("v*.json"))[:: 2 if name == OTHER else 1]:
            result = json.loads(path.read_text())
            result["results"][COUNT] = result["results"][TIME]
            result["params"].update(about)
            (results / name / path.name).write_text(json.dumps(result))
    return conf


def opens_with(html_dir: Path) -> list[str]:
    index = json.loads((html_dir / "index.json").read_text())
    (first,) = {tuple(benchmark["opens_with"]["machine"]) for benchmark in index["benchmarks"].values()}
    assert first == (index["params"]["machine"][0],)
    return list(index["params"]["machine"])


def test_a_graph_opens_with_this_machine_else_with_what_ran_and_has_most(of_three: Config, tmp_path: Path) -> None:
    axis = Axis.load(of_three.repo)
    publish(of_three, axis, tmp_path / "html")
    assert opens_with(tmp_path / "html") == [MACHINE["machine"], OTHER, RECORDED]
    publish(of_three, axis, tmp_path / "html", OTHER)
    assert opens_with(tmp_path / "html") == [OTHER, MACHINE["machine"], RECORDED]


def test_regressions_leave_out_what_asv_cannot_say(of_three: Config, tmp_path: Path) -> None:
    publish(of_three, Axis.load(of_three.repo), tmp_path / "html")
    found = json.loads((tmp_path / "html" / "regressions.json").read_text())["regressions"]
    assert {name.partition("(")[0] for name, *_ in found} == {TIME}, "more operators are not worse"
    assert {params["machine"] for _, _, params, *_ in found} == {MACHINE["machine"], OTHER}, (
        "nothing ran on the recorder"
    )
    feed = (tmp_path / "html" / "regressions.xml").read_text()
    assert TIME in feed
    assert COUNT not in feed


@pytest.mark.browser
def test_another_machine_is_chosen_by_one_click_and_stays_in_the_address(
    of_three: Config, tmp_path: Path, browser: Browser
) -> None:
    publish(of_three, Axis.load(of_three.repo), tmp_path / "html")
    page = browser.new_page()
    page.goto(f"{(tmp_path / 'html' / 'index.html').as_uri()}#{TIME}")
    machines = page.locator("#graphdisplay-state-params .panel", has_text="machine").first
    legend = page.locator("#main-graph .legendLabel")
    legend.nth(2).wait_for()
    assert texts(page, "#main-graph .legendLabel") == [f"variant-{name}" for name in ("eager", "scripted", "in_place")]
    machines.locator("a", has_text=OTHER).click()
    legend.nth(5).wait_for()
    machines.locator("a", has_text=RECORDED).click()
    legend.nth(8).wait_for()
    page.reload()
    legend.nth(8).wait_for()
    assert legend.count() == 9, "also where all are chosen"
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("in_site", [True, False])
def test_what_plain_asv_publishes_opens_from_disk_and_links_to_the_site_only_if_there_is_one(
    published: Published, tmp_path: Path, browser: Browser, in_site: bool
) -> None:
    conf = copy.copy(published.conf)
    conf.html_dir = str(tmp_path / "html" / "asv")
    if in_site:
        (tmp_path / "html").mkdir()
        mark(tmp_path / "html")
    classic.publish_safe(conf)
    page = browser.new_page()
    page.goto((tmp_path / "html" / "asv" / "index.html").as_uri())
    page.locator("#summarygrid-display .benchmark-plot canvas").nth(2).wait_for()
    assert not page.locator("#error").is_visible()
    assert page.locator("#nav-li-torch-history a").count() == in_site
    page.close()


def test_a_preview_of_no_pages_is_refused_in_a_sentence(published: Published, tmp_path: Path) -> None:
    conf = copy.copy(published.conf)
    conf.html_dir = str(tmp_path / "html" / "asv")
    with pytest.raises(util.UserError, match=r"no pages in .*html/asv to show\. Write asv's with `asv publish`"):
        classic._preview_in_site(Preview, conf)


@pytest.mark.browser
def test_missing_graph_is_told_not_taken_for_a_dead_server(visit: Visit, published: Published) -> None:
    (graph,) = published.dashboard.glob(f"graphs/*/*/*/**/{BYTES}.json")
    pair = [graph, graph.with_name(graph.name + ".js")]
    for path in pair:
        path.rename(path.with_suffix(".away"))
    try:
        page = visit.open(f"#{BYTES}")
        page.locator("#error-message", has_text="No data for this combination").wait_for()
    finally:
        for path in pair:
            path.with_suffix(".away").rename(path)
    assert visit.trouble
    visit.trouble.clear()


@pytest.mark.browser
def test_missing_script_leads_to_the_page_that_says_what_to_do(visit: Visit, published: Published) -> None:
    script = published.dashboard / "vendor" / "md5.min.js"
    script.rename(script.with_suffix(".away"))
    try:
        visit.page.goto(visit.url)
        visit.page.wait_for_url("**/error.html")
        assert "They are in the folder vendor" in visit.page.inner_text("body")
    finally:
        script.with_suffix(".away").rename(script)
    assert visit.trouble
    visit.trouble.clear()
