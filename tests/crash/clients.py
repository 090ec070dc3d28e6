"""Clients of processes that are killed: what they ask goes to any of them, and again until one has answered."""

import socket
import threading
import time
from collections.abc import Callable
from random import Random

import httpx

from server_process import Served

ON = "/v1/ladders/arena"
PATIENCE = 60.0  # seconds until somebody must have answered
AVOIDED = 2.0  # seconds for which nobody asks a process that did not answer, as deploy/upstream.conf has it
Answer = dict[str, object]


class Clients:
    """Game servers that report, players who queue, accept and play for ever, and others; each is a thread.

    Operators race: several void and reinstate the same matches, ban and reinstate the same players. Drips hold
    connections by sending heads and bodies byte by byte.

    reports    the answers to acknowledged reports, by the match's id;  tickets  the acknowledged ones
    """

    def __init__(self, served: list[Served], key: str, seed: int, *, patience: float = PATIENCE) -> None:
        """patience: seconds after which another process is asked."""
        self.reports: dict[str, Answer] = {}
        self.tickets: set[int] = set()
        self.cut = 0
        self.faults: list[BaseException] = []
        self._served, self._key, self._seed, self._patience = served, key, seed, patience
        self._avoided: dict[Served, float] = {}  # until when
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(
        self, servers: int, players: int, readers: int = 0, *, operators: int = 0, drips: int = 0, first: int = 0
    ) -> None:
        """Start to ask. first: the first number in their names; after other clients of the same ladder, another one."""
        work: list[tuple[Callable[[str, Random, httpx.Client], None], str]] = [
            *((self._report, f"s{at}") for at in range(first, first + servers)),
            *((self._play, f"player {at}") for at in range(first, first + players)),
            *((self._read, f"reader {at}") for at in range(first, first + readers)),
            *((self._operate, f"operator {at}") for at in range(operators)),
            *((self._drip, f"drip {at}") for at in range(drips)),
        ]
        for run, name in work:
            self._threads.append(threading.Thread(target=self._guarded, args=(run, name), daemon=True))
            self._threads[-1].start()

    def end(self) -> None:
        """Stop, and raise what went wrong."""
        self._stop.set()
        for thread in self._threads:
            thread.join(2 * PATIENCE)
            assert not thread.is_alive(), "a client hangs"
        self.check()

    def check(self) -> None:
        """Raise what went wrong."""
        if self.faults:
            raise self.faults[0]

    def _guarded(self, run: Callable[[str, Random, httpx.Client], None], name: str) -> None:
        try:
            headers = {"Authorization": f"Bearer {self._key}"}
            with httpx.Client(headers=headers, timeout=self._patience) as client:
                run(name, Random(f"{self._seed} {name}"), client)
        except BaseException as error:
            self.faults.append(error)

    def _ask(
        self, client: httpx.Client, chance: Random, method: str, path: str, body: object = None, *also: int
    ) -> httpx.Response:
        """The answer of any process; another one is asked where the connection is cut or refused."""
        deadline = time.monotonic() + PATIENCE
        while True:
            now = time.monotonic()
            chosen = chance.choice([one for one in self._served if self._avoided.get(one, 0) <= now] or self._served)
            try:
                told = client.request(method, f"{chosen.address}{ON}{path}", json=body)
            except httpx.TransportError:
                self.cut += 1
                self._avoided[chosen] = time.monotonic() + AVOIDED
                assert time.monotonic() < deadline, "nobody answers"
                time.sleep(0.05)
                continue
            if told.status_code == 503:  # the database does not answer in time: send it again
                assert time.monotonic() < deadline, told.text
                time.sleep(0.2)
                continue
            assert told.status_code in (200, 201, *also), f"{method} {path}: {told.status_code} {told.text}"
            return told

    def _report(self, name: str, chance: Random, client: httpx.Client) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            one, other = chance.sample(range(30), 2)
            teams = [{"place": place, "players": [{"player": f"r{who}"}]} for place, who in ((1, one), (2, other))]
            match = {"id": f"{name}-{number}", "played_at": "2026-01-01T12:00:00Z", "teams": teams}
            self.reports[f"{name}-{number}"] = self._ask(client, chance, "POST", "/matches", match).json()
            self._stop.wait(0.02)

    def _read(self, _: str, chance: Random, client: httpx.Client) -> None:
        while not self._stop.is_set():
            assert self._ask(client, chance, "GET", "/standings?limit=5").json()["ladder"] == "arena"
            self._stop.wait(0.1)

    def _operate(self, name: str, chance: Random, client: httpx.Client) -> None:
        """Correct history all the time; that another operator was faster is no fault."""
        refused = (202, 404, 409)
        while not self._stop.is_set():
            match_id, player = chance.choice([*self.reports][-20:] or ["none"]), f"r{chance.randrange(3)}"
            self._ask(client, chance, "POST", "/voids", {"match_id": match_id}, *refused)
            self._ask(client, chance, "POST", "/bans", {"player": player, "rule": "refund"}, *refused)
            self._stop.wait(1)
            self._ask(client, chance, "DELETE", f"/voids/{match_id}", None, *refused)
            self._ask(client, chance, "DELETE", f"/bans/{player}", None, *refused)
            self._stop.wait(1)

    def _drip(self, _: str, chance: Random, __: httpx.Client) -> None:
        """Hold connections by a byte now and then: half of the head, or half of the body."""
        head = f"POST {ON}/matches HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
        while not self._stop.is_set():
            host, _, port = chance.choice(self._served).address.removeprefix("http://").partition(":")
            try:
                with socket.create_connection((host, int(port)), 2) as connection:
                    connection.sendall((head + chance.choice(("X-Slow: ", "\r\n"))).encode())
                    for _ in range(100):
                        connection.sendall(b"x")
                        if self._stop.wait(0.2):
                            return
            except OSError:  # closed by the server, or the server is gone
                self._stop.wait(0.2)

    def _play(self, name: str, chance: Random, client: httpx.Client) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            wish = {"members": [{"player": name}], "queues": ["main"], "request_id": f"{name} {number}"}
            told = self._ask(client, chance, "POST", "/tickets", wish, 409)
            if told.status_code == 409:  # the match is not closed yet
                self._stop.wait(0.05)
                continue
            self.tickets.add(told.json()["ticket"])
            self._wait(client, chance, name, told.json()["ticket"])

    def _wait(self, client: httpx.Client, chance: Random, name: str, ticket: int) -> None:
        """Until the ticket has come to its end: then its match is played at once."""
        address, change = f"/tickets/{ticket}", 0
        while not self._stop.is_set():
            found = self._ask(client, chance, "GET", f"{address}?after={change}&wait=2").json()
            if found["state"] == "offered":
                self._ask(client, chance, "POST", f"{address}/accept", {"player": name}, 409)
            elif found["state"] == "matched":
                if found["match"]["teams"][0][0]["player"] == name:
                    self._close(client, chance, found["match"]["match_id"])
                return
            elif found["state"] == "gone":
                return
            change = found["change"]

    def _close(self, client: httpx.Client, chance: Random, match_id: str) -> None:
        ending = {"teams": [{"place": 1}, {"place": 2}]}
        self.reports[match_id] = self._ask(client, chance, "POST", f"/live/{match_id}/close", ending).json()
