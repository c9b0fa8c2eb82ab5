"""A lane of the site in one piece, read from its files in data/; and what axe says of a page."""

import json
from pathlib import Path
from typing import Any

import pytest


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
