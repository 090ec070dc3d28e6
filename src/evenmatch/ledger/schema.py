"""The tables, the same on SQLite and on PostgreSQL. What belongs to a ladder has the ladder first in its key.

Two kinds of rows: *events* are added and never changed; everything else follows from them and can be made again by a
replay. What follows carries a generation, so that a new one can be written beside the one that is read.
Times are microseconds since the Unix epoch, UTC; packed columns are described in codec.py.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

# SQLite's STRICT tables know five type names; PostgreSQL sorts text as SQLite does only under the collation "C".
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


def table(name: str, *parts: sa.Column[Any] | sa.schema.SchemaItem, clustered: bool = False) -> sa.Table:
    """A strict table; clustered: kept in the order of its key alone, where rows are small."""
    return sa.Table(name, METADATA, *parts, sqlite_strict=True, sqlite_with_rowid=not clustered)


def key(name: str, kind: Kind = WHOLE) -> sa.Column[Any]:
    """A column of the primary key."""
    return sa.Column(name, kind, primary_key=True, autoincrement=False)


def column(name: str, kind: Kind = WHOLE, *, empty: bool = False) -> sa.Column[Any]:
    """Any other column; `empty`: it may hold NULL."""
    return sa.Column(name, kind, nullable=empty)


MERGED = "merged_into IS NOT NULL"  # few among all players

# One identity across ladders. A merged player is another one since; names lead to the one that is left.
# folded: the present name without regard to case, for searching.
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
# Every name that a player is or was reported by.
name = table("name", key("name", TEXT), column("player"), sa.Index("ix_name_player", "player"), clustered=True)

# position: of the last event; generation: the one that is read; corrected: position of the last event that is no match;
# due: a rebuild is due from this position on; settings: presentation, as JSON.
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
    sa.UniqueConstraint("name", name="uq_ladder_name"),
)
# planned: the last event that is no match which its ratings account for; time: the effective time of its last match;
# engine: of the kernels it was begun with; ready: it was swapped in.
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
)
# body: what a correction says, as JSON; teams, players, slots, labels: a match; told: the lines of the journal as they
# were first told, under `generation`; seal: by which `verify` sees whether a match stands as it was written.
event = table(
    "event",
    key("ladder"),
    key("position"),
    column("id", TEXT),
    column("kind", TEXT),
    column("digest", BYTES),
    column("recorded_at"),
    column("played_at", empty=True),
    column("duration", REAL, empty=True),
    column("rated", empty=True),
    column("teams", BYTES, empty=True),
    column("players", BYTES, empty=True),
    column("slots", BYTES, empty=True),
    column("labels", TEXT, empty=True),
    column("body", TEXT, empty=True),
    column("generation", empty=True),
    column("told", BYTES, empty=True),
    column("seal", BYTES, empty=True),
    sa.UniqueConstraint("ladder", "id", name="uq_event_id"),
)
# Corrections alone: few among many matches.
correction = table("correction", key("ladder"), key("position"), clustered=True)
appearance = table("appearance", key("ladder"), key("player"), key("position"), clustered=True)

# A player's record as of their last match, and what placement and activity are judged by.
state = table(
    "state",
    key("ladder"),
    key("generation"),
    key("player"),
    column("rating", REAL),
    column("matches"),
    column("completed"),
    column("last_played"),
    column("last_completed"),
    column("record", BYTES),
    clustered=True,
)
# The lines of a match where this generation differs from what was first told.
journal = table("journal", key("ladder"), key("generation"), key("position"), column("lines", BYTES))
# All states after the event at `position`, so that a replay need not begin at the first.
checkpoint = table(
    "checkpoint",
    key("ladder"),
    key("generation"),
    key("position"),
    column("time", empty=True),
    column("states", BYTES),
)

# The division that a player was last shown in; presentation, never replayed.
division = table("division", key("ladder"), key("player"), column("division"), clustered=True)
# Seasons, and the standings with which those before the present one ended.
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
