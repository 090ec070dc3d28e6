"""The crowd: simulated players and game servers in a thread of their own. They use the HTTP API only."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np

from evenmatch.demo.games import GAMES, DemoGame, play
from evenmatch.demo.ladder_creation import QUEUE
from evenmatch.demo.population import SimulatedPerson, make_people

MATCHES_POLLED_EVERY = 3.0  # seconds between two requests for matches to play
RETRY = 3.0  # seconds to wait after a failure
BACK = 0.4  # share of leavers who come back
LONGEST = 1.25  # length of the longest matches, and of the shortest its inverse, times the game's usual length
FAILURES = (httpx.HTTPError, OSError)
LONG_POLL = 10.0  # seconds that the service may take to answer a request for a ticket

Json = dict[str, Any]


class CrowdApi:
    """Requests to the service about one ladder. Each raises httpx.HTTPError if it is refused or not answered."""

    def __init__(self, http: httpx.AsyncClient, ladder: str) -> None:
        self._http, self._ladder = http, ladder

    async def send(self, method: str, path: str, body: Json | None = None, **query: str | float) -> Json:
        """Send a request, with a body as JSON, and return the answer."""
        address = f"/v1/ladders/{quote(self._ladder, safe='')}/{path}"
        response = await self._http.request(method, address, json=body, params=query)
        response.raise_for_status()
        answer: Json = response.json()
        return answer


class GameServer:
    """The server of one game. Players outside the crowd, such as visitors of the site, play with average skill."""

    def __init__(self, game: DemoGame, people: Mapping[str, SimulatedPerson], api: CrowdApi, seed: int) -> None:
        self._game, self._people, self._api = game, people, api
        self._rng = np.random.default_rng([seed, 2, sum(map(ord, game.name))])
        self._playing: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Request new matches and play them, until cancelled."""
        try:
            while True:
                try:
                    await self._start_matches()
                except FAILURES:
                    await asyncio.sleep(RETRY)
                await asyncio.sleep(MATCHES_POLLED_EVERY)
        finally:
            for task in self._playing.values():
                task.cancel()
            await asyncio.gather(*self._playing.values(), return_exceptions=True)

    async def _start_matches(self) -> None:
        self._playing = {name: task for name, task in self._playing.items() if not task.done()}
        for match in (await self._api.send("GET", "live", queue=QUEUE))["items"]:
            if match["made_by"] == "queue" and match["match_id"] not in self._playing:
                task = asyncio.create_task(self._play(match))
                self._playing[match["match_id"]] = task

    async def _play(self, match: Json) -> None:
        """Play a match from its start to its report; after a failure `run` starts it again."""
        try:
            if not match["confirmed"]:
                sides = [{"players": [player["player"] for player in team]} for team in match["teams"]]
                await self._send(match, "PUT", "", {"teams": sides, "queue": QUEUE})
            length = self._game.duration * self._rng.uniform(1 / LONGEST, LONGEST)
            for pause, change in self._attendance(match, length):
                await asyncio.sleep(pause)
                if change is not None:
                    await self._report_attendance(match, change)
            await self._close(match)
        except FAILURES:
            await asyncio.sleep(RETRY)

    def _attendance(self, match: Json, length: float) -> list[tuple[float, Json | None]]:
        """Random leaves and returns of a match, each with the seconds since the previous event; None: the end."""
        events: list[tuple[float, Json | None]] = [(length, None)]
        for team in match["teams"]:
            for player in team[1:] if len(team) > 1 else team:  # the first player of a team stays
                name = player["player"]
                if name in self._people and self._rng.random() < self._game.quit:
                    left = float(self._rng.uniform(0.15, 0.9)) * length
                    events.append((left, {"player": name}))
                    if self._rng.random() < BACK:
                        events.append((left + 0.5 * (length - left), {"player": name, "back": True}))
        events.sort(key=lambda event: event[0])
        previous = [0.0, *(time for time, _ in events)]
        return [(time - before, change) for before, (time, change) in zip(previous, events, strict=False)]

    async def _send(self, match: Json, method: str, path: str, body: Json | None = None) -> Json:
        return await self._api.send(method, f"live/{quote(match['match_id'], safe='')}{path}", body)

    async def _report_attendance(self, match: Json, change: Json) -> None:
        with contextlib.suppress(*FAILURES):  # the leave or return stays unreported
            await self._send(match, "POST", "/presence", {"players": [change]})

    async def _close(self, match: Json) -> None:
        """Report the result, simulated from the skill and the attendance of the players."""
        match = await self._send(match, "GET", "")
        if match["state"] != "open":
            return
        now = datetime.now(UTC)
        hour = now.hour + now.minute / 60
        teams, began = match["teams"], datetime.fromisoformat(match["started_at"])
        everybody = [player for team in teams for player in team]
        skill = np.array([self._skill(player["player"], hour) for player in everybody])
        presence = np.array([_share(player["spells"], began, now) for player in everybody])
        result = play(self._game, self._rng, np.arange(len(skill)), skill, presence)
        slots = zip(everybody, result.score.tolist(), result.performance.tolist(), strict=True)
        players = {player["player"]: {"score": score, "performance": own} for player, score, own in slots}
        scored = [{"score": score} for score in result.team_score.tolist()]
        await self._send(match, "POST", "/close", {"teams": scored, "players": players})

    def _skill(self, player: str, hour: float) -> float:
        person = self._people.get(player)
        return 0.0 if person is None else person.skill_at(self._game.name, hour)


def _share(spells: Sequence[Mapping[str, str | None]], began: datetime, ended: datetime) -> float:
    """The share of a match in which a player was present, 0..1."""
    length = (ended - began).total_seconds()
    spans = [[None if time is None else datetime.fromisoformat(time) for time in span.values()] for span in spells]
    present = sum(((left or ended) - max(came or began, began)).total_seconds() for came, left in spans)
    return min(max(present / length, 0.0), 1.0) if length > 0 else 1.0


ARRIVE = 30.0  # seconds until all players have started
REST = 120.0  # seconds between two matches, on average
PATIENCE_OF_PLAYERS = (120.0, 180.0)  # range of the seconds after which a party leaves the queue
ENDED = 4.0  # seconds after the longest match in which it has been started and reported
ANSWER = (0.3, 3.0)  # range of the seconds until a party answers an offer
DECLINES, IS_SILENT = 0.006, 0.002  # shares of offers
WITH_FRIENDS = 0.05  # share of the times that a person queues
SIMILAR = 0.3  # largest difference in skill within a party


class SimulatedPlayers:
    """The active players of a game, each in a task of its own.

    busy  names of all people who queue or play in any game: a person does one thing at a time
    """

    def __init__(
        self, game: DemoGame, people: Mapping[str, SimulatedPerson], api: CrowdApi, busy: set[str], seed: int
    ) -> None:
        self._game, self._people, self._api, self._busy = game, people, api, busy
        self._rng = np.random.default_rng([seed, 3, sum(map(ord, game.name))])

    def about(self) -> list[SimulatedPerson]:
        """Choose the active players, weighted by eagerness."""
        game = self._game
        own = [person for person in self._people.values() if game.name in person.skill]
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
        """This person, and sometimes others of similar skill who are not busy."""
        ladder, own = self._game.name, person.skill[self._game.name]
        if self._game.parties < 2 or self._rng.random() >= WITH_FRIENDS:
            return [person]
        near = [
            other
            for other in self._people.values()
            if other.name not in self._busy | {person.name} and abs(other.skill.get(ladder, np.inf) - own) < SIMILAR
        ]
        return [person, *(near[index] for index in self._rng.permutation(len(near))[: self._game.parties - 1])]

    async def _play(self, party: Sequence[SimulatedPerson]) -> None:
        """Queue, answer offers, and return when the match is over."""
        game = self._game
        members = [_member(person, game) for person in party]
        patience = self._rng.uniform(*PATIENCE_OF_PLAYERS)
        joined = await self._api.send("POST", "tickets", {"queues": [QUEUE], "members": members})
        path, change, answered = f"tickets/{joined['ticket']}", joined["change"], None
        while True:
            ticket = await self._api.send("GET", path, after=change, wait=LONG_POLL)
            change, offer = ticket["change"], ticket["offer"]
            if ticket["state"] == "matched":
                await asyncio.sleep(game.duration * LONGEST + ENDED)
            if ticket["state"] in ("matched", "gone"):
                return
            if offer is not None:
                if offer["offer"] != answered:
                    await asyncio.sleep(self._rng.uniform(*ANSWER))
                    if not await self._answer(path, offer["offer"]):
                        return
                    answered = offer["offer"]
            elif ticket["waited"] is not None and ticket["waited"] > patience:
                await self._api.send("DELETE", path)
                return

    async def _answer(self, path: str, offer: int) -> bool:
        """Accept, decline or ignore an offer; whether the ticket is still worth waiting for."""
        luck = self._rng.random()
        if luck < DECLINES:
            await self._api.send("POST", f"{path}/decline", {"offer": offer})
            return False
        if luck > 1 - IS_SILENT:
            return False
        try:
            await self._api.send("POST", f"{path}/accept", {"offer": offer})
        except httpx.HTTPStatusError as error:
            if error.response.status_code != HTTPStatus.CONFLICT:  # another player has declined meanwhile
                raise
        return True


def _member(person: SimulatedPerson, game: DemoGame) -> Json:
    ping = dict(person.ping) if game.regions else {}
    return {"player": person.name, "within": person.within, "loose": person.loose, "ping": ping}


PATIENCE = 5.0  # seconds that `end` waits
LIMITS = httpx.Limits()  # none: each waiting ticket holds a connection
TIMEOUT = 20.0  # seconds; longer than a long poll
POLL = 0.05  # seconds between two checks of the stop event

logger = logging.getLogger(__name__)


class SimulatedCrowd:
    """Simulated players and game servers of a running demo, active from `begin` to `end`."""

    def __init__(self, address: str, key: str, seed: int, games: Sequence[DemoGame] = GAMES) -> None:
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
        headers = {"Authorization": f"Bearer {self._key}"}
        http = httpx.AsyncClient(base_url=self._address, headers=headers, limits=LIMITS, timeout=TIMEOUT)
        async with http, asyncio.TaskGroup() as group:
            for game in self._games:
                api = CrowdApi(http, game.name)
                group.create_task(GameServer(game, people, api, self._seed).run())
                seekers = SimulatedPlayers(game, people, api, busy, self._seed)
                for person in seekers.about():
                    group.create_task(seekers.live(person))
