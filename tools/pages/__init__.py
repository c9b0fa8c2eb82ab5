"""The pages in docs/generated/ and what else the documents take from results/: what `make document` writes."""

from pathlib import Path

from torch_history.system.errors import UserError


def between(page: str | Path, *places: tuple[str, str, str]) -> str:
    """The page with a text between each two comments that mark its place. Raises UserError where it lacks them."""
    written = Path(page).read_text(encoding="utf-8")
    for first, last, text in places:
        before, begin, rest = written.partition(first)
        _, end, after = rest.partition(last)
        if not begin or not end:
            raise UserError(f"{page} has no place for what is generated. Restore the lines {first} and {last}.")
        written = f"{before}{begin}\n{text}\n{end}{after}"
    return written


def write_into(page: Path, command: str, text: str) -> None:
    """Replaces what stands in `page` below the line that names `command`. Raises UserError where there is no such line."""
    begin = f"<!-- what follows is written by `{command}` -->"
    page.write_text(between(page, (begin, "<!-- end -->", f"\n{text}")), encoding="utf-8")
