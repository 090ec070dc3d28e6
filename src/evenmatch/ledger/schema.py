"""The tables of the ledger, identical on SQLite and PostgreSQL. Keys of ladder data begin with the ladder.

*Events* are added and never changed. All other data is derived from them and can be rebuilt by a replay. Derived rows
have a generation, so that a new one can be written while the current one is read.
Times are microseconds since the Unix epoch, UTC; packed columns are described in codec.py.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

# SQLite's STRICT tables allow five type names; PostgreSQL sorts text like SQLite only with the collation "C".
Kind = sa.types.TypeEngine[Any]
WHOLE: Kind = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
REAL: Kind = sa.Double().with_variant(sqlite.REAL(), "sqlite")
TEXT: Kind = sa.Text(collation="C").with_variant(sqlite.TEXT(), "sqlite")
BYTES: Kind = sa.LargeBinary()

METADATA = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)


def table(
    name: str, *parts: sa.Column[Any] | sa.schema.SchemaItem, clustered: bool = False, parted: bool = False
) -> sa.Table:
    """Define a strict table.

    clustered  SQLite stores it in key order without a rowid, for small rows
    parted     PostgreSQL divides it into partitions by ladder
    """
    by = "HASH (ladder)" if parted else None
    return sa.Table(
        name, METADATA, *parts, sqlite_strict=True, sqlite_with_rowid=not clustered, postgresql_partition_by=by
    )


def key(name: str, kind: Kind = WHOLE) -> sa.Column[Any]:
    """Define a column of the primary key."""
    return sa.Column(name, kind, primary_key=True, autoincrement=False)


def column(name: str, kind: Kind = WHOLE, *, empty: bool = False) -> sa.Column[Any]:
    """Define any other column; `empty`: NULL is allowed."""
    return sa.Column(name, kind, nullable=empty)


MERGED = "merged_into IS NOT NULL"  # few compared with all players
ODD = "oddities IS NOT NULL"
MATCH = sa.text("played_at IS NOT NULL")
INSERTED = sa.text("counts_before IS NOT NULL")  # few compared with all events

# One identity across ladders. merged_into: the player this one was merged into; its names refer to that player.
# folded: the current name without case and diacritics, for searching; see text.fold.
player = table(
    "player",
    sa.Column("player", WHOLE, sa.Identity(), primary_key=True),
    column("name", TEXT),
    column("folded", TEXT),
    column("merged_into", empty=True),
    column("erased_at", empty=True),
    sa.Index("ix_player_folded", "folded"),
    sa.Index("ix_player_merged_into", "merged_into", postgresql_where=sa.text(MERGED), sqlite_where=sa.text(MERGED)),
)
# Every present and former name of a player. checksum: see codec.name_digest.
name = table(
    "name",
    key("name", TEXT),
    column("player"),
    column("checksum", empty=True),
    sa.Index("ix_name_player", "player"),
    clustered=True,
)
# How every name looks, see player_rows and name_skeletons; oddities: NULL for nearly all.
name_check = table(
    "name_check",
    key("name", TEXT),
    column("skeleton", TEXT),
    column("oddities", TEXT, empty=True),
    sa.Index("ix_name_check_skeleton", "skeleton"),
    sa.Index("ix_name_check_odd", "name", postgresql_where=sa.text(ODD), sqlite_where=sa.text(ODD)),
    clustered=True,
)

# position: of the last event; generation: the current one; corrected: position of the last correction;
# due: a rebuild is needed from this position; settings: presentation, as JSON; seal: of the last event.
ladder = table(
    "ladder",
    sa.Column("ladder", WHOLE, sa.Identity(), primary_key=True),
    column("name", TEXT),
    column("position"),
    column("generation"),
    column("corrected"),
    column("due", empty=True),
    column("settings", TEXT),
    column("created_at"),
    column("divided_at"),
    column("seal", BYTES, empty=True),
    sa.UniqueConstraint("name", name="uq_ladder_name"),
)
# planned: the last correction included in its ratings; time: the effective time of its last match;
# engine: fingerprint of the kernels that started it; ready: whether it has been in use; sample: some ratings of the
# season's players, see standings.placement; learned: what the system has learned about the ladder, packed.
generation = table(
    "generation",
    key("ladder"),
    key("generation"),
    column("system", TEXT),
    column("engine", TEXT),
    column("planned"),
    column("time", empty=True),
    column("ready"),
    column("made_at"),
    column("sample", BYTES, empty=True),
    column("learned", BYTES, empty=True),
)
# body: the content of a correction, as JSON; teams, players, slots, context, labels: a match; told: the journal lines
# first returned for it, of `generation`; seal: checksum of the event and the seal before it, see seals.py.
# counted_at: when a match that was reported late counts as having ended; NULL: at played_at.
# counts_before: the position before which an inserted match counts; NULL: the match counts at its own position.
event = table(
    "event",
    key("ladder"),
    key("position"),
    column("id", TEXT),
    column("kind", TEXT),
    column("digest", BYTES),
    column("recorded_at"),
    column("played_at", empty=True),
    column("counted_at", empty=True),
    column("counts_before", empty=True),
    column("duration", REAL, empty=True),
    column("rated", empty=True),
    column("teams", BYTES, empty=True),
    column("players", BYTES, empty=True),
    column("slots", BYTES, empty=True),
    column("context", TEXT, empty=True),
    column("labels", TEXT, empty=True),
    column("body", TEXT, empty=True),
    column("generation", empty=True),
    column("told", BYTES, empty=True),
    column("seal", BYTES, empty=True),
    sa.UniqueConstraint("ladder", "id", name="uq_event_id"),
    sa.Index("ix_event_played_at", "ladder", "played_at", "position", postgresql_where=MATCH, sqlite_where=MATCH),
    sa.Index("ix_event_counts_before", "ladder", "counts_before", postgresql_where=INSERTED, sqlite_where=INSERTED),
    parted=True,
)
# The positions of corrections, few compared with matches.
correction = table("correction", key("ladder"), key("position"), clustered=True)
# Ordered by when a player played, so that a page of their latest matches is read from the end of the key.
appearance = table(
    "appearance", key("ladder"), key("player"), key("played_at"), key("position"), clustered=True, parted=True
)

# A player's record as of the last match, with the counts, times and moves for placement and activity.
state = table(
    "state",
    key("ladder"),
    key("generation"),
    key("player"),
    column("rating", REAL),
    column("matches"),
    column("won"),
    column("drew"),
    column("completed"),
    column("last_played"),
    column("last_completed"),
    column("record", BYTES),
    column("recent_change", REAL),
    column("expected_move", REAL),
    clustered=True,
    parted=True,
)
# What is known about a value of a context column of the ladder, and about a player under it.
context_value = table(
    "context_value",
    key("ladder"),
    key("generation"),
    key("context", TEXT),
    key("value", TEXT),
    column("record", BYTES),
    clustered=True,
)
player_offset = table(
    "player_offset",
    key("ladder"),
    key("generation"),
    key("player"),
    key("context", TEXT),
    key("value", TEXT),
    column("record", BYTES),
    clustered=True,
    parted=True,
)
# The journal lines of a match, only if this generation differs from `told` of the event.
journal = table("journal", key("ladder"), key("generation"), key("position"), column("lines", BYTES), parted=True)
# All states after the event at `position`, so that a replay need not start at the first event.
checkpoint = table(
    "checkpoint",
    key("ladder"),
    key("generation"),
    key("position"),
    column("time", empty=True),
    column("states", BYTES),
    parted=True,
)

# The division last shown to a player; presentation, never replayed. checksum: see codec.division_checksums.
division = table(
    "division", key("ladder"), key("player"), column("division"), column("checksum", empty=True), clustered=True
)
# Seasons, and the final standings of the seasons before the current one.
season = table(
    "season",
    key("ladder"),
    key("season"),
    column("title", TEXT),
    column("position"),
    column("opened_at"),
    column("closed_at", empty=True),
)
final = table(
    "final",
    key("ladder"),
    key("season"),
    key("player"),
    column("rank", empty=True),
    column("rating", REAL),
    column("percentile", empty=True),
    column("division", TEXT, empty=True),
    column("matches"),
    column("completed"),
    clustered=True,
)
