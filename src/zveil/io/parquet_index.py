"""The index of a Parquet file, moved: where its pages are if others come before them.

An index is a structure of Thrift in its compact protocol, see parquet.thrift and the specification
of that protocol. It is copied as it is, but for the numbers that are places in the file.
"""

from collections.abc import Callable

# The fields that are places, by the numbers of the fields around them: of row groups (4) the place
# (5), of their columns (1) the place (2), those of offset and column index (4, 6), and those of
# their pages (3): data, index, dictionary, bloom filter.
_PLACES = {
    (4, 5),
    (4, 1, 2),
    (4, 1, 4),
    (4, 1, 6),
    (4, 1, 3, 9),
    (4, 1, 3, 10),
    (4, 1, 3, 11),
    (4, 1, 3, 14),
}
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = (
    0, 1, 2, 3, 7, 8, 9, 10, 11, 12, 13,
)  # fmt: skip
_WHOLE = (4, 5, 6)
_LONG = 15


SPOILT = b"part"
"""Instead of the magic word behind an index that does not stand for the whole file: nobody shall
take a piece for it."""


def index_of(path: str, begin: int, end: int) -> bytes:
    """Read the index of a piece of a file, as one of the whole file."""
    with open(path, "rb") as file:
        file.seek(end - 8)
        length = int.from_bytes(file.read(4), "little")
        file.seek(end - 8 - length)
        return moved(file.read(length), begin)


def moved(index: bytes, by: int) -> bytes:
    """Give an index whose pages are so many bytes further on in their file."""
    if not by:
        return index
    copy = _Copy(index, by)
    copy.structure(())
    return bytes(copy.out)


class _Copy:
    """A structure on its way from one buffer to another."""

    def __init__(self, data: bytes, by: int) -> None:
        self._data = data
        self._by = by
        self._at = 0
        self.out = bytearray()

    def structure(self, path: tuple[int, ...]) -> None:
        number = 0
        while True:
            [head] = self._take(1)
            kind = head & 15
            if kind == _STOP:
                return
            # The number of a field is that of the one before and a step, or told in full.
            number = number + (head >> 4) if head >> 4 else _signed(self._varint())
            self._value(kind, (*path, number))

    def _value(self, kind: int, path: tuple[int, ...], *, is_element: bool = False) -> None:
        if kind in (_TRUE, _FALSE):
            # A field says it by its kind.
            self._take(1 if is_element else 0)
        elif kind in _WHOLE:
            self._varint(self._place if path in _PLACES else None)
        elif kind == _BINARY:
            self._take(self._varint())
        elif kind in (_LIST, _SET):
            [head] = self._take(1)
            count = self._varint() if head >> 4 == _LONG else head >> 4
            for _ in range(count):
                self._value(head & 15, path, is_element=True)
        elif kind == _MAP:
            if count := self._varint():
                [kinds] = self._take(1)
                for _ in range(count):
                    self._value(kinds >> 4, path, is_element=True)
                    self._value(kinds & 15, path, is_element=True)
        elif kind == _STRUCT:
            self.structure(path)
        else:
            self._take({_BYTE: 1, _DOUBLE: 8, _UUID: 16}[kind])

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        self._at += count
        self.out += taken
        return taken

    def _varint(self, change: Callable[[int], int] | None = None) -> int:
        """Copy a number, seven bits a byte, the least first; changed if so wanted."""
        value = shift = 0
        start = self._at
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if change is None:
            self.out += self._data[start : self._at]
        else:
            rest = change(value)
            while rest > 127:
                self.out.append(rest & 127 | 128)
                rest >>= 7
            self.out.append(rest)
        return value

    def _place(self, value: int) -> int:
        """Move a place, which is spelled as twice its number; 0 stands for none."""
        place = _signed(value)
        return (place + self._by) << 1 if place > 0 else value


def _signed(value: int) -> int:
    return value >> 1 ^ -(value & 1)
