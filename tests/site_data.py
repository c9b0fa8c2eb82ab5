"""A lane of the site in one piece, read from its files in data/ and written into them; and what axe says of a page."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

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


def write_lane(data: Path, lane: dict[str, Any]) -> None:
    """The scripts that pages load, of one lane in one part; nothing is packed."""
    series = [{**row, "key": [row["benchmark"], *row["parameters"]]} for row in lane["series"]]
    part = {
        **{name: lane.get(name, []) for name in OF_A_PART},
        "series": series,
    }
    benchmarks = sorted({row["benchmark"] for row in series})
    about = {
        **{name: value for name, value in lane.items() if name not in (*OF_A_PART, "steps", "claims")},
        "series": [row["key"] for row in series],
        "benchmarks": benchmarks,
        "parts": [f"{lane['id']}.0"],
    }
    claims = lane.get("claims", [])
    steps: dict[str, list[Any]] = {benchmark: [] for benchmark in benchmarks}
    for place, step in enumerate(lane.get("steps", [])):
        steps[series[step["series"]]["benchmark"]].append({**step, "place": place})
    told = [
        {**claim, "cells": [claim["summary"]] * 3, "cpu": claim["advice"], "gpu": claim["advice"]} for claim in claims
    ]
    files = {
        "bases": {"columns": ["CPU measured", "CUDA recorded", "CUDA measured"], "claims": told},
        lane["id"]: about,
        about["parts"][0]: part,
        f"{lane['id']}-claims": [{key: claim[key] for key in claim if key != "answers"} for claim in claims],
        f"{about['parts'][0]}-answers": {claim["question"]: claim["answers"] for claim in claims},
        **{f"{lane['id']}-steps.{i}": steps[benchmark] for i, benchmark in enumerate(benchmarks)},
    }
    for name, content in files.items():
        text = json.dumps(content).replace("<", "\\u003c")
        (data / f"{name}.js").write_text(f"torchHistory.receive({json.dumps(name)}, {text});", encoding="utf-8")
