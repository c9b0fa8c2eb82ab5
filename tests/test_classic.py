"""Does asv's dashboard, as torch-history publishes it, open without a network, from disk and from a web server?"""

import base64
import copy
import functools
import hashlib
import http.server
import json
import math
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asv
import pytest
from asv.config import Config

import torch_history.releases.repository  # noqa: F401  asv reads a list of releases with this loaded
from torch_history.site import asv_dashboard
from torch_history.system.errors import UserError
from torch_history.system.scratch import mark

from .lab import VARIANTS, write_few
from .result_files import write_machine

MACHINE, OTHER = "test-box", "another-box"
TIME = "intersection.Intersection.track_time"
PEAK = "intersection.Intersection.track_peak_memory"


def write_results(root: Path) -> Config:
    """Results of two machines, and the configuration that asv would have loaded for them. The second has no times, and bytes
    from 0 and from none on."""
    conf = write_few(root, 10, machines=(MACHINE, OTHER))
    for path in (root / "results").glob("*/machine.json"):
        write_machine(path.parent, cpu="Xeon(R) @ 2.10GHz / µ <&> 'q'")
    for number, path in enumerate(sorted((root / "results" / OTHER).glob("v*.json"))):
        found = json.loads(path.read_text())
        found["results"][PEAK][0][:2] = 7_000_000 * (number > 4), 7_000_000 if number else math.nan
        found["results"].pop(TIME)
        path.write_text(json.dumps(found))
    return conf


def publish(conf: Config, folder: Path) -> Path:
    """Publishes asv's dashboard of what asv can read into `folder`, and returns it."""
    readable = folder.parent / "readable"
    readable.mkdir(parents=True)
    asv_dashboard.link_readable(conf, readable)
    conf = copy.copy(conf)
    conf.html_dir, conf.results_dir = str(folder), str(readable)
    asv_dashboard.publish_dashboard(conf)
    return folder


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dashboard within a site."""
    root = tmp_path_factory.mktemp("classic")
    site = root / "a site"
    site.mkdir()
    mark(site)
    (site / "index.html").write_text("<!doctype html><title>front page</title><link rel=icon href=data:,>")
    return publish(write_results(root), site / "asv")


def test_vendored_files_are_those_asv_names() -> None:
    page = (Path(asv.__file__).parent / "www" / "index.html").read_text()
    named = re.findall(r'"https://[^"]+/([^"/]+)" integrity="(sha\d+)-([^"]+)"', page)
    assert len(named) == 10
    for file, kind, digest in named:
        content = (asv_dashboard.VENDOR / file).read_bytes()
        assert base64.b64encode(hashlib.new(kind, content).digest()).decode() == digest, file


def test_a_library_without_a_copy_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(asv_dashboard.VENDOR, tmp_path / "vendor")
    (tmp_path / "vendor" / "md5.min.js").unlink()
    monkeypatch.setattr(asv_dashboard, "VENDOR", tmp_path / "vendor")
    with pytest.raises(UserError, match=r"it loads md5\.min\.js\. Install asv 0\.6\.6"):
        publish(write_results(tmp_path), tmp_path / "html")


def test_each_json_file_has_a_script_with_the_same(published: Path, tmp_path: Path) -> None:
    files = [*published.rglob("*.json")]
    assert {"index.json", "info.json", "regressions.json", f"{TIME}.json"} <= {path.name for path in files}
    odd = tmp_path / "x.json"
    odd.write_text('{"</script>\u2028é": [NaN, 1, Infinity]}', encoding="utf-8")
    asv_dashboard._write_twin(odd)
    assert json.loads(odd.read_text()) == {"_/script>\u2028é": [None, 1, None]}
    for path in [*files, odd]:
        twin = path.with_name(path.name + ".js").read_text(encoding="ascii")
        assert twin == f"torchHistoryTwin({path.read_text()});\n"
        assert "<" not in twin


@pytest.fixture(params=["file", "http"])
def address(request: pytest.FixtureRequest, published: Path) -> Iterator[str]:
    if request.param == "file":
        yield f"{published.as_uri()}/index.html"
        return
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(published.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/asv/index.html"
        server.shutdown()


@pytest.mark.browser
def test_every_page_works_without_a_network(address: str, browser: Any) -> None:
    page = browser.new_page()
    trouble: list[str] = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda said: trouble.append(said.text) if said.type == "error" else None)
    page.on("requestfailed", lambda request: trouble.append(request.url))
    page.goto(address)
    page.locator("#summarygrid-display .benchmark-plot canvas").nth(2).wait_for()
    page.goto(f"{address}#{TIME}")
    page.locator("#main-graph canvas.flot-base").wait_for()
    page.locator("#main-graph .legendLabel").nth(4).wait_for()
    legend = [text.strip() for text in page.locator("#main-graph .legendLabel").all_inner_texts()]
    assert legend == [f"variant-{variant}" for variant in VARIANTS["intersection"]]
    page.goto(f"{address}#/summarylist")
    page.locator("#summarylist-body tbody tr").nth(3).wait_for()
    assert page.locator("#summarylist-navigation .btn.active").all_inner_texts() == ["test-box"]
    page.goto(f"{address}#/regressions")
    page.locator("#regressions-body td", has_text="from 0").wait_for()
    assert not re.search("Infinity|NaN", page.locator("#regressions-body").inner_text())
    page.locator("#regressions-body td a", has_text=f"{TIME}('scripted', 'small')").first.click()
    # Whoever leaves while asv still draws meets an error of its drawing: the graph of five lines goes, that of one comes.
    page.locator("#main-graph .legendLabel").nth(1).wait_for(state="detached")
    page.locator("#main-graph .legendLabel").wait_for()
    assert page.locator("#graphdisplay-state-params .btn.active").all_inner_texts() == ["test-box"]
    page.goto(f"{address}#{TIME}?machine=%E0%A4%A")
    assert "This address cannot be read" in page.get_by_role("alert").inner_text()
    page.get_by_role("link", name="torch-history").click()
    page.wait_for_function("document.title == 'front page'")
    assert trouble == []
    page.close()


@pytest.mark.browser
def test_text_of_strangers_runs_nothing_and_is_no_markup(tmp_path: Path, browser: Any) -> None:
    hostile = "</code><script>window.stolen = 1</script><img src=x onerror='window.stolen = 2'>"
    conf = write_results(tmp_path)
    path = Path(conf.results_dir) / "benchmarks.json"
    benchmarks = json.loads(path.read_text())
    for one in benchmarks.values():
        if isinstance(one, dict):
            one.update(code=hostile, pretty_name=f"a name {hostile}")
    path.write_text(json.dumps(benchmarks))
    address = f"{publish(conf, tmp_path / 'html').as_uri()}/index.html"
    page = browser.new_page()
    for place in ("", f"#{TIME}", "#/summarylist", "#/regressions"):
        page.goto("about:blank")
        page.goto(f"{address}{place}")
        page.wait_for_timeout(500)
        for text in page.locator(".benchmark-plot, .benchmark-text").all()[:2]:
            if text.is_visible():
                text.hover()
        assert page.evaluate("window.stolen") is None
        assert page.locator("img[src=x]").count() == 0
    page.evaluate("document.body.insertAdjacentHTML('beforeend', `<img src=x onerror='window.stolen = 3'>`)")
    page.wait_for_timeout(300)
    assert page.evaluate("window.stolen") is None, "the policy stops what an escape would miss"
    page.close()
