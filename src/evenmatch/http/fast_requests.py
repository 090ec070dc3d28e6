"""Fast decoding of the most frequent request bodies, with the same result as the pydantic models.

The models of `http.models` define what is valid and explain errors. Validation with them takes ten times as long as
everything else done with a report, so bodies that are certainly valid are decoded here. `None` always means: not
certain, let the model decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from evenmatch.http.models.base import LONGEST, micros, time_of
from evenmatch.http.models.queues import JoinRequest
from evenmatch.match import LARGEST_PLACE, places_by_score
from evenmatch.service.queues.requests import Join, QueuedPlayer
from evenmatch.service.recording.report_batch import ReportBatch, number

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST)]
Seconds = Annotated[float, Meta(ge=0)]
Ping = Annotated[float, Meta(ge=0, le=1e9)]
NUL = rb"\u0000"  # the only way to write NUL in JSON; databases cannot store it


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


def read_match(body: bytes) -> ReportBatch | None:
    """Decode a match report."""
    match = _decoded(_MATCH, body)
    return None if match is None else _report_batch([match])


def read_batch(body: bytes) -> ReportBatch | None:
    """Decode a batch of match reports, if all of them are valid."""
    batch = _decoded(_BATCH, body)
    return None if batch is None else _report_batch(batch.matches)


def read_party(body: bytes) -> Join | None:
    """Decode the request of a party to join queues."""
    party = _decoded(_PARTY, body)
    return None if party is None else wish_of(party)


def wish_of(party: JoinRequest | _Party) -> Join:
    """The queue request of a party, decoded here or by the model."""
    members = tuple(
        QueuedPlayer(
            name=member.player,
            within=member.within,
            loose=member.loose,
            roles=tuple(member.roles),
            ping=member.ping,
            max_ping=member.max_ping,
            avoid=tuple(member.avoid),
        )
        for member in party.members
    )
    return Join(members=members, queues=tuple(party.queues), request=party.request_id)


def _report_batch(matches: list[_Match]) -> ReportBatch | None:
    try:
        played_at = [_microseconds(match.played_at) for match in matches]
    except ValueError:
        return None
    teams = [team for match in matches for team in match.teams]
    appearances = [appearance for team in teams for appearance in team.players]
    place = [place for match in matches for place in _places(match)]
    if len(place) < len(teams) or any(_has_duplicates(match) for match in matches):
        return None
    return ReportBatch(
        ids=[match.id for match in matches],
        played_at=played_at,
        rated=[match.rated for match in matches],
        duration=[number(match.duration) for match in matches],
        teams=[len(match.teams) for match in matches],
        place=place,
        team_score=[number(team.score) for team in teams],
        sizes=[len(team.players) for team in teams],
        player=[appearance.player for appearance in appearances],
        score=[number(appearance.score) for appearance in appearances],
        seconds=[number(appearance.seconds) for appearance in appearances],
        performance=[number(appearance.performance) for appearance in appearances],
        quit=[appearance.quit for appearance in appearances],
        keep=[appearance.keep for appearance in appearances],
    )


def _places(match: _Match) -> Sequence[int]:
    """The reported places, or places by score; fewer than there are teams if some team has neither."""
    places = [team.place for team in match.teams if team.place is not None]
    if places:
        return places
    scores = [team.score for team in match.teams if team.score is not None]
    return places_by_score(scores) if len(scores) == len(match.teams) else ()


def _has_duplicates(match: _Match) -> bool:
    """Whether a player is in the match more than once."""
    names = [appearance.player for team in match.teams for appearance in team.players]
    return len(set(names)) < len(names)


@lru_cache(4096)  # many matches end at the same time, so their texts repeat
def _microseconds(text: str) -> int:
    return micros(time_of(text))
