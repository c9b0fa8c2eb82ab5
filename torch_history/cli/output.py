"""How does a command speak? Sentences on standard output, refusals on standard error."""

import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from rich.console import Console

    from ..measuring.subjects import OwnWorkload


def console() -> "Console":
    """Where a command reports its progress; words that look like markup have to be made `plain`."""
    from rich.console import Console

    return Console(soft_wrap=True)


def bold(text: str) -> str:
    """`text` set off in a terminal; as it is elsewhere, and where NO_COLOR is set (https://no-color.org)."""
    return click.style(text, bold=True) if os.isatty(1) and not os.environ.get("NO_COLOR") else text


def machine_of(
    results: Path, asked: str | None, tags: Collection[str], environment: str, questions: Collection[str] = ()
) -> str:
    """The machine whose results are shown, this one if it has any; others are said on stderr. Raises CannotCompare."""
    from ..analysis.compare import choose_machine, whose
    from ..measuring.machine import describe

    here = describe()["machine"]
    machine = choose_machine(results, asked, here, tags, environment, questions)
    if not asked and (said := whose(results, machine, here, tags, environment, questions)):
        click.echo(said, err=True)
    return machine


def say_taken(own: "OwnWorkload | None") -> None:
    """Says on standard error what is measured of a file that does not say it itself."""
    if own and own.taken:
        click.echo(harmless(own.taken), err=True)


def refuse(sentence: str) -> NoReturn:
    """Says on standard error why a command did not do what it was asked to, and ends it with exit code 1."""
    name = "torch-history:"
    click.echo(f"{name if os.environ.get('NO_COLOR') else click.style(name, fg='red')} {harmless(sentence)}", err=True)
    sys.exit(1)


def plain(text: str) -> str:
    """`text` so that rich prints its square brackets, and no character that moves a terminal."""
    return harmless(text).replace("[", r"\[")


def harmless(text: str) -> str:
    """`text` with characters that a terminal would obey, such as an escape, written out."""
    return "".join(sign if sign.isprintable() or sign == "\n" else ascii(sign)[1:-1] for sign in text)
