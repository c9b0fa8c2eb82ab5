"""asv's own result files, which stand beside the launches: can asv go on with this one?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from asv._stats import get_weight
from asv.results import Results, get_filename

from .files import read_bytes
from .launches import LEAST, MOST_COUNTED


def load_asvs(path: Path) -> Results:
    """asv's own results in `path`. Raises ValueError where asv would stumble over them, or they belong elsewhere."""
    read_bytes(path)
    try:
        found = Results.load(str(path), machine_name=path.parent.name)
        hash((found.commit_hash, found.env_name, *found.params.values(), *found.env_vars.values()))
        for name in found.get_all_result_keys():
            params = found.get_result_params(name)
            _sum(found.get_result_value(name, params))
            for samples in found.get_result_samples(name, params):
                _sum(samples or [])
            for stats in found.get_result_stats(name, params):
                get_weight(stats)
        named = Path(get_filename("", found.commit_hash, found.env_name)).name
    except Exception as error:
        # A file of another shape may make asv raise anything.
        raise ValueError("it is no whole result file of asv for this machine") from error
    if path.name != named:
        raise ValueError(f"it holds results of {found.commit_hash} in {found.env_name}")
    return found


def _sum(numbers: Iterable[float | None]) -> float:
    """Raises ValueError where a number is beyond what can be measured, and TypeError where it is none."""
    found = [number for number in numbers if number is not None]
    if any(abs(number) >= MOST_COUNTED or 0 < abs(number) < LEAST for number in found):
        raise ValueError("a number is beyond what can be measured")
    return math.fsum(found)
