"""Allowed host names, client addresses, and the text of paths.

A page of another site can send requests to a service that its visitor can reach, under a name of its own that resolves
to the service's address (DNS rebinding). Such a request carries that name, so names that are not allowed are refused. A
request for an address instead of a name cannot be such a trick.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import unquote

from starlette.convertors import Convertor, register_url_convertor

ANY = "*"
BELOW = "*."  # prefix of an entry for all subdomains
LOCAL = "localhost"
ENTRY = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?|\*")


class AllowedHosts:
    """A set of names: `host in hosts`, where `host` is the value of a Host header.

    named  entries of the setting;  bound  the name or address that the process listens on
    Raises ValueError for an entry that is not a name.
    """

    def __init__(self, named: Sequence[str], bound: str) -> None:
        entries = [entry.lower().rstrip(".") for entry in named]
        for entry in entries:
            if not ENTRY.fullmatch(entry):
                raise ValueError(f"{entry!r} is not a name without a port, such as rank.example, *.rank.example or *")
        own = socket.gethostname().lower()
        self._any = ANY in entries
        self._names = {*entries, LOCAL, bound.lower(), own, f"{own.partition('.')[0]}.local"}
        self._endings = (f".{LOCAL}", *(entry[1:] for entry in entries if entry.startswith(BELOW)))
        self._find = lru_cache(1024)(self._contains)

    def __contains__(self, host: str) -> bool:
        return self._any or self._find(host)

    def _contains(self, host: str) -> bool:
        name = _name(host)
        return name in self._names or name.endswith(self._endings) or _is_address(name)


def _name(host: str) -> str:
    """The name or address of a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0].lower().rstrip(".") if ":" in host else host.lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def check_proxy(entry: str) -> None:
    """Raise ValueError if an entry of the trusted proxies is neither an address, a network nor *."""
    if entry != ANY:
        try:
            ipaddress.ip_network(entry)
        except ValueError:
            raise ValueError(f"{entry!r} is not an address, a network such as 10.0.0.0/8, or *") from None


NETWORK = 64  # bits of an IPv6 address that count as one client: a site has as many addresses as it likes


def client_address(host: str) -> str:
    """The address that limits count: an IPv4 address itself, or the network of 64 bits of an IPv6 address."""
    if ":" not in host:
        return host
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, NETWORK), strict=False))


API = ("/v1/", "/healthz", "/readyz", "/metrics")  # path prefixes; all other paths belong to the web site


def is_api(path: str) -> bool:
    """Whether a path belongs to the API rather than the web site."""
    return path.startswith(API)


def as_meant(part: str) -> str:
    """Decode a path segment. Bytes that are not UTF-8 become lone surrogates."""
    return unquote(part, errors="surrogateescape")


def is_text(value: str) -> bool:
    """Whether a database can store the value: it contains neither NUL nor a lone surrogate."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


class PathText(Convertor[str]):
    """A path segment, percent-decoded; the text may contain a slash."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """Decode the text, which may contain lone surrogates. No valid name has those."""
        return as_meant(value)

    def to_string(self, value: str) -> str:
        """The value unchanged, as it appears in the path."""
        return value


register_url_convertor("text", PathText())
