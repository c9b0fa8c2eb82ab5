"""Does this case test the release? On a carried release that calls a library of the machine it does not."""

from __future__ import annotations

import json
import os
import sys

from contract.carried import CARRIED, refusal

from .facts import MARK


class Refused(Exception):
    """A case that a carried release does not answer; the text says why."""


def require(question: str, variant: str, size: str, device: str) -> None:
    """Raises Refused where this process runs in the environment of a carried release, whose mark says what it cannot
    answer. An environment without a mark, or with one that cannot be read, is none."""
    try:
        with open(os.path.join(sys.prefix, MARK), encoding="utf-8") as stream:
            carried = json.load(stream).get(CARRIED)
    except (OSError, ValueError, AttributeError):
        return
    if carried and (why := refusal(carried, question, variant, size, device)):
        raise Refused(why)
