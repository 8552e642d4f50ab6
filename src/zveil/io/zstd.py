"""Zstandard, both ways; loaded where it is met, since its library takes its time."""

from collections.abc import Generator
from typing import NamedTuple

import zstandard

from zveil.io.decompression import DecompressionError

# A level at which compressing keeps up with a stream.
_LEVEL = 3
_SKIPPABLE = 0x184D2A5


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


class ZstdReader:
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


class ZstdWriter:
    """Compresses, each flush so that a reader has all there is."""

    def __init__(self) -> None:
        self._stream = zstandard.ZstdCompressor(_LEVEL, write_checksum=True).compressobj()

    def compress(self, data: bytes | memoryview) -> bytes:
        """Take plain bytes, and give compressed ones, if any are ready."""
        return self._stream.compress(data)

    def flush(self) -> bytes:
        """Give the rest of what was taken."""
        return self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def finish(self) -> bytes:
        """Give the end."""
        return self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH)
