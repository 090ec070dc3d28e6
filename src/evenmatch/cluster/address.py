"""Addresses of clusters, and a check within seconds that one answers there: Ray itself retries for a minute."""

from __future__ import annotations

import os
import socket
from typing import NamedTuple

from evenmatch.errors import ClusterError, UsageError

LOCAL = "local"
SECONDS = 5.0  # for an answer
EXPECTED = "expected HOST:PORT of the head node of a Ray cluster, for example 10.0.0.5:6379, or local"
HTTP2_CLIENT = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # RFC 9113, 3.4: SETTINGS
HTTP2_SETTINGS = 4  # the type of frame that a server sends first


class ClusterAddress(NamedTuple):
    """The head node of a cluster."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> ClusterAddress | None:
    """The address of --cluster; None for `local`. Raises UsageError."""
    if text == LOCAL:
        return None
    if "://" in text:
        raise UsageError(f"--cluster {text}: {EXPECTED}; run the command on a machine of the cluster")
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"--cluster {text}: {EXPECTED}")
    return ClusterAddress(host.removeprefix("[").removesuffix("]"), int(port))


def check_answers(address: ClusterAddress) -> None:
    """Raise ClusterError unless a server that could be Ray's answers there within seconds."""
    try:
        with socket.create_connection((address.host, address.port), SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS", "0") in ("", "0"):
                _check_protocol(address, connection)
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise ClusterError(f"the cluster at {address} cannot be reached: {reason}; {EXPECTED}") from error


def _check_protocol(address: ClusterAddress, connection: socket.socket) -> None:
    """Begin HTTP/2, which gRPC needs: its servers answer with a frame of settings at once, others do not."""
    connection.settimeout(SECONDS)
    connection.sendall(HTTP2_CLIENT)
    answer = b""
    while len(answer) < 4:
        received = connection.recv(64)
        if not received:
            break
        answer += received
    if len(answer) < 4 or answer[3] != HTTP2_SETTINGS:
        raise ClusterError(f"what answers at {address} is not a Ray cluster; {EXPECTED}")
