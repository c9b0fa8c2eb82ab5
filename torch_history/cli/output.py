"""How does a command speak? Sentences on standard output, refusals on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    """Where a command reports its progress; words that look like markup have to be made `plain`."""
    from rich.console import Console

    return Console(soft_wrap=True)


def refuse(sentence: str) -> NoReturn:
    """Says on standard error why a command did not do what it was asked to, and ends it with exit code 1."""
    click.echo(f"{click.style('torch-history:', fg='red')} {sentence}", err=True)
    sys.exit(1)


def plain(text: str) -> str:
    """`text` so that rich prints its square brackets."""
    return text.replace("[", r"\[")


def listed(value: object) -> str:
    """A fact about an environment in words."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items()) or "none"
    return "unknown" if value is None else str(value)
