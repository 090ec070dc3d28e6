"""Seasons: store the final standings of the old season and reset ratings by the ladder's rule."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from evenmatch.corrections.effect import Effect, rating_moves
from evenmatch.errors import UnknownNameError
from evenmatch.ladders.ladders import correct, recorded_change, taken
from evenmatch.ladders.settings import RESETS
from evenmatch.ladders.standings import View
from evenmatch.ledger import event_rows, ladder_rows, player_rows, rating_rows
from evenmatch.ledger.block_rating import finish
from evenmatch.ledger.events import SeasonOpened
from evenmatch.ledger.ladder_rows import FinalOrder, FinalRow, Season
from evenmatch.ledger.store import Head, Store
from evenmatch.players.records import PlayerRecord

__all__ = ["FinalOrder", "Season", "StandingRow", "finals", "finals_from", "open_season", "opened_before", "preview"]


class StandingRow(NamedTuple):
    """A listed player of the standings. Players with equal ratings share a rank.

    Where a ladder shows percentiles or divisions instead of ratings, players with equal ones share a rank. After a
    season has ended, a rank may be null.

    rating      null: the ladder does not show it
    percentile  1 to 100, among the active players
    completed   matches that the player did not quit
    record      null: the season has ended
    """

    player: str
    rank: int | None
    rating: float | None
    percentile: int | None
    division: str | None
    matches: int
    completed: int
    record: PlayerRecord | None = None


def opened_before(
    store: Store, head: Head, title: str | None, reset: str | None, factor: float | None, event_id: str
) -> Season | None:
    """The season that the event with this id opened; None if there is no such event.

    Values that the request left to the ladder's settings are not compared, because the settings may have changed.
    Raises ConflictError if the id is already used with other content.
    """
    opening = recorded_change(store, head, SeasonOpened, event_id)
    if opening is None:
        return None
    shares: list[float]
    if reset in RESETS:
        shares = [RESETS[reset]]
    elif factor is not None:
        shares = [factor] if reset == "soft" else [factor, *RESETS.values()]
    else:
        shares = [opening.factor]
    if opening.factor not in shares or title not in (None, opening.title):
        raise taken(event_id, head)
    position = event_rows.find_events(store, head, [event_id])[event_id][0]
    return next(season for season in ladder_rows.read_seasons(store, head.ladder) if season.position == position)


def open_season(
    store: Store, head: Head, view: View, title: str | None, factor: float, event_id: str, now: int
) -> Season:
    """Close the current season and open the next.

    head    locked, with no rebuild due and no event with this id;  view  as of now, in this transaction
    factor  the share of each player's distance from the mean that remains: 0 resets all ratings, 1 changes none
    """
    current = ladder_rows.read_seasons(store, head.ladder)[-1]
    number = current.number + 1
    new_title = title or f"Season {number}"
    _keep_standings(store, head, current.number, view)
    digest = ladder_rows.digest_final_standings(store, head.ladder, current.number)
    position = correct(store, head, SeasonOpened(new_title, number, factor, digest), event_id, now)
    assert position is not None
    plan = event_rows.read_plan(store, head, position)
    roster = rating_rows.read_whole_roster(store, head, plan)
    finish(roster, plan, position)
    rating_rows.put_states(store, head.ladder, head.generation, roster)
    rating_rows.set_sample(store, head.ladder, head.generation, roster.sample.pack())
    rating_rows.put_checkpoint(store, head.ladder, head.generation, roster)
    if not factor:
        rating_rows.forget_players(store, head.ladder, head.generation)
    if factor != 1:
        ladder_rows.delete_divisions(store, head.ladder)
        ladder_rows.set_divided_at(store, head.ladder, now)
    ladder_rows.set_season_closed_at(store, head.ladder, current.number, now)
    ladder_rows.insert_season(store, head.ladder, number, new_title, position=position, now=now)
    return Season(number, new_title, position, now, None)


def standings_damage(store: Store, head: Head) -> list[str]:
    """Sentences about ended seasons whose final standings do not match the digests in the events."""
    changes = [event.change for event in event_rows.read_corrections(store, head, head.position)]
    openings = [change for change in changes if isinstance(change, SeasonOpened)]
    return [
        f"the final standings of season {ended} have changed since the season ended"
        for ended, opening in enumerate(openings, 1)
        if opening.standings != ladder_rows.digest_final_standings(store, head.ladder, ended)
    ]


def preview(store: Store, head: Head, title: str | None, factor: float) -> Effect:
    """Compute how opening a season would change ratings and match counts, largest change first."""
    rules = event_rows.read_plan(store, head, head.planned).last_rules
    roster = rating_rows.read_roster(store, head, rules)
    before = replace(roster, records=roster.records.copy(), tally=roster.tally.copy())
    if factor != 1:
        roster.reset(rules, factor)
    new_title = title or f"Season {ladder_rows.last_season(store, head.ladder) + 1}"
    return Effect(f"{new_title} begins", rating_moves(store, before, roster), len(roster), 0, 0, head.position)


def _keep_standings(store: Store, head: Head, season: int, view: View) -> None:
    snapshot = view.snapshot
    board = snapshot.board
    shown = snapshot.among(board.player[board.matches > 0])
    rows = [
        FinalRow(
            standing.player,
            standing.rank,
            rating,
            standing.percentile,
            standing.division,
            standing.matches,
            standing.completed,
        )
        for standing, rating in zip(
            shown, board.rating[board.find([row.player for row in shown])].tolist(), strict=True
        )
    ]
    ladder_rows.insert_final_standings(store, head.ladder, season, rows)


def finals(store: Store, head: Head, season: int, page: int, size: int) -> list[StandingRow]:
    """A page (from 1) of the final standings of a season; see finals_from."""
    return finals_from(store, head, season, (page - 1) * size, size)


def finals_from(
    store: Store, head: Head, season: int, offset: int, size: int, *, by: FinalOrder = "rank"
) -> list[StandingRow]:
    """Up to `size` final standings of a season from `offset` on, best first, players without a rank last.

    by  percentile or division: ties are ordered by id, so that the order reveals nothing more
    Raises UnknownNameError for a season that has not ended.
    """
    ended = [one.number for one in ladder_rows.read_seasons(store, head.ladder) if one.closed_at is not None]
    if season not in ended:
        raise UnknownNameError("ended season", str(season), map(str, ended))
    rows = ladder_rows.read_final_standings(store, head.ladder, season, offset, size, by=by)
    names = player_rows.names_of(store, [row.player for row in rows])
    return [StandingRow(names[row.player], *row[1:]) for row in rows]
