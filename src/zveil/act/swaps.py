"""Columns of values of which some leave as others."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zveil._native import Swap
from zveil.columns import aligned
from zveil.gate import Gate
from zveil.times import TimeUnit, unit_ns


class Swaps:
    """Decides one attribute of record batches, and swaps some of the values released.

    Parameters
    ----------
    gate
        The attribute's.
    share
        Of the values released, how many leave as another.
    """

    def __init__(self, gate: Gate, share: float) -> None:
        self._swap = Swap(gate, share)
        self._rows: list[int] = []
        self._values: list[object] = []

    @property
    def swapped(self) -> int:
        """Values that left as others so far."""
        return self._swap.swapped

    def state(self) -> bytes:
        """Give what decides which values leave next. Some that have left are in it."""
        return self._swap.state()

    def resume(self, state: bytes) -> None:
        """Go on from a state."""
        self._swap.resume(state)

    def decided(
        self,
        times: pa.Array,
        users: pa.Array,
        levels: Sequence[pa.Array],
        *,
        is_plain: bool,
        time_unit: TimeUnit | None,
    ) -> NDArray[np.int8]:
        """Give the level released, -1 where veiled; what is swapped is kept for `into`.

        Parameters
        ----------
        times, users, time_unit
            As for `Gate.observe_many`.
        levels
            The columns of the levels, coarsest first, or that of the values alone.
        is_plain
            Whether it is the values alone.
        """
        names = ["times", "users", *("levels" for _ in levels)]
        decided: list[NDArray[np.int8]] = []
        self._rows, self._values = [], []
        unit = None if time_unit is None else unit_ns(time_unit)
        for first, second, *rest in aligned([times, users, *levels], names):
            before = sum(map(len, decided))
            found, rows, values = self._swap.observe_arrays(first, second, rest, is_plain, unit)
            decided.append(np.frombuffer(found, dtype=np.int8))
            self._rows += [before + row for row in rows]
            self._values += values
        return decided[0] if len(decided) == 1 else np.concatenate([np.empty(0, np.int8), *decided])

    def into(self, column: pa.Array, kind: pa.DataType) -> pa.Array:
        """Give a column as it leaves, of a type of `plain`: with the other values where they go."""
        if column.type != kind:
            column = column.cast(kind)
        if not self._rows:
            return column
        others = pa.array(self._values, kind)
        places = np.arange(len(column))
        places[self._rows] = len(column) + np.arange(len(others))
        indices = pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)])
        return pa.concat_arrays([column, others]).take(indices)


def plain(kind: pa.DataType) -> pa.DataType:
    """Give the type that values of a type leave as where some are swapped: no words, no views."""
    if pa.types.is_dictionary(kind):
        return plain(kind.value_type)
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return views.get(kind, kind)
