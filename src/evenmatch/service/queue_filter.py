"""The filter of a player: which opponents, regions, attributes and maps they accept on a ladder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from evenmatch.errors import BadParameterError, InputError
from evenmatch.ledger.text import check_texts
from evenmatch.options import Checked, flag, known_values, number, structure

MOST_REGIONS = 60  # the limit of a queue
MOST_NAMED = 64  # attributes, values of all of them, or vetoes


@dataclass(frozen=True, kw_only=True)
class QueueFilter(Checked):
    """The filter that a player keeps on a ladder; used where a join names no value. Raises BadParameterError."""

    within: float = number(2.0, 0, 100, "Largest difference in percentiles to the other players.")
    loose: bool = flag(True, "The difference grows with waiting time; false: it never does.")
    regions: tuple[str, ...] = structure((), "Regions where the player plays; empty: any region.")
    max_ping: float | None = number(
        None, 0, 100_000, "Highest ping that the player accepts, in milliseconds.", optional=True
    )
    attributes: Mapping[str, tuple[str, ...]] = structure(
        {}, "Values that the player accepts, by attribute of the queues (`map`: maps); not named: all."
    )
    vetoes: tuple[str, ...] = structure((), "Maps that the player does not play.")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "regions", tuple(dict.fromkeys(self.regions)))
        if len(self.regions) > MOST_REGIONS:
            raise BadParameterError(f"regions: {len(self.regions)} are named; expected at most {MOST_REGIONS}")
        object.__setattr__(self, "vetoes", tuple(dict.fromkeys(self.vetoes)))
        chosen = {name: tuple(dict.fromkeys(values)) for name, values in self.attributes.items() if values}
        object.__setattr__(self, "attributes", chosen)
        values = [value for own in chosen.values() for value in own]
        if len(chosen) > MOST_NAMED or len(values) > MOST_NAMED or len(self.vetoes) > MOST_NAMED:
            raise BadParameterError(f"attributes and vetoes: expected at most {MOST_NAMED} names and values of each")
        try:
            check_texts("region", self.regions)
            check_texts("attribute", [*chosen, *values])
            check_texts("vetoed map", self.vetoes)
        except InputError as error:
            raise BadParameterError(str(error)) from None

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> QueueFilter:
        """Read a filter from a JSON document; missing values get their defaults. Raises UnknownNameError."""
        values = dict(data)
        for name in ("regions", "vetoes"):
            values[name] = _names(name, values.get(name, []))
        attributes = values.get("attributes", {})
        if not isinstance(attributes, Mapping):
            raise BadParameterError(f"attributes={attributes!r}: expected a table of lists")
        values["attributes"] = {name: _names(name, accepted) for name, accepted in attributes.items()}
        return cls(**known_values(cls, "value of a filter", values))

    def to_data(self) -> dict[str, object]:
        """All values, ready for JSON."""
        attributes = {name: list(values) for name, values in self.attributes.items()}
        return asdict(self) | {"regions": list(self.regions), "vetoes": list(self.vetoes), "attributes": attributes}


def _names(name: str, listed: object) -> tuple[str, ...]:
    if not isinstance(listed, list | tuple) or not all(isinstance(item, str) for item in listed):
        raise BadParameterError(f"{name}={listed!r}: expected a list of names")
    return tuple(listed)
