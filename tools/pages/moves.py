"""contract/moves.json: what the suite measured of a move from each release to the newest. `torch-history requirements` tells
it in a second, and where it is installed without results."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch_history.analysis import answer, compare
from torch_history.analysis.causes import evidence, unconfirmed
from torch_history.analysis.series import History
from torch_history.releases.axis import Axis
from torch_history.store.launches import read_environment


def document(results: Path, machine: str, lane: str, found: History, axis: Axis) -> str:
    """`from to` -> `answer.in_short` of that move, for all releases of a lane of `machine`."""
    tags = sorted({tag for releases in found.values() for tag in releases}, key=axis.position)
    facts: Mapping[str, Mapping[str, Any]] = {tag: read_environment(results, machine, tag, lane) for tag in tags}
    known, missed, told = evidence(results, machine), unconfirmed(results, machine, found), {}
    for old in tags[:-1]:
        said = compare.compared(machine, lane, old, tags[-1], found, facts, "cpu", known, "1")
        not_again = {series for series, *pair in missed if pair == [old, tags[-1]]}
        told[f"{old} {tags[-1]}"] = answer.in_short(replace(said, unconfirmed=not_again))
    return json.dumps(told, indent=1, ensure_ascii=False) + "\n"
