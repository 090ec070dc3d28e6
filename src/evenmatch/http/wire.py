"""Requests that come in thousands, read without a detour: what is read here is what the models would read.

The models of `http.models` say what is accepted, and explain what is not. Reading by them takes ten times as long as
all else that is done with a report, so whatever is certainly good is read here first. `None` always means: let the
model decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from evenmatch.http.models.base import LONGEST, micros, time_of
from evenmatch.http.models.queues import JoinQueue
from evenmatch.match import LARGEST_PLACE, places_by_score
from evenmatch.service.queueing.wishes import Join, Seeker
from evenmatch.service.sheet import Sheet, number

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST)]
Seconds = Annotated[float, Meta(ge=0)]
Ping = Annotated[float, Meta(ge=0, le=1e9)]
NUL = rb"\u0000"  # the one way to write it in JSON; no database can hold it


class _Appearance(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    player: Name
    score: float | None = None
    seconds: Seconds | None = None
    quit: bool = False
    performance: Annotated[float, Meta(ge=-1, le=1)] | None = None
    keep: bool = True


class _Team(Struct, frozen=True, forbid_unknown_fields=True):
    players: Annotated[list[_Appearance], Meta(min_length=1)]
    place: Annotated[int, Meta(ge=1, le=LARGEST_PLACE)] | None = None
    score: float | None = None


class _Match(Struct, frozen=True, forbid_unknown_fields=True):
    id: Name
    played_at: str
    teams: Annotated[list[_Team], Meta(min_length=2)]
    duration: Seconds | None = None
    rated: bool = True


class _Batch(Struct, frozen=True, forbid_unknown_fields=True):
    matches: Annotated[list[_Match], Meta(min_length=1)]


class _Seeker(Struct, frozen=True, forbid_unknown_fields=True):
    player: Name
    within: Annotated[float, Meta(ge=0, le=100)] = 2.0
    loose: bool = True
    roles: Annotated[list[Name], Meta(max_length=64)] = []
    ping: Annotated[dict[Name, Ping], Meta(max_length=64)] = {}
    max_ping: Ping | None = None
    avoid: Annotated[list[Name], Meta(max_length=256)] = []


class _Party(Struct, frozen=True, forbid_unknown_fields=True):
    members: Annotated[list[_Seeker], Meta(min_length=1, max_length=50)]
    queues: Annotated[list[Name], Meta(min_length=1, max_length=64)]
    request_id: Name | None = None


_MATCH, _BATCH, _PARTY = msgspec.json.Decoder(_Match), msgspec.json.Decoder(_Batch), msgspec.json.Decoder(_Party)
Read = TypeVar("Read")


def _decoded(decoder: msgspec.json.Decoder[Read], body: bytes) -> Read | None:
    if NUL in body:
        return None
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def read_match(body: bytes) -> Sheet | None:
    """A reported match."""
    sent = _decoded(_MATCH, body)
    return None if sent is None else _sheet([sent])


def read_batch(body: bytes) -> Sheet | None:
    """Reported matches, if all of them are good."""
    sent = _decoded(_BATCH, body)
    return None if sent is None else _sheet(sent.matches)


def read_party(body: bytes) -> Join | None:
    """A party that wants a match."""
    sent = _decoded(_PARTY, body)
    return None if sent is None else wish_of(sent)


def wish_of(party: JoinQueue | _Party) -> Join:
    """What a party wants, whoever read it."""
    members = tuple(
        Seeker(
            name=one.player,
            within=one.within,
            loose=one.loose,
            roles=tuple(one.roles),
            ping=one.ping,
            max_ping=one.max_ping,
            avoid=tuple(one.avoid),
        )
        for one in party.members
    )
    return Join(members=members, queues=tuple(party.queues), request=party.request_id)


def _sheet(sent: list[_Match]) -> Sheet | None:
    try:
        played_at = [_microseconds(match.played_at) for match in sent]
    except ValueError:
        return None
    teams = [team for match in sent for team in match.teams]
    slots = [slot for team in teams for slot in team.players]
    place = [place for match in sent for place in _places(match)]
    if len(place) < len(teams) or any(_is_twice(match) for match in sent):
        return None
    return Sheet(
        ids=[match.id for match in sent],
        played_at=played_at,
        rated=[match.rated for match in sent],
        duration=[number(match.duration) for match in sent],
        teams=[len(match.teams) for match in sent],
        place=place,
        team_score=[number(team.score) for team in teams],
        sizes=[len(team.players) for team in teams],
        player=[slot.player for slot in slots],
        score=[number(slot.score) for slot in slots],
        seconds=[number(slot.seconds) for slot in slots],
        performance=[number(slot.performance) for slot in slots],
        quit=[slot.quit for slot in slots],
        keep=[slot.keep for slot in slots],
    )


def _places(match: _Match) -> Sequence[int]:
    """As the teams were told them, or by their scores; fewer than there are teams where neither is told of all."""
    told = [team.place for team in match.teams if team.place is not None]
    if told:
        return told
    scores = [team.score for team in match.teams if team.score is not None]
    return places_by_score(scores) if len(scores) == len(match.teams) else ()


def _is_twice(match: _Match) -> bool:
    """Whether somebody is in a match more than once."""
    names = [slot.player for team in match.teams for slot in team.players]
    return len(set(names)) < len(names)


@lru_cache(4096)  # matches that end together are told at the same time
def _microseconds(text: str) -> int:
    return micros(time_of(text))
