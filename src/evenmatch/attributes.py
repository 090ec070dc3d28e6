"""Queue attributes: requests of a ticket beyond its rank filter, region and role."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evenmatch.errors import BadParameterError
from evenmatch.options import Checked, choice, known_values, number, structure

EQUAL, MEET = "equal", "meet"
MAP = "map"  # the attribute whose values are the maps of a policy
MOST_BITS = 64  # one bit per value of all attributes and maps, and one per attribute with a worth
MOST_COMBINATIONS = 4096  # ways to pick a value of each attribute and a map
LONGEST_VALUE = 64  # characters
MOST_SECONDS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Attribute(Checked):
    """A ticket attribute that all players of a match must agree on. Raises BadParameterError.

    A player who names no value accepts every value.
    """

    kind: str = choice(
        MEET,
        (EQUAL, MEET),
        "equal: each player names one value, and all players of a match name the same; meet: each player names the "
        "values they accept, and all players of a match accept one of them.",
    )
    values: tuple[str, ...] = structure(
        (), "The values that players can name; a match uses the first one that all its players accept."
    )
    worth: float | None = number(
        None,
        0,
        MOST_SECONDS,
        "Seconds that players wait for agreement; after that they may be matched without it; none: they never are.",
        optional=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "values", names_of("values", self.values))
        if not self.values:
            raise BadParameterError("values is empty; expected the values that players can name")

    @classmethod
    def from_data(cls, data: object) -> Attribute:
        """Read an attribute from a TOML or JSON table. Raises UnknownNameError or BadParameterError."""
        if not isinstance(data, Mapping):
            raise BadParameterError(f"{data!r}: expected a table with values, and kind or worth")
        return cls(**known_values(cls, "option of an attribute", data))

    def to_data(self) -> dict[str, object]:
        """All options, ready for JSON."""
        return {"kind": self.kind, "values": list(self.values), "worth": self.worth}


def names_of(option: str, names: object) -> tuple[str, ...]:
    """Return checked names of values or maps. Raises BadParameterError."""
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise BadParameterError(f"{option}={names!r}: expected a list of names")
    for name in names:
        if not name.strip() or len(name) > LONGEST_VALUE or not name.isprintable():
            raise BadParameterError(
                f"{option} has {name!r}; expected names of 1 to {LONGEST_VALUE} printable characters"
            )
    if double := [name for place, name in enumerate(names) if name in names[:place]]:
        raise BadParameterError(f"{option} has {double[0]!r} twice; expected different names")
    return tuple(names)


def attributes_of(declared: object) -> dict[str, Attribute]:
    """Return a policy's attributes by name, sorted, reading tables as needed. Raises BadParameterError."""
    if not isinstance(declared, Mapping):
        raise BadParameterError(f"attributes={declared!r}: expected a table of names and attributes")
    attributes = {}
    for name, given in declared.items():
        if names_of("attributes", [name]) == (MAP,):
            raise BadParameterError(f"attributes has {MAP!r}; declare maps with the option maps")
        try:
            attributes[name] = given if isinstance(given, Attribute) else Attribute.from_data(given)
        except BadParameterError as error:
            raise BadParameterError(f"attributes has {name!r}: {error}") from None
    return dict(sorted(attributes.items()))


def check_size(attributes: Iterable[Attribute], maps: Sequence[str]) -> None:
    """Raise BadParameterError if there are more values, or combinations of them, than a queue can search."""
    listed = [len(attribute.values) + (attribute.worth is not None) for attribute in attributes]
    listed += [len(maps)] if maps else []
    if sum(listed) > MOST_BITS:
        raise BadParameterError(
            f"attributes and maps have {sum(listed)} values, counting one extra for each attribute with a worth; "
            f"expected at most {MOST_BITS}"
        )
    if math.prod(listed) > MOST_COMBINATIONS:
        raise BadParameterError(
            f"the values of attributes and maps have {math.prod(listed)} combinations; expected at most "
            f"{MOST_COMBINATIONS}"
        )
