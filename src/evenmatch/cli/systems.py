"""evenmatch systems, learned and compile: the rating systems, what they learn, and their kernels."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, OnLadder, ladder_of, opened
from evenmatch.cli.shared.options import argument, option
from evenmatch.cli.shared.output import compile_ahead, note, note_skipped, print_json, print_table, working
from evenmatch.cli.shared.reading import NO_READING, Reading, reads_matches
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.lab.ladder.learning import LearnedAt
    from evenmatch.systems.system import Rules, System
    from evenmatch.tables import MatchTable


def systems(
    name: Annotated[str | None, argument("[NAME]", "A system or your own .py file. Default: all systems.")] = None,
    json: options.Json = False,
) -> None:
    """List the rating systems, or show the parameters, presets, required data and source of one.

    Examples:
    evenmatch systems
    evenmatch systems wager
    """
    from evenmatch.systems import find, names
    from evenmatch.systems.system import system_as_data

    if name is None:
        listed = [find(system_name) for system_name in names()]
        if json:
            print_json([system_as_data(system) for system in listed])
        else:
            rows = [[system.name, system.title, ", ".join(system.presets) or "–"] for system in listed]
            print_table(
                "Rating systems (evenmatch systems NAME shows details)", ("name", "what it does", "presets"), rows
            )
        return
    system = find(name)
    if json:
        print_json(system_as_data(system))
    else:
        _print_system(system)


def _print_system(system: System) -> None:
    from evenmatch.options import options_of, shown

    print(f"{system.name}: {system.title}\n")
    print(f"needs   {system.needs}\nsource  {system.source}\n")
    rows = [
        [name, shown(option.default), option.meaning, option.accepts]
        for name, option in options_of(system.parameters).items()
    ]
    print_table("Parameters (--param NAME=VALUE)", ("name", "default", "meaning", "accepted"), rows)
    presets = [
        [name, ", ".join(f"{k}={shown(v)}" for k, v in values.items())] for name, values in system.presets.items()
    ]
    print_table("Presets (--preset NAME)", ("name", "parameters"), presets)
    factors = [
        [factor.name, factor.meaning + (f": {', '.join(factor.labels)}" if factor.labels else "")]
        for factor in system.factors
    ]
    print_table("Factors of a change (--journal, evenmatch explain)", ("name", "meaning"), factors)


@reads_matches
def learned(
    matches: Annotated[Path | None, argument("MATCHES", "A file of recorded matches, instead of a ladder.")] = None,
    system: Annotated[str | None, option("--system, -s NAME", "With MATCHES: a system that learns.")] = None,
    preset: options.Preset = None,
    param: options.Param = None,
    pool_ladders: options.PoolLadders = False,
    skip_bad: options.SkipBad = False,
    reading: Reading = NO_READING,
    ladder: OnLadder = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Show what a rating system has learned about a ladder, in rating points, after each quarter of its matches.

    The output shows what the first side, an extra player and experience are worth, where newcomers start, how much
    margins of victory count, and how far each of the system's experts is trusted.

    Examples:
    evenmatch learned season.csv
    evenmatch learned --ladder arena
    """
    if matches is None:
        options.check_no_file_options(system, preset, param, pool_ladders, skip_bad, reading.is_given)
        from evenmatch.corrections.ladder_history import read_history

        with opened(db) as service, working("reading the ladder"):
            history = read_history(service.database, ladder_of(service, ladder))
        recorded, by = history.matches, history.rules
        for text in history.notes:
            note(text)
    else:
        by = options.rules_of(system or "even", preset, param)
        recorded = options.matches_of(matches, ladder, pool_ladders, skip_bad, reading)
        note_skipped(recorded.skipped, recorded.skipped_matches)
    moments = _learn(recorded, by)
    if json:
        print_json(moments)
    else:
        _print_learned(moments, by)


def _learn(recorded: MatchTable, by: Rules) -> list[LearnedAt]:
    from evenmatch.lab.ladder.learning import learned_over_time

    options.check_one_ladder(recorded)
    with working(f"rating with {by.system.name}", len(recorded)) as progress:
        return learned_over_time(recorded, by, progress)


def _print_learned(moments: list[LearnedAt], by: Rules) -> None:
    from evenmatch.lab.ladder.learning import shown_number

    heads = ["", *(f"after {moment.matches:,}" for moment in moments)]
    rows = [
        [numbers[-1].meaning, *(shown_number(number) for number in numbers)]
        for numbers in zip(*(moment.numbers for moment in moments), strict=True)
    ]
    print_table(f"Learned by {by.system.name}, in points and shares (95 % interval)", heads, rows, right=heads[1:])


def compile_(
    systems: Annotated[list[str] | None, argument("[SYSTEM]...", "Systems or .py files. Default: everything.")] = None,
) -> None:
    """Compile the rating systems, the matchmaker and the lab's measures. This takes about two minutes on one core.

    numba stores the machine code in the folder NUMBA_CACHE_DIR, or beside the sources if that is not set. Later
    processes load it if they use the same folder, versions and type of processor. NUMBA_CPU_NAME=generic produces code
    for every processor of the architecture. Parts that are already compiled for this processor are skipped.

    Examples:
    evenmatch compile
    evenmatch compile wager my_system.py
    """
    from evenmatch.kernel_cache import ignore_installed
    from evenmatch.operations.kernels import MATCHMAKER, in_context, missing
    from evenmatch.systems import find, names

    ignore_installed()
    learning = [in_context(name) for name in names() if find(name).offset is not None]
    parts = [*names(), *learning, *MATCHMAKER] if systems is None else systems
    folder = _checked_folder()
    compile_ahead(parts, "everything" if systems is None else ", ".join(parts))
    if systems is None:
        from evenmatch.lab.backtests.evaluation import compile_measures

        with working("compiling the measures of the lab"):
            compile_measures()
    if lacking := missing(parts):
        raise UsageError(f"could not compile {lacking[0]}; `evenmatch rate … --system {lacking[0]}` shows its error")
    print(f"compiled {len(parts)} parts into {folder}")


def _checked_folder() -> str:
    """The folder of the cache. Raises UsageError if numba cannot write to any."""
    from evenmatch.matchmaking.passes import make_matches

    folder: str | None = make_matches.stats.cache_path  # type: ignore[attr-defined]
    if folder is None:
        named = os.environ.get("NUMBA_CACHE_DIR", "a folder")
        raise UsageError(f"compiled kernels cannot be kept; expected NUMBA_CACHE_DIR={named} to be writable")
    return folder
