"""Fast decoding of the most frequent request bodies, and fast encoding of receipts.

The models of `http.models` define what is valid and explain errors. Validating with them takes ten times as long as
the rest of a report, so bodies that are certainly valid are decoded here. They use structs derived from the models;
None always means: not certain, let the model decide. Receipts are encoded column by column, thousands of players per
second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache, lru_cache
from itertools import pairwise
from threading import Lock
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
from msgspec import NODEFAULT, Meta, Struct
from numpy.typing import NDArray
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from evenmatch.http.models.base import Text, micros, time_of
from evenmatch.http.models.matches import BatchOutcome, BatchReport, MatchReport, Outcome, PlayerChange, ReceiptOut
from evenmatch.http.models.queues import JoinRequest, OfferAnswer
from evenmatch.match import places_by_score
from evenmatch.players.explanations import RATING_DECIMALS, shown_numbers
from evenmatch.queues.requests import Join, QueuedPlayer
from evenmatch.recording.receipts import MatchReceipt, RatedBlock
from evenmatch.recording.report_batch import ReportBatch
from evenmatch.systems.system import Factor, FactorValue, System
from evenmatch.times import is_plausible

Model = TypeVar("Model", bound=BaseModel)
LIMITS = ("ge", "le", "min_length", "max_length")
CHECKS_OF_TEXT = get_args(Text)[1:]  # msgspec decodes valid UTF-8 only; the reader must refuse NUL


def struct_of(model: type[Model]) -> type[Model]:
    """A struct class with the fields, limits and defaults of a model; its times are text, as they were sent.

    It has no methods of the model. Fields that have their default are left out of its JSON.
    Raises TypeError for a model with a limit that cannot be derived.
    """
    fields = [(name, _type(field.annotation, field.metadata), _default(field)) for name, field in _fields(model)]
    is_strict = model.model_config.get("extra") == "forbid"
    struct = msgspec.defstruct(
        model.__name__, fields, frozen=True, gc=False, forbid_unknown_fields=is_strict, omit_defaults=True
    )
    return cast("type[Model]", struct)


def _fields(model: type[BaseModel]) -> Iterable[tuple[str, FieldInfo]]:
    decorators = model.__pydantic_decorators__
    if decorators.field_validators or decorators.model_validators:
        raise TypeError(f"{model.__name__} has validators of its own, which a struct would skip")
    return model.model_fields.items()


def _default(field: FieldInfo) -> Any:  # noqa: ANN401 - any type that a field may have
    if field.default_factory is not None:
        return msgspec.field(default_factory=cast("Any", field.default_factory))
    return NODEFAULT if field.is_required() else field.default


def _type(annotation: Any, metadata: Iterable[object] = ()) -> Any:  # noqa: ANN401 - a type, or a special form
    """The type of a field in a struct."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is datetime:
        return str
    if origin is Annotated:
        return _type(inner[0], inner[1:])
    if origin in (Union, UnionType):
        kind: Any = Union[tuple(map(_type, inner))]  # noqa: UP007 - of a computed tuple
    elif origin in (list, dict):
        kind = origin[tuple(map(_type, inner))]
    else:
        kind = (
            struct_of(annotation) if isinstance(annotation, type) and issubclass(annotation, BaseModel) else annotation
        )
    limits = dict(_limits(metadata))
    return Annotated[kind, Meta(**limits)] if limits else kind


def _limits(metadata: Iterable[object]) -> Iterable[tuple[str, Any]]:
    for item in metadata:
        if isinstance(item, FieldInfo):
            yield from _limits(item.metadata)
        elif item not in CHECKS_OF_TEXT:
            names = [name for name in LIMITS if hasattr(item, name)]
            if not names:
                raise TypeError(f"{item!r} cannot be derived")
            yield from ((name, getattr(item, name)) for name in names)


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


encoded = msgspec.json.Encoder().encode  # NaN becomes null


# Like the models, with columns of numbers as they are shown; `factors` is a struct of the rating system's own.
ReceiptLine: Callable[..., PlayerChange] = struct_of(PlayerChange)
Rendered: Callable[..., ReceiptOut] = struct_of(ReceiptOut)
BatchLine: Callable[..., Outcome] = struct_of(Outcome)
Outcomes: Callable[..., BatchOutcome] = struct_of(BatchOutcome)

_LINES: WeakKeyDictionary[RatedBlock, list[PlayerChange]] = (
    WeakKeyDictionary()
)  # shared by the receipts of a block while they are encoded
_BUILDING = Lock()  # threads that encode receipts of the same block build its lines once


def rendered(receipt: MatchReceipt) -> ReceiptOut:
    """A receipt in the form that `encoded` encodes."""
    with _BUILDING:
        lines = _LINES.get(receipt.source)
        if lines is None:
            lines = _LINES[receipt.source] = _lines(receipt.source)
    teams = [lines[begin:end] for begin, end in pairwise(receipt.starts)]
    return Rendered(receipt.match_id, receipt.ladder, receipt.position, receipt.rated, teams, receipt.warnings)


def _lines(source: RatedBlock) -> list[PlayerChange]:
    records, system = source.records, source.system
    named = [(factor, records["factors"][factor.name]) for factor in system.factors]
    numbers = [records["expected"], source.result, *(values for factor, values in named if _is_number(factor))]
    shown = iter(shown_numbers(np.concatenate(numbers)).reshape(len(numbers), -1).tolist())  # at once: it is slow
    expected, result = next(shown), next(shown)
    factors = [next(shown) if _is_number(factor) else _labels(factor, values) for factor, values in named]
    before, after = (np.round(records[name], RATING_DECIMALS) for name in ("before", "after"))
    return list(
        map(
            ReceiptLine,
            source.player,
            source.team.tolist(),
            before.tolist(),
            after.tolist(),
            np.round(after - before, RATING_DECIMALS).tolist(),
            expected,
            result,
            map(_factors_of(system), *factors) if factors else [Struct()] * len(records),
            source.percentile,
            source.division,
        )
    )


@cache
def _factors_of(system: System) -> Callable[..., Struct]:
    """A Struct class with one field for each factor of a rating system."""
    return msgspec.defstruct("Factors", [(factor.name, FactorValue) for factor in system.factors], gc=False)


def _is_number(factor: Factor) -> bool:
    return not (factor.labels or factor.flag)


def _labels(factor: Factor, values: NDArray[Any]) -> Sequence[FactorValue]:
    """The values of a factor that is no number: names, or whether it holds."""
    plain: list[int] = values.tolist()
    return [factor.labels[int(value)] for value in plain] if factor.labels else plain
