"""How does what a kit measured come home? In one archive, which is a stranger's file until it was checked."""

from __future__ import annotations

import datetime
import re
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from recorder import Refused, certificate

from ..errors import UserError
from ..fleet.collecting import collect_folder
from ..releases.axis import Axis
from ..reports.check import check
from ..store.certificates import ASKED, FOLDER
from ..store.files import read_object
from ..store.machines import RECORD
from .make import MARK

RESULTS, ANSWERS = "results", "gpu.json"
"""In an archive: a folder of results, and what the GPU was asked for a certificate."""

MOST_BYTES = 256 * 2**20
MOST_FILES = 2_000
"""Of what is unpacked; ten minutes on a card make about a megabyte."""

NAME = re.compile(
    r"results/benchmarks\.json|results/[\w.+-]{1,150}/(calibration/)?[\w.+-]{1,150}|gpu\.json|kit\.json", re.ASCII
)
"""Files that an archive may hold."""

MOST_SHOWN = 10


@dataclass(frozen=True)
class Filed:
    """The machines whose results were filed, how many `lines` were new, and where the GPU's answers lie, None where
    there are none; `why` says then why not."""

    machines: list[str]
    lines: int
    answers: Path | None
    why: str = ""


def pack(kit: Path, results: Path, answers: Path) -> Path | None:
    """Writes the archive into the kit's folder, and returns its path; None where nothing was measured."""
    machines = sorted(path.parent.name for path in results.glob(f"*/{RECORD}"))
    if not machines and not answers.exists():
        return None
    name = machines[0] if machines else "answers"
    when = datetime.datetime.now(datetime.timezone.utc)
    path = kit / f"{name}-{when:%Y%m%dT%H%M%S}.tar.xz"
    with tarfile.open(path, "w:xz") as archive:
        archive.add(kit / MARK, MARK)
        if answers.exists():
            archive.add(answers, ANSWERS)
        for file in sorted(results.rglob("*")):
            inside = (PurePosixPath(RESULTS) / file.relative_to(results)).as_posix()
            if file.is_file() and NAME.fullmatch(inside):
                archive.add(file, inside)
    return path


def unpack(path: Path, folder: Path) -> None:
    """Takes an archive's files out into `folder`. Raises UserError where it holds anything that no kit writes."""
    try:
        with tarfile.open(path) as archive:
            size = 0
            for number, member in enumerate(archive, 1):
                size += member.size
                if not member.isreg() or not NAME.fullmatch(member.name):
                    raise UserError(f"{path} holds '{member.name[:80]}', which no kit writes. Nothing was filed.")
                if number > MOST_FILES or size > MOST_BYTES:
                    raise UserError(
                        f"{path} holds more than {MOST_FILES} files or {MOST_BYTES // 2**20} MiB. Nothing was filed."
                    )
                target = folder / member.name
                if target.exists():
                    raise UserError(f"{path} holds '{member.name}' twice. Nothing was filed.")
                target.parent.mkdir(parents=True, exist_ok=True)
                stream = archive.extractfile(member)
                target.write_bytes(stream.read() if stream else b"")
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise UserError(f"{path} is no archive of a kit: {error}. `./measure` in a kit writes one.") from error


def file(path: Path, results: Path, env: Path, axis: Axis, tell: Callable[[str], None]) -> Filed:
    """Checks an archive and adds what it holds to `results`, under the machine that its record names. Raises UserError where
    anything in it is wrong; nothing is added then."""
    with tempfile.TemporaryDirectory(prefix="torch-history-") as scratch:
        folder = Path(scratch)
        unpack(path, folder)
        theirs = folder / RESULTS
        records = sorted(theirs.glob(f"*/{RECORD}"))
        if records:
            tell("Checking every line")
            found = check(theirs, axis)
            if found.problems:
                shown = " ".join(text.replace(f"{scratch}/", "") for text in found.problems[:MOST_SHOWN])
                raise UserError(
                    f"{path} cannot be filed, because {len(found.problems)} things in it are wrong. {shown}"
                )
        answers, why = _answers(folder / ANSWERS, results)
        lines = collect_folder(theirs, results, env).lines if records else 0
        if answers:
            answers.parent.mkdir(parents=True, exist_ok=True)
            answers.write_bytes((folder / ANSWERS).read_bytes())
        if not records and not answers:
            raise UserError(f"{path} holds no results and no GPU's answers. Nothing was filed.")
        machines = [str(read_object(record)["machine"]) for record in records]
        return Filed(machines, lines, answers, why)


def _answers(path: Path, results: Path) -> tuple[Path | None, str]:
    """Where a GPU's answers are to lie in `results`, or why they are not filed. Raises UserError where they are none."""
    if not path.exists():
        return None, "the archive holds none"
    try:
        asked = certificate.read(path)
    except Refused as refused:
        raise UserError(f"The GPU's answers cannot be filed. {refused}") from refused
    if asked.recorder:
        return None, "they are the recorder's, and no GPU's"
    return results / FOLDER / f"{certificate.name_of(asked.here)}{ASKED}", ""


def mark(kit: Path) -> dict[str, object]:
    """What a kit says of itself. Raises UserError where `kit` is none."""
    try:
        return read_object(kit / MARK)
    except ValueError as error:
        raise UserError(f"{kit} is no kit: {error}. `torch-history kit make` makes one.") from error
