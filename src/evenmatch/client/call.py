"""Descriptions of API calls, from which both clients build their requests."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel

from evenmatch.errors import UsageError
from evenmatch.http.models.base import RequestModel

T_co = TypeVar("T_co", covariant=True)
Model = TypeVar("Model", bound=BaseModel)
Given = str | int | float | bool | datetime | Sequence[str]
Value = Given | None


@dataclass(frozen=True)
class Call(Generic[T_co]):
    """One API request, and the function that parses its response.

    path   begins with a slash; its segments are percent-encoded
    read   parses the body of a successful response
    once   whether the request is not retried
    of_job the part of the result of a job that the response would have had, if the service may answer by a job (202)
    wait   seconds of long polling: the service may delay its response for this long
    idempotency_key  by which the service recognizes the request if it is retried; None: a read, or a write that is
           harmless to repeat, for example since it contains an id of its own
    """

    method: str
    path: str
    read: Callable[[bytes], T_co]
    query: Mapping[str, Value] = field(default_factory=dict)
    body: RequestModel | None = None
    once: bool = False
    wait: float = 0.0
    idempotency_key: str | None = None
    of_job: Callable[[Mapping[str, object]], object] | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def parameters(self) -> dict[str, list[str]]:
        """The query parameters as sent; those that are None are left out."""
        return {name: _texts(value) for name, value in self.query.items() if value is not None}

    @property
    def content(self) -> bytes | None:
        """The request body as JSON, without fields that were not set: the service leaves those unchanged."""
        return None if self.body is None else self.body.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _texts(value: Given) -> list[str]:
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, datetime):
        return [f"{value.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"]
    if isinstance(value, str | int | float):
        return [str(value)]
    return list(value)


def path_of(*parts: str | int) -> str:
    """The path of these segments under /v1, each percent-encoded. Raises UsageError for an empty one."""
    return "/v1/" + "/".join(_segment(str(part)) for part in parts)


def _segment(text: str) -> str:
    if not text:
        raise UsageError("a name is empty; expected 1 to 256 characters")
    try:
        encoded = quote(text, safe="")
    except UnicodeEncodeError:
        raise UsageError(f"{text!r} cannot be encoded as UTF-8") from None
    return encoded.replace(".", "%2E") if text in {".", ".."} else encoded


def get(answer: type[Model], path: str, query: Mapping[str, Value] | None = None, *, wait: float = 0.0) -> Call[Model]:
    """A GET call."""
    return Call("GET", path, answer.model_validate_json, {} if query is None else query, wait=wait)


def post(
    answer: type[Model],
    path: str,
    body: RequestModel | None = None,
    query: Mapping[str, Value] | None = None,
    *,
    again: bool = False,
    of_job: Callable[[Mapping[str, object]], object] | None = None,
) -> Call[Model]:
    """A POST call. again: whether it is harmless to repeat, so that it needs no Idempotency-Key. of_job: see Call."""
    key = None if again else new_key()
    values = {} if query is None else query
    return Call("POST", path, answer.model_validate_json, values, body, idempotency_key=key, of_job=of_job)


def put(answer: type[Model], path: str, body: RequestModel, *, again: bool = False) -> Call[Model]:
    """A PUT call, which creates or replaces a resource. again: see post."""
    return Call("PUT", path, answer.model_validate_json, body=body, idempotency_key=None if again else new_key())


def delete(
    answer: type[Model],
    path: str,
    query: Mapping[str, Value] | None = None,
    *,
    of_job: Callable[[Mapping[str, object]], object] | None = None,
) -> Call[Model]:
    """A DELETE call. of_job: see Call."""
    values = {} if query is None else query
    return Call("DELETE", path, answer.model_validate_json, values, idempotency_key=new_key(), of_job=of_job)


def new_key() -> str:
    """A new Idempotency-Key."""
    return secrets.token_hex(16)


def whole(result: Mapping[str, object]) -> Mapping[str, object]:
    """The whole result of a job, for `of_job`."""
    return result


def nothing(_: bytes) -> None:
    """Parse a response that has no body."""
