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


def _table(name: str, *parts: sa.Column[Any] | sa.schema.SchemaItem, clustered: bool = False) -> sa.Table:
    """A strict table; clustered: kept in the order of its key alone, where rows are small."""
    return sa.Table(name, METADATA, *parts, sqlite_strict=True, sqlite_with_rowid=not clustered)


def _key(name: str, kind: Kind = WHOLE) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True, autoincrement=False)


def _column(name: str, kind: Kind = WHOLE, *, empty: bool = False) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=empty)


# One identity across ladders. A merged player is another one since; names lead to the one that is left.
# folded: the present name without regard to case, for searching.
player = _table(
    "player",
    sa.Column("player", WHOLE, sa.Identity(), primary_key=True),
    _column("name", TEXT),
    _column("folded", TEXT),
    _column("merged_into", empty=True),
    _column("erased_at", empty=True),
)
# Every name that a player is or was reported by.
name = _table("name", _key("name", TEXT), _column("player"), sa.Index("ix_name_player", "player"), clustered=True)

# position: of the last event; generation: the one that is read; corrected: position of the last event that is no match;
# due: a rebuild is due from this position on; settings: presentation, as JSON.
ladder = _table(
    "ladder",
    sa.Column("ladder", WHOLE, sa.Identity(), primary_key=True),
    _column("name", TEXT),
    _column("position"),
    _column("generation"),
    _column("corrected"),
    _column("due", empty=True),
    _column("settings", TEXT),
    _column("created_at"),
    _column("divided_at"),
    sa.UniqueConstraint("name", name="uq_ladder_name"),
)
# planned: the last event that is no match which its ratings account for; time: the effective time of its last match;
# engine: of the kernels it was begun with; ready: it was swapped in.
generation = _table(
    "generation",
    _key("ladder"),
    _key("generation"),
    _column("system", TEXT),
    _column("engine", TEXT),
    _column("planned"),
    _column("time", empty=True),
    _column("ready"),
    _column("made_at"),
)
# body: what a correction says, as JSON; teams, players, slots, labels: a match; told: the lines of the journal as they
# were first told, under `generation`; seal: by which `verify` sees whether a match stands as it was written.
event = _table(
    "event",
    _key("ladder"),
    _key("position"),
    _column("id", TEXT),
    _column("kind", TEXT),
    _column("digest", BYTES),
    _column("recorded_at"),
    _column("played_at", empty=True),
    _column("duration", REAL, empty=True),
    _column("rated", empty=True),
    _column("teams", BYTES, empty=True),
    _column("players", BYTES, empty=True),
    _column("slots", BYTES, empty=True),
    _column("labels", TEXT, empty=True),
    _column("body", TEXT, empty=True),
    _column("generation", empty=True),
    _column("told", BYTES, empty=True),
    _column("seal", BYTES, empty=True),
    sa.UniqueConstraint("ladder", "id", name="uq_event_id"),
)
# Corrections alone: few among many matches.
correction = _table("correction", _key("ladder"), _key("position"), clustered=True)
appearance = _table("appearance", _key("ladder"), _key("player"), _key("position"), clustered=True)

# A player's record as of their last match, and what placement and activity are judged by.
state = _table(
    "state",
    _key("ladder"),
    _key("generation"),
    _key("player"),
    _column("rating", REAL),
    _column("matches"),
    _column("completed"),
    _column("last_played"),
    _column("last_completed"),
    _column("record", BYTES),
    clustered=True,
)
# The lines of a match where this generation differs from what was first told.
journal = _table("journal", _key("ladder"), _key("generation"), _key("position"), _column("lines", BYTES))
# All states after the event at `position`, so that a replay need not begin at the first.
checkpoint = _table(
    "checkpoint",
    _key("ladder"),
    _key("generation"),
    _key("position"),
    _column("time", empty=True),
    _column("states", BYTES),
)

# The division that a player was last shown in; presentation, never replayed.
division = _table("division", _key("ladder"), _key("player"), _column("division"), clustered=True)
# Seasons, and the standings with which those before the present one ended.
season = _table(
    "season",
    _key("ladder"),
    _key("season"),
    _column("title", TEXT),
    _column("position"),
    _column("opened_at"),
    _column("closed_at", empty=True),
)
final = _table(
    "final",
    _key("ladder"),
    _key("season"),
    _key("player"),
    _column("rank", empty=True),
    _column("rating", REAL),
    _column("percentile", empty=True),
    _column("division", TEXT, empty=True),
    _column("matches"),
    _column("completed"),
    clustered=True,
)
