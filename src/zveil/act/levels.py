"""Columns of values with coarser labels: one column for each level, and what leaves of them."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from zveil._native import spell
from zveil.hierarchy import Hierarchy

_Buffers: TypeAlias = tuple[int, bytes, bytes, bytes]


class Levels:
    """The levels of one attribute of record batches.

    Each value is climbed from once in a batch: columns become dictionaries first, and labels are
    looked up by the same indices.

    Parameters
    ----------
    hierarchy
        What the levels are.
    """

    def __init__(self, hierarchy: Hierarchy) -> None:
        self._hierarchy = hierarchy
        self._ladder = hierarchy.native()
        self._words: tuple[pa.Array, list[pa.Array]] | None = None

    def of(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Give the columns of the levels, coarsest first.

        Parameters
        ----------
        columns
            The values; of a position the latitudes and the longitudes.
        """
        if self._hierarchy.takes_position:
            latitudes, longitudes = map(_decoded, columns)
            made = self._ladder.climb_position(latitudes, longitudes)
            return [text_array(one) for one in reversed(made)]
        (values,) = columns
        if pa.types.is_dictionary(values.type) and len(values.dictionary) > len(values):
            values = values.dictionary_decode()
        if not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        words = values.dictionary
        plain = plain_values(words)
        if plain is not words:
            values = pa.DictionaryArray.from_arrays(values.indices, plain)
        # Batches of one row group bring the same words again and again.
        if self._words is None or not self._words[0].equals(values.dictionary):
            made = self._ladder.climb(values.dictionary)
            self._words = values.dictionary, [text_array(one) for one in made]
        labels = [pa.DictionaryArray.from_arrays(values.indices, words) for words in self._words[1]]
        return [*reversed(labels), values]

    def labels(self, levels: Sequence[pa.Array], decided: NDArray[np.int8]) -> pa.Array:
        """Give what leaves, as text: the label of the level released, null where veiled.

        Parameters
        ----------
        levels
            The columns that were decided about.
        decided
            For each row the level, or -1.
        """
        left = pa.nulls(len(decided), pa.large_string())
        for number, column in enumerate(levels):
            mask = decided == number
            if not mask.any():
                continue
            if pa.types.is_dictionary(column.type):
                words = text_array(spell(column.dictionary))
                column = words.take(column.indices)
            left = pc.if_else(bools(mask), column, left)
        return left


def bools(mask: NDArray[np.bool_]) -> pa.Array:
    """Give a mask as Arrow has it; `pyarrow.array` would load pandas to ask whether it is its."""
    bits = np.packbits(mask, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, pa.py_buffer(bits)])


def text_array(buffers: _Buffers) -> pa.Array:
    """Give a column that was made natively as Arrow has it."""
    count, present, ends, data = buffers
    parts = [pa.py_buffer(present), pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), count, parts)


def _decoded(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return plain_values(column)


def plain_values(values: pa.Array) -> pa.Array:
    """Give values as gates and ladders take them: of dates, in UTC, and decimals their text."""
    kind = values.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        values = values.cast(pa.timestamp(kind.unit, tz="UTC")).cast(pa.timestamp(kind.unit))
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        return values.cast(pa.large_string())
    return values
