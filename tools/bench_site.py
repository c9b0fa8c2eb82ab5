"""What does the site cost as the history grows? Publishing at several sizes and again after one new release, and opening it.

    python -m tools.bench_site --releases 250 --releases 500 --releases 1000 [--write]
    python -m tools.bench_site --weigh html [--weigh OTHER] [--write]

Results are synthetic (tests/synthetic.py): 300 series, two machines. Each publish is a process of its own; each page of the
largest site is opened from disk several times. `--weigh` says instead what the pages of published sites load. `--write` puts
the tables into docs/site.md.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import click
from playwright.sync_api import sync_playwright

from tests.conftest import FLAGS
from tests.synthetic import ROOT, write_tree
from torch_history.site.build import PAGES, Page

from .page import write_into

COMMAND = "python -m tools.bench_site --write"
WEIGH = "python -m tools.bench_site --weigh html --write"

PATIENCE = 180_000
"""Milliseconds for a page to be there, on a machine that is shared."""

MOST = {"index.html": 1_000_000, "series.html": 1_400_000}
"""Bytes that a page may load from disk, all files together."""

SERIES = "benchmark=saved_tensors.SavedTensors.track_peak_memory"
WEIGHED = {
    "Overview": ("index.html", ""),
    "Answer for a distant pair": ("index.html", "from=v2.1.0&to=v2.15.0"),
    "Series": ("series.html", SERIES),
    "Series with a release": ("series.html", f"{SERIES}&release=v2.15.0"),
}
"""What is weighed: its file, and the keys of its address."""

OPENINGS = 5
"""Of each page; on a shared machine the median is what counts."""

PUBLISH = """
import resource, sys
from pathlib import Path
from tests.synthetic import write_tree
from torch_history.cli import look_for_garbage_seldom
from torch_history.releases.axis import Axis
from torch_history.site.build import publish_site
look_for_garbage_seldom()
folder = Path(sys.argv[1])
conf = write_tree(folder, int(sys.argv[2]), first=int(sys.argv[2]))
publish_site(conf, Axis.load(conf.repo), folder / "html")
usage = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(max(usage))
"""


@click.command()
@click.option("--releases", "sizes", multiple=True, type=int, default=(250, 500, 1000), show_default=True)
@click.option(
    "--weigh", "sites", multiple=True, type=click.Path(path_type=Path), help="Weigh a published site instead."
)
@click.option("--write", is_flag=True, help="Put the table into docs/site.md.")
def main(sizes: tuple[int, ...], sites: tuple[Path, ...], write: bool) -> None:
    """Prints a row per size, the summary last."""
    if sites:
        text = _weights(sites)
        click.echo(text)
        if write:
            write_into(ROOT / "docs" / "site.md", WEIGH, text)
        return
    rows = []
    for releases in sizes:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            write_tree(folder, releases)
            first, memory = _publish(folder, releases)
            unchanged, _ = _publish(folder, releases)
            write_tree(folder, releases + 1, first=releases)
            again, _ = _publish(folder, releases + 1)
            size = sum(path.stat().st_size for path in (folder / "html").rglob("*") if path.is_file())
            rows.append((releases, first, again, unchanged, memory, size))
            opened = _opened(folder / "html")
            click.echo(
                f"{releases} releases: {first:.1f} s, {memory / 2**20:.2f} GiB; again after one new {again:.1f} s "
                f"({again / first:.3f} of it), with nothing new {unchanged:.1f} s"
            )
    table = [
        "| releases | publish | for each release | again after one new | of the first | peak memory | site |",
        "|---:|---:|---:|---:|---:|---:|---:|",
        *[
            f"| {releases:,} | {first:.1f} s | {1000 * first / releases:.0f} ms | {again:.1f} s "
            f"| {100 * again / first:.0f} % | {memory / 2**20:.2f} GiB | {size / 2**20:.0f} MiB |"
            for releases, first, again, _, memory, size in rows
        ],
    ]
    table += ["", f"Opened from disk, {sizes[-1]:,} releases, until every control works:", ""]
    table += ["| page | median | slowest |", "|---|---:|---:|"]
    table += [
        f"| {page.words} | {1000 * statistics.median(seconds):.0f} ms | {1000 * max(seconds):.0f} ms |"
        for page, seconds in opened.items()
    ]
    text = "\n".join(table) + "\n"
    click.echo(text)
    if write:
        write_into(ROOT / "docs" / "site.md", COMMAND, text)


def _publish(folder: Path, releases: int) -> tuple[float, int]:
    """Seconds and KiB of one publish, in a process of its own."""
    begun = time.monotonic()
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PUBLISH, str(folder), str(releases)]
    answer = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True)
    if answer.returncode:
        raise click.ClickException(answer.stderr)
    return time.monotonic() - begun, int(answer.stdout.split()[-1])


def weigh(page: Any, address: str) -> int:
    """Bytes of all files that the page at `address` loads from disk until every control works."""
    asked: set[str] = set()
    page.set_default_timeout(PATIENCE)
    page.goto("about:blank")
    page.on("requestfinished", lambda request: asked.add(request.url.partition("#")[0]))
    page.goto(address)
    page.wait_for_function("document.body.dataset.ready")
    paths = [Path(unquote(urlsplit(url).path)) for url in asked if url.startswith("file:")]
    return sum(path.stat().st_size for path in paths)


def _weights(sites: Sequence[Path]) -> str:
    """A row for each of WEIGHED, a column for each site: of its lanes the heaviest."""
    rows = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name, (file, keys) in WEIGHED.items():
            cells = []
            for site in sites:
                lanes = json.loads((site / "data" / "index.json").read_text(encoding="utf-8"))["lanes"]
                pages = [f"{(site.resolve() / file).as_uri()}#{keys}&lane={lane['id']}" for lane in lanes]
                cells.append(max(weigh(browser.new_page(), page) for page in pages))
            rows.append((name, MOST[file], cells))
        browser.close()
    head = [
        f"| page | {' | '.join(site.name for site in sites)} | limit |",
        f"|---|{'---:|' * (len(sites) + 1)}",
    ]
    told = [
        f"| {name} | {' | '.join(f'{cell / 1000:,.0f} KB' for cell in cells)} | {most / 1000:,.0f} KB |"
        for name, most, cells in rows
    ]
    return "\n".join([*head, *told]) + "\n"


def _opened(html: Path) -> dict[Page, list[float]]:
    """Seconds from asking for each page to its being interactive, in a browser that has it not in memory."""
    found: dict[Page, list[float]] = {}
    about = json.loads((html / "data" / "index.json").read_text(encoding="utf-8"))["lanes"][0]
    series = "benchmark=intersection.Intersection.track_time&size=small"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for page in PAGES:
            address = f"{html.as_uri()}/{page.file}#lane={about['id']}&{series if page.name == 'series' else ''}"
            found[page] = []
            for _ in range(OPENINGS):
                tab = browser.new_context().new_page()
                begun = time.monotonic()
                tab.goto(address)
                tab.wait_for_function("document.body.dataset.ready")
                found[page].append(time.monotonic() - begun)
                tab.context.close()
        browser.close()
    return found


if __name__ == "__main__":
    main()
