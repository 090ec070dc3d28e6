"""What all models share: strictness, names, times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

if TYPE_CHECKING:
    from pydantic.config import JsonDict

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
LONGEST = 256


def examples(*values: object) -> ConfigDict:
    """The configuration of a model that has these examples in the document."""
    return ConfigDict(json_schema_extra=cast("JsonDict", {"examples": list(values)}))


class Asked(BaseModel):
    """What is sent to the service: nothing but what it knows, of exactly the types that it names."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Told(BaseModel):
    """What the service answers; a client ignores what a newer service adds."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def time_of(text: str) -> datetime:
    """The time that a text names, in UTC. Raises ValueError where it names none."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # of the years 1 and 9999 in other zones
        raise ValueError("accepted is a time by ISO 8601, as 2026-11-21T18:30:00Z") from None


def _text_only(value: object) -> object:
    if isinstance(value, str):
        return time_of(value)
    if isinstance(value, datetime):
        return value
    raise ValueError("accepted is a time by ISO 8601 as text, as 2026-11-21T18:30:00Z")


def _written(moment: datetime) -> str:
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"


Moment = Annotated[
    datetime,
    BeforeValidator(_text_only),
    PlainSerializer(_written, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-11-21T18:30:00Z"]}),
]


def _lasting(text: str) -> str:
    if "\0" in text or text.encode(errors="ignore").decode() != text:
        raise ValueError("accepted is text without NUL that UTF-8 can hold")
    return text


Text = Annotated[str, AfterValidator(_lasting)]
Name = Annotated[Text, Field(min_length=1, max_length=LONGEST)]
Seconds = Annotated[float, Field(ge=0)]


def micros(moment: datetime) -> int:
    """Microseconds since the epoch."""
    return (moment - EPOCH) // MICROSECOND


def moment(time: int) -> datetime:
    """The time of so many microseconds since the epoch."""
    return EPOCH + timedelta(microseconds=time)
