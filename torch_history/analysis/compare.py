"""What `torch-history compare` says of two releases, from results/ alone; docs/commands.md has its JSON."""

import functools
import itertools
import json
import math
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from contract.metrics import CALL_MARGIN, metric_of

from ..store.launches import Launch, files_of, machines_in, of_file, read_environment, read_file, read_launches
from ..store.machines import record_of
from ..system.errors import UserError
from . import answer, verdicts
from .causes import Because, Known, case_of, evidence, in_words, moved, of_ends, unconfirmed, why
from .code import SAME_CODE, WhatChanged, as_data, of_times, pair_of
from .code import Kind as CodeKind
from .findings import Finding, Row, group, of_changes
from .labels import explained
from .markdown import escape
from .power import NOTHING_ALONE, Alone, found_alone
from .replication import NO_PLACES, NOWHERE, Elsewhere, OtherPlaces, Standing, other_places
from .results import Result, results, sentences
from .series import RANK, SAID_FIRST, TIMES, History, Name, Series, Verdict, history
from .steps import Kind, Net, Step
from .verdicts import BOUND, ERROR_RATE, FALSE_RATE, MARGIN, NOT_MEASURED, POWER, SINGLE, Change, bound, human, times

SCHEMA = 4  # of the JSON; it grows by one when a key goes or changes its meaning, not when one is added
NAMED = 3  # steps that a sentence on the whole axis names, the largest
UNSEEN = 10.0  # a smallest change beyond this ratio is said as `not even a tenfold one`

FAIL_ON = {"slower": Verdict.SLOWER, "faster": Verdict.FASTER, "hungrier": Verdict.HUNGRIER, "more": Verdict.MORE}
"""Kinds of --fail-on that take a threshold; `broke` takes none."""

MOST_CHARACTERS = 60_000  # of Markdown with every series: GitHub takes 65,536 in an issue or a comment.
MOST_OF_FINDINGS = 10_000  # characters of Markdown with the findings: what a reader of a pull request scrolls past
_MOST_OF_THE_END = 3_000  # characters of the summary and of what failed, at the end of the Markdown
_ROOM_FOR_WORDS = 1_000  # characters of the sentences between the lists at most, without the command
HEADINGS = {"worse": "Worse", "better": "Better", "changed": "Changed counts"}  # kind of findings -> heading


class CannotCompare(UserError):
    """There is nothing to compare; the text says what there is."""


@dataclass(frozen=True)
class Comparison:
    """Two releases on one machine: `changes`, worst first, `why`, the end of each sentence, and what else differs."""

    machine: str
    environment: str
    old: str
    new: str
    changes: list[Change]
    why: dict[Series, Because]
    moved: dict[str, tuple[Any, Any]]
    one_sided: int
    elsewhere: Mapping[Series, Elsewhere] = field(default_factory=dict)
    device: str = "cpu"
    threads: str = ""
    file: str = ""  # a user's own file that was measured, as the user named it; empty for the suite
    sessions: int = 0  # that count together
    unconfirmed: Collection[Series] = ()  # what `explain` did not see again; no finding is made of it
    alone: Alone = NOTHING_ALONE  # how large a change of one of its times would be found
    code: Mapping[Series, WhatChanged] = field(default_factory=dict)  # of changed times, where both wheels are known
    results: Sequence[Result] = ()  # what the cases return, those that changed first
    axis: Sequence[str] = ()  # the releases in order, where the caller knows them

    def beside(
        self, missed: Mapping[tuple[str, str], Collection[Series]], others: OtherPlaces = NO_PLACES
    ) -> "Comparison":
        """Held against `others`, and without what `explain` `missed` when it looked between two releases."""
        pair = self.old, self.new
        return replace(self, elsewhere=others.of(self.changes, *pair), unconfirmed=missed.get(pair, ()))

    def sentence(self, change: Change, more: str = "") -> str:
        """The sentence of one of its changes, with what other lanes and machines say of it, its cause, and `more`."""
        elsewhere = self.elsewhere.get(change.series, NOWHERE).words
        return sentence(change, self.because(change.series), elsewhere, change.series in self.code, more)

    def because(self, series: Series) -> str:
        """Why a series changed, as the end of its sentence; empty where nothing is said."""
        return self.why[series].words if series in self.why else ""

    @property
    def returned(self) -> list[str]:
        """What became of the results, in sentences."""
        return sentences(self.results, self.axis)

    @property
    def changed(self) -> list[Change]:
        return [change for change in self.changes if change.verdict.kind in SAID_FIRST]

    @property
    def looked_at(self) -> int:
        """How many times the error rate was shared between."""
        return sum(change.confidence is not None for change in self.changes)

    @functools.cached_property
    def findings(self) -> list[Finding]:
        """What changed, and was seen again where somebody looked for its cause, grouped and ranked."""
        confirmed = (change for change in self.changes if change.series not in self.unconfirmed)
        return of_changes(confirmed, self.why, self.code)

    @property
    def of_file(self) -> str:
        """What a command is given besides for the user's own file; empty for the suite."""
        return f" --workload {shlex.quote(self.file)}" if self.file else ""

    @property
    def command(self) -> str:
        """What measures more of it, without the releases."""
        _, is_lane, python = self.environment.partition("release-py")
        return f"torch-history run{self.of_file}" + (f" --lane {shlex.quote(python)}" if is_lane else "")

    @property
    def title(self) -> str:
        """What is compared: PyTorch, of an own file with its name."""
        return f"{Path(self.file).name}: PyTorch" if self.file else "PyTorch"

    @property
    def environments(self) -> list[str]:
        """How the two environments differ, in a sentence; empty where nothing is known to."""
        return [f"The environments differ: {in_words(self.moved)}."] if self.moved else []

    @property
    def sure(self) -> list[str]:
        """What the times could have shown, with what the verdicts were made, and what was found elsewhere, in sentences."""
        lines = []
        times = [one for one in self.changes if one.series.varies and None not in (one.old, one.new)]
        if looked_at := self.looked_at:
            compared = "1 time was" if looked_at == 1 else f"{looked_at} times were"
            margins = {one.series.measure.words: one.series.margin for one in times}
            others = {words: margin for words, margin in margins.items() if margin not in (MARGIN, CALL_MARGIN)}
            of_processes = "".join(f", {100 * margin:.0f} % for {words}" for words, margin in sorted(others.items()))
            lines.append(
                f"{compared} compared, with a margin of {100 * MARGIN:.0f} % "
                f"({100 * CALL_MARGIN:.0f} % for single calls{of_processes}). "
                f"At most {100 * FALSE_RATE:.0f} % of the reported changes are expected to be false."
            )
        if disturbed := sum(change.disturbed for change in times):
            lines.append(f"{disturbed} of their launches ran while the machine was disturbed.")
        if words := self.alone.words:
            lines.append(words)
        if self.file and self.sessions > 1:
            lines.append(f"The {self.sessions} sessions of the file count together; `upgrade` tells its own alone.")
        if self.code:
            kinds = Counter(found.kind for found in self.code.values())
            seen_on = ", ".join(sorted({found.profiled_on for found in self.code.values()}))
            said = ", ".join(f"{count} {kind.value}" for kind, count in kinds.most_common())
            lines.append(f"By the code of both wheels (what runs was seen on {seen_on}), changed times are: {said}.")
            if CodeKind.MOVED in kinds:
                lines.append("MOVED is the same machine code at another address, which is no change of the code.")
        if left := of_this_processor(self):
            of_them = "1 changed time is" if len(left) == 1 else f"{len(left)} changed times are"
            lines.append(
                f"{of_them} of code that is the same in both releases, and another processor does not have the change: "
                "--fail-on does not count them."
            )
        if single := sum(change.reason == SINGLE for change in times):
            lines.append(
                f"{'1 time has' if single == 1 else f'{single} times have'} a single launch of one release, which is no "
                f"evidence. Measure more: `{self.command} --rounds 5 {self.old} {self.new}`."
            )
        for held_against, place in (("other binaries", "wheels"), ("other machines", "machines")):
            tally = Counter(getattr(found, place).standing for found in self.elsewhere.values())
            if tally.keys() - {Standing.NOT_TESTABLE}:
                said = ", ".join(f"{tally[standing]} {standing.value}" for standing in Standing if tally[standing])
                lines.append(f"Of the changed times, held against {held_against}: {said}.")
        return lines


def choose_machine(
    results_dir: Path,
    asked: str | None,
    here: str,
    tags: Collection[str] = (),
    environment: str = "",
    questions: Collection[str] = (),
) -> str:
    """The machine asked for, else this one if it has what is asked for, else that with most releases, and most of each,
    on which something ran. Raises CannotCompare."""
    machines = machines_in(results_dir)
    if not machines:
        raise CannotCompare(f"{results_dir} contains no launches. Measure first with `torch-history run`.")
    if asked and asked not in machines:
        raise CannotCompare(f"There are no results of a machine '{asked}'. There are results of {', '.join(machines)}.")
    if asked:
        return asked
    having = [name for name in machines if _has(results_dir, name, tags, environment, questions)] or machines
    if here in having:
        return here
    ran = [name for name in having if _device(results_dir, name) != "recorder"] or having
    stored = {name: sum(path.lstat().st_size for path in files_of(results_dir / name)) for name in ran}
    sizes = {name: (len(releases_of(results_dir, name)), size) for name, size in stored.items()}
    largest = [name for name in ran if sizes[name] == max(sizes.values())]
    if len(largest) == 1:
        return largest[0]
    raise CannotCompare(
        f"There are no results of this machine, {here}. Name one with --machine: {', '.join(machines)}."
    )


def whose(
    results_dir: Path,
    machine: str,
    here: str,
    tags: Collection[str] = (),
    environment: str = "",
    questions: Collection[str] = (),
) -> str:
    """Whose results are shown where `choose_machine` chose `machine`, in sentences; empty where there are no others."""
    others = [name for name in machines_in(results_dir) if name != machine and _device(results_dir, name) != "recorder"]
    if not others:
        return ""
    why = "this machine" if machine == here else "which has the longest history"
    said = [f"Results of {machine}, {why}: {len(releases_of(results_dir, machine))} releases."]
    if here in others:
        asked = [f" of {', '.join(questions)}"] * bool(questions) + [f" on {' and '.join(tags)}"] * bool(tags)
        said.append(f"This machine, {here}, has none{''.join(asked)}{environment and f' in {environment}'}.")
    return " ".join([*said, f"There are others, see --machine: {', '.join(others)}."])


def _has(results_dir: Path, machine: str, tags: Collection[str], environment: str, questions: Collection[str]) -> bool:
    """Whether a machine has launches of each of `questions` on each of `tags` in `environment`; what is empty is any."""
    files = [(path, *of_file(path)) for path in files_of(results_dir / machine)]
    ours = [(path, tag) for path, tag, lane in files if environment in ("", lane) or not lane]
    asked = [[path for path, of in ours if of == tag] for tag in tags] or [[path for path, _ in ours]]
    names = [plain_name(name) for name in questions]
    return all(of and all(any(next(read_file(path, [name]), None) for path in of) for name in names) for of in asked)


def releases_of(results_dir: Path, machine: str) -> set[str]:
    """The tags of the releases that were measured on a machine, in any lane."""
    return {of_file(path)[0] for path in files_of(results_dir / machine)}


def find(
    results_dir: Path,
    machine: str,
    environment: str,
    old: str,
    new: str,
    questions: Sequence[str] = (),
    metrics: Sequence[str] = (),
    versions: Mapping[str, str] | None = None,
) -> Comparison:
    """Compares two tags by what is stored, of a benchmark in `versions` by that version alone. Raises CannotCompare."""
    if old == new:
        raise CannotCompare(f"{old} was named twice. Name two releases.")
    wanted = [plain_name(name) for name in questions], [plain_name(name) for name in metrics]
    every = read_launches(results_dir, machine, environment, wanted[0])
    stored = [launch for launch in every if (versions or {}).get(launch.benchmark, launch.version) == launch.version]
    theirs = [launch for launch in stored if launch.release in (old, new)]
    if {launch.release for launch in theirs} != {old, new} or {_question(launch) for launch in theirs} < {*wanted[0]}:
        _refuse_unknown(results_dir, machine, environment, (old, new), wanted[0])
    _one_of(wanted[1], {metric_of(launch.benchmark).name for launch in theirs}, "metric", f"in {old} and {new}")
    facts = {tag: read_environment(results_dir, machine, tag, environment) for tag in (old, new)}
    device, known = _device(results_dir, machine), evidence(results_dir, machine)
    threads = str(record_of(results_dir / machine).get("threads", ""))
    every_metric = history(stored)
    found = compared(machine, environment, old, new, every_metric, facts, device, known, threads, wanted[1])
    if not found.changes:
        had = [", ".join(sorted({_question(each) for each in theirs if each.release == tag})) for tag in (old, new)]
        raise CannotCompare(
            f"{old} and {new} have nothing in common. {old} has {had[0] or 'no question'}, and {new} has "
            f"{had[1] or 'no question'}, but none in the same size and version."
        )
    of_asked = History({one: of for one, of in every_metric.items() if not metrics or one.metric in wanted[1]})
    others = other_places(results_dir, machine, environment, of_asked)
    sessions = len(every_metric.sessions[old] | every_metric.sessions[new])
    return replace(found.beside(unconfirmed(results_dir, machine, of_asked), others), sessions=sessions)


def compared(
    machine: str,
    environment: str,
    old: str,
    new: str,
    found: History,
    facts: Mapping[str, Mapping[str, Any]],
    device: str,
    known: Iterable[Known] = (),
    threads: str = "",
    metrics: Collection[str] = (),
) -> Comparison:
    """Two tags by what `history` gives and the machine's evidence `known`; all are judged, `metrics` are told."""
    every = verdicts.compare_history(found, old, new)
    changes = [change for change in every if change.reason != NOT_MEASURED]
    asked = [change for change in changes if not metrics or change.series.metric in metrics]
    code = of_times(changes, pair_of(environment, old, new, device))
    because, differ = why(changes, facts[old], facts[new], known, code), moved(facts[old], facts[new], device)
    one_sided = sum(not metrics or change.series.metric in metrics for change in every) - len(asked)
    of = machine, environment, old, new, sorted(asked, key=place), because, differ, one_sided
    alone = found_alone(found.fits.values(), (old, new), [change.series for change in asked])
    return Comparison(*of, device=device, threads=threads, alone=alone, code=code, results=results(found, old, new))


def _refuse_unknown(
    results_dir: Path, machine: str, environment: str, tags: tuple[str, str], questions: Sequence[str]
) -> None:
    """Raises CannotCompare where the environment, a release or a question was never measured, and names those that were."""
    of, theirs = defaultdict[str, set[str]](set), set()
    for launch in read_launches(results_dir, machine):
        of[launch.environment].add(launch.release)
        if launch.environment == environment and launch.release in tags:
            theirs.add(_question(launch))
    _one_of([environment], {*of}, "environment", f"on {machine}")
    for tag in tags:
        others = ", ".join(sorted(lane for lane, releases in of.items() if tag in releases))
        if others and tag not in of[environment]:
            raise CannotCompare(f"{tag} was not measured in {environment} on {machine}, but in {others}: add `--lane`.")
    _one_of(tags, of[environment], "result of", f"in {environment} on {machine}")
    _one_of(questions, theirs, "question", f"in {tags[0]} and {tags[1]}")


def _one_of(names: Iterable[str], known: set[str], what: str, where: str) -> None:
    in_order = sorted(known, key=lambda name: [part.zfill(4) for part in re.split(r"(\d+)", name)])
    for name in names:
        if name not in known:
            raise CannotCompare(f"There is no {what} {name} {where}. Known: {', '.join(in_order) or 'none'}.")


def plain_name(name: str) -> str:
    return name.strip().replace(" ", "_").replace("-", "_").removeprefix("track_")


def _question(launch: Launch) -> str:
    return launch.benchmark.partition(".")[0]


def place(change: Change) -> tuple[int, bool, float]:
    """Worst first: what is missing, then from none, then by how far the ratio lies from 1, its last digits left aside."""
    missing = change.old is None or change.new is None
    far = abs(math.log(change.ratio)) if change.ratio and change.ratio > 0 else math.inf
    return RANK[change.verdict.kind], not missing, -round(far, 9)


def sentence(change: Change, because: str = "", elsewhere: str = "", by_code: bool = False, more: str = "") -> str:
    """`selection time, mask rows: SLOWER 1.09 times (1.07 to 1.11), while the number of operators went from 1 to 9.`
    What `elsewhere` says stands before the cause, else that two builds differ by as much, unless `by_code`."""
    return f"{' '.join(change.series.words.split())}: {clause(change, because, elsewhere, by_code)}{more}."


def clause(change: Change, because: str = "", elsewhere: str = "", by_code: bool = False) -> str:
    """As `sentence`, without the name of the series and without a full stop."""
    series, unit = change.series, change.series.unit
    said = change.verdict.shown
    numbers = f"from {human(change.old, unit)} to {human(change.new, unit)}"
    if change.difference and change.old is not None and change.new is not None:
        said += _by_growth(change, change.new - change.old, change.difference)
    elif change.verdict is Verdict.FIXED:
        said += f" at {human(change.new, unit)}; before, {change.reason}"
    elif change.old is None or change.new is None:
        said += f": {change.reason}"
    elif change.verdict is Verdict.SAME:
        said += f" ({_interval(change)} times)" if series.varies else f" at {human(change.new, unit)}"
    elif change.verdict is Verdict.CANT_TELL:
        unseen = _unseen(change)
        said += f", {numbers}" + (f": {unseen}" if unseen else f" ({_interval(change)} times)")
    elif series.varies:
        said += f" {by(change.ratio)} ({_interval(change)})"
        if elsewhere or (change.within_builds and not by_code):
            of_builds = f"within the {times(series.build or 1)} times that rebuilding the same source can cause"
            said += f", {elsewhere or of_builds}"
    elif unit == "bytes" and change.ratio and change.ratio > 0:
        far = by(change.ratio)  # a factor, or bytes where that is one to two digits
        far = f"by {human(abs(change.new - change.old), 'bytes')}" if far == "1.00 times" else far
        said += f" {far}, {numbers}"
    else:
        said += f", {numbers}"
    said = " ".join(said.split()).rstrip(".")
    return f"{said}, {because}" if because else said


def by_case(changes: Iterable[Change]) -> list[list[Change]]:
    """`changes` one by one, but the metrics of a case that a release lacks for the same reason together."""
    found: dict[object, list[Change]] = {}
    for change in changes:
        series = change.series
        missing = None in (change.old, change.new)
        key = (series.question, series.parameters, change.verdict, change.reason) if missing else series
        found.setdefault(key, []).append(change)
    return list(found.values())


def of_case(changes: Sequence[Change], comparison: Comparison, more: str = "") -> str:
    """The sentence of one change, and `more` of it, or that of all metrics that a case lacks or lacked."""
    first = changes[0]
    if len(changes) == 1:
        return comparison.sentence(first, more)
    metrics = ", ".join(change.series.metric.replace("_", " ") for change in changes)
    question, reason = first.series.question.replace("_", " "), " ".join(first.reason.split()).rstrip(".")
    before = ":" if first.new is None else "; before,"
    return f"{question} {first.series.case}: {first.verdict.shown}{before} {reason} ({metrics})."


def never_ran(comparison: Comparison) -> list[str]:
    """A sentence for each case that ran on neither release, with the reason."""
    ran = {change.series.parameters for change in comparison.changes if change.verdict is not Verdict.NEVER_RAN}
    never = [change for change in comparison.changes if change.series.parameters not in ran]
    return [of_case(changes, comparison) for changes in by_case(never)]


@dataclass(frozen=True)
class Happened(Row):
    """A step, excursion or drift, with what other lanes say, and its `net` change over the axis in words."""

    elsewhere: str = ""
    net: str = ""

    @property
    def names(self) -> list[Name]:
        return self.series.names

    @property
    def surest(self) -> str:
        """Without its release and its cause."""
        return " ".join(filter(None, [sentence(self, elsewhere=self.elsewhere), self.net]))

    @property
    def own(self) -> str:
        """Without its release and its net change."""
        return sentence(self, self.because.words if self.because else "", self.elsewhere)

    @property
    def said(self) -> str:
        """Without its release."""
        return " ".join(filter(None, [self.own, self.net]))

    @property
    def sentence(self) -> str:
        return f"{self.release}: {self.said}"


@dataclass(frozen=True)
class Told(Finding):
    """A finding of steps in words: `places` are those of its steps in what was given, in the order of its rows."""

    rows: tuple[Happened, ...]
    places: tuple[int, ...] = ()

    @property
    def where(self) -> str:
        return self.best.release

    @property
    def headline(self) -> str:
        """Without a cause."""
        return f"{self.where}: {self.brief}"

    @property
    def said(self) -> str:
        """Without its release: of a step which stands alone, else of all that belongs together."""
        return self.rows[0].said if len(self.rows) == 1 else self.words

    @property
    def sentence(self) -> str:
        return f"{self.where}: {self.said}"

    @property
    def evidence(self) -> str:
        """The sentence, and that of the surest step where there are several."""
        several = f" The surest of them: {self.rows[0].surest}" if len(self.rows) > 1 else ""
        return f"{self.sentence}{several}"


def tell(
    steps: Iterable[Step], found: History, results_dir: Path, machine: str, others: OtherPlaces = NO_PLACES
) -> list[Told]:
    """The findings of `steps`: of one variant or cause at one release, with what `others` say of each step."""
    facts = functools.partial(read_environment, results_dir, machine)
    return told_findings(steps, found, facts, evidence(results_dir, machine), others)


def one_by_one(told: Iterable[Told]) -> list[Happened]:
    """Every step of some findings, in the order in which they were given."""
    of = {place: each for one in told for place, each in zip(one.places, one.rows, strict=True)}
    return [of[place] for place in sorted(of)]


def told_findings(
    steps: Iterable[Step],
    found: History,
    facts: Callable[[str, str], Mapping[str, Any]],
    known: Sequence[Known],
    others: OtherPlaces,
) -> list[Told]:
    """As `tell`; `facts` are of the environment of a tag in a lane, `known` is the machine's evidence. The cause of a step
    is what changed at its release, and of a drift evidence of both its ends."""
    exact: dict[object, list[Series]] = defaultdict(list)
    for series in found:
        if not series.varies:
            exact[case_of(series)].append(series)
    every = [(step, step.change) for step in steps]
    happened, codes, elsewhere = [], _codes(every, found), _elsewhere(every, others)
    worst = {(case_of(of.series), of.old, of.new): [call] for of, call in every if of.series.metric == "worst_call"}
    for step, change in every:
        series, case = step.series, case_of(step.series)
        if step.kind is Kind.DRIFT:
            because = of_ends(change, step.old, step.new, known)
        else:
            beside = (
                verdicts.judge(other, found[other].get(step.old, []), found[other].get(step.new, []))
                for other in exact[case]
            )
            before, after = (facts(tag, series.environment) for tag in (step.old, step.new))
            call = worst.get((case, step.old, step.new), ())
            of_case = {one.series: one for one in (*beside, *call, change)}.values()
            because = why(of_case, before, after, known, codes[step.old, step.new]).get(series)
        others_say = elsewhere.get((series, step.old, step.new), NOWHERE).words
        told = Happened(**vars(change), because=because, release=_where(step), elsewhere=others_say, net=_net(step))
        happened.append(told)
    place: dict[Row, int] = {each: i for i, each in enumerate(happened)}
    return [Told(**vars(finding), places=tuple(place[row] for row in finding.rows)) for finding in group(place)]


def _elsewhere(every: Iterable[tuple[Step, Change]], others: OtherPlaces) -> dict[tuple[Series, str, str], Elsewhere]:
    """Series, old and new release of each step of a time -> what `others` say of it."""
    together: dict[tuple[str, str], list[Change]] = defaultdict(list)
    for step, change in every:
        if step.kind is Kind.STEP:
            together[step.old, step.new].append(change)
    return {(series, *pair): said for pair, of in together.items() for series, said in others.of(of, *pair).items()}


def _codes(every: Iterable[tuple[Step, Change]], found: History) -> Mapping[tuple[str, str], dict[Series, WhatChanged]]:
    """Old and new release -> what changed in the code of each time with a step there, where a processor was measured."""
    together: dict[tuple[str, str, str, str], list[Change]] = defaultdict(list)
    for step, change in every:
        if step.kind is not Kind.DRIFT and change.verdict in TIMES:
            launches = found.get(step.series, {}).get(step.new, [])
            device = next((str(launch.facts.get("device") or "cpu") for launch, _ in launches), "cpu")
            together[step.old, step.new, device, step.series.environment].append(change)
    codes: dict[tuple[str, str], dict[Series, WhatChanged]] = defaultdict(dict)
    for (old, new, device, environment), changes in together.items():
        if pair := pair_of(environment, old, new, device):
            codes[old, new].update(of_times(changes, pair, verdicts.compare_history(found, old, new)))
    return codes


def _where(step: Step) -> str:
    """`v2.1.0`, `between v1.13.1 and v2.1.0`, `v2.1.0 to v2.2.0, then recovered`, `slowly from v2.1.0 to v2.15.0`"""
    if step.kind is Kind.STEP:
        return f"between {step.old} and {step.new}" if step.is_wide else step.new
    if step.kind is Kind.EXCURSION:
        return " to ".join(dict.fromkeys((step.new, step.until))) + ", then recovered"
    return f"slowly from {step.old} to {step.new}"


def _net(step: Step) -> str:
    """`2.40 times slower (2.20 to 2.62) since v1.13.1 (12ms to 29ms), of which 1.30 times slower at v2.0.0 and 1.85 times
    slower at v2.1.` Where it is back within the margin, `Now as at v1.13.1 (0.97 to 1.04 times, 12ms to 12ms), after
    1.30 times slower at v2.0.0 and 1.30 times faster at v2.1.0.`"""
    net, unit = step.net, step.series.unit
    if net is None:
        return ""
    numbers = f"{human(net.before, unit)} to {human(net.after, unit)}"
    if not net.ratio:
        return f"Since {net.first}: {numbers}."
    more, less = ("slower", "faster") if step.series.varies else ("more", "less" if unit == "bytes" else "fewer")
    low, high = net.low or net.ratio, net.high or net.ratio
    surely = "" if low == high else f"{times(low)} to {times(high)} times, "
    if low <= 1 <= high:
        said = "Now as at" if max(high, 1 / low) <= 1 + step.series.margin else "Not surely changed since"
        return f"{said} {net.first} ({surely}{numbers}){_shares(net, more, less, 'after')}."
    ends = (low, high) if net.ratio > 1 else (1 / high, 1 / low)
    interval = "" if low == high else f" ({' to '.join(map(bound, ends))})"
    way = f"{by(net.ratio)} {more if net.ratio >= 1 else less}{interval}"
    return f"{way} since {net.first} ({numbers}){_shares(net, more, less, 'of which')}."


def _shares(net: Net, more: str, less: str, link: str) -> str:
    """What each step made of the whole axis, the largest named after `link`, and how the rest came about."""
    parts = [(f"{'by' if tag in net.wide else 'at'} {tag}", ratio) for _, tag, ratio in net.parts if ratio]
    named = sorted(parts, key=lambda part: -abs(math.log(part[1])))[:NAMED]
    rest = (net.ratio or 1) / math.prod(ratio for _, ratio in parts)
    nothing_left = abs(math.log(rest)) <= math.log1p(MARGIN)
    if len(parts) == 1 and nothing_left and not net.slowly:
        return f", all of it {parts[0][0]}"
    told = [f"{by(of)} {more if of >= 1 else less} {when}" for when, of in parts if (when, of) in named]
    said = f", {link} {' and '.join(told)}" if told else ""
    if len(parts) > len(named):
        return f"{said}, the largest of {len(parts)} steps"
    if net.slowly:
        return f"{said}, {'the rest' if parts else 'all of it'} slowly"
    return said if nothing_left else f"{said}, {'the rest' if parts else 'all of it'} in changes too small to tell"


def _device(results_dir: Path, machine: str) -> str:
    return str(record_of(results_dir / machine).get("device", "cpu"))


def by(ratio: float | None) -> str:
    """`1.09 times`: every change is said as a factor of at least one, its way by the word beside it."""
    assert ratio is not None
    return f"{times(max(ratio, 1 / ratio) if ratio else math.inf)} times"


def _by_growth(change: Change, rose: float, difference: tuple[float, float]) -> str:
    """What more each call leaves, with the interval of that; where it leaves nothing, what would have been seen."""
    unit = change.series.unit
    old, new = (human(number, unit) for number in (change.old, change.new))
    sign = -1 if change.verdict is Verdict.LEANER else 1
    low, high = sorted(sign * end for end in difference)
    ends = f"{low:,.0f} to {human(high, unit)}"
    if change.verdict is Verdict.SAME:
        least = human(change.least_growth, unit) if change.new == 0 else ""
        more = f" ({ends} more)" if any(difference) else ""
        return f" at {new} at each call{more}" + (f"; a growth of {least} would have been seen" if least else "")
    numbers = f"from {old} to {new}"
    if change.verdict is Verdict.CANT_TELL:
        return f", {numbers} at each call ({ends} more): {change.reason}"
    interval = f" ({ends})" if low < high else ""
    return f" by {human(sign * rose, unit)} at each call{interval}, {numbers}"


def _interval(change: Change) -> str:
    """The ends, as factors the way of the verdict: how many times as fast where it is FASTER, else new / old."""
    if change.ratio is None or change.low is None or change.high is None:
        return ""
    low, high = change.low, change.high
    ends = (1 / high, 1 / low) if change.verdict is Verdict.FASTER else (low, high)
    return " to ".join(map(bound if change.verdict in TIMES else times, ends))


def _unseen(change: Change) -> str:
    """Why launches could not have shown a change; empty where their interval says what they could have."""
    if not change.reason and change.high and change.high > BOUND / 10:  # as `verdicts.times` has what has no bound
        return "one launch of a release weighs far more than its others, which cannot confirm it"
    if not change.reason and change.high and change.low and change.high / change.low > UNSEEN**2:
        return f"{sum(change.launches)} launches would not show even a tenfold change"
    return change.reason


def summary(comparison: Comparison) -> list[str]:
    """The counts, what these times could have shown, and with what the verdicts were made."""
    tally = Counter(change.verdict for change in comparison.changes)
    counted = ", ".join(f"{tally[verdict]} {verdict.shown}" for verdict in Verdict if tally[verdict])
    head = f"{comparison.old} -> {comparison.new} on {comparison.machine}, {comparison.environment}: {counted}."
    return [head, *comparison.sure, *answer.one_sided(comparison), *comparison.environments]


def text(
    comparison: Comparison, everything: bool, failed: Sequence[Change] = (), bold: Callable[[str], str] = str
) -> str:
    """The answer sheet and the findings, or a sentence per series; `bold` sets off what a reader looks for."""
    if not everything:
        return "\n".join([answer.text(comparison, bold), *_failure(failed)])
    surest, say = sorted(comparison.changes, key=lambda change: change.series in comparison.unconfirmed), explained()
    lines = [say(of_case(changes, comparison), changes[0].series.names) for changes in by_case(surest)]
    end = [*answer.once(comparison), *comparison.returned, *summary(comparison), *_failure(failed)]
    return "\n".join([*lines, "", *end])


def _failure(failed: Sequence[Change]) -> list[str]:
    return [f"Failed by --fail-on: {'; '.join(change.series.words for change in failed)}."] if failed else []


def markdown(comparison: Comparison, everything: bool, failed: Sequence[Change] = (), link: str = "") -> str:
    """For a pull request: the findings, or with `everything` a table per verdict, in so many characters that it can be
    sent. `link` is the address of the comparison on a published site."""
    command = f"torch-history compare {comparison.old} {comparison.new}{comparison.of_file}"
    machine, lane = map(shlex.quote, (comparison.machine, comparison.environment))
    command = escape(f"{command} --machine {machine} --lane {lane} --all")
    end = "  \n".join(escape(line) for line in [*comparison.returned, *summary(comparison), *_failure(failed)])
    if len(end) > _MOST_OF_THE_END:
        end = f"{end[:_MOST_OF_THE_END].rpartition(' ')[0]} …"
    room = (MOST_CHARACTERS if everything else MOST_OF_FINDINGS) - _ROOM_FOR_WORDS
    room -= len(end) + 2 * len(command) + len(link)
    lists = _by_verdict(comparison) if everything else _by_kind(comparison)
    parts, left_out = _fitting(lists, room)
    if not comparison.findings:
        said = answer.unchanged(comparison.changes)
        parts.insert(0, f"{said[0].upper()}{said[1:]}.")
    if left_out:
        what = "rows" if everything else "findings"
        parts.append(f"{left_out} {what} are omitted to keep this short enough to send. To see them: {command}")
    tally = Counter(one.verdict.shown for one in comparison.changes if one.verdict.kind not in SAID_FIRST)
    if tally and not everything:
        counted = ", ".join(f"{count} {escape(words)}" for words, count in tally.items())
        parts.append(f"Not listed: {counted}. To list every series: {command}")
    if link:
        parts.append(f"[Every series, with its history]({link})")
    heading = f"### {escape(comparison.title)} {escape(comparison.old)} → {escape(comparison.new)}"
    return "\n\n".join([heading, *parts, end]) + "\n"


List = tuple[str, list[str]]  # what stands above a list or a table, and its lines


def _fitting(lists: Iterable[List], room: int) -> tuple[list[str], int]:
    """As many lines of each list as have room in characters, and how many are left out."""
    parts, left_out = [], 0
    for head, lines in lists:
        room -= len(head) + 1
        ends = itertools.accumulate(len(line) + 1 for line in lines)
        shown = sum(end <= room for end in ends)
        left_out += len(lines) - shown
        room -= sum(len(line) + 1 for line in lines[:shown])
        if shown:
            parts.append("\n".join([head, *lines[:shown]]))
    return parts, left_out


def _by_kind(comparison: Comparison) -> Iterator[List]:
    """The findings, those that cost first."""
    say = explained()
    for kind, heading in HEADINGS.items():
        findings = [finding for finding in comparison.findings if finding.verdict.kind == kind]
        rows = sum(len(finding.rows) for finding in findings)
        count = f"{len(findings)} {'finding' if len(findings) == 1 else 'findings'}, {rows} series"
        yield f"**{heading}** ({count})\n", [f"- {escape(say(finding.words, finding.names))}" for finding in findings]


def _by_verdict(comparison: Comparison) -> Iterator[List]:
    """A table of every series per verdict."""
    groups, say = defaultdict[Verdict, list[Change]](list), explained()
    for change in comparison.changes:
        groups[change.verdict].append(change)
    for verdict, changes in groups.items():
        columns = "| series | verdict | new / old | from | to | why |\n|---|---|---:|---:|---:|---|"
        rows = [_row(comparison, change, say(change.series.words, change.series.names)) for change in changes]
        yield f"**{escape(verdict.shown)}** ({len(changes)})\n\n{columns}", rows


def _row(comparison: Comparison, change: Change, name: str) -> str:
    ratio, unit = "" if change.ratio is None else f"{change.ratio:.3f}", change.series.unit
    if change.series.varies and change.low is not None and change.high is not None:
        ratio += f" ({change.low:.3f} to {change.high:.3f})"
    told = change.verdict is not Verdict.CANT_TELL or change.old is None
    reason = comparison.because(change.series) or (change.reason if told else _unseen(change))
    elsewhere = comparison.elsewhere.get(change.series, NOWHERE).words
    verdict = f"{change.verdict.shown}, {elsewhere}" if elsewhere else change.verdict.shown
    cells = [name, verdict, ratio, human(change.old, unit), human(change.new, unit), reason]
    return "| " + " | ".join(map(escape, cells)) + " |"


def as_json(comparison: Comparison, failed: Sequence[Change] = ()) -> str:
    """Everything that was asked for, in the keys that docs/commands.md lists."""
    changes = [
        {
            **{name: getattr(change.series, name) for name in ("question", "metric")},
            "parameters": change.series.plain,
            "benchmark": change.series.benchmark,
            "unit": change.series.unit or "count",
            "verdict": change.verdict.words,
            "kind": change.verdict.kind,
            **{name: getattr(change, name) for name in ("old", "new", "ratio", "low", "high")},
            "margin": change.series.margin if change.series.varies else None,
            **{name: getattr(change, name) for name in ("confidence", "detectable", "launches", "disturbed", "reason")},
            "why": comparison.because(change.series),
            "code": as_data(comparison.code.get(change.series)),
            "build": change.series.build,
            "within_builds": change.within_builds,
            "replicated": comparison.elsewhere.get(change.series, NOWHERE).wheels.standing.value,
            "on_other_machines": comparison.elsewhere.get(change.series, NOWHERE).machines.standing.value,
            "sentence": comparison.sentence(change),
            "failed": change in failed,
            **{name: getattr(change, name) for name in ("difference", "least_growth")},
        }
        for change in comparison.changes
    ]
    document = {
        "schema": SCHEMA,
        **{name: getattr(comparison, name) for name in ("machine", "environment", "old", "new")},
        "margin": MARGIN,
        "false_rate": FALSE_RATE,
        "error_rate": ERROR_RATE,
        "power": POWER,
        **{name: getattr(comparison, name) for name in ("looked_at", "one_sided", "moved")},
        "tally": Counter(change.verdict.words for change in comparison.changes),
        "failed": len(failed),
        "answer": answer.as_data(comparison),
        "findings": [finding.as_data() for finding in comparison.findings],
        "changes": changes,
        "results": [result.as_data(comparison.axis) for result in comparison.results],
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)


def parse_fail_on(asked: str) -> dict[str, float]:
    """`slower:5%,broke` -> {"slower": 5.0, "broke": 0.0}, in per cent. Raises ValueError with a sentence."""
    limits = {}
    for part in asked.split(","):
        kind, colon, threshold = (word.strip() for word in part.partition(":"))
        if kind not in (*FAIL_ON, "broke"):
            raise ValueError(f"--fail-on does not know '{kind}'. It knows {', '.join([*FAIL_ON, 'broke'])}.")
        if kind == "broke" and colon:
            raise ValueError("'broke' takes no threshold, because a number either exists or does not.")
        if colon and not re.fullmatch(r"\d+(\.\d+)?\s*%?", threshold):
            raise ValueError(f"'{threshold}' is not a threshold. Write a percentage, such as {kind}:5%.")
        limits[kind] = float(threshold.rstrip("% ")) if colon else 0.0
    return limits


def failing(comparison: Comparison, limits: dict[str, float]) -> list[Change]:
    """The series whose verdict is one of `limits`, further from 1 than its per cent, but for `of_this_processor`."""
    left = {change.series for change in of_this_processor(comparison)}
    asked = [change for change in comparison.changes if change.series not in left]
    kinds = {FAIL_ON[kind]: limit for kind, limit in limits.items() if kind in FAIL_ON}
    beyond = [one for one in asked if one.verdict in kinds and _per_cent(one) > kinds[one.verdict]]
    return [*(one for one in asked if "broke" in limits and one.verdict is Verdict.BROKE), *beyond]


def of_this_processor(comparison: Comparison) -> list[Change]:
    """Changed times of unchanged code that another processor does not have: a linker placed the code badly here."""
    same = {of for of, found in comparison.code.items() if found.kind in SAME_CODE}
    denied = {of for of, found in comparison.elsewhere.items() if found.machines.standing is Standing.NOT_REPLICATED}
    return [change for change in comparison.changes if change.series in same & denied]


def _per_cent(change: Change) -> float:
    """How far the ratio lies from 1, infinitely far from none; 1.02 is 2 %, although not in binary."""
    return math.inf if change.ratio is None else round(100 * abs(change.ratio - 1), 9)
