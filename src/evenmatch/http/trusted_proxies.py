"""The load balancers before the service, whose word about client addresses and HTTPS is believed."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

EVERYBODY = "*"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class TrustedProxies:
    """A set of addresses: `host in proxies`. Raises ValueError for an entry that is no address and no network."""

    def __init__(self, entries: Sequence[str]) -> None:
        self.entries = tuple(entries)
        self._everybody = EVERYBODY in entries
        self._networks = [_network(entry) for entry in entries if entry != EVERYBODY]
        self._find = lru_cache(1024)(self._contains)

    def __contains__(self, host: str) -> bool:
        return self._everybody or (bool(self._networks) and self._find(host))

    def _contains(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return any((mapped or address) in network for network in self._networks)


def _network(entry: str) -> Network:
    try:
        return ipaddress.ip_network(entry)
    except ValueError:
        raise ValueError(f"{entry!r} is not an address, a network such as 10.0.0.0/8, or *") from None
