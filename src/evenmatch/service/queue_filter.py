"""The filter of a player: which opponents and regions they accept on a ladder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from evenmatch.errors import BadParameterError, InputError
from evenmatch.ledger.text import check_texts
from evenmatch.options import Checked, flag, known_values, number, structure

MOST_REGIONS = 60  # the limit of a queue


@dataclass(frozen=True, kw_only=True)
class QueueFilter(Checked):
    """The filter that a player keeps on a ladder; used where a join names no value. Raises BadParameterError."""

    within: float = number(2.0, 0, 100, "Largest difference in percentiles to the other players.")
    loose: bool = flag(True, "The difference grows with waiting time; false: it never does.")
    regions: tuple[str, ...] = structure((), "Regions where the player plays; empty: any region.")
    max_ping: float | None = number(
        None, 0, 100_000, "Highest ping that the player accepts, in milliseconds.", optional=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "regions", tuple(dict.fromkeys(self.regions)))
        if len(self.regions) > MOST_REGIONS:
            raise BadParameterError(f"regions: {len(self.regions)} are named; expected at most {MOST_REGIONS}")
        try:
            check_texts("region", self.regions)
        except InputError as error:
            raise BadParameterError(str(error)) from None

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> QueueFilter:
        """Read a filter from a JSON document; missing values get their defaults. Raises UnknownNameError."""
        values = dict(data)
        regions = values.get("regions", [])
        if not isinstance(regions, list | tuple) or not all(isinstance(region, str) for region in regions):
            raise BadParameterError(f"regions={regions!r}: expected a list of names")
        values["regions"] = tuple(regions)
        return cls(**known_values(cls, "value of a filter", values))

    def to_data(self) -> dict[str, object]:
        """All values, ready for JSON."""
        return asdict(self) | {"regions": list(self.regions)}
