"""What are variants and sizes in words of code? contract/labels.toml, beside the identifiers that no reader knows yet."""

from __future__ import annotations

import functools
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .series import Series

FILE = Path(__file__).resolve().parents[2] / "contract" / "labels.toml"


@functools.cache
def labels() -> dict[str, dict[str, Any]]:
    """Question -> `question`, `variants` and `sizes` in words; code stands between backticks."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def named(series: Series) -> str:
    """`x[index]`, index made once (99 % of 80,000 numbers, 100 times); the identifiers of what has no label."""
    known = labels().get(series.question, {})
    variant, size = (*(parameter.strip("'") for parameter in series.parameters), "", "")[:2]
    words = known.get("variants", {}).get(variant, variant or series.question.replace("_", " "))
    of_size = known.get("sizes", {}).get(size, size)
    return f"{words} ({of_size})" if of_size else words


def explained() -> Callable[[str], str]:
    """Gives a function for the sentences of one text, in the order in which they are read. Where an identifier stands first,
    in the name of a series, in backticks or as a size in brackets, it puts behind it what that is in words of code:
    `selection time, where_product rows 1 % x 1 (x * mask; 1 % of 5,000 rows, once): SLOWER`."""
    said: set[tuple[str, str]] = set()

    def behind(question: str, names: str, *identifiers: str, form: str = "{} ({})") -> str:
        of = labels()[question]["variants"] | labels()[question]["sizes"]
        new = [name for name in identifiers if name and (question, name) not in said]
        said.update((question, name) for name in new)
        return form.format(names, "; ".join(of[name] for name in new)) if new else names

    def of_series(question: str, match: re.Match[str]) -> str:
        *first, last = match["variants"].split(" and ")
        told = [behind(question, one, one) for one in first]
        told.append(behind(question, f"{last}{match['size'] or ''}", last, (match["size"] or "").strip()))
        return match["head"] + " and ".join(told)

    def alone(questions: dict[str, str], match: re.Match[str]) -> str:
        name = match["code"] or match["size"]
        return behind(questions[name], match[0], name, form="{} ({})" if match["code"] else "{} {};")

    def told(sentence: str) -> str:
        of_questions, questions, by_itself = _patterns()
        for question, pattern in of_questions.items():
            sentence = pattern.sub(functools.partial(of_series, question), sentence)
        return by_itself.sub(functools.partial(alone, questions), sentence)

    return told


@functools.cache
def _patterns() -> tuple[dict[str, re.Pattern[str]], dict[str, str], re.Pattern[str]]:
    """Question -> what finds the names of its series; identifier that no other question has -> its question; and what finds
    such an identifier by itself."""
    of_questions, known = {}, []
    for question, of in labels().items():
        variant, size = (_one_of(of[table]) for table in ("variants", "sizes"))
        head = rf"(?P<head>(?<!\w){question.replace('_', ' ')}(?:(?: [a-z ]+)?,)? )"
        names = rf"(?P<variants>{variant}(?: and {variant})*)(?P<size> {size})?(?=[:;.,]|$)"
        of_questions[question] = re.compile(head + names)
        known += [(name, question) for table in ("variants", "sizes") for name in of[table]]
    times = Counter(name for name, _ in known)
    questions = {name: question for name, question in known if times[name] == 1}
    return of_questions, questions, re.compile(rf"`(?P<code>{_one_of(questions)})`|\((?P<size>{_one_of(questions)}),")


def _one_of(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(sorted(map(re.escape, names), key=len, reverse=True))})"
