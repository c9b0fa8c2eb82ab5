"""Which card is pretended? `devices.toml` describes the cards, `properties.txt` how CUDA asks for what they are."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch_history.system.errors import UserError

HERE = Path(__file__).resolve().parent
DEVICES = HERE / "devices.toml"

OPAQUE = ("name", "uuid", "luid", "luidDeviceNodeMask", "reserved")
"""Members of cudaDeviceProp that say nothing of what a card can do."""

FIELDS = (
    "totalGlobalMem",
    "major",
    "minor",
    "maxThreadsPerMultiProcessor",
    "maxBlocksPerMultiProcessor",
    "sharedMemPerBlock",
)
"""The numbers of a card that the recorder itself reads, in the order of `struct card` in recorder.h."""


class Member(NamedTuple):
    """One member of cudaDeviceProp: its C type, its name, how many elements, by which number cudaDeviceGetAttribute asks
    for each, and the first and last major version of CUDA that has it."""

    type: str
    name: str
    elements: int
    attributes: tuple[int, ...]
    first: int
    last: int


class Card(NamedTuple):
    """A card: its name in devices.toml, the name it reports, for each member of cudaDeviceProp its elements, its
    memory as it is sold in GB, 0 where that is not given, and other names of it."""

    key: str
    title: str
    values: dict[str, list[int]]
    sold_with: int = 0
    called: tuple[str, ...] = ()

    @property
    def memory(self) -> int:
        """Bytes of device memory that CUDA says it has."""
        return self.values["totalGlobalMem"][0]

    @property
    def capability(self) -> str:
        """As `sm_75`."""
        return f"sm_{self.values['major'][0]}{self.values['minor'][0]}"


def members() -> list[Member]:
    """The members of cudaDeviceProp of all versions of CUDA, in order."""
    form = re.compile(
        r"(char|int|unsigned int|size_t) (\w+)(?:\[(\d+)\])?(?: = ([\d ]+?))?(?: from (\d+))?(?: until (\d+))?"
    )
    found = []
    for line in (HERE / "properties.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        match = form.fullmatch(line)
        assert match, line
        kind, name, elements, numbers, first, last = match.groups()
        attributes = tuple(int(number) for number in (numbers or "").split())
        found.append(Member(kind, name, int(elements or 1), attributes, int(first or 0), int(last or 99)))
    return found


def cards(path: Path = DEVICES) -> dict[str, Card]:
    """Every card of `path` by its key, the default first. Raises UserError for a number that is 0 or absent, which releases
    take for a card that cannot do something."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    every = table["every"]
    return {key: _card(key, every, own) for key, own in table["cards"].items()}


def _card(key: str, every: dict[str, Any], own: dict[str, Any]) -> Card:
    given = {**every, **own}
    none = {*every.get("none", []), *own.get("none", [])}
    told = (member for member in members() if member.name not in OPAQUE)
    values = {member.name: _elements(key, member, given.get(member.name), member.name in none) for member in told}
    return Card(key, own["name"], values, own.get("sold_with", 0), tuple(own.get("called", ())))


def _elements(key: str, member: Member, given: Any, none: bool) -> list[int]:
    if isinstance(given, bool) or (none and given is None):
        return [int(bool(given))] * member.elements
    elements = given if isinstance(given, list) else [given]
    if len(elements) == member.elements and all(isinstance(element, int) and element > 0 for element in elements):
        return elements
    said = "is not given" if given is None else f"is {given}"
    raise UserError(
        f"{member.name} of the card '{key}' {said}. A release may allocate differently on a card without it: give "
        f"{'the number' if member.elements == 1 else f'{member.elements} numbers'} in devices.toml, or list the name in "
        "`none` if the card really lacks it."
    )


TITLE = re.compile(r"[\w .,:;()/+-]{1,200}", re.ASCII)
"""What a card's name may be made of: it is written into C text."""


def asked_card(key: str, asked: Mapping[str, Any]) -> Card:
    """The card that a driver described, as `asked` of measure/card.py has it, under the name `key`; what it does not know is
    as in `[every]` of devices.toml. `asked` may be a stranger's: raises UserError where it is not of that form, or lacks a
    number that nobody else gives."""
    title, memory, attributes = (asked.get(name) for name in ("name", "memory", "attributes"))
    if not isinstance(title, str) or not TITLE.fullmatch(title):
        raise UserError(f"{str(title)[:60]!r} is no name of a GPU: it has letters, digits and a few signs.")
    if not isinstance(attributes, Mapping):
        raise UserError(f"Of '{title}' no attributes are given: ask its driver with `python -m measure.card`.")
    every = tomllib.loads(DEVICES.read_text(encoding="utf-8"))["every"]
    values = {member.name: _said(title, member, attributes, every) for member in members() if member.name not in OPAQUE}
    values["totalGlobalMem"] = [_whole(title, "memory", memory, 1, 2**48)]
    return Card(key, title, values)


def _said(title: str, member: Member, attributes: Mapping[str, Any], every: Mapping[str, Any]) -> list[int]:
    """The elements of a member as the driver said them, or else as every card has them."""
    if member.attributes and all(str(number) in attributes for number in member.attributes):
        may_be_negative = member.type == "int" and member.name not in FIELDS
        least = -(2**31) if may_be_negative else int(member.name in FIELDS and member.name != "minor")
        return [_whole(title, member.name, attributes[str(number)], least, 2**31) for number in member.attributes]
    if member.name == "totalGlobalMem":
        return []
    if member.name in every or member.name in every["none"]:
        return _elements(title, member, every.get(member.name), member.name in every["none"])
    raise UserError(
        f"The driver of '{title}' does not say {member.name} (attribute {member.attributes[0]}), by which a release may "
        "allocate differently: ask with a newer driver, or describe the card in recorder/devices.toml."
    )


def _whole(title: str, name: str, value: Any, least: int, above: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < above:
        raise UserError(
            f"{name} of '{title}' is {str(value)[:60]}, which is no whole number from {least} to {above - 1}."
        )
    return value


def source(all_cards: Mapping[str, Card], cuda_major: int) -> str:
    """The cards as C for `recorder.h`, with cudaDeviceProp as that version of CUDA has it."""
    there = [member for member in members() if member.first <= cuda_major <= member.last]
    lines = ["struct properties {"]
    lines += [f"    {m.type} {m.name}{f'[{m.elements}]' if m.elements > 1 else ''};" for m in there]
    lines += ["};", ""]
    for card in all_cards.values():
        lines += [f"static const struct properties {card.key}_properties = {{", f'    .name = "{card.title}",']
        for m in there:
            if m.name in card.values:
                lines.append(f"    .{m.name} = {{{', '.join(str(value) for value in card.values[m.name])}}},")
        lines += ["};", f"static const struct attribute {card.key}_attributes[] = {{"]
        for m in members():
            pairs = zip(m.attributes, card.values[m.name] if m.attributes else [], strict=True)
            lines += [f"    {{{number}, {value}}}," for number, value in pairs]
        lines += ["};", ""]
    lines.append("const struct card recorder_cards[] = {")
    for key, card in all_cards.items():
        numbers = ", ".join(str(card.values[name][0]) for name in FIELDS)
        lines.append(
            f'    {{"{key}", "{card.title}", {numbers}, '
            f"{key}_attributes, sizeof {key}_attributes / sizeof *{key}_attributes, "
            f"(const unsigned char *)&{key}_properties, sizeof {key}_properties, "
            "offsetof(struct properties, totalGlobalMem)},"
        )
    lines.append("    {0},\n};\n")
    return "\n".join(lines)
