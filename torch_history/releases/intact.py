"""Is an environment as it was installed? Every file that a package brought has a sha256 in the package's RECORD, and uv
installs hard links of its cache, so that one edit of a file reaches every release that has it. A file is read again only
where its size, its time, or the time of its last change of any kind (ctime, which no program can set back) is another than
when it was last found right; a new name for a file moves its ctime, too."""

import base64
import contextlib
import csv
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packaging.utils import canonicalize_name

from ..system.files import read_object, write_atomically
from .uv import forget

STAMPS = "torch-history.files"
"""Of each file that was found right: size, time and ctime in nanoseconds; and a sha256 that its RECORD lacks."""

Damage = dict[str, list[str]]
"""Package -> its files that are not as they were installed."""


def install(folder: Path, fresh: Callable[[], None], options: Sequence[str], damaged: Iterable[str]) -> None:
    """Installs into `folder` by `fresh`, which begins with nothing there. uv's cache, of which `options` tell, forgets
    `damaged` packages before, as it may have been edited, and those of which RECORDs say otherwise of what came: what comes
    then is what their wheels have. Raises CalledProcessError, OSError and UserError."""
    forget(options, damaged)
    fresh()
    if found := damage(folder):
        forget(options, found)
        fresh()
        damage(folder, accepts=True)


def damage(folder: Path, accepts: bool = False) -> Damage:
    """What is not as it was installed in `folder`; where this `accepts` it that is right from now on."""
    known: dict[str, list[int | str]] = {}
    with contextlib.suppress(ValueError):
        known = {place: stamp for place, stamp in read_object(folder / STAMPS).items() if isinstance(stamp, list)}
    found: Damage = defaultdict(list)
    stamps: dict[str, list[int | str]] = {}
    unread: list[tuple[str, str, str, list[int | str]]] = []
    for package, place, sha256 in _files(folder):
        try:
            status = os.stat(folder / place)
        except OSError:
            found[package].append(os.path.basename(place))
            continue
        stamp: list[int | str] = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        if known.get(place, [])[:3] == stamp:
            stamps[place] = known[place]
        else:
            unread.append((package, place, sha256, stamp))
    with ThreadPoolExecutor() as pool:
        digests = pool.map(lambda each: _sha256(folder / each[1]), unread)
        for (package, place, sha256, stamp), digest in zip(unread, digests, strict=True):
            own = known.get(place, [])[3:]
            if digest in (own or [sha256]):
                stamps[place] = stamp + own
            elif accepts:
                stamps[place] = [*stamp, digest]
            else:
                found[package].append(os.path.basename(place))
    if stamps != known:
        write_atomically(folder / STAMPS, json.dumps(stamps))
    return dict(found)


def words(found: Damage) -> str:
    """`functional.py and 2 other files of torch, numpy`."""
    first, *others = [file for files in found.values() for file in files]
    more = f" and {len(others)} other file{'s' if len(others) > 1 else ''}" if others else ""
    return f"{first}{more} of {', '.join(sorted(found))}"


def rows(record: Path) -> list[list[str]]:
    """Path and `sha256=...` of each file in a RECORD, whose paths are relative to the folder of its packages."""
    with record.open(encoding="utf-8", newline="") as stream:
        return [row[:2] for row in csv.reader(stream) if row]


def records(folder: Path) -> list[Path]:
    """The RECORD of each package in an environment, or in a folder of added packages."""
    return sorted(path for at in ("lib/python*/", "") for path in folder.glob(f"{at}site-packages/*.dist-info/RECORD"))


def _files(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Of each file that a package brought, and that is not about it: package, place in `folder`, and sha256 by RECORD."""
    for record in records(folder):
        package = canonicalize_name(record.parent.name.partition("-")[0])
        packages = os.path.relpath(record.parents[1], folder)
        for path, sha256 in rows(record):
            if sha256.startswith("sha256=") and ".dist-info/" not in path:
                yield package, os.path.join(packages, path), sha256.removeprefix("sha256=")


def _sha256(path: Path) -> str:
    """As RECORD writes it; empty where the file cannot be read."""
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").digest()
    except OSError:
        return ""
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
