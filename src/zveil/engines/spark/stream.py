"""A streaming frame: each micro-batch is decided upon the state that those before it left.

The state of a shard is its gate, sealed under its key, as one value in Spark's own state store. So
it goes with the checkpoint: a query that begins again decides a micro-batch that did not come to
its end once more, upon the state that it had then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from zveil._native import SnapshotError
from zveil.engines.spark.parcels import PARCELS, unpacked
from zveil.engines.spark.stage import Stage
from zveil.gate import Gate

STATE = "policy string, shards int, gate binary"
"""What is kept of a shard, as Spark calls it."""


@dataclass(frozen=True)
class Keeping:
    """One pass over the shards of a micro-batch.

    Parameters
    ----------
    stage
        What decides.
    """

    stage: Stage

    def decide(self, key: Any, frames: Iterable[Any], state: Any) -> Iterator[Any]:
        """Decide the rows of one shard in one micro-batch: parcels in, parcels out."""
        import pandas as pd

        del key
        gate = self._gate(state)
        parcels: list[tuple[int, pa.RecordBatch]] = []
        for frame in frames:
            columns = [frame[name].tolist() for name in PARCELS.names]
            parcels += unpacked(pa.record_batch(columns, schema=PARCELS), self.stage.schema)
        # A group comes in no order.
        parcels.sort(key=lambda parcel: parcel[0])
        rows = self.stage.decided(parcels, gate)
        left = list(_as_they_are(rows) if self.stage.is_last else self.stage.pack(rows))
        # Rows first: what is kept is all that was decided.
        state.update((self._policy, len(self.stage.named), gate.to_bytes()))
        for batch in left:
            # Column by column: what pandas makes of a table by itself differs by version.
            columns = [batch.column(place).to_pylist() for place in range(len(PARCELS))]
            yield pd.DataFrame(dict(zip(PARCELS.names, columns, strict=True)))

    def unpack(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give the rows of the last parcels."""
        schema = self.stage.leaves
        return (rows for batch in batches for _, rows in unpacked(batch, schema))

    @property
    def _policy(self) -> str:
        return self.stage.layout.policy.fingerprint

    def _gate(self, state: Any) -> Gate:
        """Make the gate of a shard, or go on with the one that is kept."""
        fresh = self.stage.gate()
        if not state.exists:
            return fresh
        policy, shards, held = state.get
        if shards != len(self.stage.named):
            raise RuntimeError(
                f"zveil: shards: this checkpoint was begun with {shards}, and each has the state "
                f"of its own values; say shards={shards}, or begin with a new checkpoint"
            )
        if policy != self._policy:
            raise RuntimeError(
                "zveil: policy: this checkpoint was begun under another; take that one, or begin "
                "with a new checkpoint"
            )
        try:
            return Gate.from_bytes(bytes(held), fresh.key)
        except SnapshotError as error:
            raise RuntimeError(f"zveil: the state in this checkpoint: {error}") from None


def _as_they_are(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give rows as parcels of no shard."""
    for batch in rows:
        parcel = batch.serialize().to_pybytes()
        yield pa.record_batch([[0], [0], [parcel]], schema=PARCELS)
