"""Allowed host names, client addresses, and the decoding of paths.

In a DNS rebinding attack, a foreign web site points its own name at the address of this service, and its pages then
send requests here from the visitor's browser. Such requests carry the foreign name as their host, so only allowed names
are answered. A request whose host is an address cannot be part of such an attack.
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


NETWORK = 64  # prefix length of an IPv6 network that counts as one client, since one client can use all of it


def client_address(host: str) -> str:
    """The address for rate limits: an IPv4 address, or the /64 network of an IPv6 address."""
    if ":" not in host:
        return host
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, NETWORK), strict=False))


API = ("/v1/", "/healthz", "/readyz", "/metrics", "/docs")  # path prefixes; all other paths belong to the web site


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
        """Decode the text. Invalid UTF-8 becomes lone surrogates, which no valid name contains."""
        return as_meant(value)

    def to_string(self, value: str) -> str:
        """Return the value unchanged."""
        return value


register_url_convertor("text", PathText())
