"""Which URLs a webhook may use: http or https, and only public addresses, so never the operator's own network."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable
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
            return f"resolves to {text}, which is not a public address; EVENMATCH_PRIVATE_WEBHOOKS allows others"
    return None


def _is_public(address: Address) -> bool:
    """Whether an address belongs to the public Internet, and so does the IPv4 address that it contains, if any."""
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast and not _is_in(address, _SPECIAL_4)
    if address.ipv4_mapped is not None:
        return _is_public(address.ipv4_mapped)
    if address in _NAT64:
        return _is_public(_contained(address))
    if address not in _GLOBAL_UNICAST or not address.is_global or _is_in(address, _SPECIAL_6):
        return False
    return (int(address) >> 32) & 0xFDFFFFFF != _ISATAP or _is_public(_contained(address))


def _contained(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address:
    """The IPv4 address in the last 32 bits."""
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def _is_in(address: Address, networks: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    return any(address in network for network in networks)


_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # all others are reserved, local, or contain IPv4 addresses
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # how a network of IPv6 alone reaches IPv4
_ISATAP = 0x00005EFE  # the third quarter of an IPv6 address that contains an IPv4 address (RFC 5214), without bit u
# Special-purpose networks (RFC 6890, its registries, a cloud's) that `is_global` of this or an older Python allows.
_SPECIAL_4 = [
    ipaddress.IPv4Network(text)
    for text in (
        "168.63.129.16/32",  # services of Azure for the machines in it
        "192.0.0.0/24",  # protocol assignments
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT relays
        "192.88.99.0/24",  # 6to4 relays
        "192.175.48.0/24",  # AS112
    )
]
_SPECIAL_6 = [
    ipaddress.IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments: Teredo, benchmarking, ORCHID and others
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
]
