"""Derive the options of a command from the declared options of a dataclass."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from evenmatch.cli.shared.files import read_divisions
from evenmatch.errors import UsageError
from evenmatch.options import Number, Option, shown


def with_options(
    declared: Mapping[str, Option],
    *,
    default: str = "Default: {}.",
    flags: Mapping[str, str] | None = None,
    panel: str | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each declared one; it receives those that were typed as `changes`.

    default  how the help states a default
    flags    the flags of options that are not named after their field
    panel    where the help lists the options
    Raises UsageError for a value that the declaration does not accept.
    """
    spelled = {name: (flags or {}).get(name, f"--{name.replace('_', '-')}") for name in declared}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True)

        @functools.wraps(command)
        def wrapper(**values: Any) -> None:  # noqa: ANN401 - as the options are typed
            typed = {name: values.pop(name) for name in declared}
            read = {
                name: _read(spelled[name], declared[name], text) for name, text in typed.items() if text is not None
            }
            command(**values, changes=read)

        parameters = [parameter for name, parameter in own.parameters.items() if name != "changes"]
        first = len(parameters) - ("db" in own.parameters) - ("json" in own.parameters)
        parameters[first:first] = [
            _parameter(name, item, spelled[name], default, panel) for name, item in declared.items()
        ]
        wrapper.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return wrapper

    return decorate


def _parameter(name: str, item: Option, flags: str, default: str, panel: str | None) -> inspect.Parameter:
    is_set = item.default not in ("", None) and type(item) is not Option  # the help describes an empty list or table
    text = f"{item.meaning} {default.format(shown(item.default))}" if is_set else item.meaning
    metavar = "N" if isinstance(item, Number) else "TEXT"
    kind: object = str
    if name == "divisions":
        kind, metavar, text = Path, "FILE", "A .csv file with the columns name and lowest (percentile)."
    info = typer.Option(*flags.split(", "), metavar=metavar, help=text, rich_help_panel=panel)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, info],  # type: ignore[operator]
    )


def _read(flags: str, item: Option, given: str | Path) -> object:
    if isinstance(given, Path):
        return read_divisions(given)
    try:
        return item.read(given)
    except (ValueError, TypeError, OverflowError):
        raise UsageError(f"{flags.partition(',')[0]} {given}: expected {item.accepts}") from None
