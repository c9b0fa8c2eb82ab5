"""What do the programs that judge detectors share? The committed times, their noise, and other detectors' answers."""

from __future__ import annotations

import itertools
import json
import math
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from asv.step_detect import detect_steps

from torch_history.analysis import verdicts
from torch_history.analysis.compare import choose_machine
from torch_history.analysis.series import History, Series
from torch_history.analysis.steps import SMALLEST
from torch_history.releases.axis import Axis
from torch_history.store.launches import read_launches

ROOT = Path(__file__).resolve().parents[1]


def stored_lanes() -> dict[str, History]:
    """Lane -> its committed history, on the machine with most releases."""
    machine = choose_machine(ROOT / "results", None, "")
    found = verdicts.history(read_launches(ROOT / "results", machine))
    return {
        environment: History((series, of) for series, of in found.items() if series.environment == environment)
        for environment in sorted({series.environment for series in found})
    }


def ordered(history: History, axis: Axis) -> History:
    """The times of a lane, releases in the axis' order."""
    return History(
        (series, {tag: of[tag] for tag in sorted((tag for tag in of if tag in axis), key=axis.position)})
        for series, of in history.items()
        if series.varies
    )


def shown(found: History, series: Series) -> list[float]:
    """The levels that a person sees of a time, in its unit and the order of its releases: medians of launches, cleared of
    what sessions do to all series of its question. Other detectors read these."""
    fit = found.fits[series.environment, series.question]
    return [fit.shown(series, tag) for tag in found[series]]


def left(of: list[tuple[str, int, float]]) -> np.ndarray:
    """What releases and rounds leave of the logarithms of a session."""
    tags, rounds = (sorted({one[i] for one in of}, key=str) for i in (0, 1))
    freedom = len(of) - len(tags) - len(rounds) + 1
    if freedom < 1:
        return np.zeros(0)
    design = np.array(
        [[tag == each for each in tags] + [turn == each for each in rounds] for tag, turn, _ in of], float
    )
    logarithms = np.array([one[2] for one in of])
    fitted = design @ np.linalg.lstsq(design, logarithms, rcond=None)[0]
    return np.asarray((logarithms - fitted) * math.sqrt(len(of) / freedom))


def large(levels: list[float], places: list[int], quiet: bool, least: float = SMALLEST) -> list[int]:
    """Places at which the median of what lies between changes moved by `least` (a share); rises only, unless quiet."""
    ends = [0, *places, len(levels)]
    middles = [statistics.median(levels[one:other]) for one, other in itertools.pairwise(ends)]
    moved = [math.log(new / old) for old, new in itertools.pairwise(middles)]
    return [
        place
        for place, ratio in zip(places, moved, strict=True)
        if (abs(ratio) if quiet else ratio) >= math.log1p(least)
    ]


def asv_places(levels: Sequence[float]) -> list[int]:
    """Places at which asv's own step detection sees a new level."""
    return [place for _, place, *_ in detect_steps(list(levels), [1.0] * len(levels))][:-1]


def elsewhere(python: str, levels: Sequence[Sequence[float]], *names: str) -> list[dict[str, list[list[int]]]]:
    """What tools/other_detectors.py says of each series, run by `python`; only the detectors `names`, if any are named."""
    script = str(ROOT / "tools" / "other_detectors.py")
    lines = "".join(json.dumps(of) + "\n" for of in levels)
    command = [python, script, *names]
    answer = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [json.loads(line) for line in answer.splitlines()]
