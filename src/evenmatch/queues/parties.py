"""A party that joins: its members' filters and levels, its validation, and its conversion to a matchmaking ticket."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import numpy as np

from evenmatch.errors import BadParameterError, InputError
from evenmatch.history import Floats
from evenmatch.ladders.standings import View
from evenmatch.ledger import event_rows, player_rows, rating_rows
from evenmatch.ledger.plan import Plan
from evenmatch.ledger.store import Store
from evenmatch.ledger.text import check_text, check_texts
from evenmatch.matchmaking import Member, Met, Policy, Ticket, check_choices
from evenmatch.matchmaking.tickets import common_choice
from evenmatch.operations.service import Service
from evenmatch.options import Checked, flag, known_values, number, structure
from evenmatch.queues.queue_sql import Party, StoredMember
from evenmatch.queues.requests import Join, QueuedPlayer
from evenmatch.systems.system import Records

NAMED_AT_MOST = 60  # regions, or roles, of one player; the limit of a queue
NAMES_IN_FILTER_AT_MOST = 64  # attributes, values of all of them, or vetoes


@dataclass(frozen=True, kw_only=True)
class QueueFilter(Checked):
    """A filter that a player stores on a ladder. It supplies the values that a join omits. Raises BadParameterError."""

    within: float = number(2.0, 0, 100, "Largest difference in percentiles to the other players.")
    loose: bool = flag(True, "The difference grows with waiting time; false: it never does.")
    regions: tuple[str, ...] = structure((), "Regions where the player plays; empty: any region.")
    max_ping: float | None = number(
        None, 0, 100_000, "Highest ping that the player accepts, in milliseconds.", optional=True
    )
    attributes: Mapping[str, tuple[str, ...]] = structure(
        {}, "Values that the player accepts, by attribute of the queues (`map`: maps). All values of the others."
    )
    vetoes: tuple[str, ...] = structure((), "Maps that the player does not play.")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "regions", tuple(dict.fromkeys(self.regions)))
        if len(self.regions) > NAMED_AT_MOST:
            raise BadParameterError(f"regions: {len(self.regions)} are named; expected at most {NAMED_AT_MOST}")
        object.__setattr__(self, "vetoes", tuple(dict.fromkeys(self.vetoes)))
        chosen = {name: tuple(dict.fromkeys(values)) for name, values in self.attributes.items() if values}
        object.__setattr__(self, "attributes", chosen)
        values = [value for own in chosen.values() for value in own]
        if (
            len(chosen) > NAMES_IN_FILTER_AT_MOST
            or len(values) > NAMES_IN_FILTER_AT_MOST
            or len(self.vetoes) > NAMES_IN_FILTER_AT_MOST
        ):
            raise BadParameterError(
                f"attributes and vetoes: expected at most {NAMES_IN_FILTER_AT_MOST} names and values of each"
            )
        try:
            check_texts("region", self.regions)
            check_texts("attribute", [*chosen, *values])
            check_texts("vetoed map", self.vetoes)
        except InputError as error:
            raise BadParameterError(str(error)) from None

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> QueueFilter:
        """Read a filter from a JSON document. Missing values get their defaults. Raises UnknownNameError."""
        values = dict(data)
        for name in ("regions", "vetoes"):
            values[name] = _names(name, values.get(name, []))
        attributes = values.get("attributes", {})
        if not isinstance(attributes, Mapping):
            raise BadParameterError(f"attributes={attributes!r}: expected a table of lists")
        values["attributes"] = {name: _names(name, accepted) for name, accepted in attributes.items()}
        return cls(**known_values(cls, "value of a filter", values))

    def to_data(self) -> dict[str, object]:
        """All values, ready for JSON."""
        attributes = {name: list(values) for name, values in self.attributes.items()}
        return asdict(self) | {"regions": list(self.regions), "vetoes": list(self.vetoes), "attributes": attributes}


def _names(name: str, listed: object) -> tuple[str, ...]:
    if not isinstance(listed, list | tuple) or not all(isinstance(item, str) for item in listed):
        raise BadParameterError(f"{name}={listed!r}: expected a list of names")
    return tuple(listed)


AVOIDED_AT_MOST = 100
LADDERS_AT_MOST = 16  # of a playlist
DEFAULT = QueueFilter()


class Level(NamedTuple):
    """A player's level at joining.

    rating      the strength from which the ladder's system predicts matches (System.strength), in points
    percentile  of the shown rating, 0..100
    newcomer    True until the placement matches are completed;  banned  True: may not queue
    """

    rating: float
    percentile: float
    newcomer: bool
    banned: bool


def party_of(
    join: Join, queues: tuple[str, ...], ids: Mapping[str, int], levels: Mapping[int, Level], newcomer: Level
) -> Party:
    """The party of a join that passed `check`.

    queues  of the ladder
    ids     player ids by name, of all members and of the avoided players who exist
    levels  by player id; new players have the level `newcomer`
    """
    members = []
    for member in join.members:
        player = ids[member.name]
        level = levels.get(player, newcomer)
        members.append(
            StoredMember(
                name=member.name,
                id=player,
                rating=level.rating,
                percentile=level.percentile,
                newcomer=level.newcomer,
                within=DEFAULT.within if member.within is None else member.within,
                loose=DEFAULT.loose if member.loose is None else member.loose,
                roles=list(member.roles),
                ping=dict(member.ping),
                max_ping=member.max_ping,
                regions=list(member.regions or ()),
                attributes={name: list(values) for name, values in (member.attributes or {}).items()},
                vetoes=list(member.vetoes or ()),
                avoid=sorted({ids[name] for name in member.avoid if name in ids}),
                avoid_unknown=[name for name in member.avoid if name not in ids],
            )
        )
    return Party(join.request, queues, tuple(members))


def with_levels(party: Party, levels: Mapping[int, Level]) -> Party:
    """The party with the present levels of its members, by id."""
    members = []
    for member in party.members:
        level = levels[member["id"]]
        present = member.copy()
        present["rating"], present["percentile"] = level.rating, level.percentile
        present["newcomer"] = level.newcomer
        members.append(present)
    return replace(party, members=tuple(members))


def with_levels_of(party: Party, other: Party) -> Party:
    """The party with its members' levels from another copy of it."""
    known = {
        member["id"]: Level(member["rating"], member["percentile"], member["newcomer"], banned=False)
        for member in other.members
    }
    return with_levels(party, known)


def ticket_of(
    party: Party,
    number: int,
    queued: int,
    roles: Mapping[str, int],
    met: Callable[[int], tuple[Met, ...]],
    only: frozenset[int] | None = None,
) -> Ticket:
    """The matchmaking ticket of a stored party.

    roles  the roles of the queue's policy; other roles of a member are ignored
    met    returns a player's recent opponents and team-mates
    only   the players to include; None: all
    """
    chosen = [member for member in party.members if only is None or member["id"] in only]
    return Ticket(
        id=number,
        queued=queued,
        members=tuple(
            Member(
                player=member["id"],
                percentile=member["percentile"],
                rating=member["rating"],
                within=member["within"],
                loose=member["loose"],
                newcomer=member["newcomer"],
                roles=tuple(role for role in member["roles"] if role in roles),
                ping=pings_in(member["ping"], member["regions"]),
                max_ping=_limit(member["max_ping"]),
                avoid=tuple(member["avoid"]),
                met=met(member["id"]),
                attributes={name: tuple(values) for name, values in member["attributes"].items()},
                vetoes=tuple(member["vetoes"]),
            )
            for member in chosen
        ),
    )


def check_party(party: Party, policies: Mapping[str, Policy]) -> None:
    """Raise InputError if a stored party is invalid or asks for something that its queues do not declare."""
    members = tuple(
        QueuedPlayer(
            name=member["name"],
            within=member["within"],
            loose=member["loose"],
            ping=member["ping"],
            max_ping=member["max_ping"],
            regions=tuple(member["regions"]),
            attributes={name: tuple(values) for name, values in member["attributes"].items()},
            vetoes=tuple(member["vetoes"]),
        )
        for member in party.members
    )
    join = Join(members=members, queues=party.queues)
    check(join)
    check_choices(choices_of(join), {name: policy for name, policy in policies.items() if name in party.queues})


def choices_of(join: Join) -> dict[str, QueueFilter]:
    """The attributes and vetoes of the members who name any, by the name used in messages."""
    return {
        f"player {member.name!r}": QueueFilter(attributes=member.attributes or {}, vetoes=member.vetoes or ())
        for member in join.members
        if member.attributes or member.vetoes
    }


def check(join: Join) -> None:
    """Raise InputError for a join that no ladder would accept. The message names the player."""
    names = [member.name for member in join.members]
    check_texts("player name", names)
    for ladder, queues in ("", join.queues), *join.playlist.items():
        where = f" of ladder {ladder!r}" if ladder else ""
        if not queues:
            raise InputError(f"name at least one queue{where} to join")
        for queue in queues:
            if queues.count(queue) > 1:
                raise InputError(f"queue {queue!r}{where} is named twice; name each queue once")
    if len(join.playlist) >= LADDERS_AT_MOST:
        raise InputError(f"the playlist has {len(join.playlist) + 1} ladders; at most {LADDERS_AT_MOST} are allowed")
    if join.request is not None:
        check_text("request", join.request)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"player {name!r} is in the party twice; name each player once")
    for member in join.members:
        _check_words(member.name, "region", list(member.ping), NAMED_AT_MOST)
        _check_words(member.name, "region", list(member.regions or ()), NAMED_AT_MOST)
        _check_words(member.name, "role", member.roles, NAMED_AT_MOST)
        _check_words(member.name, "player to avoid", member.avoid, AVOIDED_AT_MOST)
        _check_words(member.name, "attribute", list(member.attributes or ()), NAMED_AT_MOST)
        for values in (member.attributes or {}).values():
            _check_words(member.name, "value", values, NAMED_AT_MOST)
        _check_words(member.name, "vetoed map", member.vetoes or (), NAMED_AT_MOST)
    _check_as_ticket(join)
    common_choice(choices_of(join))


def _check_words(name: str, kind: str, words: Sequence[str], most: int) -> None:
    check_texts(kind, words)
    if len(words) > most:
        plural = kind.replace("player", "players") if kind.startswith("player") else f"{kind}s"
        raise InputError(f"player {name!r} names {len(words)} {plural}; at most {most} are allowed")


def _check_as_ticket(join: Join) -> None:
    """Validate the party as a matchmaking Ticket. Error messages contain the players' names."""
    members = []
    for place, member in enumerate(join.members):
        pings = pings_in(member.ping, member.regions or ())
        within = DEFAULT.within if member.within is None else member.within
        try:
            limit = _limit(member.max_ping)
            members.append(Member(player=place, percentile=50, rating=0, within=within, ping=pings, max_ping=limit))
        except InputError as error:
            raise InputError(str(error).replace(f"player {place}", f"player {member.name!r}", 1)) from None
    try:
        Ticket(id=0, queued=0, members=tuple(members))
    except InputError as error:
        raise InputError(str(error).replace("ticket 0: ", "the party: ").replace("ticket 0 ", "the party ")) from None


def pings_in(pings: Mapping[str, float], regions: Sequence[str]) -> Mapping[str, float]:
    """The pings to the chosen regions, or to all regions if none is chosen. Without any pings, 0 to the chosen regions.

    Raises InputError if pings are known, but none to a chosen region.
    """
    if not regions:
        return pings
    if not pings:
        return dict.fromkeys(regions, 0.0)
    chosen = {region: pings[region] for region in regions if region in pings}
    if not chosen:
        known = ", ".join(sorted(pings))
        raise InputError(f"no ping to any of the chosen regions is known ({', '.join(regions)}); known are {known}")
    return chosen


def _limit(max_ping: float | None) -> float:
    return math.inf if max_ping is None else max_ping


@dataclass(frozen=True, eq=False)
class JoinProfiles:
    """A ladder's standings and rules, which give the levels of joining players."""

    view: View
    plan: Plan

    @property
    def ladder(self) -> int:
        """The ladder's id."""
        return self.view.head.ladder

    def of(self, store: Store, players: Sequence[int], now: int) -> dict[int, Level]:
        """The levels of players by id. A player without a match is a newcomer with the system's first rating.

        now  microseconds; uncertainty grows with time
        While the view is older than the ladder's ratings, the shown ratings stand in for the strengths. The view is
        replaced within seconds, so levels are soon read again.
        """
        head, rules, taken = store.head(self.view.head.name), self.plan.last_rules, self.view.snapshot
        row = taken.board.find(players)
        known = row >= 0
        shown = np.full(len(row), float(rules.newcomers(1)["rating"][0]))
        placed, hidden = np.zeros(len(row), np.bool_), np.zeros(len(row), np.bool_)
        shown[known] = taken.board.rating[row[known]]
        placed[known] = taken.placed[row[known]]
        hidden[known] = taken.board.hidden[row[known]]
        state = None
        if (head.generation, head.corrected) == (self.view.head.generation, self.view.head.corrected):
            ids = np.unique(np.asarray(players, np.int64))
            roster = rating_rows.read_roster(store, head, rules, ids)
            state = rules.newcomers(len(ids))
            state[ids.searchsorted(roster.ids)] = roster.records
            state = state[ids.searchsorted(players)]
        levels = self._levels(shown, state, now if head.time is None else max(now, head.time))
        listed = zip(players, levels, placed.tolist(), strict=True)
        banned = self.plan.banned(now)
        erased = player_rows.erased_among(store, np.asarray(players)[hidden].tolist()) if hidden.any() else set()
        return {
            player: level._replace(newcomer=not is_placed, banned=player in banned or player in erased)
            for player, level, is_placed in listed
        }

    def newcomer(self, now: int) -> Level:
        """The level of a new player."""
        state = self.plan.last_rules.newcomers(1)
        return self._levels(state["rating"].astype(np.float64), state, now)[0]

    def _levels(self, shown: Floats, state: Records | None, time: int) -> list[Level]:
        """The levels for these shown ratings and states, as newcomers. Without states, strengths are the ratings."""
        rules, strength = self.plan.last_rules, shown
        if state is not None:
            strength = rules.system.strength(rules.system.as_of(state, time, rules.parameters), rules.parameters)
        columns = (strength.tolist(), self.view.snapshot.against.queue_percentiles(shown).tolist())
        return [Level(*level, newcomer=True, banned=False) for level in zip(*columns, strict=True)]


class LevelBook:
    """The join profiles of all ladders. Thread-safe."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def of(self, ladder: str) -> JoinProfiles:
        """The join profiles of a ladder, a few seconds old at most. Raises UnknownNameError for an unknown ladder."""
        view = self._service.view(ladder, fresh=False)
        head, database = view.head, self._service.database
        plan = database.plans.find(head.ladder, head.corrected)
        if plan is None or plan.upto != head.corrected:
            with database.read() as store:
                plan = event_rows.read_plan(store, head, head.corrected)
        return JoinProfiles(view, plan)
