"""How is the README's picture drawn? As SVG, a line per variant over the releases. The site's pages draw their own
(chart.js)."""

from __future__ import annotations

import html
import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence

from torch_history.analysis.series import History
from torch_history.system.errors import UserError

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#3d9ad1", "#e69f00", "#4d4d4d", "#a89600")
"""Of variants: Okabe and Ito (2008), which colour-blind readers tell apart; its sky blue and yellow are darker, to be seen
on white, and its black is grey. The site's style sheet has these too, and lighter ones for the dark."""

WIDTH, HEIGHT = 720, 300
"""Of what the axes enclose, in pixels."""

LEFT, TOP = 70, 10
MOST_TICKS = 6
IN_A_ROW = 4
"""Names of variants below the axis."""


def draw_bytes(found: History, releases: Sequence[str], benchmark: str, size: str) -> str:
    """The bytes of a benchmark in one size over `releases`, oldest first. Raises UserError where there are none."""
    lines: dict[str, dict[str, float]] = {}
    for series, of in found.items():
        variant, *rest = (parameter.strip("'") for parameter in series.parameters or ("",))
        if (series.benchmark, " ".join(rest)) == (benchmark, size):
            numbers = {tag: [case.number for _, case in of.get(tag, ()) if case.number is not None] for tag in releases}
            lines[variant] = {tag: statistics.median(values) for tag, values in numbers.items() if values}
    most = max((number for line in lines.values() for number in line.values()), default=0)
    if not most:
        raise UserError(f"There is no history of {benchmark} in size {size} to draw for the README.")
    steps = (digit * 10**power for power in itertools.count() for digit in (1, 2, 5))
    step = next(step for step in steps if most / step <= MOST_TICKS)
    ticks = range(0, int(most) + step, step)
    height = TOP + HEIGHT + 60 + 20 * (1 + len(lines) // IN_A_ROW)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 10}" height="{height}" font-family="sans-serif" '
        'font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<g transform="translate({LEFT},{TOP})">',
    ]
    for tick in ticks:
        y = HEIGHT - HEIGHT * tick / ticks[-1]
        parts.append(f'<path d="M0,{y:g}H{WIDTH}" stroke="#ddd"/>')
        parts.append(f'<text x="-8" y="{y + 4:g}" text-anchor="end">{tick / 1e6:g} MB</text>')
    across = {tag: round((i + 0.5) * WIDTH / len(releases), 1) for i, tag in enumerate(releases)}
    for tag, x in across.items():
        parts.append(
            f'<text transform="translate({x + 4:g},{HEIGHT + 14}) rotate(-45)" text-anchor="end">{html.escape(tag)}</text>'
        )
    for i, ((variant, line), colour) in enumerate(zip(lines.items(), itertools.cycle(PALETTE), strict=False)):
        places = {across[tag]: round(HEIGHT - HEIGHT * number / ticks[-1], 1) for tag, number in line.items()}
        x, y = WIDTH / IN_A_ROW * (i % IN_A_ROW), HEIGHT + 75 + 20 * (i // IN_A_ROW)
        parts += _line(places, list(across.values()), colour, 2 * (len(lines) - i))
        parts.append(f'<circle cx="{x:g}" cy="{y - 4}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{x + 9:g}" y="{y}">{html.escape(variant)}</text>')
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def _line(places: Mapping[float, float], across: Sequence[float], colour: str, width: int) -> Iterator[str]:
    """A line through the points of neighbours, and each point. Those below others are wider, to be seen behind them."""
    path = "".join(
        f"{'L' if before in places else 'M'}{x:g},{places[x]:g}"
        for before, x in zip((None, *across), across, strict=False)
        if x in places
    )
    yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
    yield from (f'<circle cx="{x:g}" cy="{y:g}" r="{width / 2 + 2:g}" fill="{colour}"/>' for x, y in places.items())
