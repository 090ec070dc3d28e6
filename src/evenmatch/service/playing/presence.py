"""Who was in a running match when, and the finished match that follows from it. Times are microseconds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from evenmatch.errors import ConflictError, InputError, UnknownNameError
from evenmatch.match import Appearance, Match, Team
from evenmatch.service.appending import AHEAD
from evenmatch.service.playing.live import Live, Slot
from evenmatch.service.times import iso_time

SKEW = 300_000_000  # how far the clock of a game server may be behind ours, where both tell of one player

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Presence(NamedTuple):
    """A player left a running match, or came.

    at    when; None: now
    back  True: they came, again or for the first time
    team  of who comes for the first time, counted from 0
    """

    player: str
    at: int | None = None
    back: bool = False
    team: int | None = None


class TeamEnd(NamedTuple):
    """How a team finished: see match.Team."""

    place: int | None = None
    score: float | None = None


class PlayerEnd(NamedTuple):
    """What is recorded of a player at the end: see match.Appearance."""

    score: float | None = None
    performance: float | None = None
    keep: bool = True


@dataclass(frozen=True)
class Ending:
    """How a match ended.

    teams     in the order in which they were announced
    players   by name; nothing is recorded of those who are left out
    ended_at  None: now
    duration  seconds; None: from the start to the end
    """

    teams: Sequence[TeamEnd]
    players: Mapping[str, PlayerEnd] = field(default_factory=dict)
    ended_at: int | None = None
    duration: float | None = None
    rated: bool = True

    def told(self) -> str:
        """What tells one ending from another."""
        players = sorted((name, *end) for name, end in self.players.items())
        return json.dumps([list(self.teams), players, self.ended_at, self.duration, self.rated], ensure_ascii=False)


def note(match: Live, slot: Slot, told: Presence, now: int) -> bool:
    """Write into a slot that its player came or left; False: it says so already.

    Raises ConflictError where they are there already, or gone, since another time; InputError for a time out of order.
    """
    spells = slot["spells"]
    came, left = spells[-1]
    assert came is not None
    since, is_there = (came, True) if left is None else (left, False)
    at = now if told.at is None else told.at
    if told.back == is_there if told.at is None else _is_noted(slot, told.back, at):
        return False
    name, match_id = slot["player"], match.match_id
    if told.back == is_there:
        state = "there" if is_there else "gone"
        raise ConflictError(f"{name!r} is {state} in match {match_id!r} since {iso_time(since)}, not {iso_time(at)}")
    at = _moment(told, f"{'came' if is_there else 'left'}", since, now)
    if told.back:
        spells.append([at, None])
    else:
        spells[-1][1] = at
    return True


def enter(match: Live, told: Presence, player: int, now: int) -> Slot:
    """The slot of a player who comes for the first time. Raises InputError where they may not."""
    teams, team = match.body["teams"], told.team
    if team is None or not 0 <= team < len(teams):
        raise InputError(f"match {match.match_id!r} has no team {team}; accepted are 0 to {len(teams) - 1}")
    at = _moment(told._replace(at=now if told.at is None else told.at), "could have come", match.started_at, now)
    slot: Slot = {"player": told.player, "id": player, "spells": [[at, None]]}
    teams[team].append(slot)
    return slot


def _moment(told: Presence, before: str, since: int, now: int) -> int:
    """When it was, after what was before. Raises InputError for a time that is out of order or to come."""
    at = now if told.at is None else told.at
    if at > now + AHEAD:
        limit = iso_time(now + AHEAD)
        raise InputError(f"{told.player!r}: {iso_time(at)} is to come; accepted is at most a day from now, {limit}")
    if at < since - SKEW:
        raise InputError(f"{told.player!r} {before} at {iso_time(since)}; accepted is a time since, not {iso_time(at)}")
    return max(at, since)


def _is_noted(slot: Slot, back: bool, at: int) -> bool:
    """Whether a coming or a leaving at this time is among the spells, where it may stand for a while later."""
    before: int | None = None
    for came, left in slot["spells"]:
        moment, earliest = (came, before) if back else (left, came)
        before = left
        if moment is not None and (at == moment or (earliest == moment and moment - SKEW <= at < moment)):
            return True
    return False


def has_quit(slot: Slot, ended_at: int) -> bool:
    """Whether a player who had come was gone when the match ended."""
    begun = [left for came, left in slot["spells"] if came is not None and came <= ended_at]
    return bool(begun) and not any(left is None or left >= ended_at for left in begun)


def seconds_of(slot: Slot, start: int, end: int) -> float:
    """How long a player was in a match between two times."""
    held = 0
    for came, left in slot["spells"]:
        assert came is not None
        held += max(0, min(end, end if left is None else left) - max(start, came))
    return held / 1e6


def match_of(match: Live, ladder: str, names: Mapping[int, str], ending: Ending, ended_at: int) -> Match:
    """The finished match; `names`: present names by id. Raises InputError where the ending does not fit it."""
    sides = match.body["teams"]
    if len(ending.teams) != len(sides):
        raise InputError(f"match {match.match_id!r} has {len(sides)} teams and {len(ending.teams)} results")
    if ended_at < match.started_at:
        began = iso_time(match.started_at)
        raise InputError(
            f"match {match.match_id!r} began at {began}; accepted is an end since, not {iso_time(ended_at)}"
        )
    known = {slot["player"] for slot in match.slots()} | {names[slot["id"]] for slot in match.slots()}
    stranger = next((name for name in ending.players if name not in known), None)
    if stranger is not None:
        raise UnknownNameError(f"player of match {match.match_id!r}", stranger, sorted(known))
    teams = []
    for side, end in zip(sides, ending.teams, strict=True):
        players = []
        for slot in side:
            name = names[slot["id"]]
            own = ending.players.get(slot["player"], ending.players.get(name, PlayerEnd()))
            seconds, gone = seconds_of(slot, match.started_at, ended_at), has_quit(slot, ended_at)
            players.append(Appearance(name, own.score, seconds, gone, own.performance, own.keep))
        teams.append(Team(tuple(players), end.place, end.score))
    duration = (ended_at - match.started_at) / 1e6 if ending.duration is None else ending.duration
    played_at = _EPOCH + timedelta(microseconds=ended_at)
    return Match(match.match_id, played_at, tuple(teams), ladder, duration)


def quitters(match: Live, ended_at: int) -> set[int]:
    """The ids of those who were gone when it ended."""
    return {slot["id"] for slot in match.slots() if has_quit(slot, ended_at)}
