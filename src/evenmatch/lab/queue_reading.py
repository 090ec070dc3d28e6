"""Reading a queue's journal: nothing in it is taken on trust, and what is wrong is told by its line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evenmatch.errors import EvenmatchError, InputError, UsageError
from evenmatch.history import Floats
from evenmatch.lab.queue_columns import MEMBERS
from evenmatch.lab.queue_journal import FORMAT, KIND, Teams
from evenmatch.lab.queue_scenario import Scenario
from evenmatch.matchmaking.policy import Policy
from evenmatch.matchmaking.ticket import LARGEST_NUMBER
from evenmatch.matchmaking.tickets import Tickets

WHOLE = ("id", "queued", "start", "player", "roles", "named_start", "named", "met")
REAL = ("percentile", "rating", "within", "deviation")
FLAGS = ("loose", "newcomer")
TICK = {"now", "join", "cancel", "expired", "matches"}


@dataclass(frozen=True, eq=False)
class Tick:
    """A recorded tick: what joined and gave up before it, and what was decided.

    skill  float64 (S,)  true skill of those who joined, nan where it is not known
    """

    now: int
    joined: Tickets
    skill: Floats
    cancelled: tuple[int, ...]
    expired: tuple[int, ...]
    matches: tuple[Teams, ...]


@dataclass(frozen=True, eq=False)
class Journal:
    """A recorded queue.

    source    where it was read
    name      of the recorded run; `policy` and, of a simulation, `scenario` under which it was recorded
    ticks     in order of time
    """

    source: str
    name: str
    version: str
    policy: Policy
    scenario: Scenario | None
    ticks: tuple[Tick, ...]

    @property
    def times(self) -> tuple[float, ...]:
        """When each recorded party queued, in seconds from the first tick's: what a recorded scenario wants."""
        queued = np.sort(np.concatenate([np.empty(0, np.int64), *(tick.joined.queued for tick in self.ticks)]))
        return tuple(((queued - queued[:1]) / 1e6).tolist())


def load_journal(path: Path) -> Journal:
    """The journal in a file. Raises UsageError where it cannot be read, InputError where it is damaged or cut off."""
    try:
        with path.open(encoding="utf-8") as file:
            return read_journal(file, str(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file; accepted is a journal of a queue") from None


def read_journal(lines: Iterable[str], source: str = "journal") -> Journal:
    """The journal in these lines. Raises InputError, naming the line, where one is damaged or the end is missing."""
    header: Mapping[str, object] | None = None
    ticks: list[Tick] = []
    ended, number = False, 0
    for number, text in enumerate(lines, 1):
        where = f"{source}, line {number}"
        if ended:
            raise InputError(f"{where}: stands behind the end; accepted is nothing")
        line = _parsed(text, where)
        if header is None:
            header = _header(line, where)
            policy, scenario = _settings(header, where)
        elif "end" in line:
            if line["end"] != len(ticks):
                raise InputError(f"{where}: the end tells of {line['end']!r} ticks, but {len(ticks)} stand before it")
            ended = True
        else:
            ticks.append(_tick(line, where, ticks[-1].now if ticks else -1))
    if header is None:
        raise InputError(f"{source} is empty; accepted is a journal of a queue")
    if not ended:
        raise InputError(
            f"{source}, line {number}: the journal stops here without its end; accepted is one that was written in full"
        )
    return Journal(source, str(header["name"]), str(header["version"]), policy, scenario, tuple(ticks))


def _parsed(text: str, where: str) -> dict[str, object]:
    try:
        line = json.loads(text)
    except ValueError as error:
        raise InputError(f"{where}: is not JSON ({error}); accepted is one object a line") from None
    if not isinstance(line, dict):
        raise InputError(f"{where}: is {text.strip()[:40]!r}; accepted is one object a line")
    return line


def _header(line: dict[str, object], where: str) -> dict[str, object]:
    if line.get("journal") != KIND or line.get("format") != FORMAT:
        raise InputError(
            f"{where}: is not the head of a queue's journal; accepted is one with journal={KIND!r} and format={FORMAT}"
        )
    if missing := {"name", "version", "policy", "scenario"} - line.keys():
        raise InputError(f"{where}: the head lacks {', '.join(sorted(missing))}")
    return line


def _settings(header: Mapping[str, object], where: str) -> tuple[Policy, Scenario | None]:
    policy, scenario = header["policy"], header["scenario"]
    if not isinstance(policy, dict) or not (scenario is None or isinstance(scenario, dict)):
        raise InputError(f"{where}: policy and scenario are accepted as tables")
    try:
        return Policy.from_data(policy), None if scenario is None else Scenario.from_data(scenario)
    except EvenmatchError as error:
        raise InputError(f"{where}: {error}") from None


def _tick(line: dict[str, object], where: str, before: int) -> Tick:
    if strange := line.keys() - TICK:
        raise InputError(f"{where}: has {min(strange)!r}; accepted are {', '.join(sorted(TICK))}")
    now = _numbers([line.get("now")], f"{where}: now")[0]
    if now <= before:
        raise InputError(f"{where}: now is {now}; accepted is a time after {before}, which is that of the tick before")
    joined, skill = _joined(line.get("join"), f"{where}: join")
    matches = line.get("matches", [])
    if not isinstance(matches, list) or not all(isinstance(teams, list) and teams for teams in matches):
        raise InputError(f"{where}: matches are accepted as rows of teams")
    return Tick(
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
        raise InputError(f"{where}: accepted are columns of tickets")
    if missing := {"id", "queued", "start", *MEMBERS, "named_start", "named", "met"} - columns.keys():
        raise InputError(f"{where}: lacks {', '.join(sorted(missing))}")
    given: dict[str, np.ndarray] = {}
    for name in WHOLE:
        given[name] = np.array(_numbers(columns[name], f"{where}: {name}", above=name in {"met", "roles"}), np.int64)
    given["roles"] = given["roles"].astype(np.uint64)
    for name in REAL:
        given[name] = np.array(_reals(columns[name], f"{where}: {name}"), np.float64)
    for name in FLAGS:
        if not isinstance(columns[name], list) or not all(isinstance(flag, bool) for flag in columns[name]):
            raise InputError(f"{where}: {name} are accepted as true or false")
        given[name] = np.array(columns[name], np.bool_)
    regions, roles = (_names(columns.get(name, []), f"{where}: {name}") for name in ("regions", "role_names"))
    ping = _pings(columns.get("ping", [[]] * len(given["id"])), regions, f"{where}: ping")
    tickets = Tickets(**given, ping=ping, region_names=regions, role_names=roles)
    _fit(tickets, where)
    skill = np.array(_reals(columns.get("skill", []), f"{where}: skill"), np.float64)
    if "skill" not in columns:
        skill = np.full(len(tickets.player), np.nan)
    if len(skill) != len(tickets.player):
        raise InputError(f"{where}: {len(skill)} skills for {len(tickets.player)} players; accepted is one for each")
    return tickets, skill


def _fit(tickets: Tickets, where: str) -> None:
    """Raise InputError where columns are of different lengths, or somebody joins twice in a tick."""
    for starts, rows in ((tickets.start, len(tickets.player)), (tickets.named_start, len(tickets.named))):
        if len(starts) != len(tickets) + 1 or starts[0] != 0 or starts[-1] != rows or (np.diff(starts) < 0).any():
            raise InputError(
                f"{where}: starts do not lead from 0 to the number of rows, one for each ticket and the end"
            )
    if len(tickets.ping) != len(tickets) or len(tickets.met) != len(tickets.named):
        raise InputError(f"{where}: columns differ in length")
    for what, numbers in (("ticket", tickets.id), ("player", tickets.player)):
        ones, times = np.unique(numbers, return_counts=True)
        if (times > 1).any():
            raise InputError(f"{where}: {what} {ones[times > 1][0]} joins twice; accepted is once a tick")
    if int(tickets.roles.max(initial=0)) >> len(tickets.role_names):
        raise InputError(f"{where}: roles has a bit without a name in role_names")
    try:
        tickets.check()
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _pings(rows: object, regions: tuple[str, ...], where: str) -> Floats:
    if not isinstance(rows, list):
        raise InputError(f"{where}: accepted is a row for each ticket")
    pings = np.full((len(rows), len(regions)), np.nan)
    for at, row in enumerate(rows):
        if row is None:
            continue
        if not isinstance(row, list) or len(row) != len(regions) or (regions and all(ping is None for ping in row)):
            raise InputError(f"{where}: {row!r}; accepted are null, or {len(regions)} pings of which one is a number")
        if min(_reals([ping for ping in row if ping is not None], where), default=0.0) < 0:
            raise InputError(f"{where}: {row!r}; accepted are milliseconds from 0")
        pings[at] = [np.inf if ping is None else ping for ping in row]
    return pings


def _names(names: object, where: str) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InputError(f"{where}: accepted are different names")
    return tuple(names)


def _numbers(values: object, where: str, *, above: bool = False) -> list[int]:
    """Whole numbers from 0 to 2^62 - 1; `above`: to 2^63 - 1."""
    most = 2**63 if above else LARGEST_NUMBER
    if not isinstance(values, list):
        raise InputError(f"{where}: is {values!r}; accepted is a row of whole numbers")
    for value in values:
        if type(value) is not int or not 0 <= value < most:
            raise InputError(f"{where}: has {value!r}; accepted are whole numbers from 0")
    return values


def _reals(values: object, where: str) -> list[float]:
    if not isinstance(values, list):
        raise InputError(f"{where}: is {values!r}; accepted is a row of numbers")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InputError(f"{where}: has {value!r}; accepted are finite numbers")
    return values
