"""Seasons: store the final standings of the old season, reset the ratings by the ladder's rule."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenmatch.errors import UnknownNameError
from evenmatch.ledger import player_identities, schema
from evenmatch.ledger.events import Kind
from evenmatch.ledger.replay import finish
from evenmatch.ledger.store import Head, Store
from evenmatch.service.corrections import Move, Preview
from evenmatch.service.ladders import correct
from evenmatch.service.queries.standings import View


class Season(NamedTuple):
    """A season of a ladder.

    number  from 1;  position  of the event that opened it;  opened_at, closed_at  microseconds; None: not closed yet
    """

    number: int
    title: str
    position: int
    opened_at: int
    closed_at: int | None


class Final(NamedTuple):
    """A player's standing at the end of a season; rank, percentile and division are None if they were not shown."""

    player: str
    rank: int | None
    rating: float
    percentile: int | None
    division: str | None
    matches: int
    completed: int


def seasons(store: Store, head: Head) -> list[Season]:
    """All seasons of a ladder, oldest first."""
    sql = "SELECT season, title, position, opened_at, closed_at FROM season WHERE ladder = ? ORDER BY season"
    return [Season(*row) for row in store.all(sql, head.ladder)]


def open_season(
    store: Store, head: Head, view: View, title: str | None, factor: float, event_id: str, now: int
) -> Season:
    """Close the current season and open the next; if an event of this id did so before, return that season.

    head    locked, with no rebuild due;  view  as of now, in this transaction
    factor  the share of each player's distance from the mean that remains: 0 resets all ratings, 1 changes none
    """
    all_seasons = seasons(store, head)
    if known := store.known(head, [event_id]):
        opened = next((season for season in all_seasons if season.position == known[event_id][0]), None)
        body = {} if opened is None else {"title": title or opened.title, "season": opened.number, "factor": factor}
        correct(store, head, Kind.SEASON, body, event_id, now, since=None)  # raises if the content differs
        assert opened is not None
        return opened
    current = all_seasons[-1]
    number = current.number + 1
    new_title = title or f"Season {number}"
    body = {"title": new_title, "season": number, "factor": factor}
    _keep_standings(store, head, current.number, view)
    position = correct(store, head, Kind.SEASON, body, event_id, now, since=None)
    assert position is not None
    plan = store.plan(head, position)
    roster = store.roster(head, plan.last_rules)
    finish(roster, plan, position)
    store.keep_states(head.ladder, head.generation, roster)
    store.checkpoint(head.ladder, head.generation, roster)
    if factor != 1:
        store.run("DELETE FROM division WHERE ladder = ?", head.ladder)
        store.run("UPDATE ladder SET divided_at = ? WHERE ladder = ?", now, head.ladder)
    store.run("UPDATE season SET closed_at = ? WHERE ladder = ? AND season = ?", now, head.ladder, current.number)
    store.add_season(head.ladder, number, new_title, position=position, now=now)
    return Season(number, new_title, position, now, None)


def preview(store: Store, head: Head, title: str, factor: float) -> Preview:
    """Compute what opening a season would do to ratings and match counts; players with the largest change first."""
    rules = store.plan(head, head.planned).last_rules
    roster = store.roster(head, rules)
    before, matches = roster.records["rating"].copy(), roster.tally["matches"].copy()
    if factor != 1:
        roster.reset(rules, factor)
    after = roster.records["rating"]
    changed = np.flatnonzero((before != after) | (matches != roster.tally["matches"]))
    changed = changed[np.argsort(-np.abs(after - before)[changed], kind="stable")]
    names = player_identities.names_of(store, roster.ids[changed].tolist())
    columns = (roster.ids, before, matches, after, roster.tally["matches"])
    rows = zip(*(column[changed].tolist() for column in columns), strict=True)
    return Preview(f"{title} begins", [Move(names[player], *values) for player, *values in rows], len(roster), 0, 0)


def _keep_standings(store: Store, head: Head, season: int, view: View) -> None:
    snapshot = view.snapshot
    board = snapshot.board
    shown = snapshot.among(board.player[board.matches > 0])
    columns = ("ladder", "season", "player", "rank", "rating", "percentile", "division", "matches", "completed")
    rows = [
        (
            head.ladder,
            season,
            standing.player,
            standing.rank,
            standing.rating,
            standing.percentile,
            standing.division,
            standing.matches,
            standing.completed,
        )
        for standing in shown
    ]
    store.rows.insert(store.connection, schema.final, columns, rows)


def finals(store: Store, head: Head, season: int, page: int, size: int) -> list[Final]:
    """A page (from 1) of the final standings of a season; see finals_from."""
    return finals_from(store, head, season, (page - 1) * size, size)


def finals_from(store: Store, head: Head, season: int, offset: int, size: int) -> list[Final]:
    """Up to `size` final standings of a season from `offset` on, best first, players without a rank last.

    Raises UnknownNameError for a season that has not ended.
    """
    ended = [one.number for one in seasons(store, head) if one.closed_at is not None]
    if season not in ended:
        raise UnknownNameError("ended season", str(season), map(str, ended))
    rows = store.all(
        "SELECT player, rank, rating, percentile, division, matches, completed FROM final WHERE ladder = ? "
        "AND season = ? ORDER BY CASE WHEN rank IS NULL THEN 1 ELSE 0 END, rank, rating DESC, player LIMIT ? OFFSET ?",
        *(head.ladder, season, size, offset),
    )
    names = player_identities.names_of(store, [row[0] for row in rows])
    return [Final(names[row[0]], *row[1:]) for row in rows]
