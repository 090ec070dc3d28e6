"""Options for the settings of a ladder, derived from where each setting is declared."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from evenmatch.errors import UsageError
from evenmatch.options import Number, Option, shown
from evenmatch.service.settings import SETTINGS

OFFERED = {name: option for name, option in SETTINGS.items() if not option.separate}
_FILE = typer.Option("--divisions", metavar="FILE", help="A .csv with columns name, lowest (percentile).")


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for every setting; it takes those that were given as `changes`."""
    own = inspect.signature(command, eval_str=True)
    options = [_parameter(name, option) for name, option in OFFERED.items()]

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:  # noqa: ANN401 - as the options are typed
        typed = {name: given.pop(name) for name in OFFERED}
        command(**given, changes={name: _value(name, text) for name, text in typed.items() if text is not None})

    parameters = [parameter for name, parameter in own.parameters.items() if name != "changes"]
    before_database = [parameter.name for parameter in parameters].index("db")
    parameters[before_database:before_database] = options
    wrapper.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper


def _parameter(name: str, option: Option) -> inspect.Parameter:
    if name == "divisions":
        kind: object = Annotated[Path | None, _FILE]
    else:
        new = f" New ladders: {shown(option.default)}." if option.default not in ("", None) else ""
        metavar = "N" if isinstance(option, Number) else "TEXT"
        named = f"--{name.replace('_', '-')}"
        kind = Annotated[str | None, typer.Option(named, metavar=metavar, help=f"{option.meaning}{new}")]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)


def _value(name: str, given: str | Path) -> object:
    if isinstance(given, Path):
        from evenmatch.cli.shared.divisions_file import read_divisions

        return read_divisions(given)
    try:
        return SETTINGS[name].read(given)
    except (ValueError, TypeError, OverflowError):
        raise UsageError(f"--{name.replace('_', '-')} {given}: expected {SETTINGS[name].accepts}") from None
