"""How often does `explain` name a cause that was planted, and how often one that was not?

`python -m tools.planted_causes RELEASE` takes one installed torch for both releases and plants one cause after another into
the new one (tools/planted/release.py). The program's own `Explanation` explains each by whole launches. Every answer of a
launch is kept, and then the verdict is made again and again of turns that are drawn from these, since a whole explanation
takes minutes: `--tries` of each cause, and of the release with itself. `--write` puts rates into docs/generated/planted.md.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch_history.analysis.markdown import escape
from torch_history.explaining import explanation, places
from torch_history.explaining.estimates import Group, Noise, ratio
from torch_history.explaining.explanation import Explanation, Found
from torch_history.explaining.finding import TIMES
from torch_history.explaining.launching import Launch, LaunchFailed, Side, Subject
from torch_history.explaining.levers import Lever, load
from torch_history.measuring.machine import asked as requested
from torch_history.measuring.machine import describe
from torch_history.store.causes import NOT_LOOKED_INTO
from torch_history.store.launches import Launch as LaunchOfHistory
from torch_history.store.launches import read_file

from .page import write_into

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "generated" / "planted.md"
COMMAND = "python -m tools.planted_causes --write"
WORKLOAD = Path(__file__).with_name("planted") / "call.py"
TRIES = 200

OFFSETS = range(0, 64, 4)
LEAST_MOVED = 1.1
"""A moved loop is planted where one of its addresses makes it so much slower than another one."""

LOOP = """
__asm__(".text\\n.p2align 6\\n.skip {offset}, 0x90\\n");
int planted_loop(const int *a, int n) {{
    int odd = 0;
    for (int i = 0; i < n; i++) {{ if (a[i] & 1) odd += a[i]; else odd ^= i; }}
    return odd;
}}
"""


@dataclass(frozen=True)
class Plant:
    """A cause: its `name`, variables of both sides, and which places and levers are right: parts of their names."""

    name: str
    words: str
    old: Mapping[str, str]
    new: Mapping[str, str]
    right: tuple[str, ...]


def planted(folder: Path, is_kept: bool = False) -> list[Plant]:
    """All causes. `folder` is for the libraries of the loop that is moved, which are not needed where its run `is_kept`."""
    named = [
        (
            "operator",
            "a slower operator, by a registered override",
            ("aten::relu", "aten::clamp_min", "slow_relu", "clamp"),
        ),
        ("loop", "a loop in a Python function", ("release.py checks",)),
        (
            "copy",
            "twelve copies more",
            ("aten::copy_", "aten::clone", "Tensor.clone", "release.py entered", "copy", "memcpy", "memmove"),
        ),
    ]
    found = [Plant(name, words, {}, {"PLANTED_CAUSE": name}, right) for name, words, right in named]
    objects = {"PLANTED_OBJECTS": "20"}
    of_collector = ("collector off", "gc_collect", "collect")
    often = {**objects, "PLANTED_CAUSE": "collector"}
    found.append(Plant("collector", "a garbage collector that runs more often", objects, often, of_collector))
    vectors = {"ATEN_CPU_CAPABILITY": "default"}
    of_vectors = (
        "ATen without vectors",
        "aten::sigmoid",
        "aten::relu",
        "aten::mul",
        "aten::sum",
        "sigmoid",
    )
    found.append(Plant("vectors", "an environment without ATen's vector instructions", {}, vectors, of_vectors))
    allocator = {"PYTHONMALLOC": "malloc"}
    of_memory = ("Python's allocator off", "malloc", "free")
    found.append(Plant("allocator", "an environment with another allocator of Python", {}, allocator, of_memory))
    if moved := (folder, folder) if is_kept else _moved(folder):
        old, new = ({"PLANTED_LIBRARY": str(path)} for path in moved)
        found.append(Plant("moved", "the same loop at another address", old, new, ("planted_loop",)))
    return found


def _moved(folder: Path) -> tuple[Path, Path] | None:
    """Two libraries with the same loop, at the addresses where it is quickest and slowest; None without a compiler, and
    where the address makes too little of a difference on this processor."""
    if shutil.which("gcc") is None:
        return None
    took: dict[Path, float] = {}
    for offset in OFFSETS:
        library = folder / str(offset) / "libtwin.so"
        library.parent.mkdir(parents=True)
        source = library.with_suffix(".c")
        source.write_text(LOOP.format(offset=offset), encoding="utf-8")
        flat = ["-O2", "-fno-align-functions", "-fno-align-loops", "-fno-align-jumps", "-fno-if-conversion"]
        subprocess.run(["gcc", "-shared", "-fPIC", *flat, str(source), "-o", str(library)], check=True)
        took[library] = _seconds(library)
    old, new = min(took, key=lambda path: took[path]), max(took, key=lambda path: took[path])
    print(
        f"the loop that is moved takes {took[new] / took[old]:.2f} times as long at the worst address", file=sys.stderr
    )
    return (old, new) if took[new] / took[old] >= LEAST_MOVED else None


_TIMING = """
import ctypes, sys, time
n = 20_000
numbers, function = (ctypes.c_int * n)(*range(n)), ctypes.CDLL(sys.argv[1]).planted_loop
found = []
for _ in range(300):
    began = time.perf_counter(); function(numbers, n); found.append(time.perf_counter() - began)
print(min(found))
"""


def _seconds(library: Path) -> float:
    command = [sys.executable, "-c", _TIMING, str(library)]
    return min(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(2))


# --- what launches answered, and turns that are drawn of it

Kept = dict[str, list[tuple[dict[str, list[Any]], dict[str, list[Any]]]]]
"""By lever: of each turn what both sides answered, by step."""


@dataclass
class Recorder:
    """Opens real launches, and keeps what each turn's two of them answer."""

    sides: tuple[Side, Side]
    kept: Kept = field(default_factory=lambda: defaultdict(list))

    def open(self, side: Side, subject: Subject, variables: Any = None) -> Any:
        turns = self.kept[_lever(variables)]
        number = self.sides.index(side)
        if number == 0:
            turns.append((defaultdict(list), defaultdict(list)))
        return _Kept(Launch(side, subject, variables), turns[-1][number])


@dataclass
class _Kept:
    launch: Launch
    answers: dict[str, list[Any]]

    def ask(self, step: Mapping[str, Any]) -> dict[str, Any]:
        answer = self.launch.ask(step)
        if step.get("profile") == "symbol" and "failed" not in answer:
            answer["perf"] = places.read_perf(Path(step["file"]))[0]
        self.answers[_step(step)].append(answer)
        return answer

    def close(self) -> None:
        self.launch.close()


@dataclass
class Redrawn:
    """Opens launches that answer what a turn answered that is drawn by chance. With `itself`, the two sides are drawn of
    launches of the old release alone."""

    sides: tuple[Side, Side]
    kept: Kept
    chance: random.Random
    itself: bool = False
    perf: Any = None
    left: dict[str, list[Any]] = field(default_factory=dict)

    def open(self, side: Side, subject: Subject, variables: Any = None) -> Any:
        number = self.sides.index(side)
        turns = self.kept.get(_lever(variables), [])
        if not turns:
            raise LaunchFailed("it was not pulled when launches were kept.")
        if number == 0:
            self.turn = self._next(_lever(variables), turns)
            self.swapped = self.itself and self.chance.random() < 0.5
        return _Redrawn(self, self.turn[number ^ self.swapped])

    def _next(self, lever: str, turns: Sequence[Any]) -> Any:
        """A turn by chance, none twice before all were drawn: turns that are alike would hide how much turns differ."""
        if not self.left.get(lever):
            self.left[lever] = self.chance.sample(turns, len(turns))
        return self.left[lever].pop()

    def read(self, file: Path) -> Any:
        """What perf recorded when the last launch was profiled."""
        return self.perf, {}


@dataclass
class _Redrawn:
    of: Redrawn
    answers: dict[str, list[Any]]

    def ask(self, step: Mapping[str, Any]) -> dict[str, Any]:
        known = self.answers.get(_step(step))
        if not known:  # this turn was not asked that: another one of the same side was
            known = self._of_others(step)
        if not known:
            return {"failed": "it was not asked when launches were kept"}
        answer: dict[str, Any] = self.of.chance.choice(known)
        self.of.perf = answer.get("perf", self.of.perf)
        return answer

    def _of_others(self, step: Mapping[str, Any]) -> list[Any]:
        of_side = [side for turns in self.of.kept.values() for turn in turns for side in turn]
        number = next(i % 2 for i, side in enumerate(of_side) if side is self.answers)
        return [each for side in of_side[number::2] for each in side.get(_step(step), [])]

    def close(self) -> None:
        pass


def _lever(variables: Any) -> str:
    return json.dumps(sorted(variables or {}))


def _step(step: Mapping[str, Any]) -> str:
    return json.dumps({key: value for key, value in step.items() if key != "file"}, sort_keys=True)


# --- a release with itself, in real launches of `torch-history calibrate`

ARMS = ("first", "second")
"""Two names of one release, measured in the same rounds."""

Turns = dict[tuple[str, tuple[str, ...]], list[tuple[float, float]]]
"""By benchmark and case: seconds a call under both names, by round."""


def calibrated(launches: Iterable[LaunchOfHistory]) -> Turns:
    """Of each steady time the rounds in which both names were measured, if there are enough."""
    numbers: dict[tuple[str, tuple[str, ...]], dict[tuple[str, int], dict[str, float]]] = defaultdict(dict)
    for launch in launches:
        if launch.release in ARMS and launch.benchmark.rpartition(".track_")[2] in TIMES:
            for case in launch.cases:
                if case.number:
                    of_case = numbers[launch.benchmark, tuple(case.parameters)]
                    of_case.setdefault((launch.session, launch.round), {})[launch.release] = case.number
    turns = {
        key: [(of[ARMS[0]], of[ARMS[1]]) for of in rounds.values() if len(of) == len(ARMS)]
        for key, rounds in numbers.items()
    }
    return {key: of for key, of in turns.items() if len(of) >= explanation.LEAST_TURNS}


def there(turns: Turns, tries: int, chance: random.Random) -> int:
    """How often a difference is there, by the rule of `Explanation`, between a release and itself."""
    found, cases = 0, list(turns.values())
    for _ in range(tries):
        of_case = chance.choice(cases)
        pairs = chance.sample(of_case, min(len(of_case), explanation.MOST_NOISY_TURNS))
        drawn = [pair[:: chance.choice((1, -1))] for pair in pairs]
        for count in range(explanation.LEAST_TURNS, len(drawn) + 1):
            group = Group(*zip(*drawn[:count], strict=True))
            at = ratio(group, Noise.of([group]))
            found += at.is_there
            if at.is_there or (count >= explanation.MOST_TURNS and at.is_absent):
                break
    return found


def itself(tries: int) -> str:
    """The rate in words, from the calibrations in results/."""
    files = sorted((ROOT / "results").glob("*/calibration/*.jsonl"))
    turns = calibrated(launch for file in files for launch in read_file(file))
    found = there(turns, tries, random.Random(1))
    return (
        f"Of {tries:,} comparisons of a release with itself, {found} had a difference. Without one no cause "
        f"is looked for. Each draws up to {explanation.MOST_NOISY_TURNS} rounds, none of them twice, of one of "
        f"{len(turns)} times from the calibrations in `results/`."
    )


# --- what was found

Open = Callable[..., Any]


def explained(sides: tuple[Side, Side], opened: Open, levers: Sequence[Lever], read: Any, seconds: float) -> Found:
    """The program's own explanation of the planted call."""
    subject = Subject(ROOT, str(WORKLOAD), "mixed", "one", "time")
    with tempfile.TemporaryDirectory() as folder:
        said: Callable[[str], None] = lambda words: None  # noqa: E731
        return Explanation(subject, sides, levers, Path(folder), said, seconds, opened=opened, read=read).explain()


@dataclass
class Tally:
    """Verdicts on one cause: whether the cause or part that was told is the planted one, and whether a CAUSE is not."""

    verdicts: list[str] = field(default_factory=list)
    right: int = 0
    wrong: int = 0

    def add(self, found: Found, expected: Sequence[str]) -> None:
        names = told(found)
        self.verdicts.append(found.verdict)
        if found.verdict in ("CAUSE", "PART") and names:
            is_right = all(any(part in name for part in expected) for name in names)
            self.right += is_right
            self.wrong += found.verdict == "CAUSE" and not is_right

    @property
    def tries(self) -> int:
        return len(self.verdicts)


def told(found: Found) -> list[str]:
    """The names of the lever and of the place that a verdict's words tell."""
    pulled = [
        lever.name for lever in found.levers if lever.verdict == found.verdict and f"with {lever.words} " in found.words
    ]
    words = found.words.partition("; of ")[0]
    held = [place.name for place in found.places if f"{place.name} holds " in words]
    return list(dict.fromkeys([*pulled[:1], *held]))


@dataclass(frozen=True)
class Whole:
    """What a whole run said, and what its launches answered."""

    verdict: str
    words: str
    ratio: float
    took: float
    kept: Kept


def whole_run(plant: Plant, python: Path, seconds: float) -> Whole:
    """One explanation by whole launches. Of the release with itself no lever is pulled."""
    sides = _sides(plant, python)
    recorder, began = Recorder(sides), time.monotonic()
    found = explained(sides, recorder.open, load() if plant.right else [], places.read_perf, seconds)
    return Whole(found.verdict, found.words, found.ratio.ratio, time.monotonic() - began, recorder.kept)


def _sides(plant: Plant, python: Path) -> tuple[Side, Side]:
    return Side("v1.0.0", python, plant.old), Side("v2.0.0", python, plant.new)


def judge(plant: Plant, python: Path, kept: Kept, tries: int) -> Tally:
    """Verdicts on turns that are drawn of what was kept. Of the release with itself, sides change places by chance."""
    sides, levers, tally = _sides(plant, python), load() if plant.right else [], Tally()
    for seed in range(tries):
        redrawn = Redrawn(sides, kept, random.Random(seed), itself=not plant.right)
        found = explained(sides, redrawn.open, levers, redrawn.read, 210.0)
        tally.add(found, plant.right)
    return tally


NOTHING = Plant("nothing", "nothing: the release with itself", {}, {"PLANTED_CAUSE": "nothing"}, ())


def table(rows: Iterable[tuple[Plant, Whole, Tally]], tries: int) -> str:
    """Rates by cause."""
    lines = [
        "| planted | new / old | the whole run says | right place | wrong CAUSE | not seen or UNKNOWN |",
        "|---|---:|---|---:|---:|---:|",
    ]
    totals, unseen = [0, 0, 0], 0
    for plant, whole, tally in rows:
        silent = sum(kind in (*NOT_LOOKED_INTO, "UNKNOWN") for kind in tally.verdicts)
        said = escape(whole.words)
        rates = f"{_rate(tally.right, tally.tries)} | {_rate(tally.wrong, tally.tries)} | {_rate(silent, tally.tries)}"
        lines.append(f"| {plant.words} | {whole.ratio:.2f} | {whole.verdict}: {said} | {rates} |")
        if plant.right and whole.verdict not in NOT_LOOKED_INTO:
            totals = [totals[0] + tally.right, totals[1] + tally.wrong, totals[2] + tally.tries]
        unseen += bool(plant.right) and whole.verdict in NOT_LOOKED_INTO
    right, wrong, every = totals
    lines += ["", f"Each row has {tries} verdicts on turns that were drawn of the launches of one whole run."]
    if every:
        lines[-1] += (
            f" The planted cause was named in {100 * right / every:.1f} %, and another CAUSE in {100 * wrong / every:.1f} %."
        )
    if unseen:
        lines[-1] += (
            f" Not counted are {unseen} causes that made no difference here, or one too small to be looked for."
        )
    return "\n".join(lines)


def _rate(part: int, of: int) -> str:
    return f"{100 * part / of:.1f} %" if of else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "release", nargs="?", help="an installed release, such as 2.14.0; without one nothing is planted"
    )
    parser.add_argument("--lane", default="3.11")
    parser.add_argument("--tries", type=int, default=TRIES)
    parser.add_argument("--seconds", type=float, default=210.0, help="for each whole explanation's levers")
    parser.add_argument("--only", nargs="*", default=[], help="causes to plant, by name")
    parser.add_argument("--keep", type=Path, help="a folder for what launches answered; what is in it is not run again")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args()
    text = itself(max(asked.tries, TRIES))
    if asked.release:
        text += f"\n\n{_planted(asked)}"
    print(text)
    if asked.write:
        write_into(PAGE, COMMAND, f"{text}\n")


def _planted(asked: argparse.Namespace) -> str:
    """The table of causes that were planted into an installed release."""
    python = ROOT / "env" / f"v{asked.release}-py{asked.lane}" / "bin" / "python"
    if not python.exists():
        sys.exit(f"{asked.release} is not installed in env/. Install it with `torch-history run {asked.release}`.")
    rows, is_kept = [], bool(asked.keep) and (asked.keep / "moved.json").exists()
    with tempfile.TemporaryDirectory() as folder:
        for plant in [NOTHING, *planted(Path(folder), is_kept)]:
            if not asked.only or plant.name in asked.only:
                whole = _kept_or_run(plant, python, asked.seconds, asked.keep)
                print(f"{plant.name}: {whole.took:.0f} s, {whole.verdict}: {whole.words}", file=sys.stderr, flush=True)
                rows.append((plant, whole))
    judged = [(plant, whole, judge(plant, python, whole.kept, asked.tries)) for plant, whole in rows]
    return f"torch {asked.release}, {_processor()}.\n\n{table(judged, asked.tries)}"


def _kept_or_run(plant: Plant, python: Path, seconds: float, keep: Path | None) -> Whole:
    """What is kept of a whole run, else a whole run, which is kept where there is a folder for it."""
    path = keep / f"{plant.name}.json" if keep else None
    if path and path.exists():
        return Whole(**json.loads(path.read_text(encoding="utf-8")))
    whole = whole_run(plant, python, seconds)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(vars(whole)), encoding="utf-8")
    return whole


def _processor() -> str:
    return str(describe(requested()).get("cpu", "a processor"))


if __name__ == "__main__":
    main()
