"""How do the words of foreign code become text that every file and every terminal takes? By one function, used by whoever
writes down a message that this project did not make."""

from __future__ import annotations

from typing import Any

LONGEST_LINE = 5_000
"""Characters of a line that are kept; the longest names of kernels have a thousand."""

LONGEST = 100_000
"""Characters of a text that are kept, half of them from its end, where an exception stands."""


def storable(value: Any) -> Any:
    """`value` of JSON, with every text in it so that UTF-8 can encode it and nothing ends at a NUL: these, and halves of
    characters (as in `b"\\xe9".decode("utf-8", "surrogateescape")`), are written out as in Python's source. Lines and texts
    that are too long lose their middle."""
    if isinstance(value, str):
        text = value.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")
        if len(text) > LONGEST_LINE:
            text = "\n".join(_shortened(line, LONGEST_LINE) for line in _shortened(text, LONGEST).split("\n"))
        return text
    if isinstance(value, dict):
        return {storable(key): storable(of) for key, of in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable(of) for of in value]
    return value


def of_error(error: BaseException) -> str:
    """`ValueError: the message`, storable; the class alone where the exception cannot say more."""
    try:
        message = str(error)
    except Exception as second:
        message = f"its message cannot be told ({type(second).__name__})"
    return str(storable(f"{type(error).__name__}: {message}"))


def _shortened(text: str, most: int) -> str:
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"
