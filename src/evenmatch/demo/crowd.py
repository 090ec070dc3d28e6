"""The crowd: simulated players and game servers, in a thread of their own, who know nothing but the HTTP API."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import AsyncExitStack

import httpx

from evenmatch.client import AsyncClient
from evenmatch.demo.games import GAMES, Game
from evenmatch.demo.people import make_people
from evenmatch.demo.playing import GameServer
from evenmatch.demo.seeking import Seekers

PATIENCE = 5.0  # seconds that the crowd has to end
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=10)  # who waits holds a connection
BEAT = 0.05  # seconds between two looks whether it is over

logger = logging.getLogger(__name__)


class Crowd:
    """Plays on a served demo from `begin` to `end`."""

    def __init__(self, address: str, key: str, seed: int, games: Sequence[Game] = GAMES) -> None:
        self._address, self._key, self._seed, self._games = address, key, seed, games
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="evenmatch-crowd", daemon=True)

    def begin(self) -> None:
        """Come."""
        self._thread.start()

    def leave(self) -> None:
        """Go home, all at once; do not wait for it."""
        self._over.set()

    def end(self) -> None:
        """Go home, and be there when this returns."""
        self.leave()
        if self._thread.is_alive():
            self._thread.join(PATIENCE)

    def _run(self) -> None:
        asyncio.run(self._until_over())

    async def _until_over(self) -> None:
        living = asyncio.create_task(self._live())
        while not self._over.is_set() and not living.done():
            await asyncio.sleep(BEAT)
        living.cancel()
        await asyncio.wait([living], timeout=PATIENCE)
        if not living.cancelled() and living.exception() is not None:
            logger.error("the crowd went home", exc_info=living.exception())

    async def _live(self) -> None:
        people = {one.name: one for one in make_people(self._seed)}
        busy: set[str] = set()
        async with AsyncExitStack() as ending, asyncio.TaskGroup() as group:
            for game in self._games:
                transport = httpx.AsyncHTTPTransport(limits=LIMITS)
                client = AsyncClient(self._address, self._key, patience=5.0, transport=transport)
                await ending.enter_async_context(client)
                group.create_task(GameServer(game, people, client, self._seed).run())
                seekers = Seekers(game, people, client, busy, self._seed)
                for person in seekers.about():
                    group.create_task(seekers.live(person))
