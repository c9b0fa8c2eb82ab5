"""Should I upgrade, what will it cost me, why, and how sure is that? A static site from `results/`, asv's pages inside.
Python writes data, a file per lane and pair of releases, and pages that draw it. Nothing asks another host for anything, and
all opens from disk. The site is built beside the old one and takes its place in one step."""

import base64
import contextlib
import copy
import functools
import itertools
import json
import os
import re
import shutil
import tomllib
import uuid
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from asv.config import Config
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from contract.metrics import METRICS

from ..analysis import bases, claims, compare, power, series, verdicts
from ..analysis import causes as why
from ..analysis.answer import inconclusive
from ..analysis.labels import labels
from ..analysis.levels import on_one_thread
from ..analysis.replication import OtherPlaces
from ..analysis.series import Series, Verdict
from ..explaining import reproduction
from ..explaining.counting import COUNTED
from ..explaining.finding import TIMES
from ..explaining.launching import Subject
from ..releases import wheels
from ..releases.axis import Axis, Release
from ..store.certificates import certificates_in
from ..store.launches import machines_in
from ..system.children import beside, side_by_side
from ..system.errors import UserError
from ..system.files import WRONG_DATA
from ..system.program import SOURCES
from ..system.scratch import mark, scratch
from . import calibration
from .asv_dashboard import POLICY, SCRATCH, link_readable, publish_dashboard, require_replaceable
from .data import SCHEMA, Lane, elsewhere_of, file_name, lane_data, lanes, left_out, lines, newest, numbers, unreadable
from .rivals import quickest
from .told import SCHEMA as PAIR
from .told import told as told_of

MOST_ENTRIES = 100  # of a feed: readers keep what they have seen
COSTS = (Verdict.SLOWER, Verdict.HUNGRIER, Verdict.BROKE)  # what a badge counts
AT_ONCE = 32  # pairs of releases whose files one process writes before it asks for more
STEPS = ("reading results", "comparing releases", "writing pages")  # what `publish_site` does one after the other
SHARED = ("app.js", "common.js", "data/index.js")  # the scripts of every page

_FOLDER = Path(__file__).parent / "templates"
_TEMPLATES = Environment(
    loader=FileSystemLoader(_FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
)
_TEMPLATES.filters["plain"] = functools.partial(
    re.sub, r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd"
)
"""Text without what XML cannot hold."""

_LISTED = tomllib.loads((_FOLDER / "pages.toml").read_text(encoding="utf-8"))
PAGES: list[dict[str, Any]] = _LISTED["page"]
DOCUMENTS: dict[str, str] = _LISTED["documents"] | {
    f"questions/{question}": f"The question {question.replace('_', ' ')}, and what is known of it"
    for question in claims.CLAIMS
}
"""What templates/pages.toml lists. Causes that were found by hand have their evidence on the page of their question."""


class Published(NamedTuple):
    """A lane, what `lane_data` gives of it, its answers to the claims, its newest release against the one before it,
    how large a change would be found, what was measured elsewhere, and what the files of pairs have of it."""

    lane: Lane
    data: dict[str, Any]
    answered: bases.Answered
    upgrade: compare.Comparison | None
    evidence: power.LaneEvidence
    elsewhere: OtherPlaces
    pairs: dict[tuple[str, str], dict[str, Any]]


def publish_site(
    conf: Config,
    axis: Axis,
    html_dir: Path,
    url: str = "",
    begins: Callable[[str], None] = lambda step: None,
    here: str = "",
) -> Path:
    """Builds the site into `html_dir` and returns its front page. `url` is where it will be read, for the links of its
    feeds; `begins` is given each of STEPS when that begins; `here` is the machine on which the site opens, if that has
    results. Raises UserError where there are no results at all, or where `html_dir` may not be replaced."""
    results = Path(conf.results_dir)
    nothing = UserError(f"{results}/ contains no launches to publish. Measure first with `torch-history run`.")
    if not machines_in(results):
        raise nothing
    html_dir = html_dir.resolve()
    require_replaceable(html_dir, conf)
    with scratch(html_dir.parent, SCRATCH) as folder, on_one_thread():
        new, readable = folder / "site", folder / "readable"
        for made in (new / "data" / "pairs", readable):
            made.mkdir(parents=True)
        link_readable(conf, readable)
        begins(STEPS[0])
        found = lanes(results, axis, here)
        begins(STEPS[1])
        mark(new)
        asvs = copy.copy(conf)
        asvs.html_dir, asvs.results_dir = str(new / "asv"), str(readable)

        def of_asv_and_code() -> dict[str, bool]:
            publish_dashboard(asvs, here=found[0].name)
            return _write_code(new / "data", found)

        if not found:
            raise nothing
        with beside(of_asv_and_code) as written:
            told = [each for lane in found if (each := _told(lane, axis, found))]
            code = written()
        told = _with_pairs(told, new / "data" / "pairs")
        if not told:
            raise nothing
        mark(new / "asv")
        begins(STEPS[2])
        _write_data(new / "data", told, axis, wheels.load(Path(conf.repo).with_name(wheels.FILE)), here, code)
        rows = bases.rows([each.answered for each in told], axis, certificates_in(results))
        columns, tags = list(bases.BASES.values()), [release.tag for release in axis.releases]
        claimed = [row.as_data() | _drawn(row, told) for row in rows]
        of_claims = {"columns": columns, "releases": tags, "claims": claimed}
        _write_json(new / "data", "bases", of_claims)
        _write_compressed(new / "data", "bases", of_claims)
        _write(new / "data", "advice", {row.question: row.advised for row in rows})
        feeds = _write_feeds(new / "feeds", told, axis, url)
        _write_badges(new / "badges", told)
        met = {of.lane.name: [each.evidence for each in told if each.lane.name == of.lane.name] for of in told}
        documents = {"calibration": calibration.document(results, met)}
        on_a_gpu = bases.on_a_gpu(((each.lane.device, each.lane.releases) for each in told), axis)
        _write_pages(new, axis, feeds, documents, on_a_gpu, url)
        _write_first(new, told[0].lane)
        require_replaceable(html_dir, conf)
        new.parent.chmod(0o755)
        with contextlib.suppress(FileNotFoundError):
            os.rename(html_dir, new.parent / "old")  # which goes with the scratch folder
        os.rename(new, html_dir)
    return html_dir / "index.html"


def _told(lane: Lane, axis: Axis, others: Sequence[Lane]) -> Published | None:
    """What the pages are given of a lane, without its pairs; None, with a warning, where it cannot be read."""
    try:
        elsewhere = elsewhere_of(lane, others)
        answered = bases.answered_by(lane.machine, lane.environment, lane.found, lane.answers)
        about = lane_data(lane, axis, elsewhere), answered, newest(lane, elsewhere)
        of_lane = power.lane_evidence(lane.found, lane.environment, axis)
        return Published(lane, *about, of_lane, elsewhere, {})
    except WRONG_DATA as error:
        left_out(lane.name, lane.environment, unreadable(error))
        return None


def _with_pairs(told: Sequence[Published], folder: Path) -> list[Published]:
    """Writes the files of all pairs, on all processors, and gives each lane what they have of it; leaves out, with a
    warning, a lane of which one cannot be written."""

    def write(part: tuple[int, range]) -> dict[tuple[str, str], dict[str, Any]] | str:
        try:
            return _write_pairs(folder, told[part[0]], part[1])
        except WRONG_DATA as error:
            return unreadable(error)

    every = [range(len(of.lane.every.pairs)) for of in told]
    parts = [(place, of[first : first + AT_ONCE]) for place, of in enumerate(every) for first in of[::AT_ONCE]]
    wrong: dict[int, str] = {}
    for (place, _), made in zip(parts, side_by_side(write, parts), strict=True):
        if isinstance(made, str):
            wrong[place] = made
        else:
            told[place].pairs.update(made)
    for place, why_not in wrong.items():
        left_out(told[place].lane.name, told[place].lane.environment, why_not)
    return [of for place, of in enumerate(told) if place not in wrong]


def _write_data(
    folder: Path,
    told: Sequence[Published],
    axis: Axis,
    brought: Mapping[str, wheels.Wheel],
    here: str,
    code: Mapping[str, bool],
) -> None:
    """data/: an index, what the wheels bring, and files per lane, as JSON and as scripts, which a page opened from disk may
    load; and the newest release of each lane against the one before it, as `torch-history compare --json` prints it. `code`
    is what `_write_code` gives."""
    said = Counter(each.lane.words for each in told)
    last = axis.newest
    known = {release.tag: (brought[release.tag], release) for release in axis.releases if release.tag in brought}
    alike = itertools.groupby(known, key=lambda tag: known[tag][0].architectures)
    index = {
        "schema": SCHEMA,
        "newest": {"tag": last.tag, "date": str(last.date), "estimated": last.date_source == "estimated"},
        "pythons": {release.tag: release.pythons for release in axis.releases},
        "here": here if here in {each.lane.name for each in told} else "",
        "lanes": [_in_index(each.lane, said[each.lane.words] == 1) for each in told],
        "labels": labels(),
        "kinds": series.KINDS,
        "shown": series.SHOWN,
        "margin": verdicts.MARGIN,
        "metrics": {name: [metric.shown_unit, metric.varies] for name, metric in METRICS.items()},
        "code": list(code),
        "scripted": [name for name, is_scripted in code.items() if is_scripted],
        "wheels": list(known),
        "architectures": [[next(tags), architectures] for architectures, tags in alike],
    }
    _write(folder, "index", index)
    _write(folder, "wheels", {tag: _wheel(*of) for tag, of in known.items()})
    for tag, (wheel, _) in known.items():
        _write(folder, f"wheels-{tag}", {"told": wheels.told(wheel), "architectures": wheel.architectures})
    for each in told:
        _write_lane(folder, each, axis)
    for old, new in {pair: None for each in told for pair in each.pairs}:
        of = [each.pairs[old, new] for each in told if (old, new) in each.pairs]
        _write(folder / "pairs", f"{old}-{new}", {"schema": PAIR, "old": old, "new": new, "lanes": of})


def _write_code(folder: Path, found: Iterable[Lane]) -> dict[str, bool]:
    """The code of all variants. Gives the names of their files, and whether one measures a series as it is."""
    code = code_of(one for lane in found for one in lane.found)
    for name, of_variant in code.items():
        _write(folder, name, of_variant)
    return {name: any(script["text"] for script in of["scripts"]) for name, of in code.items()}


def code_of(found: Iterable[Series]) -> dict[str, dict[str, Any]]:
    """Name of a file -> its content, a file for each variant of each question of the suite: scripts of plain PyTorch, each
    of which measures one series. A variant that no workload names has no file."""
    apart: dict[tuple[str, str], dict[tuple[str, str], str]] = defaultdict(dict)
    for one in found:
        if len(one.parameters) == 2 and re.fullmatch(r"\w+", one.variant, re.ASCII):
            apart[one.question, one.variant][one.benchmark, one.size] = one.metric
    code = {}
    for (question, variant), cases in sorted(apart.items()):
        path = SOURCES / "workloads" / f"{question}.py"
        steady = any(metric in TIMES for metric in cases.values())
        if re.fullmatch(r"\w+", question, re.ASCII) and path.is_file() and reproduction.names(path, variant):
            code[f"code-{question}-{variant}"] = _of_variant(question, variant, cases, steady)
    return code


def _of_variant(question: str, variant: str, cases: dict[tuple[str, str], str], steady: bool) -> dict[str, Any]:
    scripts = []
    for (benchmark, size), metric in sorted(cases.items()):
        text, why_not = "", "It measures more than a call that is repeated, which is all that a script does."
        if steady and metric in (*TIMES, *COUNTED):
            head = f"{question} {metric}, {variant}, {size}"
            try:
                text, why_not = reproduction.script(Subject(SOURCES, question, variant, size, metric), head), ""
            except reproduction.CannotReproduce as error:
                why_not = str(error)
        scripts.append({"benchmark": benchmark, "size": size, "text": text, "why": why_not})
    return {"scripts": scripts}


def _drawn(row: bases.Row, told: Sequence[Published]) -> dict[str, Any]:
    """What the small chart of a question shows, of all lanes, and one sentence of advice for each device."""
    claims_of = ((each.lane, claim) for each in told for claim in each.data["claims"])
    found = [lines(lane, claim) for lane, claim in claims_of if claim["question"] == row.question]
    advice = []
    for device, said in zip(("cpu", "cuda"), row.brief, strict=True):
        quicker = quickest(row.question, (each.lane for each in told if each.lane.device == device))
        advice.append(f"{said} {quicker}".strip())
    return {"lines": [of for of in found if of], "advice": advice}


def _in_index(lane: Lane, is_one: bool) -> dict[str, Any]:
    """What the pages of other lanes know of one; `is_one` says that no other has its words."""
    about = {"id": lane.id, "machine": lane.name, "environment": lane.environment, "device": lane.device}
    about |= {"newest": lane.releases[-1], "words": lane.words if is_one else f"{lane.words} ({lane.name})"}
    return {**about, "releases": len(lane.releases)}


def _wheel(wheel: wheels.Wheel, release: Release) -> dict[str, Any]:
    """All that the page on wheels shows of one, in bytes."""
    names = ("python", "cuda", "cxx11_abi", "glibc", "architectures", "download", "installed", "libraries")
    of_package = ("name", "version", "download", "installed")
    return {
        "date": release.date.isoformat(),
        **{name: getattr(wheel, name) for name in names},
        "torch": wheel.packages[0].installed,
        "packages": [{name: getattr(each, name) for name in of_package} for each in wheel.packages],
    }


def _write_lane(folder: Path, told: Published, axis: Axis) -> None:
    """A lane as JSON; and compressed as scripts, each with no more than a page shows at once."""
    lane, data = told.lane, told.data
    measured = numbers(lane, axis)
    _write_json(folder, lane.id, data)
    _write_json(folder, f"{lane.id}-numbers", measured)
    apart = ("steps", "claims")
    of_page = {key: data[key] for key in data if key not in (*apart, "regressions")}
    of_page["releases"] = measured["releases"]
    scripts = {
        lane.id: of_page,
        **{f"{lane.id}-{name}": data[name] for name in apart},
        f"{lane.id}-numbers": {**measured, "shifts": lane.every.shifts},
    }
    for name, of in scripts.items():
        _write_compressed(folder, name, of)
    if told.upgrade:
        (folder / f"{lane.id}-newest.json").write_text(compare.as_json(told.upgrade), encoding="utf-8")


def _write_pairs(folder: Path, told: Published, numbers: Iterable[int]) -> dict[tuple[str, str], dict[str, Any]]:
    """data/pairs/: a script of each of these pairs of releases of a lane. Gives what the file of each has of it."""
    lane, of_all = told.lane, {}
    for number in numbers:
        pair, found = lane.every.pairs[number], told_of(lane, number, told.elsewhere)
        said = {name: found[name] for name in ("typical", "questions", "tally", "said")}
        of_all[pair] = {"lane": lane.id, "words": lane.words, "device": lane.device} | said
        _write_compressed(folder, f"{lane.id}-{'-'.join(pair)}", found)
    return of_all


def _write_compressed(folder: Path, name: str, of: Any) -> None:
    _write_script(folder, name, base64.b64encode(zlib.compress(_dumped(of).encode(), 6)).decode())


def _dumped(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


def _write(folder: Path, name: str, data: Any) -> None:
    """As JSON, and as a script that gives a page the same."""
    _write_json(folder, name, data)
    _write_script(folder, name, data)


def _write_json(folder: Path, name: str, data: Any) -> None:
    (folder / f"{name}.json").write_text(_dumped(data), encoding="ascii")


def _write_script(folder: Path, name: str, data: Any) -> None:
    text = _dumped(data).replace("<", "\\u003c")
    (folder / f"{name}.js").write_text(f'torchHistory.receive("{name}", {text});\n', encoding="ascii")


def _write_feeds(folder: Path, told: Sequence[Published], axis: Axis, url: str) -> dict[str, str]:
    """feeds/: of each machine the regressions in its lanes as RFC 4287 has them, the newest first. Gives the path of each
    within the site."""
    folder.mkdir()
    base = f"{url.rstrip('/')}/" if url else "../"
    feeds = {each.lane.name: f"feeds/{file_name(each.lane.name)}.xml" for each in told}
    for machine, path in feeds.items():
        every = [entry for each in told if each.lane.name == machine for entry in _entries(each, axis)]
        entries = sorted(every, key=lambda entry: entry["date"], reverse=True)[:MOST_ENTRIES]
        about = {"machine": machine, "id": _urn(machine), "base": base, "path": path, "entries": entries}
        (folder.parent / path).write_text(_TEMPLATES.get_template("feed.xml").render(about), encoding="utf-8")
    return feeds


def _entries(told: Published, axis: Axis) -> Iterator[dict[str, str]]:
    """The regressions of a lane as a feed has them."""
    lane, data = told.lane, told.data
    for regression in data["regressions"]:
        surest, *others = (data["steps"][place] for place in regression["steps"])
        of_series = [data["series"][step["series"]] for step in (surest, *others)]
        # What is found last may be the surest, so the id is made of the first series by name.
        same = *_keys(min(of_series)).values(), surest["kind"], surest["old"], surest["new"], surest["verdict"]
        yield {
            "date": axis.releases[axis.position(surest["until"])].date.isoformat(),
            "title": regression["title"],
            "id": _urn(lane.id, *same),
            "address": urlencode({"lane": lane.id, **_keys(of_series[0]), "release": surest["new"]}),
            "summary": f"{regression['sentence']} Measured on {lane.words}.",
        }


def _keys(series: Sequence[str]) -> dict[str, str]:
    """Of a series in the addresses of the pages."""
    benchmark, *parameters = (part.strip("'") for part in series)
    return {"benchmark": benchmark, "size": " ".join(parameters[1:]), "variant": "".join(parameters[:1])}


def _urn(*parts: str) -> str:
    """An id that stays while what it names does."""
    return uuid.uuid5(uuid.NAMESPACE_URL, "torch-history/" + "/".join(parts)).urn


def _write_badges(folder: Path, told: Sequence[Published]) -> None:
    """badges/: an image per lane that says what its newest release costs."""
    folder.mkdir()
    template = _TEMPLATES.get_template("badge.svg")
    for each in told:
        changes = each.upgrade.changes if each.upgrade else ()
        tally = Counter(change.verdict for change in changes)
        costs = [f"{tally[verdict]} {verdict.words.lower()}" for verdict in COSTS if tally[verdict]]
        *_, is_undecided = inconclusive(changes)
        is_told = tally.total() > tally[Verdict.CANT_TELL] + tally[Verdict.NEVER_RAN] and not is_undecided
        unknown = "inconclusive" if tally[Verdict.CANT_TELL] else "nothing compared"
        value = ", ".join(costs) or ("nothing worse" if is_told else unknown)
        label = f"torch {each.lane.releases[-1].removeprefix('v')}"
        colour = "#953800" if costs else "#0b57a4" if is_told else "#57606a"
        # Pixels that a text takes, at 11 pixels of a common font.
        left, right = (12 + round(6.7 * len(text)) for text in (label, value))
        text = template.render(label=label, value=value, colour=colour, left=left, right=right)
        (folder / f"{each.lane.id}.svg").write_text(text, encoding="utf-8")
        _write_json(folder, each.lane.id, {"schemaVersion": 1, "label": label, "message": value, "color": colour})


def _write_pages(
    folder: Path, axis: Axis, feeds: Mapping[str, str], made: Mapping[str, str], on_a_gpu: str, url: str
) -> None:
    """`made` are the documents that are made from what was published, by name."""
    for path in [*_FOLDER.glob("*.js*"), *_FOLDER.glob("*.css")]:
        shutil.copy(path, folder)
    pages = [*((page["file"], page["words"]) for page in PAGES if page["words"]), ("method.html", "Method")]
    common = {"pages": pages, "feeds": feeds, "on_a_gpu": on_a_gpu, "newest": axis.newest, "policy": POLICY}
    common["base"] = f"{url.rstrip('/')}/" if url else ""
    for page in PAGES:
        # For search engines and previews of links.
        description = f"{page['lead']} Time and peak memory of every PyTorch release, measured."
        of = {"here": page["file"], "description": description}
        scripts = ["first.js"] if page is PAGES[0] else [*SHARED, *page["scripts"]]
        text = _TEMPLATES.get_template("page.html").render(common | page | of | {"scripts": scripts})
        (folder / page["file"]).write_text(text, encoding="utf-8")
    documents = [(_anchor(name), words, _rendered(name, made)) for name, words in DOCUMENTS.items()]
    of = common | _LISTED["method"] | {"documents": documents, "constants": verdicts}
    method = _TEMPLATES.get_template("method.html").render(of)
    (folder / "method.html").write_text(method, encoding="utf-8")


def _write_first(folder: Path, lane: Lane) -> None:
    """first.js: the first page's scripts, and the data that it shows of the lane on which it opens."""
    pair = lane.releases[-2:]
    told = [lane.id, f"pairs/{lane.id}-{'-'.join(pair)}", f"pairs/{'-'.join(pair)}", *(f"wheels-{tag}" for tag in pair)]
    files = [folder / name for name in (*SHARED, *(f"data/{name}.js" for name in told), *PAGES[0]["scripts"])]
    (folder / "first.js").write_text("\n".join(path.read_text("utf-8") for path in files if path.exists()), "utf-8")


def _rendered(name: str, made: Mapping[str, str]) -> Markup:
    """A document as HTML, one level below the page's own headings, its links to other documents made anchors."""
    text = made[name] if name in made else (SOURCES / "docs" / f"{name}.md").read_text(encoding="utf-8")
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text.partition("\n")[2] if text.startswith("# ") else text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 1)}"
        _keep_anchors(token.children or [], name)
    _name_headings(tokens, _anchor(name))
    _name_items(tokens, name)
    if name == "glossary":
        _name_words(tokens)
    html = str(markdown.renderer.render(tokens, markdown.options, {}))
    region = '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>'
    html = html.replace("<table>", region).replace("</table>", "</table></div>")
    return Markup(html.replace("<pre><code", '<pre tabindex="0"><code'))


def _name_headings(tokens: Sequence[Token], document: str) -> None:
    """Gives each heading an anchor of its document and what GitHub calls it: `questions-selection-what-is-known`."""
    named: set[str] = set()
    for heading, words in itertools.pairwise(tokens):
        anchor = f"{document}-" + re.sub(r"[^\w -]", "", words.content.lower()).replace(" ", "-")
        if heading.type == "heading_open" and anchor not in named:
            heading.attrSet("id", anchor)
            named.add(anchor)


def _name_items(tokens: Sequence[Token], name: str) -> None:
    """Gives each item on how a cause was found its first words as an anchor, `questions-selection-what-2-14-0-lost`."""
    items = {_plain(row.item): row.item for row in why.FOUND if row.link == f"docs/{name}.md"}
    for item, words in zip(tokens, tokens[2:], strict=False):
        begun = next((plain for plain in items if _plain(words.content).startswith(plain)), "")
        if item.type == "list_item_open" and begun:
            slug = re.sub("[^a-z0-9]+", "-", items.pop(begun).lower()).strip("-")
            item.attrSet("id", f"{_anchor(name)}-{slug}")


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[*`]", "", text).split())


def _name_words(tokens: Sequence[Token]) -> None:
    """Gives each row of the glossary its word as an anchor, such as `word-lane`; a row of several words has the first."""
    for row, cell, words in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if row.type == "tr_open" and cell.type == "td_open":
            first = words.content.partition(",")[0].strip().lower()
            row.attrSet("id", f"word-{re.sub('[^a-z]+', '-', first)}")


def _anchor(name: str) -> str:
    """Where the page on method has a document."""
    return name.replace("/", "-")


def _keep_anchors(tokens: Sequence[Token], document: str) -> None:
    """Links to what the page shows lead there; others, which lead nowhere without a repository, are plain text."""
    shown = False
    for token in tokens:
        if token.type == "link_open":
            path, _, heading = str(token.attrGet("href")).partition("#")
            target = Path(path or f"{document}.md")
            names = [name for name in DOCUMENTS if Path(name).name == target.stem]
            shown = bool(names) and target.suffix == ".md"
            if shown:
                token.attrSet("href", f"#{_anchor(names[0])}{heading and f'-{heading}'}")
        if token.type in ("link_open", "link_close") and not shown:
            token.type = "text"
