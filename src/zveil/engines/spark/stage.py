"""What tasks run: the native gate over the batches of one shard, one behind the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from zveil._native import Keyring, spell
from zveil.act.columns import ColumnsAct
from zveil.act.levels import Levels, text_array
from zveil.act.moments import Moments
from zveil.engines.spark.account import Counts, decided
from zveil.engines.spark.layout import SORTED, Layout
from zveil.gate import Gate
from zveil.keys import open_keyring
from zveil.policy import Policy


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
    """One pass over sorted shards: it decides one attribute; the last one lets rows out, too.

    Parameters
    ----------
    layout
        The columns.
    place
        Which attribute.
    secret
        What pseudonyms and the keys of the gates are made from.
    tally
        The accumulator that counts are added to.
    """

    layout: Layout
    place: int
    secret: Secret
    tally: Any = None

    def acts(self, schema: pa.Schema) -> tuple[list[Gate], list[ColumnsAct]]:
        """Make what batches go through, and the gate in it."""
        layout, policy = self.layout, self.layout.policy
        gates = [layout.gates().gates(key=self.secret.open())[self.place]]
        if len(policy.attributes) == 1:
            return gates, [ColumnsAct(layout.whole(), gates, schema, keyring=self._keyring())]
        deciding = layout.deciding(self.place, schema.names)
        acts = [ColumnsAct(deciding, gates, schema, keyring=None)]
        if self.place == len(policy.attributes) - 1:
            told = cast(list[Gate], [Told() for _ in policy.attributes])
            leave = ColumnsAct(layout.leave(), told, acts[0].schema, keyring=self._keyring())
            acts.append(leave)
        return gates, acts

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Tell the columns that come out, where these go in."""
        return self.acts(schema)[1][-1].schema

    def decide(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decide the rows of one shard, which come sorted and in batches."""
        gates: list[Gate] = []
        acts: list[ColumnsAct] = []
        for batch in batches:
            if not acts:
                gates, acts = self.acts(batch.schema)
            try:
                for act in acts:
                    batch = act.act(batch)
            except pa.ArrowException as error:
                # The words of the library quote the data, and Spark writes them to its logs.
                raise RuntimeError(f"zveil: {type(error).__name__} in a stage") from None
            yield batch
        if acts and self.tally is not None:
            self.tally.add(self._counts(gates, acts))

    def _counts(self, gates: list[Gate], acts: list[ColumnsAct]) -> Counts:
        counts = decided(self.place, self.layout.policy, acts[0], gates)
        if self.place == 0:
            counts["records"] = acts[0].records
            counts["bad"] = acts[0].moments.bad
        if self.place == len(self.layout.policy.attributes) - 1:
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


@dataclass(frozen=True)
class Keying:
    """Makes the columns that only zveil can make: what rows are sorted and sharded by.

    Parameters
    ----------
    layout
        The columns.
    reads_times
        Whether times are text, which does not sort as it is written.
    labelled
        The attributes with a hierarchy: all levels of a value have to be in one shard.
    """

    layout: Layout
    reads_times: bool
    labelled: tuple[int, ...]

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to make."""
        return self.reads_times or bool(self.labelled)

    @property
    def made(self) -> list[tuple[str, pa.DataType]]:
        """The columns that it adds."""
        times = [(SORTED, pa.int64())] if self.reads_times else []
        return times + [(f"h{place}", pa.string()) for place in self.labelled]

    def key(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Add the columns to batches in any order."""
        policy: Policy = self.layout.policy
        hierarchies = [policy.attributes[place].hierarchy for place in self.labelled]
        found = [Levels(each) for each in hierarchies if each is not None]
        for batch in batches:
            columns, names = list(batch.columns), list(batch.schema.names)
            if self.reads_times:
                columns.append(_sortable(policy, batch))
            for place, levels in zip(self.labelled, found, strict=True):
                values = [batch.column(name) for name in self.layout.reads(place)]
                columns.append(_coarsest(levels.of(values)))
            names += [name for name, _ in self.made]
            yield pa.record_batch(columns, names)


def _sortable(policy: Policy, batch: pa.RecordBatch) -> pa.Array:
    """Give times as nanoseconds; null where a text is no time."""
    moments = Moments(policy.time.format)
    numbered = pa.record_batch([batch.column("t"), pa.array(range(batch.num_rows), pa.int64())],
                               ["t", "n"])  # fmt: skip
    good, times = moments.read(numbered, "t")
    if good.num_rows == batch.num_rows:
        return times
    found = np.full(batch.num_rows, -(2**63), np.int64)
    found[good.column("n").to_numpy()] = times.to_numpy()
    return pa.array(found)


def _coarsest(levels: list[pa.Array]) -> pa.Array:
    """Give the coarsest label that each value has, the value itself where it has none."""
    texts = []
    for column in levels:
        if pa.types.is_dictionary(column.type):
            column = text_array(spell(column.dictionary)).take(column.indices)
        texts.append(column.cast(pa.large_string()))
    return pc.coalesce(*texts).cast(pa.string())
