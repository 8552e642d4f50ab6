"""What tasks run: the native gate over the rows of one shard, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from zveil._native import Keyring
from zveil.act.columns import ColumnsAct
from zveil.engines.spark.account import Counts, decided
from zveil.engines.spark.layout import Layout
from zveil.engines.spark.merge import Merge
from zveil.engines.spark.parcels import content, home, packed, unpacked
from zveil.gate import Gate
from zveil.keys import open_keyring


class Secret:
    """A key on its way to tasks: nothing that prints it shows it."""

    __slots__ = ("_held",)

    def __init__(self, held: bytes) -> None:
        self._held = held

    def open(self) -> bytes:
        """Give the key."""
        return self._held

    def __repr__(self) -> str:
        return "Secret(...)"


class Told:
    """Stands where a gate would, for values that were decided before: what is there is released."""

    def observe_many(
        self, times: Any, users: Any, attributes: pa.Array, *, time_unit: Any = None
    ) -> NDArray[np.bool_]:
        """Tell which values are there."""
        del times, users, time_unit
        return np.asarray(pc.is_valid(attributes).to_numpy(zero_copy_only=False))


@dataclass(frozen=True)
class Stage:
    """One pass over shards: it decides one attribute; the last one lets rows out, too.

    Parameters
    ----------
    layout
        The columns.
    place
        Which attribute.
    secret
        What pseudonyms and the keys of the gates are made from.
    schema
        What is in the parcels that come: rows, or the parts of rows that have this attribute.
    named
        The labels of the shards.
    merge
        How parcels are put in order.
    is_sorted
        Whether all rows of a shard come in the order of their times; if not, they may be late.
    tally
        The accumulator that counts are added to.
    veiled
        The attributes that parts lack; they leave as if they were veiled.
    """

    layout: Layout
    place: int
    secret: Secret
    schema: pa.Schema
    named: NDArray[np.int32]
    merge: Merge
    is_sorted: bool = True
    tally: Any = None
    veiled: tuple[pa.Field, ...] = ()

    @property
    def is_last(self) -> bool:
        """Whether rows leave behind it, since they have no shard to go on to."""
        return home(self.place + 1) not in self.schema.names

    @property
    def leaves(self) -> pa.Schema:
        """What is in the rows that come out."""
        return self._acts([self.gate()])[-1].schema

    @property
    def parcels(self) -> pa.Schema:
        """What is in the parcels that come out, where it is not the last."""
        return content(self.leaves, self.place + 1)

    def gate(self) -> Gate:
        """Make the gate of a shard."""
        stated = self.layout.gates(is_sorted=self.is_sorted)
        return stated.gates(key=self.secret.open())[self.place]

    def decide(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decide the rows of a task, which come as parcels by their first times."""
        parcels = (each for batch in batches for each in unpacked(batch, self.schema))
        rows = self.decided(parcels, self.gate())
        return rows if self.is_last else self.pack(rows)

    def pack(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack what comes out for the shards of the next attribute."""
        return packed(rows, self.place + 1, self.named)

    def decided(
        self, parcels: Iterable[tuple[int, pa.RecordBatch]], gate: Gate
    ) -> Iterator[pa.RecordBatch]:
        """Decide the rows of parcels, which come by their first times."""
        acts = self._acts([gate])
        before = decided(self.place, self.layout.policy, acts[0], [gate])
        taken = self._taken()
        for rows in self.merge.rows(parcels):
            there = rows.select([name for name in taken.names if name in self.schema.names])
            lacks = [pa.nulls(rows.num_rows, each.type) for each in self.veiled]
            batch = pa.record_batch([*there.columns, *lacks], schema=taken)
            try:
                for act in acts:
                    batch = act.act(batch)
            except pa.ArrowException as error:
                # The words of the library quote the data, and Spark writes them to its logs.
                raise RuntimeError(f"zveil: {type(error).__name__} in a stage") from None
            if batch.num_rows:
                yield batch
        if self.tally is not None:
            counts = self._counts(gate, acts)
            counts.subtract(before)
            self.tally.add(counts)

    def _taken(self) -> pa.Schema:
        """Tell what of the parcels is decided about, or goes on; what they lack is null."""
        done = "ops" if self.is_last else ""
        there = [each for each in self.schema if each.name[0] not in done]
        return pa.schema([*there, *self.veiled])

    def _acts(self, gates: list[Gate]) -> list[ColumnsAct]:
        """Make what rows go through."""
        layout, schema = self.layout, self._taken()
        count = len(layout.policy.attributes)
        if count == 1:
            return [ColumnsAct(layout.whole(), gates, schema, keyring=self._keyring())]
        deciding = layout.deciding(self.place, schema.names)
        acts = [ColumnsAct(deciding, gates, schema, keyring=None)]
        if self.is_last:
            told = cast(list[Gate], [Told() for _ in range(count)])
            leave = ColumnsAct(layout.leave(), told, acts[0].schema, keyring=self._keyring())
            acts.append(leave)
        return acts

    def _counts(self, gate: Gate, acts: list[ColumnsAct]) -> Counts:
        counts = decided(self.place, self.layout.policy, acts[0], [gate])
        if self.place == 0 or self.veiled:
            counts["records"] = acts[0].records
            counts["bad"] = acts[0].moments.bad
        if self.is_last:
            is_all = self.layout.policy.record.empty == "blank"
            counts["left"] = acts[-1].records if is_all else acts[-1].leaving[0]
        return counts

    def _keyring(self) -> Keyring | None:
        policy = self.layout.policy
        if policy.user.pseudonym == "raw":
            return None
        return open_keyring(
            policy.user.pseudonym,
            own=self.secret.open(),
            rotate_ns=policy.rotate_ns,
            keep_keys=policy.user.keep_keys,
        )
