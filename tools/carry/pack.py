"""How does a folder of gigabytes become the parts that `kit unpack` unpacks? By the system's tar, xz and split."""

import shlex
import subprocess
from pathlib import Path

from torch_history.measuring.kit.parts import LIST, digest
from torch_history.system.errors import UserError
from torch_history.system.files import write_atomically

TAR = "tar --create --null --verbatim-files-from --files-from=- --hard-dereference --mtime=@0 --owner=0 --group=0"
PARTS, MARK = "part[0-9][0-9]", ".torch-history-parts"
FILTERS = "--x86 --lzma2=preset=6"
"""Most of a release is machine code of x86."""


def earlier(target: Path) -> list[Path]:
    """The list and the parts in `target`, which MARK says are ours. Raises UserError where it holds files without that."""
    found = [*target.iterdir()] if target.is_dir() else []
    if target.is_file() or (found and not (target / MARK).is_file()):
        raise UserError(f"{target} holds files that this program did not make. Nothing was changed: name a new folder.")
    return [path for path in found if path.name == LIST or path.match(PARTS)]


def pack(folder: Path, target: Path, limit: int) -> list[Path]:
    """Packs every file in `folder` into parts in `target`, of at most `limit` bytes each, and lists them last. xz tells
    on a terminal how far it is. Raises UserError where one of the programs fails."""
    target.mkdir(parents=True, exist_ok=True)
    for old in earlier(target):
        old.unlink()
    (target / MARK).touch()
    plain = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    paths = sorted((path for path in plain if "__pycache__" not in path.parts), key=lambda path: (path.suffix, path))
    names = b"\0".join(bytes(path.relative_to(folder)) for path in paths)
    begin = shlex.quote(str(target.absolute() / "part"))  # the command runs in `folder`
    split = f"split --bytes={limit} --numeric-suffixes --suffix-length=2 - {begin}"
    command = ["bash", "-o", "pipefail", "-c", f"{TAR} | xz --verbose --threads=0 {FILTERS} | {split}"]
    if subprocess.run(command, cwd=folder, input=names).returncode:
        raise UserError(f"{folder} could not be packed, for the reason above.")
    made = sorted(target.glob(PARTS))
    write_atomically(target / LIST, "".join(f"{digest(path)}  {path.name}\n" for path in made))
    return made
