"""A streaming frame: each micro-batch is decided upon the state that those before it left.

The state of a shard is its gate, sealed under its key, as one value in Spark's own state store. So
it goes with the checkpoint: a query that begins again decides a micro-batch that did not come to
its end once more, upon the state that it had then.

A shard belongs to one attribute. Its label tells which, and the key of a gate is made from the name
of its attribute: under that of another its state does not open.
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
    stages
        What decides the parts: one for each attribute.
    """

    stages: tuple[Stage, ...]

    def decide(self, key: Any, frames: Iterable[Any], state: Any) -> Iterator[Any]:
        """Decide the rows of one shard in one micro-batch: parcels in, parcels out."""
        import pandas as pd

        (label,) = key
        (stage,) = (each for each in self.stages if label in each.named)
        gate = _gate(stage, state)
        parcels: list[tuple[int, pa.RecordBatch]] = []
        for frame in frames:
            columns = [frame[name].tolist() for name in PARCELS.names]
            parcels += unpacked(pa.record_batch(columns, schema=PARCELS), stage.schema)
        # A group comes in no order.
        parcels.sort(key=lambda parcel: parcel[0])
        # As parcels of no shard.
        left = [batch.serialize().to_pybytes() for batch in stage.decided(parcels, gate)]
        # Rows first: what is kept is all that was decided.
        state.update((_policy(stage), len(stage.named), gate.to_bytes()))
        for parcel in left:
            # Column by column: what pandas makes of a table by itself differs by version.
            yield pd.DataFrame(dict(zip(PARCELS.names, ([0], [0], [parcel]), strict=True)))

    @property
    def leaves(self) -> pa.Schema:
        """What is in the rows that come out."""
        return self.stages[0].leaves

    def unpack(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give the rows of the parcels that come out."""
        schema = self.leaves
        return (rows for batch in batches for _, rows in unpacked(batch, schema))


def _gate(stage: Stage, state: Any) -> Gate:
    """Make the gate of a shard, or go on with the one that is kept."""
    fresh = stage.gate()
    if not state.exists:
        return fresh
    policy, shards, held = state.get
    if shards != len(stage.named):
        raise RuntimeError(
            f"zveil: shards: this checkpoint was begun with {shards}, and each has the state "
            f"of its own values; say shards={shards}, or begin with a new checkpoint"
        )
    if policy != _policy(stage):
        raise RuntimeError(
            "zveil: policy: this checkpoint was begun under another; take that one, or begin "
            "with a new checkpoint"
        )
    try:
        return Gate.from_bytes(bytes(held), fresh.key)
    except SnapshotError as error:
        raise RuntimeError(f"zveil: the state in this checkpoint: {error}") from None


def _policy(stage: Stage) -> str:
    return stage.layout.policy.fingerprint
