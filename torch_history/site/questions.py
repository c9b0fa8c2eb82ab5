"""How did each question go over all releases? Its small chart: a few lines, and the answers by device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..analysis import bases
from ..analysis.claims import DECIDED
from ..analysis.series import Series
from .data import Lane
from .typical import rounded


def bands(question: str, lanes: Iterable[Lane]) -> list[dict[str, str]]:
    """Of each of `bases.BASES`, release -> the word of its answer, of the first of `lanes` that decides it."""
    found: dict[str, dict[str, str]] = {device: {} for device in bases.BASES}
    for lane in lanes:
        of = found.setdefault(lane.device, {})
        for tag, word in lane.words_of.get(question, ()):
            if of.get(tag) not in DECIDED:
                of[tag] = word
    return [found[device] for device in bases.BASES]


def lines(lane: Lane, claim: Mapping[str, Any]) -> dict[str, Any] | None:
    """The picture of a claim as `lane_data` has it, with the numbers of each variant on each release of the lane, None where
    there is none; None where the lane has nothing to draw."""
    picture = claim["picture"]
    if not picture:
        return None
    of = {one.parameters: one for one in lane.found if one.benchmark == picture["benchmark"]}
    series = {variant: of[repr(variant), repr(picture["size"])] for variant in picture["variants"]}
    known = next(iter(series.values()))
    numbers = {variant: [_number(lane, one, tag) for tag in lane.releases] for variant, one in series.items()}
    about = {"lane": lane.id, "releases": lane.releases, "metric": known.metric, "unit": known.unit}
    return about | picture | {"numbers": numbers}


def _number(lane: Lane, series: Series, tag: str) -> float | None:
    """A time less what its sessions do to the whole question, the newest of exact numbers; None where there is none."""
    numbers = [case.number for _, case in lane.found[series].get(tag, ()) if case.number is not None]
    if not numbers:
        return None
    fit = lane.found.fits.get((series.environment, series.question)) if series.varies else None
    return rounded(fit.shown(series, tag)) if fit else numbers[-1]
