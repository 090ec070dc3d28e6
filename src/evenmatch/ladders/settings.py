"""The settings of a ladder other than its rating system: title, standings, team size, seasons."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from evenmatch.accounts.access import Caller
from evenmatch.errors import BadParameterError, ConflictError, DamageError, EvenmatchError, UnknownNameError
from evenmatch.match_context import COLUMN, MOST, TAKEN
from evenmatch.options import Checked, Option, check_colour, choice, flag, name_list, number, options_of, text, whole
from evenmatch.standings.division import Division
from evenmatch.standings.rules import LARGEST_COUNT, RATING, StandingsRules

SHOWS = ("rating", "percentile", "division", "after_placement")
RESETS = {"full": 0.0, "none": 1.0}  # and "soft", whose factor is the ladder's


@dataclass(frozen=True)
class Settings(Checked):
    """The settings of a ladder; only `context` changes ratings. Raises BadParameterError for invalid values.

    standings  placement matches, active window, divisions, inactivity
    """

    title: str = text("", "Title that people see; empty: the name.")
    standings: StandingsRules = field(default_factory=StandingsRules)
    team_size: int | None = whole(None, 1, LARGEST_COUNT, "Players in a full team; none: any number.", optional=True)
    other_sizes: str = choice(
        "warn",
        ("any", "warn", "refuse"),
        "What to do with rated matches whose teams are not of team_size: any, record them; warn, record them with a "
        "warning; or refuse.",
    )
    team_limit: int = whole(500, 2, LARGEST_COUNT, "Most teams in a match; larger matches are refused.")
    player_limit: int = whole(1000, 2, LARGEST_COUNT, "Most players in a match; larger matches are refused.")
    reset: str = choice("soft", ("full", "soft", "none"), "How ratings are reset when a season begins.")
    factor: float = number(0.5, 0, 1, "Share of each player's distance from the mean that a soft reset keeps.")
    stomp_margin: float | None = number(
        None,
        0,
        LARGEST_COUNT,
        "A match counts as a stomp if the best team's score leads the next by at least this; none: not counted.",
        optional=True,
    )
    side_counts: str = choice(
        "time",
        ("time", "first", "last"),
        "Which team counts for a player who changes sides in a live match: where they played longest, first or last.",
    )
    switch_window: float = number(
        60.0, 0, 86_400, "Changing to the winning side in these last seconds of a match earns a strike; 0: never."
    )
    show: str = choice(
        "rating",
        SHOWS,
        "What players see: rating, with percentile and division; percentile, with division; division; or "
        "after_placement, which shows everything once the placement matches are completed and nothing before.",
    )
    rating_decay: float = number(
        0.0, 0, 1e6, "Points that an inactive player's rating loses per full week after the grace days."
    )
    rating_floor: float | None = number(
        None,
        -1e9,
        1e9,
        "Lowest rating to which inactivity lowers a rating; none: a newcomer's rating.",
        optional=True,
    )
    rating_stop: str = text("", "Division at whose lowest rating a fall by inactivity stops; empty: none.")
    names: str = choice(
        "warn",
        ("any", "warn", "refuse"),
        "New names that look like another player's, mix scripts or have invisible characters: any accepts them, warn "
        "lists them for operators, refuse rejects them. Without the extra lookalikes, only names that differ in case, "
        "width or invisible characters look alike.",
    )
    context: tuple[str, ...] = name_list(
        MOST,
        COLUMN,
        "Context columns: what a match is played on, such as map,mode. The system even learns from them how players "
        "differ from map to map; other systems ignore them. A change rates all matches again.",
    )
    colour: str = text("", "Accent colour of the ladder's pages, such as #2a7de1; empty: that of the site.")
    archived: bool = flag(False, "The ladder is read-only: nothing can be added.", separate=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "context", tuple(self.context))
        taken = set(TAKEN).intersection(self.context)
        if taken:
            raise BadParameterError(f"context={min(taken)}: this name has a meaning of its own; expected another")
        object.__setattr__(self, "rating_decay", float(self.rating_decay))
        object.__setattr__(self, "rating_floor", None if self.rating_floor is None else float(self.rating_floor))
        if self.colour:
            try:
                check_colour(self.colour)
            except ValueError as error:
                raise BadParameterError(f"colour: {error}") from None
        divisions = [division.name for division in self.standings.divisions]
        if self.rating_stop == "none" and "none" not in divisions:
            object.__setattr__(self, "rating_stop", "")
        if self.rating_stop and self.rating_stop not in divisions:
            raise BadParameterError(
                f"rating_stop={self.rating_stop!r}: expected the name of a division, or none: {', '.join(divisions)}"
            )
        if self.standings.inactivity == RATING and not self.rating_decay:
            raise BadParameterError("rating_decay=0: expected more than 0 points per week with inactivity=rating")

    def shown_to(self, caller: Caller, ladder: str) -> str:
        """The value of `show` that applies to this caller on the ladder with these settings."""
        return "rating" if caller.may("ratings", ladder) else self.show

    def check_open(self, ladder: str) -> None:
        """Raise ConflictError if the ladder is archived."""
        if self.archived:
            raise archived(ladder)

    def changed(self, changes: Mapping[str, object]) -> Settings:
        """A copy with new values by name: fields of this class and of StandingsRules (divisions also as pairs)."""
        for name in changes:
            if name not in SETTINGS:
                raise UnknownNameError("setting", name, SETTINGS)
        values = {name: value if name != "divisions" else _divisions(value) for name, value in changes.items()}
        inner = {name: value for name, value in values.items() if name in _STANDINGS}
        own = {name: value for name, value in values.items() if name not in inner}
        return replace(self, standings=replace(self.standings, **inner), **own)  # type: ignore[arg-type]

    def plain(self) -> dict[str, object]:
        """All settings as JSON values."""
        data = {name: getattr(self.standings if name in _STANDINGS else self, name) for name in SETTINGS}
        divisions = [list(division) for division in self.standings.divisions]
        return data | {"divisions": divisions, "context": list(self.context)}

    def write(self) -> str:
        """The JSON text that is stored in the ladder's row."""
        return json.dumps(self.plain(), sort_keys=True, ensure_ascii=False)

    @classmethod
    def read(cls, text: str) -> Settings:
        """Parse what `write` returned. Raises DamageError if it is damaged."""
        try:
            return cls().changed(json.loads(text))
        except (ValueError, TypeError, AttributeError, EvenmatchError) as error:
            raise DamageError(f"the settings of a ladder are damaged ({error}); restore them from a backup") from error


_STANDINGS = options_of(StandingsRules)
SETTINGS: Mapping[str, Option] = {**options_of(Settings), **_STANDINGS}


def archived(ladder: str) -> ConflictError:
    """The error for adding something to an archived ladder."""
    reopen = "an operator can reopen it (evenmatch ladder reopen)"
    return ConflictError(f"ladder {ladder!r} is archived, so nothing can be added to it; {reopen}")


def _divisions(value: object) -> tuple[Division, ...]:
    """Divisions from pairs of name and lowest percentile."""
    try:
        return tuple(Division(str(name), int(lowest)) for name, lowest in value)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise BadParameterError(
            f"divisions are {value!r}; expected pairs of a name and the lowest percentile, lowest first"
        ) from None


def reset_factor(reset: str, factor: float) -> float:
    """The share of each player's distance from the mean that a new season keeps, 0..1. Raises BadParameterError."""
    if reset in RESETS:
        return RESETS[reset]
    if reset != "soft":
        raise BadParameterError(f"reset is {reset!r}; expected full, soft or none")
    if not 0 <= factor <= 1:
        raise BadParameterError(f"factor is {factor}; expected a number from 0 (as full) to 1 (as none)")
    return float(factor)
