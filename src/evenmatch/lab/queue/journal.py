"""Journal of a queue: one line of JSON per tick with joins, cancellations and decisions.

The first line is a header, the last a marker of completeness. Tickets are stored as columns, as in `Tickets`; pings
are one list per ticket, with null for an unavailable region, or null for a ticket that plays anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from evenmatch import __version__
from evenmatch.errors import EvenmatchError, InputError, UsageError
from evenmatch.history import Floats
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.matchmaking.proposal import Proposals
from evenmatch.matchmaking.tickets import TicketChoice, Tickets, Whole
from evenmatch.policy import Policy

KIND, FORMAT = "evenmatch queue journal", 1
Teams = tuple[tuple[int, ...], ...]  # ticket numbers of each team of a match
COLUMNS = {  # of tickets, with their types
    **dict.fromkeys(("id", "queued", "start", "player", "named_start", "named", "met"), "i8"),
    **dict.fromkeys(("percentile", "rating", "within"), "f8"),
    **dict.fromkeys(("loose", "newcomer"), "?"),
    "roles": "u8",
}


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
    header: Mapping[str, Any] | None = None
    ticks: list[JournalTick] = []
    ended, number = False, 0
    for number, text in enumerate(lines, 1):
        where = f"{source}, line {number}"
        if ended:
            raise InputError(f"{where}: follows the end of the journal")
        line = _parsed(text, where)
        if header is None:
            header = line
            policy, scenario = _settings(line, where)
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
            f"{source}, line {number}: the journal stops here without its last line; it was not written completely"
        )
    return QueueJournal(source, str(header["name"]), str(header["version"]), policy, scenario, tuple(ticks))


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except ValueError as error:
        raise InputError(f"{where}: is not JSON ({error}); expected one object per line") from None
    if not isinstance(line, dict):
        raise InputError(f"{where}: is {text.strip()[:40]!r}; expected one object per line")
    return line


def _settings(header: Mapping[str, Any], where: str) -> tuple[Policy, Scenario | None]:
    if header.get("journal") != KIND or header.get("format") != FORMAT:
        raise InputError(
            f"{where}: is not the header of a queue journal; expected journal={KIND!r} and format={FORMAT}"
        )
    if missing := {"name", "version", "policy", "scenario"} - header.keys():
        raise InputError(f"{where}: the header lacks {', '.join(sorted(missing))}")
    policy, scenario = header["policy"], header["scenario"]
    try:
        return Policy.from_data({**policy}), None if scenario is None else Scenario.from_data({**scenario})
    except (EvenmatchError, TypeError) as error:
        raise InputError(f"{where}: {error}") from None


def _tick(line: Mapping[str, Any], where: str, before: int) -> JournalTick:
    if unknown := line.keys() - TICK:
        raise InputError(f"{where}: has {min(unknown)!r}; expected {', '.join(sorted(TICK))}")
    try:
        now = int(_column([line["now"]], "i8")[0])
        tick = JournalTick(
            now,
            *_joined(line.get("join", NOBODY)),
            tuple(_column(line.get("cancel", []), "i8").tolist()),
            tuple(_column(line.get("expired", []), "i8").tolist()),
            tuple(tuple(tuple(_column(team, "i8").tolist()) for team in teams) for teams in line.get("matches", [])),
        )
    except (InputError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{where}: is damaged ({error}); expected a line as evenmatch writes it") from None
    if now <= before:
        raise InputError(f"{where}: now is {now}; expected a time after {before}, the previous tick")
    return tick


NOBODY: dict[str, Any] = {**dict.fromkeys(COLUMNS, ()), "start": (0,), "named_start": (0,)}


def _column(values: Sequence[object], kind: str) -> np.ndarray:
    """The values as one dimension of this type: finite, and whole numbers from 0. Raises ValueError."""
    wanted = np.dtype(kind)
    if not len(values):
        return np.empty(0, wanted)
    column = np.array(values)
    allowed = {"f": "fi", "u": "i"}.get(wanted.kind, wanted.kind)
    if column.ndim != 1 or column.dtype.kind not in allowed:
        raise ValueError(f"{values!r:.60} are not of type {wanted}")
    if (wanted.kind == "f" and not np.isfinite(column).all()) or (wanted.kind in "iu" and column.min() < 0):
        raise ValueError(f"{values!r:.60} are out of range")
    return column.astype(wanted)


def _joined(columns: Mapping[str, Any]) -> tuple[Tickets, Floats]:
    """The tickets that joined, and the skills of their players. Raises InputError and ValueError."""
    parsed: dict[str, Any] = {name: _column(columns[name], kind) for name, kind in COLUMNS.items()}
    regions, roles = (_names(columns.get(name, ())) for name in ("regions", "role_names"))
    tickets = Tickets(
        **parsed,
        ping=_pings(columns.get("ping", [()] * len(parsed["id"])), regions),
        region_names=regions,
        role_names=roles,
        choice=_column(columns.get("choice", ()), "i8"),
        choices=tuple(
            TicketChoice(
                tuple(sorted((name, tuple(sorted(_names(values)))) for name, values in choice["attributes"].items())),
                tuple(sorted(_names(choice["vetoes"]))),
            )
            for choice in columns.get("choices", ())
        ),
    )
    _check_rows(tickets)
    tickets.check()
    skill = _column(columns["skill"], "f8") if "skill" in columns else np.full(len(tickets.player), np.nan)
    if len(skill) != len(tickets.player):
        raise ValueError(f"{len(skill)} skills for {len(tickets.player)} players")
    return tickets, skill


def _check_rows(tickets: Tickets) -> None:
    """Raise ValueError if columns differ in length, or a ticket or player joins twice in a tick."""
    for starts, rows in ((tickets.start, len(tickets.player)), (tickets.named_start, len(tickets.named))):
        if len(starts) != len(tickets) + 1 or starts[0] != 0 or starts[-1] != rows or (np.diff(starts) < 0).any():
            raise ValueError("starts do not rise from 0 to the number of rows")
    if len(tickets.ping) != len(tickets) or len(tickets.met) != len(tickets.named):
        raise ValueError("columns differ in length")
    for numbers in (tickets.id, tickets.player):
        if len(np.unique(numbers)) < len(numbers):
            raise ValueError("a ticket or player joins twice in one tick")
    if int(tickets.roles.max(initial=0)) >> len(tickets.role_names):
        raise ValueError("roles has a bit without a name in role_names")


def _pings(rows: Sequence[Sequence[float | None] | None], regions: tuple[str, ...]) -> Floats:
    """Pings by ticket and region; inf: not there;  a row of NaN: anywhere. Raises ValueError."""
    pings = np.full((len(rows), len(regions)), np.nan)
    for index, row in enumerate(rows):
        if row is not None:
            known = _column([ping for ping in row if ping is not None], "f8")
            if len(row) != len(regions) or (regions and not len(known)) or (known < 0).any():
                raise ValueError(f"{row!r} are not pings to {len(regions)} regions")
            pings[index] = [np.inf if ping is None else ping for ping in row]
    return pings


def _names(names: Sequence[object]) -> tuple[str, ...]:
    texts = tuple(name for name in names if isinstance(name, str))
    if len(set(texts)) < len(names):
        raise ValueError(f"{names!r:.60} are not different names")
    return texts
