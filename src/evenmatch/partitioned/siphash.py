"""SipHash-2-4 with 128 bits (Aumasson and Bernstein 2012): without its key nobody can prepare collisions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenmatch.partitioned.compiled import compiled, inlined

Bytes = NDArray[np.uint8]
_V0, _V1 = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
_V2, _V3 = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)
_MARK, _SECOND = np.uint64(0xEE), np.uint64(0xDD)


@inlined
def _rotated(value: np.uint64, bits: int) -> np.uint64:
    return np.uint64((value << np.uint64(bits)) | (value >> np.uint64(64 - bits)))


@inlined
def _round(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    a += b
    c += d
    b = _rotated(b, 13) ^ a
    d = _rotated(d, 16) ^ c
    a = _rotated(a, 32)
    a += d
    c += b
    d = _rotated(d, 21) ^ a
    b = _rotated(b, 17) ^ c
    c = _rotated(c, 32)
    return a, b, c, d


@inlined
def _word(data: Bytes, start: int, count: int) -> np.uint64:
    """Up to eight bytes as a number, the first the lowest."""
    word = np.uint64(0)
    for index in range(count):
        word |= np.uint64(data[start + index]) << np.uint64(8 * index)
    return word


@compiled
def siphash(data: Bytes, start: int, end: int, key: np.uint64, key2: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The hash of the bytes from `start` up to `end`, by a key of two numbers: its first and its second 64 bits."""
    a, b, c, d = key ^ _V0, key2 ^ _V1 ^ _MARK, key ^ _V2, key2 ^ _V3
    size = end - start
    position = start
    while position + 8 <= end:
        word = _word(data, position, 8)
        d ^= word
        a, b, c, d = _round(a, b, c, d)
        a, b, c, d = _round(a, b, c, d)
        a ^= word
        position += 8
    word = _word(data, position, end - position) | (np.uint64(size & 255) << np.uint64(56))
    d ^= word
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    a ^= word
    c ^= _MARK
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    first = a ^ b ^ c ^ d
    b ^= _SECOND
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return first, a ^ b ^ c ^ d
