"""The simulated game servers: each plays the matches created by the queue of its ladder, and reports them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from evenmatch.client import AsyncClient
from evenmatch.client.errors import ProblemError, UnreachableError
from evenmatch.client.models import (
    Announce,
    AttendanceChange,
    AttendanceReport,
    AttendanceSpanOut,
    Close,
    LiveMatch,
    LiveTeam,
    PlayerResult,
    TeamResult,
)
from evenmatch.demo.games import Game
from evenmatch.demo.ladder_creation import QUEUE
from evenmatch.demo.population import SimulatedPerson
from evenmatch.errors import EvenmatchError

POLL = 3.0  # seconds between two requests for matches to play
RETRY = 3.0  # seconds to wait after a failure
BACK = 0.4  # share of leavers who come back
FAILURES = (EvenmatchError, OSError)


class GameServer:
    """The server of one game. Players outside the crowd, such as visitors of the site, play with average skill."""

    def __init__(self, game: Game, people: Mapping[str, SimulatedPerson], client: AsyncClient, seed: int) -> None:
        self._game, self._people, self._client = game, people, client
        self._rng = np.random.default_rng([seed, 2, sum(map(ord, game.ladder))])
        self._playing: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Request new matches and play them, until cancelled."""
        try:
            while True:
                try:
                    await self._start_matches()
                except FAILURES:
                    await asyncio.sleep(RETRY)
                await asyncio.sleep(POLL)
        finally:
            for task in self._playing.values():
                task.cancel()
            await asyncio.gather(*self._playing.values(), return_exceptions=True)

    async def _start_matches(self) -> None:
        self._playing = {name: task for name, task in self._playing.items() if not task.done()}
        for match in (await self._client.live_matches(self._game.ladder, queue=QUEUE)).items:
            if match.made_by == "queue" and match.match_id not in self._playing:
                task = asyncio.create_task(self._play(match))
                self._playing[match.match_id] = task

    async def _play(self, match: LiveMatch) -> None:
        """Play a match from its start to its report; after a failure `run` starts it again."""
        try:
            if not match.confirmed:
                sides = [LiveTeam(players=[player.player for player in team]) for team in match.teams]
                await self._client.announce_match(self._game.ladder, match.match_id, Announce(teams=sides, queue=QUEUE))
            length = float(self._rng.integers(self._game.length[0], self._game.length[1] + 1))
            for pause, change in self._attendance(match, length):
                await asyncio.sleep(pause)
                if change is not None:
                    await self._report_attendance(match.match_id, change)
            await self._close(match.match_id)
        except FAILURES:
            await asyncio.sleep(RETRY)

    def _attendance(self, match: LiveMatch, length: float) -> list[tuple[float, AttendanceChange | None]]:
        """Random leaves and returns of a match, each with the seconds since the previous event; None: the end."""
        events: list[tuple[float, AttendanceChange | None]] = [(length, None)]
        for team in match.teams:
            for player in team[1:] if len(team) > 1 else team:  # the first player of a team stays
                if player.player in self._people and self._rng.random() < self._game.quits:
                    left = float(self._rng.uniform(0.15, 0.9)) * length
                    events.append((left, AttendanceChange(player=player.player)))
                    if self._rng.random() < BACK:
                        returned = left + 0.5 * (length - left)
                        events.append((returned, AttendanceChange(player=player.player, back=True)))
        events.sort(key=lambda event: event[0])
        previous = [0.0, *(time for time, _ in events)]
        return [(time - before, change) for before, (time, change) in zip(previous, events, strict=False)]

    async def _report_attendance(self, match_id: str, change: AttendanceChange) -> None:
        try:
            await self._client.tell_presence(self._game.ladder, match_id, AttendanceReport(players=[change]))
        except (ProblemError, UnreachableError):
            return  # the leave or return stays unreported

    async def _close(self, match_id: str) -> None:
        """Report the result, simulated from the skill and the attendance of the players."""
        match = await self._client.live_match(self._game.ladder, match_id)
        if match.state != "open":
            return
        now = datetime.now(UTC)
        hour = now.hour + now.minute / 60
        skill = [np.array([self._skill(player.player, hour) for player in team]) for team in match.teams]
        presence = [np.array([_share(player.spells, match.started_at, now) for player in team]) for team in match.teams]
        result = self._game.end(self._rng, skill, presence)
        players = {
            player.player: PlayerResult(score=score, performance=performance)
            for team, scores, performances in zip(match.teams, result.scores, result.performances, strict=True)
            for player, score, performance in zip(team, scores, performances, strict=True)
            if score is not None or performance is not None
        }
        teams = [TeamResult(score=score) for score in result.team_scores]
        await self._client.close_match(self._game.ladder, match_id, Close(teams=teams, players=players))

    def _skill(self, player: str, hour: float) -> float:
        person = self._people.get(player)
        return 0.0 if person is None else person.skill_at(self._game.ladder, hour)


def _share(spells: Sequence[AttendanceSpanOut], began: datetime, ended: datetime) -> float:
    """The share of a match in which a player was present, 0..1."""
    length = (ended - began).total_seconds()
    present = sum(((span.left or ended) - max(span.came, began)).total_seconds() for span in spells)
    return min(max(present / length, 0.0), 1.0) if length > 0 else 1.0
