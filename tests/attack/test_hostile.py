"""What can a stranger's results do? Be left out in a sentence, or be published as what they are: text and numbers."""

import itertools
import json
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from tests.result_files import append, write_machine
from tests.test_verdicts import TIME, launch
from torch_history.releases.axis import Axis
from torch_history.site.data import lane_data, lanes
from torch_history.store.launches import Case, Launch
from torch_history.system.files import warn

from .material import ENVIRONMENT, RELEASES, command, fill

PLANTED = "planted"
NAMES = (
    f"<script>{PLANTED}()</script>", f"<img src=x onerror={PLANTED}()>", f'"><svg onload={PLANTED}()>', "</script><b>",
    f"[{PLANTED}](https://{PLANTED}.example)", f"![{PLANTED}](x)", f"https://{PLANTED}.example", f"www.{PLANTED}.example",
    f"`{PLANTED}` | a | b |", "@everyone #1 **bold**", "\u202edesrever\u202c",
    "\u2066inside\u2069\u200b", "[/b]", "[bold red]",
    "a\nb\r\n# c", "../../../etc/passwd", "..", "/dev/zero", "nul\x00byte", "\x1b[31mred", "x" * 250, "x" * 5000, "",
    " ", "%s %n {0} {x}", "${PATH} $(id)", "'; DROP TABLE", "\ufeff", "\U0001f600" * 60, "-rf", "--help", "__proto__",
    "constructor", "&amp;&#60;b>", "<!--", "]]>", "\\", "'quoted'", '"double"', "\u0000\u0001",
)  # fmt: skip

NUMBERS: tuple[Any, ...] = (
    1e-308, 5e-324, 1.7e308, 1e300, 1e-300, -1.0, 0, -0.0, float("nan"), float("inf"), float("-inf"), 10**30, 10**400,
    2**63, True, False, "1", None, [], {}, [1.0], 1e15, 1e-15,
)  # fmt: skip


def strangers(name: str) -> list[Launch]:
    """Three rounds of both releases, of a variant of that name."""
    return [
        launch(release, TIME, Case((repr(name), "'small'"), samples=(1.0 + turn,)), session=f"s{turn}", round=turn)
        for release, turn in itertools.product(RELEASES, (1, 2, 3))
    ]


SAFE = re.compile(r"(?![a-z]+:|//)|data:", re.IGNORECASE)
"""An address within the site."""

ASV = "https://github.com/airspeed-velocity/asv/"
"""The one address elsewhere that asv's own page leads to."""


class Markup(HTMLParser):
    """Every element that a page has, and every attribute or script that may run or lead elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        for name, value in attributes:
            runs = name.startswith("on") or (name in ("href", "src") and not SAFE.match(value or ""))
            runs = runs and not (value or "").startswith(ASV)
            if runs or (tag, name) == ("script", "srcdoc"):
                self.found.append(f"{PLANTED}: {tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1] in ("script", "style") and PLANTED in data:
            self.found.append(f"{PLANTED}: {data}")


def test_names_become_text_and_nothing_else(results, warned, attacks):
    attack = attacks("names")
    for number, name in enumerate(NAMES):
        with attack(f"a variant called {name[:40]!r}"):
            append(results, *strangers(name), machine=f"m{number}")
            asked = ("compare", *RELEASES, "--machine", f"m{number}", "--all")
            said = command(*asked, "--markdown").stdout
            html = MarkdownIt("commonmark", {"html": True}).enable("table").render(said)
            parser = Markup()
            parser.feed(html)
            assert not [tag for tag in parser.found if PLANTED in tag]
            assert not re.search(rf"(?<![\w])(https?://|www\.){PLANTED}", said), "an address becomes a link"
            assert not re.search("[\u202a-\u202e\u2066-\u2069]", said), "text is turned around"
            command(*asked)
            command("regressions", "--machine", f"m{number}")
            json.loads(command(*asked, "--json").stdout or "{}")


def test_site_of_strangers_has_none_of_their_markup(results, tmp_path, warned, attacks):
    fill(results)
    attack = attacks("names")
    for name in NAMES:
        kept = re.sub(r"[/\x00]", "_", name)[:60].strip(".") or "_"
        append(results, *strangers(name), machine=kept)
        write_machine(results / kept, cpu=name, num_cpu=name)
    html = tmp_path / "html"
    with attack("all of them published"):
        published = command("publish", "--html-dir", str(html), "--results-dir", str(results))
        assert published.exit_code == 0, published.output
        machines = {lane["machine"] for lane in json.loads((html / "data" / "index.json").read_text())["lanes"]}
        assert "here" in machines
    for page in sorted(html.rglob("*.html")):
        with attack(f"{page.name}"):
            parser = Markup()
            parser.feed(page.read_text(encoding="utf-8"))
            assert not [tag for tag in parser.found if PLANTED in tag]
    for path in [*html.glob("feeds/*.xml"), *html.glob("badges/*.svg")]:
        with attack(f"{path.name}"):
            tree = ElementTree.fromstring(path.read_bytes())
            assert not [element for element in tree.iter() if element.tag.rpartition("}")[2] in ("script", "img")]
    for path in html.glob("data/*.js"):
        with attack(f"{path.name}"):
            assert "</script" not in path.read_text().lower()


def changed(value: Any) -> list[dict[str, Any]]:
    """A launch with `value` in each place of a number."""
    whole = json.loads(strangers("a")[0].to_json())
    case = {"parameters": ["'a'", "'small'"]}
    counts = {"benchmark": "intersection.Intersection.track_peak_memory"}
    return [
        *({**whole, "cases": [{**case, "samples": [value]}]}, {**whole, "cases": [{**case, "value": value}]}),
        *({**whole, **counts, "cases": [{**case, "value": value}]}, {**whole, "duration": value}),
        *({**whole, "round": value}, {**whole, "facts": {"conditions": value}}),
        {**whole, "facts": {"conditions": {"load": value, "disturbed": value}}},
        *({**whole, "cases": [{**case, "samples": [1.0], "returned": each}]} for each in returned(value)),
    ]


def returned(value: Any) -> list[Any]:
    """What a case returns, with `value` in each place."""
    tensor: Any = {"dtype": "float32", "shape": [1], "strides": [1], "digest": 16 * "a", "count": 1, "not_finite": 0}
    places: list[Any] = [{**tensor, name: value} for name in tensor]
    places += [{**tensor, "shape": [value]}, {**tensor, "strides": [value]}, {**tensor, "digest": 16 * "b"}]
    found: list[Any] = [{"tensors": [each], "differences": {"v2.0.1": [value]}, "again": [value]} for each in places]
    found += [{"tensors": [tensor], "differences": {"v2.0.1": value}}, {"tensors": [tensor], "differences": value}]
    return [*found, {"tensors": [tensor], "again": value}, {"tensors": [value]}, {"tensors": value}, value]


@pytest.mark.parametrize("place", range(22))
def test_numbers_are_bounded_and_every_other_lane_is_shown(results, tmp_path, warned, attacks, place):
    fill(results)
    axis, attack = Axis.load("releases.toml"), attacks("numbers")
    for value in NUMBERS:
        with attack(f"{value!r} in place {place}"):
            warn.cache_clear()
            lines = []
            for release in RELEASES:
                line = {**changed(value)[place], "release": release}
                lines += [json.dumps({**line, "session": f"{n}", "launch": f"{release}{n}"}) for n in (1, 2, 3)]
            path = results / "stranger" / f"v2.0.1-{ENVIRONMENT}.jsonl"
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n".join(lines) + "\n")
            command("compare", *RELEASES, "--machine", "stranger", "--all")
            command("regressions", "--machine", "stranger")
            found = lanes(results, axis)
            told = [json.dumps(lane_data(lane, axis), allow_nan=False) for lane in found]
            assert told
            assert "here" in {lane.name for lane in found}
