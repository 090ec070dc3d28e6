"""The crowd: simulated players and game servers in their own thread, which use the HTTP API only."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import AsyncExitStack

import httpx

from evenmatch.client import AsyncClient
from evenmatch.demo.game_servers import GameServer
from evenmatch.demo.games import GAMES, Game
from evenmatch.demo.population import make_people
from evenmatch.demo.simulated_players import SimulatedPlayers

PATIENCE = 5.0  # seconds that `end` waits
LIMITS = httpx.Limits()  # none: the stream of a ticket holds its connection
POLL = 0.05  # seconds between two checks of the stop event

logger = logging.getLogger(__name__)


class SimulatedCrowd:
    """Simulated players and game servers of a running demo, active from `begin` to `end`."""

    def __init__(self, address: str, key: str, seed: int, games: Sequence[Game] = GAMES) -> None:
        self._address, self._key, self._seed, self._games = address, key, seed, games
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="evenmatch-crowd", daemon=True)

    def begin(self) -> None:
        """Start the thread of the crowd."""
        self._thread.start()

    def leave(self) -> None:
        """Request the crowd to stop, without waiting."""
        self._stop.set()

    def end(self) -> None:
        """Stop the crowd, and wait up to PATIENCE seconds."""
        self.leave()
        if self._thread.is_alive():
            self._thread.join(PATIENCE)

    def _run(self) -> None:
        asyncio.run(self._run_until_stopped())

    async def _run_until_stopped(self) -> None:
        playing = asyncio.create_task(self._play())
        while not self._stop.is_set() and not playing.done():
            await asyncio.sleep(POLL)
        playing.cancel()
        await asyncio.wait([playing], timeout=PATIENCE)
        if not playing.cancelled() and playing.exception() is not None:
            logger.error("the crowd stopped because of an error", exc_info=playing.exception())

    async def _play(self) -> None:
        people = {person.name: person for person in make_people(self._seed)}
        busy: set[str] = set()
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            for game in self._games:
                transport = httpx.AsyncHTTPTransport(limits=LIMITS)
                client = AsyncClient(self._address, self._key, patience=5.0, transport=transport)
                await stack.enter_async_context(client)
                group.create_task(GameServer(game, people, client, self._seed).run())
                seekers = SimulatedPlayers(game, people, client, busy, self._seed)
                for person in seekers.about():
                    group.create_task(seekers.live(person))
