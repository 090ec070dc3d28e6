"""evenmatch queue: create, list and remove queues, run experiments with two policies, and audit predictions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli import simulate_queue
from evenmatch.cli.audit import audit_entry
from evenmatch.cli.policies import find, read_document
from evenmatch.cli.shared import options
from evenmatch.cli.shared.cluster_option import OnCluster, connected
from evenmatch.cli.shared.database_options import DATABASE, Db, OnLadder, counted, ladder_of, opened, typed
from evenmatch.cli.shared.output import compile_ahead, note, print_json, print_table, printable, working
from evenmatch.errors import UsageError
from evenmatch.experiment import ExperimentDesign
from evenmatch.options import options_of, shown

if TYPE_CHECKING:
    from evenmatch.calibration import Measure
    from evenmatch.operations.service import Service
    from evenmatch.queues.audit import AuditedGroup, QueueAudit
    from evenmatch.queues.experiment_audit import ComparedFigure, ExperimentAudit, ExperimentFigure, Needed
    from evenmatch.queues.stored_queues import QueueExperiment, QueueRules, QueueSetup


COMPARED = ("", "A", "B", "B − A", "more matches needed", "to know", "verdict")


def described(experiment: QueueExperiment) -> str:
    """An experiment in a sentence."""
    from evenmatch.times import iso_time

    design = experiment.design
    ended = "" if experiment.stopped_at is None else f" until {iso_time(experiment.stopped_at)}"
    return (
        f"experiment {experiment.number}: since {iso_time(experiment.started_at)}{ended}, a second policy decides in "
        f"{design.share:.0%} of the slices of {design.slice_seconds:g} s, seed {design.seed}, washout "
        f"{design.washout:g} s"
    )


def print_comparison(audited: ExperimentAudit) -> None:
    """Print the comparison of the two policies."""
    print(printable(described(audited.experiment)))
    counts = [
        f"{arm}: {counted(slices, 'slice')}, {counted(formed, 'match', 'matches')} formed, {after} of them counted"
        for arm, slices, formed, after in zip("AB", audited.slices, audited.formed, audited.counted, strict=True)
    ]
    print("; ".join(counts))
    print_table("A: the queue's own policy, B: the second one", COMPARED, [_row(row) for row in audited.figures])
    print(printable(audited.summary))
    note("each interval is wrong once in twenty times: the more figures, and the more often you look, the more often")


def estimate(measure: Measure, scale: float, decimals: int) -> str:
    """A value with its interval, such as 0.97 (0.91 to 1.04)."""
    value, low, high = (scale * number for number in (measure.value, measure.low, measure.high))
    if isnan(value):
        return "–"
    interval = "" if isnan(low) else f" ({low:.{decimals}f} to {high:.{decimals}f})"
    return f"{value:.{decimals}f}{interval}"


def _row(compared: ComparedFigure) -> list[str]:
    figure = compared.figure
    unit = f", {figure.unit}" if figure.unit else ""
    needed = compared.seen if compared.seen.matches == 0 else compared.worth
    values = (compared.first, compared.second, compared.difference)
    return [
        f"{figure.label}{unit}",
        *(estimate(value, figure.scale, figure.decimals) for value in values),
        _matches(needed),
        _size(figure, needed),
        compared.verdict,
    ]


def _matches(needed: Needed) -> str:
    if needed.matches is None or needed.days is None:
        return "–"
    return "none" if needed.matches == 0 else f"{needed.matches:,} ({needed.days:,.1f} days)"


def _size(figure: ExperimentFigure, needed: Needed) -> str:
    return "–" if isnan(needed.size) else f"{figure.scale * needed.size:.{figure.decimals}f}"


AUDITED = ("matches", "slope", "Brier score", "stomps, %", "with a quitter, %")


def print_audit(title: str, audited: QueueAudit) -> None:
    """Print the audit of one queue."""
    print(
        printable(
            f"{title}: {counted(audited.formed, 'match', 'matches')} formed, "
            f"{audited.overall.matches} played as predicted, {audited.unplayed} not reported or voided, "
            f"{audited.changed} played by another line-up, {audited.unpredicted} not predictable"
        )
    )
    if audited.waits.parties:
        waits = audited.waits
        figures = (str(waits.parties), estimate(waits.within_estimate, 100, 1), estimate(waits.within_upper, 100, 1))
        print_table("waits told at joining", ("parties", "% below estimate (50)", "% below upper (90)"), [figures])
    if audited.overall.matches:
        print_table("all matches", ("", *AUDITED), [_audited_audit_tables(audited.overall)])
        for by, groups in audited.groups.items():
            print_table(f"by {by}", (by, *AUDITED), [_audited_audit_tables(group) for group in groups])
        if audited.warning is not None:
            note(audited.warning)
    for experiment in audited.experiments:
        print_comparison(experiment)


def _audited_audit_tables(group: AuditedGroup) -> list[str]:
    return [
        group.label,
        str(group.matches),
        estimate(group.slope, 1, 2),
        estimate(group.brier, 1, 3),
        estimate(group.stomps, 100, 1),
        estimate(group.quits, 100, 1),
    ]


app = typer.Typer(
    help="Create, list and remove the matchmaking queues of a ladder, for the service.", no_args_is_help=True
)

app.command(name="fit")(simulate_queue.command_queue_fit)

OfLadder = Annotated[str, typer.Argument(metavar="LADDER", help="The ladder's name.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The queue's name.")]
DESIGN = options_of(ExperimentDesign)
Tried = Annotated[str, typer.Option("--policy", "-p", metavar="NAME|FILE", help="The second policy: a preset or file.")]


def _design(name: str) -> str | None:
    """An option of an experiment's design, for typer."""
    help_text = f"{DESIGN[name].meaning} Default: {shown(DESIGN[name].default)}."
    option: str | None = typer.Option(None, f"--{name.replace('_', '-')}", metavar="N", help=help_text)
    return option


@app.command(name="set")
def set_(
    ladder: OfLadder,
    name: Name,
    policy: Annotated[
        str,
        typer.Option(
            "--policy", "-p", metavar="NAME|FILE", help="A preset or file, see `evenmatch policies`; or auto."
        ),
    ] = "balanced",
    team_size: Annotated[
        int | None,
        typer.Option(
            "--team-size", min=1, metavar="N", help="Players in a team; default: as the policy or ladder says."
        ),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--rule", "-r", metavar="K=V", help="A rule in seconds, for example accept_within=15; repeatable."
        ),
    ] = None,
    within: simulate_queue.Within = None,
    share: simulate_queue.Share = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Create a queue, or replace its policy; waiting players keep their place. Rules not named stay unchanged.

    The rules and their defaults, in seconds: accept_within (20), heartbeat (30, or none), tick (1), penalty (30),
    penalty_most (900), penalty_fades (3600), longest_match (7200).

    With --policy auto the queue keeps its policy (a new one begins with balanced), and once a day the service fits it
    to the players who joined, so that the --share of them wait --within seconds at most: see `evenmatch queue fit`.

    [bold]Examples[/bold]

    evenmatch queue set arena ranked --policy balanced

    evenmatch queue set arena quick --policy quick --team-size 3 --rule accept_within=10

    evenmatch queue set arena ranked --policy auto --within 90 --share 0.9
    """
    data = _policy(policy) | ({} if team_size is None else {"team_size": team_size})
    named = simulate_queue.target_rules(policy, within, share) | _named(rule)
    from evenmatch.operations.kernels import MATCHMAKER
    from evenmatch.queues.queue_service import QueueService
    from evenmatch.queues.stored_queues import QueueRules

    with opened(db) as service:
        queue_service = QueueService(service)
        before = next((queue.rules for queue in queue_service.queues(ladder) if queue.name == name), QueueRules())
        entry = audit_entry("queue.set", ladder, name, {"policy": data, "rules": named})
        created = queue_service.noting(entry).set_queue(
            ladder, name, data, QueueRules.from_data(before.to_data() | named)
        )
    compile_ahead([*MATCHMAKER], "the matchmaker")
    if json:
        print_json(_document(ladder, created))
        return
    print(printable(f"queue {name} of ladder {ladder}: {_shape(created)}, {_rules_text(created.rules)}"))
    note(f"players join through the service: {typed(db, 'serve')}")


@app.command(name="list")
def list_(ladder: OnLadder = None, db: Db = DATABASE, json: options.Json = False) -> None:
    """List the queues of a ladder.

    [bold]Example[/bold]

    evenmatch queue list --ladder arena
    """
    from evenmatch.queues.queue_service import QueueService

    with opened(db) as service:
        name = ladder_of(service, ladder)
        queues = QueueService(service).queues(name)
    if json:
        print_json([_document(name, queue) for queue in queues])
        return
    rows = [[queue.name, _shape(queue), _rules_text(queue.rules)] for queue in queues]
    running = [f"{queue.name}: {described(queue.experiment)}" for queue in queues if queue.experiment is not None]
    print_table(f"{name}: {counted(len(rows), 'queue')}", ("queue", "matches", "rules"), rows)
    for text in running:
        print(printable(text))


@app.command()
def remove(
    ladder: OfLadder,
    name: Name,
    force: Annotated[bool, typer.Option("--force", help="Even if players wait in it: their tickets end.")] = False,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Remove a queue in which no players wait.

    [bold]Example[/bold]

    evenmatch queue remove arena quick
    """
    from evenmatch.queues.queue_service import QueueService

    with opened(db) as service:
        entry = audit_entry("queue.removed", ladder, name, {"force": force})
        removed = QueueService(service).noting(entry).remove_queue(ladder, name, force=force)
    if json:
        print_json({"ladder": ladder, "queue": name, "tickets_gone": removed})
        return
    tickets = f"; {counted(removed, 'waiting ticket')} ended" if removed else ""
    print(printable(f"queue {name} of ladder {ladder}: removed{tickets}"))


@app.command()
def experiment(
    ladder: OfLadder,
    name: Name,
    policy: Tried,
    share: str | None = _design("share"),
    seed: str | None = _design("seed"),
    slice_seconds: str | None = _design("slice_seconds"),
    washout: str | None = _design("washout"),
    worth: str | None = _design("worth"),
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Let a second policy share a queue with its own, to find out which does better.

    Time is cut into slices; in each one policy decides alone, drawn with the seed, so that a restart changes nothing.
    Waiting players stay. `evenmatch queue audit` compares the policies; `evenmatch queue stop-experiment` ends it.

    [bold]Examples[/bold]

    evenmatch queue experiment arena ranked --policy quick

    evenmatch queue experiment arena ranked --policy quick --share 0.2 --seed 7 --slice-seconds 900
    """
    typed_values = {"share": share, "seed": seed, "slice_seconds": slice_seconds, "washout": washout, "worth": worth}
    design = {key: _design_value(key, text) for key, text in typed_values.items() if text is not None}
    tried = _policy(policy)
    from evenmatch.queues.queue_service import QueueService

    with opened(db) as service:
        entry = audit_entry("experiment.started", ladder, name, {"policy": tried, **design})
        started = QueueService(service).noting(entry).start_experiment(ladder, name, tried, design)
    if json:
        print_json(_experiment_document(ladder, started))
        return
    print(printable(f"queue {name} of ladder {ladder}: {described(started)}"))


@app.command(name="stop-experiment")
def stop_experiment(ladder: OfLadder, name: Name, db: Db = DATABASE, json: options.Json = False) -> None:
    """Stop the experiment of a queue: its own policy decides alone. The audit still compares its matches.

    To keep the second policy, set it afterwards: `evenmatch queue set`.

    [bold]Example[/bold]

    evenmatch queue stop-experiment arena ranked
    """
    from evenmatch.queues.queue_service import QueueService

    with opened(db) as service:
        entry = audit_entry("experiment.stopped", ladder, name)
        stopped = QueueService(service).noting(entry).stop_experiment(ladder, name)
    if json:
        print_json(_experiment_document(ladder, stopped))
        return
    print(printable(f"queue {name} of ladder {ladder}: {described(stopped)}"))


@app.command()
def audit(
    ladder: Annotated[str | None, typer.Argument(metavar="[LADDER]", help="The ladder's name; otherwise all.")] = None,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The queue's name; otherwise all.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only matches formed at this time or later.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only matches formed before.")] = None,
    cluster: OnCluster = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Compare what a queue predicted of its matches with what was reported of them.

    The odds of each match that the queue formed, against its result: calibration slope (1 is calibrated), Brier score,
    share of stomps (see the ladder's setting stomp_margin) and of matches with a quitter, by spread, wait, parties,
    percentile and version of the policy; how many parties waited less than estimated when they joined (half should)
    and less than the upper figure (nine of ten should); and the comparison of two policies that share the queue, see
    `evenmatch queue experiment`. Times are ISO 8601 or epoch seconds. Without a name, all queues of the ladder are
    compared, or of all ladders, and --json prints a list; with --cluster each queue is a task of its own.

    [bold]Examples[/bold]

    evenmatch queue audit arena ranked

    evenmatch queue audit arena ranked --since 2026-11-01 --json
    """
    period = options.moment(since, "--since"), options.moment(until, "--until")
    with opened(db) as service:
        queues = _queues(service, ladder, name)
        begin, end = period[0] or 0, service.clock() if period[1] is None else period[1]
        audited = _audited_queue(service, queues, begin, end) if cluster is None else []
    if cluster is not None:
        from evenmatch.cluster.databases import audit_queues

        with connected(cluster, ()) as nodes, working("auditing queues", len(queues)) as progress:
            audited = audit_queues(nodes, db, queues, begin, end, progress)
    if json:
        documents = [_plain(dataclasses.asdict(queue_audit)) for queue_audit in audited]
        print_json(documents if name is None else documents[0])
        return
    for (of, queue), queue_audit in zip(queues, audited, strict=True):
        print_audit(f"queue {queue} of ladder {of}", queue_audit)


def _queues(service: Service, ladder: str | None, name: str | None) -> list[tuple[str, str]]:
    """The queues to audit, as ladder and name."""
    from evenmatch.queues.queue_service import QueueService

    if ladder is not None and name is not None:
        return [(service.ladder(ladder).name, name)]
    ladders = service.names() if ladder is None else [service.ladder(ladder).name]
    return [(of, queue.name) for of in ladders for queue in QueueService(service).queues(of)]


def _audited_queue(service: Service, queues: Sequence[tuple[str, str]], begin: int, end: int) -> list[QueueAudit]:
    from evenmatch.ladders.ladder_queries import LadderQueries

    return [LadderQueries(service).queue_audit(ladder, queue, begin, end) for ladder, queue in queues]


def _plain(value: object) -> object:
    """The value ready for JSON: named tuples as objects, NaN as null."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(inner) for name, inner in value._asdict().items()}
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and isnan(value) else value


def _policy(named: str) -> dict[str, object]:
    """The policy of --policy as data; without team_size if it has none, so that the ladder's applies."""
    from evenmatch.policy import presets

    if named == simulate_queue.AUTO or named in presets():
        return {"preset": named}
    find(named)  # raises for anything that is not a policy
    return read_document(Path(named), "a policy")


def _named(rules: list[str] | None) -> dict[str, object]:
    values: dict[str, object] = {}
    for text in rules or []:
        name, equals, value = text.partition("=")
        try:
            values[name.strip()] = None if value.strip() == "none" else float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise UsageError(f"--rule {text}: expected NAME=SECONDS, for example accept_within=15")
    return values


def _design_value(name: str, text: str) -> object:
    try:
        return DESIGN[name].read(text)
    except (ValueError, TypeError, OverflowError):
        raise UsageError(f"--{name.replace('_', '-')} {text}: expected {DESIGN[name].accepts}") from None


def _shape(setup: QueueSetup) -> str:
    return " v ".join([str(setup.policy.team_size)] * setup.policy.teams)


def _rules_text(rules: QueueRules) -> str:
    heartbeat = "no heartbeat" if rules.heartbeat is None else f"heartbeat {rules.heartbeat:g} s"
    target = "" if rules.target is None else f", policy fitted each day to {rules.target.in_words}"
    return f"accept within {rules.accept_within:g} s, {heartbeat}, a tick each {rules.tick:g} s{target}"


def _document(ladder: str, setup: QueueSetup) -> dict[str, object]:
    return {
        "ladder": ladder,
        "queue": setup.name,
        "policy": setup.policy.to_data(),
        "rules": setup.rules.to_data(),
        "experiment": None if setup.experiment is None else _experiment_document(ladder, setup.experiment),
    }


def _experiment_document(ladder: str, started: QueueExperiment) -> dict[str, object]:
    from evenmatch.times import iso_time

    return {
        "ladder": ladder,
        "queue": started.queue,
        "experiment": started.number,
        "started_at": iso_time(started.started_at),
        "stopped_at": None if started.stopped_at is None else iso_time(started.stopped_at),
        "design": started.design.to_data(),
        "first": started.first.to_data(),
        "second": started.second.to_data(),
    }
