"""Matches, journal lines and states <-> the packed columns of the tables. Always little-endian.

A match is stored as fixed-size records, so that a million matches become a History by joining bytes, without loss of
precision. `teams`: TEAM per team; `players`: an int64 id per slot; `slots`: SLOT per slot, or empty if nothing in it
was recorded. The journal lines of a match: one record of `line_type` per slot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenmatch.history import Columns, Flags, Floats, History, Times, entries
from evenmatch.systems.loop import Replay
from evenmatch.systems.system import Records, System

TEAM = np.dtype([("size", "<u4"), ("place", "<i4"), ("score", "<f8")])
SLOT = np.dtype(
    [
        *(("score", "<f8"), ("seconds", "<f8"), ("performance", "<f8"), ("quit", "u1"), ("keep", "u1")),
        *(("has_entry", "u1"), ("", "V1"), ("entry", "<f4")),
    ]
)
ID = np.dtype("<i8")
UNSHOWN = -1  # percentile or division that was not shown to the player
Ids = NDArray[np.int64]


class PackedMatches(NamedTuple):
    """Matches in the form of the event table, one entry per match."""

    played_at: list[int]
    duration: list[float | None]
    teams: list[bytes]
    slots: list[bytes]


def without_minus_zero(values: Floats) -> Floats:
    """The same values with 0.0 for -0.0: SQLite does not store the sign of zero, so seals must not cover it."""
    return values + 0.0


def pack(history: History, played_at: Times) -> PackedMatches:
    """Pack the matches of a history without their players, see `pack_players`.

    played_at  as reported, int64 (M,); the times of the history may be later
    """
    c = history.columns
    teams = np.empty(len(c.place), TEAM)
    teams["size"], teams["place"], teams["score"] = np.diff(c.slot_start), c.place, c.team_score
    slots = np.zeros(len(c.player), SLOT)
    slots["score"], slots["seconds"], slots["performance"] = c.score, c.seconds, c.performance
    slots["quit"], slots["keep"] = c.quit, c.keep
    if len(c.entry):
        slots["has_entry"], slots["entry"] = ~np.isnan(c.entry), np.nan_to_num(c.entry)
    bare = np.isnan(c.score) & np.isnan(c.seconds) & np.isnan(c.performance) & ~c.quit & c.keep
    bare &= slots["has_entry"] == 0
    empty = np.logical_and.reduceat(bare, history.match_slots[:-1]) if len(history) else bare
    packed_slots = cut(slots.tobytes(), history.match_slots * SLOT.itemsize)
    return PackedMatches(
        played_at=played_at.tolist(),
        duration=[None if value != value else value for value in c.duration.tolist()],  # noqa: PLR0124 - NaN
        teams=cut(teams.tobytes(), c.team_start * TEAM.itemsize),
        slots=[b"" if is_empty else slot for is_empty, slot in zip(empty.tolist(), packed_slots, strict=True)],
    )


def pack_players(history: History, ids: Ids) -> list[bytes]:
    """Pack the player ids of each match; `ids` maps the history's player indices to ids."""
    return cut(ids[history.columns.player].astype(ID).tobytes(), history.match_slots * ID.itemsize)


def cut(joined: bytes, ends: NDArray[np.integer]) -> list[bytes]:
    """Split bytes at these offsets."""
    return [joined[start:stop] for start, stop in pairwise(ends.tolist())]


def unpack(
    played_at: Sequence[int],
    duration: Sequence[float | None],
    teams: Sequence[bytes],
    players: Sequence[bytes],
    slots: Sequence[bytes],
) -> tuple[Times, Columns, Ids]:
    """Unpack matches in order of position: (reported played_at, columns with effective times, player id of each slot).

    `player` of the columns is empty; the replay assigns the indices. Raises ValueError for damaged data.
    """
    reported = np.array(played_at, np.int64)
    team = np.frombuffer(b"".join(teams), TEAM)
    ids = np.frombuffer(b"".join(players), ID)
    sizes = _lengths(players) // ID.itemsize
    slot = _slots(slots, sizes)
    counts = _lengths(teams) // TEAM.itemsize
    team_start = _offsets(counts)
    whole = len(team) == counts.sum() and len(ids) == sizes.sum() and counts.all()
    if len(reported) and not (whole and np.array_equal(np.add.reduceat(team["size"], team_start[:-1]), sizes)):
        raise ValueError("the teams and players of a match do not agree")
    columns = Columns(
        time=np.maximum.accumulate(reported) if len(reported) else reported,
        team_start=team_start,
        place=np.ascontiguousarray(team["place"], np.int32),
        team_score=np.ascontiguousarray(team["score"], np.float64),
        slot_start=_offsets(team["size"]),
        player=np.empty(0, np.int32),
        score=np.ascontiguousarray(slot["score"], np.float64),
        seconds=np.ascontiguousarray(slot["seconds"], np.float64),
        performance=np.ascontiguousarray(slot["performance"], np.float64),
        quit=slot["quit"].astype(np.bool_),
        duration=np.array(duration, np.float64),  # None becomes NaN
        keep=slot["keep"].astype(np.bool_),
        entry=entries(np.where(slot["has_entry"], slot["entry"], np.nan)),
    )
    return reported, columns, ids.astype(np.int64)


def _lengths(texts: Sequence[bytes]) -> NDArray[np.int64]:
    return np.fromiter(map(len, texts), np.int64, len(texts))


def _slots(slots: Sequence[bytes], sizes: NDArray[np.int64]) -> NDArray[np.void]:
    """One SLOT per slot; default values for matches stored without them."""
    recorded = np.frombuffer(b"".join(slots), SLOT)
    if len(recorded) == sizes.sum():
        return recorded
    whole = np.zeros(int(sizes.sum()), SLOT)
    for field in ("score", "seconds", "performance"):
        whole[field] = np.nan
    whole["keep"] = 1
    whole[np.repeat(np.array([bool(packed) for packed in slots], np.bool_), sizes)] = recorded
    return whole


def _offsets(sizes: NDArray[np.integer]) -> NDArray[np.int32]:
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def digests(
    packed: PackedMatches,
    names: Sequence[str],
    slot_start: NDArray[np.integer],
    rated: Sequence[bool],
    context: Sequence[str | None],
) -> list[bytes]:
    """Content digests of matches, 16 bytes each, over everything reported, including the names as reported.

    names  of every slot;  slot_start  (M+1,) of each match
    """
    told = ["" if text is None else f"\0\0{text}" for text in context]  # no name is empty or contains NUL
    head = np.empty((len(rated), 3))
    head[:, 1] = [np.nan if value is None else value for value in packed.duration]
    head[:, 2] = rated
    head.view(np.int64)[:, 0] = packed.played_at
    heads = cut(head.tobytes(), np.arange(len(rated) + 1) * 24)
    parts = zip(heads, packed.teams, packed.slots, pairwise(slot_start.tolist()), told, strict=True)
    return [
        hashlib.blake2b(b"".join(content) + ("\0".join(names[first:last]) + text).encode(), digest_size=16).digest()
        for *content, (first, last), text in parts
    ]


def name_digest(name: str) -> int:
    """48 bits of a digest of a name. The checksum of a row of table `name` is this number plus the player's id."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=6).digest())


def division_checksums(ladder: int, players: Ids, divisions: NDArray[np.integer]) -> Ids:
    """A checksum of each row of table `division`: the row mixed by the finalizer of MurmurHash3, int64."""
    mixed = players.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + divisions.astype(np.uint64)
    mixed += np.uint64(ladder << 32)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(factor)
    return (mixed ^ (mixed >> np.uint64(33))).view(np.int64)


def line_type(system: System) -> np.dtype[np.void]:
    """Record type of a journal line: displayed rating before and after, team's expected score, factors.

    percentile, division  as shown to the player with the receipt, else UNSHOWN
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
    """The journal lines of a replay with journal, one per slot."""
    assert replay.journal is not None
    lines = np.zeros(len(history.columns.player), line_type(system))
    lines["before"], lines["after"] = replay.journal.before, replay.journal.after
    lines["expected"] = np.repeat(replay.expected, np.diff(history.columns.slot_start))
    lines["factors"] = replay.journal.factors
    lines["percentile"] = lines["division"] = UNSHOWN
    return lines


def read_lines(system: System, told: bytes) -> Records:
    """Decode the journal lines of a match."""
    return np.frombuffer(told, line_type(system))


def same_ratings(a: Records, b: Records) -> Flags:
    """Mask of lines with bit-identical ratings and factors; shown percentiles and divisions are ignored."""
    same = np.ones(len(a), np.bool_)
    for name in ("before", "after", "expected", "factors"):
        same &= same_bits(a[name], b[name])
    return same


def same_bits(a: NDArray[Any], b: NDArray[Any]) -> Flags:
    """Mask of bit-identical entries (NaN equals itself); padding between record fields is ignored."""
    names = a.dtype.names
    if names is not None:
        same = np.ones(len(a), np.bool_)
        for name in names:
            same &= same_bits(a[name], b[name])
        return same
    if not len(a):
        return np.ones(0, np.bool_)
    left, right = (np.ascontiguousarray(array).view(np.uint8).reshape(len(a), -1) for array in (a, b))
    return np.asarray((left == right).all(axis=1))
