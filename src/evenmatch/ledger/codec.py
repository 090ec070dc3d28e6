"""Matches, journal lines and states <-> the packed columns of the tables. Little-endian on every machine.

A match is written as bytes of fixed-size records, so that a million of them become a History by joining bytes, and no
number loses a bit. `teams`: TEAM per team; `players`: an int64 id per slot; `slots`: SLOT per slot, or nothing where
none of it was recorded. The lines of a match: a record of `line_type` per slot.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Columns, Flags, History, Times
from evenmatch.systems.loop import Replay
from evenmatch.systems.system import Records, System

TEAM = np.dtype([("size", "<u4"), ("place", "<i4"), ("score", "<f8")])
SLOT = np.dtype(
    [("score", "<f8"), ("seconds", "<f8"), ("performance", "<f8"), ("quit", "u1"), ("keep", "u1"), ("", "V6")]
)
ID = np.dtype("<i8")
_SEALED = struct.Struct("<qqdB")
UNSHOWN = -1  # a percentile or division that the player was not shown
Ids = NDArray[np.int64]


class Packed(NamedTuple):
    """Matches as the event table holds them, an entry per match."""

    played_at: list[int]
    duration: list[float | None]
    teams: list[bytes]
    slots: list[bytes]


def pack(history: History, played_at: Times) -> Packed:
    """The matches of a history without their players, who are told apart by id: see `pack_players`.

    played_at  as the sender told it, int64 (M,); the history's own times may be later
    """
    c = history.columns
    teams = np.empty(len(c.place), TEAM)
    teams["size"], teams["place"], teams["score"] = np.diff(c.slot_start), c.place, c.team_score
    slots = np.zeros(len(c.player), SLOT)
    slots["score"], slots["seconds"], slots["performance"] = c.score, c.seconds, c.performance
    slots["quit"], slots["keep"] = c.quit, c.keep
    bare = np.isnan(c.score) & np.isnan(c.seconds) & np.isnan(c.performance) & ~c.quit & c.keep
    empty = np.logical_and.reduceat(bare, history.match_slots[:-1]) if len(history) else bare
    rich = cut(slots.tobytes(), history.match_slots * SLOT.itemsize)
    return Packed(
        played_at=played_at.tolist(),
        duration=[None if value != value else value for value in c.duration.tolist()],  # noqa: PLR0124 - NaN
        teams=cut(teams.tobytes(), c.team_start * TEAM.itemsize),
        slots=[b"" if nothing else told for nothing, told in zip(empty.tolist(), rich, strict=True)],
    )


def pack_players(history: History, ids: Ids) -> list[bytes]:
    """The ids of each match's players; `ids` is the id of every player index of the history."""
    return cut(ids[history.columns.player].astype(ID).tobytes(), history.match_slots * ID.itemsize)


def cut(joined: bytes, ends: NDArray[np.integer]) -> list[bytes]:
    """The pieces between these offsets."""
    at = ends.tolist()
    return [joined[start:stop] for start, stop in pairwise(at)]


def unpack(
    played_at: Sequence[int],
    duration: Sequence[float | None],
    teams: Sequence[bytes],
    players: Sequence[bytes],
    slots: Sequence[bytes],
) -> tuple[Times, Columns, Ids]:
    """(played_at as told, columns with effective times, the id of each slot's player) of matches in order of position.

    `player` of the columns is empty: whoever replays numbers the players. Raises ValueError where they are damaged.
    """
    told = np.array(played_at, np.int64)
    team = np.frombuffer(b"".join(teams), TEAM)
    ids = np.frombuffer(b"".join(players), ID)
    sizes = np.array([len(one) // ID.itemsize for one in players], np.int64)
    slot = _slots(slots, sizes)
    counts = np.array([len(one) // TEAM.itemsize for one in teams], np.int64)
    team_start = _offsets(counts)
    whole = len(team) == counts.sum() and len(ids) == sizes.sum() and counts.all()
    if len(told) and not (whole and np.array_equal(np.add.reduceat(team["size"], team_start[:-1]), sizes)):
        raise ValueError("teams and players of a match do not fit together")
    columns = Columns(
        time=np.maximum.accumulate(told) if len(told) else told,
        team_start=team_start,
        place=np.ascontiguousarray(team["place"], np.int32),
        team_score=np.ascontiguousarray(team["score"], np.float64),
        slot_start=_offsets(team["size"]),
        player=np.empty(0, np.int32),
        score=np.ascontiguousarray(slot["score"], np.float64),
        seconds=np.ascontiguousarray(slot["seconds"], np.float64),
        performance=np.ascontiguousarray(slot["performance"], np.float64),
        quit=slot["quit"].astype(np.bool_),
        duration=np.array([np.nan if value is None else value for value in duration], np.float64),
        keep=slot["keep"].astype(np.bool_),
    )
    return told, columns, ids.astype(np.int64)


def _slots(slots: Sequence[bytes], sizes: NDArray[np.int64]) -> NDArray[np.void]:
    """SLOT per slot, with nothing recorded for the matches that have none."""
    told = np.frombuffer(b"".join(slots), SLOT)
    if len(told) == sizes.sum():
        return told
    whole = np.zeros(int(sizes.sum()), SLOT)
    for field in ("score", "seconds", "performance"):
        whole[field] = np.nan
    whole["keep"] = 1
    whole[np.repeat(np.array([bool(one) for one in slots], np.bool_), sizes)] = told
    return whole


def _offsets(sizes: NDArray[np.integer]) -> NDArray[np.int32]:
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def digests(
    packed: Packed, names: Sequence[str], slot_start: NDArray[np.integer], rated: Sequence[bool]
) -> list[bytes]:
    """What tells each match's content from another's, 16 bytes each: all that was sent, under the names that were sent.

    names  of every slot;  slot_start  (M+1,) of each match
    """
    found = []
    at = slot_start.tolist()
    head = np.empty((len(rated), 3))
    head[:, 1] = [np.nan if value is None else value for value in packed.duration]
    head[:, 2] = rated
    head.view(np.int64)[:, 0] = packed.played_at
    heads = cut(head.tobytes(), np.arange(len(rated) + 1) * 24)
    for number, (first, teams, slots) in enumerate(zip(heads, packed.teams, packed.slots, strict=True)):
        listed = "\0".join(names[at[number] : at[number + 1]])
        found.append(hashlib.blake2b(b"".join((first, teams, slots, listed.encode())), digest_size=16).digest())
    return found


def seal_of(
    position: int,
    event_id: str,
    played_at: int,
    duration: float | None,
    rated: int,
    teams: bytes,
    players: bytes,
    slots: bytes,
    digest: bytes,
) -> bytes:
    """What tells whether a match stands as it was written, 16 bytes. Names and labels, which may be erased, are out."""
    head = _SEALED.pack(position, played_at, math.nan if duration is None else duration, rated)
    whole = b"\0".join((head, event_id.encode(), teams, players, slots, digest))
    return hashlib.blake2b(whole, digest_size=16).digest()


def line_type(system: System) -> np.dtype[np.void]:
    """One player's line of the journal: shown rating before and after, the team's expected score, the factors.

    percentile, division  as the player was shown them with the receipt, UNSHOWN where not
    """
    return np.dtype(
        [
            ("before", "<f8"),
            ("after", "<f8"),
            ("expected", "<f8"),
            ("percentile", "<i2"),
            ("division", "<i2"),
            ("", "V4"),
            ("factors", system.factor_type),
        ]
    )


def lines_of(system: System, history: History, replay: Replay) -> Records:
    """The lines of a replay that kept its journal, one per slot."""
    assert replay.journal is not None
    lines = np.zeros(len(history.columns.player), line_type(system))
    lines["before"], lines["after"] = replay.journal.before, replay.journal.after
    lines["expected"] = np.repeat(replay.expected, np.diff(history.columns.slot_start))
    lines["factors"] = replay.journal.factors
    lines["percentile"] = lines["division"] = UNSHOWN
    return lines


def read_lines(system: System, told: bytes) -> Records:
    """The lines of a match as they were written."""
    return np.frombuffer(told, line_type(system))


def same_ratings(a: Records, b: Records) -> Flags:
    """Which lines of the same system say the same, bit for bit, but for what was shown beside them."""
    same = np.ones(len(a), np.bool_)
    for name in ("before", "after", "expected", "factors"):
        same &= same_bits(a[name], b[name])
    return same


def same_bits(a: NDArray[Any], b: NDArray[Any]) -> Flags:
    """Which entries are equal bit for bit, as NaN is to itself; what lies between the fields of records is nothing."""
    names = a.dtype.names
    if names is not None:
        same = np.ones(len(a), np.bool_)
        for name in names:
            same &= same_bits(a[name], b[name])
        return same
    if not len(a):
        return np.ones(0, np.bool_)
    left, right = (np.ascontiguousarray(one).view(np.uint8).reshape(len(a), -1) for one in (a, b))
    return np.asarray((left == right).all(axis=1))
