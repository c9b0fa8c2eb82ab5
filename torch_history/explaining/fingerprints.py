"""What is the code of a release? Digests of its libraries and of those functions that run in some series of some release."""

import functools
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ..analysis.code import LEAST_SAMPLES, CodePair
from ..store.code import BLOCK, MOST_FUNCTIONS, Code, Hot, Loop, Section, Symbol
from . import machine_code, places
from .library import Library

LIBRARIES = ("libtorch_cpu.so", "libtorch_python.so", "libc10.so")
"""Whose functions are named: the others of a wheel are CUDA's, or hold too little of any series."""

DECLARATIONS = "torchgen/packaged/ATen/native/native_functions.yaml"  # where a wheel declares its operators

SECTIONS = (".text", ".rodata")

LEAST_SHARE = 0.004  # of a series' samples from which on a function of it is kept
MOST_OPERATORS = 60  # of a series, those that take most of its time


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


class Seen(NamedTuple):
    """What was seen to run in one release: of each case its samples by library's path and offset, operators, functions."""

    cases: Mapping[str, Mapping[str, Any]]
    profiled_on: str


def hot_functions(seen: Seen, libraries: Mapping[str, Library]) -> dict[str, dict[tuple[str, int], dict[int, int]]]:
    """Case -> library and number of each function that holds LEAST_SHARE of its samples -> address -> samples."""
    found: dict[str, dict[tuple[str, int], dict[int, int]]] = {}
    for case, answer in seen.cases.items():
        total = samples_in(answer)
        functions: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        for path, offsets in answer["samples"].items():
            name = path.rpartition("/")[2]
            if name in libraries:
                for offset, count in offsets.items():
                    address = libraries[name].address(int(offset))
                    number = libraries[name].holding(address) if address is not None else None
                    if address is not None and number is not None:
                        functions[name, number][address] = count
        found[case] = {of: at for of, at in functions.items() if sum(at.values()) >= LEAST_SHARE * total}
    return found


def hot(answer: Mapping[str, Any], functions: Mapping[tuple[str, int], Mapping[int, int]], of: "Describe") -> Hot:
    """What runs in a case, by what was seen and which of its samples lie in which functions."""
    symbols = {}
    for (name, number), addresses in functions.items():
        loop = of.code(name, number).hot_loop(addresses)
        symbols[key(of.libraries[name], number)] = sum(addresses.values()), loop.digest if loop else ""
    elsewhere: Counter[str] = Counter()
    for path, offsets in answer["samples"].items():
        elsewhere[places.library_name(path)] += sum(offsets.values())
    for name, number in functions:
        elsewhere[places.library_name(name)] -= sum(functions[name, number].values())
    operators = sorted(answer["operators"].items(), key=lambda row: (-row[1][0], row[0]))[:MOST_OPERATORS]
    called = sorted(answer["functions"].items(), key=lambda row: (-row[1][0], row[0]))[:MOST_FUNCTIONS]
    return Hot(
        samples=samples_in(answer),
        symbols=symbols,
        elsewhere={name: count for name, count in sorted(elsewhere.items()) if count},
        operators={places.shortened(name): tuple(row) for name, row in operators},
        functions={places.shortened(name): calls for name, (calls, _) in called},
    )


class Describe:
    """The functions of one release's libraries, each read once; `with_lines` as machine_code.function has it."""

    def __init__(self, libraries: Mapping[str, Library], with_lines: bool = True) -> None:
        @functools.cache
        def code(library: str, number: int) -> machine_code.Function:
            return machine_code.function(libraries[library], number, with_lines)

        self.libraries, self.code = libraries, code

    def symbol(self, library: str, number: int) -> Symbol:
        """A function as it is stored."""
        of, code = self.libraries[library], self.code(library, number)
        name, place = places.symbol_name(of.plain_names[number]), code.address % machine_code.LINE
        about = of.source(number)[:200], of.size(number), place, code.digest, code.instructions
        return Symbol(name, library, *about, tuple(Loop(*loop) for loop in code.loops))

    def symbols(self, keys: Collection[str]) -> dict[str, Symbol]:
        """Those of `keys` that the libraries have."""
        found: dict[str, Symbol] = {}
        if not keys:
            return found
        for library, of in self.libraries.items():
            for number in range(len(of)):
                if (named := key(of, number)) in keys and named not in found:
                    found[named] = self.symbol(library, number)
        return found


def of_release(
    release: str,
    python: str,
    sha256: str,
    libraries: Sequence[Path],
    seen: Seen | None,
    keys: Collection[str],
    known: Code | None = None,
) -> Code:
    """The code of a release by its `libraries`, with the functions that run in it and those of `keys`, of others' series.
    Where nothing was `seen` now, what runs is as it was `known`. Raises NotALibrary, and OSError without c++filt."""
    of = Describe({path.name: Library(path) for path in libraries})
    series, functions, profiled_on = (known.series, known.functions, known.profiled_on) if known else ({}, {}, "")
    if seen:
        series = {case: hot(seen.cases[case], at, of) for case, at in hot_functions(seen, of.libraries).items()}
        functions, profiled_on = _digests(seen, series), seen.profiled_on
    wanted = {*keys, *(named for each in series.values() for named in each.symbols)}
    return Code(
        release,
        python,
        sha256,
        {name: sections(library) for name, library in of.libraries.items()},
        of.symbols(wanted),
        series,
        functions,
        profiled_on,
        asked=digest_of(wanted),
        declared=known.declared if known else {},
    )


def _digests(seen: Seen, series: Mapping[str, Hot]) -> dict[str, str]:
    """Name -> digest of those functions of Python that are kept in `series`."""
    kept = {name for each in series.values() for name in each.functions}
    rows = (row for answer in seen.cases.values() for row in answer["functions"].items())
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
    found = [Describe({path.name: Library(path) for path in _installed(one)}, with_lines=False) for one in folders]
    both = zip(found, answers, strict=True)
    functions = [hot_functions(Seen({ONE: answer}, ""), of.libraries)[ONE] for of, answer in both]
    series = [hot(answer, of_case, of) for answer, of_case, of in zip(answers, functions, found, strict=True)]
    keys = {named for each in series for named in each.symbols}
    made = [
        Code("", "", "", {}, of.symbols(keys), {ONE: each}, _digests(Seen({ONE: answer}, ""), {ONE: each}))
        for of, each, answer in zip(found, series, answers, strict=True)
    ]
    return CodePair(made[0], made[1])


def _installed(folder: Path) -> list[Path]:
    """LIBRARIES of the torch in an environment."""
    every = (path for name in LIBRARIES for path in folder.glob(f"lib/python*/site-packages/torch/lib/{name}"))
    return sorted(every)
