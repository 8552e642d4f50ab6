"""Decompression piece by piece: it takes what has arrived and gives what that yields.

Output is bounded at every step, so that a small file of zeros does not fill the memory. What stands
before a damage is given before the damage is reported.
"""

import zlib
from typing import Protocol

from zveil.io.formats import Compression

_GZIP = 31  # zlib's number for: a window of 32 KiB, gzip's header and trailer
_PIECE = 1 << 16
_OUTPUT = 1 << 18


class DecompressionError(ValueError):
    """The compressed data is not what it should be."""


class Decompressor(Protocol):
    """Compressed bytes in, plain bytes out."""

    def feed(self, data: bytes) -> None:
        """Take compressed bytes; only when `take` has nothing more to give."""

    def take(self) -> bytes:
        """Give the next plain bytes, at most 256 KiB; empty if more must be fed first."""

    def finish(self) -> None:
        """Take note that nothing follows; raises if the data stops in the middle."""


def decompressor(compression: Compression) -> Decompressor | None:
    """Make what undoes a compression; None if there is none.

    >>> gzip = decompressor(Compression.GZIP)
    >>> gzip.feed(zlib.compress(b"hello", wbits=31))
    >>> gzip.take(), gzip.take()
    (b'hello', b'')
    """
    match compression:
        case Compression.GZIP:
            return Gzip()
        case Compression.ZSTD:
            from zveil.io.zstd import ZstdReader  # not everyone has to wait for the library

            return ZstdReader()
        case _:
            return None


class Gzip:
    """Gzip of any number of members, with or without zeros behind them."""

    def __init__(self) -> None:
        self._input = memoryview(b"")
        self._member = zlib.decompressobj(_GZIP)
        self._is_begun = False
        self._is_second = False
        self._is_full = False
        self._is_damaged = False

    def feed(self, data: bytes) -> None:
        """Take compressed bytes."""
        self._input = memoryview(data)

    def take(self) -> bytes:
        """Give the next plain bytes; empty if more must be fed first."""
        while not self._is_damaged and (self._input or self._is_full):
            if not self._is_begun:
                if self._is_second and self._input[0] == 0:
                    self._input = memoryview(bytes(self._input).lstrip(b"\0"))
                    continue
                self._member = zlib.decompressobj(_GZIP)
                self._is_begun = True
            if plain := self._inflate():
                return plain
        if self._is_damaged:
            raise DecompressionError("gzip data is damaged")
        return b""

    def finish(self) -> None:
        """Raise if the last member is not whole."""
        if self._is_begun:
            raise DecompressionError("gzip data ends early")

    def _inflate(self) -> bytes:
        piece = self._input[:_PIECE]
        before = self._member.copy()
        try:
            plain = self._member.decompress(piece, _OUTPUT)
        except zlib.error:
            self._member = before
            return self._salvage(piece)
        # At the end of a member the one may repeat the other.
        left = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
        self._input = self._input[len(piece) - len(left) :]
        # With its output full, zlib may hold more of it though no input is left.
        self._is_full = len(plain) == _OUTPUT and not self._member.eof
        if self._member.eof:
            self._is_begun, self._is_second = False, True
        return plain

    def _salvage(self, piece: memoryview) -> bytes:
        """Give what comes before the damage: zlib drops it, so go there byte by byte."""
        plain = bytearray()
        for at in range(len(piece)):
            try:
                plain += self._member.decompress(piece[at : at + 1], _OUTPUT - len(plain))
            except zlib.error:
                break
            if len(plain) == _OUTPUT:
                self._input = self._input[at + 1 - len(self._member.unconsumed_tail) :]
                self._is_full = True
                return bytes(plain)  # the damage is met again
        self._is_damaged = True
        return bytes(plain)
