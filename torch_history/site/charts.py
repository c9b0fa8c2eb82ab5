"""How is a history drawn? As Vega-Lite specs that Altair makes: a line per variant over the releases of one lane.

The data are named and empty: a page's script fills in the numbers and a few parameters, and chooses one of four specs.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair
import vl_convert
from scipy import special

from ..analysis.verdicts import human
from ..errors import UserError
from ..releases.axis import Axis
from .data import PUBLISHED, Lane, lanes

VEGA_LITE = "6.4"

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#3d9ad1", "#e69f00", "#4d4d4d", "#a89600")
"""Of variants: Okabe and Ito (2008), which colour-blind readers tell apart; its sky blue and yellow are darker, to be seen
on white, and its black is grey. The site's style sheet has these too, and lighter ones for the dark."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
"""Beside its colour each variant has a shape."""

AXES = ("order", "date")
SCALES = ("log", "linear")

DATA = ("points", "marks", "launches", "steps", "chosen")
"""What a spec draws: lines and bands join `points`, of which `marks` can be pointed at; small dots are single `launches`;
rules stand at `steps`, with a label, and at the release that is `chosen`."""

CONFIDENCE = 0.95
"""Of the interval of a release's launches: Student's, of the mean of their logarithms."""

ENOUGH = 3
"""Launches from which there is such an interval; of fewer, the range is shown."""

TABULATED = 100
"""Numbers of launches that a page has a quantile for; more have the last one, which is 1.3 % too wide at most."""

TICK = (
    "unit === 'seconds' ? replace(format(datum.value, '~s'), regexp('([a-zµ]?)$'), '$1s') : "
    "unit === 'bytes' ? replace(format(datum.value, '~s'), regexp('([a-zA-Zµ]?)$'), ' $1B') : "
    "unit === 'relative' ? format(datum.value, ',~r') + '×' : "
    "unit === 'count' && datum.value % 1 ? '' : format(datum.value, ',~r')"
)
"""A number at the y axis: `10ms`, `240 MB`, `1.5×`, `27,000`; there is no half of a count."""

ROOM = "domain('y')[1] > 10 * domain('y')[0] && !test(regexp('^[1235]'), format(datum.value, '~e')) ? '' : "
"""On a logarithmic axis of more than a factor of ten only 1, 2, 3 and 5 are said."""

TOLD = {
    "release": "release",
    "day": "date",
    "variant": "variant",
    "number": "median",
    "interval": "interval",
    "launches": "launches",
}
"""Fields of a point and what they are called where the reader points at it."""


def history_spec(x: str, y: str, variants: Sequence[str] = (), title: str | None = None) -> dict[str, Any]:
    """A line per variant over releases, `x` one of AXES and `y` one of SCALES.

    `variants` get a legend, and their colours by it; without them each row says its colour and shape. `title` is that of
    the y axis. Parameters: `unit` of the numbers (seconds, bytes, ratio, count, relative), `tags` of the lane's releases,
    and `dot`, the size of a point.
    """
    across = _across(x, bool(title))
    scale = altair.Scale(type="log", nice=False, padding=14) if y == "log" else altair.Scale(zero=True, nice=5)
    axis = altair.Axis(
        labelExpr=(ROOM if y == "log" else "") + TICK,
        tickCount=5,
        labelOverlap="greedy",
        labelSeparation=4,
        labelFontSize=12,
        labelLimit=90,
    )

    def up(field: str) -> altair.Y:
        return altair.Y(f"{field}:Q", scale=scale, axis=axis, title=title)

    colour, shape = _looks(variants)
    said = [altair.Tooltip(f"{field}:N", title=words) for field, words in TOLD.items()]

    def rows(name: str) -> altair.Chart:
        return altair.Chart(altair.NamedData(name=name)).encode(x=across)

    points = rows("points").encode(color=colour, detail=altair.Detail("variant:N"))
    layers = (
        rows("chosen").mark_rule(strokeWidth=18, opacity=0.22),
        points.mark_area(opacity=0.18).encode(y=up("low"), y2="high:Q"),
        points.mark_line(opacity=0.8, strokeWidth=2).encode(y=up("value")),
        rows("launches").mark_circle(size=16, opacity=0.45).encode(y=up("value"), color=colour),
        rows("marks")
        .mark_point(filled=True, size=altair.ExprRef("dot"), opacity=1)
        .encode(y=up("value"), color=colour, shape=shape, tooltip=said),
        rows("steps").mark_rule(strokeDash=[3, 3]).encode(tooltip=[altair.Tooltip("sentence:N")]),
        rows("steps").mark_text(baseline="bottom", dy=-3, fontSize=12).encode(y=altair.value(0), text="label:N"),
    )
    chart = altair.layer(*layers).properties(width="container", height=300).configure_view(strokeOpacity=0)
    spec = dict(chart.to_dict())
    return {
        **spec,
        "params": [
            {"name": "unit", "value": "count"},
            {"name": "tags", "value": []},
            {"name": "dot", "value": 70},
        ],
        "datasets": {name: [] for name in DATA},
    }


def _across(x: str, titled: bool) -> altair.X:
    """The axis of releases: by their dates, or evenly spaced in their order."""
    if x == "order":
        return altair.X(
            "position:O",
            scale=altair.Scale(type="point", padding=0.5),
            axis=altair.Axis(
                labelExpr="tags[datum.value]",
                labelAngle=-45,
                labelOverlap="greedy",
                labelSeparation=-14,
                labelFontSize=12,
                ticks=False,
                labelPadding=5,
                grid=False,
            ),
            title="PyTorch release" if titled else None,
        )
    return altair.X(
        "date:T",
        scale=altair.Scale(type="utc", padding=12),
        axis=altair.Axis(labelOverlap=True, labelFontSize=12, grid=False),
        title="release date" if titled else None,
    )


def _looks(variants: Sequence[str]) -> tuple[altair.Color, altair.Shape]:
    """Colour and shape of a point: with a legend for `variants`, or as each row says."""
    if not variants:
        return altair.Color("colour:N", scale=None, legend=None), altair.Shape("shape:N", scale=None, legend=None)
    legend = altair.Legend(orient="bottom", title=None, symbolOpacity=1)

    def scale(values: Sequence[str]) -> altair.Scale:
        return altair.Scale(domain=variants, range=_repeated(values, variants))

    colour = altair.Color("variant:N", scale=scale(PALETTE), legend=legend)
    return colour, altair.Shape("variant:N", scale=scale(SHAPES), legend=legend)


def _repeated(values: Sequence[str], names: Sequence[str]) -> list[str]:
    return [value for value, _ in zip(itertools.cycle(values), names, strict=False)]


def specs() -> dict[str, dict[str, Any]]:
    """What the site's scripts draw with: a spec for each of AXES and SCALES, and how an interval is made of launches."""
    half = [round(_quantile(launches), 5) for launches in range(ENOUGH, TABULATED + 1)]
    return {
        "history": {f"{x} {y}": history_spec(x, y) for x in AXES for y in SCALES},
        "intervals": {"confidence": CONFIDENCE, "enough": ENOUGH, "quantiles": half},
        "marks": {"shapes": list(SHAPES)},
    }


def _quantile(launches: int) -> float:
    return float(special.stdtrit(launches - 1, (1 + CONFIDENCE) / 2))


def interval(numbers: Sequence[float]) -> tuple[float, float]:
    """What is shown around a release's median: Student's interval of the mean logarithm from ENOUGH launches on, else their
    range, which it also is where they are all the same or one is no positive number."""
    low, high = min(numbers), max(numbers)
    if len(numbers) < ENOUGH or low <= 0 or low == high:
        return low, high
    logs = [math.log(number) for number in numbers]
    half = _quantile(len(logs)) * statistics.stdev(logs) / math.sqrt(len(logs))
    middle = statistics.fmean(logs)
    return math.exp(middle - half), math.exp(middle + half)


def draw_history(
    results: Path, env: Path, axis: Axis, machine: str, environment: str, benchmark: str, size: str
) -> str:
    """The history of one benchmark over its variants as SVG. Raises UserError where there is none."""
    for lane in lanes(results, axis, env / PUBLISHED):
        points = _points(lane, benchmark, size) if (lane.name, lane.environment) == (machine, environment) else []
        if points:
            return _svg(points, lane, benchmark)
    raise UserError(f"There is no history of {benchmark} in size {size} on {machine}, {environment}.")


def _points(lane: Lane, benchmark: str, size: str) -> list[dict[str, Any]]:
    points = []
    for series, releases in lane.found.items():
        variant, *rest = (parameter.strip("'") for parameter in series.parameters or ("",))
        if (series.benchmark, " ".join(rest)) != (benchmark, size):
            continue
        for tag, pairs in releases.items():
            numbers = [case.number for _, case in pairs if case.number is not None]
            value = statistics.median(numbers) if numbers else None
            low, high = interval(numbers) if numbers else (None, None)
            points.append(
                {
                    "position": lane.releases.index(tag),
                    "release": tag,
                    "variant": variant,
                    "value": value,
                    "low": low,
                    "high": high,
                    "number": human(value, series.unit),
                    "launches": len(numbers),
                }
            )
    return points


def _svg(points: Sequence[dict[str, Any]], lane: Lane, benchmark: str) -> str:
    (unit,) = {series.unit for series in lane.found if series.benchmark == benchmark}
    title = {"seconds": "seconds a call", "bytes": "bytes", "ratio": "ratio"}.get(unit, "count")
    variants = list(dict.fromkeys(point["variant"] for point in points if point["value"] is not None))
    shown = [point for point in points if point["variant"] in variants]
    spec = history_spec("order", "log" if unit == "seconds" else "linear", variants, title)
    values = {"unit": unit if unit in ("seconds", "bytes", "ratio") else "count", "tags": lane.releases, "dot": 70}
    spec["params"] = [{"name": name, "value": value} for name, value in values.items()]
    spec["datasets"] |= {"points": shown, "marks": shown}
    return str(vl_convert.vegalite_to_svg({**spec, "width": 720, "background": "white"}, VEGA_LITE))
