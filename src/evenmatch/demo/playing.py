"""The simulated game servers: each plays every match that a queue of its ladder made, and reports it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from evenmatch.client import AsyncClient
from evenmatch.client.errors import ProblemError, UnreachableError
from evenmatch.client.models import (
    Announce,
    Close,
    Coming,
    LiveMatch,
    LiveTeam,
    PlayerResult,
    Presences,
    SpellTold,
    TeamResult,
)
from evenmatch.demo.games import Game
from evenmatch.demo.people import Person
from evenmatch.demo.seeding import QUEUE
from evenmatch.errors import EvenmatchError

LOOK = 1.0  # seconds between two looks for matches to play
AGAIN = 3.0  # seconds until a server that failed goes on
BACK = 0.4  # share of those who left that come back
FAILURES = (EvenmatchError, OSError)


class GameServer:
    """The server of one game. Who is not of the crowd, as a visitor of the web site, plays with average skill."""

    def __init__(self, game: Game, people: Mapping[str, Person], client: AsyncClient, seed: int) -> None:
        self._game, self._people, self._client = game, people, client
        self._rng = np.random.default_rng([seed, 2, sum(map(ord, game.ladder))])
        self._playing: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Look for matches and play them, until it is cancelled."""
        try:
            while True:
                try:
                    await self._look()
                except FAILURES:
                    await asyncio.sleep(AGAIN)
                await asyncio.sleep(LOOK)
        finally:
            for task in self._playing.values():
                task.cancel()
            await asyncio.gather(*self._playing.values(), return_exceptions=True)

    async def _look(self) -> None:
        self._playing = {name: task for name, task in self._playing.items() if not task.done()}
        for match in (await self._client.live_matches(self._game.ladder, queue=QUEUE)).items:
            if match.made_by == "queue" and match.match_id not in self._playing:
                task = asyncio.create_task(self._play(match))
                self._playing[match.match_id] = task

    async def _play(self, match: LiveMatch) -> None:
        """Play a match from its start to its report; one that fails is looked for again."""
        try:
            if not match.confirmed:
                sides = [LiveTeam(players=[one.player for one in team]) for team in match.teams]
                await self._client.announce_match(self._game.ladder, match.match_id, Announce(teams=sides, queue=QUEUE))
            length = float(self._rng.integers(self._game.length[0], self._game.length[1] + 1))
            for seconds, told in self._comings(match, length):
                await asyncio.sleep(seconds)
                if told is not None:
                    await self._tell(match.match_id, told)
            await self._close(match.match_id)
        except FAILURES:
            await asyncio.sleep(AGAIN)

    def _comings(self, match: LiveMatch, length: float) -> list[tuple[float, Coming | None]]:
        """Who of the crowd leaves and comes back, with the seconds since what was before; None: the end."""
        events: list[tuple[float, Coming | None]] = [(length, None)]
        for team in match.teams:
            for one in team[1:] if len(team) > 1 else team:  # somebody of a team stays
                if one.player in self._people and self._rng.random() < self._game.quits:
                    left = float(self._rng.uniform(0.15, 0.9)) * length
                    events.append((left, Coming(player=one.player)))
                    if self._rng.random() < BACK:
                        events.append((left + 0.5 * (length - left), Coming(player=one.player, back=True)))
        events.sort(key=lambda event: event[0])
        before = [0.0, *(at for at, _ in events)]
        return [(at - earlier, told) for earlier, (at, told) in zip(before, events, strict=False)]

    async def _tell(self, match_id: str, told: Coming) -> None:
        try:
            await self._client.tell_presence(self._game.ladder, match_id, Presences(players=[told]))
        except (ProblemError, UnreachableError):
            return  # as if nobody had seen it

    async def _close(self, match_id: str) -> None:
        """Report how it ended, by who was there."""
        match = await self._client.live_match(self._game.ladder, match_id)
        if match.state != "open":
            return
        now = datetime.now(UTC)
        hour = now.hour + now.minute / 60
        skill = [np.array([self._skill(one.player, hour) for one in team]) for team in match.teams]
        presence = [np.array([_share(one.spells, match.started_at, now) for one in team]) for team in match.teams]
        result = self._game.end(self._rng, skill, presence)
        players = {
            one.player: PlayerResult(score=score, performance=performance)
            for team, scores, performances in zip(match.teams, result.scores, result.performances, strict=True)
            for one, score, performance in zip(team, scores, performances, strict=True)
            if score is not None or performance is not None
        }
        teams = [TeamResult(score=score) for score in result.team_scores]
        await self._client.close_match(self._game.ladder, match_id, Close(teams=teams, players=players))

    def _skill(self, player: str, hour: float) -> float:
        person = self._people.get(player)
        return 0.0 if person is None else person.skill_at(self._game.ladder, hour)


def _share(spells: Sequence[SpellTold], began: datetime, ended: datetime) -> float:
    """The share of a match in which a player was there, 0..1."""
    whole = (ended - began).total_seconds()
    there = sum(((one.left or ended) - max(one.came, began)).total_seconds() for one in spells)
    return min(max(there / whole, 0.0), 1.0) if whole > 0 else 1.0
