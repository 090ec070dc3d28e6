"""Attendance spans of players in a live match, and the finished match built from them. Times are microseconds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from evenmatch.durations import SECOND
from evenmatch.errors import ConflictError, InputError, UnknownNameError
from evenmatch.live.live_sql import LiveMatchRow, MatchSlot
from evenmatch.match import Appearance, Match, Team
from evenmatch.match_context import MOST, Context
from evenmatch.recording.ledger_append import AHEAD
from evenmatch.times import EPOCH, iso_time

SKEW = 300 * SECOND  # how far a game server's clock may be behind ours

SPANS_LIMIT = 100  # attendance spans, or changes of sides, of a player in a match


class Presence(NamedTuple):
    """A player left or joined a live match.

    at    when; None: now
    back  True: joined, for the first time or again; False: left
    team  the team, counted from 0, of a player who joins for the first time or changes sides
    """

    player: str
    at: int | None = None
    back: bool = False
    team: int | None = None


class TeamEnd(NamedTuple):
    """The result of a team: see match.Team."""

    place: int | None = None
    score: float | None = None


class PlayerEnd(NamedTuple):
    """The result of a player: see match.Appearance."""

    score: float | None = None
    performance: float | None = None
    keep: bool = True
    entry: float | None = None


@dataclass(frozen=True)
class Ending:
    """The result of a match.

    teams     in the announced order
    players   by name; players who are left out have no individual result
    ended_at  None: now
    duration  seconds; None: from the start to the end
    context   see match.Match; the map that a queue chose is added, unless it has one
    """

    teams: Sequence[TeamEnd]
    players: Mapping[str, PlayerEnd] = field(default_factory=dict)
    ended_at: int | None = None
    duration: float | None = None
    rated: bool = True
    context: Context = field(default_factory=dict)

    def fingerprint(self) -> str:
        """A text that identifies this ending, to recognize retries."""
        players = sorted((name, *end) for name, end in self.players.items())
        told = [list(self.teams), players, self.ended_at, self.duration, self.rated]
        return json.dumps([*told, self.context] if self.context else told, ensure_ascii=False)


def note(match: LiveMatchRow, slot: MatchSlot, presence: Presence, now: int) -> bool:
    """Record in a slot that its player joined or left. False if that was already recorded.

    Raises ConflictError if the player has been present, or absent, since another time or has joined too often, and
    InputError for a wrong time.
    """
    spells = slot["spells"]
    came, left = spells[-1]
    assert came is not None
    since, is_there = (came, True) if left is None else (left, False)
    time = now if presence.at is None else presence.at
    if presence.back == is_there if presence.at is None else _is_noted(slot, presence.back, time):
        return False
    name, match_id = slot["player"], match.match_id
    if presence.back == is_there:
        state = "has been in" if is_there else "has been absent from"
        raise ConflictError(f"{name!r} {state} match {match_id!r} since {iso_time(since)}, not {iso_time(time)}")
    time = _checked_time(presence, "joined" if is_there else "left", since, now)
    if presence.back:
        _check_number(len(spells), f"{name!r} has joined match {match_id!r}")
        spells.append([time, None])
    else:
        spells[-1][1] = time
    return True


def change_side(match: LiveMatchRow, slot: MatchSlot, presence: Presence, now: int) -> bool:
    """Move the slot of a present player to another team. False if that was already recorded.

    Raises InputError for a wrong team or time, ConflictError for too many changes.
    """
    teams, team = match.body["teams"], presence.team
    assert team is not None
    old = next(index for index, side in enumerate(teams) if slot in side)
    came = slot["spells"][0][0]
    assert came is not None
    sides = slot.get("sides", [[came, old]])
    if team == old or [presence.at, team] in sides:
        return False
    if not 0 <= team < len(teams):
        raise InputError(f"match {match.match_id!r} has no team {team}; its teams are 0 to {len(teams) - 1}")
    dated = presence._replace(at=now if presence.at is None else presence.at)
    time = _checked_time(dated, "joined their current team", sides[-1][0], now)
    _check_number(len(sides), f"{presence.player!r} has been put on a team in match {match.match_id!r}")
    slot["sides"] = [*sides, [time, team]]
    teams[old].remove(slot)
    teams[team].append(slot)
    return True


def _check_number(number: int, done: str) -> None:
    """Raise ConflictError at the limit of attendance spans or sides. done: what the player did, for the message."""
    if number >= SPANS_LIMIT:
        raise ConflictError(f"{done} {number} times, which is the limit; nothing was changed")


def counted_team(slot: MatchSlot, present: int, rule: str, ended_at: int) -> int:
    """The team that counts for a player. present: the team at the end; rule: see Settings.side_counts."""
    sides = slot.get("sides")
    if sides is None or rule == "last":
        return present
    if rule == "first":
        return sides[0][1]
    played: dict[int, int] = {}
    for (since, team), until in zip(sides, [*(time for time, _ in sides[1:]), ended_at], strict=True):
        played[team] = played.get(team, 0) + max(0, min(until, ended_at) - since)
    return max(played, key=lambda team: (played[team], -team))


def late_switchers(match: LiveMatchRow, finished: Match, window: float, ended_at: int) -> set[int]:
    """The ids of players who changed to the winning side in the last `window` seconds."""
    if len(set(finished.places)) == 1:
        return set()
    best = [team for team, place in enumerate(finished.places) if place == min(finished.places)]
    switched = [(slot["id"], *slot["sides"][-1]) for slot in match.slots() if "sides" in slot]
    return {player for player, time, team in switched if team in best and ended_at - time <= window * 1e6}


def enter(match: LiveMatchRow, presence: Presence, player: int, now: int) -> MatchSlot:
    """Add a slot for a player who joins for the first time. Raises InputError for a wrong team or time."""
    teams, team = match.body["teams"], presence.team
    if team is None or not 0 <= team < len(teams):
        raise InputError(f"match {match.match_id!r} has no team {team}; its teams are 0 to {len(teams) - 1}")
    dated = presence._replace(at=now if presence.at is None else presence.at)
    time = _checked_time(dated, "could not join before the match began", match.started_at, now)
    slot: MatchSlot = {"player": presence.player, "id": player, "spells": [[time, None]]}
    teams[team].append(slot)
    return slot


def _checked_time(presence: Presence, before: str, since: int, now: int) -> int:
    """The time of a presence, moved to `since` if it is slightly earlier.

    before  what happened at `since`, for the message
    Raises InputError for a time that is too early or too far in the future.
    """
    name, time = presence.player, now if presence.at is None else presence.at
    if time > now + AHEAD:
        raise InputError(
            f"{name!r}: {iso_time(time)} is too far in the future; expected a time before {iso_time(now + AHEAD)}"
        )
    if time < since - SKEW:
        raise InputError(f"{name!r} {before} at {iso_time(since)}; expected a later time, got {iso_time(time)}")
    return max(time, since)


def _is_noted(slot: MatchSlot, back: bool, time: int) -> bool:
    """True if joining or leaving at this time is already recorded, possibly at a slightly later time (SKEW)."""
    before: int | None = None
    for came, left in slot["spells"]:
        noted, earliest = (came, before) if back else (left, came)
        before = left
        if noted is not None and (time == noted or (earliest == noted and noted - SKEW <= time < noted)):
            return True
    return False


def has_quit(slot: MatchSlot, ended_at: int) -> bool:
    """True if a player joined before the end of the match and was absent at the end."""
    begun = [left for came, left in slot["spells"] if came is not None and came <= ended_at]
    return bool(begun) and not any(left is None or left >= ended_at for left in begun)


def seconds_of(slot: MatchSlot, start: int, end: int) -> float:
    """How many seconds a player was in a match between two times."""
    total = 0
    for came, left in slot["spells"]:
        assert came is not None
        total += max(0, min(end, end if left is None else left) - max(start, came))
    return total / 1e6


def match_of(
    match: LiveMatchRow, ladder: str, names: Mapping[int, str], ending: Ending, ended_at: int, side_counts: str
) -> Match:
    """The finished match. Raises InputError if the ending does not fit it.

    names        players' present names by id
    side_counts  which team counts for players who changed sides: see Settings
    """
    sides = match.body["teams"]
    if len(ending.teams) != len(sides):
        raise InputError(f"match {match.match_id!r} has {len(sides)} teams and {len(ending.teams)} results")
    if ended_at < match.started_at:
        began = iso_time(match.started_at)
        raise InputError(f"match {match.match_id!r} began at {began}; it cannot end at {iso_time(ended_at)}")
    known = {slot["player"] for slot in match.slots()} | {names[slot["id"]] for slot in match.slots()}
    stranger = next((name for name in ending.players if name not in known), None)
    if stranger is not None:
        raise UnknownNameError(f"player of match {match.match_id!r}", stranger, sorted(known))
    counted: list[list[MatchSlot]] = [[] for _ in sides]
    for present, side in enumerate(sides):
        for slot in side:
            counted[counted_team(slot, present, side_counts, ended_at)].append(slot)
    if any(slot.get("sides") for slot in match.slots()) and not all(counted):
        raise InputError(
            f"match {match.match_id!r} has a team without players, because for players who changed sides the "
            f"{side_counts} side counts on this ladder; report it as a finished match instead"
        )
    teams = []
    for side, end in zip(counted, ending.teams, strict=True):
        players = []
        for slot in side:
            name = names[slot["id"]]
            result = ending.players.get(slot["player"], ending.players.get(name, PlayerEnd()))
            seconds, quit_early = seconds_of(slot, match.started_at, ended_at), has_quit(slot, ended_at)
            players.append(Appearance(name, seconds=seconds, quit=quit_early, **result._asdict()))
        teams.append(Team(tuple(players), end.place, end.score))
    duration = (ended_at - match.started_at) / 1e6 if ending.duration is None else ending.duration
    played_at = EPOCH + timedelta(microseconds=ended_at)
    context = {**ending.context}
    if "map" in match.body and len(context) < MOST:
        context.setdefault("map", match.body["map"])
    return Match(match.match_id, played_at, tuple(teams), ladder, duration, context)


def quitters(match: LiveMatchRow, ended_at: int) -> set[int]:
    """The ids of the players who joined but were absent when the match ended."""
    return {slot["id"] for slot in match.slots() if has_quit(slot, ended_at)}
