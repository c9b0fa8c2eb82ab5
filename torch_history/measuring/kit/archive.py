"""How does what a kit measured come home? In one archive, which is a stranger's file until it was checked."""

import datetime
import io
import lzma
import re
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from recorder import certificate

from ...releases.axis import Axis
from ...store.certificates import ASKED, FOLDER
from ...store.collecting import collect
from ...store.machines import RECORD
from ...system.errors import UserError
from ...system.files import read_bytes, read_object, write_atomically
from ..machine import FOLDER_NAME
from .check import check
from .parts import MEMORY

MARK = "kit.json"
"""The file in a kit that says what it is. Written first: who finds it in a folder may replace what lies there."""

LISTED = Path("results/benchmarks.json")
"""asv's list of all cases, in a suite."""

RESULTS, ANSWERS = "results", "gpu.json"
"""In an archive: a folder of results, and what the GPU was asked for a certificate."""

MOST_BYTES = 64 * 2**20
MOST_FILES = 2_000
"""Of what is unpacked; ten minutes on a card make about a megabyte."""

NAME = re.compile(
    rf"results/benchmarks\.json|results/(?!{FOLDER}/){FOLDER_NAME}/(calibration/)?{FOLDER_NAME}|gpu\.json|kit\.json",
    re.ASCII,
)
"""Files that an archive may hold."""


@dataclass(frozen=True)
class Filed:
    """Machines that were filed, how many `lines` were new, and where the GPU's answers lie; None where `why` says."""

    machines: list[str]
    lines: int
    answers: Path | None
    why: str = ""


def pack(kit: Path, results: Path, answers: Path) -> Path | None:
    """Writes an archive of all results of machines that were measured since the newest one, and of new answers, if any."""
    when = datetime.datetime.now(datetime.timezone.utc)
    past = (path.stat().st_mtime for path in kit.glob("*.tar.xz"))
    since = max((at for at in past if at <= when.timestamp()), default=0.0)  # none of a clock that was set back
    folders = (record.parent for record in sorted(results.glob(f"*/{RECORD}")))
    machines = [of.name for of in folders if any(path.stat().st_mtime >= since for path in of.rglob("*.jsonl"))]
    asked = answers.exists() and answers.stat().st_mtime >= since
    if not machines and not asked:
        return None
    name = machines[0] if machines else "answers"
    path = kit / f"{name}-{when:%Y%m%dT%H%M%S}.tar.xz"
    tops = [results / each for each in (LISTED.name, *machines)]
    packed = io.BytesIO()  # an archive that a full disk cut off would pass for one
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        archive.add(kit / MARK, MARK)
        if asked:
            archive.add(answers, ANSWERS)
        for file in sorted(path for top in tops for path in [top, *top.rglob("*")]):
            inside = (PurePosixPath(RESULTS) / file.relative_to(results)).as_posix()
            if file.is_file() and NAME.fullmatch(inside):
                archive.add(file, inside)
    write_atomically(path, packed.getvalue())
    return path


def unpack(path: Path, folder: Path) -> None:
    """Takes an archive's files out into `folder`. Raises UserError where it holds anything that no kit writes."""
    try:
        with tarfile.open(fileobj=io.BytesIO(_decompressed(path)), mode="r:") as archive:
            for number, member in enumerate(archive, 1):
                if number > MOST_FILES:
                    raise UserError(f"{path} holds more than {MOST_FILES} files. Nothing was filed.")
                if not member.isreg() or member.issparse() or not NAME.fullmatch(member.name):
                    raise UserError(f"{path} holds {member.name[:80]!r}, which no kit writes. Nothing was filed.")
                target = folder / member.name
                if target.exists():
                    raise UserError(f"{path} holds '{member.name}' twice. Nothing was filed.")
                target.parent.mkdir(parents=True, exist_ok=True)
                stream = archive.extractfile(member)
                target.write_bytes(stream.read() if stream else b"")
    except (tarfile.TarError, EOFError, ValueError, ArithmeticError, RecursionError) as error:
        raise UserError(f"{path} {NO_ARCHIVE}") from error
    if not (folder / MARK).exists():
        raise UserError(f"{path} {NO_ARCHIVE}")


NO_ARCHIVE = "is no archive of a kit, or it is damaged. `./measure` in a kit writes one, whose name ends in .tar.xz."


def _decompressed(path: Path) -> bytes:
    """All of an archive, at most MOST_BYTES. Raises UserError where it is longer, damaged, or no archive."""
    decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)
    try:
        data = decoder.decompress(read_bytes(path), max_length=MOST_BYTES + 1)
    except ValueError as error:
        raise UserError(f"{path} cannot be filed: {error}.") from error
    except (lzma.LZMAError, EOFError) as error:
        raise UserError(f"{path} {NO_ARCHIVE}") from error
    if len(data) > MOST_BYTES:
        raise UserError(f"{path} holds more than {MOST_BYTES // 2**20} MiB, which no kit writes. Nothing was filed.")
    if not decoder.eof or decoder.unused_data:
        raise UserError(f"{path} {NO_ARCHIVE}")
    return data


def file(path: Path, results: Path, env: Path, axis: Axis, tell: Callable[[str], None]) -> Filed:
    """Adds what an archive holds to `results`. Raises UserError where anything in it is wrong, and adds nothing."""
    with tempfile.TemporaryDirectory(prefix="torch-history-") as scratch:
        try:
            return _filed(path, Path(scratch), results, env, axis, tell)
        except UserError as error:
            raise UserError(str(error).replace(f"{scratch}/", "")) from error


def _filed(path: Path, folder: Path, results: Path, env: Path, axis: Axis, tell: Callable[[str], None]) -> Filed:
    unpack(path, folder)
    theirs = folder / RESULTS
    records = sorted(theirs.glob(f"*/{RECORD}"))
    if records:
        tell("Checking every line")
        found = check(theirs, axis, trusted=False)
        if found.problems:
            shown = " ".join(found.problems[:10])
            if "of sources that are not known here" in shown:
                shown += " Its kit is of another version than this clone: measure with a kit that this clone makes."
            raise UserError(f"{path} cannot be filed, because {len(found.problems)} things in it are wrong. {shown}")
    answers, why = _answers(folder / ANSWERS, results)
    if not records and not answers:
        raise UserError(f"{path} holds no results, and of a GPU's answers {why}. Nothing was filed.")
    lines = collect([theirs], results, env).lines if records else 0
    if answers:
        answers.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(answers, (folder / ANSWERS).read_bytes())
    machines = [str(read_object(record)["machine"]) for record in records]
    return Filed(machines, lines, answers, why)


def _answers(path: Path, results: Path) -> tuple[Path | None, str]:
    """Where a GPU's answers are to lie in `results`, or why they are not filed. Raises UserError where they are none."""
    if not path.exists():
        return None, "the archive holds none"
    try:
        asked = certificate.read(path)
    except UserError as refused:
        raise UserError(f"The GPU's answers cannot be filed. {refused}") from refused
    if asked.recorder:
        return None, "they are the recorder's, and no GPU's"
    target = results / FOLDER / f"{certificate.name_of(asked.here)}{ASKED}"
    if target.exists() and target.read_bytes() != path.read_bytes():
        return None, f"{target} holds other answers of that release and card; move it away to file these"
    return target, ""


def mark(kit: Path) -> dict[str, object]:
    """What a kit says of itself. Raises UserError where `kit` is none."""
    try:
        return read_object(kit / MARK)
    except ValueError as error:
        raise UserError(f"{kit} is no kit: {error}. `python -m tools.kit` makes one.") from error
