"""The package's own systems behind the interface of their slow twins, so that one test can ask both."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from evenmatch import from_matches, rules
from evenmatch.errors import RatingRangeError
from evenmatch.match import Appearance, Match, Team
from evenmatch.rating import check_range
from evenmatch.systems import loop
from reference.model import SlowChange, SlowMatch

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


NOT_IDLE = 2**62  # a time after every match


def as_match(match: SlowMatch, number: int) -> Match:
    teams = [
        Team(
            tuple(Appearance(p.name, p.score, p.seconds, p.quit, p.performance, entry=p.entry) for p in team.players),
            team.place,
            team.score,
        )
        for team in match.teams
    ]
    return Match(str(number), EPOCH + timedelta(seconds=match.time), tuple(teams), duration=match.duration)


@dataclass(frozen=True)
class Fast:
    """One of the package's systems."""

    name: str

    def replay(self, matches: list[SlowMatch], state: dict[str, dict] | None = None, **parameters) -> list[SlowChange]:
        by = rules(self.name, **parameters)
        table = from_matches(as_match(match, number) for number, match in enumerate(matches))
        records = by.newcomers(len(table.player))
        for at, player in enumerate(table.player_names):
            self._begin(records[at], (state or {}).get(player, {}), by.parameters)
        columns = zip(*(match.context for match in matches), strict=True)
        table = table.with_context({str(c): pa.chunked_array([values]) for c, values in enumerate(columns)})
        history = table.history
        result = loop.replay(by, history, records, journal=True)
        try:
            check_range(by, table.history, records, result, table.player_names.__getitem__, str)
        except RatingRangeError as error:
            raise OverflowError(str(error)) from error
        history, names = table.history, table.player_names
        return [
            SlowChange(
                matches[match].id,
                names[history.columns.player[slot]],
                int(team - history.columns.team_start[match]),
                float(result.journal.before[slot]),
                float(result.journal.after[slot]),
                float(result.expected[team]),
            )
            for slot, (match, team) in enumerate(zip(history.slot_match, history.slot_team, strict=True))
        ]

    def _begin(self, record: np.void, told: dict, parameters) -> None:
        """Put a starting state, in the words of the slow twin, into a record."""
        if self.name == "scorefactor" and told:
            record["last_played"] = NOT_IDLE
        for name, value in told.items():
            if name == "window":
                record["games"] = len(value)
                for at, (outcome, mates, opponents, variance) in enumerate(value):
                    record["outcome"][at] = outcome
                    record["lead"][at] = mates - opponents
                    record["variance"][at] = variance
            elif name == "last_played":
                record[name] = NOT_IDLE if value is None else round(value * 1e6)
            else:
                record[name] = value
        if told and self.name == "prav":
            doubt = 2.0 if parameters.display == "conservative" else 0.0
            record["rating"] = parameters.shift + parameters.scale * (
                record["mean"] - doubt * np.sqrt(record["volatility"])
            )
