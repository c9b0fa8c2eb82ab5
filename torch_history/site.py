"""Should I upgrade, and what will it cost? A static site from `results/`: a front page of our own, asv's dashboard inside.

Nothing on it asks another host for anything, and it opens from disk. It is built beside the old one and takes its place in
one step, so a publish that fails leaves the old site as it was.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair
import vl_convert
from asv import util
from asv.config import Config
from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup

from .axis import Axis
from .classic import publish_classic
from .launches import Launch, machines_in, read_on_axis
from .machine import record_of
from .verdicts import NOT_MEASURED, RANK, Change, Series, compare, history, human

VEGA_LITE = "6.4"
SNIPPET = "window.vegaEmbed = vegaEmbed;"
"""What the bundle of Vega's libraries hands to the page."""


@dataclass(frozen=True)
class Picture:
    """One metric of one question in one size: a chart with a line per variant, and the same numbers as a table."""

    id: str
    title: str
    benchmark: str
    size: str
    spec: dict[str, Any]
    releases: list[str]
    rows: list[tuple[str, list[tuple[str, str]]]]

    @property
    def question(self) -> str:
        return self.benchmark.partition(".")[0].replace("_", " ")


@dataclass(frozen=True)
class Lane:
    """What one machine measured in one environment: its newest release against the one before, and the history."""

    id: str
    machine: dict[str, Any]
    environment: str
    old: str
    new: str
    changes: list[Change]
    tally: list[tuple[str, int]]
    pictures: list[Picture]

    @property
    def groups(self) -> list[tuple[str, list[Change]]]:
        """The changes that a reader should see first, then the rest, which is folded away."""
        first = [change for change in self.changes if change.verdict.kind in ("worse", "better", "changed")]
        rest = [change for change in self.changes if change not in first]
        return [("What changed", first), ("What did not, or could not be told", rest)]


def publish_site(conf: Config, axis: Axis, html_dir: Path) -> Path:
    """Builds the site into `html_dir` and returns its front page. Raises UserError where there are no results at all."""
    lanes = list(_lanes(Path(conf.results_dir), axis))
    if not lanes:
        raise util.UserError(
            f"{conf.results_dir}/ holds no launches to publish: measure first with `torch-history run`."
        )
    html_dir = html_dir.resolve()
    html_dir.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=html_dir.parent, prefix=".publishing-") as scratch:
        new = Path(scratch, "site")
        publish_classic(conf, new / "asv")
        templates = Environment(
            loader=PackageLoader("torch_history"),
            autoescape=select_autoescape(default=True, default_for_string=True),
            trim_blocks=True,
            lstrip_blocks=True,
        )
        templates.filters["embedded"] = _embedded
        templates.globals["human"] = human
        page = templates.get_template("index.html").render(lanes=lanes, newest=axis.newest)
        (new / "index.html").write_text(page, encoding="utf-8")
        for name in ("style.css", "page.js"):
            shutil.copy(Path(__file__).parent / "templates" / name, new)
        bundle = vl_convert.javascript_bundle(SNIPPET, VEGA_LITE)
        (new / "vega.js").write_text(f"(() => {{{bundle}}})();\n", encoding="utf-8")
        _swap(new, html_dir)
    return html_dir / "index.html"


def draw_history(conf: Config, axis: Axis, machine: str, environment: str, benchmark: str, size: str) -> str:
    """The history of one benchmark over its variants as SVG. Raises UserError where there is none."""
    for lane in _lanes(Path(conf.results_dir), axis):
        for picture in lane.pictures:
            if (lane.machine["machine"], lane.environment, picture.benchmark, picture.size) == (
                machine,
                environment,
                benchmark,
                size,
            ):
                spec = {**picture.spec, "width": 720, "background": "white"}
                return str(vl_convert.vegalite_to_svg(spec, VEGA_LITE))
    raise util.UserError(f"There is no history of {benchmark} in size {size} on {machine}, {environment}.")


def _swap(new: Path, html_dir: Path) -> None:
    """Puts `new` in the place of `html_dir`; the old site goes with the scratch folder."""
    new.parent.chmod(0o755)
    with contextlib.suppress(FileNotFoundError):
        os.rename(html_dir, new.parent / "old")
    os.rename(new, html_dir)


def _lanes(results_dir: Path, axis: Axis) -> Iterator[Lane]:
    for name in machines_in(results_dir):
        machine = record_of(results_dir / name)
        by_environment: dict[str, list[Launch]] = defaultdict(list)
        for launch in read_on_axis(results_dir, name, axis):
            by_environment[launch.environment].append(launch)
        lanes = [
            _lane(machine, environment, launches, axis) for environment, launches in sorted(by_environment.items())
        ]
        yield from sorted(lanes, key=lambda lane: -axis.position(lane.new))


def _lane(machine: dict[str, Any], environment: str, launches: list[Launch], axis: Axis) -> Lane:
    measured = sorted({launch.release for launch in launches}, key=axis.position)
    new = measured[-1]
    old = measured[-2] if len(measured) > 1 else new
    changes = [change for change in compare(launches, old, new) if change.reason != NOT_MEASURED] if old != new else []
    tally: dict[str, int] = defaultdict(int)
    for change in changes:
        tally[change.verdict.kind] += 1
    id = f"{machine['machine']}-{environment}".replace(".", "-")
    return Lane(
        id=id,
        machine=machine,
        environment=environment,
        old=old,
        new=new,
        changes=changes,
        tally=sorted(tally.items(), key=lambda item: RANK[item[0]]),
        pictures=_pictures(id, launches, measured),
    )


def _pictures(lane: str, launches: list[Launch], measured: list[str]) -> list[Picture]:
    groups: dict[tuple[str, tuple[str, ...]], dict[Series, dict[str, list[Any]]]] = defaultdict(dict)
    for series, releases in history(launches).items():
        groups[series.benchmark, series.parameters[1:]][series] = releases
    pictures = [_picture(lane, *group, members, measured) for group, members in groups.items()]
    return sorted(filter(None, pictures), key=_place)


def _place(picture: Picture) -> tuple[str, int, str, int, str]:
    """Where a picture stands: by question, the longest history first, time and peak memory before what explains them."""
    question, _, metric = picture.benchmark.rpartition(".")
    first = ("track_time", "track_peak_memory")
    rank = first.index(metric) if metric in first else len(first)
    return question, -len(picture.releases), picture.size, rank, metric


def _picture(
    lane: str,
    benchmark: str,
    rest: tuple[str, ...],
    members: dict[Series, dict[str, list[Any]]],
    measured: list[str],
) -> Picture | None:
    points, rows = [], []
    for series, releases in members.items():
        variant = "".join(series.parameters[:1]).strip("'")
        cells: dict[str, tuple[str, str]] = {}
        for release in measured:
            pairs = releases.get(release, [])
            numbers = [case.number for _, case in pairs if case.number is not None]
            if numbers:
                middle = statistics.median(numbers)
                cells[release] = (human(middle, series.unit), "")
                points.append(
                    {
                        "release": release,
                        "variant": variant,
                        "median": middle,
                        "low": min(numbers),
                        "high": max(numbers),
                        "launches": len(numbers),
                        "shown": human(middle, series.unit),
                    }
                )
            else:
                case = pairs[-1][1] if pairs else None
                cells[release] = ("", (case.failed or case.unavailable) if case else "not measured")
        rows.append((variant, cells))
    if not points:
        return None
    example = next(iter(members))
    size = " ".join(part.strip("'") for part in rest)
    metric = example.words.partition(",")[0]
    used = [release for release in measured if any(point["release"] == release for point in points)]
    return Picture(
        id=f"{lane}-{benchmark.rpartition('.')[2]}-{size}".replace(" ", "-").replace(".", "-"),
        title=f"{metric}, size {size}" if size else metric,
        benchmark=benchmark,
        size=size,
        spec=_spec(points, used, example.unit),
        releases=used,
        rows=[(name, [cells[release] for release in used]) for name, cells in rows],
    )


def _spec(points: list[dict[str, Any]], releases: list[str], unit: str) -> dict[str, Any]:
    """A line per variant over the releases, with the range of launches; time on a logarithmic scale, the rest from zero."""
    axis_format = {"seconds": ("~s", "seconds a call"), "bytes": ("~s", "bytes")}.get(unit, ("d", "count"))
    tick_step = altair.Undefined if unit else 1
    scale = altair.Scale(type="log") if unit == "seconds" else altair.Scale(zero=True)
    variants = sorted({str(point["variant"]) for point in points})
    x = altair.X("release:O", sort=releases, title="PyTorch release", axis=altair.Axis(labelAngle=-45))
    legend = altair.Legend(orient="bottom", title=None)
    colour = altair.Color("variant:N", scale=altair.Scale(scheme="tableau10", domain=variants), legend=legend)
    shape = altair.Shape("variant:N", scale=altair.Scale(domain=variants), legend=legend)
    y = altair.Y(
        "median:Q",
        scale=scale,
        title=axis_format[1],
        axis=altair.Axis(format=axis_format[0], tickCount=5, tickMinStep=tick_step),
    )
    tooltip = ["release:O", "variant:N", altair.Tooltip("shown:N", title="median"), "launches:Q"]
    base = altair.Chart(altair.InlineData(values=points)).encode(x=x, color=colour)
    ranges = base.mark_rule().encode(y=altair.Y("low:Q", scale=scale), y2="high:Q")
    lines = base.mark_line(opacity=0.7).encode(y=y)
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(y=y, shape=shape, tooltip=tooltip)
    chart = altair.layer(ranges, lines, dots).properties(width="container", height=280)
    return dict(chart.configure_view(strokeOpacity=0).to_dict())


def _embedded(data: Any) -> Markup:
    """JSON for a script element: no character of it can end the element."""
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e"))
