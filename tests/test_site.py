"""Does the site open with no network, whole and for everybody? Every page, from results that are made here, and once from
the committed ones."""

import base64
import json
import re
import shutil
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import msgspec
import pytest
from click.testing import CliRunner

from torch_history.analysis import labels
from torch_history.analysis.series import History, Series, Verdict, history
from torch_history.analysis.verdicts import Change
from torch_history.cli import main
from torch_history.releases import wheels
from torch_history.site.build import PAGES, _write_badges, publish_site
from torch_history.site.data import lane_data, lanes
from torch_history.store.launches import read_launches
from torch_history.system.scratch import MARK, mark

from .lab import AXIS, ENVIRONMENT, LANE, MACHINE, OTHER_LANE, SLOWER, write_few
from .processes import ROOT, ran

FILES = [page["file"] for page in PAGES] + ["method.html"]
HOSTILE = "<img src=x onerror=alert(1)>"
ATOM = "{http://www.w3.org/2005/Atom}"


def read_lane(data: Path, lane: str) -> dict[str, Any]:
    """A lane in one piece, read from its files in data/."""
    files = [json.loads((data / f"{name}.json").read_text(encoding="utf-8")) for name in (lane, f"{lane}-numbers")]
    return files[0] | files[1]


def ready(page: Any, address: str) -> None:
    page.goto(address)
    if "method.html" not in address:
        page.wait_for_function("document.body.dataset.ready")


def test_asvs_pages_open_where_the_site_does_and_not_on_a_machine_that_stopped_earlier(tmp_path: Path) -> None:
    conf = write_few(tmp_path, machines=("one", "two"))
    for path in (tmp_path / "results" / "two").glob("v2.15.0*"):
        path.unlink()
    site = publish_site(conf, AXIS, tmp_path / "html", here="two").parent
    assert json.loads((site / "data" / "index.json").read_text())["lanes"][0]["machine"] == "one"
    listed = json.loads((site / "asv" / "index.json").read_text())["benchmarks"]
    assert {of["opens"] for of in listed.values()} == {"one"}


def test_a_publish_that_fails_leaves_the_site_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf, html = write_few(tmp_path), tmp_path / "html"
    html.mkdir()
    (html / "index.html").write_text("the old site")
    mark(html)

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("torch_history.site.build._write_pages", fails)
    with pytest.raises(OSError, match="No space left"):
        publish_site(conf, AXIS, html)
    assert (html / "index.html").read_text() == "the old site"
    assert sorted(path.name for path in html.iterdir()) == [MARK, "index.html"]
    assert not list(tmp_path.glob(".publishing-*"))


def test_of_lanes_alike_the_recorders_is_last_and_first_is_the_one_with_most_series(tmp_path: Path) -> None:
    conf = write_few(tmp_path, questions=("intersection", "batching"), machines=("a", "b", "c"))
    first, second, third = (tmp_path / "results" / name for name in "abc")
    about = json.loads((first / "machine.json").read_text())
    (first / "machine.json").write_text(json.dumps({**about, "device": "recorder"}))
    for path in second.glob("*.jsonl"):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if json.loads(line)["benchmark"].startswith("intersection.")))
    found = lanes(Path(conf.results_dir), AXIS)
    assert [lane.name for lane in found] == [third.name, second.name, first.name]


def test_an_older_version_of_a_benchmark_is_left_out_whichever_file_it_is_in(tmp_path: Path) -> None:
    write_few(tmp_path, 4)
    for path in (tmp_path / "results" / MACHINE).glob("*.jsonl"):
        of = {"version": "0", "started_at": "2020"} if path.name.startswith("v2.14.1") else {"version": "1"}
        lines = [json.dumps({**json.loads(line), **of}) for line in path.read_text().splitlines()]
        path.write_text("".join(f"{line}\n" for line in lines))
    (lane,) = lanes(tmp_path / "results", AXIS)
    assert lane.releases == ["v2.9.0", "v2.14.0", "v2.15.0"]
    expected = history(read_launches(tmp_path / "results", MACHINE))
    assert {series: list(of) for series, of in lane.found.items()} == {s: list(of) for s, of in expected.items()}


@pytest.mark.browser
def test_pages_hold_what_was_stored(tmp_path: Path, page: Any) -> None:
    conf = write_few(tmp_path, 5)
    path = tmp_path / "results" / MACHINE / f"v2.15.0-{ENVIRONMENT}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["cases"][0] = {"parameters": line["cases"][0]["parameters"], "failed": f"it failed {line['round']}"}
        line["facts"]["conditions"]["disturbed"] = "it was loud"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines[:-2]))
    publish_site(conf, AXIS, tmp_path / "html")
    ready(page, (tmp_path / "html" / "index.html").as_uri())
    whole = page.evaluate("torchHistory.lane(torchHistory.contents.lanes[0].id).then(torchHistory.measured)")
    expected = read_lane(tmp_path / "html" / "data", LANE)
    asked = "(what) => torchHistory.lane(torchHistory.contents.lanes[0].id).then((lane) => torchHistory[what](lane))"
    steps = [{key: step[key] for key in step if key != "place"} for step in page.evaluate(asked, "steps")]
    assert steps == expected.pop("steps")
    assert page.evaluate(asked, "claims") == expected.pop("claims")
    apart = {key: value for key, value in expected.items() if key != "regressions"}
    assert {key: whole[key] for key in apart} == apart
    require_stored(whole, history(read_launches(tmp_path / "results", MACHINE)))


def require_stored(lane: dict[str, Any], stored: History) -> None:
    """Each number with its launch, and each reason for having none, is as it is stored."""
    tags = [release["tag"] for release in lane["releases"]]
    for row, (series, releases) in zip(lane["series"], stored.items(), strict=True):
        assert row["benchmark"] == series.benchmark
        pairs = [pair for tag in tags for pair in releases.get(tag, ())]
        wanted = [(one, case.number) for one, case in pairs if case.number is not None]
        launches = [[tags[at], *lane["rounds"][block]] for at, block in lane["patterns"][row["pattern"]]]
        assert row["numbers"] == [number for _, number in wanted]
        assert launches == [[one.release, one.session, one.round] for one, _ in wanted]
        assert row["disturbed"] == [at for at, (one, _) in enumerate(wanted) if "disturbed" in one.facts["conditions"]]
        for release, reason, failed in row["missing"]:
            case = releases[tags[release]][-1][1]
            assert (case.reason, 1 if case.failed else 2 if case.unmeasured else 0) == (lane["reasons"][reason], failed)


@pytest.mark.parametrize("name", [LANE, OTHER_LANE])
def test_data_are_the_stored_numbers(lab: Path, site: Path, name: str) -> None:
    index = json.loads((site / "data" / "index.json").read_text())
    assert index["schema"] == 4
    assert {each["id"] for each in index["lanes"]} == {LANE, OTHER_LANE}
    lane = read_lane(site / "data", name)
    launches = read_launches(lab / "results", lane["machine"]["machine"], lane["environment"])
    require_stored(lane, history(launches))


def test_steps_say_whether_the_other_lane_has_them_too(lab: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = json.loads((site / "data" / f"{LANE}.json").read_text())
    begun = [step["sentence"] for step in about["steps"] if step["new"] == "v2.1.0"]
    told = [sentence for sentence in begun if "intersection time" in sentence]
    assert told
    assert all("repeated in release-py3.9, which has the same binary" in sentence for sentence in told)
    monkeypatch.chdir(lab)
    monkeypatch.setattr(labels, "explained", lambda: lambda sentence, _: sentence)
    command = ["regressions", "--lane", "release-py3.11", "--all", "--limit", "0"]
    said = CliRunner().invoke(main, command).output.splitlines()
    assert {*told} <= {*said}


def test_documented_keys_are_those_of_the_data(site: Path) -> None:
    page = (ROOT / "docs" / "site.md").read_text()
    index = json.loads((site / "data" / "index.json").read_text())
    lane = json.loads((site / "data" / f"{index['lanes'][0]['id']}.json").read_text())
    numbers = json.loads((site / "data" / f"{lane['id']}-numbers.json").read_text())
    (script, *_) = sorted((site / "data" / "pairs").glob(f"{lane['id']}-*.js"))
    kinds = {"the index": index, "a lane": lane, "the numbers": numbers, "a series": numbers["series"][0]}
    packed = re.fullmatch(r'torchHistory\.receive\("[^"]+", "(.*)"\);\n', script.read_text(encoding="ascii"))
    assert packed
    kinds["two releases"] = json.loads(zlib.decompress(base64.b64decode(packed[1])))
    for heading, keys in kinds.items():
        section = page.partition(f"## Keys of {heading}\n")[2].partition("\n## ")[0]
        rows = re.findall(r"^\| (`.*?) \|", section, re.M)
        assert {key.strip(" `") for row in rows for key in row.split(",")} == set(keys)


def test_newest_of_a_lane_is_what_the_command_prints(lab: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lab)
    index = json.loads((site / "data" / "index.json").read_text())
    said = json.loads((site / "data" / f"{index['lanes'][0]['id']}-newest.json").read_text())
    lane = index["lanes"][0]
    command = ["compare", said["old"], said["new"], "--machine", lane["machine"], "--json"]
    answer = CliRunner().invoke(main, [*command, "--lane", lane["environment"]])
    assert json.loads(answer.stdout) == said


@pytest.mark.parametrize(
    ("untold", "slower", "message"), [(4, 0, "nothing worse"), (5, 0, "inconclusive"), (5, 2, "2 slower, 1 hungrier")]
)
def test_a_badge_says_what_a_release_costs_and_praises_none_half_undecided(tmp_path, untold, slower, message):
    verdicts = [*[Verdict.CANT_TELL] * untold, *[Verdict.SLOWER] * slower, *[Verdict.SAME] * 5]
    of = [Change(Series("e", "q.Q.track_time", (f"'{i}'",)), each, 1.0, 1.0) for i, each in enumerate(verdicts)]
    of += [Change(Series("e", "q.Q.track_peak_memory", ()), Verdict.HUNGRIER if slower else Verdict.SAME, 1.0, 1.0)]
    told: Any = SimpleNamespace(lane=SimpleNamespace(id="a", releases=["v2.0.0"]), upgrade=SimpleNamespace(changes=of))
    _write_badges(tmp_path / "badges", [told])
    said = json.loads((tmp_path / "badges" / "a.json").read_text())
    assert (said["schemaVersion"], said["label"], said["message"]) == (1, "torch 2.0.0", message)
    assert f'aria-label="torch 2.0.0: {message}"' in (tmp_path / "badges" / "a.svg").read_text()
    of[:] = [Change(of[0].series, Verdict.NEVER_RAN, None, None)]
    _write_badges(tmp_path / "none", [told])
    assert json.loads((tmp_path / "none" / "a.json").read_text())["message"] == "nothing compared"


def test_feeds_are_atom_with_an_entry_for_each_finding_that_costs(tmp_path: Path) -> None:
    """tests/lab.py plants them: one question is slower and hungrier from 2.1.0 on, another slower at 2.5.1."""
    conf = write_few(tmp_path, 10, ("intersection", "batching"), ("a", "b"))
    publish_site(conf, AXIS, tmp_path / "html", url="https://example.org/history")
    feeds = sorted((tmp_path / "html" / "feeds").iterdir())
    assert [path.name for path in feeds] == ["a.xml", "b.xml"]
    entries = ElementTree.fromstring(feeds[0].read_text(encoding="utf-8")).findall(f"{ATOM}entry")
    told = [f"{entry.findtext(f'{ATOM}updated')} {entry.findtext(f'{ATOM}title')}" for entry in entries]
    begins = (
        "2024-10-29T00:00:00Z between v2.2.0 and v2.5.1: batching time, vstack_rows: 1.30 times slower in 2",
        "2023-10-04T00:00:00Z v2.1.0: intersection time, scripted small: 7.0",
        "2023-10-04T00:00:00Z v2.1.0: intersection peak memory, scripted small: 4.00 times more",
    )
    assert [title.startswith(begin) for title, begin in zip(told, begins, strict=True)] == [True] * 3
    assert len({entry.findtext(f"{ATOM}id") for entry in entries}) == len(entries)
    link = entries[0].find(f"{ATOM}link")
    assert link is not None
    assert link.attrib["href"].startswith("https://example.org/history/series.html#lane=a-release-py3-11&")


@pytest.mark.usefixtures("no_code")
def test_what_rose_in_one_variant_is_one_entry_of_a_feed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In C++, as tests/lab.py plants it, and here in Python, too; of three sizes each. No cause joins them."""
    monkeypatch.setitem(SLOWER, ("selection", "index_reused"), ("2.15.0", 1.6))
    write_few(tmp_path, 4, ("selection",))
    (lane,) = lanes(tmp_path / "results", AXIS)
    data = lane_data(lane, AXIS)
    told = [place for regression in data["regressions"] for place in regression["steps"]]
    assert sorted(told) == [i for i, step in enumerate(data["steps"]) if step["verdict"] in ("SLOWER", "HUNGRIER")]
    (regression,) = (each for each in data["regressions"] if "times slower" in each["title"])
    assert len(regression["steps"]) == 6
    assert "in 6 cases" in regression["title"]
    assert all(words in regression["sentence"] for words in ("in 6 cases", "The surest of them: "))


def has_code(card: str, wheel: Sequence[str]) -> bool:
    """Code of the same major capability and of no later minor one, as CUDA's guide on compatibility has it."""
    (major, minor), built = (card[3:-1], card[-1]), [(name[3:-1], name[-1]) for name in wheel]
    return any(major == of and least <= minor for of, least in built)


@pytest.mark.browser
def test_the_page_on_wheels_says_what_each_release_brings(tmp_path: Path, page: Any) -> None:
    conf, old, new = write_few(tmp_path), "v2.14.0", "v2.15.0"
    brought = wheels.load(ROOT / wheels.FILE)
    of_each = {old: brought["v1.8.0"], new: brought["v2.15.0"]}
    text = json.dumps({name: msgspec.to_builtins(wheel) for name, wheel in of_each.items()})
    (tmp_path / wheels.FILE).write_text(text, encoding="utf-8")
    html = publish_site(conf, AXIS, tmp_path / "html").parent
    ready(page, f"{(html / 'facts.html').as_uri()}#from={old}&to={new}&exact=1")
    page.locator("#all-wheels summary").click()
    rows = [row.locator("th, td").all_inner_texts() for row in page.locator("#every tbody tr").all()]
    said = {row[0].partition(" ")[0]: row for row in rows}
    assert set(said) == set(of_each)
    for name, wheel in of_each.items():
        assert said[name][3:5] == [f"{wheel.download:,} B", f"{wheel.installed:,} B"]
        assert said[name][-1] == " ".join(wheel.architectures)
    said_of_gpus = page.locator(".sentence-list li").last.inner_text()
    before, now = (of_each[name].architectures for name in (old, new))
    told = re.fullmatch(
        r".* no longer runs on (.*?), on which .*? runs\. .* runs on these GPUs: (.*)\. New since (.*)\.", said_of_gpus
    )
    assert told, said_of_gpus
    lost, runs, added = told.groups()
    assert "sm_75 (T4)" in runs
    assert "sm_89 (RTX 4090) with the code for sm_86" in runs
    assert all(name in runs for name in now)
    assert {name for name in before if name in lost} == {name for name in before if not has_code(name, now)}
    assert {name for name in now if name in added} == {name for name in now if not has_code(name, before)}
    assert "sm_70 (V100)" in lost
    assert "sm_75" not in added  # 1.8.0 has no code of its own for it, and runs there with that for sm_70
    page.locator("#libraries summary").click()
    libraries = {row.locator("th").inner_text(): row.inner_text() for row in page.locator("#libraries tbody tr").all()}
    for wheel in of_each.values():
        assert all(f"{count:,} B" in libraries[name] for name, count in wheel.libraries.items())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site whose machine, variants, sizes, reasons and packages are named like an attack."""
    folder = tmp_path_factory.mktemp("hostile")
    conf, results = write_few(folder), folder / "results"
    machine = (results / MACHINE).rename(results / HOSTILE)
    for path in [results / "benchmarks.json", *machine.iterdir()]:
        data = path.read_text(encoding="utf-8").replace("torch==", f"{HOSTILE}==")
        for name in (MACHINE, "A processor", "eager", "only TorchScript"):
            data = data.replace(name, HOSTILE)
        path.write_text(data.replace("small", f"</script>{HOSTILE}"), encoding="utf-8")
    publish_site(conf, AXIS, folder / "html")
    return folder / "html"


def test_no_file_holds_a_tag_from_data(hostile: Path) -> None:
    for path in hostile.rglob("*"):
        if path.suffix in (".html", ".xml", ".svg", ".js") and path.parent.name != "vendor":
            assert HOSTILE not in path.read_text(encoding="utf-8"), path


@pytest.mark.browser
@pytest.mark.parametrize("file", [page["file"] for page in PAGES])
def test_names_from_data_are_shown_as_text(hostile: Path, page: Any, file: str) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    (lane,) = json.loads((hostile / "data" / "index.json").read_text())["lanes"]
    benchmark = "benchmark=intersection.Intersection.track_time"
    ready(page, (hostile / file).as_uri() + (f"#lane={lane['id']}&{benchmark}" if file == "series.html" else ""))
    assert page.locator("img").count() == 0
    assert HOSTILE in page.locator("body").inner_text()
    assert dialogs == []


@pytest.mark.browser
@pytest.mark.committed
@pytest.mark.parametrize("file", FILES)
def test_page_opens_with_the_committed_results(committed_site: Path, page: Any, file: str) -> None:
    ready(page, (committed_site / file).as_uri())
    assert page.locator("h1").inner_text()
    assert page.locator("[role=alert]").count() == 0
    assert page.evaluate("document.documentElement.scrollHeight") <= MOST_PIXELS


MOST_PIXELS = 4000
"""How long a page may be on a desktop before something is opened."""

SERIES = "benchmark=saved_tensors.SavedTensors.track_peak_memory"
WEIGHED = {
    "index.html": (["", "from=v2.1.0&to=v2.15.0"], 400_000),
    "series.html": ([SERIES, f"{SERIES}&release=v2.15.0"], 1_400_000),
}
"""Page -> keys of its addresses, and the bytes that it may load from disk, all files together."""


def weigh(page: Any, address: str) -> int:
    """Bytes of all files that the page at `address` loads from disk until every control works."""
    asked: set[str] = set()
    page.goto("about:blank")
    page.on("requestfinished", lambda request: asked.add(request.url.partition("#")[0]))
    ready(page, address)
    paths = [Path(unquote(urlsplit(url).path)) for url in asked if url.startswith("file:")]
    return sum(path.stat().st_size for path in paths)


@pytest.mark.browser
@pytest.mark.parametrize("file", FILES)
def test_page_opens_and_breaks_no_serious_rule_of_accessibility(site: Path, page: Any, file: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    ready(page, (site / file).as_uri())
    assert page.locator("h1").inner_text()
    assert page.locator("[role=alert]").count() == 0
    broken = axe.Axe().run(page, options={"preload": False}).response["violations"]
    serious = [one for one in broken if one["impact"] in ("serious", "critical")]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"]][:3]) for one in serious] == []


@pytest.mark.browser
@pytest.mark.committed
def test_pages_load_no_more_than_they_may(committed_site: Path, page: Any) -> None:
    lanes = json.loads((committed_site / "data" / "index.json").read_text())["lanes"]
    for lane in lanes:
        for file, (addresses, most) in WEIGHED.items():
            for keys in addresses:
                heavy = weigh(page, f"{(committed_site / file).as_uri()}#{keys}&lane={lane['id']}")
                assert 0 < heavy <= most, (file, keys, lane["id"])


@pytest.mark.browser
def test_every_link_of_every_page_leads_somewhere(site: Path, page: Any) -> None:
    links: set[str] = set()
    for file in FILES:
        ready(page, (site / file).as_uri())
        whole = "links => links.map((link) => new URL(link.getAttribute('href'), location.href).href)"
        links.update(page.eval_on_selector_all("a[href]", whole))
    files = {link.partition("#")[0].partition("?")[0] for link in links}
    outside = {file for file in files if not file.startswith("file:")}
    assert all(file.startswith("https://github.com/pytorch/pytorch/compare/v") for file in outside)
    missing = [file for file in files - outside if not Path(file.removeprefix("file://")).is_file()]
    assert missing == []
    for link in sorted(links)[:: max(1, len(links) // 60)]:
        if link.endswith((".xml", ".json", ".svg")) or "/asv/" in link or link.startswith("https:"):
            continue
        page.goto("about:blank")
        ready(page, link)
        assert page.locator("[role=alert]").count() == 0, link


def test_links_within_the_page_on_method_lead_to_their_place(site: Path) -> None:
    text = (site / "method.html").read_text(encoding="utf-8")
    assert {*re.findall(r'href="#([^"]+)"', text)} <= {*re.findall(r' id="([^"]+)"', text)}
    assert 'href="#glossary-what-is-measured"' in text
    assert not re.search(r"(?i)(six|seven|eight|nine|ten|\d) questions", text), "there are more when one is added"


@pytest.mark.browser
def test_a_lane_that_is_not_there_is_said(site: Path, page: Any) -> None:
    ready(page, (site / "index.html").as_uri() + "#lane=nobody")
    assert "There are no results of 'nobody' here" in page.locator("[role=alert]").inner_text()
    page.locator("#choose-lane").select_option(index=0)
    page.wait_for_function("!document.querySelector('[role=alert]')")


@pytest.mark.browser
@pytest.mark.parametrize("page", [False], indirect=True)
def test_every_page_works_under_its_own_policy(site: Path, page: Any) -> None:
    pages = sorted(site.glob("*.html"))
    assert len(pages) > 5
    for path in pages:
        assert "Content-Security-Policy" in path.read_text(encoding="utf-8"), path.name
        page.goto(path.as_uri())
        page.wait_for_timeout(1000)


def test_scripts_say_what_the_data_hold() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on this machine: `make npm` installs it")
    ran(node, ROOT / "tests" / "site_scripts.js")
