"""How does asv's own dashboard open without a network, and from disk?

asv publishes it as ever; then vendored files take the place of those its page loads from other hosts, each
JSON file gets a script twin that a page opened from disk may load, release tags stand on the x axis, and a graph opens with
one machine. An asv plugin too: `asv preview` serves the site that asv's pages lie in.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import html
import itertools
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from asv import util
from asv.commands.preview import Preview
from asv.commands.publish import Publish
from asv.config import Config
from asv.console import log
from asv.graph import Graph
from asv.machine import Machine
from asv.plugins.regressions import Regressions
from asv.util import write_json

from contract.metrics import METRICS

from ..errors import UserError
from ..releases.axis import Axis
from ..store.asv_results import load_asvs, parts_of, read_benchmarks, require_short
from ..store.launches import unfit
from ..store.machines import RECORD, record_of
from ..system.files import warn
from ..system.scratch import is_own

VENDOR = Path(__file__).parent / "vendor"
ASV_VERSION = "0.6.6"

MOST_RELEASES = 64
"""Releases of a machine in asv's dashboard, the newest: each publish makes it anew and looks for steps in all of them."""

_LOADED_BY = {"script": "src", "link": "href", "img": "src", "iframe": "src"}
_ABOUT_ANOTHER_HOST = {"integrity", "crossorigin", "referrerpolicy"}
_HANDLER = "onerror"
_STRENGTH = ("sha256", "sha384", "sha512")


NEUTRAL = ("MORE", "FEWER")
"""The verdicts on a metric of which more is not worse."""

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


_LINK_BACK = _Edit(
    "a link back to torch-history's front page",
    "index.html",
    '<ul class="nav navbar-nav navbar-left">',
    '<ul class="nav navbar-nav navbar-left">\n'
    '        <li id="nav-li-torch-history"><a href="../index.html">torch-history</a></li>',
)
"""For pages that lie in the site."""

_EDITS = (
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
        "a graph that opens with one machine",
        "graphdisplay.js",
        "state[param] = values;\n                if (values.length > 1",
        "state[param] = (index.benchmarks[current_benchmark].opens_with[param] || values).slice();\n"
        "                if (values.length > 1",
    ),
    _Edit(
        "the machines that were chosen, in the address, also where they are all",
        "graphdisplay.js",
        "if (state[param].length != values.length || param == 'branch') {",
        "if (state[param].length != values.length || param in "
        "$.asv.main_json.benchmarks[current_benchmark].opens_with || param == 'branch') {",
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
    _Edit(
        "what is no address, such as %E0%A4%A, taken as it is",
        "asv.js",
        "decodeURIComponent(",
        "$.torchHistory.decoded(",
        times=4,
    ),
    _Edit(
        "a page that is one of asv's, and nothing that every object of JavaScript has",
        "asv.js",
        "loaded_pages[name] !== undefined",
        "Object.prototype.hasOwnProperty.call(loaded_pages, name)",
    ),
    _Edit(
        "a sentence where an address names no benchmark",
        "asv.js",
        "show_page('graphdisplay', info.params);",
        "show_page($.torchHistory.isUnknown(info.location[0]) ? 'summarygrid' : 'graphdisplay', info.params);",
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


def publish_linked(conf: Config, results: Path, html_dir: Path, here: str = "") -> None:
    """Publishes asv's dashboard of what `link_readable` has put into `results` into `html_dir`, a folder of the site,
    replacing what is there. Its graphs open with the machine `here`, if that has results. `conf` stays as it is. Raises
    UserError as `publish_safe` does."""
    own = copy.copy(conf)
    own.html_dir, own.results_dir = str(html_dir), str(results)
    _publish(own, here, in_site=True)


def publish_safe(conf: Config, *args: Any, **kwargs: Any) -> None:
    """What asv's `publish` does, then: names of strangers are text in its pages, which run no script but their own and need
    no other host. Raises UserError where asv's dashboard is not the one this is written for, or a vendored file not the one
    that dashboard names."""
    in_site = is_own(Path(conf.html_dir).resolve().parent)
    _publish(conf, Machine.get_unique_machine_name(), *args, in_site=in_site, **kwargs)


_asvs_publish = Publish.run
"""asv's own, taken before this package's plugin puts a guard in its place."""

_asvs_regression = Regressions._process_regression


def _publish(conf: Config, here: str, *args: Any, in_site: bool, **kwargs: Any) -> None:
    Regressions._process_regression = classmethod(_process_regression)
    _asvs_publish(conf, *args, **kwargs)
    html_dir = Path(conf.html_dir)
    for edit in (*_EDITS, *[_LINK_BACK] * in_site):
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
    _arrange(html_dir, here)
    for data in sorted(html_dir.rglob("*.json")):
        _write_json_twin(data)
    _write_twin(html_dir / "swallow.ico", '""')


def _process_regression(
    _cls: type[Regressions],
    regressions: list[Any],
    revision_to_hash: Any,
    repo: Any,
    all_params: Any,
    graph_data: Any,
    graph: Graph,
) -> None:
    """asv's, but for what it cannot say: asv calls every rise a regression, also of a count of which more is not worse, and
    does not tell what the recorder counted from what was measured."""
    metric = METRICS.get(graph.benchmark_name.rpartition(".track_")[2])
    is_neutral = metric is not None and metric.more_and_less == NEUTRAL
    if not is_neutral and graph.params.get("device") != "recorder":
        _asvs_regression(regressions, revision_to_hash, repo, all_params, graph_data, graph)


def link_readable(conf: Config, axis: Axis, folder: Path) -> None:
    """Links what asv can read of the newest results into `folder`: its publish ends at the first file that it cannot. Raises
    UserError where its list of benchmarks is missing or damaged."""
    results = Path(conf.results_dir).resolve()
    listed = results / "benchmarks.json"
    try:
        read_benchmarks(listed)
    except ValueError as error:
        raise UserError(
            f"{listed} is missing or damaged, so asv's dashboard cannot be built: {error}. "
            "`torch-history run` or `asv run --bench just-discover` writes it again."
        ) from error
    (folder / listed.name).symlink_to(listed)
    lacking: dict[str, str] = {}
    for machine in sorted({path.parent for path in results.glob("*/*.json") if not unfit(path.parent)}):
        write_json(folder / machine.name / RECORD, record_of(machine), Machine.api_version)
        newest = _newest(axis, set(machine.glob("*.json")) - {machine / RECORD})
        for path in newest:
            try:
                # asv puts these in the paths of all files that lack the key
                every = lacking | {key: f"{key}-null" for key in parts_of(load_asvs(path))}
                require_short(every)
            except ValueError as error:
                warn(f"{path} is not in asv's dashboard: {error}.")
            else:
                lacking = every
                (folder / machine.name / path.name).symlink_to(path)


def _newest(axis: Axis, files: Iterable[Path]) -> list[Path]:
    """Those of asv's files that are of the newest releases; all that name no release of the axis, which asv passes over."""
    tag_of = {path: path.name.partition("-")[0] for path in files}
    on_axis = sorted({tag for tag in tag_of.values() if tag in axis}, key=axis.position)
    left_out = set(on_axis[:-MOST_RELEASES])
    return sorted(path for path, tag in tag_of.items() if tag not in left_out)


def _arrange(html_dir: Path, here: str) -> None:
    """Takes benchmarks without a result, such as a GPU's on a CPU, from the index: asv lists them and cannot load them. Says
    in it with which machine the graph of each of the others opens: `here`, else of those on which something ran the one with
    most numbers."""
    path = html_dir / "index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    graphs: dict[str, list[dict[str, Any]]] = {name: [] for name in index["benchmarks"]}
    numbers: Counter[tuple[str, ...]] = Counter()
    for name, params in itertools.product(graphs, index["graph_param_list"]):
        graph = html_dir / f"{Graph.get_file_path(params, name)}.json"
        if graph.is_file():
            graphs[name].append(params)
            machine, python = _lane(params)
            numbers.update(dict.fromkeys([(machine,), (machine, python)], graph.stat().st_size))

    def place(params: Mapping[str, Any]) -> tuple[Any, ...]:
        machine, python = _lane(params)
        is_recorded = params.get("device") == "recorder"
        return machine != here, is_recorded, -numbers[machine,], machine, -numbers[machine, python], python

    index["graph_param_list"].sort(key=place)
    index["params"]["machine"] = list(dict.fromkeys(params["machine"] for params in index["graph_param_list"]))
    index["benchmarks"] = {
        name: {**index["benchmarks"][name], "opens_with": _opens_with(min(of, key=place), index)}
        for name, of in graphs.items()
        if of
    }
    path.write_text(json.dumps(index), encoding="utf-8")


def _opens_with(first: Mapping[str, Any], index: Mapping[str, Any]) -> dict[str, list[str]]:
    """The machine of `first` and its Python alone, and with it the Pythons that other machines alone have, so that choosing
    one of them is enough to see it."""
    machine, python = _lane(first)
    others = {_lane(params)[1] for params in index["graph_param_list"] if _lane(params)[0] == machine} - {python}
    pythons = [each for each in index["params"].get("python", []) if str(each) not in others]
    return {"machine": [first["machine"]], "python": pythons}


def _lane(params: Mapping[str, Any]) -> tuple[str, str]:
    """The machine and the Python of a graph, as text: results come from anywhere."""
    return str(params["machine"]), str(params.get("python"))


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


# --- asv's own `preview`


_asvs_preview = Preview.run


def _preview_in_site(cls: type[Preview], conf: Config, port: int = 0, browser: bool = False) -> None:
    folder = Path(conf.html_dir).resolve()
    if not (folder / "index.html").is_file():
        raise util.UserError(
            f"There are no pages in {folder} to show. Write asv's with `asv publish`, or the whole site with `torch-history "
            "publish`."
        )
    if is_own(folder.parent):
        conf.html_dir = str(folder.parent)
        log.info(f"asv's own pages are at the address below with {folder.name}/ at its end.")
    _asvs_preview(conf, port=port, browser=browser)


def setup() -> None:
    """asv's hook: called when it loads this module as a plugin."""
    Preview.run = classmethod(_preview_in_site)
