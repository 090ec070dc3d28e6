"""Structs of msgspec that are derived from models, for bodies that are read or written thousands of times a second."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from evenmatch.http.models.base import Text

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
