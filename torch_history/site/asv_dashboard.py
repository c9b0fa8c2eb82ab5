"""How does asv's own dashboard open without a network, and from disk?

asv publishes it as ever; then vendored files take the place of those its page loads from other hosts, each
JSON file gets a script twin that a page opened from disk may load, and release tags stand on the x axis.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import html
import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from asv.benchmarks import Benchmarks
from asv.commands.publish import Publish
from asv.config import Config
from asv.machine import Machine
from asv.util import sanitize_filename, write_json

from ..analysis.steps import WINDOW
from ..errors import UserError
from ..releases.axis import Axis
from ..store.asv_results import load_asvs
from ..store.files import read_bytes, warn
from ..store.launches import unfit
from ..store.machines import RECORD, record_of

VENDOR = Path(__file__).parent / "vendor"
ASV_VERSION = "0.6.6"

MOST_RELEASES = WINDOW
"""Releases of a machine in asv's dashboard, the newest: each publish makes it anew and looks for steps in all of them."""

_LOADED_BY = {"script": "src", "link": "href", "img": "src", "iframe": "src"}
_ABOUT_ANOTHER_HOST = {"integrity", "crossorigin", "referrerpolicy"}
_HANDLER = "onerror"
_STRENGTH = ("sha256", "sha384", "sha512")


OWN_SCRIPTS = ("failure.js", "offline.js")
"""Scripts that torch-history adds to asv's."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' file:",
        "style-src 'self' file: 'unsafe-inline'",
        "img-src 'self' file: data: blob:",
        "font-src 'self' file: data:",
        "connect-src 'self' file:",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
"""The Content-Security-Policy of every page: scripts from files beside it alone, none in a page, and no eval. `file:`
is for pages opened from disk, where a browser may take nothing for `'self'`. Flot and Vega write styles in the page."""


@dataclass(frozen=True)
class _Edit:
    """One change to a file of asv's dashboard, in which `old` stands exactly `times` times."""

    purpose: str
    file: str
    old: str
    new: str
    times: int = 1


_EDITS = (
    _Edit(
        "a link back to torch-history's front page",
        "index.html",
        '<ul class="nav navbar-nav navbar-left">',
        '<ul class="nav navbar-nav navbar-left">\n'
        '        <li id="nav-li-torch-history"><a href="../index.html">torch-history</a></li>',
    ),
    _Edit(
        "what to do where a script is missing",
        "error.html",
        "Make sure you have an active internet connection and enable 3rd-party scripts\n"
        "      in your browser the first time you load airspeed velocity.",
        "They are in the folder vendor next to this page. Copy that folder with the page,\n"
        "      or publish the site again.",
    ),
    _Edit(
        "the name of the x axis",
        "graphdisplay.js",
        "options.xaxis.axisLabel = 'commits';",
        "options.xaxis.axisLabel = 'release';",
    ),
    _Edit(
        "release tags at the x axis",
        "graphdisplay.js",
        'options.xaxis.tickFormatter = function (v, axis) { return ""; };',
        "options.xaxis.ticks = $.torchHistory.releaseTicks;",
    ),
    _Edit(
        "release tags and their dates at the x axis where it is the date",
        "graphdisplay.js",
        "options.xaxis.tickFormatter = null;",
        "options.xaxis.ticks = $.torchHistory.releaseTicks;",
    ),
    _Edit(
        "the name of the x axis where it is the date",
        "graphdisplay.js",
        "options.xaxis.axisLabel = 'commit date';",
        "options.xaxis.axisLabel = 'release date';",
    ),
    _Edit(
        "no second row of release tags above the plot",
        "graphdisplay.js",
        "/* Add the tags as vertical grid lines */",
        "return;",
    ),
    _Edit(
        "the releases of a regression, whose tags have dots, marked in its graph",
        "graphdisplay.js",
        "value.match(/^([a-z0-9]+)-([a-z0-9]+)$/)",
        "value.match(/^([^-]+)-([^-]+)$/)",
    ),
    _Edit(
        "releases to choose from in their order, not by the digits of their positions",
        "graphdisplay.js",
        "revisions.sort();",
        "revisions.sort(function (a, b) { return a - b; });",
    ),
    _Edit(
        "the address of a regression's graph, whatever characters the machine's description has",
        "regressions.js",
        "var graph_url = item[1];",
        "var graph_url = item[1].split('/').map(encodeURIComponent).join('/');",
        times=2,
    ),
    _Edit(
        "links that compare two releases, which lie two steps above a release's own page",
        "regressions.js",
        "show_commit_url + '../compare/'",
        "show_commit_url + '../../compare/'",
        times=2,
    ),
    _Edit(
        "links that compare two releases, which lie two steps above a release's own page",
        "summarylist.js",
        "show_commit_url + '../compare/'",
        "show_commit_url + '../../compare/'",
    ),
    _Edit(
        "what leads to the page on missing scripts, in a file, because the policy allows no script in the page",
        "index.html",
        """    <script type="text/javascript">
      function js_load_failure() {
        window.location = "error.html";
      }
    </script>
""",
        """    <script src="vendor/failure.js"></script>
""",
    ),
    *(
        _Edit(
            "text of a benchmark as text in its tooltip",
            file,
            f"{old},{gap}html: true,",
            f"{old},{gap}html: false,",
            times,
        )
        for file, old, gap, times in (
            ("summarygrid.js", "title: bm.name", "\n            ", 1),
            ("summarygrid.js", "title: bm.code", "\n            ", 1),
            ("graphdisplay.js", "title: bm.code", "\n                ", 1),
            ("graphdisplay.js", "title: contents", "\n                    ", 1),
        )
    ),
    _Edit(
        "the address of a benchmark as text",
        "summarygrid.js",
        """$(
            '<a class="btn benchmark-container" href="#' + bm.name +
            '"/>')""",
        """$('<a class="btn benchmark-container"/>').attr('href', '#' + bm.name)""",
    ),
    _Edit(
        "the id of a benchmark's plot as text",
        "summarygrid.js",
        """$(
            '<div id="summarygrid-' + bm.name + '" class="benchmark-plot"/>')""",
        """$('<div class="benchmark-plot"/>').attr('id', 'summarygrid-' + bm.name)""",
    ),
    _Edit(
        "the name of a benchmark as text",
        "summarygrid.js",
        """$('<div class="benchmark-text">' + display_name + '</div>')""",
        """$('<div class="benchmark-text"/>').text(display_name)""",
    ),
    _Edit(
        "the name of a group of benchmarks as text",
        "summarygrid.js",
        "$('<h1>' + group + '</h1>')",
        "$('<h1/>').text(group)",
    ),
    _Edit(
        "the name of a group of benchmarks as text",
        "graphdisplay.js",
        "parts[j] +\n",
        "$('<span/>').text(parts[j]).html() +\n",
    ),
    _Edit(
        "the name and address of a benchmark as text",
        "graphdisplay.js",
        """$('<li><a href="#' + bm_name + '">' + name + '</li>')""",
        """$('<li/>').append($('<a/>').attr('href', '#' + bm_name).text(name))""",
    ),
    *(
        _Edit(
            "what is known of a machine as text",
            file,
            "details.push(key + ': ' + val);",
            "details.push($('<span/>').text(key + ': ' + val).html());",
        )
        for file in ("graphdisplay.js", "summarylist.js")
    ),
    _Edit(
        "the name of a parameter as text",
        "asv_ui.js",
        """$(
            '<div class="panel-heading">' + heading + '</div>')""",
        """$('<div class="panel-heading"/>').text(heading)""",
    ),
    _Edit(
        "the name of an axis as text",
        "jquery.flot.axislabels.js",
        "opts.axisLabel + '</div>'",
        "$('<span/>').text(opts.axisLabel).html() + '</div>'",
        times=2,
    ),
)


def publish_linked(conf: Config, results: Path, html_dir: Path) -> None:
    """Publishes asv's dashboard of what `link_readable` has put into `results` into `html_dir`, replacing what is there.
    `conf` stays as it is. Raises UserError as `publish_safe` does."""
    own = copy.copy(conf)
    own.html_dir, own.results_dir = str(html_dir), str(results)
    publish_safe(own)
    _leave_out_unmeasured(html_dir)
    for data in sorted(html_dir.rglob("*.json")):
        _write_json_twin(data)
    _write_twin(html_dir / "swallow.ico", '""')


_asvs_publish = Publish.run
"""asv's own, taken before this package's plugin puts a guard in its place."""


def publish_safe(conf: Config, *args: Any, **kwargs: Any) -> None:
    """What asv's `publish` does, then: names of strangers are text in its pages, which run no script but their own and need
    no other host. Raises UserError where asv's dashboard is not the one this is written for, or a vendored file not the one
    that dashboard names."""
    _asvs_publish(conf, *args, **kwargs)
    html_dir = Path(conf.html_dir)
    for edit in _EDITS:
        _apply(edit, html_dir)
    for page in sorted(html_dir.glob("*.html")):
        _localise(page)
    feed = html_dir / "regressions.xml"
    if feed.is_file():
        feed.write_text(
            feed.read_text(encoding="utf-8").replace("/releases/tag/../compare/", "/compare/"), encoding="utf-8"
        )
    for script in OWN_SCRIPTS:
        shutil.copy(VENDOR / script, html_dir / "vendor")


def link_readable(conf: Config, axis: Axis, folder: Path) -> None:
    """Links what asv can read of the newest results into `folder`: its publish ends at the first file that it cannot. Raises
    UserError where its list of benchmarks is missing or damaged."""
    results = Path(conf.results_dir).resolve()
    listed = results / "benchmarks.json"
    try:
        read_bytes(listed)
        Benchmarks.load(conf)
    except Exception as error:
        # A file of another shape may make asv raise anything.
        raise UserError(
            f"{listed} is missing or damaged, so asv's dashboard cannot be built: "
            "`torch-history run` or `asv run --bench just-discover` writes it again."
        ) from error
    (folder / listed.name).symlink_to(listed)
    for machine in sorted({path.parent for path in results.glob("*/*.json") if not unfit(path.parent)}):
        write_json(folder / machine.name / RECORD, record_of(machine), Machine.api_version)
        newest = _newest(axis, set(machine.glob("*.json")) - {machine / RECORD})
        for path in newest:
            try:
                load_asvs(path)
            except ValueError as error:
                warn(f"{path} is not in asv's dashboard: {error}.")
            else:
                (folder / machine.name / path.name).symlink_to(path)


def _newest(axis: Axis, files: Iterable[Path]) -> list[Path]:
    """Those of asv's files that are of the newest releases; all that name no release of the axis, which asv passes over."""
    tag_of = {path: path.name.partition("-")[0] for path in files}
    on_axis = sorted({tag for tag in tag_of.values() if tag in axis}, key=axis.position)
    left_out = set(on_axis[:-MOST_RELEASES])
    return sorted(path for path, tag in tag_of.items() if tag not in left_out)


def _leave_out_unmeasured(html_dir: Path) -> None:
    """Takes benchmarks without a result, such as a GPU's on a CPU, from the index: asv lists them and cannot load them."""
    path = html_dir / "index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    summaries = html_dir / "graphs" / "summary"
    index["benchmarks"] = {
        name: benchmark
        for name, benchmark in index["benchmarks"].items()
        if (summaries / f"{sanitize_filename(name)}.json").is_file()
    }
    path.write_text(json.dumps(index), encoding="utf-8")


def _apply(edit: _Edit, html_dir: Path) -> None:
    path = html_dir / edit.file
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if text.count(edit.old) != edit.times:
        raise UserError(
            f"asv's {edit.file} is not the one torch-history changes: in this one there is no place for "
            f"{edit.purpose}. Install asv {ASV_VERSION}, or fix that edit in {Path(__file__).name}."
        )
    path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")


@dataclass(frozen=True)
class _RemoteTag:
    """A tag, as the page writes it, by which a browser loads a file from another host."""

    text: str
    name: str
    attributes: dict[str, str]

    @property
    def url(self) -> str:
        return self.attributes[_LOADED_BY[self.name]]

    @property
    def file(self) -> str:
        return PurePosixPath(urlsplit(self.url).path).name

    def local(self) -> str:
        """The same tag, loading the vendored file."""
        left_out = _ABOUT_ANOTHER_HOST | {_HANDLER}
        kept = {key: value for key, value in self.attributes.items() if key not in left_out}
        kept[_LOADED_BY[self.name]] = f"vendor/{self.file}"
        written = (f'{key}="{html.escape(value)}"' for key, value in kept.items())
        return f"<{self.name} {' '.join(written)}>"


class _RemoteTags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[_RemoteTag] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {key: value or "" for key, value in attrs}
        if urlsplit(attributes.get(_LOADED_BY.get(tag, ""), "")).netloc:
            self.found.append(_RemoteTag(self.get_starttag_text() or "", tag, attributes))


def _localise(page: Path) -> None:
    """Gives the page the policy, and vendored files in the place of those from other hosts."""
    text = page.read_text(encoding="utf-8")
    if text.count("<head>") != 1:
        raise UserError(f"asv's {page.name} has no place for a Content-Security-Policy. Install asv {ASV_VERSION}.")
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    text = text.replace("<head>", f"<head>\n    {policy}")
    for tag in _RemoteTags(text).found:
        source = VENDOR / tag.file
        _verify(source, tag, page.name)
        target = page.parent / "vendor" / tag.file
        target.parent.mkdir(exist_ok=True)
        shutil.copy(source, target)
        local = tag.local()
        if tag.file.startswith("jquery-"):
            local += '</script>\n    <script src="vendor/offline.js">'
        text = text.replace(tag.text, local)
    page.write_text(text, encoding="utf-8")


def _verify(file: Path, tag: _RemoteTag, page: str) -> None:
    if not file.is_file():
        raise UserError(
            f"asv's {page} loads {tag.url}, of which torch-history has no copy to put in its place. "
            f"Install asv {ASV_VERSION}, or add {tag.file} to {VENDOR.name}/."
        )
    hashes = list(_strongest(tag.attributes.get("integrity", "")))
    if not hashes:
        raise UserError(
            f"asv's {page} loads {tag.url} without a hash to hold {VENDOR.name}/{tag.file} against. "
            f"Install asv {ASV_VERSION}, whose page has one."
        )
    content = file.read_bytes()
    if not any(hashlib.new(name, content).digest() == digest for name, digest in hashes):
        raise UserError(
            f"{VENDOR.name}/{file.name} is not the file that asv's {page} names as {tag.url}: "
            f"its {hashes[0][0]} differs. "
            f"Restore it from the repository; where it is unchanged there, install asv {ASV_VERSION}."
        )


def _strongest(integrity: str) -> Iterator[tuple[str, bytes]]:
    """The hashes of an integrity attribute that count: those of the strongest kind in it."""
    parts = [part.split("?")[0].partition("-") for part in integrity.split()]
    known = [(name, base64.b64decode(digest)) for name, _, digest in parts if name in _STRENGTH]
    best = max((_STRENGTH.index(name) for name, _ in known), default=-1)
    return ((name, digest) for name, digest in known if _STRENGTH.index(name) == best)


def _write_json_twin(path: Path) -> None:
    """Writes the twin of a JSON file. NaN and infinities, which browsers refuse, become null in both."""
    no_json: list[str] = []
    data = json.loads(path.read_text(encoding="utf-8"), parse_constant=no_json.append)
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    if no_json:
        path.write_text(text, encoding="utf-8")
    _write_twin(path, text)


def _write_twin(path: Path, ascii_json: str) -> None:
    script = ascii_json.replace("<", "\\u003c")
    path.with_name(path.name + ".js").write_text(f"torchHistoryTwin({script});\n", encoding="ascii")
