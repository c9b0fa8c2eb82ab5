"""What was measured, launch by launch? docs/results.md says where the lines lie."""

import datetime
import hashlib
import json
import operator
import re
import secrets
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, to_builtins
from msgspec.json import Decoder
from msgspec.structs import replace

from contract.metrics import metric_of

from ..system.files import LONGEST_NAME, append_lines, is_name, parse, read_lines, require_shallow, sealed, warn

ENVIRONMENTS = ".environments"
"""Ending of the file beside a release's launches that says what was measured; asv would load one that ends in .json."""

PACKED = ".gz"
LINES = (".jsonl", f".jsonl{PACKED}")
"""Endings of files of launches: lines are appended to the first; `make pack` moves them into the second."""

LEAST, MOST = 1e-10, 1e6
"""Seconds, or a ratio, of a sample: a tenth of a nanosecond is less than a clock tells, and 1e6 s are 11 days."""
MOST_COUNTED = 2.0**60  # bytes, or what else is counted, are fewer


def new_session() -> str:
    """A name for a session, readable and sortable: its start in UTC and a random part."""
    return f"{datetime.datetime.now(datetime.timezone.utc):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


Time = Annotated[float, Meta(ge=LEAST, le=MOST)]
Size = Annotated[int, Meta(ge=0, lt=2**60)]
Step = Annotated[int, Meta(gt=-(2**60), lt=2**60)]
Form = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_. ]{1,60}\Z")]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}\Z")]
Share = Annotated[float, Meta(ge=0, le=2)]
Tag = Annotated[str, Meta(max_length=LONGEST_NAME)]


class Tensor(Struct, frozen=True, omit_defaults=True):
    """`count` tensors, arrays or numbers of one form that a result holds one after another; `strides` in numbers, `digest`
    and `not_finite` of the numbers of all of them. On the recorder, which has none, `strides` and `digest` are empty."""

    dtype: Form
    shape: Annotated[tuple[Size, ...], Meta(max_length=64)]
    strides: Annotated[tuple[Step, ...], Meta(max_length=64)]
    digest: Annotated[str, Meta(pattern=r"^([0-9a-f]{16})?\Z")]
    count: Annotated[int, Meta(ge=1, lt=2**60)] = 1
    not_finite: Size = 0


Differences = Annotated[tuple[Share | None, ...], Meta(max_length=64)]


class Returned(Struct, frozen=True, omit_defaults=True):
    """What a case returns. `differences`: older release of the same session -> of each of `tensors` the largest difference,
    as a share of the largest number of both, None where their shapes differ or it is not known. `again`: the same between
    two calls of this release on equal inputs, empty where it was called once or both returned the same."""

    tensors: Annotated[tuple[Tensor, ...], Meta(max_length=64)]
    differences: Annotated[dict[Tag, Differences], Meta(max_length=64)] = {}
    again: Differences = ()


class Case(Struct, frozen=True, omit_defaults=True):
    """What one launch found for one set of parameters: `samples`, seconds per call to seven digits, or a `value`, a count or
    bytes; or why neither: `unavailable` (this release cannot run it), `failed` (how it went wrong) or `unmeasured` (the
    suite could not). `turns`: seconds per call of each turn among the releases of its round, to five digits. `detectable`:
    of what each call leaves, the least that would have been told. `returned`: in one launch of a session."""

    parameters: tuple[str, ...]
    samples: tuple[Time, ...] = ()
    value: float | int | None = None
    unavailable: str = ""
    failed: str = ""
    detectable: Size | None = None
    unmeasured: str = ""
    turns: tuple[Time, ...] = ()
    returned: Returned | None = None

    @property
    def reason(self) -> str:
        """Why there is no number, in words that stand for themselves; empty where there is one."""
        return self.failed or self.unavailable or (self.unmeasured and f"not measured, because {self.unmeasured}")

    @property
    def number(self) -> float | None:
        """The launch's one number: the value, or the quickest of its samples, since what disturbs a process only adds to its
        time (Chen and Revels 2016, "Robust benchmarking in noisy environments"); None where there is a reason instead."""
        return min(self.samples) if self.samples else self.value


class Launch(Struct, frozen=True):
    """One benchmark in one start of the interpreter, in a `round` of its session from 1, 0 where plain asv ran it."""

    session: str
    round: Annotated[int, Meta(ge=0, le=1_000_000)]
    launch: str
    release: str
    environment: str
    benchmark: str
    version: str
    started_at: str
    duration: Annotated[float, Meta(ge=0, le=MOST)]
    facts: dict[str, Any]
    cases: tuple[Case, ...]

    def to_json(self) -> str:
        return json.dumps(to_builtins(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str | bytes) -> "Launch":
        """Raises ValueError where `line` holds what no launch can; keys that are not known are passed over."""
        try:
            launch = _DECODER.decode(line)
        except RecursionError as error:
            raise ValueError("it is no JSON") from error
        require_shallow(launch.facts)
        names = _names_of(launch)
        if not "".join(names).isprintable() or max(map(len, names)) > LONGEST_NAME:
            wrong = next(name for name, value in zip(_NAMES, names, strict=True) if not is_name(value))
            raise ValueError(f"its '{wrong}' is no name of at most {LONGEST_NAME} printable characters")
        for name, kind, words in (("conditions", dict, "object"), ("threads", int, "number")):
            if not isinstance(launch.facts.get(name, kind()), kind):
                raise ValueError(f"its 'facts.{name}' are no {words}")
        least, most = bounds(launch.benchmark)
        for case in launch.cases:
            if case.value is None and not case.samples and not case.reason:
                raise ValueError("a case has neither a number nor a reason")
            if case.value is not None and not least <= case.value < most:
                raise ValueError(f"a time or a ratio is between {LEAST} and {MOST:.0e}, a count between 0 and 2**60")
        if any(case.failed for case in launch.cases):
            on_recorder = launch.facts.get("device") == "recorder"
            return replace(launch, cases=tuple(_of_today(case, on_recorder) for case in launch.cases))
        return launch


def _of_today(case: Case, on_recorder: bool) -> Case:
    """A stored case, with a failure of the suite told as that: once these were stored as those of what it measured."""
    poisoned = case.failed.startswith("RuntimeError: Cannot re-initialize CUDA in forked subprocess")
    ours = case.failed.startswith("benchmark timed out") or (on_recorder and poisoned)
    return replace(case, failed="", unmeasured=case.failed) if ours else case


def bounds(benchmark: str) -> tuple[float, float]:
    """Between which its numbers lie. `retained` alone may be negative: a call may free what an earlier one took."""
    metric = metric_of(benchmark)
    return (LEAST, MOST) if metric.varies else (-MOST_COUNTED * (metric.name == "retained"), MOST_COUNTED)


_DECODER = Decoder(Launch)
_NAMES = ("session", "launch", "release", "environment", "benchmark", "version", "started_at")
_names_of = operator.attrgetter(*_NAMES)


def append_launches(path: Path, launches: list[Launch]) -> None:
    """Appends `launches`, each with a checksum, as `append_lines` does."""
    append_lines(path, [sealed(launch.to_json()) for launch in launches])


def machines_in(results_dir: Path) -> list[str]:
    """The folders with launches of a machine; links and names that cannot be printed are left out with a warning."""
    folders = {path.parent for path in results_dir.glob("*/*.jsonl*") if path.name.endswith(LINES)}
    for folder in sorted(folders):
        if why := unfit(folder):
            warn(f"{str(folder)!r} is skipped: {why}.")
    return sorted(folder.name for folder in folders if not unfit(folder))


def unfit(folder: Path) -> str:
    """Why a folder cannot be a machine's, in words that follow its name; empty where it can."""
    if folder.is_symlink():
        return "it is a link"
    if folder.name.startswith("."):
        return "a machine's name does not begin with a dot"
    wrong = f"a machine's name has at most {LONGEST_NAME} characters, all of them printable"
    return "" if is_name(folder.name) else wrong


def read_launches(
    results_dir: Path, machine: str, environment: str = "", questions: Collection[str] = ()
) -> Iterator[Launch]:
    """Every launch stored for `machine`, or of one `environment` and `questions`; damaged lines are warned of."""
    for path in files_of(Path(results_dir, machine)):
        if not environment or of_file(path)[1] in ("", environment):
            yield from (launch for launch in read_file(path, questions) if environment in ("", launch.environment))


def files_of(folder: Path) -> list[Path]:
    """The files of launches in a machine's folder, of each release the compressed one first, which has the older lines."""
    return sorted(
        (path for path in folder.glob("*.jsonl*") if path.name.endswith(LINES)),
        key=lambda path: (of_file(path), path.suffix != PACKED),
    )


def of_file(path: Path) -> tuple[str, str]:
    """The release and the environment that a file of launches is of, by its name; no environment where it names none."""
    release, _, environment = path.name.removesuffix(PACKED).removesuffix(".jsonl").partition("-")
    return release, environment


def read_file(path: Path, questions: Collection[str] = ()) -> Iterator[Launch]:
    """The launches of one file, as `read_launches` reads them."""
    marks = [f'"{question}.'.encode() for question in questions]
    for launch in read_lines(path, Launch.from_json, lambda line: not marks or any(mark in line for mark in marks)):
        if not questions or launch.benchmark.partition(".")[0] in questions:
            yield launch


def read_on_axis(
    results_dir: Path, machine: str, axis: Container[str], environment: str = "", questions: Collection[str] = ()
) -> Iterator[Launch]:
    """Those of `read_launches` whose release is on the axis; where others are left out a warning names their releases."""
    others = set()
    for launch in read_launches(results_dir, machine, environment, questions):
        if launch.release in axis:
            yield launch
        else:
            others.add(launch.release)
    if others:
        folder = Path(results_dir, machine)
        warn(f"{folder}: launches of {', '.join(sorted(others))} are skipped: there is no such release on the axis.")


def append_environment(path: Path, environment: dict[str, Any]) -> None:
    """Adds `environment` to a release's file unless it is there; a line is {"id", "environment", "crc32"}."""
    known = {line["id"] for line in read_lines(path, environment_of)} if path.exists() else set()
    if (digest := digest_of(environment)) not in known:
        append_lines(path, [sealed(json.dumps({"id": digest, "environment": environment}, separators=(",", ":")))])


def read_environments(results_dir: Path, machine: str, release: str, environment: str) -> dict[str, dict[str, Any]]:
    """By id, what was measured for `release` in `environment` (`release-py3.11`), the last one last."""
    path = Path(results_dir, machine, f"{release}-{environment}{ENVIRONMENTS}")
    lines = read_lines(path, environment_of) if path.exists() else ()
    return {line["id"]: dict(line["environment"]) for line in lines}


def read_environment(results_dir: Path, machine: str, release: str, environment: str) -> dict[str, Any]:
    """What was measured last for `release` in `environment`, with the `libraries` that were asked last; or nothing."""
    every = [*read_environments(results_dir, machine, release, environment).values()]
    libraries = [{"libraries": of["libraries"]} for of in every if "libraries" in of]
    return {**(libraries[-1] if libraries else {}), **(every[-1] if every else {})}


def packages_moved(
    old: Mapping[str, Any], new: Mapping[str, Any], asked: Collection[str]
) -> list[tuple[str, str, str]]:
    """(name, old, new version or `none`) of packages that differ, those that were `asked` for first."""
    before, now = (dict(package.split("==", 1) for package in facts.get("packages", [])) for facts in (old, new))
    names = sorted({*before, *now}, key=lambda name: (name not in asked, name))
    rows = [(name, before.get(name, "none"), now.get(name, "none")) for name in names]
    return [row for row in rows if row[1] != row[2]]


def packages_words(old: Mapping[str, Any], new: Mapping[str, Any], asked: Collection[str]) -> str:
    """`packages_moved` in a sentence; empty where nothing is known of one of them."""
    return moved_words(packages_moved(old, new, asked)) if old and new else ""


def moved_words(packages: Iterable[tuple[str, str, str]]) -> str:
    """What `packages_moved` found, in a sentence, without what comes with torch."""
    others = (row for row in packages if not re.match("torch$|triton$|nvidia-|cuda-", row[0]))
    moved = [f"{name} {before} -> {now}" for name, before, now in others]
    return f"Packages that differ besides torch and CUDA's: {', '.join(moved) or 'none'}."


def digest_of(environment: dict[str, Any]) -> str:
    """What a launch names its environment by."""
    return hashlib.sha256(json.dumps(environment, sort_keys=True).encode()).hexdigest()[:8]


def environment_of(line: bytes) -> dict[str, Any]:
    """Raises ValueError where `line` is no environment, or names packages in another form than name==version."""
    try:
        record = parse(line)
        environment = record["environment"]
        if not isinstance(record["id"], str) or not isinstance(environment, dict):
            raise TypeError
        dict(package.split("==", 1) for package in environment.get("packages", []))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError("it is no environment") from error
    return dict(record)
