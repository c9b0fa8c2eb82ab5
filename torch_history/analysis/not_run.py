"""Which cases gave no number on a release, and why? Told from what is stored."""

from collections import defaultdict

from .series import History


def not_run(found: History) -> list[str]:
    """A sentence for each case that gave no number at all on some releases, by reason: `plain small did not run on v2.0.1:
    no kernel.` A case that lacks one metric and has another did run."""
    ran: dict[tuple[tuple[str, ...], str], bool] = {}
    why: dict[tuple[tuple[str, ...], str], str] = {}
    for series, of in found.items():
        for tag, pairs in of.items():
            key = series.parameters, tag
            ran[key] = ran.get(key, False) or any(case.number is not None for _, case in pairs)
            why.setdefault(key, pairs[-1][1].reason)
    releases: dict[tuple[tuple[str, ...], str], list[str]] = defaultdict(list)
    for (parameters, tag), has_number in ran.items():
        if not has_number:
            releases[parameters, " ".join(why[parameters, tag].split()).rstrip(".")].append(tag)
    said = []
    for (parameters, reason), tags in releases.items():
        case = " ".join(part.strip("'") for part in parameters).strip()
        said.append(f"{case} did not run on {', '.join(tags)}: {reason}.")
    return said
