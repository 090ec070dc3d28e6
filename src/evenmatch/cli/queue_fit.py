"""evenmatch queue fit: fit the policy of a queue to the players who join it."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli.shared import options
from evenmatch.cli.shared.database_options import DATABASE, Db, opened
from evenmatch.cli.shared.output import note, print_json, printable, working
from evenmatch.cli.shared.queue_runs import COMPILING
from evenmatch.errors import UsageError
from evenmatch.wait_target import WaitTarget

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


def command(
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
            from evenmatch.service.callers.access import OPERATOR
            from evenmatch.service.queues import policy_fits
            from evenmatch.service.queues.queue_service import QueueService

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
