"""How clients choose the partition of a key."""

from __future__ import annotations

import zlib
from collections.abc import Callable


def murmur2(key: bytes) -> int:
    """Hash a key as Java's clients do.

    >>> murmur2(b"21") & 0x7FFFFFFF, murmur2(b"foobar") & 0x7FFFFFFF
    (1173551340, 1357151166)
    """
    mask, m, r = 0xFFFFFFFF, 0x5BD1E995, 24
    length = len(key)
    found = (0x9747B28C ^ length) & mask
    for at in range(0, length - length % 4, 4):
        k = int.from_bytes(key[at : at + 4], "little")
        k = (k * m) & mask
        k ^= k >> r
        found = ((found * m) & mask) ^ ((k * m) & mask)
    if rest := key[length - length % 4 :]:
        found = ((found ^ int.from_bytes(rest, "little")) * m) & mask
    found ^= found >> 13
    found = (found * m) & mask
    return found ^ (found >> 15)


HASHES: dict[str, Callable[[bytes], int]] = {
    "murmur2": lambda key: murmur2(key) & 0x7FFFFFFF,
    "crc32": zlib.crc32,
}
"""How clients choose the partition of a key: Java's, and those that are made of librdkafka."""
