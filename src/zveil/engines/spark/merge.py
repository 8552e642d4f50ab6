"""One shard's parcels put in order: sorted again where they overlap, on disk where they are many.

Parcels come by their first times. So whatever lies before the first time of the next one can go:

```text
time ─→      10:00        10:10        10:20
held         ▤▤▤▤▤▤▤▤▤▤▤▤▤▤
                  ▤▤▤▤▤▤▤▤▤▤▤▤▤▤▤▤▤
next                   ├▤▤▤▤▤▤▤▤▤▤▤
             └─ goes ──┘ └─ stays ──┘
```

What is held is what overlaps in time: little, where files are in the order of time, and all, where
rows are in no order whatever. Past a limit it is put on the disk, sorted, and comes back in
short parcels that overlap little.
"""

from __future__ import annotations

import heapq
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zveil.engines.spark.parcels import SORTED, is_ordered, joined

Parcel = tuple[int, pa.RecordBatch]
"""The first time, and rows in order."""

_ENOUGH_BYTES = 8 << 20
_SHORT_ROWS = 1 << 12


@dataclass(frozen=True)
class Merge:
    """How parcels are put in order.

    Parameters
    ----------
    ties
        The columns that rows of one time are sorted by: ascending, nulls first.
    limit
        Bytes of rows that are held at most; the rest waits on the disk. None: all are held.
    enough
        Bytes that are worth deciding at once.
    """

    ties: tuple[str, ...]
    limit: int | None
    enough: int = _ENOUGH_BYTES

    def rows(self, parcels: Iterable[Parcel]) -> Iterator[pa.RecordBatch]:
        """Give all rows in order, of parcels that come by their first times."""
        queue = _Queue(parcels)
        held: list[pa.RecordBatch] = []
        kept = fresh = 0
        while (parcel := queue.next()) is not None:
            first, batch = parcel
            # What stays is sorted again with what comes: not for little.
            if fresh >= max(self.enough, kept // 2):
                whole = self.sorted(held)
                times = whole.column(SORTED).to_numpy()
                end = int(np.searchsorted(times, first, side="left"))
                if end:
                    yield whole.slice(0, end)
                rest = whole.slice(end)
                kept, fresh, held = rest.nbytes, 0, [rest]
                if self.limit is not None and kept > self.limit:
                    queue.put(_on_disk(rest))
                    kept, held = 0, []
            held.append(batch)
            fresh += batch.nbytes
        if held:
            yield self.sorted(held)

    def sorted(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        """Put rows in order: by their times, and where these are the same by the ties."""
        whole = joined(batches)
        times = whole.column(SORTED).to_numpy()
        order = None
        if not is_ordered(times):
            order = np.argsort(times, kind="stable")
            times = times[order]
        same = times[1:] == times[:-1]
        if same.any():
            tied = np.zeros(len(times), np.bool_)
            tied[1:] |= same
            tied[:-1] |= same
            places = np.flatnonzero(tied)
            order = np.arange(len(times)) if order is None else order
            among = order[places]
            order[places] = among[self._settled(whole, among)]
        return whole if order is None else whole.take(pa.array(order))

    def _settled(self, whole: pa.RecordBatch, rows: np.ndarray) -> np.ndarray:
        """Sort some rows by times and ties; gives their places."""
        part = whole.select([SORTED, *self.ties]).take(pa.array(rows))
        columns: list[pa.Array] = []
        for column in part.columns:
            # What is no value comes first, in every version of the library.
            columns += (
                [column.is_valid().cast(pa.uint8()), column] if column.null_count else [column]
            )
        keys = [str(place) for place in range(len(columns))]
        found = pc.sort_indices(
            pa.record_batch(columns, keys), sort_keys=[(key, "ascending") for key in keys]
        )
        return np.asarray(found.to_numpy())


class _Queue:
    """Parcels of several origins, the one with the earliest first time next."""

    def __init__(self, parcels: Iterable[Parcel]) -> None:
        self._heap: list[tuple[int, int, pa.RecordBatch, Iterator[Parcel]]] = []
        self._count = 0
        self.put(parcels)

    def put(self, parcels: Iterable[Parcel]) -> None:
        """Add parcels, which come by their first times."""
        self._count += 1
        self._advance(self._count, iter(parcels))

    def next(self) -> Parcel | None:
        """Give the next one."""
        if not self._heap:
            return None
        first, number, batch, rest = heapq.heappop(self._heap)
        self._advance(number, rest)
        return first, batch

    def _advance(self, number: int, parcels: Iterator[Parcel]) -> None:
        parcel = next(parcels, None)
        if parcel is not None:
            heapq.heappush(self._heap, (parcel[0], number, parcel[1], parcels))


def _on_disk(rows: pa.RecordBatch) -> Iterator[Parcel]:
    """Write rows to a file without a name, and give them back in short parcels."""
    file = tempfile.TemporaryFile(dir=_folder())  # noqa: SIM115  # it is closed at its end
    with pa.ipc.new_stream(file, rows.schema) as writer:
        for start in range(0, rows.num_rows, _SHORT_ROWS):
            writer.write_batch(rows.slice(start, _SHORT_ROWS))
    file.seek(0)
    return _from_disk(file)


def _from_disk(file: IO[bytes]) -> Iterator[Parcel]:
    with file, pa.ipc.open_stream(file) as reader:
        for batch in reader:
            yield batch.column(SORTED)[0].as_py(), batch


def _folder() -> str | None:
    """Where Spark keeps what does not fit into memory, if it says so."""
    folders = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    return next((each for each in folders if each and os.path.isdir(each)), None)
