"""Seals that cover the seal of the event before, also the last one beside a ladder's position; checksums of divisions.

An event that its former seal shows to be damaged keeps that seal, so that `verify` goes on to name it.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

BATCH = 20_000  # events read at a time
MATCH = "match-recorded"
FIRST = bytes(16)
# As in codec.py and seals.py when this was written; a migration stands by itself, so that it does the same for ever.
FORMER = struct.Struct("<qqdB")
MATCH_HEAD = struct.Struct("<c16sqqqdBIIII")
CORRECTION_HEAD = struct.Struct("<c16sqqIIII")
FIELDS = "position, id, kind, recorded_at, played_at, duration, rated, teams, players, slots, digest, seal, body"


def upgrade() -> None:
    """Add the columns and compute every seal and checksum."""
    op.add_column("ladder", sa.Column("seal", sa.LargeBinary(), nullable=True))
    op.add_column("division", sa.Column("checksum", sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")))
    connection = op.get_bind()
    for ladder in connection.execute(sa.text("SELECT ladder FROM ladder ORDER BY ladder")).scalars().all():
        _chain(connection, ladder)
        _check_divisions(connection, ladder)


def _chain(connection: sa.Connection, ladder: int) -> None:
    """Write the seals of a ladder's events and of its last one."""
    sql = f"SELECT {FIELDS} FROM event WHERE ladder = :ladder AND position > :after ORDER BY position LIMIT :most"
    after, previous = 0, FIRST
    while True:
        rows = connection.execute(sa.text(sql), {"ladder": ladder, "after": after, "most": BATCH}).all()
        if not rows:
            break
        after = rows[-1][0]
        written: list[tuple[int, bytes]] = []
        for row in rows:
            position, stored = int(row[0]), None if row[11] is None else bytes(row[11])
            try:
                is_whole = stored == _former(row)
                seal = _seal(previous, row) if is_whole else stored
            except (TypeError, ValueError, AttributeError, struct.error):  # torn
                seal = stored
            if seal is not None and seal != stored:
                written.append((position, seal))
            previous = FIRST if seal is None or len(seal) != len(FIRST) else seal
        _write(connection, ladder, written)
    if after:
        connection.execute(
            sa.text("UPDATE ladder SET seal = :seal WHERE ladder = :ladder"), {"seal": previous, "ladder": ladder}
        )


def _write(connection: sa.Connection, ladder: int, seals: Sequence[tuple[int, bytes]]) -> None:
    if not seals:
        return
    if connection.dialect.name == "postgresql":
        sql = (
            "UPDATE event SET seal = new.seal FROM unnest(CAST(:positions AS bigint[]), CAST(:seals AS bytea[])) "
            "AS new (position, seal) WHERE event.ladder = :ladder AND event.position = new.position"
        )
        positions, values = zip(*seals, strict=True)
        connection.execute(sa.text(sql), {"positions": list(positions), "seals": list(values), "ladder": ladder})
        return
    connection.execute(
        sa.text("UPDATE event SET seal = :seal WHERE ladder = :ladder AND position = :position"),
        [{"seal": seal, "ladder": ladder, "position": position} for position, seal in seals],
    )


def _check_divisions(connection: sa.Connection, ladder: int) -> None:
    rows = connection.execute(sa.text("SELECT player, division FROM division WHERE ladder = :l"), {"l": ladder}).all()
    if not rows:
        return
    players, divisions = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    mixed = players.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + divisions.astype(np.uint64)
    mixed += np.uint64(ladder << 32)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(factor)
    checksums = (mixed ^ (mixed >> np.uint64(33))).view(np.int64).tolist()
    connection.execute(
        sa.text("UPDATE division SET checksum = :checksum WHERE ladder = :ladder AND player = :player"),
        [
            {"checksum": checksum, "ladder": ladder, "player": player}
            for checksum, player in zip(checksums, players.tolist(), strict=True)
        ],
    )


def _former(row: Sequence[Any]) -> bytes:
    """The seal by which an event was sealed before."""
    position, event_id, kind, _, played_at, duration, rated, teams, players, slots, digest, _, body = row
    if kind == MATCH:
        head = FORMER.pack(position, played_at, math.nan if duration is None else duration, rated)
        whole = b"\0".join((head, event_id.encode(), bytes(teams), bytes(players), bytes(slots), bytes(digest)))
    else:
        parts = [b"" if part is None else bytes(part) for part in (players, slots)]
        whole = f"{position}\0{event_id}\0{kind}\0{body}".encode() + b"".join(parts)
    return hashlib.blake2b(whole, digest_size=16).digest()


def _seal(previous: bytes, row: Sequence[Any]) -> bytes:
    position, event_id, kind, recorded_at, played_at, duration, rated, teams, players, slots, digest, _, body = row
    name = event_id.encode()
    if kind == MATCH:
        length = math.nan if duration is None else duration
        sizes = (len(name), len(teams), len(players), len(slots))
        head = MATCH_HEAD.pack(b"m", previous, position, recorded_at, played_at, length, rated, *sizes)
        whole = b"".join((head, name, bytes(teams), bytes(players), bytes(slots), bytes(digest)))
        return hashlib.blake2b(whole, digest_size=16).digest()
    content = json.loads(body)
    content.pop("reason", None)
    kept = json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    texts = (name, kind.encode(), kept.encode())
    parts = [b"" if part is None else bytes(part) for part in (players, slots)]
    head = CORRECTION_HEAD.pack(b"c", previous, position, recorded_at, *map(len, texts), len(parts[0]) // 8)
    return hashlib.blake2b(b"".join((head, *texts, *parts)), digest_size=16).digest()
