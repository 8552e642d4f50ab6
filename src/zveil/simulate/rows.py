"""Rows of text that differ in their digits only: made a column at a time."""

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Rows:
    """Rows of one width: text that is the same in all, and places for numbers.

    Digits are looked up four at a time and stored as one integer, which is many times faster than
    to write numbers out.

    Parameters
    ----------
    pieces
        Text, which must be ASCII, or how many digits a number has. Text stands before each number.

    Examples
    --------
    >>> rows = Rows("site-", 5, ".example ")
    >>> rows.text(np.array([1, 20_300])).tobytes()
    b'site-00001.example site-20300.example '
    """

    def __init__(self, *pieces: str | int) -> None:
        text = "".join("0" * piece if isinstance(piece, int) else piece for piece in pieces)
        self._row = text.encode("ascii")
        self.width = len(self._row)
        """Bytes of a row."""
        self._places: list[list[_Group]] = []
        at = 0
        for piece in pieces:
            if isinstance(piece, str):
                at += len(piece)
            else:
                self._places.append(_groups(self._row, at, piece))
                at += piece

    def text(self, *numbers: NDArray[Any]) -> NDArray[np.uint8]:
        """Write a row for each number, one behind the other.

        Parameters
        ----------
        numbers
            A column for each place, none negative and none with more digits than it has.
        """
        # Bytes are repeated by doubling, which no array does.
        rows = np.frombuffer(bytearray(self._row) * len(numbers[0]), f"S{self.width}")
        for groups, column in zip(self._places, numbers, strict=True):
            rest = column
            for group in groups:
                more = rest // group.size
                group.store(rows, group.table[rest - more * group.size])
                rest = more
        return rows.view(np.uint8)


class _Group(NamedTuple):
    """Digits that are stored as one integer."""

    offset: int
    size: int
    """How many values they have."""
    table: NDArray[Any]

    def store(self, rows: NDArray[Any], values: NDArray[Any]) -> None:
        kind = np.dtype(
            {
                "names": ["digits"],
                "formats": [self.table.dtype],
                "offsets": [self.offset],
                "itemsize": rows.itemsize,
            }
        )
        rows.view(kind)["digits"] = values


def _groups(row: bytes, at: int, digits: int) -> list[_Group]:
    """Cut digits into groups of four from the right; the first may have one, two or three."""
    groups = []
    end = at + digits
    while end > at:
        count = min(4, end - at)
        end -= count
        # Three are no integer: the character before them is stored along.
        before = row[end - 1 : end] if count == 3 else b""
        groups.append(_Group(end - len(before), 10**count, _table(before, count)))
    return groups


@functools.cache
def _table(before: bytes, digits: int) -> NDArray[Any]:
    texts = np.array([before + b"%0*d" % (digits, number) for number in range(10**digits)])
    return texts.view(f"u{texts.itemsize}")
