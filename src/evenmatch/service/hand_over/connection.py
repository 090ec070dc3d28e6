"""A connection between two processes: who is at the other end is proved first, then messages go both ways.

Both prove that they have the master secret of the database, by a keyed hash over fresh random numbers of both and over
what each says it is; neither ever sends the secret, or anything that can be used again. Between machines every
message is encrypted, with keys of this connection alone. On one machine the socket is in a folder that only the account
of the processes can enter.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
from typing import Self

from evenmatch.errors import SecretError
from evenmatch.ledger.sealing import SealedStream
from evenmatch.service.hand_over.messages import LARGEST

PROTOCOL = b"evenmatch hand-over 1\n"
NONCE = 32  # bytes of random numbers
PROOF = 32  # bytes of a proof
NAME = 32  # bytes of a process's name
HANDSHAKE = 3.0  # seconds until the other side must have proved itself
BUFFER = 2**20  # bytes that are read ahead
LENGTH = 4  # bytes of the length before each message


class PeerConnection:
    """An open connection whose other end has proved itself. Of one event loop."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        outward: SealedStream | None,
        inward: SealedStream | None,
    ) -> None:
        self._reader, self._writer, self._outward, self._inward = reader, writer, outward, inward

    @classmethod
    async def begun(
        cls,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        secret: bytes,
        own: str,
        other: str,
        *,
        encrypted: bool,
    ) -> Self:
        """The connection that this process began, to the process named `other`.

        secret  a key of both;  own: the name of this process
        Raises SecretError if the other side is not that process, OSError, EOFError or TimeoutError if it is lost.
        """
        async with asyncio.timeout(HANDSHAKE):
            nonce = os.urandom(NONCE)
            writer.write(PROTOCOL + own.encode() + nonce)
            theirs, proof = await reader.readexactly(NONCE), await reader.readexactly(PROOF)
            said = _said(own, other, nonce, theirs, encrypted)
            if not hmac.compare_digest(proof, _proof(secret, b"accepts", said)):
                raise SecretError(f"the process {other} has another master secret, or is not that process")
            writer.write(_proof(secret, b"begins", said))
        return cls._of(reader, writer, secret, said, begins=True, encrypted=encrypted)

    @classmethod
    async def accepted(
        cls, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, secret: bytes, own: str, *, encrypted: bool
    ) -> Self:
        """The connection that another process began. Raises as `begun`."""
        async with asyncio.timeout(HANDSHAKE):
            if await reader.readexactly(len(PROTOCOL)) != PROTOCOL:
                raise SecretError("the other side speaks another protocol")
            other, theirs = await reader.readexactly(NAME), await reader.readexactly(NONCE)
            nonce = os.urandom(NONCE)
            said = _said(other.decode("latin-1"), own, theirs, nonce, encrypted)
            writer.write(nonce + _proof(secret, b"accepts", said))
            if not hmac.compare_digest(await reader.readexactly(PROOF), _proof(secret, b"begins", said)):
                raise SecretError("the other side has another master secret")
        return cls._of(reader, writer, secret, said, begins=False, encrypted=encrypted)

    @classmethod
    def _of(
        cls,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        secret: bytes,
        said: bytes,
        *,
        begins: bool,
        encrypted: bool,
    ) -> Self:
        if not encrypted:
            return cls(reader, writer, None, None)
        streams = [SealedStream(_proof(secret, purpose, said)) for purpose in (b"there", b"back")]
        outward, inward = streams if begins else streams[::-1]
        return cls(reader, writer, outward, inward)

    def send(self, message: bytes) -> None:
        """Send a message of at most LARGEST bytes; returns at once."""
        sent = message if self._outward is None else self._outward.seal(message)
        self._writer.write(len(sent).to_bytes(LENGTH, "big") + sent)

    @property
    def unsent(self) -> int:
        """Bytes that wait to be sent."""
        return self._writer.transport.get_write_buffer_size()

    async def receive(self) -> bytes:
        """The next message. Raises EOFError or OSError when the connection is lost, SecretError, ValueError."""
        length = int.from_bytes(await self._reader.readexactly(LENGTH), "big")
        if length > LARGEST + LENGTH * NONCE:
            raise ValueError(f"a message of {length} bytes; expected at most {LARGEST}")
        received = await self._reader.readexactly(length)
        return received if self._inward is None else self._inward.open(received)

    def close(self) -> None:
        """End the connection when everything is sent."""
        self._writer.close()

    def abort(self) -> None:
        """End the connection at once."""
        self._writer.transport.abort()


def _said(begins: str, accepts: str, first: bytes, second: bytes, encrypted: bool) -> bytes:
    """The statements of both sides, over which their proofs are computed."""
    parts = (PROTOCOL, begins.encode("latin-1"), accepts.encode("latin-1"), first, second, bytes([encrypted]))
    return b"".join(len(part).to_bytes(2, "big") + part for part in parts)


def _proof(secret: bytes, purpose: bytes, said: bytes) -> bytes:
    return hmac.new(secret, purpose + b"\0" + said, hashlib.sha256).digest()
