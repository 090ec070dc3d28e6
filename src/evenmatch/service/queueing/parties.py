"""What is kept of a party that waits, and what the matchmaker makes of it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from evenmatch.errors import InputError
from evenmatch.ledger.text import check_text, check_texts
from evenmatch.matchmaking import Member, Met, Ticket
from evenmatch.service.queueing.wishes import Join

MOST_NAMED = 60  # regions, or roles, that one player may name: as many as a queue can tell apart
MOST_AVOIDED = 100


class PartyMember(TypedDict):
    """A player who waits: name as it was given, rating and percentile as they were on joining.

    For the others see matchmaking.Member; max_ping None: no limit. avoid: ids
    """

    name: str
    id: int
    rating: float
    percentile: float
    newcomer: bool
    within: float
    loose: bool
    roles: list[str]
    ping: dict[str, float]
    max_ping: float | None
    avoid: list[int]


class Level(NamedTuple):
    """Where a player stands when they join; `newcomer`: not placed yet."""

    rating: float
    percentile: float
    newcomer: bool
    banned: bool


@dataclass(frozen=True, slots=True)
class Party:
    """The body of a ticket."""

    request: str | None
    queues: tuple[str, ...]
    members: tuple[PartyMember, ...]

    @property
    def players(self) -> list[int]:
        """Their ids."""
        return [member["id"] for member in self.members]

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, as they were given."""
        return tuple(member["name"] for member in self.members)

    def write(self) -> str:
        """For the ticket's row."""
        body = {"request": self.request, "queues": self.queues, "members": self.members}
        return json.dumps(body, ensure_ascii=False, sort_keys=True)

    @classmethod
    def read(cls, text: str) -> Party:
        """What `write` wrote."""
        body = json.loads(text)
        return cls(body["request"], tuple(body["queues"]), tuple(body["members"]))

    @classmethod
    def of(cls, wish: Join, ids: Mapping[str, int], levels: Mapping[int, Level]) -> Party:
        """The party that joins by a wish that `check` let through."""
        members = []
        for one in wish.members:
            player = ids[one.name]
            level = levels[player]
            members.append(
                PartyMember(
                    name=one.name,
                    id=player,
                    rating=level.rating,
                    percentile=level.percentile,
                    newcomer=level.newcomer,
                    within=one.within,
                    loose=one.loose,
                    roles=list(one.roles),
                    ping=dict(one.ping),
                    max_ping=one.max_ping,
                    avoid=sorted({ids[name] for name in one.avoid}),
                )
            )
        return cls(wish.request, wish.queues, tuple(members))

    def ticket(
        self,
        number: int,
        queued: int,
        roles: Mapping[str, int],
        met: Callable[[int], tuple[Met, ...]],
        only: frozenset[int] | None = None,
    ) -> Ticket:
        """The party as a queue takes it.

        roles  those of the queue's policy: others that a member offers say nothing there
        met    whom a player met lately
        only   those of its players who count; None: all
        """
        chosen = [one for one in self.members if only is None or one["id"] in only]
        return Ticket(
            id=number,
            queued=queued,
            members=tuple(
                Member(
                    player=one["id"],
                    percentile=one["percentile"],
                    rating=one["rating"],
                    within=one["within"],
                    loose=one["loose"],
                    newcomer=one["newcomer"],
                    roles=tuple(role for role in one["roles"] if role in roles),
                    ping=one["ping"],
                    max_ping=_limit(one["max_ping"]),
                    avoid=tuple(one["avoid"]),
                    met=met(one["id"]),
                )
                for one in chosen
            ),
        )


def check(wish: Join) -> None:
    """Raise InputError for a wish that no ladder could grant, by the names of its players."""
    names = [one.name for one in wish.members]
    check_texts("player name", names)
    if not wish.queues:
        raise InputError("no queue is named; accepted is one at the least")
    for queue in wish.queues:
        if wish.queues.count(queue) > 1:
            raise InputError(f"queue {queue!r} is named twice; accepted is each queue once")
    if wish.request is not None:
        check_text("request", wish.request)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"player {name!r} is in the party twice; accepted is each player once")
    for one in wish.members:
        _check_words(one.name, "region", list(one.ping), MOST_NAMED)
        _check_words(one.name, "role", one.roles, MOST_NAMED)
        _check_words(one.name, "player to avoid", one.avoid, MOST_AVOIDED)
    _check_as_ticket(wish, names)


def _check_words(name: str, what: str, words: Sequence[str], most: int) -> None:
    check_texts(what, words)
    if len(words) > most:
        raise InputError(f"player {name!r} names {len(words)} of a {what}; accepted are at most {most}")


def _check_as_ticket(wish: Join, names: Sequence[str]) -> None:
    """Let matchmaking look at it, under places for numbers, and give its errors the players' names."""
    place = {name: at for at, name in enumerate(names)}
    everybody = list(place)
    for one in wish.members:
        for name in one.avoid:
            if name not in place:
                place[name] = len(everybody)
                everybody.append(name)
    try:
        Ticket(
            id=0,
            queued=0,
            members=tuple(
                Member(
                    player=place[one.name],
                    percentile=50.0,
                    rating=0.0,
                    within=one.within,
                    loose=one.loose,
                    roles=one.roles,
                    ping=one.ping,
                    max_ping=_limit(one.max_ping),
                    avoid=tuple(place[name] for name in one.avoid),
                )
                for one in wish.members
            ),
        )
    except InputError as error:
        told = re.sub(r"(?<=player )(\d+)|(?<=avoids )(\d+)", lambda at: repr(everybody[int(at[0])]), str(error))
        raise InputError(told.replace("ticket 0: ", "the party: ").replace("ticket 0 ", "the party ")) from None


def _limit(max_ping: float | None) -> float:
    return math.inf if max_ping is None else max_ping
