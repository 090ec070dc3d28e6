"""A ledger in plain Python: a list of events, replayed from nothing whenever anybody asks.

Nothing is kept between two questions, nothing is undone, and nothing is shared with the package but Match and, for the
systems whose twins cannot go on from a state, the kernels, called with one match at a time.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from evenmatch import rules
from evenmatch.history import History
from evenmatch.match import Match
from evenmatch.systems import loop
from evenmatch.systems.system import Records, Rules

from . import elo, wager
from .model import SlowMatch, SlowPlayer, SlowTeam

NEVER = -(2**63)


@dataclass(frozen=True)
class System:
    """A system with its parameters, by which ratings are made."""

    name: str
    parameters: dict = field(default_factory=dict)

    @cached_property
    def rules(self) -> Rules:
        return rules(self.name, **self.parameters)


@dataclass
class Player:
    """What a replay knows of a player: the state is the shown rating, or a record of the package's."""

    state: object
    rating: float
    matches: int = 0
    completed: int = 0
    last_played: int = NEVER
    last_completed: int = NEVER


@dataclass(frozen=True)
class Event:
    """kind, and what it says by name."""

    kind: str
    told: dict


class SlowLedger:
    """Events in order, and the players whom they name, numbered as they come."""

    def __init__(self, system: System) -> None:
        self.events = [Event("rules", {"system": system, "start": True})]
        self.names: dict[str, int] = {}  # every name that was ever used
        self.shown: dict[int, str] = {}  # the present one
        self.position_of: dict[str, int] = {}  # of matches

    # what may happen

    def record(self, match: Match, rated: bool = True) -> None:
        who = [[self.admit(one.player) for one in team.players] for team in match.teams]
        self.position_of[match.id] = self.add("match", match=match, who=who, rated=rated, before=None)

    def insert(self, matches: list[Match], rated: bool = True) -> bool:
        """Record matches that count before the first that ended later; False where one has no such match."""
        at = {position: told["match"].time for position, told in self.each("match") if told["before"] is None}
        before = [min((at_ for at_, ended in at.items() if ended > one.time), default=None) for one in matches]
        if None in before:
            return False
        for one, position in zip(matches, before, strict=True):
            who = [[self.admit(each.player) for each in team.players] for team in one.teams]
            self.position_of[one.id] = self.add("match", match=one, who=who, rated=rated, before=position)
        self.add("insert")
        return True

    def void(self, match_id: str) -> None:
        self.add("void", position=self.position_of[match_id])

    def unvoid(self, match_id: str) -> None:
        self.add("unvoid", position=self.position_of[match_id])

    def ban(self, name: str, rule: str, since: int | None) -> None:
        self.add("ban", player=self.names[name], rule=rule, since=since)

    def reinstate(self, name: str) -> None:
        self.add("reinstate", player=self.names[name])

    def change(self, system: System, start: bool) -> None:
        self.add("rules", system=system, start=start)

    def season(self, factor: float) -> None:
        self.add("season", factor=factor)

    def start(self, ratings: dict[str, float]) -> None:
        self.add("start", ratings={self.admit(name): rating for name, rating in ratings.items()})

    def decay(self, **numbers: object) -> None:
        self.add("decay", **numbers)

    def rename(self, name: str, to: str) -> None:
        player = self.names[name]
        self.names[to] = player
        self.shown[player] = to
        self.add("rename")

    def merge(self, name: str, into: str) -> None:
        old, new = self.names[name], self.names[into]
        self.names = {each: new if player == old else player for each, player in self.names.items()}
        self.add("merge", old=old, new=new)

    # what follows from it

    def add(self, kind: str, **told: object) -> int:
        self.events.append(Event(kind, told))
        return len(self.events)

    def admit(self, name: str) -> int:
        if name not in self.names:
            number = len(self.shown)
            self.names[name] = number
            self.shown[number] = name
        return self.names[name]

    def each(self, kind: str):
        """(position, what it says) of every event of a kind."""
        return [(at, event.told) for at, event in enumerate(self.events, 1) if event.kind == kind]

    def identity(self, player: int) -> int:
        for _, told in self.each("merge"):
            if told["old"] == player:
                return self.identity(told["new"])
        return player

    def is_void(self, position: int) -> bool:
        void = False
        for event in self.events:
            if event.kind in ("void", "unvoid") and event.told["position"] == position:
                void = event.kind == "void"
        return void

    def bans(self) -> dict[int, dict]:
        """The bans that were not lifted, by who the players are now."""
        banned = {}
        for event in self.events:
            if event.kind == "ban":
                banned[self.identity(event.told["player"])] = event.told
            elif event.kind == "reinstate":
                banned.pop(self.identity(event.told["player"]), None)
        return banned

    def system_at(self, position: int) -> System:
        """By what a match at this position is rated, as of now."""
        told = self.each("rules")
        first = max(at for at, one in told if one["start"])
        return [one["system"] for at, one in told if at == first or first < at < position][-1]

    def told_under(self, position: int) -> System:
        """What the ladder was rated by when this event was told."""
        return [event.told["system"] for event in self.events[:position] if event.kind == "rules"][-1]

    def counting(self) -> list[Match]:
        """The matches that count, for a system that can rate them."""
        bans = {player: told["since"] for player, told in self.bans().items() if told["rule"] == "void"}
        found = []
        for position, told in self.each("match"):
            who = {self.identity(player) for team in told["who"] for player in team} & bans.keys()
            banned = any(bans[one] is None or told["match"].time >= bans[one] for one in who)
            if told["rated"] and not banned and not self.is_void(position):
                found.append(told["match"])
        return found

    def met(self, name: str, other: str) -> bool:
        """Whether two players, with all that were merged into them, were in one match."""
        both = {self.names[name], self.names[other]}
        for _, told in self.each("match"):
            here = {self.identity(player) for team in told["who"] for player in team}
            if both <= here:
                return True
        return False

    def replay(self) -> dict[str, Player]:
        """Everybody who has a rating, by their present name."""
        players: dict[int, Player] = {}
        self.ladders: Records | None = None  # what the system has learned of the ladder
        clock = NEVER
        bans = self.bans()
        for position, event in sorted(enumerate(self.events, 1), key=counted_at):
            system = self.system_at(counted_at((position, event))[0])
            if event.kind == "match":
                clock = self.rate(players, clock, position, event.told, system, bans)
            elif event.kind == "season":
                reset(players, event.told["factor"], system)
            elif event.kind == "decay" and self.told_under(position).name == system.name:
                for one in players.values():
                    fall(one, event.told, system)
            elif event.kind == "start" and self.told_under(position).name == system.name:
                start = {}
                for player, rating in event.told["ratings"].items():
                    start.setdefault(self.identity(player), rating)
                for player, rating in start.items():
                    one = players.setdefault(player, begin(system, None))
                    if one.last_played == NEVER:
                        new = begin(system, rating)
                        one.state, one.rating = new.state, new.rating
        return {self.shown[player]: one for player, one in players.items()}

    def rate(self, players, clock, position, told, system, bans) -> int:
        """Rate a match, unless it does not count; the effective time after it."""
        match, who = told["match"], [[self.identity(player) for player in team] for team in told["who"]]
        if not told["rated"] or self.is_void(position) or not can_rate(system, match):
            return clock
        struck = {
            player: bans[player]["rule"]
            for team in who
            for player in team
            if player in bans and (bans[player]["since"] is None or match.time >= bans[player]["since"])
        }
        if "void" in struck.values():
            return clock
        now = max(clock, match.time)
        everybody = [player for team in who for player in team]
        states = [players[player].state if player in players else None for player in everybody]
        after, ladders = step(system, match, now, states, self.ladders)
        cheated = [place for place, team in zip(match.places, who, strict=True) if any(one in struck for one in team)]
        slots = [
            (player, part, place > min(cheated, default=place))
            for place, team, members in zip(match.places, match.teams, who, strict=True)
            for part, player in zip(team.players, members, strict=True)
        ]
        for (player, part, behind), state in zip(slots, after, strict=True):
            one = players.setdefault(player, begin(system, None))
            refunded = behind and player not in struck
            if part.keep and not refunded:
                one.state, one.rating, self.ladders = state, shown(system, state), ladders
            if part.keep:
                count(one, part.quit, now)
        return now


def counted_at(numbered: tuple[int, Event]) -> tuple:
    """Events count in their order, inserted matches before the event that they name, by when they were played."""
    position, event = numbered
    before = event.told.get("before")
    return (position, 1, 0, 0) if before is None else (before, 0, event.told["match"].time, position)


def count(one: Player, left: bool, now: int) -> None:
    one.matches += 1
    one.last_played = now
    if not left:
        one.completed += 1
        one.last_completed = now


def reset(players: dict[int, Player], factor: float, system: System) -> None:
    """A season opens: 0 all begin anew, 1 nothing changes, between them a part of the way to the mean is left.

    The mean is that of who played in the season that ends; whoever ever played or was given a rating moves.
    """
    if factor == 1:
        return
    newcomer = begin(system, None).state
    own = [one for one in players.values() if one.last_played != NEVER or bits(one.state) != bits(newcomer)]
    played = [one.rating for one in players.values() if one.matches] or [one.rating for one in own]
    number = decimal if system.name == "wager" else float  # whole cents are exact, and so are their halves
    mean = math.fsum(played) / len(played) if played else 0.0
    if system.name == "wager" and played:
        mean = sum(map(decimal, played)) / len(played)
    for one in players.values():
        moves = factor and any(one is other for other in own)
        start = mean + number(factor) * (number(one.rating) - mean)
        if system.name == "wager":
            start = wager.to_rating(wager.round_half_up(start * 100))
        new = begin(system, start if moves else None)
        one.state, one.rating, one.matches, one.completed = new.state, new.rating, 0, 0


def fall(one: Player, told: dict, system: System) -> None:
    """Who has enough completed matches loses so much for every whole week of idleness between two moments.

    A week ends 7, 14, 21 … days after the grace days, which begin with the last completed match or with the rule.
    """
    day = 86_400_000_000
    if one.completed < told["placement"] or one.rating <= told["floor"]:
        return
    week_ends, weeks = max(one.last_completed, told["began"]) + round(told["grace_days"] * day) + 7 * day, 0
    while week_ends <= told["until"]:
        weeks += week_ends > told["after"]
        week_ends += 7 * day
    if not weeks:
        return
    lower = max(one.rating - weeks * told["rate"], told["floor"])
    if system.name == "wager":
        cents = math.floor((decimal(one.rating) - weeks * decimal(told["rate"])) * 100 + Fraction(1, 2))
        lower = wager.to_rating(max(cents, wager.to_cents(max(told["floor"], system.rules.parameters.floor))))
    if lower < one.rating:
        one.rating = lower
        if system.name in SLOW:
            one.state = lower
        else:
            moved = system.rules.system.move(np.array([one.state]), np.array([lower]), system.rules.parameters)
            one.state = moved[0].copy()


def bits(state: object) -> object:
    """A state for comparisons: the bytes of a record."""
    return state.tobytes() if isinstance(state, np.void) else state


def decimal(number: float) -> Fraction:
    """What a number says, and not the nearest binary fraction."""
    return Fraction(repr(number))


# systems, one match at a time

SLOW: dict[str, Callable] = {"elo": elo.replay, "wager": wager.replay}


def can_rate(system: System, match: Match) -> bool:
    if system.name != "wager":
        return True
    timed = [one.seconds is not None for team in match.teams for one in team.players]
    return len(match.teams) == 2 and (all(timed) or not any(timed))


def step(system: System, match: Match, now: int, states: list, ladders: Records | None) -> tuple[list, Records | None]:
    """The states of a match's players after it, in its order (None: a newcomer's), and what is known of the ladder."""
    if system.name in SLOW:
        kept = {
            one.player: {"rating": state}
            for one, state in zip([one for team in match.teams for one in team.players], states, strict=True)
            if state is not None
        }
        changes = SLOW[system.name]([slow_match(match)], state=kept, **system.parameters)
        return [change.after for change in changes], None
    by = system.rules
    seats = {one.player: at for at, one in enumerate(one for team in match.teams for one in team.players)}
    history = History.of([all_rated(match)], lambda _, player: seats[player], not_before=now)
    records = by.newcomers(len(states))
    for at, state in enumerate(states):
        if state is not None:
            records[at] = state
    rated = loop.replay(by, history, records, ladders)
    return [record.copy() for record in rated.state], rated.ladders


def all_rated(match: Match) -> Match:
    """The same match with everybody rated: who is a guest is decided by `rate`."""
    teams = tuple(replace(team, players=tuple(replace(one, keep=True) for one in team.players)) for team in match.teams)
    return replace(match, teams=teams)


def slow_match(match: Match) -> SlowMatch:
    teams = [
        SlowTeam(
            place,
            team.score,
            [SlowPlayer(p.player, p.score, p.seconds, p.performance, p.quit, p.entry) for p in team.players],
        )
        for place, team in zip(match.places, match.teams, strict=True)
    ]
    return SlowMatch(match.id, match.time / 1e6, match.duration, teams)


def begin(system: System, rating: float | None) -> Player:
    """Somebody who begins with this shown rating; None: with a newcomer's."""
    by = system.rules
    if system.name in SLOW:
        value = by.parameters.start if rating is None else rating
        if system.name == "wager":
            value = wager.to_rating(wager.to_cents(value))
        return Player(float(value), float(value))
    record = by.newcomers(1)[0] if rating is None else by.starting(np.array([rating]))[0]
    return Player(record.copy(), float(record["rating"]))


def shown(system: System, state: object) -> float:
    return float(state) if system.name in SLOW else float(state["rating"])
