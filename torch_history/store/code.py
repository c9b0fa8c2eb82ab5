"""What is the code of a release, and what of it runs in a series? A file per release and Python in `results/code/`, by
`python -m tools.fingerprint` (docs/explain.md). It is the same for every machine, but for the processor that ran it."""

import functools
import gzip
import re
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ..system.files import readable, write_atomically
from ..system.program import SOURCES

NAME_OF_FOLDER = "code"
FOLDER = Path("results") / NAME_OF_FOLDER  # in a checkout
SCHEMA = 1
LARGEST = 2**24  # bytes of a file's text; nothing larger is read
BLOCK = 2**16  # bytes of a section that one digest of `Section.blocks` covers
MOST_FUNCTIONS = 80  # functions of Python that are kept of a series: those that are called most often

Text = Annotated[str, Meta(max_length=400)]
Count = Annotated[int, Meta(ge=0, le=2**40)]
Share = Annotated[float, Meta(ge=-1, le=1e9)]


class Section(Struct, frozen=True, array_like=True):
    """Bytes of a section of a library, and a digest of four bytes, in hexadecimal, of every BLOCK bytes of it."""

    size: Count
    blocks: Annotated[str, Meta(max_length=2**18)]

    def differing(self, other: "Section") -> int:
        """In how many blocks two sections of one size differ."""
        places = range(0, len(self.blocks), 8)
        return sum(self.blocks[at : at + 8] != other.blocks[at : at + 8] for at in places)


class Loop(Struct, frozen=True, array_like=True):
    """A loop of a function: first byte and the one after its last, the digest and number of its instructions."""

    begin: Count
    end: Count
    digest: Text
    instructions: Count


class Symbol(Struct, frozen=True, array_like=True):
    """A function of a library: its bytes, at which of 64 it begins, the digest and number of instructions, loops."""

    name: Text
    library: Text
    source: Text
    size: Count
    place: Annotated[int, Meta(ge=0, lt=64)]
    digest: Text
    instructions: Count
    loops: tuple[Loop, ...] = ()


class Hot(Struct, frozen=True):
    """What runs in a call: `samples` of the processor in all; of them those in functions, by the key of `symbols`, with the
    digest of the loop that holds nearly all of them, empty where none does; and those `elsewhere`, by the library's name.
    Operators: name -> share of the operators' own time, calls a call, and
    its share with all that it calls, where that was asked. Functions of Python: name -> calls a call."""

    samples: Count
    symbols: dict[Text, tuple[Count, Text]] = {}
    elsewhere: dict[Text, Count] = {}
    operators: dict[Text, Annotated[tuple[Share, ...], Meta(min_length=2, max_length=3)]] = {}
    functions: dict[Text, Share] = {}


class Code(Struct, frozen=True):
    """The code of a release's wheel for one Python. `sha256` is the wheel's; `profiled_on` the processor on which it was
    seen what runs, empty where nothing was run. `libraries`: file -> section -> its bytes. `symbols`: key -> function, the
    key being a digest of its whole name and source file. `functions`: name -> digest of a Python function's code. `asked` is
    a digest of the keys that were looked for: those of other releases' series, too. `declared`: operator with overload ->
    digest of its entry in native_functions.yaml, empty where the wheel does not hold that."""

    release: Text
    python: Text
    sha256: Text
    libraries: dict[Text, dict[Text, Section]]
    symbols: dict[Text, Symbol] = {}
    series: dict[Text, Hot] = {}
    functions: dict[Text, Text] = {}
    profiled_on: Text = ""
    asked: Text = ""
    declared: dict[Text, Text] = {}
    schema: Annotated[int, Meta(ge=1, le=SCHEMA)] = SCHEMA


def here() -> Path:
    """The folder of the suite in the working folder, else of the one that this program came with."""
    return FOLDER if FOLDER.is_dir() else SOURCES / FOLDER


def path_of(release: str, python: str) -> Path:
    """The file of a release, by its tag, for one Python."""
    return here() / f"{release}-py{python}.json.gz"


def read(release: str, python: str) -> Code | None:
    """What is known of a release's code; None where there is no file. One that is damaged is left out with a warning."""
    path = path_of(release, python)
    return _read(path.resolve(), path.stat().st_mtime_ns) if path.is_file() else None


@functools.lru_cache(maxsize=128)
def _read(path: Path, changed: int) -> Code | None:
    return readable(path, parse)


def parse(path: Path) -> Code:
    """What is known of the code of a release by its file. Raises ValueError, in words that follow the file's name."""
    try:
        with gzip.open(path) as stream:
            text = stream.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise ValueError(f"it is larger than {LARGEST // 2**20} MiB")
        found = msgspec.json.decode(text, type=Code)
    except (OSError, EOFError, msgspec.MsgspecError) as error:
        raise ValueError(f"it holds no code of a release ({error})") from error
    if path.name != path_of(found.release, found.python).name:
        raise ValueError(f"it is that of {found.release} for Python {found.python}")
    return found


def write(code: Code) -> Path:
    """Stores what is known of a release's code, in place of what was. Returns its file."""
    path = path_of(code.release, code.python)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, gzip.compress(msgspec.json.encode(code), mtime=0))
    return path


def known() -> list[tuple[str, str]]:
    """The releases, by their tags, and Pythons that have a file."""
    names = (re.fullmatch(r"(v[\d.]+)-py(3\.\d+)\.json\.gz", path.name) for path in sorted(here().glob("*.json.gz")))
    return [(match[1], match[2]) for match in names if match]
