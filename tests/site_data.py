"""A lane of the site in one piece, read from its files in data/ and written into them; and what axe says of a page."""

import json
from pathlib import Path
from typing import Any

import pytest

from torch_history.analysis.causes import Known
from torch_history.analysis.series import History, Series
from torch_history.site import pairs
from torch_history.site.data import Lane
from torch_history.site.told import told as told_of
from torch_history.store.launches import Case, Launch

MEASURED = ("releases", "rounds", "reasons", "patterns", "limits", "series")


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
    known = [Known(**{name: one[name] for name in Known._fields if name in one}) for one in lane.get("evidence", [])]
    known = [one._replace(parameters=tuple(one.parameters)) for one in known]
    missed = [
        (Series(lane["environment"], key[0], tuple(key[1:])), old, new) for key, old, new in lane.get("unconfirmed", [])
    ]
    found = history_of(lane)
    every = pairs.EveryPair(found, [*facts])
    return Lane(lane["machine"], lane["environment"], found, [*facts], facts, known, missed, every)


def write_lane(data: Path, lane: dict[str, Any]) -> None:
    """The scripts that pages load, of one lane; nothing is compressed."""
    of = lane_of(lane)
    rows = [{**row, "key": [row["benchmark"], *row["parameters"]]} for row in lane["series"]]
    about = {name: value for name, value in lane.items() if name not in (*MEASURED, "steps", "claims")}
    about |= {"series": [row["key"] for row in rows], "releases": lane["releases"], "changes": []}
    told = [
        {
            **{"question": claim["question"], "words": claim["words"], "cells": [claim["summary"]] * 3, "lines": []},
            **{"cpu": claim["advice"], "gpu": claim["advice"], "advice": [claim["advice"]] * 2, "bands": [{}, {}, {}]},
        }
        for claim in lane.get("claims", [])
    ]
    columns = ["CPU measured", "CUDA recorded", "CUDA measured"]
    files = {
        "bases": {"columns": columns, "releases": of.releases, "claims": told},
        "advice": {
            claim["question"]: {tag: [claim["advice"]] * 2 for tag in of.releases} for claim in lane.get("claims", [])
        },
        lane["id"]: about,
        f"{lane['id']}-numbers": {**{name: lane.get(name, []) for name in MEASURED}, "series": rows}
        | {"shifts": of.every.shifts},
        f"{lane['id']}-claims": lane.get("claims", []),
        f"{lane['id']}-steps": lane.get("steps", []),
    }
    for name, content in files.items():
        write_script(data, name, content)
    (data / "pairs").mkdir()
    for number, pair in enumerate(of.every.pairs):
        write_script(data / "pairs", "-".join([lane["id"], *pair]), told_of(of, number))
        write_script(data / "pairs", "-".join(pair), {"lanes": []})


def write_script(data: Path, name: str, content: Any) -> None:
    text = json.dumps(content).replace("<", "\\u003c")
    (data / f"{name}.js").write_text(f"torchHistory.receive({json.dumps(name)}, {text});", encoding="utf-8")
