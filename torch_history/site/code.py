"""What was measured, as code? Of each variant a script of plain PyTorch that measures one series. docs/site.md lists the
keys."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..explaining import reproduction
from ..explaining.counting import COUNTED
from ..explaining.launching import Subject

STEADY = ("time", "forward_time")
"""Metrics that a script times: seconds of a call that was made before."""


def code_of(series: Iterable[Sequence[str]], root: Path) -> dict[str, dict[str, Any]]:
    """Name of a file -> its content, a file for each variant of each question of the suite in `root`. `series` are keys as
    in a lane: asv's name of the benchmark and its parameters. A variant that no workload names has no file."""
    apart: dict[tuple[str, str], dict[tuple[str, str], str]] = defaultdict(dict)
    for benchmark, *parameters in series:
        question, _, metric = benchmark.partition(".")
        plain = [parameter.strip("'") for parameter in parameters]
        if len(plain) == 2 and re.fullmatch(r"\w+", plain[0], re.ASCII):
            apart[question, plain[0]][benchmark, plain[1]] = metric.rpartition(".track_")[2]
    found = {}
    for (question, variant), cases in sorted(apart.items()):
        path = root / "workloads" / f"{question}.py"
        steady = any(metric in STEADY for metric in cases.values())
        if re.fullmatch(r"\w+", question, re.ASCII) and path.is_file() and reproduction.names(path, variant):
            found[f"code-{question}-{variant}"] = _of_variant(root, question, variant, cases, steady)
    return found


def _of_variant(
    root: Path, question: str, variant: str, cases: dict[tuple[str, str], str], steady: bool
) -> dict[str, Any]:
    scripts = []
    for (benchmark, size), metric in sorted(cases.items()):
        text, why = "", "It measures more than a call that is repeated, which is all that a script does."
        if steady and metric in (*STEADY, *COUNTED):
            head = f"{question} {metric}, {variant}, {size}"
            try:
                text, why = reproduction.script(Subject(root, question, variant, size, metric), head), ""
            except reproduction.CannotReproduce as error:
                why = str(error)
        scripts.append({"benchmark": benchmark, "size": size, "text": text, "why": why})
    return {"scripts": scripts}
