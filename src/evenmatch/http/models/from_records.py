"""Response models derived from the records that use cases return.

A record is a frozen dataclass or a NamedTuple. The model has the record's fields, and the record's docstring describes
them: its first paragraph describes the model, and the lines of its table (`name  meaning`) describe the fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from inspect import cleandoc
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import Field, create_model

from evenmatch.history import UNKNOWN
from evenmatch.http.models.base import Known, Page, ResponseModel, ShownTime, Written
from evenmatch.sentences import Sentence
from evenmatch.times import MICROSECONDS

Model = TypeVar("Model", bound=ResponseModel)
Record = TypeVar("Record")
_ENTRY = re.compile(r"(\w+(?:, \w+)*)  +(\S.*)")  # a line of a docstring's table
_MARKS: Mapping[object, Any] = {MICROSECONDS: ShownTime, UNKNOWN: Known}


class _AsRecord:
    """Tells pydantic to treat a record as the model derived from it."""

    def __get_pydantic_core_schema__(self, source: type, handler: Callable[[Any], Any]) -> Any:  # noqa: ANN401
        return handler(model_of(source))


Shown = Annotated[Record, _AsRecord()]
"""The type of a field that holds a record: `Shown[Season]`."""


@cache
def model_of(record: type) -> type[ResponseModel]:
    """The response model with all fields of a record."""
    return fields_of(record)(
        type(record.__name__, (ResponseModel,), {"__doc__": _summary(record), "__module__": __name__})
    )


@cache
def page_of(item: type) -> type[ResponseModel]:
    """The response model of a page of a list, given the model or the record of its items."""
    model = item if issubclass(item, ResponseModel) else model_of(item)  # type: ignore[arg-type] # mypy: type[object]
    name = f"{model.__name__.removesuffix('Out')}Page"
    return create_model(name, __base__=Page, __module__=__name__, __doc__=Page.__doc__, items=(list[model], ...))  # type: ignore[valid-type]


def fields_of(record: type, *omitted: str) -> Callable[[type[Model]], type[Model]]:
    """Add a field for each field of a record. Fields that the model declares itself stay as they are."""
    described = dict(_table(record.__doc__ or ""))

    def derive(model: type[Model]) -> type[Model]:
        fields: dict[str, Any] = {
            name: (_type(hint), Field(description=described.get(name)))
            for name, hint in get_type_hints(record, include_extras=True).items()
            if name not in omitted and name not in model.model_fields and not name.startswith("_")
        }
        derived = create_model(model.__name__, __base__=model, __module__=model.__module__, **fields)
        derived.__doc__ = model.__doc__
        return derived

    return derive


def _type(hint: Any) -> Any:  # noqa: ANN401 - a type, or a special form
    """The type of a response field for a field of a record with this type."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return next((_MARKS[mark] for mark in inner[1:] if mark in _MARKS), None) or _type(inner[0])
    if origin in (Union, UnionType):
        return Union[tuple(map(_type, inner))]  # noqa: UP007 - of a computed tuple
    if origin is tuple and inner[-1] is not Ellipsis:
        return tuple[tuple(map(_type, inner))]  # type: ignore[misc] # a computed tuple
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[inner[0], _type(inner[1])]  # type: ignore[misc,valid-type]
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return list[_type(inner[0])]  # type: ignore[misc]
    is_record = isinstance(hint, type) and (is_dataclass(hint) or hasattr(hint, "_fields"))
    return Written if hint is Sentence else model_of(hint) if is_record else hint


def _summary(record: type) -> str:
    return cleandoc(record.__doc__ or "").partition("\n\n")[0]


def _table(docstring: str) -> Iterator[tuple[str, str]]:
    """The name and the meaning of each field that a docstring describes; lines that are indented more continue one."""
    names, meaning = "", ""
    for line in [*cleandoc(docstring).splitlines(), "end  ."]:
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            meaning += f" {line.strip()}" if line.startswith("  ") else ""
            continue
        sentence = f"{meaning[:1].upper()}{meaning[1:]}."
        yield from ((name, sentence) for name in names.split(", ") if name)
        names, meaning = entry[1], entry[2]
