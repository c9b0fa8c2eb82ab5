"""A lane of the site in one piece, read from its files in data/; and what axe says of a page."""

import json
from pathlib import Path
from typing import Any

import pytest

from torch_history.analysis.series import History, Series
from torch_history.site import pairs
from torch_history.site.data import Lane
from torch_history.store.launches import Case, Launch


def read_lane(data: Path, lane: str) -> dict[str, Any]:
    files = [json.loads((data / f"{name}.json").read_text(encoding="utf-8")) for name in (lane, f"{lane}-numbers")]
    return files[0] | files[1]


def serious(page: Any) -> list[tuple[str, list[str]]]:
    """What axe finds on a page that is serious: the rule, and the first elements that break it."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page, options={"preload": False}).response["violations"]
    return [
        (violation["id"], [node["html"][:200] for node in violation["nodes"]][:3])
        for violation in found
        if violation["impact"] in ("serious", "critical")
    ]


def history_of(lane: dict[str, Any]) -> History:
    """The launches of a lane in one piece."""
    tags = [release["tag"] for release in lane["releases"]]
    found = History()
    for row in lane["series"]:
        series = Series(lane["environment"], row["benchmark"], tuple(row["parameters"]))
        of: dict[str, list[tuple[Launch, Case]]] = {}
        for i, (at, block) in enumerate(lane["patterns"][row["pattern"]]):
            session, turn, *node = lane["rounds"][block]
            facts = {"conditions": {"disturbed": "a neighbour"}} if i in row["disturbed"] else {}
            launch = _launch(series, tags[at], session, turn, facts | ({"node": {"node": node[0]}} if node else {}))
            of.setdefault(tags[at], []).append((launch, Case(series.parameters, value=row["numbers"][i])))
        for at, reason, failed in row["missing"]:
            why = {("unavailable", "failed", "unmeasured")[failed]: lane["reasons"][reason]}
            facts = {"device": lane["machine"].get("device", "cpu")}
            of[tags[at]] = [(_launch(series, tags[at], "", 0, facts), Case(series.parameters, **why))]
        found[series] = of
    return found


def _launch(series: Series, tag: str, session: str, turn: int, facts: dict[str, Any]) -> Launch:
    return Launch(session, turn, "", tag, series.environment, series.benchmark, "1", "", 0.0, facts, ())


def lane_of(lane: dict[str, Any]) -> Lane:
    """A lane in one piece as the program has it."""
    facts = {release["tag"]: release["facts"] for release in lane["releases"]}
    found = history_of(lane)
    every = pairs.EveryPair(found, [*facts])
    return Lane(lane["machine"], lane["environment"], found, [*facts], facts, [], [], every)
