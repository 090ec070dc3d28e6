"""Decoding of request bodies into structs, with errors that name the first invalid value and its place.

The structs define which bodies are valid. Large bodies are decoded in a worker thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

import msgspec
from fastapi import Request
from fastapi.exceptions import RequestValidationError

from evenmatch.http.models.base import why_no_time
from evenmatch.http.site import site_of

Body = TypeVar("Body", bound=msgspec.Struct)
Result = TypeVar("Result")
QUICK = 16 * 1024  # largest body that is decoded in the event loop, in bytes; it takes one or two milliseconds
QUOTED = 32 * 1024  # largest body from which a refusal quotes the invalid value, in bytes
NUL = rb"\u0000"  # the only way to write NUL in JSON; no database can store it
_PLACE = re.compile(r"(?s)(.*?)(?: - at `(?:key in )?\$(.*)`)?")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_FIELD = re.compile(r"(Object (?:contains unknown|missing required) field) `(.+)`")
_TYPES = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "array": "a list"}


async def read_body(request: Request, struct: type[Body], convert: Callable[[Body], Result]) -> Result:
    """Decode the body of a request about a ladder, and return what `convert` makes of it.

    Raises RequestValidationError, and what `convert` raises.
    """
    body = await request.body()
    if len(body) <= QUICK:
        return convert(decoded(struct, body))
    return await site_of(request).convert(request.path_params["ladder"], lambda: convert(decoded(struct, body)))


def decoded(struct: type[Body], body: bytes) -> Body:
    """Decode a struct from JSON. Raises RequestValidationError, which names the first invalid value."""
    try:
        value: Body = _decoder(struct).decode(body)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), body) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestValidationError([{"type": "json_invalid", "loc": ("body",), "msg": str(error)}]) from None
    if NUL in body:
        for place in _places_of_nul(msgspec.to_builtins(value)):
            raise refused(place, "must be valid UTF-8 text without NUL")
    return value


def refused(place: tuple[str | int, ...], reason: str, value: object = None) -> RequestValidationError:
    """Return the error for an invalid value at a place in the body. value: quoted in the message; None: not quoted."""
    fault = {"type": "missing" if value is None else "value", "loc": ("body", *place), "msg": reason, "input": value}
    return RequestValidationError([fault])


def _invalid(message: str, body: bytes) -> RequestValidationError:
    found = _PLACE.fullmatch(message)
    assert found is not None
    steps = [name or index for name, index in _STEP.findall(found[2] or "")]
    place = tuple(int(step) if step.isdigit() else step for step in steps)
    value = _value_at(body, place) if len(body) <= QUOTED else None
    if place[-1:] == ("played_at",) and value is not None:
        return refused(place, why_no_time(value), value)
    if (field := _FIELD.fullmatch(found[1])) is not None:
        return refused(
            (*place, field[2]), "this field is unknown" if "unknown" in field[1] else "this field is missing"
        )
    words = re.sub(r"\w+", lambda word: _TYPES.get(word[0], word[0]), found[1].replace("`", ""))
    return refused(place, f"{words[0].lower()}{words[1:]}", value)


def _value_at(body: bytes, place: tuple[str | int, ...]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value at a place in a JSON text; None if there is none."""
    try:
        value = msgspec.json.decode(body)
        for step in place:
            value = value[step]
    except (LookupError, TypeError, msgspec.DecodeError):
        return None
    return value


def _places_of_nul(value: object, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the places of texts with NUL."""
    if isinstance(value, str) and "\0" in value:
        yield place
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _places_of_nul(key, place)
            yield from _places_of_nul(inner, (*place, key))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _places_of_nul(inner, (*place, index))


@cache
def _decoder(struct: type[Body]) -> msgspec.json.Decoder[Body]:
    return msgspec.json.Decoder(struct)


def described(answer: type, body: type | None = None, status: int = 200) -> dict[str, Any]:
    """Return the part of the OpenAPI document for an endpoint whose answer and body are structs."""
    operation: dict[str, Any] = {"responses": {str(status): {"content": _content(answer)}}}
    return operation if body is None else {**operation, "requestBody": {"required": True, "content": _content(body)}}


def _content(struct: type) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{struct.__name__}"}}}
