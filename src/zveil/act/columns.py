"""Record batches: decided column by column."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from zveil._native import parse_times, pseudonyms
from zveil.gate import Gate
from zveil.policy import Policy
from zveil.times import TimeUnit

Mask = NDArray[np.bool_]

_NO_TIME = -(2**63)

_SECONDS_BELOW = 10**11
_UNITS: tuple[tuple[int, TimeUnit], ...] = (
    (_SECONDS_BELOW, "s"),
    (_SECONDS_BELOW * 10**3, "ms"),
    (_SECONDS_BELOW * 10**6, "us"),
)
# Below that a number of this unit would have been taken for one of a coarser unit.
_LEAST = {"ms": _SECONDS_BELOW, "us": _SECONDS_BELOW * 10**3, "ns": _SECONDS_BELOW * 10**6}


class ColumnsAct:
    """Record batches in, what leaves of them out.

    Parameters
    ----------
    policy, gates, key
        As for `TextAct`.
    schema
        The columns that come in.

    Raises
    ------
    LookupError
        If a field has no column of its name; with that name and those there are.
    """

    def __init__(
        self, policy: Policy, gates: Sequence[Gate], schema: pa.Schema, *, key: bytes
    ) -> None:
        self._policy = policy
        self._gates = list(gates)
        self._key = key
        self.fields = list(policy.fields)
        self.check(schema)
        if policy.keeps_all:
            self.fields += [name for name in schema.names if name not in self.fields]
        self.records = 0
        self.bad_times = 0
        self.leaving = [0] * (len(gates) // len(policy.attributes))
        self.time_format: str | None = policy.time_format
        self._unit: TimeUnit | None = None
        types = [schema.field(name).type for name in self.fields]
        if not policy.raw_users:
            types[1] = pa.large_string()
        self.schema = pa.schema(list(zip(self.fields, types, strict=True)))

    def check(self, schema: pa.Schema) -> None:
        """Raise the LookupError for a schema that lacks a field, or has one twice."""
        for name in self.fields:
            if schema.names.count(name) != 1:
                raise LookupError(name, schema.names)

    def act(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Decide the rows of a batch, and give those that leave."""
        batch, times = self._timed(batch)
        columns = [batch.column(name) for name in self.fields]
        users = columns[1]
        count = len(self._policy.attributes)
        values = columns[2 : 2 + count]
        self.records += batch.num_rows
        masks: list[Mask] = []
        for number in reversed(range(len(self.leaving))):
            gates = self._gates[number * count : (number + 1) * count]
            masks = [
                gate.observe_many(times, users, value, time_unit=self._unit)
                for gate, value in zip(gates, values, strict=True)
            ]
            self.leaving[number] += int(np.count_nonzero(np.logical_or.reduce(masks)))
        for number, mask in enumerate(masks):
            value = columns[2 + number]
            if not mask.all():
                columns[2 + number] = pc.if_else(pa.array(mask), value, pa.nulls(1, value.type)[0])
        if not self._policy.raw_users:
            columns[1] = self._pseudonyms(users)
        left = pa.record_batch(columns, schema=self.schema)
        if self._policy.veiled == "blank":
            return left
        leaves = np.logical_or.reduce(masks)
        return left if leaves.all() else left.filter(pa.array(leaves))

    def _timed(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
        """Give the rows whose time can be read, and their times as the gate takes them."""
        self._unit = None
        column = batch.column(self.fields[0])
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
            self.time_format, nanoseconds, bad = parse_times(
                column, self.time_format, self._policy.time_format is None
            )
            self._unit = "ns"
            times = pa.Array.from_buffers(
                pa.int64(), len(column), [None, pa.py_buffer(nanoseconds)]
            )
            if not bad:
                return batch, times
            self.bad_times += bad
            is_there = pc.greater(pc.binary_length(column.cast(pa.large_string())), 0)
            is_bad = pc.and_(pc.equal(times, _NO_TIME), pc.fill_null(is_there, False))
            good = pc.invert(is_bad)
            return batch.filter(good), times.filter(good)
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            if self.time_format is None:
                self.time_format = _unit_of(column)
            if self.time_format == "iso":
                raise ValueError("time-format: iso was stated, but the times are numbers")
            self._unit = cast(TimeUnit, self.time_format or "s")
            if self._policy.time_format is None and self._unit != "s":
                return self._likely(batch, column, _LEAST[self._unit])
        return batch, column

    def _likely(
        self, batch: pa.RecordBatch, times: pa.Array, least: int
    ) -> tuple[pa.RecordBatch, pa.Array]:
        """Leave out numbers that by their size are of a coarser unit than most are."""
        good = pc.or_(pc.greater_equal(times, least), pc.less_equal(times, -least))
        good = pc.fill_null(good, True)
        if pc.all(good).as_py() is not False:
            return batch, times
        self.bad_times += len(times) - pc.sum(good).as_py()
        return batch.filter(good), times.filter(good)

    def _pseudonyms(self, users: pa.Array) -> pa.Array:
        if pa.types.is_dictionary(users.type):
            users = users.dictionary_decode()
        count, present, ends, data = pseudonyms(users, self._key)
        buffers = [pa.py_buffer(present), pa.py_buffer(ends), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_string(), count, buffers)


def _unit_of(column: pa.Array) -> TimeUnit | None:
    """Tell what most numbers are by their size: 10 digits are seconds, 13 milliseconds, etc."""
    known = np.abs(pc.drop_null(column).to_numpy(zero_copy_only=False).astype(np.float64))
    known = known[np.isfinite(known)]
    if len(known) == 0:
        return None
    places = np.searchsorted([below for below, _ in _UNITS], known, side="right")
    most = int(np.argmax(np.bincount(places)))
    return _UNITS[most][1] if most < len(_UNITS) else "ns"
