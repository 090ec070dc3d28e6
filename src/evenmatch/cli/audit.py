"""evenmatch audit: what unfair conduct earns under each rating system, what cures it, and which accounts to look at."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count, islice
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, opened
from evenmatch.cli.shared.derived_options import with_options
from evenmatch.cli.shared.options import OnCluster, argument, on_all_nodes, option, values_of, workers_of
from evenmatch.cli.shared.output import compile_ahead, note, print_json, print_table, printable, working
from evenmatch.errors import UnknownNameError, UsageError
from evenmatch.lab.seasons.settings import SeasonSettings
from evenmatch.options import options_of
from evenmatch.times import iso_time

if TYPE_CHECKING:
    from evenmatch.corrections.ladder_history import LadderHistory
    from evenmatch.lab.backtests.workers import Workers
    from evenmatch.lab.fairness.audit import AuditPlan, Contestant, Kept, Progress

# The columns of the tables, each with the format of its cells; all but plain ones are aligned to the right.
GAINS = {"system": "{}", "behaviour": "{}", "game": "{}", "dose": "{:g}", "percentiles": "{:+.1f}", "interval": "{:>}"}
GAINS |= {"per hour": "{:+.3f}", "team-mates": "{:+.0f}", "rivals": "{:+.0f}"}
CHANGES = {"system": "{}", "changed": "{}", "percentiles": "{:+.1f}", "interval": "{:>}", "rivals": "{:+.0f}"}
CHANGES |= {"log loss": "{:+.4f}", "wait": "{:+.0f} s", "no match": "{:+.0%}", "closes it": "{}", "": "{}"}
POLICIES = {"policy": "{}", "still there": "{:.1%}", "interval": "{:>}", "weakest fifth": "{:.1%}"}
POLICIES |= {"strongest": "{:.1%}", "matches a week": "{:.1f}", "wait": "{:.0f} s", "no match": "{:.1%}"}
HEALTH = {"system": "{}", "rank correlation": "{:.3f}", "mean per 1,000": "{:+.3g}", "median per 1,000": "{:+.3g}"}
HEALTH |= {"at the floor": "{:.0%}", "newcomers": "{:+.0f}", "slope": "{:.2f}"}
NEWCOMERS = ("duel", "team", "squad", "arena")
PERIODS = {"matches": "{:,}", "players": "{:,}", "mean": "{:.1f}", "median": "{:.1f}", "at_floor": "{:.1%}"}
PERIODS |= {"drawn": "{:.1%}", "quit": "{:.1%}", "given": "{:.1%}", "scored": "{:.1%}"}  # of a recorded ladder
FITS = {"what": "{}", "where": "{}", "recorded": "{:.3g}", "simulated": "{:.3g}", "distance": "{:.3f}"}
SUSPECTS = {"account": "{}", "looks like": "{}", "evidence": "{}", "how rare": "{}"}
SEEDS_AT_MOST = 1000
STEPS = 1000  # of the progress bar
CHOSEN = {name: option for name, option in options_of(SeasonSettings).items() if name not in {"game", "seed"}}


class Run(NamedTuple):
    """What a part of an audit works with.

    report  the file that the audit of behaviours writes;  vary  the changes that `cures` tries, as in the option
    """

    plan: AuditPlan
    workers: Workers
    kept: Kept
    progress: Progress
    report: Path | None
    vary: str


class Table(NamedTuple):
    """A table to print. columns: heads and formats; a value that is None or NaN is shown as a dash."""

    title: str
    columns: Mapping[str, str]
    rows: Iterable[Sequence[object]]


class Answer(NamedTuple):
    """The result of a part: a document for --json, or tables followed by lines."""

    document: Mapping[str, object]
    tables: Sequence[Table] = ()
    lines: Sequence[str] = ()

    def show(self, *, as_json: bool) -> None:
        """Print it."""
        if as_json:
            print_json(self.document)
            return
        for title, columns, rows in self.tables:
            shown = [[_cell(*pair) for pair in zip(columns.values(), row, strict=True)] for row in rows]
            print_table(title, list(columns), shown, right=[head for head, form in columns.items() if form != "{}"])
        for line in self.lines:
            print(printable(line))


def _cell(form: str, value: object) -> str | None:
    is_missing = value is None or (isinstance(value, float) and isnan(value))
    return None if is_missing else form.format(value)


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
        int | None,
        option("--compared N", "Cells that intervals are corrected for. Default: all of this audit.", low=1),
    ] = None,
    report: Annotated[Path | None, option("--report FILE", "Write the audit of behaviours to an .html file.")] = None,
    keep: Annotated[
        Path | None, option("--keep FILE", "File of finished seasons. Default: beside the report, or none.")
    ] = None,
    vary: Annotated[str, option("--vary NAMES", "Cures to try: parameters, preset, rules. Default: all of them.")] = "",
    data: Annotated[Path | None, option("--data FOLDER", "Folder of recorded matches, for `fits`.")] = None,
    ladder: Annotated[
        str | None,
        option("--ladder, -l NAME", "List suspicious accounts of this ladder, or measure its health."),
    ] = None,
    cluster: OnCluster = None,
    db: Db = DATABASE,
    json: options.Json = False,
    changes: dict[str, object],
) -> None:
    """Measure what quitting, boosting, smurfing and other conduct earns under each rating system.

    For every system and behaviour, the same players play the same simulated seasons twice: honestly, and following the
    behaviour. The result is their gain in percentiles at the most profitable dose, and the cost to everybody else.
    With --report or --keep, finished seasons are kept: run an interrupted audit again to continue it.

    `audit invariants` searches for the smallest match in which a system breaks a promise, such as "staying is never
    worse than quitting". `audit health` measures how soon ratings find the truth and whether they inflate. `audit
    cures` tries other parameters of a system, and other rules of the ladder, against one behaviour. `audit policies`
    compares matchmaking policies by the share of players they keep for a month. `audit fits` fits the simulated games
    to recorded matches again.

    With --ladder, the audit reads a recorded ladder and simulates nothing but a comparison: `audit` lists the accounts
    that look suspicious, and `audit health` measures inflation, leavers and odds over time.

    Examples:
    evenmatch audit --system all --report fairness.html
    evenmatch audit --system wager,elo --behaviour rage_quitter,booster_crew
    evenmatch audit invariants --system wager --preset article
    evenmatch audit cures --system wager --behaviour stacker --vary stake,rules
    evenmatch audit policies --system elo
    evenmatch audit --ladder arena --db game.db
    evenmatch audit health --ladder arena --db game.db
    """
    if part not in {*PARTS, "fits"}:
        raise UnknownNameError("part of an audit", part, (*PARTS, "fits"))
    keep = _checked(part, ladder, report, keep)
    if ladder is not None:
        _of_ladder(part, ladder, db).show(as_json=json)
        return
    if part == "fits":
        _of_fits(data).show(as_json=json)
        return
    named = _contestants(system, preset, param), _behaviours(behaviour)
    plan = replace(_plan(*named, game, dose, seeds, changes), compared=compared)
    compile_ahead([contestant.system for contestant in plan.contestants], "rating systems")
    from evenmatch.lab.fairness.audit import Kept

    try:
        with _workers(cluster, plan) as workers, working("seasons", STEPS) as progress:
            run = Run(plan, workers, Kept(keep), lambda done, total: progress(STEPS * done // total), report, vary)
            answer = PARTS[part](run)
    except KeyboardInterrupt:
        note("interrupted; " + (f"{keep} keeps the finished seasons" if keep else "with --keep, seasons are kept"))
        raise typer.Exit(130) from None
    answer.show(as_json=json)
    if report is not None:
        note(f"{report}: written")


def _checked(part: str, ladder: str | None, report: Path | None, keep: Path | None) -> Path | None:
    """The file of finished seasons. Raises UsageError before the long run for files and parts that do not fit."""
    from evenmatch.tables.files import check_folder

    if ladder is not None and part not in {"behaviours", "health"}:
        raise UsageError(f"--ladder {ladder}: expected `audit --ladder` or `audit health --ladder`, got {part}")
    if report is not None:
        if part != "behaviours" or ladder is not None:
            raise UsageError(f"--report {report}: only the audit of behaviours writes a report; try --json")
        if report.suffix.lower() not in {".html", ".htm"}:
            raise UsageError(f"--report {report}: expected a file name that ends in .html")
        check_folder(report)
        keep = report.with_suffix(".seasons.jsonl") if keep is None else keep
    if keep is not None:
        if part in {"invariants", "fits"} or ladder is not None:
            raise UsageError(f"--keep {keep}: this audit keeps no seasons; leave the option out")
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
    settings = SeasonSettings(**changes)  # type: ignore[arg-type]  # as declared
    game = None if game is None else find_game(game).name
    plan = AuditPlan(contestants=contestants, behaviours=behaviours, settings=settings, game=game, measured=measured)
    if dose is not None:
        return replace(plan, doses=(dose,), search=())
    others = (seed for seed in count(1) if seed not in measured)
    return replace(plan, search=tuple(islice(others, len(plan.search))))


def _contestants(listed: str, preset: str | None, params: list[str] | None) -> tuple[Contestant, ...]:
    from evenmatch import systems
    from evenmatch.lab.fairness.audit import Contestant

    names = systems.names() if listed.lower() == "all" else _names(listed, "--system")
    if (preset or params) and len(names) > 1:
        raise UsageError("--preset and --param are those of one system; expected --system NAME")
    found = tuple(Contestant(name, preset, tuple(values_of(params).items())) for name in names)
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


def _of_behaviours(run: Run) -> Answer:
    from evenmatch.lab.fairness.audit import audit

    found = audit(run.plan, run.workers, run.kept, run.progress)
    if run.report is not None:
        from evenmatch.lab.fairness.report import write_audit_report

        write_audit_report(found, run.report, command=shlex.join(["evenmatch", *sys.argv[1:]]))
    rows = [
        (c.contestant, c.behaviour, c.game, c.dose, c.percentile.mean, c.percentile.between(), *means)
        for c in found.cells
        for means in ([measure.mean for measure in (c.per_hour, c.mates, c.rivals)],)
    ]
    return Answer(
        {"cells": [cell.to_data(found.plan) for cell in found.cells]},
        [Table(f"gained against honest play, over {len(run.plan.measured)} pairs of seasons", GAINS, rows)],
        [cell.sentence for cell in found.cells if cell.percentile.is_gain],
    )


def _of_cures(run: Run) -> Answer:
    from evenmatch.lab.fairness.cures import RULES, cures

    plan = run.plan
    if len(plan.behaviours) != 1:
        raise UsageError("audit cures: expected one --behaviour")
    parameters = [name for contestant in plan.contestants for name in options_of(contestant.rules.system.parameters)]
    varied, known = _names(run.vary, "--vary") if run.vary else [], ("preset", "rules", *RULES, *parameters)
    if unknown := [name for name in varied if name not in known]:
        raise UnknownNameError("cure", unknown[0], known)
    found = cures(plan, run.workers, run.kept, run.progress, varied)
    rows = [
        (
            *(cure.contestant, cure.changed, cure.gain.mean, cure.gain.between()),
            *(cure.rivals, cure.log_loss, cure.wait, cure.unmatched),
            *("yes" if cure.closes else "", "best" if cure.is_best else ""),
        )
        for cure in found
    ]
    title = f"{plan.behaviours[0]}: percentiles gained, and what each change costs"
    return Answer({"cures": [cure.to_data() for cure in found]}, [Table(title, CHANGES, rows)])


def _of_policies(run: Run) -> Answer:
    from evenmatch.lab.fairness.retention import compare_policies
    from evenmatch.policy import presets

    if len(run.plan.contestants) != 1:
        raise UsageError("audit policies: expected one --system, by whose ratings players are matched")
    settings = run.plan.settings
    settings = replace(settings, weeks=max(settings.weeks, 5.0), leaving=settings.leaving or 1.0)
    settings = replace(settings, game=run.plan.game or settings.game)
    names, seeds = list(presets()), run.plan.measured
    found = compare_policies(names, run.plan.contestants[0], settings, seeds, run.workers, run.kept, run.progress)
    rows = [
        (policy, kept.mean, kept.between(".1%"), by_skill[0], by_skill[-1], matches, wait, unmatched)
        for policy, kept, by_skill, matches, wait, unmatched, _ in found
    ]
    title = f"players who are still there after a month, over {len(seeds)} seasons"
    return Answer({"policies": found}, [Table(title, POLICIES, rows)])


def _of_invariants(run: Run) -> Answer:
    from evenmatch.lab.fairness.invariants import INVARIANTS, search

    searches = [(contestant, invariant) for contestant in run.plan.contestants for invariant in INVARIANTS.values()]
    document, lines = [], []
    for done, (contestant, invariant) in enumerate(searches, 1):
        finding = search(contestant.rules, invariant)
        document.append({"system": str(contestant), **finding.to_data()})
        lines += [f"{contestant}: “{invariant.sentence}”", f"    {finding.sentence}"]
        run.progress(done, len(searches))
    return Answer({"invariants": document}, lines=lines)


def _of_health(run: Run) -> Answer:
    from evenmatch.lab.fairness.audit import finish
    from evenmatch.lab.fairness.health import SeasonHealth, newcomer_table, season_health

    settings = replace(run.plan.settings, game=run.plan.game or run.plan.settings.game)
    tasks = [(contestant, settings) for contestant in run.plan.contestants if contestant.rates(settings.game)]
    seasons = finish(season_health, SeasonHealth.read, tasks, run.workers, run.kept)
    table = newcomer_table(run.plan.contestants, run.workers, kept=run.kept, progress=run.progress)
    rows = [
        (task[0], one.correlation[-1][1], one.mean_rise, one.median_rise, one.at_floor, one.newcomers, one.slope)
        for task in tasks
        for one in (seasons[task],)
    ]
    found = [[by, *(games[game].shown if game in games else None for game in NEWCOMERS)] for by, games in table.items()]
    title = "matches until newcomers are within 5 percentiles of the truth on average"
    return Answer(
        {
            "seasons": {str(task[0]): seasons[task] for task in tasks},
            "newcomers": {str(by): games for by, games in table.items()},
        },
        [
            Table(f"a season of the game {settings.game}", HEALTH, rows),
            Table(title, {"system": "{}"} | dict.fromkeys(NEWCOMERS, "{:>}"), found),
        ],
    )


PARTS = {
    "behaviours": _of_behaviours,
    "invariants": _of_invariants,
    "health": _of_health,
    "cures": _of_cures,
    "policies": _of_policies,
}


def _of_fits(data: Path | None) -> Answer:
    """Fit the games to recorded matches, and compare recorded with simulated seasons."""
    from evenmatch.lab.seasons.fitting import fits

    if data is None or not data.is_dir():
        raise UsageError("audit fits: expected --data FOLDER, the folder of the recorded matches")
    with working("fitting games") as progress:
        found = fits(data, lambda name: progress(0, f"fitting {name}"))
    tables = [
        Table(
            f"{name}: recorded beside simulated",
            FITS,
            [(row.topic, row.at, row.recorded, row.simulated, row.distance) for row in one.comparison],
        )
        for name, one in found.items()
    ]
    return Answer({name: one.to_data() for name, one in found.items()}, tables)


def _of_ladder(part: str, ladder: str, db: str) -> Answer:
    from evenmatch.corrections.ladder_history import read_history

    with opened(db) as service:
        history = read_history(service.database, ladder)
    return _ladder_health(ladder, history) if part == "health" else _suspects(ladder, history)


def _suspects(ladder: str, history: LadderHistory) -> Answer:
    """The accounts of a recorded ladder that deserve a look."""
    from evenmatch.lab.fairness.suspects import ladder_suspects

    with working("comparing with honest seasons", STEPS) as progress:
        found = ladder_suspects(history.matches, history.rules, lambda share: progress(int(STEPS * share)))
    names, matches = history.matches.player.to_pylist(), len(history.matches)
    listed = [one._asdict() | {"account": names[one.account], "rarity": one.rarity} for one in found]
    document = {"ladder": ladder, "matches": matches, "suspects": listed}
    if not found:
        return Answer(document, lines=[f"{ladder}: no account stands out, of {len(names):,} in {matches:,} matches"])
    rows = [(names[one.account], one.kind, one.evidence, f"at most {one.rarity} honest accounts") for one in found]
    title = f"{ladder}: accounts to look into, which is never a verdict"
    return Answer(document, [Table(title, SUSPECTS, rows)])


def _ladder_health(ladder: str, history: LadderHistory) -> Answer:
    """The health of a recorded ladder by period, and findings."""
    from evenmatch.lab.ladder.health import health, health_findings

    found = health(history.matches, history.rules)
    starts = list(map(iso_time, found.start.tolist()))
    numbers = {name: getattr(found, name).tolist() for name in PERIODS if getattr(found, name) is not None}
    findings = [*health_findings(found), *history.notes]
    columns = {found.unit: "{}"} | {name.replace("_", " "): PERIODS[name] for name in numbers}
    return Answer(
        {"ladder": ladder, "unit": found.unit, "start": starts, **numbers, "findings": findings},
        [Table(f"{ladder}: health", columns, list(zip(starts, *numbers.values(), strict=True)))],
        findings,
    )
