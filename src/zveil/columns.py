"""Columns of any kind become Arrow arrays that lie side by side, without a copy where possible."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Columns: TypeAlias = Any
"""A NumPy array, Arrow array, pandas or Polars series, or a sequence of Python values."""

_SCALE_FREE = {"D", "s", "ms", "us", "ns", "generic"}


def aligned(columns: Sequence[Columns], names: Sequence[str]) -> Iterator[list[pa.Array]]:
    """Cut columns into pieces of one length each, in the order of the rows.

    Parameters
    ----------
    columns
        Columns of one length.
    names
        What they are, for errors.

    >>> [[len(piece) for piece in pieces] for pieces in aligned([[1, 2], ["a", "b"]], ["x", "y"])]
    [[2, 2]]
    """
    arrays = [_arrow(column, name) for column, name in zip(columns, names, strict=True)]
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) > 1:
        found = ", ".join(f"{name} {length}" for name, length in zip(names, lengths, strict=True))
        raise ValueError(f"expected columns of one length, got {found}")
    if all(isinstance(array, pa.Array) for array in arrays):
        yield arrays
        return
    # The names of a table's columns must differ only for lookups by name.
    table = pa.Table.from_arrays(arrays, names=list(names))
    for batch in table.to_batches():
        yield list(batch.columns)


def flags(mask: npt.NDArray[np.bool_]) -> pa.Array:
    """Give a mask as bytes, 0 and 1, where it lies.

    >>> flags(np.array([True, False])).to_pylist()
    [1, 0]
    """
    return pa.array(mask.view(np.uint8))


def _arrow(column: Columns, name: str) -> pa.Array | pa.ChunkedArray:
    array = _plain(_convert(column, name))
    if isinstance(array, pa.ChunkedArray) and array.num_chunks == 1:
        return array.chunk(0)
    return array


def _convert(column: Columns, name: str) -> pa.Array | pa.ChunkedArray:
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if isinstance(column, str | bytes) or not hasattr(column, "__len__"):
        raise TypeError(f"{name}: expected a column of values, got {type(column).__name__}")
    try:
        if isinstance(column, np.ndarray):
            return _from_numpy(column, name)
        if hasattr(column, "__arrow_c_stream__") and not hasattr(column, "__arrow_array__"):
            return pa.chunked_array(column)
        return pa.array(column, from_pandas=_is_pandas(column))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        # The words of the library quote the data.
        raise TypeError(
            f"{name}: expected a column of one type (text, bytes, integers, floats, bools; for "
            "times also datetimes); convert mixed values to text, or observe them one by one"
        ) from None


def _from_numpy(column: np.ndarray, name: str) -> pa.Array:
    if column.ndim != 1:
        raise ValueError(f"{name}: expected a column, got an array of {column.ndim} dimensions")
    if column.dtype.kind == "M":
        unit, count = np.datetime_data(column.dtype)
        if unit not in _SCALE_FREE or count != 1:
            column = column.astype("datetime64[s]" if unit in {"h", "m"} else "datetime64[ns]")
    return pa.array(column, from_pandas=column.dtype == object)


def _is_pandas(column: Columns) -> bool:
    return type(column).__module__.partition(".")[0] == "pandas"


def _plain(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Undo encodings that the native gate does not read itself."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(array.cast(kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_decode(array)
    if pa.types.is_dictionary(kind) and not _is_word(kind.value_type):
        return array.cast(kind.value_type)
    return array


def _is_word(kind: pa.DataType) -> bool:
    return not (pa.types.is_temporal(kind) or pa.types.is_nested(kind))
