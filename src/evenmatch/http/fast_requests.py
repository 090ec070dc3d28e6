"""Fast decoding of the most frequent request bodies, with the same result as the pydantic models.

The models of `http.models` define what is valid and explain errors. Validation with them takes ten times as long as
everything else done with a report, so bodies that are certainly valid are decoded here, by structs derived from the
models. `None` always means: not certain, let the model decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

import msgspec

from evenmatch.http.model_structs import struct_of
from evenmatch.http.models.base import micros, time_of
from evenmatch.http.models.matches import BatchReport, MatchReport
from evenmatch.http.models.queues import JoinRequest, OfferAnswer
from evenmatch.match import places_by_score
from evenmatch.service.queues.requests import Join, QueuedPlayer
from evenmatch.service.recording.report_batch import ReportBatch
from evenmatch.times import is_plausible

NUL = rb"\u0000"  # the only way to write NUL in JSON; databases cannot store it
_MATCH = msgspec.json.Decoder(struct_of(MatchReport))
_BATCH = msgspec.json.Decoder(struct_of(BatchReport))
_PARTY = msgspec.json.Decoder(struct_of(JoinRequest))
_ANSWER = msgspec.json.Decoder(struct_of(OfferAnswer))
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
    return None if party is None else join_of(party)


def read_offer_answer(body: bytes) -> OfferAnswer | None:
    """Decode the answer to an offer."""
    return _decoded(_ANSWER, body)


def join_of(party: JoinRequest) -> Join:
    """The queue request of a party, decoded here or by the model."""
    members = tuple(
        QueuedPlayer(
            name=member.player,
            within=member.within,
            loose=member.loose,
            roles=tuple(member.roles),
            ping=member.ping,
            max_ping=member.max_ping,
            regions=None if member.regions is None else tuple(member.regions),
            attributes=None
            if member.attributes is None
            else {name: tuple(values) for name, values in member.attributes.items()},
            vetoes=None if member.vetoes is None else tuple(member.vetoes),
            avoid=tuple(member.avoid),
        )
        for member in party.members
    )
    playlist = {ladder: tuple(queues) for ladder, queues in party.playlist.items()}
    return Join(members=members, queues=tuple(party.queues), request=party.request_id, playlist=playlist)


def _report_batch(matches: Sequence[MatchReport]) -> ReportBatch | None:
    try:
        played_at = [_microseconds(match.played_at) for match in matches]  # the structs hold text
    except ValueError:
        return None
    places = [_places(match) for match in matches]
    if any(len(places[index]) < len(match.teams) or _has_duplicates(match) for index, match in enumerate(matches)):
        return None
    return ReportBatch.of_fields(matches, played_at, places, [match.rated for match in matches])


def _places(match: MatchReport) -> Sequence[int]:
    """The reported places, or places by score; fewer than there are teams if some team has neither."""
    places = [team.place for team in match.teams if team.place is not None]
    if places:
        return places
    scores = [team.score for team in match.teams if team.score is not None]
    return places_by_score(scores) if len(scores) == len(match.teams) else ()


def _has_duplicates(match: MatchReport) -> bool:
    """Whether a player is in the match more than once."""
    names = [appearance.player for team in match.teams for appearance in team.players]
    return len(set(names)) < len(names)


@lru_cache(4096)  # many matches end at the same time, so their texts repeat
def _microseconds(text: str) -> int:
    time = micros(time_of(text))
    if not is_plausible(time):
        raise ValueError(text)
    return time
