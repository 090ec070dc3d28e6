"""evenmatch queue: create, fit, compare and remove the matchmaking queues of a ladder."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenmatch.cli.policies import find, read_document
from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, OnLadder, audit_entry, counted, ladder_of, opened, typed
from evenmatch.cli.shared.derived_options import with_options
from evenmatch.cli.shared.options import OnCluster, argument, connected, option
from evenmatch.cli.shared.output import as_data, compile_ahead, note, print_json, print_table, printable, working
from evenmatch.cli.simulation import COMPILING, PARTS, target_of
from evenmatch.errors import UsageError
from evenmatch.experiment import ExperimentDesign
from evenmatch.options import options_of
from evenmatch.policy import WaitTarget
from evenmatch.queues.queue_rules import QueueRules

if TYPE_CHECKING:
    from evenmatch.calibration import Measure
    from evenmatch.operations.service import Service
    from evenmatch.queues.audit import AuditedGroup, QueueAudit
    from evenmatch.queues.experiment_audit import ComparedFigure, ExperimentAudit, ExperimentFigure, Needed
    from evenmatch.queues.stored_queues import QueueExperiment, QueueSetup

app = typer.Typer(
    help="Create, list and remove the matchmaking queues of a ladder, for the service.", no_args_is_help=True
)

OfLadder = Annotated[str, argument("LADDER", "The ladder's name.")]
Name = Annotated[str, argument("NAME", "The queue's name.")]
Tried = Annotated[str, option("--policy, -p NAME|FILE", "The second policy: a preset or file.")]
AUTO = "auto"  # instead of a policy: the service fits the policy of the queue


@app.command()
@with_options(options_of(WaitTarget), default="Default: the queue's own, or {}.")
def fit(
    *,
    ladder: OfLadder,
    name: Name,
    adopt: Annotated[bool, option("--adopt", "Give the queue this policy if it meets the target.")] = False,
    db: Db = DATABASE,
    json: options.Json = False,
    changes: dict[str, object],
) -> None:
    """Find the policy that makes the closest matches while most players wait no longer than a target.

    The command simulates the queue with the players who joined in the last day, tries policies of different widths, and
    explains the best one. Only even_spread, steps and overdue_after change. The target comes from --within and --share,
    or from the queue's rules. To repeat this every day, use `evenmatch queue set --policy auto`.

    Examples:
    evenmatch queue fit arena ranked
    evenmatch queue fit arena ranked --within 60 --share 0.8 --adopt
    """
    with opened(db) as service:
        with working(COMPILING, PARTS) as progress:
            from evenmatch.accounts.access import OPERATOR
            from evenmatch.queues import policy_fits
            from evenmatch.queues.queue_service import QueueService

            own = QueueService(service).queue(ladder, name).rules.target
            target = target_of(changes, own or WaitTarget())
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
        print(printable(f"queue {name} of ladder {ladder} now has the fitted policy"))
    elif fitted.fit.is_kept:
        note("to give the queue this policy, add --adopt")


@app.command(name="set")
@with_options(options_of(QueueRules), flags={"auto_within": "--within", "auto_share": "--share"})
def set_(
    *,
    ladder: OfLadder,
    name: Name,
    policy: Annotated[str, option("--policy, -p NAME|FILE", "A preset, a policy file, or auto.")] = "balanced",
    team_size: Annotated[
        int | None, option("--team-size N", "Players per team, instead of the policy's or ladder's.", low=1)
    ] = None,
    db: Db = DATABASE,
    json: options.Json = False,
    changes: dict[str, object],
) -> None:
    """Create a queue, or replace its policy; waiting players keep their place. Options not given stay unchanged.

    Times are in seconds. With --policy auto the queue keeps its policy, or begins with balanced. Once a day, the
    service fits it so that a --share of the players wait at most --within seconds; see `evenmatch queue fit`.

    Examples:
    evenmatch queue set arena ranked --policy balanced
    evenmatch queue set arena quick --policy quick --team-size 3 --accept-within 10
    evenmatch queue set arena ranked --policy auto --within 90 --share 0.9
    """
    data = _policy(policy) | ({} if team_size is None else {"team_size": team_size})
    if policy != AUTO:
        if changes.keys() & {"auto_within", "auto_share"}:
            raise UsageError(f"--within and --share are for --policy auto, not for {policy}")
        changes["auto_within"] = None
    from evenmatch.operations.kernels import MATCHMAKER
    from evenmatch.queues.queue_service import QueueService

    with opened(db) as service:
        queue_service = QueueService(service)
        before = next((queue.rules for queue in queue_service.queues(ladder) if queue.name == name), QueueRules())
        entry = audit_entry("queue.set", ladder, name, {"policy": data, "rules": changes})
        created = queue_service.noting(entry).set_queue(
            ladder, name, data, QueueRules.from_data(before.to_data() | changes)
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

    Example:
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
    paused = [f"{queue.name}: {_pause_text(queue)}" for queue in queues if queue.paused is not None]
    running = [f"{queue.name}: {described(queue.experiment)}" for queue in queues if queue.experiment is not None]
    print_table(f"{name}: {counted(len(rows), 'queue')}", ("queue", "matches", "rules"), rows)
    for text in paused + running:
        print(printable(text))


@app.command()
def remove(
    ladder: OfLadder,
    name: Name,
    force: Annotated[bool, option("--force", "Remove it even if players wait; their tickets end.")] = False,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Remove a queue in which no players wait.

    Example:
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
def pause(
    ladder: OfLadder,
    name: Name,
    message: Annotated[str, option("--message TEXT", "Shown to players who wait or try to join.")] = "",
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Pause a queue: it takes no new tickets and makes no matches. Waiting players keep their place.

    Examples:
    evenmatch queue pause arena ranked
    evenmatch queue pause arena ranked --message "Maintenance until 18:00 UTC"
    """
    _set_pause(db, ladder, name, message, json)


@app.command()
def resume(ladder: OfLadder, name: Name, db: Db = DATABASE, json: options.Json = False) -> None:
    """Resume a paused queue.

    Example:
    evenmatch queue resume arena ranked
    """
    _set_pause(db, ladder, name, None, json)


def _set_pause(db: str, ladder: str, name: str, message: str | None, json: bool) -> None:
    """Pause a queue with a message, or resume it (None)."""
    from evenmatch.queues.queue_service import QueueService

    with opened(db) as service:
        action, body = ("queue.resumed", {}) if message is None else ("queue.paused", {"message": message})
        entry = audit_entry(action, ladder, name, body)
        setup = QueueService(service).noting(entry).pause_queue(ladder, name, message)
    if json:
        print_json(_document(ladder, setup))
        return
    print(printable(f"queue {name} of ladder {ladder}: {'resumed' if setup.paused is None else _pause_text(setup)}"))


def _pause_text(setup: QueueSetup) -> str:
    return f"paused ({setup.paused})" if setup.paused else "paused"


@app.command()
@with_options(options_of(ExperimentDesign))
def experiment(
    *,
    ladder: OfLadder,
    name: Name,
    policy: Tried,
    db: Db = DATABASE,
    json: options.Json = False,
    changes: dict[str, object],
) -> None:
    """Test a second policy on a queue against the queue's own.

    Time is divided into slices. One policy decides alone in each slice, drawn with the seed, so a restart changes
    nothing. Waiting players stay. `evenmatch queue audit` compares the policies, and `evenmatch queue stop-experiment`
    ends the experiment.

    Examples:
    evenmatch queue experiment arena ranked --policy quick
    evenmatch queue experiment arena ranked --policy quick --share 0.2 --seed 7 --slice-seconds 900
    """
    tried = _policy(policy)
    from evenmatch.queues.queue_service import QueueService

    with opened(db) as service:
        entry = audit_entry("experiment.started", ladder, name, {"policy": tried, **changes})
        started = QueueService(service).noting(entry).start_experiment(ladder, name, tried, changes)
    if json:
        print_json({"ladder": ladder, **as_data(started)})
        return
    print(printable(f"queue {name} of ladder {ladder}: {described(started)}"))


@app.command(name="stop-experiment")
def stop_experiment(ladder: OfLadder, name: Name, db: Db = DATABASE, json: options.Json = False) -> None:
    """Stop the experiment of a queue, so that its own policy decides alone. The audit still compares its matches.

    To keep the second policy, set it afterwards with `evenmatch queue set`.

    Example:
    evenmatch queue stop-experiment arena ranked
    """
    from evenmatch.queues.queue_service import QueueService

    with opened(db) as service:
        entry = audit_entry("experiment.stopped", ladder, name)
        stopped = QueueService(service).noting(entry).stop_experiment(ladder, name)
    if json:
        print_json({"ladder": ladder, **as_data(stopped)})
        return
    print(printable(f"queue {name} of ladder {ladder}: {described(stopped)}"))


@app.command()
def audit(
    ladder: Annotated[str | None, argument("[LADDER]", "The ladder's name; otherwise all.")] = None,
    name: Annotated[str | None, argument("[NAME]", "The queue's name; otherwise all.")] = None,
    since: Annotated[str | None, option("--since TIME", "Only matches formed at or after this time.")] = None,
    until: Annotated[str | None, option("--until TIME", "Only matches formed before.")] = None,
    cluster: OnCluster = None,
    db: Db = DATABASE,
    json: options.Json = False,
) -> None:
    """Compare a queue's predictions with the reported results.

    The audit compares the odds of each match with its result: calibration slope (1 is calibrated), Brier score, and the
    shares of stomps (see the ladder's stomp_margin) and of matches with a quitter, by spread, wait, parties, percentile
    and policy version. It counts the parties that waited less than estimated (half should) and less than the upper
    estimate (nine in ten should), and it compares the policies of an experiment, see `evenmatch queue experiment`.

    Times are ISO 8601 or epoch seconds. Without NAME, all queues of the ladder are audited, without LADDER those of all
    ladders, and --json prints a list. With --cluster, each queue is a separate task.

    Examples:
    evenmatch queue audit arena ranked
    evenmatch queue audit arena ranked --since 2026-11-01 --json
    """
    period = options.moment(since, "--since"), options.moment(until, "--until")
    with opened(db) as service:
        queues = _queues(service, ladder, name)
        begin, end = period[0] or 0, service.clock() if period[1] is None else period[1]
        audited = _audited(service, queues, begin, end) if cluster is None else []
    if cluster is not None:
        from evenmatch.cluster.maintenance import audit_queues

        with connected(cluster, ()) as nodes, working("auditing queues", len(queues)) as progress:
            audited = audit_queues(nodes, db, queues, begin, end, progress)
    if json:
        print_json(audited if name is None else audited[0])
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


def _audited(service: Service, queues: Sequence[tuple[str, str]], begin: int, end: int) -> list[QueueAudit]:
    from evenmatch.ladders.ladder_queries import LadderQueries

    return [LadderQueries(service).queue_audit(ladder, queue, begin, end) for ladder, queue in queues]


def _policy(named: str) -> dict[str, object]:
    """Return the policy of --policy as data, without team_size unless it sets one, so that the ladder's applies."""
    from evenmatch.policy import presets

    if named == AUTO or named in presets():
        return {"preset": named}
    find(named)  # raises for anything that is not a policy
    return read_document(Path(named), "a policy")


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
        "policy": setup.policy,
        "rules": setup.rules,
        "experiment": setup.experiment,
        "paused": setup.paused,
    }


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
        print_table("waits estimated at joining", ("parties", "% below estimate (50)", "% below upper (90)"), [figures])
    if audited.overall.matches:
        print_table("all matches", ("", *AUDITED), [_audited_row(audited.overall)])
        for by, groups in audited.groups.items():
            print_table(f"by {by}", (by, *AUDITED), [_audited_row(group) for group in groups])
        if audited.warning is not None:
            note(audited.warning)
    for experiment in audited.experiments:
        print_comparison(experiment)


def _audited_row(group: AuditedGroup) -> list[str]:
    return [
        group.label,
        str(group.matches),
        estimate(group.slope, 1, 2),
        estimate(group.brier, 1, 3),
        estimate(group.stomps, 100, 1),
        estimate(group.quits, 100, 1),
    ]


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
    print_table(
        "A: the queue's own policy, B: the second one", COMPARED, [_compared_row(row) for row in audited.figures]
    )
    print(printable(audited.summary))
    note(
        "one interval in twenty is wrong by chance, so expect some wrong ones if you compare many figures or look often"
    )


def estimate(measure: Measure, scale: float, decimals: int) -> str:
    """A value with its interval, such as 0.97 (0.91 to 1.04)."""
    value, low, high = (scale * number for number in (measure.value, measure.low, measure.high))
    if isnan(value):
        return "–"
    interval = "" if isnan(low) else f" ({low:.{decimals}f} to {high:.{decimals}f})"
    return f"{value:.{decimals}f}{interval}"


def _compared_row(compared: ComparedFigure) -> list[str]:
    figure = compared.figure
    unit = f", {figure.unit}" if figure.unit else ""
    needed = compared.seen if compared.seen.matches == 0 else compared.worth
    values = (compared.first, compared.second, compared.difference)
    return [
        f"{figure.label}{unit}",
        *(estimate(value, figure.scale, figure.decimals) for value in values),
        _matches(needed),
        _size_to_know(figure, needed),
        compared.verdict,
    ]


def _matches(needed: Needed) -> str:
    if needed.matches is None or needed.days is None:
        return "–"
    return "none" if needed.matches == 0 else f"{needed.matches:,} ({needed.days:,.1f} days)"


def _size_to_know(figure: ExperimentFigure, needed: Needed) -> str:
    return "–" if isnan(needed.size) else f"{figure.scale * needed.size:.{figure.decimals}f}"
