"""Journal of a queue: one line of JSON per tick with joins, cancellations and decisions.

The first line is a header, the last a marker of completeness. Tickets are stored as columns, as in `Tickets`; pings
are one list per ticket, with null for an unavailable region, or null for a ticket that plays anywhere.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TextIO

import numpy as np

from evenmatch import __version__
from evenmatch.history import Floats
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.ticket_columns import MEMBERS
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.tickets import Tickets, Whole
from evenmatch.policy import Policy

KIND, FORMAT = "evenmatch queue journal", 1
Teams = tuple[tuple[int, ...], ...]  # ticket numbers of each team of a match
COLUMNS = ("id", "queued", "start", *MEMBERS, "named_start", "named", "met")


class JournalWriter:
    """Writes a journal to an open text file; the caller closes the file."""

    def __init__(self, file: TextIO, name: str, policy: Policy, scenario: Scenario | None) -> None:
        self._file, self._ticks = file, 0
        header = {"journal": KIND, "format": FORMAT, "version": __version__, "name": name, "policy": policy.to_data()}
        self._write(header | {"scenario": None if scenario is None else scenario.to_data()})

    def tick(self, now: int, joined: Tickets, skill: Floats, cancelled: list[int], proposals: Proposals) -> None:
        """Write a tick: tickets that joined (`skill`: true skill, NaN if unknown), cancelled tickets, decisions."""
        line: dict[str, object] = {"now": now}
        if len(joined):
            line["join"] = _columns(joined, skill)
        if cancelled:
            line["cancel"] = cancelled
        if len(proposals):
            line["matches"] = decisions(proposals.start, proposals.ticket, proposals.team)
        if len(proposals.expired):
            line["expired"] = proposals.expired.tolist()
        self._write(line)
        self._ticks += 1

    def end(self) -> None:
        """Write the end marker, without which a journal counts as truncated."""
        self._write({"end": self._ticks})

    def _write(self, line: dict[str, object]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n")


def decisions(start: Whole, ticket: Whole, team: Whole) -> list[Teams]:
    """Convert matches to tuples of teams of ticket numbers."""
    matches = []
    bounds, tickets, sides = start.tolist(), ticket.tolist(), team.tolist()
    for first, stop in pairwise(bounds):
        teams: list[list[int]] = [[] for _ in range(max(sides[first:stop]) + 1)]
        for index in range(first, stop):
            teams[sides[index]].append(tickets[index])
        matches.append(tuple(map(tuple, teams)))
    return matches


def _columns(tickets: Tickets, skill: Floats) -> dict[str, object]:
    columns: dict[str, object] = {name: getattr(tickets, name).tolist() for name in COLUMNS}
    if tickets.region_names:
        columns["regions"] = list(tickets.region_names)
        columns["ping"] = [
            None if np.isnan(row).all() else [ping if ping < np.inf else None for ping in row.tolist()]
            for row in tickets.ping
        ]
    if tickets.role_names:
        columns["role_names"] = list(tickets.role_names)
    if len(tickets.choice):
        columns["choice"] = tickets.choice.tolist()
        columns["choices"] = [
            {"attributes": {name: list(values) for name, values in choice.accepted}, "vetoes": list(choice.vetoes)}
            for choice in tickets.choices
        ]
    if len(skill) and np.isfinite(skill).all():
        columns["skill"] = skill.tolist()
    return columns
