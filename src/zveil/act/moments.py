"""Columns of times, whatever they are: dates, numbers or text."""

from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zveil._native import parse_times
from zveil.times import UNITS_NS, TimeUnit

_NO_TIME = -(2**63)

_SECONDS_BELOW = 10**11
_UNITS: tuple[tuple[int, TimeUnit], ...] = (
    (_SECONDS_BELOW, "s"),
    (_SECONDS_BELOW * 10**3, "ms"),
    (_SECONDS_BELOW * 10**6, "us"),
)


# Below that a number of this unit would have been taken for one of a coarser unit.
_LEAST = {"ms": _SECONDS_BELOW, "us": _SECONDS_BELOW * 10**3, "ns": _SECONDS_BELOW * 10**6}


class Moments:
    """Reads the times of batches; what numbers mean is found out from the first of them.

    Parameters
    ----------
    time_format
        ``"s"``, ``"ms"``, ``"us"``, ``"ns"`` or ``"iso"``, if it is known.
    stop_at_problem
        Give nothing behind the first text that is no time.
    """

    def __init__(self, time_format: str | None, *, stop_at_problem: bool = False) -> None:
        self._stops = stop_at_problem
        self._is_guessed = time_format is None
        self.time_format = time_format
        """Stated, or found out by now."""
        self.unit: TimeUnit | None = None
        """What the numbers of the last column are; None if they are no numbers."""
        self.bad = 0
        """Texts that are no times, and numbers of a coarser unit than most are."""

    def read(self, batch: pa.RecordBatch, name: str) -> tuple[pa.RecordBatch, pa.Array]:
        """Give the rows whose time can be read, and their times as the gate takes them."""
        self.unit = None
        column = batch.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
            return self._read_text(batch, column)
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            if self.time_format is None:
                self.time_format = _unit_of(column)
            if self.time_format == "iso":
                raise ValueError("time-format: iso was stated, but the times are numbers")
            self.unit = cast(TimeUnit, self.time_format or "s")
            if self._is_guessed and self.unit != "s":
                least = _LEAST[self.unit]
                good = pc.or_(pc.greater_equal(column, least), pc.less_equal(column, -least))
                return self._good(batch, column, pc.fill_null(good, True))
        return batch, column

    def stamps(self, times: pa.Array) -> pa.Array:
        """Give what `read` gave as ``timestamp[ns, UTC]``; null where that has no such time."""
        stamp = pa.timestamp("ns", tz="UTC")
        if self.unit is None:
            if pa.types.is_timestamp(times.type) and times.type.tz is None:
                times = times.cast(pa.timestamp(times.type.unit, tz="UTC"))
            return times.cast(stamp, safe=False)
        scale = UNITS_NS[self.unit]
        if pa.types.is_floating(times.type):
            # To the microsecond, as the gate rounds them.
            micros = pc.round(pc.multiply(times.cast(pa.float64()), scale / 1e3))
            whole = pc.multiply(micros.cast(pa.int64(), safe=False), 1_000)
        else:
            whole = pc.multiply(times.cast(pa.int64()), scale)
        return pc.if_else(pc.equal(whole, _NO_TIME), None, whole).cast(stamp)

    def rounded(self, column: pa.Array, times: pa.Array, step_ns: int) -> pa.Array:
        """Give a column of times as it leaves: each the beginning of its step, in UTC.

        Parameters
        ----------
        column, times
            The column of the batch that `read` gave, and its times.
        step_ns
            A minute, an hour or a day.
        """
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = column.type
        if pa.types.is_floating(kind):
            step = step_ns // UNITS_NS[self.unit or "s"]
            exact = pc.fill_null(column.cast(pa.float64()), 0).to_numpy()
            floors = pa.array(np.floor_divide(exact, step) * step)
            return _where(pc.is_finite(column), floors)
        if pa.types.is_integer(kind):
            return _floor(column, step_ns // UNITS_NS[self.unit or "s"], kind)
        if pa.types.is_timestamp(kind):
            return _floor(column, step_ns // UNITS_NS[kind.unit], kind)
        if pa.types.is_date(kind):
            return column
        nanos = _floor(times, step_ns, pa.int64())
        if self.time_format == "iso":
            seconds = nanos.cast(pa.timestamp("ns", tz="UTC")).cast(pa.timestamp("s", tz="UTC"))
            return pc.strftime(seconds, "%Y-%m-%dT%H:%M:%SZ").cast(kind)
        unit = UNITS_NS[cast(TimeUnit, self.time_format or "s")]
        return pc.divide(nanos, unit).cast(kind)

    def _read_text(
        self, batch: pa.RecordBatch, column: pa.Array
    ) -> tuple[pa.RecordBatch, pa.Array]:
        self.time_format, nanoseconds, bad = parse_times(column, self.time_format, self._is_guessed)
        self.unit = "ns"
        times = pa.Array.from_buffers(pa.int64(), len(column), [None, pa.py_buffer(nanoseconds)])
        if not bad:
            return batch, times
        is_there = pc.greater(pc.binary_length(column.cast(pa.large_string())), 0)
        is_bad = pc.and_(pc.equal(times, _NO_TIME), pc.fill_null(is_there, False))
        return self._good(batch, times, pc.invert(is_bad))

    def _good(
        self, batch: pa.RecordBatch, times: pa.Array, good: pa.Array
    ) -> tuple[pa.RecordBatch, pa.Array]:
        bad = len(good) - (pc.sum(good).as_py() or 0)
        if not bad:
            return batch, times
        self.bad += bad
        if self._stops:
            first = pc.index(good, False).as_py()
            return batch.slice(0, first), times.slice(0, first)
        return batch.filter(good), times.filter(good)


def rounded_type(kind: pa.DataType) -> pa.DataType:
    """Tell the type of what `Moments.rounded` gives of a column of this one."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    # Half of the bits do not hold the beginning of every hour.
    return pa.float64() if pa.types.is_floating(kind) else kind


def _floor(column: pa.Array, step: int, kind: pa.DataType) -> pa.Array:
    """Round whole numbers down; null where that lies before all that the type has."""
    plain = kind if pa.types.is_integer(kind) else pa.int64()
    least = np.iinfo(plain.to_pandas_dtype()).min
    wide = pa.uint64() if least == 0 else pa.int64()
    exact = pc.fill_null(column.cast(plain).cast(wide), 0).to_numpy()
    floors = exact // step * step
    is_there = exact >= min(least + step, 0)
    present = pc.and_(pc.is_valid(column), pa.array(is_there))
    return _where(present, pa.array(np.where(is_there, floors, 0)).cast(plain).cast(kind))


def _where(present: pa.Array, values: pa.Array) -> pa.Array:
    return pc.if_else(present, values, pa.nulls(1, values.type)[0])


def _unit_of(column: pa.Array) -> TimeUnit | None:
    """Tell what most numbers are by their size: 10 digits are seconds, 13 milliseconds, etc."""
    known = np.abs(pc.drop_null(column).to_numpy(zero_copy_only=False).astype(np.float64))
    known = known[np.isfinite(known)]
    if len(known) == 0:
        return None
    places = np.searchsorted([below for below, _ in _UNITS], known, side="right")
    most = int(np.argmax(np.bincount(places)))
    return _UNITS[most][1] if most < len(_UNITS) else "ns"
