"""What a run was given, as words and values: for the heading of a report, and for the lines under a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evenmatch.lab.queue_others import others
from evenmatch.lab.queue_run import Run
from evenmatch.lab.queue_scenario import Scenario
from evenmatch.lab.queue_verdict import percent, seconds

MOST_REGIONS = 6  # that are listed by name


def facts(run: Run) -> list[tuple[str, str]]:
    """Everything about the teams and the scenario that a reader wants at hand."""
    policy, scenario = run.policy, run.scenario
    shape = f"{policy.teams} of {policy.team_size}" if policy.team_size > 1 else f"{policy.teams} players, each alone"
    joins, people = int(run.sizes.sum()), len(np.unique(run.tickets.player))
    came = [("teams", shape), ("players who came", f"{people:,}")]
    if joins > people:
        came.append(("joins, some coming again", f"{joins:,}"))
    if scenario is None:
        return [*came, ("ticks", f"{len(run.ticks):,}")]
    rate = "as recorded" if scenario.kind == "recorded" else f"{scenario.arrivals:g} a second ({scenario.kind})"
    return [
        *came,
        ("arrivals", rate),
        ("minutes", f"{scenario.minutes:g}"),
        ("strict", f"{percent(scenario.share_strict)}, ±{scenario.strict_within:g} percentiles"),
        ("loose at first", f"±{scenario.loose_within:g} percentiles"),
        ("ratings err by", f"{scenario.rating_error:g} points"),
        *habits(scenario),
        ("seed", str(scenario.seed)),
    ]


def habits(scenario: Scenario) -> list[tuple[str, str]]:
    """What is not so in the default scenario."""
    told = []
    if scenario.players is not None:
        told.append(("players of the ladder", f"{scenario.players:,}"))
    if scenario.party_size > 1:
        told.append(("parties", _mix({f"of {size}": share for size, share in enumerate(scenario.parties, 1) if share})))
    if scenario.regions:
        told.append(("regions", _mix(scenario.regions)))
    if scenario.patience is not None:
        told.append(("patience", seconds(scenario.patience)))
    if scenario.return_share:
        told.append(("return after a match", percent(scenario.return_share)))
    if scenario.share_newcomers:
        told.append(("newcomers", percent(scenario.share_newcomers)))
    if scenario.share_avoiding:
        told.append(("avoid others", percent(scenario.share_avoiding)))
    return told


def _mix(shares: Mapping[str, float]) -> str:
    total = sum(shares.values())
    told = [f"{name} {percent(share / total)}" for name, share in shares.items()]
    more = [f"{len(told) - MOST_REGIONS} more"] if len(told) > MOST_REGIONS else []
    return ", ".join(told[:MOST_REGIONS] + more)


def compared(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """The comparison matchmakers among the runs, and what each is."""
    known = others()
    return [(run.name, known[run.name].what) for run in runs if run.name in known]
