"""What was measured may be called anything: how does a name stand in Markdown as what it is?"""

import re
import unicodedata

_SPECIAL = re.compile(
    r"[\\`*{}\[\]<>|~&$]|(?<!\w)_|_(?!\w)|[@#](?=\w)|:(?=//)|(?<=www)\.|(?<=mailto):|(?<=xmpp):", re.IGNORECASE
)
"""What Markdown or HTML, also as GitHub extends it, would take for more than text."""

_LEADING = re.compile(r"(?:[#+=-]+|\d+[.)])(?=\s|$)")
"""Makes a heading, a list or a line of a text."""

_JOINED = "&#8288;"
"""A word joiner, not to be seen: it ends a mention, a number of an issue, and an address."""

_BROKEN_BY_IT = "@#:."


def escape(words: str) -> str:
    """Text that Markdown and HTML leave as it is: no markup, link, mention or issue, and no unseen character."""

    def plain(match: re.Match[str]) -> str:
        return f"{match[0]}{_JOINED}" if match[0] in _BROKEN_BY_IT else f"&#{ord(match[0])};"

    seen = "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(each).startswith("C") else each
        for each in " ".join(words.split())
    )
    begun = _LEADING.match(seen)
    head = f"{begun[0][:-1]}&#{ord(begun[0][-1])};" if begun else ""
    return head + _SPECIAL.sub(plain, seen[len(begun[0]) if begun else 0 :])


def code(name: str) -> str:
    """`name` as code; as `escape` has it where it would end a span of code, or a cell of a table, and go on as Markdown."""
    fits = name.isprintable() and name == " ".join(name.split()) != "" and not set("`|") & set(name)
    return f"`{name}`" if fits else escape(name)
