"""The simulated players: they queue alone or with friends, answer offers, play, rest, and queue again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing

import numpy as np

from evenmatch.client import AsyncClient
from evenmatch.client.errors import ProblemError
from evenmatch.client.models import JoinRequest, OfferAnswer, PartyMember
from evenmatch.demo.games import Game
from evenmatch.demo.ladder_creation import QUEUE
from evenmatch.demo.population import SimulatedPerson
from evenmatch.errors import EvenmatchError

ARRIVE = 30.0  # seconds until all players have started
REST = 120.0  # seconds between two matches, on average
PATIENCE = (120.0, 180.0)  # range of the seconds after which a party leaves the queue
ENDED = 4.0  # seconds after the longest match in which it has been started and reported
ANSWER = (0.3, 3.0)  # range of the seconds until a party answers an offer
DECLINES, IS_SILENT = 0.006, 0.002  # shares of offers
WITH_FRIENDS = 0.05
CONFLICT = 409
FAILURES = (EvenmatchError, OSError)


class SimulatedPlayers:
    """The active players of a game, each in a task of its own.

    busy  names of all people who queue or play in any game: a person does one thing at a time
    """

    def __init__(
        self, game: Game, people: Mapping[str, SimulatedPerson], client: AsyncClient, busy: set[str], seed: int
    ) -> None:
        self._game, self._people, self._client, self._busy = game, people, client, busy
        self._rng = np.random.default_rng([seed, 3, sum(map(ord, game.ladder))])

    def about(self) -> list[SimulatedPerson]:
        """Choose the active players, weighted by eagerness."""
        game = self._game
        own = [person for person in self._people.values() if game.ladder in person.skill]
        weight = np.array([person.eagerness for person in own])
        count = min(game.crowd, len(own))
        chosen = self._rng.choice(len(own), count, replace=False, p=weight / weight.sum())
        return [own[index] for index in chosen]

    async def live(self, person: SimulatedPerson) -> None:
        """Play and rest in turn until cancelled; after a failure, rest."""
        await asyncio.sleep(self._rng.uniform(0, ARRIVE))
        while True:
            if person.name not in self._busy:
                party = self._party(person)
                names = {member.name for member in party}
                self._busy |= names
                try:
                    await self._play(party)
                except FAILURES:
                    await asyncio.sleep(REST)
                finally:
                    self._busy -= names
            await asyncio.sleep(self._rng.exponential(REST))

    def _party(self, person: SimulatedPerson) -> list[SimulatedPerson]:
        """This person, and sometimes friends who are not busy."""
        game, party = self._game, [person]
        if game.parties > 1 and self._rng.random() < WITH_FRIENDS:
            for name in person.friends:
                friend = self._people[name]
                if len(party) < game.parties and name not in self._busy and game.ladder in friend.skill:
                    party.append(friend)
        return party

    async def _play(self, party: Sequence[SimulatedPerson]) -> None:
        """Queue, answer offers, and return when the match is over."""
        game = self._game
        members = [_member(person, game) for person in party]
        ladder, patience = game.ladder, self._rng.uniform(*PATIENCE)
        joined = await self._client.join_queue(ladder, JoinRequest(queues=[QUEUE], members=members))
        answered = None
        async with aclosing(self._client.watch_ticket(ladder, joined.ticket)) as states:
            async for ticket in states:
                if ticket.offer is not None:
                    if ticket.offer.offer != answered:
                        await asyncio.sleep(self._rng.uniform(*ANSWER))
                        if not await self._answer(ladder, joined.ticket, ticket.offer.offer):
                            return
                        answered = ticket.offer.offer
                elif ticket.waited is not None and ticket.waited > patience:
                    await self._client.leave_queue(ladder, joined.ticket)
                    return
        if ticket.match is not None:
            await asyncio.sleep(game.length[1] + ENDED)

    async def _answer(self, ladder: str, ticket: int, offer: int) -> bool:
        """Accept, decline or ignore an offer; whether the ticket is still worth waiting for."""
        luck = self._rng.random()
        if luck < DECLINES:
            await self._client.decline_offer(ladder, ticket, OfferAnswer(offer=offer))
            return False
        if luck > 1 - IS_SILENT:
            return False
        try:
            await self._client.accept_offer(ladder, ticket, OfferAnswer(offer=offer))
        except ProblemError as error:
            if error.status != CONFLICT:  # another player has declined meanwhile
                raise
        return True


def _member(person: SimulatedPerson, game: Game) -> PartyMember:
    ping = dict(person.ping) if game.regions else {}
    return PartyMember(player=person.name, within=person.within, loose=person.loose, ping=ping)
