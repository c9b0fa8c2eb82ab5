"""The results of a laboratory that is not ours: two lanes of one machine, five of the suite's questions, real releases. What
is in them is planted here, so that a page can be held to it whatever `results/` holds."""

import hashlib
import itertools
import json
import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asv.config import Config
from packaging.version import Version

from contract.metrics import METRICS, STEADY, metric_of
from torch_history.releases import repository  # noqa: F401  asv reads a list of releases with this loaded
from torch_history.releases.axis import Axis
from torch_history.store.sources import versions

from .processes import ROOT
from .result_files import benchmark, launch_line, write_benchmarks, write_machine, write_release

AXIS = Axis.load(ROOT / "releases.toml")
"""The real releases."""

MACHINE = "a-laboratory-4-cores"
ENVIRONMENT, OTHER_ENVIRONMENT = "release-py3.11", "release-py3.9"
LANE, OTHER_LANE = (f"{MACHINE}-{environment.replace('.', '-')}" for environment in (ENVIRONMENT, OTHER_ENVIRONMENT))
RELEASES = {
    ENVIRONMENT: ("1.13.0", "1.13.1", "2.0.1", "2.1.0", "2.2.0", "2.5.1", "2.9.0", "2.14.0", "2.14.1", "2.15.0"),
    OTHER_ENVIRONMENT: ("1.8.1", "1.13.1", "2.0.1", "2.1.0", "2.5.1", "2.8.0"),
}
ROUNDS = 6
RESULT = 60_000_000
"""Bytes of the matrix that the question intersection computes."""

SIZES = {
    **{"intersection": ("small",), "saved_tensors": ("loop", "chain"), "warm_up": ("one shape", "changing shapes")},
    **{"batching": ("64 x 128", "4,096 x 64"), "selection": ("vector 1 % x 100", "rows 1 % x 1", "rows 1 % x 100")},
}
OF_SESSION = 4
"""Pairs of neighbours of one session."""

VARIANTS = {
    "intersection": ("eager", "scripted", "traced", "compiled", "in_place"),
    "saved_tensors": ("plain", "hooks_disabled", "no_grad", "save_on_cpu_pinned"),
    "warm_up": ("eager", "scripted", "traced", "compiled"),
    "batching": ("vstack_rows", "cat_rows", "numpy_stack", "tensor_of_lists", "flat_buffer"),
    "selection": (
        *("mask", "masked_select", "nonzero_each_time", "index_reused", "index_select_reused", "take_reused"),
        *("where_product", "cpp_mask", "cpp_index_reused"),
    ),
}
SLOWER = {
    **{("intersection", "scripted"): ("2.1.0", 7.0), ("selection", "cpp_index_reused"): ("2.15.0", 1.6)},
    **{("batching", "tensor_of_lists"): ("2.15.0", 1 / 1.5), ("batching", "vstack_rows"): ("2.5.1", 1.3)},
}
"""Question and variant -> the release from which its time is so many times as long."""

SPEEDS = {"vstack_rows": 8.0, "mask": 3.0, "cpp_mask": 3.0, "masked_select": 2.5}
"""Variant -> how many times as long it takes as those that are not named."""


def write_lab(
    folder: Path,
    releases: Mapping[str, Sequence[str]] = RELEASES,
    sizes: Mapping[str, Sequence[str]] = SIZES,
    machines: Sequence[str] = (MACHINE,),
) -> Path:
    """Writes what a checkout holds besides sources into `folder`, and returns its `results`."""
    for name in ("asv.conf.json", "releases.toml"):
        shutil.copy(ROOT / name, folder)
    results = folder / "results"
    listed = {
        name: benchmark(name, version, [[*map(repr, of[question])] for of in (VARIANTS, sizes)], metric_of(name).unit)
        for name, version in versions(ROOT).items()
        if (question := name.partition(".")[0]) in sizes
    }
    write_benchmarks(results, listed)
    for machine in machines:
        write_machine(results / machine, num_cpu="4")
        for environment, in_order in releases.items():
            for year, release in enumerate(in_order):
                _write_release(results / machine, environment, release, year, listed)
    return results


def write_few(
    folder: Path, count: int = 3, questions: Sequence[str] = ("intersection",), machines: Sequence[str] = (MACHINE,)
) -> Config:
    """The same of the newest releases in one environment; returns asv's configuration of that checkout."""
    sizes = {question: SIZES[question] for question in questions}
    write_lab(folder, {ENVIRONMENT: RELEASES[ENVIRONMENT][-count:]}, sizes, machines)
    conf = Config.from_json(json.loads((folder / "asv.conf.json").read_text(encoding="utf-8")))
    conf.repo, conf.results_dir, conf.env_dir = (str(folder / name) for name in ("releases.toml", "results", "env"))
    return conf


def _sessions(year: int) -> list[int]:
    """The sessions of neighbours that measured a release: the last of one is the first of the next."""
    session, place = divmod(year, OF_SESSION)
    return [session - 1, session] if session and place == 0 else [session]


def _write_release(machine: Path, environment: str, release: str, year: int, listed: dict[str, dict[str, Any]]) -> None:
    facts = _facts(environment, release, year)
    about = {"torch": release, "device": "cpu", "environment": facts["id"], "conditions": {"load": 0.1}}
    lines, newest = [], {}
    for session, (name, of) in itertools.product(_sessions(year), listed.items()):
        if "cpu" not in metric_of(name).devices:
            continue
        for round in range(1, 1 + (ROUNDS if metric_of(name).kind == "times" else 1)):
            which = environment, release, session, round, name
            cases = [_case(*which, case) for case in itertools.product(*of["params"])]
            more = {"round": round, "launch": f"{environment[-2:]}{release}{session}{round}", "facts": about}
            more |= {"session": f"202602{1 + session:02}T100000-ab{session:02}"}
            more |= {"started_at": f"2026-02-{1 + session:02}T{round:02}:00:00+00:00"}
            lines.append(launch_line(f"v{release}", name, of["version"], cases, environment, **more))
            newest[name] = [min(case["samples"]) if "samples" in case else case.get("value") for case in cases]
    write_release(machine, f"v{release}", environment, lines, listed, newest)
    (machine / f"v{release}-{environment}.environments").write_text(json.dumps(facts) + "\n")


def _facts(environment: str, release: str, year: int) -> dict[str, Any]:
    """What was measured, as a line of `.environments`; it differs from release to release."""
    numpy = f"1.{20 + year}.0"
    packages = [f"numpy=={numpy}", "filelock==3.0", f"sympy==1.{10 + year // 2}", f"torch=={release}"]
    about: dict[str, Any] = {"torch": release, "cuda": f"12.{year}", "onednn": f"3.{year}.1", "mkl": "2024.2"}
    about |= {"numpy": numpy, "fuses_on_cpu": not _has("2.1.0", release)}
    about |= {"python": environment[-4:], "packages": packages}
    return {"id": hashlib.sha256(f"{environment} {release}".encode()).hexdigest()[:8], "environment": about}


def _has(since: str, release: str) -> bool:
    """Whether a release has what there is since another."""
    return Version(release) >= Version(since)


def _case(
    environment: str, release: str, session: int, round: int, name: str, parameters: tuple[str, ...]
) -> dict[str, Any]:
    question, metric = name.partition(".")[0], METRICS[name.rpartition(".track_")[2]]
    variant, size = (parameter.strip("'") for parameter in parameters)
    case: dict[str, Any] = {"parameters": list(parameters)}
    if variant == "compiled" and not _has("2.0.0", release):
        return {**case, "unavailable": "torch.compile needs torch >= 2.0"}
    if variant == "save_on_cpu_pinned":
        return {**case, "unavailable": "save_on_cpu with pinned memory needs a GPU"}
    if (variant, size, release) == ("numpy_stack", "64 x 128", "2.15.0"):
        return {**case, "failed": "RuntimeError: the stack is too high"}
    if metric.name == "fusion_groups" and variant not in ("scripted", "traced"):
        return {**case, "unavailable": metric.missing}
    if not metric.varies:
        return {**case, "value": _count(question, variant, size, release, metric.name)}
    level = _level(question, variant, size, release, metric.name)
    drawn = random.Random(f"{environment} {release} {session} {round} {name} {parameters}")
    noise = 0.01 if metric.measured == STEADY else 0.03
    speed = 1 + 0.05 * session  # the machine is slower in later sessions
    return {**case, "samples": [float(f"{level * speed * (1 + abs(drawn.gauss(0, noise))):.7g}") for _ in range(3)]}


def _count(question: str, variant: str, size: str, release: str, metric: str) -> int:
    fused = question == "intersection" and variant == "scripted" and not _has("2.1.0", release)
    if metric in ("stalls", "gradients"):
        return int(metric == "gradients" and variant != "no_grad")
    if metric == "fusion_groups":
        return int(fused)
    if metric in ("peak_memory", "retained"):
        whole = RESULT if question == "intersection" else 4_000 * (1 + SIZES[question].index(size))
        return whole if fused else {"in_place": 3, "no_grad": 1}.get(variant, 4) * whole
    more = variant == "cat_rows" and metric == "operators" and _has("2.15.0", release)
    return 10 + VARIANTS[question].index(variant) + more


def _level(question: str, variant: str, size: str, release: str, metric: str) -> float:
    """Seconds, or a ratio, without noise."""
    if question == "warm_up":
        stalls = variant in ("scripted", "traced") and not _has("2.1.0", release)
        ratio = 40.0 if stalls else 1.5
        slow = {"worst_over_median": ratio, "worst_call": ratio / 1e3, "second_call": ratio / 1e3, "first_call": 0.05}
        return slow.get(metric, 1e-3)
    since, factor = SLOWER.get((question, variant), ("0", 1.0))
    level = 1e-3 * (1 + VARIANTS[question].index(variant) / 10) * (1 + SIZES[question].index(size))
    return level * SPEEDS.get(variant, 1.0) * (factor if _has(since, release) else 1.0)
