"""Parts: a row of a streaming frame as one for each attribute that has a value.

A streaming query has one pass with a state, where a frame that has an end has one for each
attribute. So rows do not go from one attribute to the next. They are split before: a part has one
attribute, and all of the row that belongs to none.

```text
 ts  uid  host  path            ts  uid  host    ─→ shards of the host
  1  ada  x     /a       ─→      1  ada  x
  2  bob        /b
                                ts  uid  path    ─→ shards of the path, which are others
                                 1  ada  /a
                                 2  bob  /b
```

The parts are decided and leave by themselves, the other attributes in them as if they were veiled.
A row without any value is one part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from zveil.engines.spark.keying import Keying
from zveil.engines.spark.parcels import content, gathered, home, labels, packed_at_once


@dataclass(frozen=True)
class Parts:
    """Splits rows, and packs the parts for the shards of their attributes.

    Parameters
    ----------
    keying
        What rows are sorted and sharded by.
    """

    keying: Keying
    named: NDArray[np.int32] = field(init=False, repr=False)
    """The labels of the shards of each attribute: no two attributes have one in common."""

    def __post_init__(self) -> None:
        shape = len(self.keying.layout.policy.attributes), self.keying.shards
        object.__setattr__(self, "named", labels(shape[0] * shape[1]).reshape(shape))

    def pack(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give parcels of the parts of rows that come in any order."""
        for batch in gathered(self.keying.key(batches)):
            for place, named in enumerate(self.named):
                part = batch.filter(self._has_part(batch, place)).select(self._names(place))
                yield packed_at_once(part, place, named)

    def content(self, place: int) -> pa.Schema:
        """Tell what the parcels of an attribute hold."""
        keyed = self.keying.keyed
        return content(pa.schema([keyed.field(name) for name in self._names(place)]), place)

    def veiled(self, place: int) -> tuple[pa.Field, ...]:
        """Tell what the parts of an attribute lack: the others, as they are once decided."""
        fields = []
        for other, each in enumerate(self.keying.layout.policy.attributes):
            if other != place:
                name = f"a{other}"
                is_label = each.hierarchy is not None
                kind = pa.large_string() if is_label else self.keying.schema.field(name).type
                fields.append(pa.field(name, kind))
        return tuple(fields)

    def _names(self, place: int) -> list[str]:
        mine = {*self.keying.layout.reads(place), home(place)}
        return [name for name in self.keying.keyed.names if name[0] not in "ap" or name in mine]

    def _has_part(self, batch: pa.RecordBatch, place: int) -> pa.Array:
        has_value = [batch.column(home(other)).is_valid() for other in range(len(self.named))]
        if place:
            return has_value[place]
        # Whoever counts rows, or lets those without a value leave, misses none.
        return pc.or_(has_value[0], pc.invert(reduce(pc.or_, has_value)))
