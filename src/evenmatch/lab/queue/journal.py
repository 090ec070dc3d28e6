"""Journal of a queue: one line of JSON per tick with joins, cancellations and decisions.

The first line is a header, the last a marker of completeness. Tickets are stored as columns, as in `Tickets`; pings
are one list per ticket, with null for an unavailable region, or null for a ticket that plays anywhere.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from evenmatch import __version__
from evenmatch.errors import EvenmatchError, InputError, UsageError
from evenmatch.history import Floats
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.ticket_columns import MEMBERS
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.tickets import LARGEST_NUMBER, TicketChoice, Tickets, Whole
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


WHOLE = ("id", "queued", "start", "player", "roles", "named_start", "named", "met")
REAL = ("percentile", "rating", "within", "deviation")
FLAGS = ("loose", "newcomer")
TICK = {"now", "join", "cancel", "expired", "matches"}


@dataclass(frozen=True, eq=False)
class JournalTick:
    """A recorded tick: joins and cancellations before it, and its decisions.

    skill  float64 (S,)  true skill of the joined players, NaN if unknown
    """

    now: int
    joined: Tickets
    skill: Floats
    cancelled: tuple[int, ...]
    expired: tuple[int, ...]
    matches: tuple[Teams, ...]


@dataclass(frozen=True, eq=False)
class QueueJournal:
    """A recorded queue.

    source    name of the file
    name      name of the recorded run
    version   version of evenmatch that wrote it
    scenario  None unless the run was a simulation
    ticks     in order of time
    """

    source: str
    name: str
    version: str
    policy: Policy
    scenario: Scenario | None
    ticks: tuple[JournalTick, ...]

    @property
    def times(self) -> tuple[float, ...]:
        """Queueing time of each party, in seconds from the first: `times` of a recorded scenario."""
        queued = np.sort(np.concatenate([np.empty(0, np.int64), *(tick.joined.queued for tick in self.ticks)]))
        return tuple(((queued - queued[:1]) / 1e6).tolist())


def load_journal(path: Path) -> QueueJournal:
    """Read a journal file. Raises UsageError if it cannot be opened, InputError if it is damaged or truncated."""
    try:
        with path.open(encoding="utf-8") as file:
            return read_journal(file, str(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file; expected a queue journal") from None


def read_journal(lines: Iterable[str], source: str = "journal") -> QueueJournal:
    """Parse a journal. Raises InputError, naming the line, if one is damaged or the end marker is missing."""
    header: Mapping[str, object] | None = None
    ticks: list[JournalTick] = []
    ended, number = False, 0
    for number, text in enumerate(lines, 1):
        where = f"{source}, line {number}"
        if ended:
            raise InputError(f"{where}: follows the end of the journal")
        line = _parsed(text, where)
        if header is None:
            header = _header(line, where)
            policy, scenario = _settings(header, where)
        elif "end" in line:
            if line["end"] != len(ticks):
                raise InputError(f"{where}: the end states {line['end']!r} ticks, but the journal has {len(ticks)}")
            ended = True
        else:
            ticks.append(_tick(line, where, ticks[-1].now if ticks else -1))
    if header is None:
        raise InputError(f"{source} is empty; expected a queue journal")
    if not ended:
        raise InputError(
            f"{source}, line {number}: the journal stops here without its end: it was not written completely"
        )
    return QueueJournal(source, str(header["name"]), str(header["version"]), policy, scenario, tuple(ticks))


def _parsed(text: str, where: str) -> dict[str, object]:
    try:
        line = json.loads(text)
    except ValueError as error:
        raise InputError(f"{where}: is not JSON ({error}); expected one object per line") from None
    if not isinstance(line, dict):
        raise InputError(f"{where}: is {text.strip()[:40]!r}; expected one object per line")
    return line


def _header(line: dict[str, object], where: str) -> dict[str, object]:
    if line.get("journal") != KIND or line.get("format") != FORMAT:
        raise InputError(
            f"{where}: is not the header of a queue journal; expected journal={KIND!r} and format={FORMAT}"
        )
    if missing := {"name", "version", "policy", "scenario"} - line.keys():
        raise InputError(f"{where}: the header lacks {', '.join(sorted(missing))}")
    return line


def _settings(header: Mapping[str, object], where: str) -> tuple[Policy, Scenario | None]:
    policy, scenario = header["policy"], header["scenario"]
    if not isinstance(policy, dict) or not (scenario is None or isinstance(scenario, dict)):
        raise InputError(f"{where}: policy and scenario must be tables")
    try:
        return Policy.from_data(policy), None if scenario is None else Scenario.from_data(scenario)
    except EvenmatchError as error:
        raise InputError(f"{where}: {error}") from None


def _tick(line: dict[str, object], where: str, before: int) -> JournalTick:
    if unknown := line.keys() - TICK:
        raise InputError(f"{where}: has {min(unknown)!r}; expected {', '.join(sorted(TICK))}")
    now = _numbers([line.get("now")], f"{where}: now")[0]
    if now <= before:
        raise InputError(f"{where}: now is {now}; expected a time after {before}, the previous tick")
    joined, skill = _joined(line.get("join"), f"{where}: join")
    matches = line.get("matches", [])
    if not isinstance(matches, list) or not all(isinstance(teams, list) and teams for teams in matches):
        raise InputError(f"{where}: matches must be lists of teams")
    return JournalTick(
        now,
        joined,
        skill,
        tuple(_numbers(line.get("cancel", []), f"{where}: cancel")),
        tuple(_numbers(line.get("expired", []), f"{where}: expired")),
        tuple(tuple(tuple(_numbers(team, f"{where}: a team")) for team in teams) for teams in matches),
    )


def _joined(columns: object, where: str) -> tuple[Tickets, Floats]:
    none = np.empty(0, np.int64)
    if columns is None:
        empty = np.empty(0)
        return Tickets.plain(none, none, np.zeros(1, np.int64), none, empty, empty, empty, np.empty(0, np.bool_)), empty
    if not isinstance(columns, dict):
        raise InputError(f"{where}: expected columns of tickets")
    if missing := {"id", "queued", "start", *MEMBERS, "named_start", "named", "met"} - columns.keys():
        raise InputError(f"{where}: lacks {', '.join(sorted(missing))}")
    parsed: dict[str, Any] = {}
    for name in WHOLE:
        parsed[name] = np.array(_numbers(columns[name], f"{where}: {name}", above=name in {"met", "roles"}), np.int64)
    parsed["roles"] = parsed["roles"].astype(np.uint64)
    for name in REAL:
        parsed[name] = np.array(_reals(columns[name], f"{where}: {name}"), np.float64)
    for name in FLAGS:
        if not isinstance(columns[name], list) or not all(isinstance(flag, bool) for flag in columns[name]):
            raise InputError(f"{where}: {name} must be true or false")
        parsed[name] = np.array(columns[name], np.bool_)
    regions, roles = (_names(columns.get(name, []), f"{where}: {name}") for name in ("regions", "role_names"))
    ping = _pings(columns.get("ping", [[]] * len(parsed["id"])), regions, f"{where}: ping")
    choices = _choices(columns.get("choices", []), f"{where}: choices")
    choice = np.array(_numbers(columns.get("choice", []), f"{where}: choice"), np.int64)
    tickets = Tickets(**parsed, ping=ping, region_names=regions, role_names=roles, choice=choice, choices=choices)
    _fit(tickets, where)
    skill = np.array(_reals(columns.get("skill", []), f"{where}: skill"), np.float64)
    if "skill" not in columns:
        skill = np.full(len(tickets.player), np.nan)
    if len(skill) != len(tickets.player):
        raise InputError(f"{where}: {len(skill)} skills for {len(tickets.player)} players; expected one for each")
    return tickets, skill


def _fit(tickets: Tickets, where: str) -> None:
    """Raise InputError if columns differ in length or a ticket or player joins twice in a tick."""
    for starts, rows in ((tickets.start, len(tickets.player)), (tickets.named_start, len(tickets.named))):
        if len(starts) != len(tickets) + 1 or starts[0] != 0 or starts[-1] != rows or (np.diff(starts) < 0).any():
            raise InputError(
                f"{where}: starts must rise from 0 to the number of rows, one for each ticket and one for the end"
            )
    if len(tickets.ping) != len(tickets) or len(tickets.met) != len(tickets.named):
        raise InputError(f"{where}: columns differ in length")
    for what, numbers in (("ticket", tickets.id), ("player", tickets.player)):
        distinct, counts = np.unique(numbers, return_counts=True)
        if (counts > 1).any():
            raise InputError(f"{where}: {what} {distinct[counts > 1][0]} joins twice in one tick")
    if int(tickets.roles.max(initial=0)) >> len(tickets.role_names):
        raise InputError(f"{where}: roles has a bit without a name in role_names")
    try:
        tickets.check()
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _pings(rows: object, regions: tuple[str, ...], where: str) -> Floats:
    if not isinstance(rows, list):
        raise InputError(f"{where}: expected a list for each ticket")
    pings = np.full((len(rows), len(regions)), np.nan)
    for index, row in enumerate(rows):
        if row is None:
            continue
        if not isinstance(row, list) or len(row) != len(regions) or (regions and all(ping is None for ping in row)):
            raise InputError(f"{where}: {row!r}; expected null, or {len(regions)} pings with at least one number")
        if min(_reals([ping for ping in row if ping is not None], where), default=0.0) < 0:
            raise InputError(f"{where}: {row!r}; expected milliseconds from 0")
        pings[index] = [np.inf if ping is None else ping for ping in row]
    return pings


def _choices(choices: object, where: str) -> tuple[TicketChoice, ...]:
    if not isinstance(choices, list):
        raise InputError(f"{where}: expected a list")
    parsed = []
    for choice in choices:
        if not isinstance(choice, dict) or not isinstance(attributes := choice.get("attributes"), dict):
            raise InputError(f"{where}: {choice!r}; expected a table of attributes, and vetoes")
        accepted = sorted((name, tuple(sorted(_names(values, where)))) for name, values in attributes.items())
        parsed.append(TicketChoice(tuple(accepted), tuple(sorted(_names(choice.get("vetoes", []), where)))))
    return tuple(parsed)


def _names(names: object, where: str) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InputError(f"{where}: expected different names")
    return tuple(names)


def _numbers(values: object, where: str, *, above: bool = False) -> list[int]:
    """Check integers from 0 to 2^62 - 1; `above`: to 2^63 - 1."""
    most = 2**63 if above else LARGEST_NUMBER
    if not isinstance(values, list):
        raise InputError(f"{where}: is {values!r}; expected a list of whole numbers")
    for value in values:
        if type(value) is not int or not 0 <= value < most:
            raise InputError(f"{where}: has {value!r}; expected whole numbers from 0")
    return values


def _reals(values: object, where: str) -> list[float]:
    if not isinstance(values, list):
        raise InputError(f"{where}: is {values!r}; expected a list of numbers")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InputError(f"{where}: has {value!r}; expected finite numbers")
    return values
