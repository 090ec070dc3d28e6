"""Base classes of all models, types for names, text and times, and problems (RFC 9457)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isnan
from typing import TYPE_CHECKING, Annotated, Self, cast

from msgspec import Struct
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from evenmatch.match import HIGHEST_ENTRY
from evenmatch.match_context import COLUMN, LONGEST_VALUE
from evenmatch.times import EPOCH, likeness

if TYPE_CHECKING:
    from pydantic.config import JsonDict


MICROSECOND = timedelta(microseconds=1)
LONGEST = 256


def examples(*values: object) -> ConfigDict:
    """A model configuration with these examples for the OpenAPI document."""
    return ConfigDict(json_schema_extra=cast("JsonDict", {"examples": list(values)}))


class RequestModel(BaseModel):
    """Base of request bodies: strict types, unknown fields are forbidden."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class ResponseModel(BaseModel):
    """Base of response bodies. A field that holds a model also accepts a record with the same attributes."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        from_attributes=True,
        hide_input_in_errors=True,
        json_schema_serialization_defaults_required=True,  # responses contain them
    )

    @classmethod
    def from_record(cls, record: object, /, **others: object) -> Self:
        """The response with the attributes of a record. others: fields that differ from the record's attributes."""
        own = {name: getattr(record, name) for name in cls.model_fields if name not in others and hasattr(record, name)}
        return cls.model_validate({**own, **others})


class Page(ResponseModel):
    """A page of a list. next: send it as `cursor` to read the next page; null: this is the last page."""

    next: str | None = None


def time_of(text: str) -> datetime:
    """Parse an ISO 8601 time, in UTC if it has no zone. Raises ValueError."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # OverflowError: years 1 and 9999 in other zones
        raise ValueError(why_no_time(text)) from None


def why_no_time(value: object) -> str:
    """Return why a value is not accepted as a time."""
    what = likeness(value).what
    guess = f", but this looks like {what}" if what else ""
    return f"expected an ISO 8601 time as text, for example 2026-11-21T18:30:00Z{guess}"


def _parsed(value: object) -> object:
    if isinstance(value, str):
        return time_of(value)
    if isinstance(value, datetime):
        return value
    raise ValueError(why_no_time(value))


def _shown(value: object) -> object:
    return moment(value) if isinstance(value, int) else _parsed(value)


def _iso_utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"


def none_for_nan(value: object) -> object:
    """Return the value, or None for NaN and for a pair that begins with NaN."""
    first = value[0] if isinstance(value, tuple) and value else value
    return None if isinstance(first, float) and isnan(first) else value


ISO_TIME = (
    PlainSerializer(_iso_utc, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-11-21T18:30:00Z"]}),
)
Moment = Annotated[datetime, BeforeValidator(_parsed), *ISO_TIME]
ShownTime = Annotated[datetime, BeforeValidator(_shown), *ISO_TIME]  # in responses; records hold microseconds
Known = Annotated[float | None, BeforeValidator(none_for_nan)]  # in responses; records hold NaN for what is not known
Written = Annotated[str, BeforeValidator(str)]  # in responses; records hold a Sentence


def _storable(text: str) -> str:
    if "\0" in text or text.encode(errors="ignore").decode() != text:
        raise ValueError("must be valid UTF-8 text without NUL")
    return text


Text = Annotated[str, AfterValidator(_storable)]
Name = Annotated[Text, Field(min_length=1, max_length=LONGEST)]
Seconds = Annotated[float, Field(ge=0)]
Entry = Annotated[float, Field(ge=-HIGHEST_ENTRY, le=HIGHEST_ENTRY)]
ENTRY = "A number known before the player's first match, such as a seed or a rating elsewhere; kept to seven digits."
ContextIn = dict[
    Annotated[Text, Field(pattern=f"^{COLUMN}$")], Annotated[Text, Field(max_length=LONGEST_VALUE)]
]  # see match_context.Context


def micros(moment: datetime) -> int:
    """Return a time in microseconds since the Unix epoch."""
    return (moment - EPOCH) // MICROSECOND


def moment(time: int) -> datetime:
    """Return the UTC time of a number of microseconds since the Unix epoch."""
    return EPOCH + timedelta(microseconds=time)


@dataclass(frozen=True)
class Fault:
    """One error and its location: a path in the body such as `teams.0.place`, or the id of a match."""

    where: str
    reason: str


class Problem(Struct, frozen=True, omit_defaults=True):
    """An error as defined by RFC 9457: `type` for programs, `title` and `detail` for people."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str | None = None
    problems: list[Fault] | None = None
    retry_after: float | None = None
    until: str | None = None
