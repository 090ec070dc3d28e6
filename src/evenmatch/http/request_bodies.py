"""Read and validate large request bodies in a worker thread, which keeps the event loop free.

FastAPI validates other bodies in the event loop. The middleware keeps those small.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar, cast

import msgspec
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from evenmatch.http.fast_json import struct_of
from evenmatch.http.site import site_of

Model = TypeVar("Model", bound=BaseModel)
Result = TypeVar("Result")
QUICK = 16 * 1024  # bytes; smaller bodies are read in the event loop, within two milliseconds
EXPLAINED = 32 * 1024  # bytes; of larger bodies only the first fault is named, since there may be a million


def _accept(_: object) -> None:
    """Accept a body of any size."""


async def read_body(
    request: Request, model: type[Model], convert: Callable[[Model], Result], check: Callable[[Model], None] = _accept
) -> Result:
    """Read the body of a request for a ladder as a model, and convert it.

    check  called with a struct of a large body before the slower model is made
    Raises RequestValidationError, and what `check` and `convert` raise.
    """
    body = await request.body()
    if len(body) <= QUICK:
        return convert(validated(model, body))
    ladder = request.path_params["ladder"]
    return await site_of(request).convert(ladder, lambda: convert(validated(model, body, check)))


def validated(model: type[Model], body: bytes, check: Callable[[Model], None] = _accept) -> Model:
    """Parse a JSON text as a model. Raises RequestValidationError, and what `check` raises."""
    if len(body) > EXPLAINED:
        check(_struct(model, body))
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        faults = [{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors(include_url=False)]
        raise RequestValidationError(faults) from None


def body_schema(model: type[BaseModel]) -> dict[str, object]:
    """The part of the OpenAPI document that describes the body of an endpoint that calls `read_body`."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _struct(model: type[Model], body: bytes) -> Model:
    """Parse a body as a struct. Raises RequestValidationError with the first fault."""
    try:
        return cast("Model", _decoder(model).decode(body))  # the cache loses the type
    except msgspec.ValidationError as error:
        raise RequestValidationError([{"type": "shape", "loc": ("body",), "msg": str(error), "input": b""}]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestValidationError([{"type": "json_invalid", "loc": ("body",), "msg": str(error)}]) from None


@cache
def _decoder(model: type[Model]) -> msgspec.json.Decoder[Model]:
    return msgspec.json.Decoder(struct_of(model))
