"""The commands `kit ...`: measuring on a GPU that reaches no network."""

from __future__ import annotations

import click


@click.group()
def kit() -> None:
    """Measure on a machine that reaches no network. See docs/gpu.md."""


COMMANDS = (kit,)
