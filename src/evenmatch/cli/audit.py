"""evenmatch audit: what unfair conduct earns under each rating system."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, opened
from evenmatch.cli.shared.options import OnCluster, on_all_nodes, option, workers_of
from evenmatch.cli.shared.output import compile_ahead, note, print_json, print_table, printable, working
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.lab.backtests.workers import Workers
    from evenmatch.lab.fairness.audit import Audit, AuditPlan, Contestant

HEADS = ("system", "behaviour", "game", "dose", "percentiles", "interval", "per hour", "team-mates", "rivals")


def command(
    system: Annotated[str, option("--system, -s NAMES", "Rating systems or .py files, separated by commas.")] = "all",
    behaviour: Annotated[str, option("--behaviour, -b NAMES", "Behaviours or .py files, separated by commas.")] = "all",
    preset: Annotated[str | None, option("--preset NAME", "Audit this preset of the system.")] = None,
    param: Annotated[list[str] | None, option("--param NAME=VALUE", "A parameter of the system; repeatable.")] = None,
    game: Annotated[str | None, option("--game NAME", "The game, instead of each behaviour's own.")] = None,
    dose: Annotated[float | None, option("--dose D", "The dose, instead of the best one.", low=0, high=1)] = None,
    seeds: Annotated[str, option("--seeds FIRST:LAST", "Seeds of the measured seasons.")] = "101:112",
    players: Annotated[int, option("--players N", "Players of a season.", low=20)] = 240,
    matches: Annotated[int, option("--matches N", "Matches of a season, approximately.", low=1)] = 2000,
    policy: Annotated[str, option("--policy NAME", "Policy of the matchmaker.")] = "balanced",
    report: Annotated[Path | None, option("--report FILE", "Write the report as one .html file.")] = None,
    keep: Annotated[
        Path | None, option("--keep FILE", "File of finished seasons. Default: beside the report, or none.")
    ] = None,
    ladder: Annotated[
        str | None, option("--ladder, -l NAME", "List accounts of this ladder that look like a behaviour, instead.")
    ] = None,
    db: Db = DATABASE,
    cluster: OnCluster = None,
    json: options.Json = False,
) -> None:
    """Measure what quitting, boosting, smurfing and other conduct earns under each rating system.

    For every system and behaviour, the same players play the same simulated seasons twice: once honestly, once by the
    behaviour. The result is what they gain in percentiles at the most profitable dose, and what that costs the others.
    Run an interrupted audit again to continue it: finished seasons are kept.

    Examples:
    evenmatch audit --system all --report fairness.html
    evenmatch audit --system wager,elo --behaviour rage_quitter,booster_crew
    evenmatch audit --system wager --preset article --behaviour early_quitter --dose 0.5
    evenmatch audit --ladder arena --db game.db
    """
    if ladder is not None:
        _suspects(ladder, db, as_json=json)
        return
    from evenmatch.lab.fairness.audit import AuditPlan, Kept, audit
    from evenmatch.lab.seasons.season import SeasonSettings

    measured = _seeds(seeds)
    plan = AuditPlan(
        contestants=_contestants(system, preset, param or []),
        behaviours=_behaviours(behaviour),
        settings=SeasonSettings(players=players, matches=matches, policy=policy),
        game=_game(game),
        doses=None if dose is None else (dose,),
        search=() if dose is not None else AuditPlan.search,
        measured=measured,
    )
    if report is not None:
        from evenmatch.tables.files import check_folder

        check_folder(report)
        keep = report.with_suffix(".seasons.jsonl") if keep is None else keep
    compile_ahead([contestant.system for contestant in plan.contestants], "rating systems")
    try:
        with _workers(cluster, plan) as workers, working("seasons", 1000) as progress:
            found = audit(plan, workers, Kept(keep), lambda done, total: progress(1000 * done // total))
    except KeyboardInterrupt:
        note("interrupted; " + (f"{keep} keeps the finished seasons" if keep else "with --keep, seasons are kept"))
        raise typer.Exit(130) from None
    if report is not None:
        from evenmatch.lab.fairness.report import write_audit_report

        write_audit_report(found, report, command=shlex.join(["evenmatch", *sys.argv[1:]]))
    _show(found, as_json=json)
    if report is not None:
        note(f"{report}: written")


@contextmanager
def _workers(cluster: str | None, plan: AuditPlan) -> Iterator[Workers]:
    from evenmatch.lab.backtests.workers import Processes

    with workers_of(cluster, [on_all_nodes(contestant.system) for contestant in plan.contestants]) as workers:
        if workers is not None:
            yield workers
            return
        with Processes() as processes:
            try:
                yield processes
            except BaseException:
                processes.shutdown(wait=False, cancel_futures=True)
                raise


def _contestants(listed: str, preset: str | None, params: list[str]) -> tuple[Contestant, ...]:
    from evenmatch import systems
    from evenmatch.lab.fairness.audit import Contestant

    names = systems.names() if listed.lower() == "all" else [name.strip() for name in listed.split(",") if name.strip()]
    if (preset or params) and len(names) > 1:
        raise UsageError("--preset and --param need one --system; expected its name")
    changed = []
    for text in params:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--param {text}: expected NAME=VALUE, for example k=20")
        changed.append((name.strip(), value.strip()))
    found = tuple(Contestant(name, preset, tuple(changed)) for name in names)
    for contestant in found:
        contestant.rules  # noqa: B018 - raises for a wrong name or value before the long run
    return found


def _behaviours(listed: str) -> tuple[str, ...]:
    from evenmatch.lab import behaviours
    from evenmatch.lab.fairness.audit import HONEST

    if listed.lower() == "all":
        return tuple(name for name in behaviours.names() if name != HONEST)
    names = tuple(name.strip() for name in listed.split(",") if name.strip())
    for name in names:
        behaviours.find(name)
    return names


def _game(name: str | None) -> str | None:
    from evenmatch.lab.seasons.games import find_game

    return None if name is None else find_game(name).name


def _seeds(text: str) -> tuple[int, ...]:
    first, _, last = text.partition(":")
    try:
        found = tuple(range(int(first), int(last or first) + 1))
    except ValueError:
        found = ()
    if not found or found[0] < 0:
        raise UsageError(f"--seeds {text}: expected FIRST:LAST, for example 101:112")
    return found


def _suspects(ladder: str, db: str, *, as_json: bool) -> None:
    """Print the accounts of a recorded ladder that deserve a look."""
    from evenmatch.corrections.ladder_history import read_history
    from evenmatch.lab.fairness.suspects import ladder_suspects

    with opened(db) as service:
        history = read_history(service.database, ladder)
    with working("comparing with honest seasons", 1000) as progress:
        found = ladder_suspects(history.matches, history.rules, lambda share: progress(int(1000 * share)))
    names = history.matches.player.to_pylist()
    if as_json:
        listed = [one._asdict() | {"account": names[one.account]} for one in found]
        print_json({"ladder": ladder, "matches": len(history.matches), "suspects": listed})
        return
    if not found:
        print(f"{printable(ladder)}: no account stands out, of {len(names):,} in {len(history.matches):,} matches")
        return
    rows = [[names[one.account], one.kind, f"{one.false_alarms:.2%}", one.evidence] for one in found]
    title = f"{ladder}: accounts to look into; a false alarm is an honest account with as high a score"
    print_table(title, ("account", "looks like", "false alarms", "evidence"), rows, right=("false alarms",))


def _show(found: Audit, *, as_json: bool) -> None:
    if as_json:
        print_json({"cells": [cell.to_data(found.plan) for cell in found.cells]})
        return
    rows = [
        [
            str(cell.contestant),
            cell.behaviour,
            cell.game,
            f"{cell.dose:g}",
            f"{cell.percentile.mean:+.1f}",
            f"{cell.percentile.low:+.1f} to {cell.percentile.high:+.1f}",
            f"{cell.per_hour.mean:+.3f}",
            f"{cell.mates.mean:+.0f}",
            f"{cell.rivals.mean:+.0f}",
        ]
        for cell in found.cells
    ]
    seasons = len(found.plan.measured)
    print_table(f"gained against honest play, over {seasons} pairs of seasons", HEADS, rows, right=HEADS[3:])
    for cell in found.cells:
        if cell.percentile.is_gain:
            print(printable(cell.sentence))
