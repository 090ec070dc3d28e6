"""Where a webhook may lead: a URL of the web, and no address inside the operator's own network."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

from evenmatch.errors import InputError

LONGEST = 2_000  # letters of a URL
Resolve = Callable[[str, int], list[str]]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def check_url(url: str) -> SplitResult:
    """The parts of a URL that could be a webhook's, wherever it leads. Raises InputError, which does not repeat it."""
    accepted = "accepted is http://host/path or https://host/path"
    if len(url) > LONGEST:
        raise InputError(f"the URL has {len(url):,} letters; accepted are up to {LONGEST:,}")
    if not url.isascii() or any(letter <= " " or letter == "\x7f" for letter in url):
        raise InputError(f"the URL holds a space or a letter that is to be written as %…; {accepted}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InputError(f"the URL cannot be read ({error}); {accepted}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"the URL has the scheme {parts.scheme!r} and the host {parts.hostname!r}; {accepted}")
    if parts.username is not None or parts.password is not None:
        raise InputError("the URL holds a login; accepted is one without: what is sent is signed")
    if port == 0:
        raise InputError(f"the URL has the port 0; {accepted}")
    return parts


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, by the system's resolver; none where it knows none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(one[4][0]) for one in found))


def refusal(addresses: list[str]) -> str | None:
    """Why nothing is sent to a host that has one of these addresses; None: it may be.

    One that is not public is enough: whoever owns the name says which is used.
    """
    for text in addresses:
        if not _is_public(ipaddress.ip_address(text.split("%")[0])):
            return f"leads to {text}, which is no public address"
    return None


def _is_public(address: Address) -> bool:
    inner: Address | None = None
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if inner is not None:
        return _is_public(inner)
    return address.is_global and not address.is_multicast


_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
