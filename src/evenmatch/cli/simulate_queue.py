"""evenmatch simulate-queue: how long players would wait, and how even their matches would be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli import options, policies, queue_runs, queue_scenarios
from evenmatch.cli.output import working
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.lab.queue_run import Run
    from evenmatch.lab.queue_scenario import Scenario
    from evenmatch.lab.queue_simulation import Matchmaker
    from evenmatch.matchmaking.policy import Policy

ARRIVING, PLAYERS, OUTPUT = "Who arrives", "The players", "Output"


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
        typer.Option(
            "--compare", help="Also five simple matchmakers, as others build them; the table says what each is."
        ),
    ] = False,
    arrivals: Annotated[
        float | None,
        typer.Option("--arrivals", "-a", metavar="N", help="Players a second. Default: 5.", rich_help_panel=ARRIVING),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", "-m", metavar="N", help="How long. Default: 20.", rich_help_panel=ARRIVING),
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
            "--period", metavar="SECONDS", help="Of daily: how long a day is. Default: 86400.", rich_help_panel=ARRIVING
        ),
    ] = None,
    patience: Annotated[
        float | None,
        typer.Option(
            "--patience", metavar="SECONDS", help="Mean wait until a party gives up.", rich_help_panel=ARRIVING
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
        typer.Option("--seed", metavar="N", help="All that is random. Default: 1.", rich_help_panel=ARRIVING),
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
            help="none, some, many, or weights of parties of 1, 2 …, as 6,3,1.",
            rich_help_panel=PLAYERS,
        ),
    ] = None,
    regions: Annotated[
        str | None,
        typer.Option(
            "--regions", metavar="MIX", help="none, four, or weights of regions, as eu=6,us=4.", rich_help_panel=PLAYERS
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
        typer.Option("--newcomers", metavar="SHARE", help="Players not placed yet.", rich_help_panel=PLAYERS),
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
            help="All of this and more, as .toml or .json; options given here come first.",
            rich_help_panel=PLAYERS,
        ),
    ] = None,
    print_scenario: Annotated[
        bool,
        typer.Option(
            "--print-scenario",
            help="Print the scenario as a file for --scenario, with what each value does, and end.",
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
    """Simulate a queue: who waits how long, and how even the matches are.

    Players arrive, wait and are matched, a decision each second, by the matchmaker itself under each --policy. Who wins
    follows from true skill, which the matchmaker does not see. The same seed gives the same run, and every matchmaker
    gets the same arrivals. A spread is how many percentiles lie between the best and the weakest player of a match.

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
    chosen = policies.gather(policy or ["balanced"], team_size, teams)
    smallest = min(one.team_size for one in chosen.values())
    if parties is not None:
        given["parties"] = queue_scenarios.read_parties(parties, smallest)
    played = queue_scenarios.find_scenario(scenario, {name: one for name, one in given.items() if one is not None})
    if print_scenario:
        print(queue_scenarios.as_toml(played), end="")
        return
    runs = _simulate(played, chosen, compare, journal)
    more = [] if seed is not None or scenario is not None else ["--seed", str(played.seed)]
    queue_runs.tell(
        *(runs, queue_scenarios.title_of(played, chosen)),
        report=report,
        json=json,
        command=queue_runs.told_command(*more),
        notes=(),
        more={},
    )


def _simulate(scenario: Scenario, chosen: dict[str, Policy], compare: bool, journal: Path | None) -> list[Run]:
    """Our matchmaker under each policy, then the others under the first one."""
    with working(queue_runs.COMPILING):  # which loads or compiles the kernels
        from evenmatch.lab.queue_others import others
        from evenmatch.lab.queue_simulation import simulate
        from evenmatch.matchmaking.propose import propose

    first = next(iter(chosen.values()))
    plan: list[tuple[str, Matchmaker, Policy]] = [(name, propose, policy) for name, policy in chosen.items()]
    if compare:
        plan += [(name, other.propose, first) for name, other in others().items()]
    runs = []
    with queue_runs.watching(len(plan), scenario.minutes) as watch, queue_runs.whole(journal) as file:
        for at, (name, matchmaker, policy) in enumerate(plan):
            recorded = file if at == 0 else None
            runs.append(simulate(scenario, matchmaker, policy, name=name, progress=watch(at), journal=recorded))
    return runs


def _check_files(report: Path | None, journal: Path | None, scenario: Path | None, told: list[str]) -> None:
    from evenmatch.tables.files import check_folder

    read = [scenario, *(Path(one) for one in told)]
    queue_runs.check_files(report, journal, *read)
    if journal is not None:
        if journal.suffix.lower() != ".jsonl":
            raise UsageError(f"{journal}: suffix {journal.suffix!r}; accepted is a journal in a .jsonl file")
        check_folder(journal)
