"""evenmatch queue: the queues of a ladder, in which the service's matchmaker makes matches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli import options
from evenmatch.cli.acting import deed
from evenmatch.cli.database import DATABASE, Db, OnLadder, counted, ladder_of, opened, typed
from evenmatch.cli.output import compile_ahead, note, print_json, print_table, printable
from evenmatch.cli.policies import find, read_document
from evenmatch.errors import UsageError

if TYPE_CHECKING:
    from evenmatch.service.queueing.queue_rules import QueueRules, QueueSetup

app = typer.Typer(help="Make, list and remove the queues of a ladder, for the service.", no_args_is_help=True)

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
        typer.Option("--team-size", min=1, metavar="N", help="Players in a team; otherwise the policy's or ladder's."),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--rule", "-r", metavar="K=V", help="As accept_within=15, in seconds; may be given several times."
        ),
    ] = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Make a queue, or replace its policy; who waits there goes on waiting. Rules that are not named stay as they are.

    The rules, in seconds: accept_within (20), heartbeat (30, or none), tick (1), penalty (30), penalty_most (900),
    penalty_fades (3600), longest_match (7200).

    [bold]Examples[/bold]

    evenmatch queue set arena ranked --policy balanced

    evenmatch queue set arena quick --policy quick --team-size 3 --rule accept_within=10
    """
    data = _policy(policy) | ({} if team_size is None else {"team_size": team_size})
    named = _named(rule)
    from evenmatch.service.kernels import MATCHMAKER
    from evenmatch.service.queueing.desk import Desk
    from evenmatch.service.queueing.queue_rules import QueueRules

    with opened(db) as service:
        desk = Desk(service)
        before = next((one.rules for one in desk.queues(ladder) if one.name == name), QueueRules())
        done = deed("queue.set", ladder, name, {"policy": data, "rules": named})
        made = desk.noting(done).set_queue(ladder, name, data, QueueRules.from_data(before.to_data() | named))
    compile_ahead(MATCHMAKER, "the matchmaker")
    if json:
        print_json(_document(ladder, made))
        return
    print(printable(f"queue {name} of ladder {ladder}: {_shape(made)}, {_told(made.rules)}"))
    note(f"players join by the service: {typed(db, 'serve')}")


@app.command(name="list")
def list_(ladder: OnLadder = None, db: Db = DATABASE, json: options.Json = False) -> None:
    """List the queues of a ladder.

    [bold]Example[/bold]

    evenmatch queue list --ladder arena
    """
    from evenmatch.service.queueing.desk import Desk

    with opened(db) as service:
        name = ladder_of(service, ladder)
        queues = Desk(service).queues(name)
    if json:
        print_json([_document(name, one) for one in queues])
        return
    rows = [[one.name, _shape(one), _told(one.rules)] for one in queues]
    print_table(f"{name}: {counted(len(rows), 'queue')}", ("queue", "matches", "rules"), rows)


@app.command()
def remove(
    ladder: OfLadder,
    name: Name,
    force: Annotated[bool, typer.Option("--force", help="Even if players wait there: their tickets are gone.")] = False,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Remove a queue, in which nobody may wait.

    [bold]Example[/bold]

    evenmatch queue remove arena quick
    """
    from evenmatch.service.queueing.desk import Desk

    with opened(db) as service:
        done = deed("queue.removed", ladder, name, {"force": force})
        gone = Desk(service).noting(done).remove_queue(ladder, name, force=force)
    if json:
        print_json({"ladder": ladder, "queue": name, "tickets_gone": gone})
        return
    told = f"; {counted(gone, 'ticket')} that waited there {'is' if gone == 1 else 'are'} gone" if gone else ""
    print(printable(f"queue {name} of ladder {ladder}: removed{told}"))


def _policy(told: str) -> dict[str, object]:
    """What --policy names, as a document; without team_size where it names none, so that the ladder's holds."""
    from evenmatch.matchmaking.policy import presets

    if told in presets():
        return {"preset": told}
    find(told)  # raises for what is no policy
    return read_document(Path(told), "a policy")


def _named(rules: list[str] | None) -> dict[str, object]:
    """The rules that --rule names."""
    values: dict[str, object] = {}
    for text in rules or []:
        name, equals, value = text.partition("=")
        try:
            values[name.strip()] = None if value.strip() == "none" else float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise UsageError(f"--rule {text}: accepted is NAME=SECONDS, for instance accept_within=15")
    return values


def _shape(setup: QueueSetup) -> str:
    return " v ".join([str(setup.policy.team_size)] * setup.policy.teams)


def _told(rules: QueueRules) -> str:
    beat = "no heartbeat" if rules.heartbeat is None else f"heartbeat {rules.heartbeat:g} s"
    return f"accept within {rules.accept_within:g} s, {beat}, a tick each {rules.tick:g} s"


def _document(ladder: str, setup: QueueSetup) -> dict[str, object]:
    return {
        "ladder": ladder,
        "queue": setup.name,
        "policy": setup.policy.to_data(),
        "rules": setup.rules.to_data(),
    }
