"""Which launches were taken out of the results, and why? `results/exclusions.jsonl` lists them; none of them may count."""

from typing import Annotated

from msgspec import Meta, Struct, ValidationError, convert

from ..system.files import LONGEST_NAME, parse
from .launches import Launch

FILE = "exclusions.jsonl"

Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
Names = tuple[Name, ...]
Count = Annotated[int, Meta(ge=1)]


class Exclusion(Struct, frozen=True):
    """A line of the list: so many launches of one benchmark in one session, begun from `first` to `last`, and how many cases
    of them. `variants` and `sizes` are those of the cases where a launch keeps others; of whole launches they are empty."""

    machine: Name
    session: Name
    benchmark: Name
    environments: Names
    releases: Names
    variants: Names
    sizes: Names
    launches: Count
    cases: Count
    first: Name
    last: Name
    rule: Name
    reason: str

    @classmethod
    def from_json(cls, line: bytes) -> "Exclusion":
        """Raises ValueError where `line` says no such thing."""
        try:
            return convert(parse(line), cls)
        except ValidationError as error:
            raise ValueError(f"it is no exclusion: {error}") from error

    def lists(self, launch: Launch) -> bool:
        """Whether `launch` has a number that was taken out."""
        return (
            (launch.session, launch.benchmark) == (self.session, self.benchmark)
            and launch.release in self.releases
            and launch.environment in self.environments
            and self.first <= launch.started_at <= self.last
            and any(self._lists(case.parameters) for case in launch.cases if case.number is not None)
        )

    def _lists(self, parameters: tuple[str, ...]) -> bool:
        variant, *sizes = (word.strip("'") for word in parameters)
        return not self.variants or (variant in self.variants and {*sizes} <= {*self.sizes})
