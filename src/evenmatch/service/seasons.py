"""Open a season: the standings of the one before are kept for ever, and everybody begins as its rule says."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenmatch.errors import UnknownNameError
from evenmatch.ledger import people, schema
from evenmatch.ledger.events import Kind
from evenmatch.ledger.replay import finish
from evenmatch.ledger.store import Head, Store
from evenmatch.service.boards import View
from evenmatch.service.corrections import Move, Preview
from evenmatch.service.ladders import correct


class Season(NamedTuple):
    """number  counted from 1;  position  of the event that opened it;  closed_at  None: it is the present one."""

    number: int
    title: str
    position: int
    opened_at: int
    closed_at: int | None


class Final(NamedTuple):
    """Where a player stood when a season ended; rank, percentile and division are None where not shown."""

    player: str
    rank: int | None
    rating: float
    percentile: int | None
    division: str | None
    matches: int
    completed: int


def seasons(store: Store, head: Head) -> list[Season]:
    """All seasons of a ladder, the first one first."""
    sql = "SELECT season, title, position, opened_at, closed_at FROM season WHERE ladder = ? ORDER BY season"
    return [Season(*row) for row in store.all(sql, head.ladder)]


def open_season(
    store: Store, head: Head, view: View, title: str | None, factor: float, event_id: str, now: int
) -> Season:
    """Close the present season and open the next; where an event of this id has done so already, that one's.

    head    locked, with no rebuild due;  view  as of now, in this transaction
    factor  what is left of everybody's distance from the mean: 0 all begin anew, 1 nothing changes
    """
    all_seasons = seasons(store, head)
    if known := store.known(head, [event_id]):
        done = next((one for one in all_seasons if one.position == known[event_id][0]), None)
        body = {} if done is None else {"title": title or done.title, "season": done.number, "factor": factor}
        correct(store, head, Kind.SEASON, body, event_id, now, since=None)  # raises where it says something else
        assert done is not None
        return done
    last = all_seasons[-1]
    number = last.number + 1
    named = title or f"Season {number}"
    body = {"title": named, "season": number, "factor": factor}
    _keep_standings(store, head, last.number, view)
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
    store.run("UPDATE season SET closed_at = ? WHERE ladder = ? AND season = ?", now, head.ladder, last.number)
    store.add_season(head.ladder, number, named, position=position, now=now)
    return Season(number, named, position, now, None)


def preview(store: Store, head: Head, title: str, factor: float) -> Preview:
    """What the end of the season would do to everybody's rating and matches, the largest change first."""
    rules = store.plan(head, head.planned).last_rules
    roster = store.roster(head, rules)
    before, matches = roster.records["rating"].copy(), roster.tally["matches"].copy()
    if factor != 1:
        roster.reset(rules, factor)
    after = roster.records["rating"]
    changed = np.flatnonzero((before != after) | (matches != roster.tally["matches"]))
    changed = changed[np.argsort(-np.abs(after - before)[changed], kind="stable")]
    names = people.names_of(store, roster.ids[changed].tolist())
    columns = (roster.ids, before, matches, after, roster.tally["matches"])
    rows = zip(*(column[changed].tolist() for column in columns), strict=True)
    return Preview(f"{title} begins", [Move(names[player], *values) for player, *values in rows], len(roster), 0, 0)


def _keep_standings(store: Store, head: Head, season: int, view: View) -> None:
    taken = view.snapshot
    board = taken.board
    shown = taken.among(board.player[board.matches > 0])
    columns = ("ladder", "season", "player", "rank", "rating", "percentile", "division", "matches", "completed")
    rows = [
        (
            head.ladder,
            season,
            one.player,
            one.rank,
            one.rating,
            one.percentile,
            one.division,
            one.matches,
            one.completed,
        )
        for one in shown
    ]
    store.rows.insert(store.connection, schema.final, columns, rows)


def finals(store: Store, head: Head, season: int, page: int, size: int) -> list[Final]:
    """A page of the standings with which a season ended, counted from 1; see finals_from."""
    return finals_from(store, head, season, (page - 1) * size, size)


def finals_from(store: Store, head: Head, season: int, offset: int, size: int) -> list[Final]:
    """So many of the standings with which a season ended from a place on, best first, those without a rank last.

    Raises UnknownNameError for a season that has not ended.
    """
    ended = [one.number for one in seasons(store, head) if one.closed_at is not None]
    if season not in ended:
        raise UnknownNameError("ended season", str(season), map(str, ended))
    found = store.all(
        "SELECT player, rank, rating, percentile, division, matches, completed FROM final WHERE ladder = ? "
        "AND season = ? ORDER BY CASE WHEN rank IS NULL THEN 1 ELSE 0 END, rank, rating DESC, player LIMIT ? OFFSET ?",
        *(head.ladder, season, size, offset),
    )
    names = people.names_of(store, [row[0] for row in found])
    return [Final(names[row[0]], *row[1:]) for row in found]
