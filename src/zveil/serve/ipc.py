"""Arrow streams as they come over a network: cut into messages before anything reads them.

An Arrow stream is a row of messages: a size, metadata of that size (a FlatBuffers table), and a
body whose length the metadata tell. pyarrow reads whole messages only, and takes their word for how
much memory they need. So messages are cut out here, within limits, and those that unpack to
something larger are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

MOST_BYTES = 16 << 20
"""A message may have so many bytes."""

_MARK = b"\xff\xff\xff\xff"
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3


class StreamError(ValueError):
    """Bytes that are no Arrow stream that is taken here."""


@dataclass(frozen=True)
class Message:
    """One message of a stream, whole."""

    kind: int
    data: bytes

    @property
    def is_schema(self) -> bool:
        """Whether it names the columns."""
        return self.kind == _SCHEMA

    @property
    def is_batch(self) -> bool:
        """Whether it holds records."""
        return self.kind == _BATCH


class Messages:
    """Cuts a stream into messages."""

    def __init__(self) -> None:
        self._held = bytearray()
        self.is_over = False
        """Whether the mark of the end has come."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left of a message that has not come to its end."""
        return not self._held

    def take(self, data: bytes) -> Iterator[Message]:
        """Give the messages that are whole by now; raises `StreamError`."""
        if self.is_over:
            if data:
                raise StreamError("something follows the end of the stream")
            return
        self._held += data
        while not self.is_over:
            found = self._next()
            if found is not None:
                yield found
            elif not self.is_over:
                return
        if self._held:
            raise StreamError("something follows the end of the stream")

    def _next(self) -> Message | None:
        held = self._held
        if len(held) < 8:
            return None
        if held[:4] != _MARK:
            raise StreamError("this is no Arrow stream")
        (size,) = struct.unpack_from("<i", held, 4)
        if size == 0:
            self.is_over = True
            del held[:8]
            return None
        if not 0 < size <= MOST_BYTES:
            raise StreamError(f"a message is larger than {MOST_BYTES:,} bytes")
        if len(held) < 8 + size:
            return None
        kind, length = _read(bytes(held[8 : 8 + size]))
        if not 0 <= length <= MOST_BYTES:
            raise StreamError(f"a message is larger than {MOST_BYTES:,} bytes")
        end = 8 + size + length
        if len(held) < end:
            return None
        found = Message(kind, bytes(held[:end]))
        del held[:end]
        return found


def _read(metadata: bytes) -> tuple[int, int]:
    """Tell the kind of a message and the length of its body."""
    try:
        table = _Table(metadata, _offset(metadata, 0))
        kind = table.number(1, "<B")
        length = table.number(3, "<q")
        batch = table.inner(2) if kind in (_DICTIONARY, _BATCH) else None
        if batch is not None and kind == _DICTIONARY:
            batch = batch.inner(1)
        is_packed = batch is not None and batch.has(3)
    except (struct.error, IndexError):
        raise StreamError("the metadata of a message cannot be read") from None
    if kind not in (_SCHEMA, _DICTIONARY, _BATCH):
        raise StreamError("a message is of no kind that is taken here")
    if is_packed:
        raise StreamError("packed batches are not taken; write them without compression")
    return kind, length


class _Table:
    """A table of FlatBuffers: a table of places before it says where its fields are."""

    def __init__(self, data: bytes, start: int) -> None:
        if start < 0:
            raise IndexError
        self._data, self._start = data, start
        (back,) = struct.unpack_from("<i", data, start)
        self._places = start - back
        if self._places < 0:
            raise IndexError
        (self._size,) = struct.unpack_from("<H", data, self._places)

    def _place(self, field: int) -> int:
        at = 4 + 2 * field
        if at + 2 > self._size:
            return 0
        return int(struct.unpack_from("<H", self._data, self._places + at)[0])

    def has(self, field: int) -> bool:
        return self._place(field) > 0

    def number(self, field: int, form: str) -> int:
        place = self._place(field)
        return int(struct.unpack_from(form, self._data, self._start + place)[0]) if place else 0

    def inner(self, field: int) -> _Table:
        place = self._place(field)
        if not place:
            raise IndexError
        return _Table(self._data, _offset(self._data, self._start + place))


def _offset(data: bytes, at: int) -> int:
    return at + int(struct.unpack_from("<I", data, at)[0])
