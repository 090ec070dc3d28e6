"""Rows of the tables of a ladder's ratings, which are derived from its events.

These are `generation`, `checkpoint`, `journal`, `state`, `context_value` and `player_offset`. A rebuild writes a new
generation beside the live one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from evenmatch.errors import DamageError
from evenmatch.history import Floats
from evenmatch.ledger import schema
from evenmatch.ledger.block_rating import Block
from evenmatch.ledger.codec import Ids
from evenmatch.ledger.contexts import Contexts, Value
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.roster import TALLY, Roster, unpack_ladders
from evenmatch.ledger.store import Head, Row, Store, Values
from evenmatch.standings.placement import RatingSample
from evenmatch.systems.system import Records, Rules


class StoredGeneration(NamedTuple):
    """A generation as stored.

    planned  position of the last correction included;  ready  1: it has been in use
    """

    generation: int
    system: str
    planned: int
    ready: int


def insert_generation(
    store: Store, ladder: int, generation: int, system: str, engine: str, *, planned: int, ready: bool, now: int
) -> None:
    """Insert a generation, without ratings yet."""
    columns = ("ladder", "generation", "system", "engine", "planned", "ready", "made_at")
    store.insert(schema.generation, columns, [(ladder, generation, system, engine, planned, int(ready), now)])


def generation_exists(store: Store, ladder: int, generation: int) -> bool:
    """True if there is a generation with this number."""
    return bool(store.all("SELECT 1 FROM generation WHERE ladder = ? AND generation = ?", ladder, generation))


def last_generation(store: Store, ladder: int) -> int:
    """The highest number of a ladder's generations."""
    number: int = store.all("SELECT MAX(generation) FROM generation WHERE ladder = ?", ladder)[0][0]
    return number


def read_generation_systems(store: Store, ladder: int) -> dict[int, str]:
    """The name of the system of each generation of a ladder, including past ones."""
    return dict(store.all("SELECT generation, system FROM generation WHERE ladder = ?", ladder))


def read_generations(store: Store, ladder: int) -> list[StoredGeneration]:
    """The generations of a ladder, including past ones, in order."""
    sql = "SELECT generation, system, planned, ready FROM generation WHERE ladder = ? ORDER BY generation"
    return [StoredGeneration(*row) for row in store.all(sql, ladder)]


def read_planned(store: Store, head: Head, generation: int) -> int:
    """The position of the last correction that is included in a generation. Raises DamageError if it is missing."""
    sql = "SELECT planned FROM generation WHERE ladder = ? AND generation = ?"
    rows = store.all(sql, head.ladder, generation)
    if not rows:
        raise DamageError(
            f"generation {generation} of ladder {head.name!r}, which rated some of its matches, is missing; "
            "`evenmatch verify` shows what is damaged; restore a backup"
        )
    position: int = rows[0][0]
    return position


def set_planned(store: Store, ladder: int, generation: int, position: int) -> None:
    """Set the position of the last correction that is included."""
    store.run("UPDATE generation SET planned = ? WHERE ladder = ? AND generation = ?", position, ladder, generation)


def set_rated(store: Store, ladder: int, generation: int, *, time: int | None, learned: bytes) -> None:
    """Set the effective time of the last rated match, and the records learned about the ladder."""
    sql = "UPDATE generation SET time = ?, learned = ? WHERE ladder = ? AND generation = ?"
    store.run(sql, time, learned, ladder, generation)


def set_sample(store: Store, ladder: int, generation: int, sample: bytes) -> None:
    """Set the packed sample of ratings."""
    store.run("UPDATE generation SET sample = ? WHERE ladder = ? AND generation = ?", sample, ladder, generation)


def set_ready(store: Store, ladder: int, generation: int, *, planned: int, sample: bytes) -> None:
    """Record that a generation is complete: last correction included, sample of the ratings."""
    store.run(
        "UPDATE generation SET planned = ?, sample = ?, ready = 1 WHERE ladder = ? AND generation = ?",
        *(planned, sample, ladder, generation),
    )


def delete_unready(store: Store, ladder: int, generation: int, *, earlier: bool) -> None:
    """Delete the row of a generation (earlier: of all before it) that has never been in use."""
    which = _selected(earlier=earlier)
    store.run(f"DELETE FROM generation WHERE ladder = ? AND ready = 0 AND generation {which}", ladder, generation)


def put_checkpoint(store: Store, ladder: int, generation: int, roster: Roster) -> None:
    """Insert or replace the checkpoint at the position of a complete roster."""
    store.upsert(
        schema.checkpoint,
        ("ladder", "generation", "position", "time", "states"),
        [(ladder, generation, roster.position, roster.time, roster.pack())],
    )


def read_last_checkpoint(store: Store, head: Head, before: int) -> tuple[int, int | None, bytes] | None:
    """(position, time, states) of the latest checkpoint before a position; None if there is none."""
    rows = store.all(
        "SELECT position, time, states FROM checkpoint WHERE ladder = ? AND generation = ? AND position < ? "
        "ORDER BY position DESC LIMIT 1",
        *(head.ladder, head.generation, before),
    )
    return (rows[0][0], rows[0][1], bytes(rows[0][2])) if rows else None


def last_checkpoint_position(store: Store, head: Head, before: int | None = None) -> int:
    """Position of the latest checkpoint, or of the latest one before a position; 0 if there is none."""
    sql = "SELECT MAX(position) FROM checkpoint WHERE ladder = ? AND generation = ?"
    bound, values = ("", ()) if before is None else (" AND position < ?", (before,))
    position: int | None = store.all(sql + bound, head.ladder, head.generation, *values)[0][0]
    return 0 if position is None else position


def read_checkpoint_positions(store: Store, head: Head) -> list[int]:
    """The positions of all checkpoints, ascending."""
    sql = "SELECT position FROM checkpoint WHERE ladder = ? AND generation = ? ORDER BY position"
    return [row[0] for row in store.all(sql, head.ladder, head.generation)]


def insert_journal_lines(store: Store, rows: Sequence[Row]) -> None:
    """Insert rows of (ladder, generation, position, lines)."""
    store.insert(schema.journal, ("ladder", "generation", "position", "lines"), rows)


def read_journal_lines(store: Store, head: Head, positions: Sequence[int]) -> dict[int, tuple[bytes, int]]:
    """The current journal lines of matches by position: (lines, generation that determines their system)."""
    sql = (
        "SELECT e.position, COALESCE(j.lines, e.told), CASE WHEN j.lines IS NULL THEN e.generation ELSE ? END "
        "FROM event e LEFT JOIN journal j ON j.ladder = e.ladder AND j.generation = ? AND j.position = e.position "
        "WHERE e.ladder = ? AND e.position IN ({})"
    )
    values = [int(position) for position in positions]
    rows = store.among(sql, (head.generation, head.generation, head.ladder), values)
    return {row[0]: (bytes(row[1]), row[2]) for row in rows if row[1] is not None}


def read_changed_lines(store: Store, head: Head, block: Block) -> dict[int, bytes]:
    """The lines of a block's matches that differ from those first recorded with the event, by position."""
    sql = "SELECT position, lines FROM journal WHERE ladder = ? AND generation = ? AND position "
    first, last = int(block.counts_at[0]), int(block.counts_at[-1])
    rows = store.all(sql + "BETWEEN ? AND ?", head.ladder, head.generation, first, last)
    inserted = block.positions[block.positions != block.counts_at]
    rows += store.among(sql + "IN ({})", (head.ladder, head.generation), inserted.tolist())
    return dict(rows)


def count_journal_lines(store: Store, head: Head) -> int:
    """The number of matches of the current generation whose lines differ from those first recorded."""
    sql = "SELECT COUNT(*) FROM journal WHERE ladder = ? AND generation = ?"
    return int(store.all(sql, head.ladder, head.generation)[0][0])


def copy_inserted_lines(store: Store, head: Head, generation: int, since: int) -> None:
    """Copy the lines of matches at or after position `since` that count before it into another generation."""
    store.run(
        "INSERT INTO journal (ladder, generation, position, lines) SELECT j.ladder, ?, j.position, j.lines "
        "FROM event e JOIN journal j ON j.ladder = e.ladder AND j.position = e.position AND j.generation = ? "
        "WHERE e.ladder = ? AND e.counts_before < ? AND e.position >= ?",
        *(generation, head.generation, head.ladder, since, since),
    )


_STANDINGS = (
    "SELECT player, rating, matches, completed, last_completed, expected_move FROM state "
    "WHERE ladder = ? AND generation = ?"
)


def read_roster(store: Store, head: Head, rules: Rules, ids: Ids | None = None) -> Roster:
    """The roster of the current generation: all players (ids None), or the players in `ids` with a state."""
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
    ladders, sample = read_ladder_records(head, rules), _read_sample(head)
    roster = Roster(players, records, tally, ladders, head.position, head.time, sample)
    if ids is not None:
        roster.others = others_reader(store, head, roster)
    return roster


def read_ladder_records(head: Head, rules: Rules) -> Records:
    """The system's records of the ladder as of the head: those of its pool and its own."""
    try:
        return unpack_ladders(rules, head.learned)
    except ValueError:
        raise _damaged(head, rules) from None


def _read_sample(head: Head) -> RatingSample:
    try:
        return RatingSample.unpack(head.sample)
    except ValueError as error:
        message = f"the sample of ratings of ladder {head.name!r} is damaged ({error})"
        raise DamageError(f"{message}; `evenmatch rebuild --whole` replaces it") from error


def _damaged(head: Head, rules: Rules) -> DamageError:
    message = f"states of ladder {head.name!r} are damaged, or not from the system {rules.system.name}"
    return DamageError(f"{message}; `evenmatch rebuild --whole` recomputes them")


def others_reader(store: Store, head: Head, roster: Roster) -> Callable[[], Floats]:
    """A function that reads the ratings of players with matches in this season who are not in a roster."""
    return partial(_read_others, store, head, roster)


def _read_others(store: Store, head: Head, roster: Roster) -> Floats:
    sql = "SELECT player, rating FROM state WHERE ladder = ? AND generation = ? AND matches > 0"
    own = set(roster.ids.tolist())
    rows = store.all(sql, head.ladder, head.generation)
    return np.array([rating for player, rating in rows if player not in own], np.float64)


def put_states(store: Store, ladder: int, generation: int, roster: Roster, *, new: bool = False) -> None:
    """Insert or replace the states of all players of a roster; `new`: none of them has a state yet."""
    if not len(roster.ids):
        return
    columns: dict[str, Values] = {"player": roster.ids, "rating": roster.records["rating"]}
    columns |= {name: roster.tally[name] for name in TALLY.names or ()}
    columns["record"] = np.ascontiguousarray(roster.records).view(f"V{roster.records.dtype.itemsize}")
    store.insert_columns(schema.state, {"ladder": ladder, "generation": generation}, columns, replacing=not new)


def read_whole_roster(store: Store, head: Head, plan: Plan) -> Roster:
    """The roster of the current generation: all players, and all that its context columns have taught."""
    roster = read_roster(store, head, plan.last_rules)
    if plan.context_columns:
        roster.contexts = read_contexts(store, head, plan.last_rules)
    return roster


def read_contexts(
    store: Store, head: Head, rules: Rules, players: Ids | None = None, wanted: Collection[Value] | None = None
) -> Contexts:
    """What the current generation has learned: about all players or these, under all values or these.

    Raises DamageError if a record does not fit the system.
    """
    own = (head.ladder, head.generation)
    of_values = "SELECT context, value, record FROM context_value WHERE ladder = ? AND generation = ?"
    of_players = "SELECT player, context, value, record FROM player_offset WHERE ladder = ? AND generation = ?"
    if wanted is None:
        values = store.all(of_values, *own)
    else:
        values = store.among(f"{of_values} AND value IN ({{}})", own, sorted({value for _, value in wanted}))
        values = [row for row in values if (row[0], row[1]) in wanted]
    if players is None:
        offsets = store.all(of_players, *own)
    else:
        offsets = store.among(f"{of_players} AND player IN ({{}})", own, players.tolist())
    if wanted is not None:
        offsets = [row for row in offsets if (row[1], row[2]) in wanted]
    try:
        return Contexts.of(values, offsets, rules)
    except ValueError as error:
        message = f"what ladder {head.name!r} has learned about context values is damaged ({error})"
        raise DamageError(f"{message}; `evenmatch rebuild --whole` recomputes it") from error


def put_contexts(store: Store, ladder: int, generation: int, contexts: Contexts) -> None:
    """Insert or replace these records."""
    names = list(contexts.rows)
    same = {"ladder": ladder, "generation": generation}
    if names:
        columns: dict[str, Values] = {
            "context": [column for column, _ in names],
            "value": [value for _, value in names],
            "record": np.ascontiguousarray(contexts.values).view(f"V{contexts.values.dtype.itemsize}"),
        }
        store.insert_columns(schema.context_value, same, columns, replacing=True)
    if len(contexts.pairs):
        player, context, value = zip(*contexts.named_pairs(), strict=True)
        record = np.ascontiguousarray(contexts.offsets).view(f"V{contexts.offsets.dtype.itemsize}")
        pairs: dict[str, Values] = {"player": list(player), "context": list(context), "value": list(value)}
        store.insert_columns(schema.player_offset, same, pairs | {"record": record}, replacing=True)


def forget_players(store: Store, ladder: int, generation: int) -> None:
    """Delete what a generation knows about players under context values."""
    store.run("DELETE FROM player_offset WHERE ladder = ? AND generation = ?", ladder, generation)


def count_states(store: Store, head: Head) -> int:
    """The number of players with a state in the current generation."""
    sql = "SELECT COUNT(*) FROM state WHERE ladder = ? AND generation = ?"
    return int(store.all(sql, head.ladder, head.generation)[0][0])


def have_states(store: Store, ladder: int, players: Sequence[int]) -> bool:
    """True if one of these players has a state in any generation."""
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


def read_results(store: Store, head: Head, players: Sequence[int]) -> list[Row]:
    """(player, matches, won, drew, last_completed) of the players with a state."""
    sql = "SELECT player, matches, won, drew, last_completed FROM state WHERE ladder = ? AND generation = ? "
    return store.among(f"{sql}AND player IN ({{}})", (head.ladder, head.generation), players)


def read_first_rated(store: Store, head: Head, players: Sequence[int], since: int, after: int) -> list[Row]:
    """(player, played_at, position) of the first rated match of each player that ended at `since` or later.

    Only matches that count after the position `after`; players without one are left out.
    """
    first = (
        "SELECT a.position FROM appearance a JOIN event e ON e.ladder = a.ladder AND e.position = a.position "
        "LEFT JOIN journal j ON j.ladder = a.ladder AND j.generation = ? AND j.position = a.position "
        "WHERE a.ladder = ? AND a.player = p.player AND a.played_at >= ? "
        "AND COALESCE(e.counts_before, e.position) > ? AND LENGTH(COALESCE(j.lines, e.told)) > 0 "
        "ORDER BY a.played_at, a.position LIMIT 1"
    )
    chosen = f"JOIN event e ON e.ladder = ? AND e.position = ({first}) WHERE p.player IN ({{}})"
    values = (head.ladder, head.generation, head.ladder, since, after)
    return store.among(f"SELECT p.player, e.played_at, e.position FROM player p {chosen}", values, players)


def read_idle(store: Store, head: Head, completed: int, upto: int, above: float) -> list[Row]:
    """(player, rating, completed, last_completed) of idle players, by player id.

    They have at least `completed` completed matches, the last not after `upto`, and a rating above `above`.
    """
    return store.all(
        "SELECT player, rating, completed, last_completed FROM state WHERE ladder = ? AND generation = ? "
        "AND completed >= ? AND last_completed <= ? AND rating > ? ORDER BY player",
        *(head.ladder, head.generation, completed, upto, above),
    )


def copy_lines_and_checkpoints(store: Store, head: Head, generation: int, first: int, last: int) -> None:
    """Copy rows of the current generation at positions from `first` to `last` into another generation."""
    chosen = "WHERE ladder = ? AND generation = ? AND position BETWEEN ? AND ?"
    values = (generation, head.ladder, head.generation, first, last)
    store.run(
        "INSERT INTO journal (ladder, generation, position, lines) "
        f"SELECT ladder, ?, position, lines FROM journal {chosen}",
        *values,
    )
    store.run(
        "INSERT INTO checkpoint (ladder, generation, position, time, states) "
        f"SELECT ladder, ?, position, time, states FROM checkpoint {chosen}",
        *values,
    )


_DELETIONS = (  # table, column that orders the rows of a generation, statement
    ("journal", "position", "DELETE FROM journal"),
    ("state", "player", "DELETE FROM state"),
    ("checkpoint", "position", "DELETE FROM checkpoint"),
    ("player_offset", "player", "DELETE FROM player_offset"),
    ("context_value", "value", "DELETE FROM context_value"),
)


def delete_some_rows(store: Store, ladder: int, generation: int, limit: int, *, earlier: bool) -> bool:
    """Delete up to `limit` lines, states or checkpoints of a generation (earlier: of all before it).

    Return False if none was left. The limit allows other transactions to write in between.
    """
    which = _selected(earlier=earlier)
    for table, key, delete in _DELETIONS:
        end: int | str | None = store.all(
            f"SELECT MAX({key}) FROM (SELECT {key} FROM {table} WHERE ladder = ? "
            f"AND generation {which} ORDER BY generation, {key} LIMIT ?) AS part",
            *(ladder, generation, limit),
        )[0][0]
        if end is not None:
            store.run(f"{delete} WHERE ladder = ? AND generation {which} AND {key} <= ?", ladder, generation, end)
            return True
    return False


def _selected(*, earlier: bool) -> str:
    """The SQL condition that follows `generation`, with one placeholder: that one, or (earlier) all before it."""
    return "< ?" if earlier else "= ?"
