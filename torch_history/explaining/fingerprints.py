"""What is the code of a release? Digests of its libraries and of those functions that run in some series of some release."""

import ast
import difflib
import functools
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from msgspec.structs import replace

from contract.bare import bare, definitions

from ..analysis.code import LEAST_SAMPLES, CodePair
from ..store.code import BLOCK, MOST_FUNCTIONS, Code, Hot, Section, Symbol
from . import machine_code, places
from .library import Library

LIBRARIES = ("libtorch_cpu.so", "libtorch_python.so", "libc10.so")
"""Whose functions are named: the others of a wheel are CUDA's, or hold too little of any series."""

DECLARATIONS = "torchgen/packaged/ATen/native/native_functions.yaml"  # where a wheel declares its operators

SECTIONS = (".text", ".rodata")

LEAST_SHARE = 0.004  # of a series' samples from which on a function of it is kept
MOST_OPERATORS = 60  # of a series, those that take most of its time
MOST_LINES = 20  # of a function's difference, those that are shown
CONTEXT = 1  # unchanged lines around a change of it


class Case(NamedTuple):
    """What is called to see what runs: a question's variant in a size, whose calls the metric is of."""

    workload: str
    variant: str
    size: str
    metric: str

    @property
    def key(self) -> str:
        return f"{self.workload} {self.metric} {self.variant} {self.size}"


def declared(text: bytes) -> dict[str, str]:
    """Operator with overload, such as `index.Tensor` -> a digest of its entry in native_functions.yaml, in any order."""
    entries = yaml.load(text, yaml.CSafeLoader)
    texts = {entry["func"].partition("(")[0]: json.dumps(entry, sort_keys=True).encode() for entry in entries}
    return {name: hashlib.blake2b(of, digest_size=4).hexdigest() for name, of in texts.items()}


def sections(library: Library) -> dict[str, Section]:
    """SECTIONS of a library with the digests of their blocks."""
    found = {}
    for name in SECTIONS:
        if name in library.sections:
            content = library.content(name)
            blocks = (content[at : at + BLOCK] for at in range(0, len(content), BLOCK))
            digests = (hashlib.blake2b(block, digest_size=4).hexdigest() for block in blocks)
            found[name] = Section(len(content), "".join(digests))
    return found


def key(library: Library, number: int) -> str:
    """The same for a function in every release that has it: a digest of its name in C++ and of its source file."""
    whole = f"{library.plain_names[number]} {library.source(number)}"
    return hashlib.blake2b(whole.encode(), digest_size=6).hexdigest()


def hot(answer: Mapping[str, Any], of: "Describe") -> Hot:
    """What runs in a case, by what was seen; of functions, those that hold LEAST_SHARE of the samples."""
    total = samples_in(answer)
    functions: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    elsewhere: Counter[str] = Counter()
    for path, offsets in answer["samples"].items():
        elsewhere[places.library_name(path)] += sum(offsets.values())
        name = path.rpartition("/")[2]
        for offset, count in offsets.items() if name in of.libraries else ():
            address = of.libraries[name].address(int(offset))
            number = of.libraries[name].holding(address) if address is not None else None
            if address is not None and number is not None:
                functions[name, number][address] = count
    symbols = {}
    for (name, number), addresses in functions.items():
        if (held := sum(addresses.values())) >= LEAST_SHARE * total:
            loop = of.code(name, number).hot_loop(addresses)
            symbols[key(of.libraries[name], number)] = held, loop.digest if loop else ""
            elsewhere[places.library_name(name)] -= held
    operators = sorted(answer["operators"].items(), key=lambda row: (-row[1][0], row[0]))[:MOST_OPERATORS]
    called = sorted(answer["functions"].items(), key=lambda row: (-row[1][0], row[0]))[:MOST_FUNCTIONS]
    return Hot(
        samples=total,
        symbols=symbols,
        elsewhere={name: count for name, count in sorted(elsewhere.items()) if count},
        operators={places.shortened(name): tuple(row) for name, row in operators},
        functions={places.shortened(name): calls for name, (calls, _) in called},
    )


class Describe:
    """A release's functions, each read once; `with_lines` as in machine_code.function. Raises NotALibrary, and OSError."""

    def __init__(self, paths: Iterable[Path], with_lines: bool = True) -> None:
        libraries = self.libraries = {path.name: Library(path) for path in paths}
        self.code = functools.cache(
            lambda library, number: machine_code.function(libraries[library], number, with_lines)
        )

    def symbols(self, keys: Collection[str]) -> dict[str, Symbol]:
        """Those of `keys` that the libraries have, as they are stored."""
        found: dict[str, Symbol] = {}
        for library, of in self.libraries.items() if keys else ():
            for number in range(len(of)):
                if (named := key(of, number)) in keys and named not in found:
                    code, source, size = self.code(library, number), of.source(number)[:200], of.size(number)
                    name, place = places.symbol_name(of.plain_names[number]), code.address % machine_code.LINE
                    about = source, size, place, code.digest, code.instructions, code.loops
                    found[named] = Symbol(name, library, *about)
        return found


def of_release(
    release: str,
    python: str,
    sha256: str,
    libraries: Sequence[Path],
    seen: Mapping[str, Mapping[str, Any]] | None,
    profiled_on: str,
    keys: Collection[str],
    known: Code | None = None,
) -> Code:
    """The code of a release by its `libraries`, with the functions that run in it and those of `keys`, of others' series. By
    what was `seen` to run in each case, as `see` gives it; where nobody looked, as it was `known`. Raises NotALibrary, and
    OSError without c++filt."""
    of = Describe(libraries)
    described = {name: sections(library) for name, library in of.libraries.items()}
    found = Code(release, python, sha256, described, declared=known.declared if known else {})
    if seen is not None:
        series = {case: hot(answer, of) for case, answer in seen.items()}
        functions = _digests(seen.values(), series.values())
        found = replace(found, series=series, functions=functions, profiled_on=profiled_on)
    elif known:
        found = replace(found, series=known.series, functions=known.functions, profiled_on=known.profiled_on)
    wanted = {*keys, *(named for each in found.series.values() for named in each.symbols)}
    return replace(found, symbols=of.symbols(wanted), asked=digest_of(wanted))


def _digests(answers: Iterable[Mapping[str, Any]], series: Iterable[Hot]) -> dict[str, str]:
    """Name -> digest of those functions of Python that are kept in `series`."""
    kept = {name for each in series for name in each.functions}
    rows = (row for answer in answers for row in answer["functions"].items())
    every = {places.shortened(name): digest for name, (_, digest) in rows}
    return {name: digest for name, digest in every.items() if digest and name in kept}


def digest_of(keys: Collection[str]) -> str:
    """As `Code.asked` has it."""
    return hashlib.blake2b(" ".join(sorted(keys)).encode(), digest_size=8).hexdigest()


TRIES, LONGER = 3, 3  # how often a case with too few samples is looked at again, for how many times as long


def samples_in(answer: Mapping[str, Any]) -> int:
    return sum(sum(of.values()) for of in answer["samples"].values())


Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def see(cases: Sequence[Case], ask: Ask, file: Path, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """What runs in each of `cases`, by a release that `ask` asks for so many `seconds`; what cannot run is left out."""
    found = {}
    for number, case in enumerate(cases, 1):
        say(f"  {number} of {len(cases)}: {case.key}")
        step = {"do": "profile", "profile": "hot", "file": str(file), "case": case._asdict()}
        for tried in range(1 + TRIES):
            answer = ask({**step, "perf": seconds * LONGER**tried})
            if "failed" in answer or samples_in(answer) >= LEAST_SAMPLES:
                break
        if "failed" in answer:
            say(f"  left out: {answer['failed']}")
        else:
            found[case.key] = answer
    return found


ONE = "one case"  # name of the case in what `pair` gives


def pair(folders: Sequence[Path], answers: Sequence[Mapping[str, Any]]) -> CodePair:
    """The code of old and new, in the environments in `folders`, of what ran in one case. Raises as `of_release`."""
    ends = []
    for folder, answer in zip(folders, answers, strict=True):
        found = (path for name in LIBRARIES for path in folder.glob(f"lib/python*/site-packages/torch/lib/{name}"))
        of = Describe(sorted(found), with_lines=False)
        ends.append((of, answer, hot(answer, of)))
    keys = {named for *_, each in ends for named in each.symbols}
    old, new = (
        Code("", "", "", {}, of.symbols(keys), {ONE: each}, _digests([answer], [each])) for of, answer, each in ends
    )
    return CodePair(old, new)


def difference(folders: Sequence[Path], name: str) -> str:
    """What changed in a function between the environments in `folders`, old and new, as a unified diff of its code without
    docstrings and annotations; `name` is a path below site-packages and a qualified name, as measure/hot.py gives it.
    Empty where either has no such function, or its code is the same."""
    path, _, qualified = name.partition(" ")
    old, new = (_source(folder, path, qualified) for folder in folders)
    if old is None or new is None:
        return ""
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=CONTEXT))[2:]
    more = [f"... {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
    return "\n".join([*lines[:MOST_LINES], *more])


def _source(folder: Path, path: str, qualified: str) -> str | None:
    """The code of a function in an environment, written anew from its syntax tree; None where it has none."""
    for file in sorted(folder.glob(f"lib/python*/site-packages/{path}")):
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"))
        except (OSError, SyntaxError, ValueError):
            return None
        node = dict(definitions(tree)).get(qualified)  # of several the last one, as Python would run it
        return ast.unparse(ast.fix_missing_locations(bare(node))) if node else None
    return None
