"""Options that several commands share, and their values."""

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
History = Annotated[
    str,
    typer.Argument(
        metavar="MATCHES",
        help="Recorded matches: a .csv, .parquet, .jsonl or .ndjson file, a row per player; or a folder, a pattern or "
        "the URL of Parquet files, which are read one after the other.",
    ),
]
System = Annotated[
    str,
    typer.Option(
        "--system", "-s", metavar="NAME", help="A system listed by `evenmatch systems`, or your own .py file."
    ),
]
Preset = Annotated[str | None, typer.Option("--preset", "-p", metavar="P", help="A named set of parameters.")]
Param = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="K=V", help="A parameter of the system, for example k=20; repeatable."),
]
Ladder = Annotated[str | None, typer.Option("--ladder", metavar="L", help="Only the matches of this ladder.")]
PoolLadders = Annotated[bool, typer.Option("--pool-ladders", help="Rate all ladders of the file as one.")]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="ISO 8601 or epoch seconds; later matches are left out."),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out bad matches and report their number, instead of stopping.")
]
TimeFormat = Annotated[
    str,
    typer.Option(
        "--time-format",
        metavar="FORMAT",
        help="Meaning of numbers in played_at: seconds, milliseconds, microseconds or nanoseconds since 1970, or "
        "spreadsheet (days).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


def rules_of(system: str, preset: str | None, params: list[str] | None) -> Rules:
    """The rules given by --system, --preset and --param."""
    from evenmatch.rating import rules

    return rules(system, preset, **values_of(params))


def values_of(params: list[str] | None, option: str = "--param", example: str = "k=20") -> dict[str, object]:
    """The values given by --param, or by another repeatable option, by name."""
    values: dict[str, object] = {}
    for text in params or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{option} {text}: expected NAME=VALUE, for example {example}")
        values[name.strip()] = value.strip()
    return values


def naming_value(error: typer.BadParameter) -> str:
    """The message of an error about an option, extended by the given value, which typer omits."""
    problems = getattr(error.__cause__, "errors", None)  # pydantic, which typer uses to parse values
    if problems is None:
        return error.message
    problem = problems()[0]
    value, limits = str(problem["input"]), problem.get("ctx", {})
    if "ge" in limits or "le" in limits:
        low, high = (getattr(error.param, end, None) for end in ("min", "max"))
        expected = f"a number from {low} {'upwards' if high is None else f'to {high}'}"
        return f"{value!r}; expected {expected}" if low is not None else f"{value!r}; expected at most {high}"
    return f"{value!r}: {error.message}"


def moment(
    text: str | None, option: str = "--as-of", expected: str = "ISO 8601, for example 2026-11-21T18:30:00Z"
) -> int | None:
    """Parse a time into microseconds since 1970. option, expected: what the UsageError names and would accept."""
    from evenmatch.tables.columns import parse_time
    from evenmatch.times import SECONDS, YEARS, is_plausible, likeness, misread

    if text is None:
        return None
    try:
        micros = parse_time(text)
        clause = misread(micros)
    except (ValueError, OverflowError):
        micros, clause = None, likeness(text).clause
    if micros is None or not is_plausible(micros):
        raise UsageError(f"{option} {text}{clause}: expected {expected}, in {YEARS}, or {SECONDS.accepted}")
    return micros


def matches_of(
    path: Path,
    ladder: str | None,
    pool: bool,
    skip_bad: bool,
    time_format: str,
    as_of: int | None = None,
) -> MatchTable:
    """Read the matches that the options select, with a progress bar; those later than `as_of` are left out."""
    from evenmatch.cli.shared.output import note, working
    from evenmatch.tables import read

    with working(f"reading {path.name}"):
        matches = read(path, skip_bad=skip_bad, time_format=time_format)
        if ladder is not None:
            matches = matches.on_ladder(ladder)
        if pool:
            matches = matches.pooled()
        if as_of is not None:
            included = matches.history.columns.time <= as_of
            if not included.any():
                raise UsageError("--as-of is before the first match; expected a time at or after it")
            if not included.all():
                note(f"{(~included).sum():,} matches later than --as-of are left out")
                matches = matches.take(included)
    return matches
