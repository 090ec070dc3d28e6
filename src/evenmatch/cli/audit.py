"""evenmatch audit: what unfair conduct earns under each rating system, what cures it, and who looks suspicious."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, opened
from evenmatch.cli.shared.derived_options import with_options
from evenmatch.cli.shared.options import OnCluster, argument, on_all_nodes, option, workers_of
from evenmatch.cli.shared.output import compile_ahead, note, print_json, print_table, printable, working
from evenmatch.errors import UnknownNameError, UsageError
from evenmatch.lab.seasons.settings import SeasonSettings
from evenmatch.options import options_of

if TYPE_CHECKING:
    from evenmatch.lab.backtests.workers import Workers
    from evenmatch.lab.fairness.audit import Audit, AuditPlan, Contestant, Kept

GAINS = ("system", "behaviour", "game", "dose", "percentiles", "interval", "per hour", "team-mates", "rivals")
CHANGES = ("system", "changed", "percentiles", "interval", "rivals", "log loss", "wait", "no match", "closes it", "")
POLICIES = ("policy", "still there", "interval", "weakest fifth", "strongest", "matches a week", "wait", "no match")
HEALTH = ("system", "rank correlation", "mean per 1,000", "median per 1,000", "at the floor", "newcomers", "slope")
NEWCOMERS = ("duel", "team", "squad", "arena")
FITS = ("what", "where", "recorded", "simulated", "distance")
SEEDS_AT_MOST = 1000
STEPS = 1000  # of the progress bar
CHOSEN = {name: option for name, option in options_of(SeasonSettings).items() if name not in {"game", "seed"}}
Report = Callable[[int, int], None]  # seasons done, and all


@with_options(CHOSEN, panel="Season")
def command(
    part: Annotated[str, argument("[PART]", "behaviours, invariants, health, cures, policies or fits.")] = "behaviours",
    *,
    system: Annotated[str, option("--system, -s NAMES", "Rating systems or .py files, separated by commas.")] = "all",
    behaviour: Annotated[str, option("--behaviour, -b NAMES", "Behaviours or .py files, separated by commas.")] = "all",
    preset: Annotated[str | None, option("--preset NAME", "Audit this preset of the system.")] = None,
    param: Annotated[list[str] | None, option("--param NAME=VALUE", "A parameter of the system; repeatable.")] = None,
    game: Annotated[str | None, option("--game NAME", "The game, instead of each behaviour's own.")] = None,
    dose: Annotated[float | None, option("--dose D", "The dose, instead of the best one.", low=0, high=1)] = None,
    seeds: Annotated[str, option("--seeds FIRST:LAST", "Seeds of the measured seasons.")] = "101:112",
    compared: Annotated[
        int | None, option("--compared N", "Cells that intervals are corrected for. Default: all of this audit.", low=1)
    ] = None,
    report: Annotated[Path | None, option("--report FILE", "Write the audit of behaviours as one .html file.")] = None,
    keep: Annotated[
        Path | None, option("--keep FILE", "File of finished seasons. Default: beside the report, or none.")
    ] = None,
    vary: Annotated[str, option("--vary NAMES", "Cures to try: parameters, preset, rules. Default: all of them.")] = "",
    data: Annotated[Path | None, option("--data FOLDER", "Folder of recorded matches, for `fits`.")] = None,
    ladder: Annotated[
        str | None, option("--ladder, -l NAME", "Instead, list accounts of this ladder that look like a behaviour.")
    ] = None,
    cluster: OnCluster = None,
    db: Db = DATABASE,
    json: options.Json = False,
    changes: dict[str, object],
) -> None:
    """Measure what quitting, boosting, smurfing and other conduct earns under each rating system.

    For every system and behaviour, the same players play the same simulated seasons twice: once honestly, once by the
    behaviour. The result is what they gain in percentiles at the most profitable dose, and what that costs the others.
    Run an interrupted audit again to continue it: with --report or --keep, finished seasons are kept.

    `audit invariants` searches for the smallest match in which a system breaks a promise, such as that staying is never
    worse than quitting. `audit health` shows how soon ratings find the truth and whether they inflate. `audit cures`
    tries other parameters of a system, and other rules of the ladder, against one behaviour. `audit policies`
    compares matchmaking policies by the players who are still there after a month. `audit fits` fits the games to
    recorded matches again.

    Examples:
    evenmatch audit --system all --report fairness.html
    evenmatch audit --system wager,elo --behaviour rage_quitter,booster_crew
    evenmatch audit invariants --system wager --preset article
    evenmatch audit cures --system wager --behaviour stacker --vary stake,rules
    evenmatch audit policies --system elo
    evenmatch audit --ladder arena --db game.db
    """
    if ladder is not None:
        _suspects(ladder, db, as_json=json)
        return
    if part == "fits":
        _fits(data, as_json=json)
        return
    if part not in PARTS:
        raise UnknownNameError("part of an audit", part, (*PARTS, "fits"))
    plan = _plan(_contestants(system, preset, param or []), _behaviours(behaviour), game, dose, seeds, changes)
    plan = replace(plan, compared=compared)
    keep = _checked(part, report, keep)
    compile_ahead([contestant.system for contestant in plan.contestants], "rating systems")
    from evenmatch.lab.fairness.audit import Kept

    try:
        with _workers(cluster, plan) as workers, working("seasons", STEPS) as progress:
            measure = partial(_of_cures, vary=vary) if part == "cures" else PARTS[part]
            show = measure(plan, workers, Kept(keep), lambda done, total: progress(STEPS * done // total))
    except KeyboardInterrupt:
        note("interrupted; " + (f"{keep} keeps the finished seasons" if keep else "with --keep, seasons are kept"))
        raise typer.Exit(130) from None
    show(json, report)


def _checked(part: str, report: Path | None, keep: Path | None) -> Path | None:
    """The file of finished seasons. Raises UsageError before the long run if a file cannot be written."""
    from evenmatch.tables.files import check_folder

    if report is not None:
        if part != "behaviours":
            raise UsageError(f"--report {report}: only the audit of behaviours writes a report; try --json")
        if report.suffix.lower() not in {".html", ".htm"}:
            raise UsageError(f"--report {report}: expected a file name that ends in .html")
        check_folder(report)
        keep = report.with_suffix(".seasons.jsonl") if keep is None else keep
    if keep is not None:
        check_folder(keep)
    return keep


def _plan(
    contestants: tuple[Contestant, ...],
    behaviours: tuple[str, ...],
    game: str | None,
    dose: float | None,
    seeds: str,
    changes: dict[str, object],
) -> AuditPlan:
    from evenmatch.lab.fairness.audit import AuditPlan
    from evenmatch.lab.seasons.games import find_game

    measured = _seeds(seeds)
    plan = AuditPlan(contestants=contestants, behaviours=behaviours, measured=measured)
    others = (seed for seed in count(1) if seed not in measured)
    plan = replace(plan, search=tuple(islice(others, len(plan.search))))
    settings = replace(plan.settings, **changes)  # type: ignore[arg-type]  # as declared
    game = None if game is None else find_game(game).name
    if dose is None:
        return replace(plan, settings=settings, game=game)
    return replace(plan, settings=settings, game=game, doses=(dose,), search=())


def _contestants(listed: str, preset: str | None, params: list[str]) -> tuple[Contestant, ...]:
    from evenmatch import systems
    from evenmatch.lab.fairness.audit import Contestant

    names = systems.names() if listed.lower() == "all" else _names(listed, "--system")
    if (preset or params) and len(names) > 1:
        raise UsageError("--preset and --param are those of one system; expected --system NAME")
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
    names = _names(listed, "--behaviour")
    for name in names:
        behaviours.find(name)
    return tuple(names)


def _names(listed: str, flag: str) -> list[str]:
    """The names of a list, each once."""
    names = list(dict.fromkeys(name.strip() for name in listed.split(",") if name.strip()))
    if not names:
        raise UsageError(f"{flag} {listed!r}: expected one or more names, separated by commas, or all")
    return names


def _seeds(text: str) -> tuple[int, ...]:
    first, _, last = text.partition(":")
    try:
        found = range(int(first), int(last or first) + 1)
    except ValueError:
        found = range(0)
    if not 0 < len(found) <= SEEDS_AT_MOST or found[0] < 0:
        raise UsageError(f"--seeds {text}: expected FIRST:LAST, for example 101:112, and at most {SEEDS_AT_MOST} seeds")
    return tuple(found)


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


Show = Callable[[bool, Path | None], None]  # (as JSON, report)


def _of_behaviours(plan: AuditPlan, workers: Workers, kept: Kept, progress: Report) -> Show:
    from evenmatch.lab.fairness.audit import audit

    found = audit(plan, workers, kept, progress)

    def show(as_json: bool, report: Path | None) -> None:
        if report is not None:
            from evenmatch.lab.fairness.report import write_audit_report

            write_audit_report(found, report, command=shlex.join(["evenmatch", *sys.argv[1:]]))
        _print_gains(found, as_json=as_json)
        if report is not None:
            note(f"{report}: written")

    return show


def _print_gains(found: Audit, *, as_json: bool) -> None:
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
            cell.percentile.between(),
            f"{cell.per_hour.mean:+.3f}",
            f"{cell.mates.mean:+.0f}",
            f"{cell.rivals.mean:+.0f}",
        ]
        for cell in found.cells
    ]
    title = f"gained against honest play, over {len(found.plan.measured)} pairs of seasons"
    print_table(title, GAINS, rows, right=GAINS[3:])
    for cell in found.cells:
        if cell.percentile.is_gain:
            print(printable(cell.sentence))


def _of_cures(plan: AuditPlan, workers: Workers, kept: Kept, progress: Report, vary: str = "") -> Show:
    from evenmatch.lab.fairness.cures import RULES, cures

    if len(plan.behaviours) != 1:
        raise UsageError("audit cures: expected one --behaviour")
    parameters = [name for contestant in plan.contestants for name in options_of(contestant.rules.system.parameters)]
    varied, known = _names(vary, "--vary") if vary else [], ("preset", "rules", *RULES, *parameters)
    if unknown := [name for name in varied if name not in known]:
        raise UnknownNameError("cure", unknown[0], known)
    found = cures(plan, workers, kept, progress, varied)

    def show(as_json: bool, report: Path | None) -> None:
        if as_json:
            print_json({"cures": [cure.to_data() for cure in found]})
            return
        rows = [
            [
                str(cure.contestant),
                cure.changed,
                f"{cure.gain.mean:+.1f}",
                cure.gain.between(),
                f"{cure.rivals:+.0f}",
                f"{cure.log_loss:+.4f}",
                f"{cure.wait:+.0f} s",
                f"{cure.unmatched:+.0%}",
                "yes" if cure.closes else "",
                "best" if cure.is_best else "",
            ]
            for cure in found
        ]
        title = f"{plan.behaviours[0]}: percentiles gained, and what each change costs"
        print_table(title, CHANGES, rows, right=CHANGES[2:8])

    return show


def _of_policies(plan: AuditPlan, workers: Workers, kept: Kept, progress: Report) -> Show:
    from evenmatch.lab.fairness.retention import compare_policies
    from evenmatch.policy import presets

    if len(plan.contestants) != 1:
        raise UsageError("audit policies: expected one --system, by whose ratings players are matched")
    settings = replace(plan.settings, weeks=max(plan.settings.weeks, 5.0), leaving=plan.settings.leaving or 1.0)
    settings = replace(settings, game=plan.game or settings.game)
    names = list(presets())
    found = compare_policies(names, plan.contestants[0], settings, plan.measured, workers, progress)

    def show(as_json: bool, report: Path | None) -> None:
        if as_json:
            print_json({"policies": [one.to_data() for one in found]})
            return
        rows = [
            [
                one.policy,
                f"{one.kept.mean:.1%}",
                one.kept.between(".1%"),
                f"{one.by_skill[0]:.1%}",
                f"{one.by_skill[-1]:.1%}",
                f"{one.matches:.1f}",
                f"{one.wait:.0f} s",
                f"{one.unmatched:.1%}",
            ]
            for one in found
        ]
        title = f"players who are still there after a month, over {len(plan.measured)} seasons"
        print_table(title, POLICIES, rows, right=POLICIES[1:])

    return show


def _of_invariants(plan: AuditPlan, workers: Workers, kept: Kept, progress: Report) -> Show:
    from evenmatch.lab.fairness.invariants import INVARIANTS, search

    searches = [(contestant, invariant) for contestant in plan.contestants for invariant in INVARIANTS.values()]
    found = []
    for done, (contestant, invariant) in enumerate(searches, 1):
        found.append((contestant, search(contestant.rules, invariant)))
        progress(done, len(searches))

    def show(as_json: bool, report: Path | None) -> None:
        if as_json:
            print_json({"invariants": [{"system": str(by), **finding.to_data()} for by, finding in found]})
            return
        for by, finding in found:
            print(printable(f"{by}: “{finding.invariant.sentence}”"))
            print(f"    {printable(finding.sentence)}")

    return show


def _of_health(plan: AuditPlan, workers: Workers, kept: Kept, progress: Report) -> Show:
    from evenmatch.lab.fairness.audit import HONEST, game_of
    from evenmatch.lab.fairness.health import newcomer_table, season_health

    settings = replace(plan.settings, game=plan.game or plan.settings.game)
    plan = replace(plan, game=settings.game)
    rated = [contestant for contestant in plan.contestants if game_of(plan, contestant, HONEST)]
    futures = [workers.submit(season_health, contestant, settings) for contestant in rated]
    measured = {contestant: future.result() for contestant, future in zip(rated, futures, strict=True)}
    table = newcomer_table(plan.contestants, workers, progress=progress)

    def show(as_json: bool, report: Path | None) -> None:
        if as_json:
            seasons = {str(by): season.to_data() for by, season in measured.items()}
            found = {str(by): {game: one.to_data() for game, one in games.items()} for by, games in table.items()}
            print_json({"seasons": seasons, "newcomers": found})
            return
        rows = [[str(by), *season.as_shown()] for by, season in measured.items()]
        print_table(f"a season of the game {settings.game}", HEALTH, rows, right=HEALTH[1:])
        print_table(
            "matches until newcomers are within 5 percentiles of the truth on average",
            ("system", *NEWCOMERS),
            [[str(by), *(games[g].shown if g in games else "–" for g in NEWCOMERS)] for by, games in table.items()],
            right=NEWCOMERS,
        )

    return show


def _fits(data: Path | None, *, as_json: bool) -> None:
    """Print the games as fitted to recorded matches, beside the numbers in use, and recorded beside simulated."""
    from evenmatch.lab.seasons.fitting import fits

    if data is None or not data.is_dir():
        raise UsageError("audit fits: expected --data FOLDER, the folder of the recorded matches")
    with working("fitting games") as progress:
        found = fits(data, lambda name: progress(0, f"fitting {name}"))
    if as_json:
        print_json({name: one.to_data() for name, one in found.items()})
        return
    for name, one in found.items():
        rows = [
            [row.topic, row.at, f"{row.recorded:.3g}", f"{row.simulated:.3g}", f"{row.distance:.3f}"]
            for row in one.comparison
        ]
        print_table(f"{name}: recorded beside simulated", FITS, rows, right=FITS[2:])


PARTS = {
    "behaviours": _of_behaviours,
    "invariants": _of_invariants,
    "health": _of_health,
    "cures": _of_cures,
    "policies": _of_policies,
}


def _suspects(ladder: str, db: str, *, as_json: bool) -> None:
    """Print the accounts of a recorded ladder that deserve a look."""
    from evenmatch.corrections.ladder_history import read_history
    from evenmatch.lab.fairness.suspects import ladder_suspects

    with opened(db) as service:
        history = read_history(service.database, ladder)
    with working("comparing with honest seasons", STEPS) as progress:
        found = ladder_suspects(history.matches, history.rules, lambda share: progress(int(STEPS * share)))
    names = history.matches.player.to_pylist()
    if as_json:
        listed = [one._asdict() | {"account": names[one.account]} for one in found]
        print_json({"ladder": ladder, "matches": len(history.matches), "suspects": listed})
        return
    if not found:
        print(f"{printable(ladder)}: no account stands out, of {len(names):,} in {len(history.matches):,} matches")
        return
    rows = [[names[one.account], one.kind, f"{one.false_alarms:.2%}", one.evidence] for one in found]
    title = f"{ladder}: accounts to look into; false alarms: the share of honest accounts with as high a score"
    print_table(title, ("account", "looks like", "false alarms", "evidence"), rows, right=("false alarms",))
