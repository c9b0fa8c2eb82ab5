"""How does asv's own dashboard open without a network, from disk, and on one machine? Copies in vendor/ take the place of
libraries on other hosts, and beside each file of data lies a script with it: a page from disk may load nothing else.

An asv plugin, too: asv's own `publish` deletes the folder that it writes into, so it asks here first which it may replace:
one that is new, empty, marked as this program's own, or holds such folders alone."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from asv import util
from asv.commands.publish import Publish
from asv.config import Config
from asv.graph import Graph, GraphSet, make_summary_graph
from asv.machine import Machine
from asv.publishing import OutputPublisher

from contract.children import all_die_with_this_process
from contract.metrics import metric_of

from ..store.asv_results import load_asvs, parts_of, read_benchmarks, require_short
from ..store.launches import unfit
from ..store.machines import RECORD, record_of
from ..system.errors import UserError
from ..system.files import warn
from ..system.program import SOURCES
from ..system.scratch import MARK, is_own, mark

SCRATCH = ".publishing-"  # how the name of a folder begins that lies beside the site while it is built

VENDOR = Path(__file__).parent / "vendor"

POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file: 'unsafe-inline'; "
    "img-src 'self' file: data: blob:; font-src 'self' file: data:; connect-src 'self' file:; "
    "base-uri 'none'; form-action 'none'"
)
"""The Content-Security-Policy of every page: scripts from files beside it alone, none in a page, and no eval. `file:`
is for pages opened from disk, where a browser may take nothing for `'self'`. Flot writes styles in the page."""

# The end of a tag that loads a file from another host.
_LIBRARY = re.compile(r'"https://[^"]+/([^"/]+\.(?:js|css))"[^>]*>')

_SCRIPTS = {
    "regressions.js": ("factor.toFixed(2) + 'x'", "isFinite(factor) ? factor.toFixed(2) + 'x' : 'from 0'"),
    "summarylist.js": ("err == err", "isFinite(err)"),
}
"""Script of asv's -> what it writes of a number divided by 0, and what is written instead."""

# That a time needs before asv's regressions tell it: with fewer, a step that is noise alone seems to explain half of it.
LEAST_RELEASES = 10

_asvs_publish = Publish.run  # asv's own, before `setup` puts a guard in its place


class _OneMachine(OutputPublisher):
    """What asv writes between its list (order 1) and its regressions (order 3)."""

    name = button_label = description = ""
    order = 2

    @classmethod
    def publish(cls, conf: Config, repo: Any, benchmarks: Any, graphs: GraphSet, revisions: Any) -> None:
        """Says in each benchmark on which machine it `opens`: the one that publishes, else that of most releases; the grid
        draws that one, and no mean over machines. The list opens on a `lane`. What was never measured is left out, and so
        are the steps of times that asv cannot judge."""
        here = getattr(conf, "opens_on", "")
        counts = {graph: _releases(graph) for _, graph in graphs}
        total: Counter[Any] = Counter()
        for graph, of in counts.items():
            total[tuple(graph.params.items())] += 0 if graph.params.get("device") == "recorder" else sum(of)
            if metric_of(graph.benchmark_name).varies:
                graph._steps = [each * (n >= LEAST_RELEASES) for each, n in zip(graph._steps, of, strict=True)]
        lane = max(total, key=lambda of: (("machine", here) in of, total[of]), default=())
        for name in list(benchmarks):
            known = {graph: max(counts[graph]) for graph in graphs.get_graph_group(name)}
            if not known:
                del benchmarks[name]
                continue
            is_here = (graph for graph in known if graph.params["machine"] == here and known[graph])
            best = max([*is_here] or known, key=lambda graph: (known[graph], total[tuple(graph.params.items())]))
            benchmarks[name] |= {"opens": best.params["machine"], "lane": dict(lane)}
            make_summary_graph([best]).save(conf.html_dir)


def _releases(graph: Graph) -> list[int]:
    """How many releases have a number, of each of its series."""
    rows = [[value] if graph.scalar_series else value for _, value, _ in graph.get_data()]
    return [sum(not util.is_na(row[series]) for row in rows) for series in range(graph.n_series)]


def publish_dashboard(conf: Config, *args: Any, here: str = "", **kwargs: Any) -> None:
    """What asv's `publish` does; then its pages need no other host, run no script but their own, open on the machine `here`
    where that measured, and lead to the site that they lie in. Raises UserError where they are those of another asv."""
    all_die_with_this_process()
    conf.opens_on = here
    _asvs_publish(conf, *args, **kwargs)
    folder = Path(conf.html_dir)
    shutil.copytree(VENDOR, folder / "vendor", dirs_exist_ok=True)
    for page in folder.glob("*.html"):
        text = _localised(page.read_text(encoding="utf-8"), page.name)
        if is_own(folder.resolve().parent):
            links = '<ul class="nav navbar-nav navbar-left">'
            text = text.replace(links, f'{links}<li><a href="../index.html">torch-history</a></li>')
        page.write_text(text, encoding="utf-8")
    for script, (was, now) in _SCRIPTS.items():
        text = (folder / script).read_text(encoding="utf-8")
        (folder / script).write_text(text.replace(was, now), encoding="utf-8")
    for data in folder.rglob("*.json"):
        _write_twin(data)


def _localised(text: str, page: str) -> str:
    """A page of asv's that loads only files beside it, with the policy, and after jQuery the script that reads the twins."""
    missing = [file for file in _LIBRARY.findall(text) if not (VENDOR / file).is_file()]
    if missing or "<head>" not in text:
        raise UserError(
            f"asv's {page} is not the one that torch-history makes work without a network: it loads "
            f"{', '.join(missing) or 'what no copy is known of'}. Install asv 0.6.6."
        )
    text = _LIBRARY.sub(r'"vendor/\1">', text)
    text = re.sub(r'<script type="text/javascript">.*?</script>', "", text, flags=re.DOTALL)
    text = re.sub(r'(<script src="vendor/jquery-.*)', r'\1\n<script src="vendor/offline.js"></script>', text)
    return text.replace("<head>", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">')


def _write_twin(path: Path) -> None:
    """Writes a file of asv's data again, and as a script. NaN and infinities, which browsers refuse, become null. asv's
    pages take names for markup, so none may begin a tag: `<` becomes what asv has for it in names of files."""
    text = path.read_text(encoding="utf-8").replace("<", "_")
    text = json.dumps(json.loads(text, parse_constant=lambda _: None), separators=(",", ":"))
    path.write_text(text, encoding="ascii")
    path.with_name(f"{path.name}.js").write_text(f"torchHistoryTwin({text});\n", encoding="ascii")


def link_readable(conf: Config, folder: Path) -> None:
    """Links what asv can read of the results into `folder`: its publish ends at the first file that it cannot. Raises
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
        util.write_json(folder / machine.name / RECORD, record_of(machine), Machine.api_version)
        for path in sorted(set(machine.glob("*.json")) - {machine / RECORD}):
            try:
                # asv puts these in the paths of all files that lack the key
                every = lacking | {key: f"{key}-null" for key in parts_of(load_asvs(path))}
                require_short(every)
            except ValueError as error:
                warn(f"{path} is not in asv's dashboard: {error}.")
            else:
                lacking = every
                (folder / machine.name / path.name).symlink_to(path)


def require_replaceable(folder: Path, conf: Config) -> None:
    """Raises UserError, with nothing touched, unless a publish may put a site in the place of `folder`."""
    folder = folder.resolve()
    advice = "Nothing was changed. Name a folder that is new or empty with --html-dir."
    every = [  # what no site may take the place of, in words, and whether none may lie in it either
        (conf.results_dir, "the results", True),
        (conf.env_dir, "the releases' environments", True),
        (conf.benchmark_dir, "the benchmarks", True),
        (Path.cwd(), "the checkout", False),
        (SOURCES, "the checkout", False),
        (Path.home(), "your home folder", False),
    ]
    for path, words, outside_only in every:
        kept = Path(path).resolve()
        if kept.is_relative_to(folder):
            verb = "is" if kept == folder else "holds"
            raise UserError(f"A site cannot take the place of {folder}, which {verb} {words}. {advice}")
        if outside_only and folder.is_relative_to(kept):
            raise UserError(f"A site cannot take the place of {folder}, which lies within {words}, {kept}. {advice}")
    if ".git" in folder.parts:
        raise UserError(f"A site cannot take the place of {folder}, which lies within a folder of git's. {advice}")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UserError(f"A site cannot take the place of {folder}, which is no folder. {advice}")
    if not is_own(folder) and not all(is_own(each) and not each.is_symlink() for each in folder.iterdir()):
        raise UserError(
            f"A site cannot take the place of {folder}: it holds files, and none named {MARK} that says torch-history made "
            f"them. {advice} Where it is a site that an older torch-history published, remove it yourself first."
        )


def _publish_guarded(cls: type[Publish], conf: Config, *args: Any, **kwargs: Any) -> None:
    folder = Path(conf.html_dir)
    try:
        require_replaceable(folder, conf)
        try:
            publish_dashboard(conf, *args, **kwargs)
        finally:
            # Also of a publish that failed: what lies there now is asv's.
            if folder.is_dir():
                mark(folder)
    except UserError as error:
        raise util.UserError(str(error)) from error  # which asv prints as a sentence


def setup() -> None:
    """asv's hook: called when it loads this module as a plugin."""
    Publish.run = classmethod(_publish_guarded)
