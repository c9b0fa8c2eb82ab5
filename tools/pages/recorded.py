"""What changed of what releases ask of CUDA? What the recorder counted, for docs/generated/recorded.md."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from torch_history.analysis.compare import tell
from torch_history.analysis.markdown import escape
from torch_history.analysis.series import history
from torch_history.analysis.steps import largest, of_history
from torch_history.releases.axis import Axis
from torch_history.store.certificates import Certificate
from torch_history.store.launches import Launch
from torch_history.store.machines import record_of

MOST = 20
"""Changes that are listed of each card."""

HEADER = f"""\
# What releases ask of CUDA

`make document` writes this page from `results/`. **Recorded: no kernel ran.** Every number is a count of what a
release asks of a pretended card; no time and no result comes from it. [How it is counted, and what is
refused](../recorder.md). [How much was counted](coverage.md). [Why the largest changes happened](recorded-changes.md).

Below are the {MOST} largest changes of each card from a release to the next: one for each question, release, and bytes or
count. What began at zero or ended there has no factor and is omitted. All changes of a card are listed by
`torch-history regressions --machine recorded-turing-sm75-no-kernel-ran --limit 0`.
"""


def document(
    results: Path, launches_of: Mapping[str, Iterable[Launch]], axis: Axis, certificates: Sequence[Certificate]
) -> str:
    """The page: of each pretended card what a certificate compared with a real one, and its largest changes."""
    parts = [HEADER]
    for machine, launches in launches_of.items():
        record = record_of(results / machine)
        if record.get("device") == "recorder":
            found = history(launches)
            changes = tell(largest(of_history(found, axis))[:MOST], found, results, machine)
            parts += [f"\n## {escape(machine)}\n\n| release | largest changes |\n|---|---|\n"]
            parts += [f"| {escape(each.where)} | {escape(each.said)} |\n" for each in changes]
            parts += [f"\n{_certified(each)}\n" for each in certificates if each.card == record.get("card")]
    return "".join(parts)


def _certified(certificate: Certificate) -> str:
    """How many cases a certificate found equal, and which were not."""
    said = f"{len(certificate.equal)} cases are equal to {escape(certificate.words)}"
    different = ", ".join(
        escape(f"{case} ({', '.join(sorted(what))})") for case, what in sorted(certificate.different.items())
    )
    return f"{said}; {len(certificate.different)} are not: {different}." if different else f"{said}; none differs."
