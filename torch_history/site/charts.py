"""How is a history drawn for a document? By a Vega-Lite spec that Altair makes: a line per variant over the releases of one
lane. The site's pages draw their own (chart.js)."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair
import vl_convert

from ..errors import UserError
from ..releases.axis import Axis
from .data import PUBLISHED, Lane, lanes

VEGA_LITE = "6.4"

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#3d9ad1", "#e69f00", "#4d4d4d", "#a89600")
"""Of variants: Okabe and Ito (2008), which colour-blind readers tell apart; its sky blue and yellow are darker, to be seen
on white, and its black is grey. The site's style sheet has these too, and lighter ones for the dark."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
"""Beside its colour each variant has a shape."""

SCALES = ("log", "linear")

DATA = "points"
"""What a spec draws: a row for each variant on each release."""

TICK = (
    "unit === 'seconds' ? replace(format(datum.value, '~s'), regexp('([a-zµ]?)$'), '$1s') : "
    "unit === 'bytes' ? replace(format(datum.value, '~s'), regexp('([a-zA-Zµ]?)$'), ' $1B') : "
    "unit === 'count' && datum.value % 1 ? '' : format(datum.value, ',~r')"
)
"""A number at the y axis: `10ms`, `240 MB`, `27,000`; there is no half of a count."""

ROOM = "domain('y')[1] > 10 * domain('y')[0] && !test(regexp('^[1235]'), format(datum.value, '~e')) ? '' : "
"""On a logarithmic axis of more than a factor of ten only 1, 2, 3 and 5 are said."""


def history_spec(y: str, variants: Sequence[str] = (), title: str | None = None) -> dict[str, Any]:
    """A line per variant over releases in their order, `y` one of SCALES.

    `variants` get a legend; `title` is that of the y axis. Parameters: `unit` of the numbers (seconds, bytes, ratio, count)
    and `tags` of the lane's releases.
    """
    across = altair.X(
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
        title="PyTorch release" if title else None,
    )
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

    legend = altair.Legend(orient="bottom", title=None, symbolOpacity=1)

    def looks(values: Sequence[str]) -> dict[str, Any]:
        return {"scale": altair.Scale(domain=variants, range=_repeated(values, variants)), "legend": legend}

    points = altair.Chart(altair.NamedData(name=DATA)).encode(
        x=across, color=altair.Color("variant:N", **looks(PALETTE)), detail=altair.Detail("variant:N")
    )
    layers = (
        points.mark_area(opacity=0.18).encode(y=up("low"), y2="high:Q"),
        points.mark_line(opacity=0.8, strokeWidth=2).encode(y=up("value")),
        points.mark_point(filled=True, size=70, opacity=1).encode(
            y=up("value"), shape=altair.Shape("variant:N", **looks(SHAPES))
        ),
    )
    chart = altair.layer(*layers).properties(width="container", height=300).configure_view(strokeOpacity=0)
    return {
        **dict(chart.to_dict()),
        "params": [{"name": "unit", "value": "count"}, {"name": "tags", "value": []}],
        "datasets": {DATA: []},
    }


def _repeated(values: Sequence[str], names: Sequence[str]) -> list[str]:
    return [value for value, _ in zip(itertools.cycle(values), names, strict=False)]


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
            fit = lane.found.fits.get((series.environment, series.question)) if series.varies else None
            if numbers and fit:
                numbers = fit.cleared(series, tag).tolist()
            value = statistics.median(numbers) if numbers else None
            low, high = (min(numbers), max(numbers)) if numbers else (None, None)
            points.append(
                {
                    "position": lane.releases.index(tag),
                    "release": tag,
                    "variant": variant,
                    "value": value,
                    "low": low,
                    "high": high,
                }
            )
    return points


def _svg(points: Sequence[dict[str, Any]], lane: Lane, benchmark: str) -> str:
    (unit,) = {series.unit for series in lane.found if series.benchmark == benchmark}
    title = {"seconds": "seconds a call", "bytes": "bytes", "ratio": "ratio"}.get(unit, "count")
    variants = list(dict.fromkeys(point["variant"] for point in points if point["value"] is not None))
    shown = [point for point in points if point["variant"] in variants]
    spec = history_spec("log" if unit == "seconds" else "linear", variants, title)
    values = {"unit": unit if unit in ("seconds", "bytes", "ratio") else "count", "tags": lane.releases}
    spec["params"] = [{"name": name, "value": value} for name, value in values.items()]
    spec["datasets"][DATA] = shown
    return str(vl_convert.vegalite_to_svg({**spec, "width": 720, "background": "white"}, VEGA_LITE))
