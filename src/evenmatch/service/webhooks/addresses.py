"""Which URLs a webhook may use: http or https, and only public addresses, so never the operator's own network."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

from evenmatch.errors import InputError

LONGEST = 2_000  # characters of a URL
Resolve = Callable[[str, int], list[str]]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def check_url(url: str) -> SplitResult:
    """Check the syntax of a webhook URL and return its parts. Raises InputError, whose message omits the URL."""
    expected = "expected http://host/path or https://host/path"
    if len(url) > LONGEST:
        raise InputError(f"the URL has {len(url):,} characters; at most {LONGEST:,} are allowed")
    if not url.isascii() or any(letter <= " " or letter == "\x7f" for letter in url):
        raise InputError(f"the URL contains a space or a character that must be written as %…; {expected}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InputError(f"the URL cannot be read ({error}); {expected}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"the URL has the scheme {parts.scheme!r} and the host {parts.hostname!r}; {expected}")
    if parts.username is not None or parts.password is not None:
        raise InputError("the URL contains a user name or password; remove it: deliveries are signed instead")
    if port == 0:
        raise InputError(f"the URL has the port 0; {expected}")
    return parts


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, from the system's resolver; empty if it cannot be resolved."""
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def refusal(addresses: list[str]) -> str | None:
    """Why a host with these addresses is refused; None: it is allowed.

    A single address that is not public is enough, because the owner of the host name controls which one is used.
    """
    for text in addresses:
        if not _is_public(ipaddress.ip_address(text.split("%")[0])):
            return f"resolves to {text}, which is not a public address"
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
