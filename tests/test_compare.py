"""Does `torch-history compare` say what stored launches hold, and fail where it was asked to? Nothing is installed."""

import html
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from markdown_it import MarkdownIt
from msgspec import structs

from torch_history import cli
from torch_history.analysis import compare as compared
from torch_history.analysis.series import Series, Verdict
from torch_history.analysis.verdicts import FALSE_RATE, Change
from torch_history.store import causes, sources
from torch_history.store.launches import Case, Launch, append_environment

from .processes import ROOT
from .result_files import append
from .test_evidence import EVIDENCE
from .test_verdicts import launch

OLD, NEW = "v2.0.1", "v2.1.2"
NASTY = "RuntimeError: expected <Tensor> | got **None** from `f` of @someone, see #12\n[x](http://y)"

_Numbers = Sequence[float | str]


def series(metric: str, old: _Numbers, new: _Numbers, variant: str = "mask") -> list[Launch]:
    """Launches of both releases, a round for each number; a string is the reason for none."""

    def case(number: float | str) -> Case:
        value, failed = (None, number) if isinstance(number, str) else (number, "")
        return Case((f"'{variant}'", "'small'"), value=value, failed=failed)

    found = ((release, *one) for release, numbers in ((OLD, old), (NEW, new)) for one in enumerate(numbers, 1))
    name = f"selection.Selection.track_{metric}"
    return [launch(release, name, case(number), round=turn) for release, turn, number in found]


STEADY = [1.0, 1.001, 0.999]


def upgrade(results: Path) -> None:
    """What an upgrade may bring: each verdict but FASTER and FIXED at least once."""
    append(
        results,
        *series("time", STEADY, [1.09, 1.092, 1.088]),
        *series("operators", [1], [9]),
        *series("peak_memory", [100_000], [100_600]),
        *series("time", STEADY, [2.0, 2.001, 1.999], "nonzero"),
        *series("operators", [5], [5], "nonzero"),
        *series("time", STEADY, STEADY[::-1], "index"),
        *series("time", STEADY, [0.5, 1.0, 2.0], "noisy"),
        *series("time", STEADY, [NASTY], "broken"),
        *series("time", ["no wheel"], ["no wheel"], "never"),
    )
    for tag, numpy in ((OLD, "1.26.4"), (NEW, "2.0.0")):
        append_environment(results / "here" / f"{tag}-release-py3.11.environments", {"torch": tag, "numpy": numpy})


def command(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, ["compare", *arguments])


def test_worst_comes_first_and_the_summary_last(results):
    upgrade(results)
    answer = command("2.0.1", "2.1.2", "--all")
    assert answer.exit_code == 0
    lines = answer.output.splitlines()
    first = ("broken small: BROKE", "nonzero small: SLOWER", "mask small: SLOWER 1.09", "mask small: HUNGRIER 1.01")
    assert all(said in line for said, line in zip((*first, "mask small: MORE, from 1 to 9"), lines, strict=False))
    said = r"SLOWER 1\.09 times \((\S+) to (\S+)\), .*while the number of operators went from 1 to 9"
    found = re.search(said, lines[2])
    assert found
    assert 1 < float(found[1]) < 1.09 < float(found[2]) < 1.2
    assert "from 100,000 B to 100,600 B" in lines[3]
    counts = "2 SLOWER, 1 HUNGRIER, 1 MORE, 2 SAME, 1 INCONCLUSIVE, 1 BROKE, 1 NO NUMBER."
    assert f"v2.0.1 -> v2.1.2 on here, release-py3.11: {counts}" in lines
    assert lines[-1] == "The environments differ: NumPy went from 1.26.4 to 2.0.0."


def write_evidence(results: Path, verdict: str, taken_at: str) -> None:
    """What `explain` stored of the largest time of `upgrade`."""
    words = "the times scatter too much to tell whether the difference is there"
    series = {"environment": "release-py3.11", "benchmark": "selection.Selection.track_time", "version": "1"}
    found = {"old": OLD, "new": NEW, "verdict": verdict, "words": words, "taken_at": taken_at}
    one = structs.replace(EVIDENCE, parameters=("'nonzero'", "'small'"), **series, **found)
    causes.write(results, "here", one)


@pytest.mark.parametrize("verdict", ["INCONCLUSIVE", "NOT THERE"])
def test_what_explain_did_not_see_again_is_no_finding_until_it_is_measured_again(results, verdict, monkeypatch):
    monkeypatch.setattr(sources, "here", dict)
    upgrade(results)
    before = json.loads(command("2.0.1", "2.1.2", "--json").output)
    write_evidence(results, verdict, "2030-01-01T00:00:00+00:00")
    said = " ".join(command("2.0.1", "2.1.2").output.split())
    assert "Seen once, and not when `explain` looked for the cause: selection time, nonzero small." in said
    after = json.loads(command("2.0.1", "2.1.2", "--json").output)
    assert after["changes"] == before["changes"]
    assert [one for one in before["findings"] if one not in after["findings"]] == [
        one for one in before["findings"] if "nonzero" in one["title"] and one["metric"] == "time"
    ]
    assert "nonzero" not in str(after["answer"]["cards"])
    write_evidence(results, verdict, "2020-01-01T00:00:00+00:00")
    assert json.loads(command("2.0.1", "2.1.2", "--json").output)["findings"] == before["findings"]


def test_a_case_that_was_not_measured_on_a_release_is_neither_broken_nor_counted_among_those_that_ran(results):
    upgrade(results)
    for tag, known in ((OLD, {"value": 1.0}), (NEW, {"unmeasured": "it timed out (timeout 60 s)"})):
        append(results, launch(tag, "selection.Selection.track_time", Case(("'late'", "'small'"), **known)))
    said = " ".join(command("2.0.1", "2.1.2").output.split())
    assert "1 more case cannot be judged: v2.1.2 was not measured, because it timed out (timeout 60 s) (1)." in said


def test_questions_and_metrics_narrow_what_is_listed_but_not_its_causes(results):
    upgrade(results)
    append(results, launch(OLD, "batching.Batching.track_time", Case(("'a'",), value=1.0)))
    said = command("2.0.1", "2.1.2", "--question", "selection", "--metric", "time", "--all").output
    assert "while the number of operators went from 1 to 9" in said
    assert "MORE" not in said
    assert "HUNGRIER" not in said
    assert "in one of the two only" not in said
    assert "HUNGRIER" in command("2.0.1", "2.1.2", "--metric", "peak memory", "--all").output


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["2.0.1", "2.5.1"], 1, "There is no result of v2.5.1 in release-py3.11 on here. Known: v2.0.1, v2.1.2."),
        (["2.0.1", "2.0.1"], 1, "v2.0.1 was named twice. Name two releases."),
        (["2.0.1", "2.99"], 1, "'2.99' is no PyTorch release on the axis."),
        (["2.0.1", "2.1.2", "--machine", "there"], 1, "no results of a machine 'there'. There are results of here."),
        (["2.0.1", "2.1.2", "--question", "gather"], 1, "no question gather in v2.0.1 and v2.1.2. Known: selection."),
        (["2.0.1", "2.1.2", "--metric", "joy"], 1, "There is no metric joy in v2.0.1 and v2.1.2. Known: operators,"),
        (["2.0.1", "2.1.2", "--lane", "e"], 1, "There is no environment e on here. Known: release-py3.11."),
        (["2.0.1", "2.1.2", "--fail-on", "slowr:5%"], 2, "does not know 'slowr'"),
        (["2.0.1", "2.1.2", "--fail-on", "slower:five"], 2, "'five' is not a threshold"),
        (["2.0.1", "2.1.2", "--fail-on", "broke:5%"], 2, "'broke' takes no threshold"),
        (["2.0.1", "2.1.2", "--fail-on", ""], 2, "does not know ''"),
        (["2.0.1", "2.1.2", "--json", "--markdown"], 2, "Choose one"),
    ],
)
def test_what_is_not_there_or_is_wrong_usage_is_refused_in_a_sentence(results, arguments, code, sentence):
    upgrade(results)
    answer = command(*arguments)
    assert answer.exit_code == code
    assert sentence in answer.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("limits", "code", "failed"),
    [
        *(("slower:5%", 3, ["nonzero", "mask"]), ("slower:8.9%", 3, ["nonzero", "mask"])),
        *(("slower:9.5%", 3, ["nonzero"]), ("slower:101%", 0, []), ("slower", 3, ["nonzero", "mask"])),
        *(("hungrier:0.59%", 3, ["mask"]), ("hungrier:0.6%", 0, []), ("more:100", 3, ["mask"])),
        *(("faster:0%", 0, []), ("broke", 3, ["broken"])),
        ("slower:50%, hungrier:0.1%,broke", 3, ["broken", "nonzero", "mask"]),
    ],
)
def test_series_beyond_a_threshold_fails(results, limits, code, failed):
    upgrade(results)
    answer = command("2.0.1", "2.1.2", "--json", "--fail-on", limits)
    assert answer.exit_code == code
    document = json.loads(answer.output)
    assert [change["parameters"][0] for change in document["changes"] if change["failed"]] == failed
    assert document["failed"] == len(failed)


def test_count_that_came_from_none_is_beyond_every_threshold(results):
    append(results, *series("operators", [0], [1]))
    assert command("2.0.1", "2.1.2", "--fail-on", "more:1000%").exit_code == 3


def test_json_has_the_documented_keys_and_no_others(results):
    upgrade(results)
    document = json.loads(command("2.0.1", "2.1.2", "--json").output)
    text = (ROOT / "docs" / "commands.md").read_text().partition("## Keys of the JSON\n")[2]
    tables = [{*re.findall(r"`(\w+)`", "".join(re.findall(r"^\|([^|]*)", of, re.M)))} for of in text.split("### ")]
    (top,) = [table for table in tables if "schema" in table]
    (change,) = [table for table in tables if "sentence" in table and "verdict" in table]
    (finding,) = [table for table in tables if "nearest" in table]
    assert document["findings"]
    assert all(set(entry) == finding for entry in document["findings"])
    assert set(document) == top
    assert all(set(entry) == change for entry in document["changes"])
    assert (document["schema"], document["looked_at"]) == (compared.SCHEMA, 4)
    assert f"| `schema` | {compared.SCHEMA}; grows" in text
    assert {entry["verdict"] for entry in document["changes"]} >= {"SLOWER", "SAME", "NEVER RAN", "CAN'T TELL"}
    slower = document["changes"][2]
    assert slower["parameters"] == ["mask", "small"]
    assert slower["low"] < 1.09 < slower["high"]
    assert slower["confidence"] == pytest.approx(1 - FALSE_RATE * 2 / 4)
    assert slower["disturbed"] == 0
    assert slower["why"] == "while the number of operators went from 1 to 9"


def test_markdown_links_to_the_comparison_on_a_site(results):
    upgrade(results)
    text = command("2.0.1", "2.1.2", "--markdown", "--url", "https://perf.example/torch(1)/").output
    html_of = MarkdownIt("commonmark").render(text)
    (address,) = re.findall(r'<a href="([^"]+)">Every series', html_of)
    page, _, keys = html.unescape(address).partition("#")
    assert page == "https://perf.example/torch%281%29/index.html"
    assert keys == "lane=here-release-py3-11&from=v2.0.1&to=v2.1.2"
    assert "](" not in command("2.0.1", "2.1.2", "--markdown").output
    wrongs = ("perf.example", "ftp://perf.example", "https://", "https://perf.example/?a=1", "https://[")
    own = ["--markdown", "--url", "https://perf.example", "--workload", "mine.py"]
    for wrong in (["--url", "https://perf.example"], own, *(["--markdown", "--url", each] for each in wrongs)):
        refused = command("2.0.1", "2.1.2", *wrong)
        assert refused.exit_code == 2
        assert "--url" in refused.output


@pytest.mark.parametrize("more", [[], ["--all"]])
def test_markdown_holds_no_markup_of_a_stranger(results, more):
    hostile = "<img src=x> [a](https://planted.example) ![a](x) `b` | c"
    append(results, *series("time", STEADY, [2.0, 2.001, 1.999], hostile), *series("time", STEADY, [hostile], "broken"))
    said = command("2.0.1", "2.1.2", "--markdown", *more).output
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").render(said)
    assert shown.count("planted.example") == said.count("planted") >= 2
    assert not re.search(r"<img|<code>b|href=\"https://planted", shown)


def test_a_command_is_what_a_shell_takes_whatever_a_machine_is_called(results):
    upgrade(results)
    machine = "it's; touch planted"
    (results / "here").rename(results / machine)
    said = MarkdownIt("commonmark").render(command("2.0.1", "2.1.2", "--markdown", "--machine", machine).output)
    (written,) = re.findall(r"To list every series: (torch-history compare .* --all)", html.unescape(said))
    assert shlex.split(written)[4:6] == ["--machine", machine]


def test_markdown_is_never_longer_than_an_issue_takes(results):
    upgrade(results)
    for number in range(600):
        append(results, *series("operators", [1], [9 + number], f"a variant with a name of some length, {number}"))
    text = command("2.0.1", "2.1.2", "--markdown", "--all").output
    assert 40_000 < len(text) <= 60_000
    assert re.search(r"\d+ rows are omitted", text)
    short = command("2.0.1", "2.1.2", "--markdown").output
    assert 7_000 < len(short) <= 10_000
    assert re.search(r"\d+ findings are omitted", short)


@pytest.mark.parametrize(
    "hostile",
    [
        *("see https://evil.example/x", "http://evil.example", "www.evil.example", "WWW.evil.example"),
        *("ftp://evil.example", "somebody@evil.example", "mailto:somebody@evil.example"),
    ],
)
def test_no_address_is_made_a_link_by_github(hostile):
    bare = r"(?i)\\w+://\\w|www\\.\\w|[\\w.+-]@[\\w-]|mailto:\\w".replace("\\\\", "\\")
    assert re.search(bare, hostile)
    assert not re.search(bare, html.unescape(compared.escape(hostile)))


def test_what_is_not_seen_is_shown():
    for unseen in "\u202e\u2066\u200b\u200d\ufeff\x00\x1b\U000e0041":
        assert compared.escape(f"a{unseen}b") == "a\ufffdb"


@pytest.mark.parametrize(
    ("verdict", "ratio", "low", "high", "said"),
    [
        (Verdict.SLOWER, 1.29, 1.27, 1.31, "SLOWER 1.29 times (1.27 to 1.31)."),
        (Verdict.FASTER, 0.8, 0.78, 0.82, "FASTER 1.25 times (1.22 to 1.28)."),
        (Verdict.FASTER, 0.25, 0.2, 0.5, "FASTER 4.00 times (2.00 to 5.00)."),
        (Verdict.SAME, 1.003, 0.988, 1.02, "SAME (0.99 to 1.02 times)."),
    ],
)
def test_a_change_of_a_time_is_said_as_a_factor(verdict, ratio, low, high, said):
    change = Change(Series("e", "q.Q.track_time", ("'f'",)), verdict, 1.0, ratio, ratio, low, high, (3, 3))
    assert compared.sentence(change) == f"q time, f: {said}"
