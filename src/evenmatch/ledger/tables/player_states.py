"""Rows of table `state`: a player's record as of the last match, in each generation of a ladder's ratings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from evenmatch.errors import DamageError
from evenmatch.history import Floats
from evenmatch.ledger import generation_rows, schema
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.roster import TALLY, Roster, unpack_ladders
from evenmatch.ledger.rows import Row, Values
from evenmatch.ledger.store import Head, Store
from evenmatch.standings.placement import RatingSample
from evenmatch.systems.system import Records, Rules

_STANDINGS = (
    "SELECT player, rating, matches, completed, last_completed, expected_move FROM state "
    "WHERE ladder = ? AND generation = ?"
)


def read_roster(store: Store, head: Head, rules: Rules, ids: Ids | None = None) -> Roster:
    """The roster of the current generation: all players (ids None) or those of `ids` that have a state."""
    sql = f"SELECT player, record, {', '.join(TALLY.names)} FROM state"  # type: ignore[arg-type]
    where = " WHERE ladder = ? AND generation = ?"
    if ids is None:
        rows = store.all(f"{sql}{where} ORDER BY player", head.ladder, head.generation)
    else:
        rows = store.among(f"{sql}{where} AND player IN ({{}})", (head.ladder, head.generation), ids.tolist())
        rows.sort(key=lambda row: int(row[0]))
    kind = rules.system.state
    if any(len(row[1]) != kind.itemsize for row in rows):
        raise _damaged(head, rules)
    records = np.frombuffer(b"".join([row[1] for row in rows]), kind).copy()
    tally = np.array([row[2:] for row in rows], TALLY) if rows else np.zeros(0, TALLY)
    players = np.array([row[0] for row in rows], np.int64)
    ladders, sample = read_ladders(head, rules), _read_sample(head)
    roster = Roster(players, records, tally, ladders, head.position, head.time, sample)
    if ids is not None:
        roster.others = others_reader(store, head, roster)
    return roster


def read_ladders(head: Head, rules: Rules) -> Records:
    """The system's records of the ladder as of the head: the records of its pool and of itself."""
    try:
        return unpack_ladders(rules, head.learned)
    except ValueError:
        raise _damaged(head, rules) from None


def _read_sample(head: Head) -> RatingSample:
    try:
        return RatingSample.unpack(head.sample)
    except ValueError as error:
        message = f"the sample of ratings of ladder {head.name!r} is damaged ({error})"
        raise DamageError(f"{message}; `evenmatch rebuild --whole` takes it again") from error


def _damaged(head: Head, rules: Rules) -> DamageError:
    message = f"states of ladder {head.name!r} are damaged, or of another system than {rules.system.name}"
    return DamageError(f"{message}; `evenmatch rebuild --whole` computes them again")


def others_reader(store: Store, head: Head, roster: Roster) -> Callable[[], Floats]:
    """A function that reads the ratings of players with matches in this season who are not in a roster."""
    return partial(_read_others, store, head, roster)


def _read_others(store: Store, head: Head, roster: Roster) -> Floats:
    sql = "SELECT player, rating FROM state WHERE ladder = ? AND generation = ? AND matches > 0"
    own = set(roster.ids.tolist())
    rows = store.all(sql, head.ladder, head.generation)
    return np.array([rating for player, rating in rows if player not in own], np.float64)


def put(store: Store, ladder: int, generation: int, roster: Roster, *, new: bool = False) -> None:
    """Insert or replace the states of all players of a roster; `new`: none of them has a state yet."""
    if not len(roster.ids):
        return
    columns: dict[str, Values] = {"player": roster.ids, "rating": roster.records["rating"]}
    columns |= {name: roster.tally[name] for name in TALLY.names or ()}
    columns["record"] = np.ascontiguousarray(roster.records).view(f"V{roster.records.dtype.itemsize}")
    store.insert_columns(schema.state, {"ladder": ladder, "generation": generation}, columns, replacing=not new)


def count(store: Store, head: Head) -> int:
    """The number of players with a state in the current generation."""
    sql = "SELECT COUNT(*) FROM state WHERE ladder = ? AND generation = ?"
    return int(store.all(sql, head.ladder, head.generation)[0][0])


def has_any(store: Store, ladder: int, players: Sequence[int]) -> bool:
    """Whether one of these players has a state in any generation."""
    return bool(store.among("SELECT 1 FROM state WHERE ladder = ? AND player IN ({}) LIMIT 1", (ladder,), players))


def read_ratings(store: Store, head: Head) -> list[float]:
    """The displayed ratings of all players, by player id."""
    sql = "SELECT rating FROM state WHERE ladder = ? AND generation = ? ORDER BY player"
    return [row[0] for row in store.all(sql, head.ladder, head.generation)]


def read_standings(store: Store, head: Head, players: Sequence[int] | None = None) -> list[Row]:
    """(player, rating, matches, completed, last_completed, expected_move) of these players, or of all, by id."""
    if players is None:
        return store.all(f"{_STANDINGS} ORDER BY player", head.ladder, head.generation)
    return sorted(store.among(f"{_STANDINGS} AND player IN ({{}})", (head.ladder, head.generation), players))


def read_idle(store: Store, head: Head, completed: int, upto: int, above: float) -> list[Row]:
    """(player, rating, completed, last_completed) of idle players, by player id.

    Those with at least `completed` completed matches, the last of them not after `upto`, and a rating above `above`.
    """
    return store.all(
        "SELECT player, rating, completed, last_completed FROM state WHERE ladder = ? AND generation = ? "
        "AND completed >= ? AND last_completed <= ? AND rating > ? ORDER BY player",
        *(head.ladder, head.generation, completed, upto, above),
    )


def delete_some(store: Store, ladder: int, generation: int, limit: int, *, earlier: bool) -> bool:
    """Delete up to `limit` rows of a generation (earlier: of all before it); False: none was left."""
    return generation_rows.delete_some(store, schema.state, "player", ladder, generation, limit, earlier=earlier)
