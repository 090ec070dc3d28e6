"""The open connections of a process: how many there are, of each address and in all, and which to close for a new one.

A connection is idle until a request has arrived completely, or its head if that names an API key, and between two
requests. Where the limit is reached, the connection that has been idle for longest is closed: a stranger's, else one of
a player's token, and none of an API key; those that send nothing, or a body that does not end, exclude no client.
Some connections are kept for addresses from which a known caller has asked.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from evenmatch.http.hosts import TrustedProxies

KNOWN_FOR = 600.0  # seconds after its last request that an address of a known caller counts as known
MOST_KNOWN = 100_000  # addresses


class KnownAddresses:
    """Addresses, each for KNOWN_FOR seconds after it was last remembered. Use it in the event loop's thread only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, float] = {}  # the longest ago first

    def remember(self, address: str) -> None:
        """Note that a known caller asks from this address."""
        self._seen.pop(address, None)
        self._seen[address] = self._clock()
        if len(self._seen) > MOST_KNOWN:
            del self._seen[next(iter(self._seen))]

    def __contains__(self, address: str) -> bool:
        seen = self._seen.get(address)
        return seen is not None and self._clock() - seen < KNOWN_FOR


NETWORK = 64  # bits of an IPv6 address that count as one client: a site has as many addresses as it likes


class ConnectionLimits(NamedTuple):
    """total: most connections; each: most of one address; reserve: of the total, those kept for known callers."""

    total: int
    each: int
    reserve: int


class NoRoomError(Exception):
    """A connection is one too many. reason: a word for the metrics; setting: the limit."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.setting = "EVENMATCH_ADDRESS_CONNECTIONS" if reason == "address" else "EVENMATCH_CONNECTIONS"
        super().__init__(reason)


@dataclass(eq=False, slots=True)
class Connection:
    """An open connection.

    abort         closes it; None: it is closed
    is_known      an authenticated request came over it
    has_key       an API key sent one, not only players' tokens
    is_receiving  the body of the latest request has not arrived completely
    """

    connections: Connections
    address: str
    is_proxy: bool
    abort: Callable[[], None] | None
    is_known: bool = False
    has_key: bool = False
    is_receiving: bool = False

    def recognise(self, *, has_key: bool) -> None:
        """Note that the caller of the present request is known: by an API key, or by a player's token."""
        if not self.is_known or (has_key and not self.has_key):
            self.connections.recognise(self, has_key=has_key)

    def begin_request(self) -> None:
        """Note that the head of a request has arrived."""
        self.is_receiving = True
        if self.has_key:
            self.keep()

    def end_request(self) -> None:
        """Note that a request has arrived completely."""
        self.is_receiving = False
        self.keep()

    def keep(self) -> None:
        """Note that the connection is not idle, so that it is not closed for another one."""
        self.connections.work(self)


@dataclass(slots=True)
class _Address:
    """The connections of an address: their number, and the idle ones, the longest idle first."""

    count: int = 0
    idle: dict[Connection, None] = field(default_factory=dict)


class Connections:
    """The open connections of a process. Use it in the event loop's thread only."""

    def __init__(
        self, limits: ConnectionLimits, proxies: TrustedProxies, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits, self._proxies = limits, proxies
        self._addresses: dict[str, _Address] = {}
        self._idle_strangers: dict[Connection, None] = {}  # the longest idle first
        self._idle_players: dict[Connection, None] = {}
        self._known = KnownAddresses(clock)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def open(self, host: str, abort: Callable[[], None]) -> Connection:
        """Count a new connection from a host, which is idle; close another one for it where the limit is reached.

        Raises NoRoomError if no connection can be closed for it.
        """
        address = client_address(host)
        is_proxy = host in self._proxies
        self._make_room(address, is_proxy=is_proxy)
        connection = Connection(self, address, is_proxy, abort)
        self._count += 1
        self._addresses.setdefault(address, _Address()).count += 1
        self.rest(connection)
        return connection

    def _make_room(self, address: str, *, is_proxy: bool) -> None:
        own = self._addresses.get(address)
        if own is not None and own.count >= self.limits.each and not is_proxy:
            self._close_first(own.idle, "address")
        is_known = is_proxy or address in self._known
        if self._count >= self.limits.total - (0 if is_known else self.limits.reserve):
            self._close_first(self._idle_strangers or self._idle_players, "total")

    def _close_first(self, idle: dict[Connection, None], reason: str) -> None:
        """Close the longest idle one of these connections. Raises NoRoomError if there is none."""
        connection = next(iter(idle), None)
        if connection is None:
            raise NoRoomError(reason)
        abort = connection.abort
        self.close(connection)
        if abort is not None:
            abort()

    def close(self, connection: Connection) -> None:
        """Count a connection no more; closing it twice changes nothing."""
        if connection.abort is None:
            return
        connection.abort = None
        self.work(connection)
        self._count -= 1
        own = self._addresses[connection.address]
        own.count -= 1
        if not own.count:
            del self._addresses[connection.address]
        if connection.is_known:
            self._known.remember(connection.address)

    def rest(self, connection: Connection) -> None:
        """Note that a connection is idle from now on."""
        if connection.abort is not None and not connection.is_proxy:
            self._addresses[connection.address].idle[connection] = None
            if not connection.has_key:
                idle = self._idle_players if connection.is_known else self._idle_strangers
                idle[connection] = None

    def work(self, connection: Connection) -> None:
        """Note that a connection is not idle."""
        if not connection.is_proxy:
            self._idle_strangers.pop(connection, None)
            self._idle_players.pop(connection, None)
            self._addresses[connection.address].idle.pop(connection, None)

    def recognise(self, connection: Connection, *, has_key: bool) -> None:
        """Note that the caller of the present request is known: by an API key, or by a player's token."""
        was_idle = (
            self._idle_strangers.pop(connection, self) is None or self._idle_players.pop(connection, self) is None
        )
        connection.is_known, connection.has_key = True, has_key
        if was_idle and not has_key:
            self._idle_players[connection] = None
        self._known.remember(connection.address)


def client_address(host: str) -> str:
    """The address that limits count: of IPv4 the address, of IPv6 its network of 64 bits."""
    if ":" not in host:
        return host
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, NETWORK), strict=False))
