"""Request bodies that may be large: read and validated in a worker thread, so that the event loop goes on.

FastAPI validates bodies in the event loop, which is good for small ones; `http.body_limits` keeps the others small.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import msgspec
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from evenmatch.http.model_structs import struct_of
from evenmatch.http.site import site_of

Model = TypeVar("Model", bound=BaseModel)
Result = TypeVar("Result")
QUICK = 16 * 1024  # bytes that are read in the event loop, within a millisecond or two
EXPLAINED = 32 * 1024  # bytes up to which every fault is named; of larger bodies the first, as there may be a million


async def read_body(request: Request, model: type[Model], convert: Callable[[Model], Result]) -> Result:
    """The body of a request as a model, converted. Raises RequestValidationError, and what `convert` raises."""
    body = await request.body()
    if len(body) <= QUICK:
        return convert(validated(model, body))
    return await site_of(request).work(lambda: convert(validated(model, body)))


def validated(model: type[Model], body: bytes) -> Model:
    """The model in a JSON text. Raises RequestValidationError."""
    if len(body) > EXPLAINED:
        _check_shape(model, body)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        faults = [{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors(include_url=False)]
        raise RequestValidationError(faults) from None


def body_schema(model: type[BaseModel]) -> dict[str, object]:
    """The part of the OpenAPI document that describes the body of an endpoint that calls `read_body`."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _check_shape(model: type[BaseModel], body: bytes) -> None:
    """Raise RequestValidationError with the first fault, found without an object for each of them."""
    try:
        _decoder(model).decode(body)
    except msgspec.ValidationError as error:
        raise RequestValidationError([{"type": "shape", "loc": ("body",), "msg": str(error), "input": b""}]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestValidationError([{"type": "json_invalid", "loc": ("body",), "msg": str(error)}]) from None


@cache
def _decoder(model: type[BaseModel]) -> msgspec.json.Decoder[object]:
    return msgspec.json.Decoder(struct_of(model))
