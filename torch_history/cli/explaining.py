"""What `explain` does once it knows what is asked: this module imports all that measures."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asv.machine import Machine
from asv.repo import get_repo
from rich.console import Console

from ..analysis.compare import choose_machine
from ..analysis.verdicts import Series, human
from ..errors import UserError
from ..explaining import finding
from ..explaining import issue as issues
from ..explaining.launching import Side
from ..measuring.locks import alone
from ..measuring.machine import describe
from ..measuring.machine_records import use
from ..measuring.subjects import OwnWorkload
from ..releases import environments
from ..scratch import temporary_files
from ..store import causes, sources
from ..store.causes import Evidence, Place
from .options import seconds_of
from .output import console, plain
from .suite import Suite

ROWS = 6
"""Of each table that is printed."""


@dataclass(frozen=True)
class Asked:
    """The options of `explain`."""

    old: str
    new: str
    series: tuple[str, ...]
    lane: str
    workload: Path | None
    machine: str | None
    most: int
    budget: str
    again: bool


def explained(asked: Asked, suite: Suite) -> Iterator[tuple[Evidence, Path]]:
    """The evidence of each series that is asked for, and the file that keeps it. Raises UserError."""
    seconds = seconds_of(asked.budget)
    old, new = (suite.axis.find(name) for name in (asked.old, asked.new))
    if old.tag == new.tag:
        raise UserError(f"{old.tag} was named twice: name two releases.")
    if describe()["device"] != "cpu":
        raise UserError("`explain` works on a CPU only. Set TORCH_HISTORY_DEVICE=cpu.")
    own = OwnWorkload.of(asked.workload) if asked.workload else None
    if own and own.requirements:
        raise UserError(f"{own.path.name} has `requirements`, and `explain` starts interpreters that have only torch.")
    if own and own.threads and str(own.threads) != describe()["threads"]:
        raise UserError(
            f"{own.path.name} asks for {own.threads} threads, and `explain` takes them from a variable. Set "
            f"TORCH_HISTORY_THREADS={own.threads}."
        )
    machine, environment = describe()["machine"], f"release-py{asked.lane}"
    results = own.folder / "results" if own else suite.results
    out = console()
    conf = suite.config()
    with temporary_files(), alone(Path(conf.env_dir)):
        sides = _sides(conf, asked.lane, old.tag, new.tag)
        workload = str(asked.workload.resolve()) if asked.workload else ""
        for number, series in enumerate(chosen := _chosen(asked, suite, own, sides, workload, environment), start=1):
            out.print(f"{number} of {len(chosen)}: {plain(series.words)}, {old.tag} -> {new.tag}", highlight=False)
            version = own.digest if own else sources.here().get(series.benchmark, "")
            yield _one(series, sides, suite, results, machine, workload, version, seconds, asked.again, out)


def _one(
    series: Series,
    sides: tuple[Side, Side],
    suite: Suite,
    results: Path,
    machine: str,
    workload: str,
    version: str,
    seconds: float,
    again: bool,
    out: Console,
) -> tuple[Evidence, Path]:
    """What is known of one series, found now unless it is stored."""
    known = [
        evidence
        for evidence in causes.read(results, machine)
        if (evidence.environment, evidence.benchmark, evidence.parameters, evidence.version)
        == (series.environment, series.benchmark, series.parameters, version)
        and (evidence.old, evidence.new) == (sides[0].tag, sides[1].tag)
    ]
    if known and not again:
        out.print("It has been explained. Use --again to explain it again.")
        return known[0], results / machine / causes.FOLDER / known[0].file
    with tempfile.TemporaryDirectory() as folder:
        subject = finding.subject(suite.root, series, workload)
        evidence = finding.explain(
            series,
            subject,
            sides,
            Path(folder),
            lambda words: out.print(plain(words), highlight=False),
            seconds,
            version,
        )
    use(describe())
    Machine.load(machine_name=None, interactive=False).save(str(results))
    return evidence, causes.write(results, machine, evidence)


def _sides(conf: Any, lane: str, *tags: str) -> tuple[Side, Side]:
    """Both releases, installed where they are not."""
    environment = environments.ReleaseEnvironment(conf, lane, {}, {})
    found = []
    for tag in tags:
        environment.install_project(conf, get_repo(conf), tag)
        found.append(Side(tag, Path(conf.env_dir).resolve() / f"{tag}-py{lane}" / "bin" / "python"))
    return found[0], found[1]


def _chosen(
    asked: Asked, suite: Suite, own: OwnWorkload | None, sides: tuple[Side, Side], workload: str, environment: str
) -> list[Series]:
    """The series that are explained: those named, else those that changed most."""
    if own:
        cases = finding.cases(sides[1], suite.root, workload)
        times, *counts = (
            _series(f"{own.question}.Own.track_{metric}", cases, environment) for metric in ("time", *finding.COUNTED)
        )
        every = times + [series for of_metric in counts for series in of_metric]
        named = [one for words in asked.series for one in finding.matching(words, every)]
        return list(dict.fromkeys(named)) or times[: asked.most]
    if not asked.series:
        machine = choose_machine(suite.results, asked.machine, describe()["machine"])
        found = finding.changed(suite.results, machine, environment, sides[0].tag, sides[1].tag, asked.most)
        if not found:
            raise UserError(
                f"No time that can be explained changed from {sides[0].tag} to {sides[1].tag} on {machine}."
            )
        return found
    every = []
    for benchmark in finding.suites_series(environment):
        every += _series(benchmark.benchmark, finding.cases(sides[1], suite.root, benchmark.question), environment)
    return list(dict.fromkeys(one for words in asked.series for one in finding.matching(words, every)))


def _series(benchmark: str, cases: Sequence[tuple[str, str]], environment: str) -> list[Series]:
    return [Series(environment, benchmark, tuple(map(repr, case))) for case in cases]


def report(evidence: Evidence) -> str:
    """What was found of one series, in some lines."""
    series = Series(evidence.environment, evidence.benchmark, evidence.parameters)
    lines = [f"{series.words}, {evidence.old} -> {evidence.new}: {evidence.verdict}: {evidence.words}."]
    if evidence.verdict != "NOT THERE":
        lines.append(f"  new / old is {evidence.ratio:.3f}{_ends(evidence)}.")
    for kind in ("operator", "function", "symbol"):
        rows = [place for place in evidence.places if place.kind == kind]
        if rows:
            lines.append(f"  by {kind}, a call:")
            lines += [_row(row, series.unit) for row in [*rows[:-1][:ROWS], rows[-1]]]
    lines += [f"  {code.symbol}: {code.words}." for code in evidence.code]
    for lever in evidence.levers:
        if not lever.refused:
            ends = f" ({100 * lever.low:.0f} to {100 * lever.high:.0f} %)" if lever.low < lever.high else ""
            share = f"removes {100 * lever.removed:.0f} %{ends}"
            lines.append(f"  with {lever.words}: {share}: {lever.verdict}")
    lines += [f"  There is {note}." for note in evidence.notes]
    if evidence.reproduced:
        numbers = " and ".join(human(number, series.unit) for number in evidence.reproduced)
        lines.append(f"  The script in plain PyTorch gives {numbers}.")
    return "\n".join(lines)


def _ends(evidence: Evidence) -> str:
    return f" ({evidence.low:.3f} to {evidence.high:.3f})" if evidence.low < evidence.high else ", exactly"


def _row(row: Place, unit: str) -> str:
    """One line of a table: times with their interval, counts as they are."""
    if unit != "seconds":
        return f"    {row.new - row.old:+16,.0f}{' B' if unit == 'bytes' else ''}  {row.name}"
    chance = ", could be chance" if row.low <= 0 <= row.high else ""
    ends = f"{1e6 * row.low:+.3g} to {1e6 * row.high:+.3g}"
    return f"    {1e6 * (row.new - row.old):+10.3g} us ({ends}{chance})  {row.name}"


def issue(evidence: Evidence) -> str:
    """The text of an issue, for what was found on this machine."""
    return issues.text(evidence, describe())
