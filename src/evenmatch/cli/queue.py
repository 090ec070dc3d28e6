"""evenmatch queue: create, list and remove the matchmaking queues of a ladder."""

from __future__ import annotations

import dataclasses
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.audit import audit_entry
from evenmatch.cli.policies import find, read_document
from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, OnLadder, counted, ladder_of, opened, typed
from evenmatch.cli.shared.output import compile_ahead, note, print_json, print_table, printable
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.calibration import Measure
    from evenmatch.service.queries.queue_audit import AuditedGroup
    from evenmatch.service.queue_rules import QueueRules
    from evenmatch.service.stored_queues import QueueSetup

app = typer.Typer(
    help="Create, list and remove the matchmaking queues of a ladder, for the service.", no_args_is_help=True
)

AUDITED = ("matches", "slope", "Brier score", "stomps, %", "with a quitter, %")

OfLadder = Annotated[str, typer.Argument(metavar="LADDER", help="The ladder's name.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The queue's name.")]


@app.command(name="set")
def set_(
    ladder: OfLadder,
    name: Name,
    policy: Annotated[
        str, typer.Option("--policy", "-p", metavar="NAME|FILE", help="A preset or file, see `evenmatch policies`.")
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
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Create a queue, or replace its policy; waiting players keep their place. Rules not named stay unchanged.

    The rules and their defaults, in seconds: accept_within (20), heartbeat (30, or none), tick (1), penalty (30),
    penalty_most (900), penalty_fades (3600), longest_match (7200).

    [bold]Examples[/bold]

    evenmatch queue set arena ranked --policy balanced

    evenmatch queue set arena quick --policy quick --team-size 3 --rule accept_within=10
    """
    data = _policy(policy) | ({} if team_size is None else {"team_size": team_size})
    named = _named(rule)
    from evenmatch.service.kernels import MATCHMAKER
    from evenmatch.service.queue_rules import QueueRules
    from evenmatch.service.queues.queue_service import QueueService

    with opened(db) as service:
        queue_service = QueueService(service)
        before = next((queue.rules for queue in queue_service.queues(ladder) if queue.name == name), QueueRules())
        entry = audit_entry("queue.set", ladder, name, {"policy": data, "rules": named})
        created = queue_service.noting(entry).set_queue(
            ladder, name, data, QueueRules.from_data(before.to_data() | named)
        )
    compile_ahead(MATCHMAKER, "the matchmaker")
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
    from evenmatch.service.queues.queue_service import QueueService

    with opened(db) as service:
        name = ladder_of(service, ladder)
        queues = QueueService(service).queues(name)
    if json:
        print_json([_document(name, queue) for queue in queues])
        return
    rows = [[queue.name, _shape(queue), _rules_text(queue.rules)] for queue in queues]
    print_table(f"{name}: {counted(len(rows), 'queue')}", ("queue", "matches", "rules"), rows)


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
    from evenmatch.service.queues.queue_service import QueueService

    with opened(db) as service:
        entry = audit_entry("queue.removed", ladder, name, {"force": force})
        removed = QueueService(service).noting(entry).remove_queue(ladder, name, force=force)
    if json:
        print_json({"ladder": ladder, "queue": name, "tickets_gone": removed})
        return
    tickets = f"; {counted(removed, 'waiting ticket')} ended" if removed else ""
    print(printable(f"queue {name} of ladder {ladder}: removed{tickets}"))


@app.command()
def audit(
    ladder: OfLadder,
    name: Name,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only matches formed at this time or later.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only matches formed before.")] = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Compare what a queue predicted of its matches with what was reported of them.

    The odds of each match that the queue formed, against its result: calibration slope (1 is calibrated), Brier score,
    share of stomps (see the ladder's setting stomp_margin) and of matches with a quitter, by spread, wait, parties,
    percentile and version of the policy. Times are ISO 8601 or epoch seconds.

    [bold]Examples[/bold]

    evenmatch queue audit arena ranked

    evenmatch queue audit arena ranked --since 2026-11-01 --json
    """
    from evenmatch.service.queries.ladder_queries import LadderQueries

    period = options.moment(since, "--since"), options.moment(until, "--until")
    with opened(db) as service:
        of = ladder_of(service, ladder)
        begin, end = period[0] or 0, service.clock() if period[1] is None else period[1]
        audited = LadderQueries(service).queue_audit(of, name, begin, end)
    if json:
        print_json(_plain(dataclasses.asdict(audited)))
        return
    print(
        printable(
            f"queue {name} of ladder {of}: {counted(audited.formed, 'match', 'matches')} formed, "
            f"{audited.overall.matches} played as predicted, {audited.unplayed} not reported or voided, "
            f"{audited.changed} played by another line-up, {audited.unpredicted} not predictable"
        )
    )
    if not audited.overall.matches:
        return
    print_table("all matches", ("", *AUDITED), [_audited(audited.overall)])
    for by, groups in audited.groups.items():
        print_table(f"by {by}", (by, *AUDITED), [_audited(group) for group in groups])
    if audited.warning is not None:
        note(audited.warning)


def _audited(group: AuditedGroup) -> list[str]:
    return [
        group.label,
        str(group.matches),
        _estimate(group.slope, 1, 2),
        _estimate(group.brier, 1, 3),
        _estimate(group.stomps, 100, 1),
        _estimate(group.quits, 100, 1),
    ]


def _estimate(measure: Measure, scale: float, decimals: int) -> str:
    """A value with its interval, such as 0.97 (0.91 to 1.04)."""
    value, low, high = (scale * number for number in (measure.value, measure.low, measure.high))
    if isnan(value):
        return "–"
    interval = "" if isnan(low) else f" ({low:.{decimals}f} to {high:.{decimals}f})"
    return f"{value:.{decimals}f}{interval}"


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

    if named in presets():
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


def _shape(setup: QueueSetup) -> str:
    return " v ".join([str(setup.policy.team_size)] * setup.policy.teams)


def _rules_text(rules: QueueRules) -> str:
    heartbeat = "no heartbeat" if rules.heartbeat is None else f"heartbeat {rules.heartbeat:g} s"
    return f"accept within {rules.accept_within:g} s, {heartbeat}, a tick each {rules.tick:g} s"


def _document(ladder: str, setup: QueueSetup) -> dict[str, object]:
    return {
        "ladder": ladder,
        "queue": setup.name,
        "policy": setup.policy.to_data(),
        "rules": setup.rules.to_data(),
    }
