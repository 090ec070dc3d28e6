"""Options that several commands share, and what they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.systems.system import Rules
    from evenmatch.tables import MatchTable

Matches = Annotated[
    Path,
    typer.Argument(
        metavar="MATCHES", help="Recorded matches: a .csv, .parquet, .jsonl or .ndjson file, a row per player."
    ),
]
System = Annotated[
    str, typer.Option("--system", "-s", metavar="NAME", help="A system of `evenmatch systems`, or your own .py file.")
]
Preset = Annotated[str | None, typer.Option("--preset", "-p", metavar="P", help="A named set of parameters.")]
Param = Annotated[
    list[str] | None, typer.Option("--param", metavar="K=V", help="A parameter by name; may be given several times.")
]
Ladder = Annotated[str | None, typer.Option("--ladder", metavar="L", help="Only the matches of this ladder.")]
PoolLadders = Annotated[bool, typer.Option("--pool-ladders", help="Rate all ladders of the file as one.")]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="ISO 8601 or epoch seconds; later matches are left out."),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out bad matches, and say how many, instead of stopping.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


def rules_of(system: str, preset: str | None, params: list[str] | None) -> Rules:
    """The rules that --system, --preset and --param name."""
    from evenmatch.rating import rules

    return rules(system, preset, **values_of(params))


def values_of(params: list[str] | None) -> dict[str, object]:
    """The parameters that --param names."""
    values: dict[str, object] = {}
    for text in params or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--param {text}: accepted is NAME=VALUE, for instance k=20")
        values[name.strip()] = value.strip()
    return values


def naming_value(error: typer.BadParameter) -> str:
    """The message of an error about an option, with the value that was given, which typer leaves out."""
    problems = getattr(error.__cause__, "errors", None)  # of pydantic, by which typer reads values
    if problems is None:
        return error.message
    problem = problems()[0]
    value, limits = str(problem["input"]), problem.get("ctx", {})
    if "ge" in limits or "le" in limits:
        low, high = (getattr(error.param, end, None) for end in ("min", "max"))
        accepted = f"a number from {low} {'upwards' if high is None else f'to {high}'}"
        return f"{value!r}; accepted is {accepted}" if low is not None else f"{value!r}; accepted is at most {high}"
    return f"{value!r}: {error.message}"


def moment(text: str | None, option: str = "--as-of") -> int | None:
    """A time in microseconds; `option` is what the message names."""
    from evenmatch.tables.columns import FIRST_TIME, LAST_TIME, parse_time

    if text is None:
        return None
    try:
        micros = parse_time(text)
    except (ValueError, OverflowError):
        micros = LAST_TIME + 1
    if not FIRST_TIME <= micros <= LAST_TIME:
        raise UsageError(f"{option} {text}: accepted is ISO 8601, as 2026-11-21T18:30:00Z, or epoch seconds")
    return micros


def matches_of(path: Path, ladder: str | None, pool: bool, as_of: int | None, skip_bad: bool) -> MatchTable:
    """The matches that the options name, read under a progress bar; later than `as_of` left out."""
    from evenmatch.cli.output import note, working
    from evenmatch.tables import read

    with working(f"reading {path.name}"):
        matches = read(path, skip_bad=skip_bad)
        if ladder is not None:
            matches = matches.on_ladder(ladder)
        if pool:
            matches = matches.pooled()
        if as_of is not None:
            known = matches.history.columns.time <= as_of
            if not known.any():
                raise UsageError("--as-of is before the first match; accepted is a time at which a match was played")
            if not known.all():
                note(f"{(~known).sum():,} matches later than --as-of are left out")
                matches = matches.take(known)
    return matches
