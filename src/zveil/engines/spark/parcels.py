"""Parcels: rows of one shard, in the order of their times, as one binary value.

Spark moves and sorts parcels instead of rows. A row that it moves is taken apart and put together
again four times on its way between two tasks, a parcel is copied: Arrow stays Arrow.

```text
batches in any order ─→ held until there are enough ─→ sorted by shard and time ─→ cut
                                                       shard  first  parcel
                                                           7  10:00  ▤▤▤▤
                                                           9  10:01  ▤▤
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SORTED = "s"
"""The column of times as whole numbers that sort as the times do."""

PARCELS = pa.schema([("shard", pa.int32()), ("first", pa.int64()), ("parcel", pa.binary())])
"""A shard by its label, the first time in a parcel, and the parcel."""

# What a task holds before it packs. The more there is, the longer the parcels of each shard.
_HELD_ROWS = 1 << 18
_HELD_BYTES = 32 << 20
# What one is at most. Spark may hand over ten thousand at once, where its limit of bytes is off.
_PARCEL_ROWS = 1 << 12
_PARCEL_BYTES = 32 << 10


def home(place: int) -> str:
    """Name the column that has the number of the shard that an attribute's value belongs to.

    It is null where there is no value. Such a row is decided by itself: it goes anywhere.
    """
    return f"p{place}"


def labels(shards: int) -> NDArray[np.int32]:
    """Name shards so that Spark, which hashes the names, has one in each of as many partitions.

    If it hashed otherwise some day, tasks would be of unequal length, and nothing else.

    >>> labels(4).tolist()
    [12, 6, 2, 0]
    """
    found: dict[int, int] = {}
    number = 0
    while len(found) < shards:
        found.setdefault(_hash_of(number) % shards, number)
        number += 1
    return np.array([found[partition] for partition in range(shards)], np.int32)


def packed(
    batches: Iterable[pa.RecordBatch], place: int, named: NDArray[np.int32]
) -> Iterator[pa.RecordBatch]:
    """Pack rows for the shards of an attribute.

    Parameters
    ----------
    batches
        Rows with `SORTED` and the `home` of the attribute among their columns.
    place
        Which attribute.
    named
        The `labels` of the shards.
    """
    return (packed_at_once(batch, place, named) for batch in gathered(batches))


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Put batches together until there are enough rows to pack."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _HELD_ROWS or size >= _HELD_BYTES:
            yield joined(held)
            held, rows, size = [], 0, 0
    if rows:
        yield joined(held)


def content(schema: pa.Schema, place: int) -> pa.Schema:
    """Tell what parcels hold, where rows of this schema are packed for an attribute."""
    return schema.remove(schema.get_field_index(home(place)))


def unpacked(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Give the first time and the rows of each parcel."""
    for first, parcel in zip(batch.column(1).to_pylist(), batch.column(2), strict=True):
        message = pa.ipc.read_message(parcel.as_buffer())
        yield first, pa.ipc.read_record_batch(message, schema)


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Put batches one behind the other; they lie in memory of their own, however they came."""
    table = pa.Table.from_batches(batches)
    whole = table.combine_chunks().to_batches()
    if len(whole) == 1:
        return whole[0]
    return pa.RecordBatch.from_pylist([], schema=table.schema)


def packed_at_once(batch: pa.RecordBatch, place: int, named: NDArray[np.int32]) -> pa.RecordBatch:
    """Pack rows as they are, for the shards of an attribute; parameters as for `packed`."""
    shards = _somewhere(batch.column(home(place)), len(named))
    times = batch.column(SORTED).to_numpy()
    # Small numbers are sorted in one pass; times that are in order already, in none.
    small = shards.astype(np.uint16) if len(named) <= 1 << 16 else shards
    by_time = None if is_ordered(times) else np.argsort(times, kind="stable")
    order = np.argsort(small if by_time is None else small[by_time], kind="stable")
    order = order if by_time is None else by_time[order]
    left = [name for name in batch.schema.names if name != home(place)]
    rows = batch.select(left).take(pa.array(order))
    lengths = np.bincount(shards, minlength=len(named))
    ends = np.cumsum(lengths)
    most = max(1, min(_PARCEL_ROWS, _PARCEL_BYTES * rows.num_rows // max(1, rows.nbytes)))
    sink = pa.BufferOutputStream()
    shown, firsts, offsets = [], [], [0]
    for shard in np.flatnonzero(lengths):
        for start in range(ends[shard] - lengths[shard], ends[shard], most):
            piece = rows.slice(start, min(most, ends[shard] - start))
            sink.write(piece.serialize())
            offsets.append(sink.tell())
            shown.append(named[shard])
            firsts.append(times[order[start]])
    places = pa.py_buffer(np.array(offsets, np.int32))
    parcels = pa.Array.from_buffers(pa.binary(), len(firsts), [None, places, sink.getvalue()])
    columns = [pa.array(shown, pa.int32()), pa.array(firsts, pa.int64()), parcels]
    return pa.record_batch(columns, schema=PARCELS)


def _somewhere(homes: pa.Array, shards: int) -> NDArray[np.int32]:
    """Give each row a shard, those that have none in turn."""
    if not homes.null_count:
        return np.asarray(homes.to_numpy())
    found = homes.fill_null(0).to_numpy(zero_copy_only=False).copy()
    missing = np.flatnonzero(homes.is_null().to_numpy(zero_copy_only=False))
    found[missing] = missing % shards
    return np.asarray(found)


def is_ordered(times: NDArray[np.int64]) -> bool:
    """Tell whether times are in order."""
    return bool((times[1:] >= times[:-1]).all())


def _hash_of(number: int) -> int:
    """Hash as Spark does where it spreads rows over partitions: Murmur3 of a 32-bit number."""
    mixed = _rotated(number * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
    mixed = _rotated(42 ^ mixed, 13) * 5 + 0xE6546B64 & 0xFFFFFFFF
    mixed ^= 4
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    mixed ^= mixed >> 16
    return mixed - (mixed >> 31 << 32)


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> 32 - bits) & 0xFFFFFFFF
