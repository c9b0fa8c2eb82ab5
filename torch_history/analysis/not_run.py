"""Which cases gave no number on a release, and why? Told from what is stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from .series import History, Series


@dataclass(frozen=True)
class NotRun:
    """A case that gave no number at all on some `releases`, for one `reason`."""

    case: str
    releases: tuple[str, ...]
    reason: str

    @property
    def sentence(self) -> str:
        return f"{self.case} did not run on {', '.join(self.releases)}: {self.reason.rstrip('.')}."


def not_run(found: History, releases: Collection[str] = ()) -> list[NotRun]:
    """Every case of `found` that gave no number on a release, on some `releases` only where these are named. A case that
    lacks one metric and has another did run."""
    ran: dict[tuple[str, ...], dict[str, bool]] = defaultdict(lambda: defaultdict(bool))
    why: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for series, of in found.items():
        for tag, pairs in of.items():
            case = pairs[-1][1]
            ran[series.parameters][tag] |= any(one.number is not None for _, one in pairs)
            why[series.parameters].setdefault(tag, case.reason)
    reasons: dict[tuple[tuple[str, ...], str], list[str]] = defaultdict(list)
    for parameters, of_tags in ran.items():
        for tag, has_number in of_tags.items():
            if not has_number and (not releases or tag in releases):
                reasons[parameters, " ".join(why[parameters][tag].split())].append(tag)
    names = _names(found)
    return [NotRun(names[parameters], tuple(tags), reason) for (parameters, reason), tags in reasons.items()]


def _names(found: Mapping[Series, object]) -> dict[tuple[str, ...], str]:
    return {one.parameters: " ".join(part.strip("'") for part in one.parameters).strip() for one in found}
