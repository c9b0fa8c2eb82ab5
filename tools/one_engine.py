"""Do the site and `torch-history compare` say the same? Of every pair of releases of every lane, all that a page can say.

    python -m tools.one_engine html [--neighbours]

Each comparison is made anew from the stored launches, and held against what the published page says: its JSON, summary,
findings, cards and Markdown.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from playwright.sync_api import sync_playwright

from tests.conftest import FLAGS
from torch_history.analysis import causes, compare
from torch_history.analysis.levels import on_one_thread
from torch_history.analysis.series import history
from torch_history.store.launches import read_environment, read_launches

SAID = """([from, to]) => {
    const [V, A] = [torchHistory.verdicts, torchHistory.answer];
    const changes = V.compare(lane, from, to);
    const found = A.findings(lane, changes);
    const told = (one) => one && `${A.brief(one)}.`;
    return JSON.stringify({document: V.json(lane, from, to, changes), markdown: A.markdown(lane, from, to, changes),
            summary: V.summary(lane, from, to, changes),
            findings: found.map((one) => ({
                title: A.title(one), words: A.sentence(one), verdict: one.verdict, cases: one.cases, because: one.because,
                explained: one.explained, rows: one.rows.map((row) => [row.of.benchmark, row.parameters]),
            })),
            cards: A.cards(lane, changes, found).map(({name, verdict, worst, best}) =>
                ({name, verdict, worst: told(worst), best: told(best)}))});
}"""
"""What a page says of a pair of releases of `window.lane`, in JSON."""

OF_COMMAND = ("detectable",)
"""What the command's JSON has of a change and a page has not: docs/site.md."""


def differences(python: Any, script: Any, where: str = "") -> list[str]:
    """Where two values differ, numbers by more than their 9th digit."""
    if isinstance(python, dict) and isinstance(script, dict) and list(python) == list(script):
        return [each for key in python for each in differences(python[key], script[key], f"{where}.{key}")]
    if isinstance(python, list) and isinstance(script, list) and len(python) == len(script):
        pairs = enumerate(zip(python, script, strict=True))
        return [each for i, (one, other) in pairs for each in differences(one, other, f"{where}[{i}]")]
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (python, script))
    same = math.isclose(python, script, rel_tol=1e-9, abs_tol=1e-12) if numbers else python == script
    return [] if same else [f"{where}: {python!r} and {script!r}"]


def against(found: compare.Comparison, page: Any) -> list[str]:
    """Where a comparison and what a page says of it differ."""
    said = json.loads(page.evaluate(SAID, [found.old, found.new]))
    document = json.loads(compare.as_json(found))
    answer, findings = document.pop("answer"), document.pop("findings")
    for change in document["changes"]:
        for name in OF_COMMAND:
            del change[name]
    keys = said["findings"][0].keys() if said["findings"] else ()
    expected = {
        "document": document,
        "markdown": compare.markdown(found, everything=False),
        "summary": compare.summary(found),
        "findings": [{key: finding[key] for key in keys} for finding in findings],
        "cards": answer["cards"],
    }
    return differences(expected, said)


def of_lane(page: Any, results: Path, lane: Mapping[str, Any], neighbours: bool) -> tuple[int, int]:
    """How many pairs of a lane were held against its page, and how many of them differ, which is said."""
    machine, environment = lane["machine"], lane["environment"]
    tags = page.evaluate(
        "async id => { window.lane = await torchHistory.lane(id); return lane.releases.map(({tag}) => tag); }",
        lane["id"],
    )
    found = history(one for one in read_launches(results, machine) if one.environment == environment)
    facts = {tag: read_environment(results, machine, tag, environment) for tag in tags}
    known = causes.evidence(results, machine)
    missed = causes.unconfirmed(results, machine, found)
    pairs = [*(itertools.pairwise if neighbours else lambda every: itertools.combinations(every, 2))(tags)]
    differing = 0
    threads, device = page.evaluate("[String(lane.machine.threads ?? ''), lane.machine.device || 'cpu']")
    with click.progressbar(pairs, label=lane["id"], file=sys.stderr) as shown:
        for old, new in shown:
            made = compare.compared(machine, environment, old, new, found, facts, device, known=known, threads=threads)
            made = dataclasses.replace(made, unconfirmed={series for series, *pair in missed if pair == [old, new]})
            wrong = against(made, page)
            differing += bool(wrong)
            for line in wrong[:2]:
                click.echo(f"{lane['id']}: {old} -> {new}: {line}")
    return len(pairs), differing


@click.command()
@click.argument("site", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--results-dir", type=click.Path(exists=True, path_type=Path), default="results")
@click.option("--neighbours", is_flag=True, help="Only each release and the one after it.")
def main(site: Path, results_dir: Path, neighbours: bool) -> None:
    """Ends with 1 where a page and the command differ."""
    with sync_playwright() as driver, on_one_thread():
        page = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS).new_page()
        page.goto((site / "index.html").resolve().as_uri())
        page.wait_for_function("window.torchHistory && torchHistory.contents")
        lanes = page.evaluate(
            "torchHistory.contents.lanes.map(({id, machine, environment}) => ({id, machine, environment}))"
        )
        counts = [of_lane(page, results_dir, lane, neighbours) for lane in lanes]
    pairs, differing = (sum(of) for of in zip(*counts, strict=True))
    click.echo(f"{pairs} pairs of {len(lanes)} lanes: {differing} differ between the page and the command.")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
