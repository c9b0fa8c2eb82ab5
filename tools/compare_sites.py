"""Do two checkouts publish the same site? Every file is compared byte for byte, and what differs is listed.

    python -m tools.compare_sites ../before . [--results results]

Each checkout publishes with its own sources, in a copy without memory of earlier sites, and both from the same results.
When a site was built is no difference. Exit code 1 where anything differs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

BESIDE_SOURCES = shutil.ignore_patterns(".*", "__pycache__", "env", "html", "results")
"""What a checkout holds that no site is made of, or that is given apart."""

PUBLISH = "from torch_history.cli import main; main()"

SAME_ORDER = {"PYTHONHASHSEED": "0"}
"""asv's dashboard writes sets, whose order is drawn anew by every process without this."""

TIME_STAMPS = {
    "asv/info.json": rb'"timestamp": ?\d+',
    "asv/info.json.js": rb'"timestamp": ?\d+',
    "asv/regressions.xml": rb"<updated>[^<]+</updated></feed>",
}
"""File -> when asv built its dashboard, the last of an empty feed; nothing else in a site depends on the hour."""

AROUND = 60
"""Characters that are shown on either side of the first difference: a file of data is one long line."""


def publish(checkout: Path, results: Path, folder: Path) -> Path:
    """The site that the sources of `checkout` make of `results`, in `folder`. Raises click.ClickException where
    `checkout` is none, or publishes nothing."""
    if not (checkout / "asv.conf.json").is_file():
        raise click.ClickException(f"{checkout} is no checkout of torch-history: it holds no asv.conf.json.")
    sources, html = folder / "sources", folder / "html"
    shutil.copytree(checkout, sources, ignore=BESIDE_SOURCES)
    command = [sys.executable, "-c", PUBLISH, "publish", "--html-dir", str(html), "--results-dir", str(results)]
    answer = subprocess.run(command, cwd=sources, env=os.environ | SAME_ORDER, capture_output=True, text=True)
    if answer.returncode:
        raise click.ClickException(f"{checkout} publishes nothing:\n{answer.stderr or answer.stdout}")
    return html


def differences(before: Path, after: Path) -> dict[str, str]:
    """File that is in one site only, or differs from the other's by more than its time stamps -> how it differs."""
    files = {str(path.relative_to(site)) for site in (before, after) for path in site.rglob("*") if not path.is_dir()}
    found = {}
    for name in sorted(files):
        old, new = before / name, after / name
        if not new.exists() or not old.exists():
            found[name] = "only before" if old.exists() else "only after"
        elif (was := _without_time(old, name)) != (now := _without_time(new, name)):
            found[name] = _first_difference(was, now)
    return found


def _without_time(path: Path, name: str) -> bytes:
    data = path.read_bytes()
    return re.sub(TIME_STAMPS[name], b"", data) if name in TIME_STAMPS else data


def _first_difference(was: bytes, now: bytes) -> str:
    at = next((i for i, (old, new) in enumerate(zip(was, now, strict=False)) if old != new), min(len(was), len(now)))
    shown = [text[max(0, at - AROUND) : at + AROUND].decode(errors="replace") for text in (was, now)]
    return f"from byte {at:,} on\n    - {shown[0]!r}\n    + {shown[1]!r}"


@click.command()
@click.argument("before", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("after", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--results",
    default="results",
    show_default=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="What both publish.",
)
def main(before: Path, after: Path, results: Path) -> None:
    """Publishes the checkouts BEFORE and AFTER, and lists the files of their sites that differ."""
    with tempfile.TemporaryDirectory() as scratch:
        sites = []
        for name, checkout in (("before", before), ("after", after)):
            folder = Path(scratch, name)
            folder.mkdir()
            sites.append(publish(checkout.resolve(), results.resolve(), folder))
        found = differences(*sites)
        for file, how in found.items():
            click.echo(f"{file}: {how}")
        many = sum(not path.is_dir() for path in sites[1].rglob("*"))
    click.echo(f"Files that differ: {len(found)} of {many}.")
    if found:
        sys.exit(1)


if __name__ == "__main__":
    main()
