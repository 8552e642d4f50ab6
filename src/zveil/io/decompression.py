"""Decompression piece by piece: it takes what has arrived and gives what that yields.

Output is bounded at every step, so that a small file of zeros does not fill the memory. What stands
before a damage is given before the damage is reported.
"""

import zlib
from collections.abc import Generator
from typing import NamedTuple, Protocol

import zstandard

from zveil.io.formats import Compression

_GZIP = 31  # zlib's number for: a window of 32 KiB, gzip's header and trailer
_PIECE = 1 << 16
_OUTPUT = 1 << 18
_SKIPPABLE = 0x184D2A5


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
            return Zstd()
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


class _Piece(NamedTuple):
    """A part of a zstd frame."""

    size: int
    is_read: bool = False
    """Whether it is looked at here, and so must be whole."""


def _pieces() -> Generator[_Piece, bytes, None]:
    """Walk through zstd frames without end, by RFC 8878; each piece looked at is sent in.

    >>> walk = _pieces()
    >>> next(walk).size
    4
    """
    while True:
        magic = int.from_bytes((yield _Piece(4, is_read=True)), "little")
        if magic >> 4 == _SKIPPABLE:
            size = int.from_bytes((yield _Piece(4, is_read=True)), "little")
            yield _Piece(size)
            continue
        [flags] = yield _Piece(1, is_read=True)
        is_single = flags >> 5 & 1
        yield _Piece(1 - is_single + (0, 1, 2, 4)[flags & 3] + (is_single, 2, 4, 8)[flags >> 6])
        is_last = False
        while not is_last:
            header = int.from_bytes((yield _Piece(3, is_read=True)), "little")
            is_last = bool(header & 1)
            is_one_byte_repeated = header >> 1 & 3 == 1
            yield _Piece(1 if is_one_byte_repeated else header >> 3)
        if flags >> 2 & 1:
            yield _Piece(4)


class Zstd:
    """Zstandard of any number of frames, decoded block by block.

    The library bounds its output by no number, but a block cannot yield more than 128 KiB: so it is
    given one block at a time. That also keeps what stands before a damaged one.
    """

    def __init__(self) -> None:
        self._input = memoryview(b"")
        self._decoder = zstandard.ZstdDecompressor()
        self._frame = self._decoder.decompressobj()
        self._walk = _pieces()
        self._piece = next(self._walk)
        self._due = self._piece.size
        self._is_between = True

    def feed(self, data: bytes) -> None:
        """Take compressed bytes."""
        self._input = memoryview(bytes(self._input) + data) if self._input else memoryview(data)

    def take(self) -> bytes:
        """Give the next plain bytes; empty if more must be fed first."""
        while self._input and (not self._piece.is_read or len(self._input) >= self._due):
            part, self._input = self._input[: self._due], self._input[self._due :]
            self._due -= len(part)
            plain = self._decode(part)
            while not self._due:
                self._piece = self._walk.send(bytes(part) if self._piece.is_read else b"")
                self._due = self._piece.size
            if plain:
                return plain
        return b""

    def finish(self) -> None:
        """Raise if the last frame is not whole."""
        if self._input or not self._is_between:
            raise DecompressionError("zstd data ends early")

    def _decode(self, part: memoryview) -> bytes:
        if self._frame.eof:
            self._frame = self._decoder.decompressobj()
        try:
            plain = self._frame.decompress(part)
        except zstandard.ZstdError:
            raise DecompressionError(
                "zstd data is damaged, or packed with a window of more than 128 MiB"
            ) from None
        self._is_between = self._frame.eof
        return plain
