"""Events as columns of integers, and their cut into blocks of one size."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Events(NamedTuple):
    """Events in the order they arrive, a column each.

    >>> Events.of([5, 7], [1, 2], [1, 1]).time_ms
    array([5, 7])
    """

    time_ms: NDArray[np.int64]
    """Unix time in milliseconds."""
    user: NDArray[np.int32]
    """Number of the user, from 1."""
    rank: NDArray[np.int32]
    """Rank of the attribute, from 1, the most popular."""

    @classmethod
    def of(cls, time_ms: Sequence[int], user: Sequence[int], rank: Sequence[int]) -> "Events":
        """Make them from plain numbers."""
        return cls(np.array(time_ms, np.int64), np.array(user, np.int32), np.array(rank, np.int32))

    @classmethod
    def joined(cls, parts: Sequence["Events"]) -> "Events":
        """Put parts one behind the other."""
        if not parts:
            return cls.of([], [], [])
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.time_ms for part in parts]),
            np.concatenate([part.user for part in parts]),
            np.concatenate([part.rank for part in parts]),
        )

    @property
    def size(self) -> int:
        """How many events these are."""
        return len(self.time_ms)

    def at(self, rows: slice | NDArray[np.intp] | NDArray[np.bool_]) -> "Events":
        """Give some of the rows."""
        return Events(self.time_ms[rows], self.user[rows], self.rank[rows])


def blocks(parts: Iterable[Events], rows: int) -> Iterator[Events]:
    """Cut a stream anew: blocks of so many rows, and what is left in the last one.

    >>> parts = [Events.of([1, 2, 3], [1, 1, 1], [1, 1, 1]), Events.of([4], [1], [1])]
    >>> [block.time_ms.tolist() for block in blocks(parts, 2)]
    [[1, 2], [3, 4]]
    """
    held: list[Events] = []
    count = 0
    for part in parts:
        held.append(part)
        count += part.size
        if count >= rows:
            whole = Events.joined(held)
            for start in range(0, count - rows + 1, rows):
                yield whole.at(slice(start, start + rows))
            held = [whole.at(slice(count - count % rows, count))]
            count %= rows
    if count:
        yield Events.joined(held)
