"""How are releases measured to be compared? Interleaved, round by round, in one session that can be resumed."""

import collections
import contextlib
import functools
import hashlib
import itertools
import json
import logging
import math
import os
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from asv import util
from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.console import log
from asv.machine import Machine
from asv.plugin_manager import plugin_manager
from asv.repo import get_repo
from rich.console import Console

from contract.certified import SLOW
from contract.metrics import COUNTS, NEVER_RECORDED, RUNNING, STEADY, TIMES, metric_of
from contract.request import Request
from contract.surroundings import kept

from ..releases.axis import Axis
from ..releases.environments import InstallationError
from ..store.launches import Launch, files_of, new_session, of_file, read_environments, read_file, read_launches
from ..system.errors import SessionError
from ..system.files import naming, read_object, write_atomically
from . import choice, reuse, values
from .budget import MOST_ROUNDS, Case, Effort, effort
from .choice import SCALES
from .conditions import Quiet, Watch, before_others, on_one_processor
from .plan import Plan, gigabytes
from .progress import Shown, minutes, shown_installing
from .recording import RecordedResults, Told, cases_of, first_words
from .server import Server, prepare_all
from .turns import ask_in_turns

SESSIONS = "sessions"
"""Folder in `env/` with a file for each session, so that a fresh clone measures instead of trusting old results."""

PATIENCE = 0.2
MOST_PATIENCE = 60.0
"""Share of the time, and seconds, that pass at most in waiting until others leave the processor alone."""

AT_A_TIME = 30
"""Cases whose numbers are written together, with the conditions that they were measured in: half a minute on one release."""

SECONDS_AT_A_TIME = 10.0
"""Seconds after which cases are written before the next begins: a killed session loses these at most, or one case."""

AGAIN_SHARE = 0.2
"""What was disturbed is measured again once in its round, in so much of the time: on a busy machine nearly all is."""

_Questions = dict[str, list[dict[str, Any]]]
"""Question -> asv's benchmarks of it, a metric each."""

_Cases = dict[int, tuple[str, ...]]
"""Index of a case -> the releases that measure it."""

_Work = dict[str, _Cases]
"""Question -> its cases that are measured."""


class _Part(NamedTuple):
    """Some cases of one question that are written together, and the releases on which they are timed alone."""

    question: str
    cases: _Cases
    timed: Collection[str]


def load_suite(root: Path) -> tuple[Config, Axis]:
    """asv's configuration of the suite in `root`, plugins loaded, and the axis; `root` becomes the working directory."""
    os.chdir(root)
    conf = Config.load("asv.conf.json")
    for plugin in conf.plugins:
        plugin_manager.import_plugin(plugin)
    return conf, get_repo(conf).axis


class Session:
    """One interleaved measurement of a plan, begun anew or gone on with."""

    def __init__(
        self,
        conf: Config,
        axis: Axis,
        plan: Plan,
        environment: Any,
        again: bool = False,
        folder: Path | None = None,
        shares: bool = False,
        request: Request | None = None,
        apart: bool = False,
    ) -> None:
        """`folder` holds what an interrupted session is gone on with. One that `shares` lets others measure on other
        processors; one that is `apart` is told without what others have stored."""
        self.conf, self._apart = conf, apart
        self.plan, self._again = plan, again
        self.machine = Machine.load(machine_name=None, interactive=False)
        self.environment = environment
        known = vars(self.machine)
        self._device, self._threads = str(known.get("device") or "cpu"), int(known.get("threads", 1))
        asked, device = request or Request.of(os.environ), str(known.get("device", ""))
        self._request = replace(asked, sizes=choice.scales(plan.sizes), device=device, threads=self._threads)
        self._axis = axis
        self._repo = get_repo(conf)
        # The same for sessions of which one goes on with the other: a plan on a machine, with a device.
        with_what = [known.get(name, "") for name in ("machine", "device", "gpu", "card", "threads")]
        with_what += getattr(environment, "identity", [])
        key = hashlib.sha256(json.dumps([plan.digest, with_what]).encode()).hexdigest()[:16]
        self.state = (folder or Path(conf.env_dir, SESSIONS)) / f"{key}.json"
        stored = {} if again else self._stored_state()
        self.id: str = stored.get("id") or new_session()
        begun = bool(stored and self.launches())
        self._suite = _suite(conf)
        self.finished = begun and stored.get("finished") is True and stored.get("suite") == self._suite
        self.resumed = begun and not self.finished
        self.spent = self.resumed and stored.get("spent") is True and stored.get("suite") == self._suite
        self._over, self._whole, self._last = False, False, True
        self._starting = choice.START
        self._waited = self._repeating = 0.0
        if self._device == "recorder" and plan.only != "counts":
            raise SessionError(NEVER_RECORDED.capitalize() + ".")
        # On a GPU as well: a case that the host holds up takes half as long again on some of its processors as on others.
        self._on_one = self._device in RUNNING and self._threads == 1
        self._in_turns = self._device == "cpu"
        self._shares, self._moves = shares, self._on_one and not shares
        self._quiet = Quiet(os.sched_getaffinity(0) if self._moves else ())
        self._calm = Quiet()
        self._chosen, self._asked = set[choice.Place](), set[tuple[str, ...]]()
        self._took: dict[Case, float] = {}
        self._ends = math.inf
        self._values = ""
        """The folder of what cases return while it is compared, empty where it is not."""

    @functools.cached_property
    def _watch(self) -> Watch:
        """Made where something is measured: beside a GPU it starts a program of the driver's."""
        return Watch(gpu=self._device == "cuda", threads=os.cpu_count() or 1 if self._shares else self._threads)

    def launches(self) -> list[Launch]:
        files = files_of(Path(self.conf.results_dir, self.machine.machine))
        ours = (path for path in files if of_file(path)[0] in self.plan.releases)
        return [launch for path in ours for launch in read_file(path) if launch.session == self.id]

    def effort(self, turn: float = math.inf) -> Effort:
        """What the rounds before `turn` leave undecided."""
        launches = [launch for launch in self.launches() if launch.round < turn]
        found = effort(launches, self.plan.pairs, self.plan.divides, self._took, self._starting, self.beside)
        rest = self._asked - {case.parameters for launch in launches for case in launch.cases}
        return replace(found, unreached=sorted(" ".join(part.strip("'") for part in case).strip() for case in rest))

    @functools.cached_property
    def beside(self) -> list[Launch]:
        """What other sessions have stored of the same questions, of an own file in today's text: all of it is told."""
        if self._apart:
            return []
        ours = {launch.benchmark: launch.version for launch in self.launches()}
        names = {benchmark.partition(".")[0] for benchmark in ours}
        stored = read_launches(Path(self.conf.results_dir), self.machine.machine, self.plan.environment, names)
        of_text = ours if self.plan.workload else {}
        others = (one for one in stored if one.session != self.id)
        return [one for one in others if of_text.get(one.benchmark, one.version) == one.version]

    def measure(self, console: Console, last: bool = True) -> None:
        """Measures what is missing of the plan, within its budget, installation and all that is asked again counted in.
        Raises KeyboardInterrupt when interrupted; what was finished is kept. Where the budget, or the time of the plan, ends
        before all is told the session is not finished, and `spent` where all was measured once: asked again, it goes on.
        What luck may tell gets time of the `last` session alone: others share theirs."""
        self._last = last and not self.plan.within
        self._save_state(finished=False)
        self.machine.save(self.conf.results_dir)
        began = time.monotonic()
        self._ends = began + self._seconds
        if self.plan.workload and not self.plan.cases and not (self.resumed or self.finished):
            self._try_own_workload(console)
        self._install(console)
        benchmarks, questions = self._discover(), dict[str, list[dict[str, Any]]]()
        for name in sorted(benchmarks):
            questions.setdefault(name.rpartition(".")[0], []).append(benchmarks[name])
        self._processors = os.sched_getaffinity(0)
        # What a file of one's own holds in memory is not known.
        self._made_ready_on = sorted(self._processors) if self._moves and not self.plan.workload else []
        kept = on_one_processor() if self._on_one else contextlib.nullcontext()
        self._shown = Shown(console)
        self._watch.begin()  # beside a GPU another program starts, on any processor and with no priority
        with kept, before_others():
            for chosen in self._portions(questions, console):
                self._chosen = chosen
                self._turns(questions, began)
        if self._waited >= 1:
            console.print(f"Waited {minutes(self._waited)} in total until other processes left the processor idle.")
        self._save_state(finished=not self._over)

    @property
    def _seconds(self) -> float:
        """The seconds in which all of it ends; infinite where nothing limits them."""
        return min(self.plan.within or math.inf, self.plan.budget or math.inf)

    def _portions(self, questions: _Questions, console: Console) -> Iterator[set[choice.Place]]:
        """Everything, or where the plan has a limit portions by `choice.rank`, each with all its rounds. Raises SessionError
        where a size or a variant is asked for that nothing has."""
        every = [case for metrics in questions.values() for case in cases_of(metrics[0]) if case]
        sizes, variants = ({case[place].strip("'") for case in every} for place in (-1, 0))
        own = sizes if self.plan.workload else set()  # which may be called as a scale is
        # A scale, such as `small`, is one wherever some size has it.
        whole = (size for size in self.plan.sizes if size not in SCALES)
        choice.refuse_unknown(whole, sizes.union(() if self.plan.workload else SCALES), "size")
        choice.refuse_unknown(self.plan.variants, variants, "variant")
        where = {
            (question, index): case
            for question, metrics in questions.items()
            for index, case in enumerate(cases_of(metrics[0]))
            if not self.plan.cases or case in self.plan.cases
            if choice.is_asked(case, self.plan.sizes, self.plan.variants)
            if self.plan.sizes == SCALES or not own & {*self.plan.sizes} or case[-1].strip("'") in self.plan.sizes
        }
        self._asked = {case for (question, _), case in where.items() if self._of_turn(questions[question], 1)}
        if not self.plan.within:
            yield set(where)
            return
        slow = [p for p, case in where.items() if case and case[0].strip("'") in SLOW and not self.plan.variants]
        if slow:
            console.print(f"{len(slow)} of {len(where)} cases are skipped, because one call takes too long.")
        ordered = sorted(where.keys() - slow, key=lambda place: (choice.rank(place[0], where[place]), place))
        for first in range(0, len(ordered), choice.AT_ONCE):
            if self._is_over():
                return
            yield set(ordered[first : first + choice.AT_ONCE])

    def _turns(self, questions: _Questions, began: float) -> None:
        """The rounds of what is chosen, then those that the budget allows."""
        last_turn = 0.0
        say = self._shown.console.print
        stored = max((launch.round for launch in self.launches()), default=0)
        for turn in (at for at in itertools.count(1) if not self.plan.launches < at < stored):
            left = self.plan.budget - (time.monotonic() - began) if self.plan.budget else math.inf
            work, words = self._work(questions, turn, left)
            if not work:
                if words:
                    say(words)
                break
            if turn > 2 and last_turn > left and turn <= self.plan.launches:
                say(f"The budget allows no further round after {turn - 1} of {self.plan.launches}.")
                self._over = self._whole = True
                break
            if self._is_over():
                say("The time is over. What was measured is stored, and the same command continues.")
                break
            turn_began = time.monotonic()
            self._round(turn, questions, work, words)
            last_turn = time.monotonic() - turn_began

    def _is_over(self) -> bool:
        over = time.monotonic() >= self._ends
        self._over = self._over or over
        return over

    def _may_repeat(self) -> bool:
        """Whether what is measured again has not had its share of the time."""
        return self._repeating < AGAIN_SHARE * self._seconds

    def _work(self, questions: _Questions, turn: int, left: float) -> tuple[_Work, str]:
        """What round `turn` measures, and a line on it: everything, then what can be decided in the seconds `left`."""
        releases = self.plan.releases
        if turn <= self.plan.launches:
            everything = {
                question: {i: releases for i in range(len(cases_of(metrics[0]))) if (question, i) in self._chosen}
                for question, metrics in questions.items()
                if self._of_turn(metrics, turn)
            }
            asked = "all cases" if not self.plan.within else f"{len(self._chosen)} cases"
            return everything, f"Round {turn} of {self.plan.launches}, {asked}"
        if not self.plan.budget or self.plan.only == "counts" or len(releases) < 2:
            return {}, ""
        work = self._held(questions) if turn == 2 else defaultdict(dict)
        places = {question: {case: i for i, case in enumerate(cases_of(of[0]))} for question, of in questions.items()}
        found = self.effort(turn)
        given_up = f", {found.hopeless} would need more than {MOST_ROUNDS} rounds" if found.hopeless else ""
        if found.needless:
            given_up += f", {found.needless} need no verdict, because another pair holds the change"
        decided = found.series - found.undecided - found.hopeless - found.needless
        told = f"{decided} of {found.series} times are conclusive{given_up}"
        still = f"{found.undecided} {'is' if found.undecided == 1 else 'are'}"
        chosen, held = found.within(left), bool(work)
        if not (found.undecided or held or (chosen and self._last)):
            return {}, f"After round {turn - 1}, {told}." if found.series else ""
        if not (chosen or held):
            self._over = True
            needs = f"{still} inconclusive, and would take {minutes(found.seconds)} more."
            spent = "The budget" if self._last or self.plan.within else "A share of the budget"
            return {}, f"{spent} is spent after round {turn - 1}. {told}. {needs}"
        for (question, parameters), more in chosen.items():
            if parameters in places[question]:  # else the file lists it no more, as one does that asks its surroundings
                work[question][places[question][parameters]] = more.releases
        if not found.undecided:
            rest = f"Some may still be told in the {minutes(left)} that are left of the budget."
            return dict(work), f"Round {turn}. {told}. {'Growth of memory is measured once more.' if held else rest}"
        first = sum(more.undecided for more in chosen.values())
        quickest = f"quickest {first} of them" if first > 1 else "quickest"
        begin = f" First the {quickest}." if 0 < first < found.undecided else ""
        return dict(work), (
            f"Round {turn}. {told}. {still} still inconclusive, which takes about {minutes(found.seconds)}. "
            f"{minutes(left)} of the budget are left.{begin}"
        )

    def _held(self, questions: _Questions) -> _Work:
        """All cases of the questions whose numbers are no times but need two launches, such as what memory grows by."""
        held: _Work = defaultdict(dict)
        for question, metrics in questions.items():
            if (known := self._of_turn(metrics, 2)) and not any(metric_of(of["name"]).varies for of in known):
                cases = range(len(cases_of(metrics[0])))
                held[question] = {i: self.plan.releases for i in cases if (question, i) in self._chosen}
        return held

    def _round(self, turn: int, questions: _Questions, work: _Work, words: str) -> None:
        """Says `words`, and measures what is missing of one round; disturbed times once more, in fresh interpreters."""
        parts = self._missing(turn, questions, work)
        if not parts:  # as where a session goes on
            self._whole = self._whole or turn >= self.plan.launches
            return
        total = sum(map(_number, work.values()))
        self._shown.begin(words, total, total - sum(_number(part.cases) for part in parts))
        later: Callable[[Mapping[str, Server]], list[_Part]] | None = None
        order = {tag for part in parts for of_case in part.cases.values() for tag in of_case}
        asks_all = self._again or self.plan.only or self.plan.arms or kept(os.environ)
        if turn == 1 and self._device == "cpu" and not asks_all:  # counts that are stored are taken from there
            names = [question.partition(".")[0] for question in work]
            known = reuse.stored(Path(self.conf.results_dir), self.plan.environment, order, names, self.id)
            if any(known.values()):
                again, rest = self._sample(questions, work)
                parts = self._missing(turn, questions, again)
                later = functools.partial(self._rest, known, questions, rest)
        disturbed = self._once(turn, 0, questions, parts, order, later)
        if disturbed and not self._is_over() and self._may_repeat():
            self._shown.total += sum(_number(part.cases) for part in disturbed)
            self._once(turn, 1, questions, disturbed, order)

    @staticmethod
    def _sample(questions: _Questions, work: _Work) -> tuple[_Work, _Work]:
        """The cases that are counted again where counts are known, and the others."""
        again: _Work = defaultdict(dict)
        rest: _Work = defaultdict(dict)
        for question, cases in work.items():
            of_case = cases_of(questions[question][0])
            chosen = reuse.sample(of_case[i] for i in cases)
            for i, tags in cases.items():
                (again if of_case[i] in chosen else rest)[question][i] = tags
        return again, rest

    def _rest(
        self, known: reuse.Stored, questions: _Questions, work: _Work, servers: Mapping[str, Server]
    ) -> list[_Part]:
        """What is missing of `work` once stored counts are taken: none where one that was counted again differs."""
        here, ours, usable = self.machine.machine, self.launches(), {}
        for tag in servers:
            launches = [launch for launch in ours if (launch.round, launch.release) == (1, tag)]
            facts = next((launch.facts for launch in launches if "environment" in launch.facts), {})
            records = read_environments(Path(self.conf.results_dir), here, tag, self.plan.environment)
            of_tag = known[tag].get(reuse.identity(records.get(facts.get("environment", ""), {})), {})
            compared, differs = reuse.difference(launches, of_tag)
            if differs:
                self._shown.console.print(f"All is counted, because {differs}.", markup=False, highlight=False)
                return self._missing(1, questions, work)
            usable[tag] = facts, of_tag if compared else {}
        for part in self._missing(1, questions, work):
            metrics = self._of_turn(questions[part.question], 1)
            names = [(of["name"], of["version"]) for of in _counts(metrics)]
            for tag, (facts, of_tag) in usable.items():
                cases = {i: cases_of(metrics[0])[i] for i, tags in part.cases.items() if tag in tags}
                whole = {i: case for i, case in cases.items() if all((*of, case) in of_tag for of in names)}
                for metric in () if tag in part.timed else _counts(metrics):
                    told = {i: of_tag[metric["name"], metric["version"], case] for i, case in whole.items()}
                    for source in {one.source for one in told.values()}:
                        these = {i: _told(one, facts) for i, one in told.items() if one.source == source}
                        servers[tag].results.reuse(metric, these, self.conf.results_dir)
        return self._missing(1, questions, work)

    def _once(
        self,
        turn: int,
        repeat: int,
        questions: _Questions,
        parts: list[_Part],
        tags: Collection[str],
        later: Callable[[Mapping[str, Server]], list[_Part]] | None = None,
    ) -> list[_Part]:
        """Measures `parts`, then `later`; returns those disturbed. Interpreters start in an order of chance."""
        disturbed: list[_Part] = []
        order = sorted(tags)
        random.Random(f"{self.id} {turn} {repeat}").shuffle(order)
        with contextlib.ExitStack() as stack:
            began = time.monotonic()
            # What is planted for a calibration changes no result, and nothing on the recorder has one.
            is_compared = (turn, repeat) == (1, 0) and self._device in RUNNING and not self.plan.arms
            folder = tempfile.TemporaryDirectory(prefix="torch-history-values-") if is_compared else None
            self._values = stack.enter_context(folder) if folder else ""
            servers = {tag: stack.enter_context(self._server(tag, turn)) for tag in order}
            prepare_all(list(servers.values()), self._processors)
            self._starting = time.monotonic() - began
            waiting = collections.deque((part, 0) for part in parts)
            while (waiting or later) and not self._is_over() and (not repeat or self._may_repeat()):
                if not waiting and later:
                    waiting, later = collections.deque((part, 0) for part in later(servers)), None
                    continue
                part, before = waiting.popleft()
                metrics = self._of_turn(questions[part.question], turn)
                began = time.monotonic()
                fair, rest = self._measure_part(turn + before + repeat, metrics, part, servers)
                self._repeating += repeat * (time.monotonic() - began)
                if rest:
                    part = part._replace(cases={index: of for index, of in part.cases.items() if index not in rest})
                    waiting.appendleft((_Part(part.question, rest, part.timed), before + len(part.cases)))
                if not fair and self._only(turn) != "counts" and not self._take_turns(metrics):
                    disturbed.append(part)
        self._whole = self._whole or (turn >= self.plan.launches and not repeat and not waiting and not later)
        return disturbed

    def _measure_part(
        self, order: int, metrics: list[dict[str, Any]], part: _Part, servers: Mapping[str, Server]
    ) -> tuple[bool, _Cases]:
        """Measures cases of a question, reversed at every other `order`; returns whether all was fair, and the rest."""
        timed = any(metric_of(metric["name"]).kind == TIMES for metric in metrics)
        turns = self._take_turns(metrics)
        question, of_question = metrics[0]["name"].rpartition(".")[0], cases_of(metrics[0])
        self._watch.begin()
        if timed and not turns:
            self._wait()
        cases, rest = part.cases, dict[int, tuple[str, ...]]()
        for tag, server in servers.items():
            server.channel.only = TIMES if tag in part.timed else server.request.only
        began = time.monotonic()
        try:
            for number, (index, tags) in enumerate(cases.items()):
                now = time.monotonic()
                if number and (now - began >= SECONDS_AT_A_TIME or now >= self._ends):
                    rest = dict(itertools.islice(cases.items(), number, None))
                    break
                in_order = tags if (number + order) % 2 else tags[::-1]
                if turns:
                    how = self._quiet, self._made_ready_on, self._watch.untimed
                    seconds = ask_in_turns([servers[tag] for tag in in_order], metrics[0], index, *how)
                    self._took[question, of_question[index]] = seconds / len(tags)
                for tag in in_order:
                    if not turns:
                        servers[tag].ask(metrics[0], index)
                        if timed:
                            self._wait()
                    self._shown.advance()
                on_axis = sorted(tags, key=lambda name: self._axis.position(self.plan.arm(name).tag))
                told = {tag: servers[tag].results.returned(index) for tag in on_axis}
                values.compare(Path(self._values), {tag: found for tag, found in told.items() if found})
                self._watch.control()
        finally:
            conditions = self._watch.lap()
            for tag, server in servers.items():
                of_tag = [of for of in metrics if tag not in part.timed or not reuse.is_count(of["name"])]
                server.results.record(of_tag, conditions, self.conf.results_dir)
        return "disturbed" not in conditions, rest

    def _wait(self) -> None:
        """Waits until the processor is calm, as long as patience lasts."""
        left = min(PATIENCE * self._seconds, MOST_PATIENCE) - self._waited
        if left > 0:
            self._waited += self._watch.wait(self._calm, left)

    def _server(self, name: str, turn: int) -> Server:
        arm = self.plan.arm(name)
        self._select(arm.tag)
        python, date = self.environment.python, self._repo.get_date(arm.tag)
        params = {**vars(self.machine), "python": python}
        results = RecordedResults(params, {}, name, date, python, self.environment.name, {})
        results.session, results.round, results.tag = self.id, turn, arm.tag
        results.load_data(self.conf.results_dir)
        request = replace(self._request, only=self._only(turn), planted=arm.planted, values=self._values)
        return Server(self.conf, self.environment, results, request, takes_turns=self._in_turns)

    def _take_turns(self, metrics: Sequence[Mapping[str, Any]]) -> bool:
        """Whether releases take turns in these metrics of a question: where calls are repeated within a process."""
        known = [metric_of(metric["name"]) for metric in metrics]
        return self._in_turns and any(of.varies and of.measured == STEADY for of in known)

    def _missing(self, turn: int, questions: _Questions, work: _Work) -> list[_Part]:
        """What of `work` is not stored yet, in parts of AT_A_TIME cases. What a release cannot run is asked once only."""
        done = {
            (launch.release, launch.benchmark, launch.version, case.parameters)
            for launch in self.launches()
            for case in launch.cases
            if (launch.round == turn and not case.unmeasured) or (launch.round == 1 and case.unavailable)
        }
        parts = []
        for question, cases in work.items():
            metrics = self._of_turn(questions[question], turn)
            missing: dict[tuple[str, ...], _Cases] = defaultdict(dict)
            for index, tags in cases.items():
                key = cases_of(metrics[0])[index]
                new = {tag: [of for of in metrics if (tag, of["name"], of["version"], key) not in done] for tag in tags}
                timed = tuple(tag for tag in tags if new[tag] and not _counts(new[tag]))
                if any(new.values()):
                    missing[timed][index] = tuple(tag for tag in tags if new[tag])
            for on, of_them in missing.items():
                items = list(of_them.items())
                firsts = range(0, len(items), AT_A_TIME)
                parts += [_Part(question, dict(items[first : first + AT_A_TIME]), on) for first in firsts]
        return parts

    def _install(self, console: Console) -> None:
        tags = list(dict.fromkeys(self.plan.arm(name).tag for name in self.plan.releases))
        folder = getattr(self.environment, "folder", None)  # none where a torch that is installed is measured
        if new := [tag for tag in tags if folder and not folder(self._axis.find(tag)).exists()]:
            what = "1 release is" if len(new) == 1 else f"{len(new)} releases are"
            size = f"at most {sum(map(gigabytes, new)):.0f} GB on the disk, a minute each or more"
            console.print(f"{what} installed first: {size}.")
        for number, tag in enumerate(tags, start=1):
            with shown_installing(console, f"Preparing {tag} ({number} of {len(tags)})"):
                self._select(tag)
                os.sync()  # what the system still wrote would disturb the first launches

    def _select(self, tag: str) -> None:
        try:
            with log.set_level(logging.CRITICAL):
                self.environment.install_project(self.conf, self._repo, tag)
        except InstallationError as error:
            raise SessionError(str(error)) from error

    def _discover(self) -> Benchmarks:
        self.environment.request = self._request
        newest = self.plan.arm(self.plan.releases[-1]).tag
        regex = rf"^({self.plan.questions})\."
        benchmarks = Benchmarks.discover(self.conf, self._repo, [self.environment], [newest], regex=regex)
        with naming(Path(self.conf.results_dir, "benchmarks.json")):
            benchmarks.save()
        if not benchmarks:
            questions = {name.partition(".")[0] for name in Benchmarks.load(self.conf)}
            raise SessionError(f"There is no question '{self.plan.questions}'. Known: {', '.join(sorted(questions))}.")
        return benchmarks

    def _try_own_workload(self, console: Console) -> None:
        """Calls each function of the user's file once before all releases are installed, and says which failed. Raises
        SessionError where the file cannot be imported, or nothing works on the newest release and on the oldest one."""
        newest, oldest = (self.plan.arm(self.plan.releases[place]).tag for place in (-1, 0))
        with shown_installing(console, f"Preparing {newest}, and trying each function once there"):
            said = self._trial(newest)
        told = {name: first_words(why).rstrip(".") for name, why in said.items() if why}
        failed = [f"`{name}` failed on {newest}: {why}." for name, why in told.items()]
        all_failed = bool(said) and len(failed) == len(said)
        if all_failed and (oldest == newest or all(self._trial(oldest).values())):
            raise SessionError(f"Nothing in the workload can be measured. {failed[0]}")
        for sentence in failed:
            console.print(sentence, markup=False, highlight=False)

    def _trial(self, tag: str) -> dict[str, str | None]:
        """Function -> how it failed, empty for not, None where the release cannot run it. Raises SessionError."""
        self._select(tag)
        self.environment.request = self._request
        with tempfile.TemporaryDirectory() as folder:
            answer = Path(folder, "answer.json")
            code = f"import sys; sys.path.insert(0, {os.getcwd()!r}); import benchmarks.own"
            if self._device != "recorder":
                code += f"; benchmarks.own.trial({str(answer)!r})"
            try:
                self.environment.run(["-c", code], dots=False, display_error=False, cwd=folder)
            except util.ProcessError as error:
                last = (error.stderr.strip().splitlines() or ["it ended without a message"])[-1]
                raise SessionError(f"The workload cannot be measured: {last.partition(': ')[2] or last}.") from error
            return read_object(answer) if answer.exists() else {}

    def _of_turn(self, metrics: list[dict[str, Any]], turn: int) -> list[dict[str, Any]]:
        """Those of a question's metrics that round `turn` measures on this device, times first: the first one is asked."""
        known = sorted(((one, metric_of(one["name"])) for one in metrics), key=lambda pair: pair[1].kind == COUNTS)
        only = self._only(turn)
        return [metric for metric, of in known if only in ("", of.kind) and self._device in of.devices]

    def _only(self, turn: int) -> str:
        """What round `turn` measures, empty for both: no counts after the first."""
        return self.plan.only or ("times" if turn > 1 else "")

    def _stored_state(self) -> dict[str, Any]:
        try:
            state = read_object(self.state) if self.state.exists() else {}
            if state and not isinstance(state.get("id"), str):
                raise ValueError("it names no session")
        except ValueError as error:
            log.warning(f"{self.state}: {error}, so a new session begins. The measurements of the last one are kept.")
            return {}
        return state

    def _save_state(self, finished: bool) -> None:
        self.state.parent.mkdir(parents=True, exist_ok=True)
        spent = self._over and self._whole
        state = {"id": self.id, "finished": finished, "spent": spent, "suite": self._suite}
        write_atomically(self.state, json.dumps(state))


def _suite(conf: Config) -> str:
    """A digest of the sources that say what is measured: after an edit a finished session has something to do again."""
    digest = hashlib.sha256()
    for folder in (conf.benchmark_dir, "contract", "measure", "recorder", "workloads"):
        for path in sorted(Path(folder).rglob("*.*")):
            if path.suffix in (".py", ".cpp"):
                digest.update(path.read_bytes())
    return digest.hexdigest()


def _counts(metrics: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [metric for metric in metrics if reuse.is_count(metric["name"])]


def _told(known: reuse.Known, facts: Mapping[str, Any]) -> Told:
    """What a launch is told of a count that another one has taken, with the facts of its own process."""
    case = known.case
    own = {name: facts[name] for name in ("torch", "python", "threads", "device") if name in facts}
    of_case = {"unavailable": case.unavailable} if case.unavailable else {"detectable": case.detectable}
    return Told({**own, **of_case, reuse.TAKEN: known.source}, "", 0, math.nan if case.value is None else case.value)


def _number(cases: _Cases) -> int:
    """How many of a case on one release they are."""
    return sum(map(len, cases.values()))
