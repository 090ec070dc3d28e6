"""What a call of the service is: one description, from which both clients make it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel

from evenmatch.errors import UsageError
from evenmatch.http.models.base import Asked

T_co = TypeVar("T_co", covariant=True)
Model = TypeVar("Model", bound=BaseModel)
Given = str | int | float | bool | datetime | Sequence[str]
Value = Given | None


@dataclass(frozen=True)
class Call(Generic[T_co]):
    """A request to be made, and how its answer is read.

    path   begins with a slash, its parts percent-encoded
    again  whether it may be sent twice: the second time changes nothing
    wait   seconds for which the service may keep the answer back
    """

    method: str
    path: str
    read: Callable[[bytes], T_co]
    query: Mapping[str, Value] = field(default_factory=dict)
    body: Asked | None = None
    again: bool = False
    wait: float = 0.0

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def parameters(self) -> dict[str, list[str]]:
        """The query, as it is sent; None is left out."""
        return {name: _texts(value) for name, value in self.query.items() if value is not None}

    @property
    def content(self) -> bytes | None:
        """The body, as it is sent: nothing but what was given, for what is left out stays as it is."""
        return None if self.body is None else self.body.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _texts(value: Given) -> list[str]:
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, datetime):
        return [f"{value.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"]
    if isinstance(value, str | int | float):
        return [str(value)]
    return list(value)


def at(*parts: str | int) -> str:
    """The address of these parts under /v1, each percent-encoded. Raises UsageError for an empty one."""
    return "/v1/" + "/".join(_part(str(one)) for one in parts)


def _part(text: str) -> str:
    if not text:
        raise UsageError("a name is empty; accepted is a name of 1 to 256 letters")
    try:
        encoded = quote(text, safe="")
    except UnicodeEncodeError:
        raise UsageError(f"{text!r}: accepted is text that UTF-8 can hold") from None
    return encoded.replace(".", "%2E") if text in {".", ".."} else encoded


def get(answer: type[Model], path: str, query: Mapping[str, Value] | None = None, *, wait: float = 0.0) -> Call[Model]:
    """A call that reads."""
    return Call("GET", path, answer.model_validate_json, {} if query is None else query, again=True, wait=wait)


def post(
    answer: type[Model],
    path: str,
    body: Asked | None = None,
    query: Mapping[str, Value] | None = None,
    *,
    again: bool = False,
) -> Call[Model]:
    """A call that does something."""
    return Call("POST", path, answer.model_validate_json, {} if query is None else query, body, again)


def put(answer: type[Model], path: str, body: Asked) -> Call[Model]:
    """A call that makes something so."""
    return Call("PUT", path, answer.model_validate_json, body=body, again=True)


def delete(answer: type[Model], path: str, query: Mapping[str, Value] | None = None) -> Call[Model]:
    """A call that takes something away."""
    return Call("DELETE", path, answer.model_validate_json, {} if query is None else query, again=True)


def nothing(_: bytes) -> None:
    """How an answer without a body is read."""
