"""Does `upgrade` find the release of each change with few installations, go on where it was stopped, and say what it saw?"""

import contextlib
import itertools
import json
import math
import random
from collections.abc import Collection, Hashable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from torch_history.analysis.causes import Known
from torch_history.analysis.series import Verdict
from torch_history.cli import main, upgrading
from torch_history.measuring.budget import Effort, effort
from torch_history.measuring.upgrading.room import GIGABYTE, Room
from torch_history.measuring.upgrading.search import Look, Moved, Search, expected_releases
from torch_history.measuring.upgrading.sessions import NotInstalled, Spent
from torch_history.measuring.upgrading.upgrade import Answer, Upgrade
from torch_history.measuring.upgrading.words import text
from torch_history.releases.added import AddingError, Sized
from torch_history.releases.axis import Axis
from torch_history.store.launches import Case, Launch
from torch_history.system.errors import UserError

from .lab import AXIS
from .processes import ROOT
from .test_verdicts import launch

TAGS = tuple(f"v2.{i}.0" for i in range(30))
ROUNDS = 5
BYTES = 4096


class Laboratory:
    """Releases whose functions take 1 ms until they change. `slower` and `bytes` are function -> position -> factor;
    `broken` is function -> position from which it fails; `stop` ends the measurement of so many sessions."""

    machine, environment, device = "here", "release-py3.11", "cpu"

    def __init__(self, slower: Mapping[str, Mapping[int, float]], noise: float = 0.004, seed: int = 0) -> None:
        self.slower = slower
        self.bytes: Mapping[str, Mapping[int, float]] = {}
        self.broken: Mapping[str, int] = {}
        self.noise = noise
        self.random = random.Random(seed)
        self.left, self.measured = math.inf, 0.0
        self.shares: list[float] = []
        self.stored: dict[tuple[tuple[str, ...], tuple[Any, ...]], list[Launch]] = {}
        self.installed, self.refused = set[str](), set[str]()
        self.sessions, self.stop, self.rounds = 0, math.inf, ROUNDS
        self.rounds_at_first = {2: ROUNDS, 3: ROUNDS}
        self.known: list[Known] = []

    def measure(self, tags: tuple[str, ...], cases: Collection[Any], share: float = 1.0) -> None:
        key = tags, tuple(cases)
        if len(self.stored.get(key, [])) == 2 * ROUNDS * len(tags):
            return
        if self.left <= 0:
            raise Spent
        self.left, self.measured = self.left - 60, self.measured + 60
        self.shares.append(share)
        for tag in tags:
            if tag in self.refused:
                raise NotInstalled(tag, f"{tag} is in a locked room.")
            self.installed.add(tag)
        self.sessions += 1
        rounds = self.rounds if key in self.stored else min(self.rounds, self.rounds_at_first[len(tags)])
        launches = self.stored[key] = []
        for number in range(1, rounds + 1):
            for tag in tags:
                launches += self._launches(key, tag, number)
            if self.sessions > self.stop and number == min(2, self.rounds):
                raise KeyboardInterrupt

    def launches(self, tags: tuple[str, ...], cases: Collection[Any]) -> Sequence[Launch]:
        return self.stored.get((tags, tuple(cases)), [])

    def effort(self, tags: tuple[str, ...], cases: Collection[Any]) -> Effort:
        return effort(self.launches(tags, cases), list(itertools.pairwise(tags)), len(tags) == 3)

    def can_go_on(self, tags: tuple[str, ...], cases: Collection[Any]) -> bool:
        return self.left > 0 and self.effort(tags, cases).undecided > 0

    def facts(self, tag: str) -> Mapping[str, Any]:
        return {"torch": tag[1:]}

    def evidence(self) -> Sequence[Known]:
        return self.known

    def not_there(self) -> Sequence[Known]:
        return []

    def _launches(self, key: Any, tag: str, number: int) -> list[Launch]:
        names = [name for name in self.slower if not key[1] or (repr(name), "''") in key[1]]
        which: dict[str, Any] = {"session": f"session of {key}", "round": number}
        return [
            launch(tag, f"mine.Own.track_{metric}", *(self._case(name, metric, tag) for name in names), **which)
            for metric in ("time", "peak_memory")
        ]

    def _case(self, name: str, metric: str, tag: str) -> Case:
        at, parameters = TAGS.index(tag), (repr(name), "''")
        if at >= self.broken.get(name, len(TAGS)):
            return Case(parameters, failed="RuntimeError: gone")
        if metric == "peak_memory":
            return Case(parameters, value=round(BYTES * _factor(self.bytes.get(name, {}), at)))
        noise = math.exp(self.random.gauss(0, self.noise))
        return Case(parameters, samples=(1e-3 * _factor(self.slower[name], at) * noise,))


def _factor(changes: Mapping[int, float], at: int) -> float:
    return math.prod(factor for since, factor in changes.items() if since <= at)


def asked(laboratory: Any, most: int | None = None) -> tuple[Upgrade, Answer]:
    upgrade = Upgrade(TAGS, laboratory, most=most)
    upgrade.run()
    return upgrade, said(upgrade)


def said(upgrade: Upgrade) -> Answer:
    found = upgrade.answer("mine.py", "3.11")
    assert found is not None
    return found


def exact(found: Answer) -> dict[str, list[str]]:
    """Series -> the releases that changed it, where these are known."""
    return {row.change.series.words: [place.new for place in row.places if place.is_exact] for row in found.rows}


@pytest.mark.parametrize("at", [1, 2, 9, 13, 14, 15, 22, 29])
def test_function_made_slower_at_one_of_thirty_releases_is_found_with_seven_installations(at):
    laboratory: Any = Laboratory({"f": {at: 1.1}, "still": {}}, seed=at)
    _, found = asked(laboratory)
    assert exact(found) == {"mine time, f": [TAGS[at]]}
    assert len(laboratory.installed) <= 7
    (place,) = found.rows[0].places
    assert place.change.verdict is Verdict.SLOWER
    assert (place.change.low or math.inf) < 1.1 < (place.change.high or 0)


def test_each_function_is_searched_by_itself_and_only_what_changed_is_measured_between_the_ends():
    laboratory: Any = Laboratory({"f": {5: 1.2}, "g": {21: 1.3}, "still": {}})
    laboratory.bytes = {"f": {5: 2.0}}
    _, found = asked(laboratory)
    assert exact(found) == {"mine time, f": ["v2.5.0"], "mine time, g": ["v2.21.0"], "mine peak memory, f": ["v2.5.0"]}
    between = [cases for tags, cases in laboratory.stored if len(tags) == 3]
    assert {case for cases in between for case in cases} == {("'f'", "''"), ("'g'", "''")}
    assert min(map(len, between)) == 1


def test_several_changes_of_one_function_are_found_each_and_a_slow_one_is_no_step():
    slowly = dict.fromkeys(range(1, len(TAGS)), 1.003)
    laboratory: Any = Laboratory({"f": {4: 1.1, 17: 1.3, 25: 1.2}, "slowly": slowly}, noise=0.001)
    _, found = asked(laboratory, most=len(TAGS))
    assert exact(found) == {"mine time, f": [TAGS[4], TAGS[17], TAGS[25]], "mine time, slowly": []}


@pytest.mark.parametrize("seed", range(4))
def test_seven_releases_find_the_largest_of_several_changes(seed):
    first, second = sorted(random.Random(seed).sample(range(1, len(TAGS)), 2))
    laboratory: Any = Laboratory({"f": {first: 1.06}, "g": {second: 2.0}})
    _, found = asked(laboratory, most=expected_releases(len(TAGS)))
    assert exact(found)["mine time, g"] == [TAGS[second]]
    assert len(laboratory.installed) <= 7
    (place,) = next(row.places for row in found.rows if row.change.series.words == "mine time, f")
    assert TAGS.index(place.old) < first <= TAGS.index(place.new)


@pytest.mark.parametrize(("moved", "seen"), [(Moved.NOTHING, (20, 21)), (Moved.UNKNOWN, (14, 29))])
def test_release_or_a_session_that_tells_nothing_surely_does_not_end_the_search(moved, seen):
    """The release in the middle has no number; or no clock tells what few releases differ by, and the search goes on in
    the half that moved, and says of which two releases the change is known."""

    def look(_: Hashable, old: int, new: int) -> Look:
        if 14 in (old, new) if moved is Moved.NOTHING else new - old <= 8:
            return Look(moved, 0.1 * (moved is Moved.UNKNOWN and old < 21 <= new))
        return Look(Moved.YES if old < 21 <= new else Moved.NO, 0.1)

    search = Search(30, lambda middle, task: True, look)
    search.run(["f"])
    assert [(span.old, span.new, span.seen) for span in search.spans["f"]] == [(20, 21, seen)]
    assert search.silent == ({("f", 14)} if moved is Moved.NOTHING else set())


def test_function_that_breaks_is_found_like_one_that_changes():
    laboratory: Any = Laboratory({"f": {}, "still": {}})
    laboratory.broken = {"f": 17}
    _, found = asked(laboratory)
    assert exact(found) == {"mine time, f": ["v2.17.0"], "mine peak memory, f": ["v2.17.0"]}
    assert len(laboratory.installed) <= 7
    assert "mine f: BROKE: RuntimeError: gone (peak memory, time).\n  at v2.17.0 (after v2.16.0): BROKE." in text(found)


def test_where_nothing_changed_only_the_ends_are_installed_and_it_says_what_would_have_been_seen():
    laboratory: Any = Laboratory({"f": {}, "there and back": {5: 2.0, 9: 0.5}})
    _, found = asked(laboratory)
    assert laboratory.installed == {TAGS[0], TAGS[-1]}
    assert found.rows == ()
    words = text(found)
    assert "Nothing became slower or faster" in words
    assert "mine time, f: SAME (" in words
    assert " times would have been seen." in words


def test_where_times_are_inconclusive_it_does_not_say_that_nothing_changed():
    laboratory: Any = Laboratory({"f": {}, "still": {}}, noise=0.5)
    words = text(asked(laboratory)[1])
    assert "Nothing became slower" not in words
    assert "No change is certain. 2 of 4 series are inconclusive, listed below." in words


def test_interrupted_between_it_tells_what_is_known_and_goes_on_from_what_is_stored():
    laboratory: Any = Laboratory({"f": {9: 1.1}, "still": {}}, seed=3)
    laboratory.stop = 3
    upgrade = Upgrade(TAGS, laboratory)
    with pytest.raises(KeyboardInterrupt):
        upgrade.run()
    words = text(said(upgrade))
    assert "This is not finished. The same command continues from here." in words
    assert "  after v2.7.0, at v2.14.0 at the latest: SLOWER 1." in words
    stored = {key: len(launches) for key, launches in laboratory.stored.items()}
    laboratory.stop = math.inf
    _, found = asked(laboratory)
    assert exact(found) == {"mine time, f": ["v2.9.0"]}
    assert "not finished" not in text(found)
    assert laboratory.sessions == len(laboratory.stored) + 1
    assert len(laboratory.installed) <= 7
    whole = [key for key, count in stored.items() if count == 2 * ROUNDS * len(key[0])]
    assert len(whole) == 3


def test_interrupted_before_there_is_evidence_it_does_not_say_that_nothing_changed(played, tmp_path):
    played.slower = {"still": {}}
    played.stop, played.rounds = 0, 1
    stopped = command(tmp_path)
    assert stopped.exit_code == 130
    assert "No change is certain" in stopped.stdout
    assert "Nothing became slower" not in stopped.stdout
    played.stop, played.rounds = math.inf, ROUNDS
    assert "Nothing became slower" in command(tmp_path).stdout


def test_release_that_cannot_be_installed_is_passed_over_and_named():
    laboratory: Any = Laboratory({"f": {9: 1.1}})
    laboratory.refused = {"v2.8.0"}
    _, found = asked(laboratory)
    (place,) = found.rows[0].places
    assert (place.old, place.new) == ("v2.7.0", "v2.9.0")
    words = text(found)
    assert "  after v2.7.0, at v2.9.0 at the latest: SLOWER 1." in words
    assert "v2.8.0 was passed over: v2.8.0 is in a locked room." in words


def test_no_more_releases_are_measured_than_allowed_and_the_rest_is_offered():
    laboratory: Any = Laboratory({"f": {9: 1.1}})
    _, found = asked(laboratory, most=4)
    assert len(laboratory.installed) == 4
    assert "More releases would tell more closely. Allow them with --most 30." in text(found)
    vars(found.left[0]).update(unreached=["g", "h"])
    assert "There was no time for g, h. Allow it with --budget." in text(found)
    vars(found).update(unfinished=True)
    assert "There was no time" not in text(found), "it was interrupted before"
    ends: Any = Laboratory({"f": {9: 1.1}})
    asked(ends, most=2)
    assert ends.shares == [1.0], "no search is left time for"


def test_search_that_spends_its_budget_tells_what_is_known_and_the_same_command_goes_on():
    laboratory: Any = Laboratory({"f": {9: 1.1}, "still": {}})
    laboratory.left = 180.0
    _, found = asked(laboratory)
    assert (laboratory.sessions, len(found.rows[0].places)) == (3, 1)
    assert not found.rows[0].places[0].is_exact
    assert "The budget was over before all releases were found. The same command continues from here." in text(found)
    assert laboratory.shares[:3] == [0.5, 1 / 5, 1 / 4], "half for the ends, and a part for each release of the search"
    laboratory.left = 300.0
    _, found = asked(laboratory)
    assert exact(found) == {"mine time, f": ["v2.9.0"]}
    assert laboratory.sessions == len(laboratory.stored)


def test_a_release_for_which_no_time_was_left_is_not_called_measured():
    laboratory: Any = Laboratory({"f": {9: 1.1}})
    laboratory.measure((TAGS[0], TAGS[-1]), ())
    laboratory.rounds = 0
    upgrade, found = asked(laboratory)
    assert (upgrade.is_spent, len(laboratory.installed), found.left_out) == (True, 3, {})


@pytest.mark.parametrize("rounds", [1, 0])
def test_what_is_left_of_the_budget_goes_to_releases_that_the_search_left_undecided(rounds):
    """Or whose first part was over before anything was measured, as on a busy machine."""
    laboratory: Any = Laboratory({"f": {9: 1.1}, "still": {}})
    laboratory.rounds_at_first[3] = rounds
    _, found = asked(laboratory)
    (place,) = found.rows[0].places
    assert (place.new, place.seen) == (TAGS[9], (TAGS[8], TAGS[9]))
    assert len(laboratory.installed) <= 7


def test_what_changed_surely_only_with_the_rest_of_the_budget_is_searched_at_the_same_releases():
    laboratory: Any = Laboratory({"f": {9: 2.0}, "late": {9: 1.07}, "still": {}})
    laboratory.rounds_at_first[2] = 2
    _, found = asked(laboratory)
    assert exact(found) == {"mine time, f": [TAGS[9]], "mine time, late": [TAGS[9]]}
    both = [cases for tags, cases in laboratory.stored if len(tags) == 3]
    assert {case for cases in both for case in cases} == {("'f'", "''"), ("'late'", "''")}
    assert all(len(cases) == 1 for cases in both)


def environment(root: Path, name: str, megabytes: float = 0.0) -> Path:
    """What stands for an environment that this program made."""
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "torch-history.json").write_text(json.dumps({"packages": [], "requirements": []}))
    (folder / "torch.so").write_bytes(b"x" * int(megabytes * 1e6))
    return folder


def test_room_removes_what_was_used_longest_ago_and_no_other_lane_nor_what_a_link_leads_to(tmp_path, write_releases):
    axis = Axis.load(write_releases("2.1.0", "2.2.0", "2.3.0", "2.4.0"))
    root = tmp_path / "env"
    for name in ("v2.1.0-py3.11", "v2.2.0-py3.11", "v2.2.0-py3.9"):
        environment(root, name, 4)
    elsewhere = environment(tmp_path / "elsewhere", "v2.3.0-py3.11", 4)
    (root / "v2.3.0-py3.11").symlink_to(elsewhere)
    used = 12e6 / GIGABYTE
    room = Room(root, "3.11", used + 4.5 - 0.003)
    room.make([axis.find("2.4.0")], ["v2.2.0", "v2.1.0"])
    assert {folder.name for folder in root.glob("v*")} == {"v2.1.0-py3.11", "v2.2.0-py3.9", "v2.3.0-py3.11"}
    assert (elsewhere / "torch-history.json").exists()
    with pytest.raises(UserError, match=r"v2\.4\.0 take about 4 GB together, .* --disk 3GB.*prune --lane`"):
        Room(root, "3.11", 3.0).make([axis.find("2.4.0")], [])


@pytest.mark.parametrize(
    ("verdict", "words"), [("CAUSE", "because aten::add holds 95 %"), ("UNKNOWN", "cause unknown; no place holds it")]
)
def test_cause_that_was_found_is_told_at_its_release_and_is_not_to_be_looked_for_again(verdict, words):
    laboratory: Any = Laboratory({"f": {9: 1.1}, "g": {12: 1.2}})
    upgrade, before = asked(laboratory)
    assert text(before).count("torch-history explain") == 2
    assert [place.new for place in before.unexplained] == [TAGS[12], TAGS[9]]
    measured = laboratory.sessions
    series = (laboratory.environment, "mine.Own.track_time", ("'f'", "''"))
    laboratory.known = [Known(*series, TAGS[8], TAGS[9], 1.1, verdict, words)]
    upgrade.tell_again()
    after = said(upgrade)
    assert laboratory.sessions == measured
    (told,) = (line for line in text(after).splitlines() if f"at {TAGS[9]} (after {TAGS[8]})" in line)
    assert words in told
    assert text(after).count("torch-history explain") == 1
    assert [place.new for place in after.unexplained] == [TAGS[12]]


@pytest.fixture
def played(monkeypatch, tmp_path) -> Laboratory:
    """A laboratory of the real axis' releases that the command takes for its own."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    asked: Any = SimpleNamespace(old="2.0.1", new="2.15.0", lane="3.11")
    path = upgrading.on_the_way(AXIS, asked, lambda words: None)
    monkeypatch.setitem(globals(), "TAGS", tuple(release.tag for release in path))
    laboratory: Any = Laboratory({"f": {9: 1.1}, "still": {}})
    laboratory.out = SimpleNamespace(status=lambda words: contextlib.nullcontext())
    laboratory.releases = SimpleNamespace(adding=lambda release: [Sized("torchvision==0.21", 50_000_000)])
    monkeypatch.setattr(upgrading, "Sessions", lambda *of, **more: vars(laboratory).update(room=of[-1]) or laboratory)
    environments = SimpleNamespace(ReleaseEnvironment=lambda *_: SimpleNamespace(root=tmp_path / "env"))
    monkeypatch.setattr(upgrading, "environments", environments)
    monkeypatch.setattr(upgrading, "alone", lambda _: contextlib.nullcontext())
    (tmp_path / "mine.py").write_text("functions = {'f': abs, 'still': abs}\ndef inputs(): return 1\n")
    return laboratory


def command(tmp_path: Path, *arguments: str) -> Result:
    name = str(tmp_path / "mine.py")
    return CliRunner().invoke(main, ["upgrade", name, "--from", "2.0.1", "--to", "2.15.0", *arguments])


@pytest.mark.parametrize(("limit", "code"), [("slower:5%", 3), ("slower:50%", 0), ("broke", 0)])
def test_fail_on_gives_exit_code_3(played, tmp_path, limit, code):
    found = command(tmp_path, "--fail-on", limit)
    assert found.exit_code == code
    assert ("Failed by --fail-on: mine time, f." in found.stdout) == (code == 3)


def test_json_is_that_of_compare_with_the_places_of_each_change(played, tmp_path):
    found = command(tmp_path, "--json", "--fail-on", "slower:5%")
    document = json.loads(found.stdout)
    assert found.exit_code == 3
    assert (document["old"], document["new"], document["failed"]) == ("v2.0.1", "v2.15.0", 1)
    assert document["upgrade"]["releases"] == list(TAGS)
    assert document["upgrade"]["finished"] is True
    (slower,) = (change for change in document["changes"] if change["verdict"] == "SLOWER")
    (place,) = slower["places"]
    assert (place["after"], place["at"], place["exact"]) == (TAGS[8], TAGS[9], True)
    assert place["low"] < 1.1 < place["high"]
    assert place["explain"].startswith(f"torch-history explain {TAGS[8]} {TAGS[9]} f --workload ")


def test_an_end_that_cannot_have_the_packages_is_refused_before_anything_is_installed(played, tmp_path):
    def refused(release: Any) -> Any:
        raise AddingError(f"torchvision cannot be had for {release.tag}.")

    played.releases.adding = refused
    (tmp_path / "mine.py").open("a").write("requirements = ['torchvision']\n")
    found = command(tmp_path)
    assert found.exit_code == 1
    assert "torchvision cannot be had for v2.0.1." in str(found.stderr) + str(found.exception)
    assert not played.installed


def test_nothing_ran_is_exit_code_4(played, tmp_path):
    played.broken = {"f": 0, "still": 0}
    found = command(tmp_path)
    assert found.exit_code == 4
    assert "NO NUMBER: RuntimeError: gone" in found.stdout
    assert "Nothing ran, so nothing can be compared." in found.stdout
    played.launches = lambda *_: []
    said = command(tmp_path).stderr
    assert "No number was measured in that time. Give more" in said
    assert ("finding its release" in said) > ("finding its release" in command(tmp_path, "--most", "2").stderr)
