"""Options that several commands have."""

import os
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

WHOLE_PATH = click.Path(path_type=Path, resolve_path=True)
"""A path of a file or a folder, made whole before the suite's folder becomes the working one."""


def refuse_others(taken: Collection[str], why: str) -> None:
    """Raises UsageError, with `why`, where the command line has an option `{}` that is none of those that are `taken`."""
    context = click.get_current_context()
    for option in context.command.params:
        name = option.name or ""
        if name not in taken and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(why.format(option.opts[0]))


def form_of(as_json: bool, as_markdown: bool) -> str:
    """`json`, `markdown` or `text`. Raises UsageError for both."""
    if as_json and as_markdown:
        raise click.UsageError("--json and --markdown exclude each other. Choose one.")
    return "json" if as_json else "markdown" if as_markdown else "text"


def whole_lane(value: str) -> str:
    """The name of a lane as results/ has it: `3.9` is `release-py3.9`, anything else is a name already."""
    return f"release-py{value}" if re.fullmatch(r"\d+\.\d+", value) else value


def python_option(about: str, default: str = "python3") -> Callable[[Any], Any]:
    """The option --python of a command that asks an interpreter's own torch; None where it is not given. A path is as seen
    from the caller's folder, no link is followed; a name such as `python3` is looked up on PATH."""
    absolute = lambda _context, _option, value: os.path.abspath(value) if os.sep in (value or "") else value  # noqa: E731
    return click.option("--python", "interpreter", callback=absolute, help=f"{about} [default: {default}]")


def site_address(_context: click.Context, _option: click.Parameter, value: str) -> str:
    """The address of a site as links have it, without its last slash; empty for none. Raises BadParameter."""
    from urllib.parse import quote, urlsplit

    if not value:
        return ""
    try:
        parts = urlsplit(value)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise click.BadParameter(
            f"'{value}' is not the address of a site. Write one such as https://example.org/history."
        )
    return quote(value.rstrip("/"), safe=":/%~[]@")


def duration(_context: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    """Seconds of an option such as `90s`, `6m` or `2h`; None where it was not given. Raises BadParameter."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", (value or "").strip())
    if value is not None and (match is None or not float(match[1])):
        raise click.BadParameter(f"'{value}' is not a duration. Write 90s, 6m or 2h.")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]] if match else None


def gigabytes(_context: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    """The value of an option such as `20GB` or `20`; None where it was not given. Raises BadParameter."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:GB?)?", (value or "").strip(), re.IGNORECASE)
    if value is not None and (match is None or not float(match[1])):
        raise click.BadParameter(f"'{value}' is no number of gigabytes above 0. Write 20GB.")
    return float(match[1]) if match else None
