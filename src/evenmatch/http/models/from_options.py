"""Models whose fields are options: derived from where each option is declared (see evenmatch.options)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, create_model

from evenmatch.http.models.base import LONGEST, RequestModel, ResponseModel
from evenmatch.http.models.base import Text as StorableText
from evenmatch.options import Choice, Flag, Names, Number, Option, Text

Model = TypeVar("Model", bound=BaseModel)


class OptionsRequest(RequestModel):
    """Base of requests with options."""

    if TYPE_CHECKING:

        def __init__(self, **values: Any) -> None: ...  # noqa: ANN401
        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401


class OptionsResponse(ResponseModel):
    """Base of responses with options."""

    if TYPE_CHECKING:

        def __init__(self, **values: Any) -> None: ...  # noqa: ANN401
        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401


def checked_fields(options: Mapping[str, Option], **types: object) -> Callable[[type[Model]], type[Model]]:
    """Add a request field for each option, with its default and its range, which is checked here.

    types  the types of options that are lists or tables
    """
    return _fields(
        options,
        lambda name, option: (
            types.get(name) or _type(option, Field),
            Field(default=option.default, description=option.meaning),
        ),
    )


def passed_fields(options: Mapping[str, Option], **types: object) -> Callable[[type[Model]], type[Model]]:
    """Add a request field for each option without checking its range, which its owner does.

    "none", as documents for TOML have it, becomes null.
    """
    return _fields(
        options,
        lambda name, option: (
            Annotated[types.get(name) or _type(option, _described), BeforeValidator(_null)]
            if option.optional
            else types.get(name) or _type(option, _described),
            Field(default_factory=_left_out, description=option.meaning),
        ),
    )


def response_fields(options: Mapping[str, Option], **types: object) -> Callable[[type[Model]], type[Model]]:
    """Add a response field for each option."""
    return _fields(
        options,
        lambda name, option: (
            types.get(name) or _type(option, _described),
            Field(description=option.meaning),
        ),
    )


def _fields(
    options: Mapping[str, Option], field_of: Callable[[str, Option], tuple[Any, Any]]
) -> Callable[[type[Model]], type[Model]]:
    def derive(model: type[Model]) -> type[Model]:
        fields: dict[str, Any] = {name: field_of(name, option) for name, option in options.items()}
        derived = create_model(model.__name__, __base__=model, __module__=model.__module__, **fields)
        derived.__doc__ = model.__doc__
        return derived

    return derive


def _type(option: Option, limits: Callable[..., Any]) -> Any:  # noqa: ANN401 - a type for pydantic
    """The type of an option's values; `limits` makes what pydantic knows of a range."""
    kind: Any
    match option:
        case Number():
            kind = Annotated[int if option.whole else float, limits(ge=option.low, le=option.high)]
            kind = kind if option.word is None else kind | Literal[option.word]
        case Choice():
            of_document = Field(json_schema_extra={"enum": list(option.choices)})
            kind = Literal[option.choices] if limits is Field else Annotated[str, of_document]
        case Flag():
            kind = bool
        case Names():
            name = Annotated[str, Field(pattern=f"^{option.pattern}$")]
            kind = Annotated[list[name], Field(max_length=option.most)]
        case Text():
            kind = Annotated[StorableText, Field(max_length=LONGEST)] if limits is Field else str
        case _:
            raise TypeError(f"{option} needs a type of its own")
    return Optional[kind] if option.optional else kind  # noqa: UP045 - the type is known at run time only


def _described(*, ge: float, le: float) -> Any:  # noqa: ANN401
    """A range for the document alone."""
    return Field(json_schema_extra={"minimum": ge, "maximum": le})


def _null(value: object) -> object:
    return None if value == "none" else value


def _left_out() -> None:
    """The default factory of a field whose default stays out of the OpenAPI document."""
