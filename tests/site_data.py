"""A lane of the site in one piece, read from its files in data/ and written into them; and what axe says of a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from torch_history.analysis.causes import Known
from torch_history.analysis.series import History, Series
from torch_history.site import pairs
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
    return Launch(
        session=session,
        round=turn,
        launch="",
        release=tag,
        environment=series.environment,
        benchmark=series.benchmark,
        version="1",
        started_at="",
        duration=0.0,
        facts=facts,
        cases=(),
    )


def in_files(lane: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A lane in one piece as what is about all of it, its numbers, and its pairs."""
    rows = [{**row, "key": [row["benchmark"], *row["parameters"]]} for row in lane["series"]]
    known = [Known(**{**one, "parameters": tuple(one["parameters"])}) for one in lane.get("evidence", [])]
    missed = [
        (Series(lane["environment"], key[0], tuple(key[1:])), old, new) for key, old, new in lane.get("unconfirmed", [])
    ]
    facts = {release["tag"]: release["facts"] for release in lane["releases"]}
    about = {name: value for name, value in lane.items() if name not in (*MEASURED, "steps", "claims")}
    numbers = {**{name: lane.get(name, []) for name in MEASURED}, "series": rows}
    return about, numbers, pairs.packed(pairs.EveryPair(history_of(lane), [*facts]), facts, known, missed)[0]


def write_lane(data: Path, lane: dict[str, Any]) -> None:
    """The scripts that pages load, of one lane; nothing is compressed."""
    about, numbers, of_pairs = in_files(lane)
    claims = lane.get("claims", [])
    told = [
        {**claim, "cells": [claim["summary"]] * 3, "cpu": claim["advice"], "gpu": claim["advice"]} for claim in claims
    ]
    files = {
        "bases": {"columns": ["CPU measured", "CUDA recorded", "CUDA measured"], "claims": told},
        lane["id"]: about,
        f"{lane['id']}-numbers": numbers,
        f"{lane['id']}-pairs": of_pairs,
        f"{lane['id']}-claims": claims,
        f"{lane['id']}-steps": lane.get("steps", []),
    }
    for name, content in files.items():
        write_script(data, name, content)


def write_script(data: Path, name: str, content: Any) -> None:
    text = json.dumps(content).replace("<", "\\u003c")
    (data / f"{name}.js").write_text(f"torchHistory.receive({json.dumps(name)}, {text});", encoding="utf-8")
