"""The results of players, when they last played, and how their ratings moved in a week, for a page of standings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from evenmatch.durations import DAY
from evenmatch.ladders.standings import View
from evenmatch.ledger import event_rows, rating_rows
from evenmatch.ledger.codec import read_lines
from evenmatch.ledger.store import Head, Store
from evenmatch.standings.activity import NEVER
from evenmatch.standings.board import Standing
from evenmatch.times import Time

TREND = 7 * DAY  # microseconds over which a rating's change is shown


class PlayerRecord(NamedTuple):
    """The results of a player, and how the rating moved lately.

    won, drew, lost  results of the matches that the standing counts
    last_completed   when the player last completed a match; null: never
    rating_change    change of the rating since the first rated match of the last 7 days, that match included, but only
                     since ratings were reset; null: no such match, or the rating is not shown
    """

    won: int
    drew: int
    lost: int
    last_completed: Time | None
    rating_change: float | None

    @property
    def share(self) -> float | None:
        """The share of matches won, 0..1; None without matches."""
        matches = self.won + self.drew + self.lost
        return self.won / matches if matches else None


NO_MATCHES = PlayerRecord(0, 0, 0, None, None)


def records(store: Store, head: Head, view: View, standings: Sequence[Standing]) -> dict[int, PlayerRecord]:
    """The records of players by id, read together. standings: of this view, as its caller may see them."""
    is_same = head.generation == view.head.generation  # otherwise the ratings are by other rules or other matches
    rating = {one.player: one.rating for one in standings if is_same and one.rating is not None}
    before = _ratings_before(store, head, list(rating), view.snapshot.as_of - TREND)
    rows = rating_rows.read_results(store, head, [one.player for one in standings])
    return dict.fromkeys((one.player for one in standings), NO_MATCHES) | {
        player: PlayerRecord(
            won,
            drew,
            matches - won - drew,
            None if last == NEVER else last,
            rating[player] - before[player] if player in before else None,
        )
        for player, matches, won, drew, last in rows
    }


def _ratings_before(store: Store, head: Head, players: Sequence[int], since: int) -> dict[int, float]:
    """The ratings of players before their first rated match since a time; players without one are left out."""
    plan = event_rows.read_plan(store, head, head.planned)
    reset = max((position for position, opening in plan.openings if opening.factor != 1), default=0)
    owner = {player: player for player in players}
    owner |= {old: new for old, new in plan.merged.items() if new in owner}
    firsts: dict[int, tuple[int, int]] = {}
    for player, played_at, position in rating_rows.read_first_rated(store, head, list(owner), since, reset):
        own = owner[player]
        firsts[own] = min(firsts.get(own, (played_at, position)), (played_at, position))
    players_of: dict[int, list[int]] = defaultdict(list)
    for player, (_, position) in firsts.items():
        players_of[position].append(player)
    lines = rating_rows.read_journal_lines(store, head, list(players_of))
    found: dict[int, float] = {}
    for block, _ in event_rows.read_blocks_at(store, head, list(players_of)):
        ids, starts = plan.identity(block.ids), block.columns.slot_start[block.columns.team_start]
        for match, position in enumerate(block.positions.tolist()):
            ratings = read_lines(plan.last_rules.system, lines[position][0])["before"]
            slots = ids[starts[match] : starts[match + 1]]
            found |= {player: float(ratings[slots == player][0]) for player in players_of[position]}
    return found
