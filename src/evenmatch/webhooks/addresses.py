"""Check the URLs of webhooks: http or https, and only public addresses, never the operator's own network."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

from evenmatch.errors import InputError

URL_LENGTH_LIMIT = 2_000  # characters
Resolve = Callable[[str, int], list[str]]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def check_url(url: str) -> SplitResult:
    """Check the syntax of a webhook URL and return its parts. Raises InputError, whose message omits the URL."""
    expected = "expected http://host/path or https://host/path"
    if len(url) > URL_LENGTH_LIMIT:
        raise InputError(f"the URL has {len(url):,} characters; at most {URL_LENGTH_LIMIT:,} are allowed")
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


def port_of(parts: SplitResult) -> int:
    """The port of a URL, by default that of its scheme."""
    return parts.port or (443 if parts.scheme == "https" else 80)


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, from the system's resolver; empty if it cannot be resolved."""
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def check_public(host: str, addresses: list[str]) -> None:
    """Raise InputError unless every address of a host is public.

    One address that is not public is enough to refuse the host, because its owner controls which one is used.
    """
    for text in addresses:
        if not is_public(ipaddress.ip_address(text.split("%")[0])):
            raise InputError(
                f"the host {host!r} resolves to {text}, which is not a public address; "
                "EVENMATCH_PRIVATE_WEBHOOKS allows others"
            )


def is_public(address: Address) -> bool:
    """True if an address, and any IPv4 address embedded in it, belongs to the public Internet."""
    if any(address in network for network in _SPECIAL):
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if address in _NAT64:
        return is_public(_embedded(address))
    if address not in _GLOBAL_UNICAST or not address.is_global:
        return False
    return (int(address) >> 32) & 0xFDFFFFFF != _ISATAP or is_public(_embedded(address))


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address:
    """The IPv4 address in the last 32 bits."""
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # all others are reserved, local, or embed an IPv4 address
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # how IPv6-only networks reach IPv4
_ISATAP = 0x00005EFE  # third quarter of an IPv6 address that embeds an IPv4 address (RFC 5214), without bit u
# Special-purpose networks (RFC 6890 and its registries) that `is_global` of some Python version allows.
_SPECIAL = [
    ipaddress.ip_network(text)
    for text in (
        "168.63.129.16/32",  # Azure's services for its own machines
        "192.0.0.0/24",  # protocol assignments
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT relays
        "192.88.99.0/24",  # 6to4 relays
        "192.175.48.0/24",  # AS112
        "2001::/23",  # protocol assignments: Teredo, benchmarking, ORCHID and others
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
]
