"""evenmatch simulate-queue and queue fit: how long players wait, and which policy keeps a stated wait."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli import policies
from evenmatch.cli.shared import options, queue_runs
from evenmatch.cli.shared.database_options import DATABASE, Db, opened
from evenmatch.cli.shared.output import note, print_json, printable, working
from evenmatch.cli.shared.queue_runs import COMPILING
from evenmatch.errors import BadParameterError, EvenmatchError, InputError, UnknownNameError, UsageError
from evenmatch.policy import WaitTarget

if TYPE_CHECKING:
    from evenmatch.lab.queue.runs import Run
    from evenmatch.lab.queue.scenario import Scenario
    from evenmatch.policy import Policy


Within = Annotated[
    float | None,
    typer.Option("--within", metavar="SECONDS", help="The wait that most players should not exceed. Default: 90."),
]
Share = Annotated[
    float | None,
    typer.Option("--share", metavar="SHARE", help="The share of the players who should not. Default: 0.9."),
]
AUTO = "auto"  # in place of a policy: the service fits the queue's own
PARTS = 100  # steps of the progress bar


def command_queue_fit(
    ladder: Annotated[str, typer.Argument(metavar="LADDER", help="The ladder's name.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The queue's name.")],
    within: Within = None,
    share: Share = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Give the queue the policy, if it keeps the target; recorded in the audit.")
    ] = False,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Find the closest matches with which most players of a queue wait no longer than you say.

    Simulates the queue with the players who joined it in the last day under policies of different widths, and explains
    the best: even_spread, steps and overdue_after; everything else stays. Without --within and --share, the target is
    that of the queue's rules. To have this done every day: `evenmatch queue set --policy auto`.

    [bold]Examples[/bold]

    evenmatch queue fit arena ranked

    evenmatch queue fit arena ranked --within 60 --share 0.8 --adopt
    """
    with opened(db) as service:
        with working(COMPILING, PARTS) as progress:
            from evenmatch.accounts.access import OPERATOR
            from evenmatch.queues import policy_fits
            from evenmatch.queues.queue_service import QueueService

            own = QueueService(service).queue(ladder, name).rules.target
            target = target_of(within, share, WaitTarget() if own is None else own)
            fitted = policy_fits.fit(
                *(service, ladder, name, target), lambda done: progress(int(done * PARTS), "simulating")
            )
        if adopt:
            policy_fits.adopt(service, ladder, fitted, OPERATOR)
    if json:
        body = {"ladder": ladder, "queue": name, "adopted": adopt, "explanation": fitted.explanation}
        print_json(body | fitted.fit.to_data() | {"policy": fitted.policy.to_data()})
        return
    for sentence in fitted.explanation:
        print(sentence)
    if adopt:
        print(printable(f"queue {name} of ladder {ladder} has the fitted policy now"))
    elif fitted.fit.is_kept:
        note("to give it to the queue: --adopt")


def target_of(within: float | None, share: float | None, default: WaitTarget) -> WaitTarget:
    """The target of the options; missing ones are those of the default. Raises BadParameterError."""
    return WaitTarget(
        within=default.within if within is None else within, share=default.share if share is None else share
    )


def target_rules(policy: str, within: float | None, share: float | None) -> dict[str, object]:
    """The rules of --within and --share; a policy that is not auto stays as it is set."""
    if policy == AUTO:
        return {name: value for name, value in (("auto_within", within), ("auto_share", share)) if value is not None}
    if within is not None or share is not None:
        raise UsageError(f"--within and --share are for --policy auto, not for {policy}")
    return {"auto_within": None}


# Name of a value in a scenario file: the option that sets it
OPTIONS = {
    "arrivals": "--arrivals",
    "minutes": "--minutes",
    "seed": "--seed",
    "kind": "--kind",
    "period": "--period",
    "patience": "--patience",
    "return_share": "--returns",
    "players": "--players",
    "share_strict": "--strict",
    "parties": "--parties",
    "regions": "--regions",
    "rating_error": "--rating-error",
    "share_newcomers": "--newcomers",
    "share_avoiding": "--avoiding",
}


def find_scenario(path: Path | None, given: Mapping[str, object]) -> Scenario:
    """The scenario of a file or the default one, changed by options; errors name the option that caused them."""
    from evenmatch.lab.queue.scenario import Scenario

    document: dict[str, object] = {}
    if path is not None:
        if path.suffix.lower() not in policies.SUFFIXES:
            raise UsageError(f"{path}: suffix {path.suffix!r}; expected {' or '.join(policies.SUFFIXES)}")
        document = policies.read_document(path, "a scenario")
        try:
            Scenario.from_data(document)
        except EvenmatchError as error:
            raise InputError(f"{path}: {_explained(error)}") from None
    _check_kind(str(given.get("kind", document.get("kind", "poisson"))), given, document)
    try:
        return Scenario.from_data(document | dict(given))
    except BadParameterError as error:
        name, equals, rest = str(error).partition("=")
        if equals and name in given:
            raise BadParameterError(f"{OPTIONS[name]} {rest.removesuffix(', or none')}") from None
        raise


def _explained(error: EvenmatchError) -> str:
    from evenmatch.policy import Policy

    if not isinstance(error, UnknownNameError) or error.kind != "value of a scenario":
        return str(error)
    if error.name in Policy().to_data():
        return f"{error.name} belongs to a policy, not to a scenario; put it in a file for --policy"
    return f"{str(error).partition(';')[0]}; expected a value that --print-scenario prints"


def _check_kind(kind: str, given: Mapping[str, object], document: Mapping[str, object]) -> None:
    """Raise UsageError for options that have no effect on this kind of arrivals."""
    from evenmatch.lab.queue.scenario import KINDS

    typed = [name for name in KINDS if name != "recorded"]
    if "kind" in given and kind not in typed and not (kind == "recorded" and "times" in document):
        more = "; recorded arrivals are `kind` and `times` of a --scenario file" if kind == "recorded" else ""
        raise UsageError(f"--kind {kind}: expected {', '.join(typed[:-1])} or {typed[-1]}{more}")
    if "period" in given and kind != "daily":
        raise UsageError(f"--period {given['period']:g}: only allowed with --kind daily")
    if "arrivals" in given and kind == "recorded":
        raise UsageError("--arrivals: not allowed for a scenario with recorded arrivals")


def read_parties(text: str, team_size: int) -> tuple[float, ...]:
    """The shares of party sizes from --parties: a named mix without parties larger than a team, or weights by size."""
    from evenmatch.lab.queue.scenario import PARTY_MIXES, party_mix

    if not any(character.isdigit() for character in text):
        shares = party_mix(text, team_size)
        if len(shares) < len(PARTY_MIXES[text]):
            note(f"--parties {text}: parties of more than {team_size} do not fit into a team and are left out")
        return shares
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        weights = []
    total = sum(weights)
    if not weights or not 0 < total < float("inf") or min(weights) < 0:
        raise UsageError(
            f"--parties {text}: expected none, some, many, or weights separated by commas, for example 6,3,1"
        )
    return tuple(weight / total for weight in weights)


def read_regions(text: str) -> str | dict[str, float]:
    """The value of --regions: a named mix, or weights by region."""
    if "=" not in text:
        return text
    table: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = part.partition("=")
        try:
            table[name.strip()] = float(share)
        except ValueError:
            raise UsageError(f"--regions {text}: expected none, four, or weights, for example eu=6,us=4") from None
    return table


def title_of(scenario: Scenario, chosen: Mapping[str, Policy]) -> str:
    """The heading of the table: teams, arrivals, length and seed."""
    sizes = dict.fromkeys("v".join([str(policy.team_size)] * policy.teams) for policy in chosen.values())
    shapes = ", ".join(
        size if len(size) < 20 else f"{size.count('v') + 1} teams of {size.partition('v')[0]}" for size in sizes
    )
    length = f"{scenario.minutes:g} minute{'' if scenario.minutes == 1 else 's'}, seed {scenario.seed}"
    if scenario.kind == "recorded":
        return f"{shapes}, recorded arrivals for {length}"
    kind = "" if scenario.kind == "poisson" else f" ({scenario.kind})"
    return f"{shapes}, {scenario.arrivals:g} player{'' if scenario.arrivals == 1 else 's'} a second{kind} for {length}"


def as_toml(scenario: Scenario) -> str:
    """The scenario as a TOML file for --scenario, with comments on each value."""
    from evenmatch.lab.queue.scenario import Scenario

    head = "A scenario for evenmatch simulate-queue --scenario. Times are in seconds, widths in percentiles."
    return policies.document_as_toml(head, scenario.to_data(), policies.described(Scenario))


ARRIVING, PLAYERS, FITTED, OUTPUT = "Arrivals", "Players", "Fitted policy", "Output"


def command_simulate_queue(
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
    within: Annotated[
        float | None,
        typer.Option(
            "--within",
            metavar="SECONDS",
            help="Also run the first policy fitted to these players: most of them wait this long at most.",
            rich_help_panel=FITTED,
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            "--share",
            metavar="SHARE",
            help="With --within: the share of the players. Default: 0.9.",
            rich_help_panel=FITTED,
        ),
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

    evenmatch simulate-queue --policy balanced --policy quick --policy fair --report queue.html

    evenmatch simulate-queue --team-size 5 --arrivals 0.5 --parties many --minutes 60

    evenmatch simulate-queue --arrivals 1 --within 90 --share 0.9
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
        "regions": None if regions is None else read_regions(regions),
    }
    _check_files(report, journal, scenario, policy or [])
    chosen = policies.policies_of(policy or ["balanced"], team_size, teams)
    smallest = min(candidate.team_size for candidate in chosen.values())
    if parties is not None:
        given["parties"] = read_parties(parties, smallest)
    full_scenario = find_scenario(scenario, {name: value for name, value in given.items() if value is not None})
    if print_scenario:
        print(as_toml(full_scenario), end="")
        return
    explanation: list[str] = []
    if within is not None or share is not None:
        chosen["auto"], explanation = _fit(full_scenario, next(iter(chosen.values())), within, share)
    runs = _simulate(full_scenario, chosen, journal)
    more = [] if seed is not None or scenario is not None else ["--seed", str(full_scenario.seed)]
    queue_runs.tell(
        *(runs, title_of(full_scenario, chosen)),
        report=report,
        json=json,
        command=queue_runs.repeat_command(*more),
        notes=explanation,
        more={},
    )


def _simulate(scenario: Scenario, chosen: dict[str, Policy], journal: Path | None) -> list[Run]:
    """Run the matchmaker under each policy."""
    with working(queue_runs.COMPILING):  # the imports load or compile the kernels
        from evenmatch.lab.queue.simulation import simulate
        from evenmatch.matchmaking.propose import propose

    runs = []
    with queue_runs.watching(len(chosen), scenario.minutes) as watch, queue_runs.whole(journal) as file:
        for index, (name, policy) in enumerate(chosen.items()):
            recorded = file if index == 0 else None
            runs.append(simulate(scenario, propose, policy, name=name, progress=watch(index), journal=recorded))
    return runs


def _fit(scenario: Scenario, policy: Policy, within: float | None, share: float | None) -> tuple[Policy, list[str]]:
    """A policy fitted to the players of the scenario, and its explanation."""
    if scenario.kind == "recorded":
        raise UsageError("--within: a policy is fitted to arrivals by a rate; this scenario has recorded times")
    with working(queue_runs.COMPILING, PARTS) as progress:
        from evenmatch.lab.queue.policy_fit import explain, fit_policy, scenario_arrivals

        target = target_of(within, share, WaitTarget())
        arrivals = scenario_arrivals(scenario, target)
        fit = fit_policy(policy, arrivals, target, lambda done: progress(int(done * PARTS), "fitting"))
    return fit.policy, explain(fit)


def _check_files(report: Path | None, journal: Path | None, scenario: Path | None, named: list[str]) -> None:
    from evenmatch.tables.files import check_folder

    read = [scenario, *(Path(name) for name in named)]
    queue_runs.check_files(report, journal, *read)
    if journal is not None:
        if journal.suffix.lower() != ".jsonl":
            raise UsageError(f"{journal}: suffix {journal.suffix!r}; expected a journal in a .jsonl file")
        check_folder(journal)
