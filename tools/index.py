"""Which package index is asked, and how is it named in a sentence?"""

import os
import re
from urllib.parse import urlsplit, urlunsplit

from pypi_simple import PYPI_SIMPLE_ENDPOINT

TIMEOUT = 60
"""Seconds without an answer after which an index counts as out of reach."""


def configured_index() -> str:
    """The address of the package index that uv's or pip's variable names, else the one that both use without."""
    address = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("PIP_INDEX_URL") or PYPI_SIMPLE_ENDPOINT
    return re.sub(r"^[\w-]+=(?=\w+://)", "", address)


def without_secrets(address: str) -> str:
    """An address as it may be shown: without a name and a password in it."""
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def value_in(text: str, name: str) -> str:
    """A string of torch/version.py, or "" where it is None."""
    found = re.search(rf"^{name}(?:\s*:[^=]*)?\s*=\s*['\"]([\w.+-]+)['\"]", text, re.MULTILINE)
    return found[1] if found else ""
