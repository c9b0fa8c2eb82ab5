"""A lane of the site in one piece, read from its files in data/ and written into them; and what axe says of a page."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from torch_history.analysis.causes import Known
from torch_history.analysis.series import History, Series
from torch_history.site import pairs
from torch_history.site.data import PART
from torch_history.store.launches import Case, Launch

OF_A_PART = ("releases", "rounds", "reasons", "patterns", "limits")


def read_lane(data: Path, lane: str) -> dict[str, Any]:
    about = json.loads((data / f"{lane}.json").read_text(encoding="utf-8"))
    return joined(about, (json.loads((data / f"{part}.json").read_text(encoding="utf-8")) for part in about["parts"]))


def joined(about: dict[str, Any], parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What app.js makes of a lane's files, here with every launch by its names until the end."""
    releases: list[dict[str, Any]] = []
    rounds: list[Any] = []
    reasons: list[str] = []
    launches: dict[str, list[list[int]]] = {}
    rows: dict[str, dict[str, Any]] = {}
    answers: dict[str, list[Any]] = {claim["question"]: [] for claim in about["claims"]}
    limits: dict[tuple[str, str], dict[str, Any]] = {}
    for part in parts:
        first, reason = len(releases), len(reasons)
        releases += part["releases"]
        reasons += part["reasons"]
        rounds += [block for block in part["rounds"] if block not in rounds]
        for question in answers:
            answers[question] += part["answers"].get(question, [])
        for limit in part["limits"]:
            whole = limits.setdefault((limit["benchmark"], limit["size"]), {**limit, "numbers": []})
            whole["numbers"] += [None] * (first - len(whole["numbers"])) + limit["numbers"]
        for row in part["series"]:
            key = json.dumps(row["key"])
            known = rows.setdefault(key, {**row, "numbers": [], "disturbed": [], "missing": []})
            known["disturbed"] += [at + len(known["numbers"]) for at in row["disturbed"]]
            known["numbers"] += row["numbers"]
            known["missing"] += [[at + first, why + reason, failed] for at, why, failed in row["missing"]]
            launches.setdefault(key, []).extend(
                [at + first, rounds.index(part["rounds"][block])] for at, block in part["patterns"][row["pattern"]]
            )
    patterns: list[list[list[int]]] = []
    series = []
    for key in map(json.dumps, about["series"]):
        if launches[key] not in patterns:
            patterns.append(launches[key])
        series.append({**rows[key], "pattern": patterns.index(launches[key])})
    for limit in limits.values():
        limit["numbers"] += [None] * (len(releases) - len(limit["numbers"]))
    return {
        **about,
        "releases": releases,
        "rounds": rounds,
        "reasons": reasons,
        "patterns": patterns,
        "series": series,
        "limits": list(limits.values()),
        "claims": [{**claim, "answers": answers[claim["question"]]} for claim in about["claims"]],
    }


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


Files = tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]


def in_files(lane: dict[str, Any]) -> Files:
    """A lane in one piece as what is about all of it, its parts, and the pairs of each; nothing is packed."""
    rows = [{**row, "key": [row["benchmark"], *row["parameters"]]} for row in lane["series"]]
    firsts = range(0, len(lane["releases"]), PART)
    about = {
        **{name: value for name, value in lane.items() if name not in (*OF_A_PART, "steps", "claims")},
        "series": [row["key"] for row in rows],
        "benchmarks": sorted({row["benchmark"] for row in rows}),
        "parts": [f"{lane['id']}.{number}" for number in range(len(firsts))],
    }
    known = [Known(**{**one, "parameters": tuple(one["parameters"])}) for one in lane.get("evidence", [])]
    missed = [
        (Series(lane["environment"], key[0], tuple(key[1:])), old, new) for key, old, new in lane.get("unconfirmed", [])
    ]
    facts = {release["tag"]: release["facts"] for release in lane["releases"]}
    tags, parts, of_pairs = list(facts), [], []
    for first in firsts:
        every = pairs.EveryPair(
            history_of(_slice(lane, max(first - 1, 0), first + PART)),
            tags[max(first - 1, 0) : first],
            tags[first : first + PART],
        )
        part = _slice({**lane, "series": rows}, first, first + PART)
        of_part = {name: part.get(name, []) for name in (*OF_A_PART, "series")}
        parts.append({**of_part, "series": [row for row in part["series"] if row["numbers"] or row["missing"]]})
        of_pairs.append(pairs.packed(every, facts, known, missed)[0])
    return about, parts, of_pairs


def _slice(lane: dict[str, Any], first: int, last: int) -> dict[str, Any]:
    """Some of its releases, which are counted from the first of them."""
    series, patterns = [], []
    for row in lane["series"]:
        whole = lane["patterns"][row["pattern"]]
        used = [i for i, (at, _) in enumerate(whole) if first <= at < last]
        patterns.append([[whole[i][0] - first, whole[i][1]] for i in used])
        series.append(
            {
                **row,
                "pattern": len(patterns) - 1,
                "numbers": [row["numbers"][i] for i in used],
                "disturbed": [place for place, i in enumerate(used) if i in row["disturbed"]],
                "missing": [[at - first, *rest] for at, *rest in row["missing"] if first <= at < last],
            }
        )
    limits = [{**limit, "numbers": limit["numbers"][first:last]} for limit in lane.get("limits", [])]
    return {**lane, "releases": lane["releases"][first:last], "series": series, "patterns": patterns, "limits": limits}


def write_lane(data: Path, lane: dict[str, Any]) -> None:
    """The scripts that pages load, of one lane in one part; nothing is packed."""
    about, parts, of_pairs = in_files(lane)
    claims = lane.get("claims", [])
    steps: dict[str, list[Any]] = {benchmark: [] for benchmark in about["benchmarks"]}
    for place, step in enumerate(lane.get("steps", [])):
        steps[lane["series"][step["series"]]["benchmark"]].append({**step, "place": place})
    told = [
        {**claim, "cells": [claim["summary"]] * 3, "cpu": claim["advice"], "gpu": claim["advice"]} for claim in claims
    ]
    files = {
        "bases": {"columns": ["CPU measured", "CUDA recorded", "CUDA measured"], "claims": told},
        lane["id"]: about,
        **dict(zip(about["parts"], parts, strict=True)),
        **{f"{name}-pairs": of for name, of in zip(about["parts"], of_pairs, strict=True)},
        f"{lane['id']}-claims": [{key: claim[key] for key in claim if key != "answers"} for claim in claims],
        **{f"{name}-answers": {claim["question"]: [] for claim in claims} for name in about["parts"]},
        f"{about['parts'][0]}-answers": {claim["question"]: claim["answers"] for claim in claims},
        **{f"{lane['id']}-steps.{i}": steps[benchmark] for i, benchmark in enumerate(about["benchmarks"])},
    }
    for name, content in files.items():
        text = json.dumps(content).replace("<", "\\u003c")
        (data / f"{name}.js").write_text(f"torchHistory.receive({json.dumps(name)}, {text});", encoding="utf-8")
