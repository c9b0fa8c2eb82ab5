"""How did each question go over all releases? Its small chart: a few lines, and what is quickest."""

from collections.abc import Iterable, Mapping
from typing import Any

from ..analysis.claims import CLAIMS
from ..analysis.labels import labels
from ..analysis.series import Series
from .data import Lane
from .rivals import sentence
from .typical import rounded


def quickest(question: str, lanes: Iterable[Lane]) -> str:
    """What is quicker than the variant that the advice praises, in a sentence, on the first of `lanes` where one is; empty
    where there is none. Findings say the same."""
    than = CLAIMS[question].rivals
    if than is None:
        return ""
    for lane in lanes:
        tag = lane.releases[-1]
        timed = (one for one in lane.rivals[tag] if (one.question, one.metric) == (question, "time"))
        of = [one for one in timed if one.parameters[0] == repr(than.praises) and than.size in one.parameters[1]]
        if any(lane.rivals[tag][one] for one in of):
            return sentence(of, lane.rivals[tag], tag, labels()[question]["variants"][than.praises])
    return ""


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
