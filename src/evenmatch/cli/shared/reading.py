"""The options that say how to read a file of matches, the same for every command that reads one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from evenmatch.cli.shared.options import option
from evenmatch.errors import UsageError
from evenmatch.times import TimeFormat, format_named

if TYPE_CHECKING:
    from evenmatch.tables.mapping import FileMapping


class Reading(NamedTuple):
    """How to read a file of matches; None: as the file says."""

    columns: str | None = None
    time_format: str | None = None
    zone: str | None = None
    mapping: Path | None = None
    context: tuple[str, ...] = ()

    @property
    def is_given(self) -> bool:
        """Whether any of the options was given."""
        return self._replace(context=()) != NO_READING

    def in_context(self, listed: str | None) -> Reading:
        """Also read these context columns, separated by commas."""
        names = [name.strip() for name in (listed or "").split(",")]
        return self._replace(context=tuple(name for name in names if name))

    @property
    def names(self) -> dict[str, str] | None:
        """The file's column of each of ours, as --columns says."""
        from evenmatch.tables.mapping import parse_columns

        return None if self.columns is None else parse_columns(self.columns)

    @property
    def saved(self) -> FileMapping | None:
        """The mapping of --mapping."""
        from evenmatch.tables.mapping import FileMapping

        return None if self.mapping is None else FileMapping.load(self.mapping)

    def form_of_partitions(self, address: str) -> TimeFormat:
        """How times in the files at an address are written. Raises UsageError for options that need one file."""
        if self.context:
            raise UsageError(f"--context: {address} has several files; expected one file")
        if self.columns is not None or self.mapping is not None:
            given = "--columns" if self.columns is not None else "--mapping"
            raise UsageError(f"{given}: {address} has several files; expected one file, or files with our columns")
        return format_named(self.time_format or "seconds", self.zone or "UTC")


NO_READING = Reading()
READING_FLAGS = "--columns, --time-format, --zone and --mapping"
OPTIONS: dict[str, object] = {
    "columns": Annotated[
        str | None, option("--columns OURS=THEIRS,…", "The file's names of our columns, such as player=Nick,team=Side.")
    ],
    "time_format": Annotated[
        str | None,
        option(
            "--time-format FORMAT",
            "Unit of played_at: seconds, milliseconds, microseconds, nanoseconds or spreadsheet (days); or a pattern "
            "such as %d/%m/%Y %H:%M.",
        ),
    ],
    "zone": Annotated[
        str | None, option("--zone ZONE", "The zone of times that name none, such as Europe/Berlin. Default: UTC.")
    ],
    "mapping": Annotated[
        Path | None, option("--mapping FILE", "Read the file as this mapping says; `evenmatch look --save` writes one.")
    ],
}


def reads_matches(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of OPTIONS in place of its parameter `reading`."""
    own = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def wrapper(**values: Any) -> None:  # noqa: ANN401 - as the options are typed
        reading = Reading(**{name: values.pop(name) for name in OPTIONS})
        command(**values, reading=reading)

    parameters = list(own.parameters.values())
    place = list(own.parameters).index("reading")
    kind = parameters[place].kind
    parameters[place : place + 1] = [
        inspect.Parameter(name, kind, default=None, annotation=annotation) for name, annotation in OPTIONS.items()
    ]
    wrapper.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper
