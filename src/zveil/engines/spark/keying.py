"""What rows are sorted and sharded by: made before anything is moved."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from zveil._native import spell
from zveil.act.levels import Levels, text_array
from zveil.act.moments import Moments
from zveil.engines.spark.fitness import is_text
from zveil.engines.spark.layout import Layout
from zveil.engines.spark.parcels import SORTED, home, labels, packed
from zveil.policy import Policy

_NO_TIME = -(2**63)


@dataclass(frozen=True)
class Keying:
    """Adds a time to sort by and the shard of every attribute, and packs rows for the first.

    Parameters
    ----------
    layout
        The columns.
    schema
        What comes in: the columns of the layout, and hashes ``h0`` of attributes without hierarchy.
    shards
        How many there are.
    """

    layout: Layout
    schema: pa.Schema
    shards: int
    named: NDArray[np.int32] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "named", labels(self.shards))

    @property
    def keyed(self) -> pa.Schema:
        """What rows have when they are packed."""
        fields = [each for each in self.schema if each.name[0] != "h"]
        fields.append(pa.field(SORTED, pa.int64()))
        places = range(len(self.layout.policy.attributes))
        return pa.schema([*fields, *(pa.field(home(place), pa.int32()) for place in places)])

    def pack(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give parcels of rows that come in any order."""
        return packed(self.key(batches), 0, self.named)

    def key(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Add the columns to rows that come in any order."""
        policy: Policy = self.layout.policy
        hierarchies = [each.hierarchy for each in policy.attributes]
        found = [None if each is None else Levels(each) for each in hierarchies]
        schema = self.keyed
        for batch in batches:
            if batch.schema.types != self.schema.types:
                # Spark may hand over text with longer places.
                batch = batch.cast(self.schema)
            columns = [batch.column(name) for name in schema.names if name in self.schema.names]
            columns.append(sortable(policy, batch))
            for place, levels in enumerate(found):
                if levels is None:
                    hashes = batch.column(f"h{place}")
                else:
                    values = [batch.column(name) for name in self.layout.reads(place)]
                    hashes = _hashes(_coarsest(levels.of(values)))
                columns.append(self._homes(hashes))
            yield pa.record_batch(columns, schema=schema)

    def _homes(self, hashes: pa.Array) -> pa.Array:
        """Give shards by hashes."""
        shards = pa.array((hashes.fill_null(0).to_numpy() % self.shards).astype(np.int32))
        return pc.if_else(hashes.is_valid(), shards, None) if hashes.null_count else shards


def sortable(policy: Policy, batch: pa.RecordBatch) -> pa.Array:
    """Give times as whole numbers that sort as they do; the least where there is none."""
    column = batch.column("t")
    kind = column.type
    if is_text(kind):
        return _parsed(policy, column)
    if pa.types.is_floating(kind):
        bits = column.cast(pa.float64()).fill_null(float("-inf")).to_numpy().view(np.int64)
        return pa.array(np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits))
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    return column.cast(pa.int64()).fill_null(_NO_TIME)


def _parsed(policy: Policy, column: pa.Array) -> pa.Array:
    moments = Moments(policy.time.format)
    numbers = pa.array(np.arange(len(column)))
    good, times = moments.read(pa.record_batch([column, numbers], ["t", "n"]), "t")
    if good.num_rows == len(column):
        return times
    found = np.full(len(column), _NO_TIME, np.int64)
    found[good.column("n").to_numpy()] = times.to_numpy()
    return pa.array(found)


def _coarsest(levels: list[pa.Array]) -> pa.Array:
    """Give the coarsest label that each value has, the value itself where it has none."""
    texts = []
    for column in levels:
        if pa.types.is_dictionary(column.type):
            column = text_array(spell(column.dictionary)).take(column.indices)
        texts.append(column.cast(pa.large_string()))
    return pc.coalesce(*texts)


def _hashes(values: pa.Array) -> pa.Array:
    """Hash text, each word once."""
    words = values.dictionary_encode()
    hashes = [zlib.crc32(word.encode()) for word in words.dictionary.to_pylist()]
    return pa.array(hashes, pa.int64()).take(words.indices)
