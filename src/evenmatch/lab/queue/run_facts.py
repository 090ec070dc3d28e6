"""Inputs of a run as labels and values, for the heading of a report and the lines below a table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evenmatch.lab.queue.runs import Run
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.verdict import percent, seconds

MOST_REGIONS = 6  # most regions listed by name


def facts(run: Run) -> list[tuple[str, str]]:
    """Labels and values of teams, arrivals and scenario."""
    policy, scenario = run.policy, run.scenario
    shape = f"{policy.teams} of {policy.team_size}" if policy.team_size > 1 else f"{policy.teams} players, each alone"
    joins, players = int(run.sizes.sum()), len(np.unique(run.tickets.player))
    listed = [("teams", shape), ("players who joined", f"{players:,}")]
    if joins > players:
        listed.append(("joins, with repeated ones", f"{joins:,}"))
    if scenario is None:
        return [*listed, ("ticks", f"{len(run.ticks):,}")]
    rate = "as recorded" if scenario.kind == "recorded" else f"{scenario.arrivals:g} a second ({scenario.kind})"
    return [
        *listed,
        ("arrivals", rate),
        ("minutes", f"{scenario.minutes:g}"),
        ("strict", f"{percent(scenario.share_strict)}, ±{scenario.strict_within:g} percentiles"),
        ("loose at first", f"±{scenario.loose_within:g} percentiles"),
        ("rating error", f"{scenario.rating_error:g} points"),
        *habits(scenario),
        ("seed", str(scenario.seed)),
    ]


def habits(scenario: Scenario) -> list[tuple[str, str]]:
    """Labels and values of options that differ from the default scenario."""
    listed = []
    if scenario.players is not None:
        listed.append(("players of the ladder", f"{scenario.players:,}"))
    if scenario.party_size > 1:
        listed.append(
            ("parties", _mix({f"of {size}": share for size, share in enumerate(scenario.parties, 1) if share}))
        )
    if scenario.regions:
        listed.append(("regions", _mix(scenario.regions)))
    listed += [(name, _mix(shares)) for name, shares in scenario.attributes.items()]
    if scenario.vetoes:
        listed.append(("veto", ", ".join(f"{name} {percent(share)}" for name, share in scenario.vetoes.items())))
    if scenario.patience is not None:
        listed.append(("patience", seconds(scenario.patience)))
    if scenario.return_share:
        listed.append(("return after a match", percent(scenario.return_share)))
    if scenario.share_newcomers:
        listed.append(("newcomers", percent(scenario.share_newcomers)))
    if scenario.share_avoiding:
        listed.append(("avoid others", percent(scenario.share_avoiding)))
    return listed


def _mix(shares: Mapping[str, float]) -> str:
    total = sum(shares.values())
    names = [f"{name} {percent(share / total)}" for name, share in shares.items()]
    more = [f"{len(names) - MOST_REGIONS} more"] if len(names) > MOST_REGIONS else []
    return ", ".join(names[:MOST_REGIONS] + more)
