"""Requests that come in thousands, read without a detour: what is read here is what the models would read.

The models of `http.models` say what is accepted, and explain what is not. Reading by them takes ten times as long as
all else that is done with a report, so whatever is certainly good is read here first. `None` always means: let the
model decide.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from evenmatch.errors import InputError
from evenmatch.http.models.base import LONGEST, time_of
from evenmatch.match import LARGEST_PLACE, Appearance, Match, Team
from evenmatch.service.queueing.wishes import Join, Seeker

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


def read_match(ladder: str, body: bytes) -> tuple[Match, bool] | None:
    """A reported match, and whether it is to be rated."""
    sent = _decoded(_MATCH, body)
    return None if sent is None else _match(ladder, sent)


def read_batch(ladder: str, body: bytes) -> list[tuple[Match, bool]] | None:
    """Reported matches, if all of them are good."""
    sent = _decoded(_BATCH, body)
    if sent is None:
        return None
    matches = [_match(ladder, one) for one in sent.matches]
    good = [one for one in matches if one is not None]
    return good if len(good) == len(matches) else None


def read_party(body: bytes) -> Join | None:
    """A party that wants a match."""
    sent = _decoded(_PARTY, body)
    if sent is None:
        return None
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
        for one in sent.members
    )
    return Join(members=members, queues=tuple(sent.queues), request=sent.request_id)


def _match(ladder: str, sent: _Match) -> tuple[Match, bool] | None:
    try:
        teams = tuple(
            Team(
                tuple(Appearance(p.player, p.score, p.seconds, p.quit, p.performance, p.keep) for p in team.players),
                team.place,
                team.score,
            )
            for team in sent.teams
        )
        return Match(sent.id, _moment(sent.played_at), teams, ladder, sent.duration), sent.rated
    except (InputError, ValueError):
        return None


_moment = lru_cache(4096)(time_of)  # matches that end together are told at the same time
