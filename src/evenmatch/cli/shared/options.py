"""Options that several commands share, and their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.models import ArgumentInfo, OptionInfo

from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.cli.shared.reading import Reading
    from evenmatch.cluster import Cluster
    from evenmatch.lab.backtests.workers import Workers
    from evenmatch.systems.system import Rules
    from evenmatch.tables import MatchTable


def option(
    declared: str,
    help_text: str,
    *,
    low: float | None = None,
    high: float | None = None,
    envvar: str | None = None,
    callback: Callable[[str | None], str | None] | None = None,
) -> OptionInfo:
    """Declare an option by its usage, such as "--system, -s NAME", its help, and the range of its number."""
    flags, metavar = [], declared
    while metavar.startswith("-"):
        flag, _, metavar = metavar.partition(" ")
        flags.append(flag.rstrip(","))
    declaration: OptionInfo = typer.Option(
        *flags, metavar=metavar or None, help=help_text, min=low, max=high, envvar=envvar, callback=callback
    )
    return declaration


def argument(metavar: str, help_text: str, *, low: float | None = None) -> ArgumentInfo:
    """Declare an argument by its name in the usage, its help, and its least number."""
    declaration: ArgumentInfo = typer.Argument(metavar=metavar, help=help_text, min=low)
    return declaration


Matches = Annotated[Path, argument("MATCHES", "Matches as .csv, .parquet, .jsonl or .ndjson, a row per player.")]
History = Annotated[
    str,
    argument(
        "MATCHES",
        "A .csv, .parquet, .jsonl or .ndjson file, a row per player; or a folder, pattern or URL of Parquet files.",
    ),
]
System = Annotated[str, option("--system, -s NAME", "A system listed by `evenmatch systems`, or your own .py file.")]
Preset = Annotated[str | None, option("--preset, -p P", "A named set of parameters.")]
Param = Annotated[list[str] | None, option("--param K=V", "A parameter of the system, for example k=20; repeatable.")]
Ladder = Annotated[str | None, option("--ladder L", "Only the matches of this ladder.")]
PoolLadders = Annotated[bool, option("--pool-ladders", "Rate all ladders of the file as one.")]
Context = Annotated[
    str | None,
    option(
        "--context NAMES",
        "Columns that say what a match was played on, such as map,mode; up to four. If the file calls one NAME, add "
        "map=NAME to --columns.",
    ),
]
AsOf = Annotated[str | None, option("--as-of TIME", "ISO 8601 or epoch seconds; later matches are left out.")]
SkipBad = Annotated[bool, option("--skip-bad", "Leave out bad matches and report their number, instead of stopping.")]
Json = Annotated[bool, option("--json", "Print one JSON document and nothing else.")]


def rules_of(system: str, preset: str | None, params: list[str] | None) -> Rules:
    """The rules given by --system, --preset and --param."""
    from evenmatch.rating import rules

    return rules(system, preset, **values_of(params))


def values_of(params: list[str] | None, option: str = "--param", example: str = "k=20") -> dict[str, str]:
    """The values given by --param, or by another repeatable option, by name."""
    values: dict[str, str] = {}
    for text in params or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{option} {text}: expected NAME=VALUE, for example {example}")
        values[name.strip()] = value.strip()
    return values


def check_no_file_options(*given: object) -> None:
    """Raise UsageError if an option for files was given without a file."""
    if any(given):
        raise UsageError(
            "--system, --preset, --param, --pool-ladders, --skip-bad, --columns, --time-format, --zone and --mapping "
            "apply to a file; name MATCHES"
        )


def check_one_ladder(recorded: MatchTable) -> None:
    """Raise UsageError if the matches are on several ladders."""
    if len(recorded.ladders) > 1:
        listed = ", ".join(sorted(recorded.ladders))
        raise UsageError(f"the file has the ladders {listed}; choose one with --ladder, or add --pool-ladders")


def naming_value(error: typer.BadParameter) -> str:
    """Return the message of an error about an option, with the given value, which typer omits."""
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
    """Parse a time into microseconds since 1970. option, expected: named in the UsageError."""
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


ENDS = "a span like 90d, 12h, 30m or 4w, or a future ISO 8601 time"
UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}  # seconds


def end(text: str | None, option: str, now: int) -> int | None:
    """Parse a future time, or a span that starts now, into microseconds since 1970. Raises UsageError."""
    if text is None:
        return None
    span = re.fullmatch(r"([1-9][0-9]{0,5})([mhdw])", text)
    if span is not None:
        return (-(-now // 1_000_000) + int(span[1]) * UNITS[span[2]]) * 1_000_000
    parsed = moment(text, option, ENDS)
    if parsed is None or parsed <= now:
        raise UsageError(f"{option} {text}: expected {ENDS}")
    return parsed


def matches_of(
    path: Path,
    ladder: str | None,
    pool: bool,
    skip_bad: bool,
    reading: Reading,
    as_of: int | None = None,
) -> MatchTable:
    """Read the matches that the options select, with a progress bar; those later than `as_of` are left out."""
    from evenmatch.cli.shared.files import matches_in
    from evenmatch.cli.shared.output import note

    matches = matches_in(path, None, skip_bad, reading)
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


OnCluster = Annotated[str | None, option("--cluster ADDRESS", "HOST:PORT of a Ray cluster's head node, or local.")]


def on_all_nodes(system: str) -> str:
    """Return a name under which all nodes find a system; a file is named by its whole path."""
    return str(Path(system).resolve()) if system.lower().endswith(".py") else system


def no_cluster(cluster: str | None, matches: str) -> None:
    """Raise UsageError for --cluster with a single file, which one process rates."""
    if cluster is not None:
        raise UsageError(
            f"--cluster: {matches} is one file, rated by one process; expected a folder or URL of partitions"
        )


@contextmanager
def connected(address: str, systems: Sequence[str]) -> Iterator[Cluster]:
    """Connect to the cluster of --cluster and compare its nodes with this machine.

    systems  all that will be used, as `systems.find` takes them
    """
    from evenmatch.cli.shared.output import working
    from evenmatch.cluster import connect

    with ExitStack() as stack:
        with working(f"connecting to the cluster {address}"):
            cluster = stack.enter_context(connect(address, systems))
        yield cluster


@contextmanager
def workers_of(address: str | None, systems: Sequence[str]) -> Iterator[Workers | None]:
    """Yield the workers of a cluster, or None without --cluster, which means threads."""
    if address is None:
        yield None
        return
    from evenmatch.cluster.tasks import executor_of

    with connected(address, systems) as cluster, executor_of(cluster) as workers:
        yield workers
