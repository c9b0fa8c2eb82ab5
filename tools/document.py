"""Writes what the documents take from results/: docs/generated/, the README's findings, each question's claim. `python
-m tools.document --check` writes nothing; exit code 1 means that a file is out of date."""

import itertools
import json
import operator
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from torch_history.analysis import answer, bases, compare, power, steps
from torch_history.analysis.causes import evidence, unconfirmed
from torch_history.analysis.markdown import escape
from torch_history.analysis.series import History, history
from torch_history.cli import suite as suites
from torch_history.releases.axis import Axis
from torch_history.site import calibration
from torch_history.store.certificates import Certificate, certificates_in
from torch_history.store.launches import Launch, machines_in, read_environment, read_on_axis
from torch_history.store.machines import record_of
from torch_history.system.files import write_atomically

from .pages import between, claims, coverage

LONGEST = ("amd-epyc-family-26-model-2-2-cores", "release-py3.11")
"""Machine and environment of the README's findings."""

FINDINGS = "<!-- findings -->", "<!-- end of findings -->"
OUTPUT = "<!-- output -->", "<!-- end of output -->"
SHOWN, MOST_LINES = ("v2.13.0", "v2.14.0"), 6
"""The releases whose comparison the README shows, and how many lines of it."""

UNCLAIMED = ("models", "products", "compiling")
"""Questions that are asked without a claim: their pages have what changed most."""

MOST = "<!-- what changed most: by `make document` -->", "<!-- end of what changed most -->"
CLAIM = "<!-- the claim: by `make document` -->", "<!-- end of the claim -->"

LISTED = 20
"""Changes that are listed of each card."""

RECORDED_HEADER = f"""\
# What releases ask of CUDA

`make document` writes this page from `results/`. **Recorded: no kernel ran.** Every number is a count of what a
release asks of a pretended card; no time and no result comes from it. [How it is counted, and what is
refused](../recorder.md). [How much was counted](coverage.md). [Why the largest changes happened](recorded-changes.md).

Below are the {LISTED} largest changes of each card from a release to the next: one for each question, release, and bytes or
count. What began at zero or ended there has no factor and is omitted. All changes of a card are listed by
`torch-history regressions --machine recorded-turing-sm75-no-kernel-ran --limit 0`.
"""


Lanes = Mapping[str, Mapping[str, History]]
"""Machine -> environment -> its history."""


def documents(suite: suites.Suite) -> dict[str, str]:
    """File, as seen from the suite's folder -> its text as the results say it now."""
    results, axis = suite.results, suite.axis
    lanes = {machine: by_lane(read_on_axis(results, machine, axis)) for machine in machines_in(results)}
    machine, lane = LONGEST
    found = lanes.get(machine, {}).get(lane, History())
    happened = steps.of_history(found, axis)
    answered = claims.lanes(results, lanes, axis)
    shown = {name: [power.lane_evidence(one, lane, axis) for lane, one in of.items()] for name, of in lanes.items()}
    certificates = certificates_in(results)
    rows = bases.rows((told for told, _ in answered), axis, certificates)
    on_a_gpu = bases.on_a_gpu(((told.setting.device, releases) for told, releases in answered), axis)
    rose = [f"What rose most from one release to the next, on a CPU (`results/{machine}`, `{lane}`):", ""]
    costliest = _told(steps.costliest(happened), happened, found, results, machine)
    rose += [f"- {escape(line)}" for line in dict.fromkeys(each.evidence for each in costliest)]
    places = {question: (*CLAIM, text) for question, text in claims.of_questions(rows).items()}
    findings = [claims.findings(rows, axis)]
    for question in UNCLAIMED:
        told, text = _changed_most(question, lanes, axis, results)
        places[question] = (*MOST, text)
        findings += [f"- Largest change of *{question}* on a CPU: {escape(f'{each.headline}.')}" for each in told[:1]]
    pages = {f"docs/questions/{question}.md": place for question, place in places.items()}
    return {
        "README.md": between("README.md", (*FINDINGS, "\n".join(findings)), *_shown(results, machine, lane)),
        **{page: between(page, place) for page, place in pages.items()},
        "docs/generated/recorded.md": recorded(results, lanes, axis, certificates),
        "docs/generated/answers.md": "\n".join(
            [claims.HEADER + on_a_gpu, "", claims.table(rows, "../questions"), "", *rose, ""]
        ),
        "contract/moves.json": _moves(results, machine, lane, found, axis),
        "docs/generated/coverage.md": coverage.document(lanes, axis),
        "docs/generated/calibration.md": calibration.document(results, shown),
    }


def by_lane(launches: Iterable[Launch]) -> dict[str, History]:
    """Environment -> the history of its launches."""
    key = operator.attrgetter("environment")
    return {environment: history(of) for environment, of in itertools.groupby(sorted(launches, key=key), key)}


def _changed_most(question: str, lanes: Lanes, axis: Axis, results: Path) -> tuple[list[compare.Told], str]:
    """What changed most in a question, in the lane that has most releases of it: a time first, then of bytes and counts;
    and what its page says of that."""
    of_lane: dict[tuple[str, str], History] = {}
    for machine, of in lanes.items():
        for environment, every in of.items():
            if of_question := {one: releases for one, releases in every.items() if one.question == question}:
                of_lane[machine, environment] = History(of_question)
    if not of_lane:
        return [], "Nothing of it has changed."
    machine, environment = max(of_lane, key=lambda lane: len({tag for of in of_lane[lane].values() for tag in of}))
    found = of_lane[machine, environment]
    happened = steps.of_history(found, axis)
    most: dict[str, steps.Step] = {}
    for step in steps.largest(happened):
        most.setdefault("time" if step.series.varies else step.series.unit, step)
    chosen = [most[kind] for kind in sorted(most, key=lambda kind: kind != "time")]
    told = _told(chosen, happened, found, results, machine)
    head = f"What changed most from one release to another (`results/{machine}`, `{environment}`):"
    return told, "\n".join([head, "", *(f"- {escape(each.evidence)}" for each in told)])


def _told(
    chosen: Iterable[steps.Step], happened: Sequence[steps.Step], found: History, results: Path, machine: str
) -> list[compare.Told]:
    """What is told of each of the `chosen` among all that `happened`."""
    told = compare.tell(happened, found, results, machine)
    return [next(each for each in told if place in each.places) for place in map(happened.index, chosen)]


def _shown(results: Path, machine: str, lane: str) -> list[tuple[str, str, str]]:
    """The beginning of what `compare` prints of SHOWN, for `between`; nothing where these were not measured."""
    if not {*SHOWN} <= compare.releases_of(results, machine):
        return []
    lines = compare.text(compare.find(results, machine, lane, *SHOWN, ["selection"]), everything=False).splitlines()
    return [(*OUTPUT, "\n".join(["```text", *lines[:MOST_LINES], "…", "```"]))]


def _moves(results: Path, machine: str, lane: str, found: History, axis: Axis) -> str:
    """contract/moves.json: `from to` -> `answer.in_short` of a move from each release of a lane of `machine` to its newest.
    `torch-history upgrade` of requirements tells it in a second, and where it is installed without results."""
    tags = found.tags(axis)
    facts = {tag: read_environment(results, machine, tag, lane) for tag in tags}
    known, missed, told = evidence(results, machine), unconfirmed(results, machine, found), {}
    for old in tags[:-1]:
        said = compare.compared(machine, lane, old, tags[-1], found, facts, "cpu", known, "1")
        told[f"{old} {tags[-1]}"] = answer.in_short(said.beside(missed))
    return json.dumps(told, indent=1, ensure_ascii=False) + "\n"


def recorded(results: Path, lanes: Lanes, axis: Axis, certificates: Sequence[Certificate]) -> str:
    """docs/generated/recorded.md: of each pretended card what a certificate compared, and its largest changes."""
    parts = [RECORDED_HEADER]
    for machine, of in lanes.items():
        record = record_of(results / machine)
        if record.get("device") == "recorder":
            found = History(each for lane in of.values() for each in lane.items())
            changes = compare.tell(steps.largest(steps.of_history(found, axis))[:LISTED], found, results, machine)
            parts += [f"\n## {escape(machine)}\n\n| release | largest changes |\n|---|---|\n"]
            parts += [f"| {escape(each.where)} | {escape(each.said)} |\n" for each in changes]
            parts += [f"\n{_certified(each)}\n" for each in certificates if each.card == record.get("card")]
    return "".join(parts)


def _certified(certificate: Certificate) -> str:
    """How many cases a certificate found equal, and which were not."""
    said = f"{len(certificate.agreed)} cases are equal to {escape(certificate.words)}"
    different = [escape(f"{case} ({', '.join(sorted(of))})") for case, of in sorted(certificate.different.items())]
    return f"{said}; {len(different)} are not: {', '.join(different)}." if different else f"{said}; none differs."


def main() -> None:
    files = documents(suites.load())
    written = {name: Path(name).read_text(encoding="utf-8") for name in files if Path(name).exists()}
    stale = [name for name, text in files.items() if written.get(name) != text]
    if "--check" in sys.argv[1:] and stale:
        sys.exit(f"These files are out of date: {', '.join(stale)}. Run `make document`.")
    for name in stale:
        write_atomically(Path(name), files[name])
    print(f"Written: {', '.join(stale)}." if stale else "Everything is up to date.")


if __name__ == "__main__":
    main()
