"""evenmatch simulate-queue: waiting times and match quality of a simulated queue."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli import policies
from evenmatch.cli.shared import options, queue_runs, queue_scenarios
from evenmatch.cli.shared.output import working
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.lab.queue.run_result import Run
    from evenmatch.lab.queue.scenario import Scenario
    from evenmatch.lab.queue.simulation import Matchmaker
    from evenmatch.policy import Policy

ARRIVING, PLAYERS, OUTPUT = "Arrivals", "Players", "Output"


def command(
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", "-p", metavar="NAME|FILE", help="A preset or policy file; repeatable. Default: balanced."
        ),
    ] = None,
    team_size: Annotated[
        int | None, typer.Option("--team-size", metavar="N", help="Players in a team, instead of the policy's 6.")
    ] = None,
    teams: Annotated[
        int | None, typer.Option("--teams", metavar="N", help="Teams in a match, instead of the policy's 2.")
    ] = None,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Also run eight simple matchmakers; the table describes each."),
    ] = False,
    arrivals: Annotated[
        float | None,
        typer.Option("--arrivals", "-a", metavar="N", help="Players per second. Default: 5.", rich_help_panel=ARRIVING),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", "-m", metavar="N", help="Duration. Default: 20.", rich_help_panel=ARRIVING),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="poisson, daily or bursts; recorded times by --scenario. Default: poisson.",
            rich_help_panel=ARRIVING,
        ),
    ] = None,
    period: Annotated[
        float | None,
        typer.Option(
            "--period",
            metavar="SECONDS",
            help="Length of a day for --kind daily. Default: 86400.",
            rich_help_panel=ARRIVING,
        ),
    ] = None,
    patience: Annotated[
        float | None,
        typer.Option(
            "--patience", metavar="SECONDS", help="Mean waiting time until a party gives up.", rich_help_panel=ARRIVING
        ),
    ] = None,
    returns: Annotated[
        float | None,
        typer.Option(
            "--returns",
            metavar="SHARE",
            help="Parties that queue again after a match, on top of --arrivals.",
            rich_help_panel=ARRIVING,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", help="Seed of all random numbers. Default: 1.", rich_help_panel=ARRIVING),
    ] = None,
    players: Annotated[
        int | None,
        typer.Option(
            "--players", metavar="N", help="Players of the ladder. Default: 20000 or more.", rich_help_panel=PLAYERS
        ),
    ] = None,
    strict: Annotated[
        float | None,
        typer.Option(
            "--strict",
            metavar="SHARE",
            help="Players whose filter never widens. Default: 0.25.",
            rich_help_panel=PLAYERS,
        ),
    ] = None,
    parties: Annotated[
        str | None,
        typer.Option(
            "--parties",
            metavar="MIX",
            help="none, some, many, or weights of party sizes 1, 2, …, for example 6,3,1.",
            rich_help_panel=PLAYERS,
        ),
    ] = None,
    regions: Annotated[
        str | None,
        typer.Option(
            "--regions",
            metavar="MIX",
            help="none, four, or weights of regions, for example eu=6,us=4.",
            rich_help_panel=PLAYERS,
        ),
    ] = None,
    rating_error: Annotated[
        float | None,
        typer.Option(
            "--rating-error",
            metavar="POINTS",
            help="How far ratings are from true skill. Default: 50.",
            rich_help_panel=PLAYERS,
        ),
    ] = None,
    newcomers: Annotated[
        float | None,
        typer.Option(
            "--newcomers", metavar="SHARE", help="Players without completed placement matches.", rich_help_panel=PLAYERS
        ),
    ] = None,
    avoiding: Annotated[
        float | None,
        typer.Option("--avoiding", metavar="SHARE", help="Players who avoid three others.", rich_help_panel=PLAYERS),
    ] = None,
    scenario: Annotated[
        Path | None,
        typer.Option(
            "--scenario",
            metavar="FILE",
            help="A .toml or .json file with all of these values and more; options take precedence.",
            rich_help_panel=PLAYERS,
        ),
    ] = None,
    print_scenario: Annotated[
        bool,
        typer.Option(
            "--print-scenario",
            help="Print the scenario as a commented file for --scenario, and exit.",
            rich_help_panel=PLAYERS,
        ),
    ] = False,
    report: queue_runs.Report = None,
    journal: Annotated[
        Path | None,
        typer.Option("--journal", metavar="FILE", help="Record the first policy's run for replay-queue, as .jsonl."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Simulate a queue: how long players wait, and how even their matches are.

    Players arrive, wait and are matched by the real matchmaker, which decides every second, under each --policy. The
    winner depends on true skill, which the matchmaker does not see. The same seed gives the same run, and all
    matchmakers get the same arrivals. The spread of a match is the number of percentiles between its best and its
    weakest player.

    [bold]Examples[/bold]

    evenmatch simulate-queue

    evenmatch simulate-queue --policy balanced --policy quick --policy fair --compare --report queue.html

    evenmatch simulate-queue --team-size 5 --arrivals 0.5 --parties many --minutes 60
    """
    given: dict[str, object] = {
        "arrivals": arrivals,
        "minutes": minutes,
        "seed": seed,
        "kind": kind,
        "period": period,
        "patience": patience,
        "return_share": returns,
        "players": players,
        "share_strict": strict,
        "rating_error": rating_error,
        "share_newcomers": newcomers,
        "share_avoiding": avoiding,
        "regions": None if regions is None else queue_scenarios.read_regions(regions),
    }
    _check_files(report, journal, scenario, policy or [])
    chosen = policies.policies_of(policy or ["balanced"], team_size, teams)
    smallest = min(candidate.team_size for candidate in chosen.values())
    if parties is not None:
        given["parties"] = queue_scenarios.read_parties(parties, smallest)
    full_scenario = queue_scenarios.find_scenario(
        scenario, {name: value for name, value in given.items() if value is not None}
    )
    if print_scenario:
        print(queue_scenarios.as_toml(full_scenario), end="")
        return
    runs = _simulate(full_scenario, chosen, compare, journal)
    more = [] if seed is not None or scenario is not None else ["--seed", str(full_scenario.seed)]
    queue_runs.tell(
        *(runs, queue_scenarios.title_of(full_scenario, chosen)),
        report=report,
        json=json,
        command=queue_runs.repeat_command(*more),
        notes=(),
        more={},
    )


def _simulate(scenario: Scenario, chosen: dict[str, Policy], compare: bool, journal: Path | None) -> list[Run]:
    """Run the matchmaker under each policy, then those of --compare under the first policy."""
    with working(queue_runs.COMPILING):  # the imports load or compile the kernels
        from evenmatch.lab.queue.rival_matchmakers import others
        from evenmatch.lab.queue.simulation import simulate
        from evenmatch.matchmaking.propose import propose

    first = next(iter(chosen.values()))
    plan: list[tuple[str, Matchmaker, Policy]] = [(name, propose, policy) for name, policy in chosen.items()]
    if compare:
        plan += [(name, other.propose, first) for name, other in others().items()]
    runs = []
    with queue_runs.watching(len(plan), scenario.minutes) as watch, queue_runs.whole(journal) as file:
        for index, (name, matchmaker, policy) in enumerate(plan):
            recorded = file if index == 0 else None
            runs.append(simulate(scenario, matchmaker, policy, name=name, progress=watch(index), journal=recorded))
    return runs


def _check_files(report: Path | None, journal: Path | None, scenario: Path | None, named: list[str]) -> None:
    from evenmatch.tables.files import check_folder

    read = [scenario, *(Path(name) for name in named)]
    queue_runs.check_files(report, journal, *read)
    if journal is not None:
        if journal.suffix.lower() != ".jsonl":
            raise UsageError(f"{journal}: suffix {journal.suffix!r}; expected a journal in a .jsonl file")
        check_folder(journal)
