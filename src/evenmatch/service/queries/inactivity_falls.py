"""Falls of a player's rating or shown percentile by inactivity, for charts and lists of matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from evenmatch.ledger.idle_decay import PlannedDecay
from evenmatch.ledger.plan import Plan, PlannedSeason
from evenmatch.ledger.store import Head, Store
from evenmatch.ledger.tables import corrections, player_states
from evenmatch.service.queries.player_statistics import OpponentMatch
from evenmatch.service.queries.standings import View
from evenmatch.standings.activity import NEVER


class InactivityFall(NamedTuple):
    """A fall by inactivity.

    of        rating: by an event of the ledger; percentile: the shown one, as of now
    position  of the event; of the last event, for a percentile
    fell_at   microseconds since the epoch
    """

    of: Literal["rating", "percentile"]
    position: int
    fell_at: int
    before: float
    after: float

    @property
    def text(self) -> str:
        """The fall in words: "−12.3, not playing"."""
        amount = f"{self.before - self.after:.2f}".rstrip("0").rstrip(".")
        return f"−{amount}, not playing"


def rating_falls(store: Store, head: Head, player: int, matches: Sequence[OpponentMatch]) -> list[InactivityFall]:
    """The falls of a player's rating, in order. matches: all rated ones of the player, in order."""
    plan = corrections.read_plan(store, head, head.planned)
    decays = [turn for turn in plan.turns if isinstance(turn, PlannedDecay)]
    rows = player_states.read_standings(store, head, [player]) if decays and matches else []
    if not rows:
        return []
    falls: list[InactivityFall] = []
    ends = [*(match.order for match in matches[1:]), (head.position + 1, 1)]
    ratings = [*(float(match.line["before"]) for match in matches[1:]), float(rows[0][1])]
    for number, (match, end, known) in enumerate(zip(matches, ends, ratings, strict=True)):
        between = [decay for decay in decays if match.order < (decay.position, 1) < end]
        if between:
            falls += _between(plan, matches[: number + 1], between, end, known)
    return falls


def _between(
    plan: Plan, played: Sequence[OpponentMatch], decays: Sequence[PlannedDecay], end: tuple[int, int], known: float
) -> Iterator[InactivityFall]:
    """The falls after the last of these matches. known: the rating after all of them, before a match at `end`."""
    seasons = [(turn.position, 1) for turn in plan.turns if isinstance(turn, PlannedSeason) and turn.factor != 1]
    last = played[-1].order
    begun = max((season for season in seasons if season < last), default=(0, 0))
    reset = min((season for season in seasons if last < season < end), default=None)
    completed = [match.played_at for match in played if match.order > begun and match.completed]
    rating = float(played[-1].line["after"])
    decays = [decay for decay in decays if reset is None or (decay.position, 1) < reset]
    counts, latest = np.array([len(completed)]), np.array([max(completed, default=NEVER)])
    for number, decay in enumerate(decays, 1):
        after = _rating_after(plan, decay, rating, counts, latest)
        if number == len(decays) and reset is None:
            after = known
        if after < rating:
            yield InactivityFall("rating", decay.position, decay.until, rating, after)
            rating = after


def _rating_after(plan: Plan, decay: PlannedDecay, rating: float, completed: np.ndarray, latest: np.ndarray) -> float:
    """The shown rating after a decay, which a system may round."""
    wanted = decay.ratings(np.array([rating]), completed, latest)
    rules = plan.rules_at(decay.position)
    return float(rules.system.move(rules.starting(np.array([rating])), wanted, rules.parameters)["rating"][0])


def percentile_fall(view: View, player: int) -> InactivityFall | None:
    """The fall of a listed player's shown percentile as of a whole view; None: it is that of the rating."""
    taken = view.snapshot
    standing = taken.standing(player)
    if standing is None or standing.percentile is None or standing.rating is None:
        return None
    before = taken.percentile(standing.rating)
    if before <= standing.percentile:
        return None
    return InactivityFall("percentile", view.head.position, taken.as_of, before, standing.percentile)
