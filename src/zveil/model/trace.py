"""A population estimated from a trace: columns of times, users and attributes."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from zveil.columns import Columns, aligned
from zveil.durations import Duration, duration_ns
from zveil.model.population import Population
from zveil.times import TimeUnit, unit_ns

_NAMES = ("times", "users", "attributes")


def from_columns(
    times: Columns,
    users: Columns,
    attributes: Columns,
    *,
    window: Duration,
    time_unit: TimeUnit = "s",
) -> Population:
    """Estimate a population from the columns of a trace.

    The trace is cut into windows side by side, from its first time on. p^X of an attribute is the
    mean over the windows of the share of users who show it; its rate is how often a user shows it
    in a window. Attributes are in the order of their first row. A row without a time, a user or an
    attribute does not count.

    Parameters
    ----------
    times
        Numbers in ``time_unit``, or datetimes.
    users, attributes
        Columns of any one type: NumPy, Arrow, pandas, Polars, or a sequence.
    window
        Length of a window: ``"1h"``, a timedelta, or seconds; above 0.
    time_unit
        What plain numbers are as times: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``.

    Examples
    --------
    >>> found = from_columns([0, 5, 12], ["ada", "bob", "ada"], ["x", "x", "y"], window=10)
    >>> found.users, found.p_x
    (2, array([0.5 , 0.25]))
    """
    length_ns = duration_ns(window, "window")
    if length_ns == 0:
        raise ValueError("window: expected a duration above 0, got 0")
    scale_ns = unit_ns(time_unit)
    pieces = list(aligned((times, users, attributes), _NAMES))
    columns = [_plain([piece[at] for piece in pieces]) for at in range(len(_NAMES))]
    there = columns[0].is_valid()
    for column in columns[1:]:
        there = pc.and_(there, column.is_valid())
    moments = _nanoseconds(columns[0].filter(there), scale_ns)
    if not moments.size:
        raise ValueError("times: expected at least one row with a time, a user and an attribute")
    user, user_count = _codes(columns[1].filter(there))
    attribute, attribute_count = _codes(columns[2].filter(there))
    window_index = (moments - moments.min()) // length_ns
    windows = int(window_index.max()) + 1

    # Who showed what when, once each: two steps, so that no product of three counts overflows.
    if windows * attribute_count >= 2**63:
        window_index = np.unique(window_index, return_inverse=True)[1].astype(np.int64)
    _, place = np.unique(window_index * attribute_count + attribute, return_inverse=True)
    once = np.unique(place.astype(np.int64) * user_count + user, return_index=True)[1]
    shown = np.bincount(attribute[once], minlength=attribute_count)
    rows = np.bincount(attribute, minlength=attribute_count)
    whole = windows * user_count
    return Population(user_count, shown / whole, rows / whole)


def _plain(pieces: list[pa.Array]) -> pa.ChunkedArray:
    """Put a column together, in a type that Arrow's own functions take."""
    column = pa.chunked_array(pieces)
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    views = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}
    return column.cast(views.get(str(column.type), column.type))


def _nanoseconds(column: pa.ChunkedArray, scale_ns: int) -> NDArray[np.int64]:
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.timestamp("ns")).cast(pa.int64())
        scale_ns = 1
    values = column.to_numpy()
    if values.dtype.kind not in "iuf":
        raise TypeError(f"times: expected numbers or datetimes, got {column.type}")
    # Half of what fits, so that the difference of two times fits too. NaN is not within it.
    limit = 2**62 / scale_ns
    if values.size and not -limit < values.min() <= values.max() < limit:
        raise ValueError("times: expected times within 146 years of 1970; is time_unit right?")
    if values.dtype.kind == "f":
        return np.asarray(np.rint(values * scale_ns), dtype=np.int64)
    return np.asarray(values, dtype=np.int64) * scale_ns


def _codes(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], int]:
    """Give each row the number of its value, and how many values there are."""
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)
