"""The simulated players: they rest, queue alone or with friends, wait, answer, play, and come again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import numpy as np

from evenmatch.client import AsyncClient
from evenmatch.client.calls.tickets import OVER
from evenmatch.client.errors import ProblemError
from evenmatch.client.models import JoinQueue, Say, Seeker
from evenmatch.demo.games import Game
from evenmatch.demo.people import Person
from evenmatch.demo.seeding import QUEUE
from evenmatch.errors import EvenmatchError

ARRIVE = 12.0  # seconds in which all have come
REST = 15.0  # seconds between two matches, on average
PATIENCE = (120.0, 180.0)  # seconds of waiting after which somebody gives up
BETWEEN = (2.0, 6.0)  # seconds between two looks at a ticket: the service works for everybody who looks
LONG = 40.0  # seconds of one look while a match is played
DECLINES, IS_SILENT = 0.006, 0.002
WITH_FRIENDS = 0.05
CONFLICT = 409
FAILURES = (EvenmatchError, OSError)


class Seekers:
    """Those of a game who are about, each in a task.

    busy  names of all who queue or play, in whatever game: a person does one thing at a time
    """

    def __init__(
        self, game: Game, people: Mapping[str, Person], client: AsyncClient, busy: set[str], seed: int
    ) -> None:
        self._game, self._people, self._client, self._busy = game, people, client, busy
        self._rng = np.random.default_rng([seed, 3, sum(map(ord, game.ladder))])

    def about(self) -> list[Person]:
        """Who is about: more likely who plays much."""
        game = self._game
        own = [one for one in self._people.values() if game.ladder in one.skill]
        weight = np.array([one.eagerness for one in own])
        count = min(game.crowd, len(own))
        return [own[at] for at in self._rng.choice(len(own), count, replace=False, p=weight / weight.sum())]

    async def live(self, person: Person) -> None:
        """Play, rest, play; whatever goes wrong is followed by a rest."""
        await asyncio.sleep(self._rng.uniform(0, ARRIVE))
        while True:
            if person.name not in self._busy:
                party = self._party(person)
                names = {one.name for one in party}
                self._busy |= names
                try:
                    await self._seek(party)
                except FAILURES:
                    await asyncio.sleep(REST)
                finally:
                    self._busy -= names
            await asyncio.sleep(self._rng.exponential(REST))

    def _party(self, person: Person) -> list[Person]:
        """Somebody, and perhaps friends who have nothing to do."""
        game, party = self._game, [person]
        if game.parties > 1 and self._rng.random() < WITH_FRIENDS:
            for name in person.friends:
                friend = self._people[name]
                if len(party) < game.parties and name not in self._busy and game.ladder in friend.skill:
                    party.append(friend)
        return party

    async def _seek(self, party: Sequence[Person]) -> None:
        """Queue, wait, answer, and stay until the match is over."""
        game = self._game
        members = [_seeker(one, game) for one in party]
        ladder, patience = game.ladder, self._rng.uniform(*PATIENCE)
        joined = await self._client.join_queue(ladder, JoinQueue(queues=[QUEUE], members=members))
        seen = await self._client.ticket(ladder, joined.ticket)
        while seen.state not in OVER:
            if seen.offer is not None:
                if not all(seen.offer.own.values()):
                    await asyncio.sleep(self._rng.uniform(0.3, 3.0))
                    if not await self._answer(ladder, joined.ticket, seen.offer.offer):
                        return
            elif seen.waited is not None and seen.waited > patience:
                await self._client.leave_queue(ladder, joined.ticket)
                return
            await asyncio.sleep(self._rng.uniform(*BETWEEN))
            seen = await self._client.ticket(ladder, joined.ticket)
        if seen.match is not None:
            await self._stay(ladder, seen.match.match_id, game.length[0])

    async def _answer(self, ladder: str, ticket: int, offer: int) -> bool:
        """Accept, decline or say nothing; whether there is something to wait for."""
        luck = self._rng.random()
        if luck < DECLINES:
            await self._client.decline_offer(ladder, ticket, Say(offer=offer))
            return False
        if luck > 1 - IS_SILENT:
            return False
        try:
            await self._client.accept_offer(ladder, ticket, Say(offer=offer))
        except ProblemError as error:
            if error.status != CONFLICT:  # somebody else declined meanwhile
                raise
        return True

    async def _stay(self, ladder: str, match_id: str, length: float) -> None:
        await asyncio.sleep(length)
        match = await self._client.live_match(ladder, match_id)
        while match.state == "open":
            match = await self._client.live_match(ladder, match_id, after=match.change, wait=LONG)


def _seeker(person: Person, game: Game) -> Seeker:
    ping = dict(person.ping) if game.regions else {}
    return Seeker(player=person.name, within=person.within, loose=person.loose, ping=ping)
