"""Record batches: decided column by column."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from zveil._native import EventIds, Keyring, NameFilter, Names
from zveil.act.levels import Levels, bools
from zveil.act.moments import Moments, rounded_type
from zveil.act.swaps import Swaps, plain
from zveil.columns import aligned, flags
from zveil.gate import Gate
from zveil.meter import Meter
from zveil.policy import Attribute, Policy
from zveil.times import UNITS_NS

Mask = NDArray[np.bool_]

# With more words than this for each row of a batch, only those that are used are worth a name.
_WORDS_FOR_A_ROW = 4


class ColumnsAct:
    """Record batches in, what leaves of them out.

    Parameters
    ----------
    policy, gates, keyring, stop_at_problem, ids, meter
        As for `TextAct`.
    schema
        The columns that come in.
    shared
        The `swaps` of another act of the same gates and types, to go on with.
    hides_empty
        In the output a text without letters looks like nothing: a reader of CSV sees none.

    Raises
    ------
    LookupError
        If a field has no column of its name; with that name and those there are.
    ValueError
        If a veiled value shall become a text and its column holds none.
    """

    def __init__(
        self,
        policy: Policy,
        gates: Sequence[Gate],
        schema: pa.Schema,
        *,
        keyring: Keyring | None,
        stop_at_problem: bool = False,
        shared: list[Swaps | None] | None = None,
        ids: EventIds | None = None,
        meter: Meter | None = None,
        hides_empty: bool = False,
    ) -> None:
        self._policy = policy
        self._meter = meter
        self._hides_empty = hides_empty
        self._ids = ids
        self._id_field = policy.input.id if ids is not None else None
        self.repeated = 0
        """Rows left out because their id came before."""
        self._gates = list(gates)
        self._keyring = keyring
        self.fields = list(policy.fields)
        self._beside = [name for each in policy.attributes for name in each.fields]
        self._made = {each.field for each in policy.attributes if each.fields}
        self.check(schema)
        if policy.keeps_all:
            known = {*self.fields, *self._beside}
            self.fields += [name for name in schema.names if name not in known]
        hierarchies = [each.hierarchy for each in policy.attributes]
        self._levels = [None if each is None else Levels(each) for each in hierarchies]
        self.levels = [
            [0] * each.levels if each else []
            for _ in range(len(gates) // len(policy.attributes))
            for each in hierarchies
        ]
        """Values released so far at each level, coarsest first: for each gate."""
        self.records = 0
        self.leaving = [0] * (len(gates) // len(policy.attributes))
        self._words: tuple[int, pa.Array, pa.Array] | None = None
        # Of several sets of gates nothing leaves: they are a trial.
        self.swaps = shared or [
            Swaps(gate, each.swap) if each.swap and len(self.leaving) == 1 else None
            for gate, each in zip(gates, policy.attributes, strict=False)
        ]
        """What swaps the values of each attribute; None where none may leave as another."""
        self._filters = policy.filters()
        self.filtered = [0] * len(self._filters)
        """Values that lists left out, for each attribute; nothing without lists."""
        self.moments = Moments(policy.time.format, stop_at_problem=stop_at_problem)
        labelled = {each.field for each in policy.attributes if each.hierarchy is not None}
        types = [
            pa.large_string() if name in labelled else schema.field(name).type
            for name in self.fields
        ]
        self._step_ns = policy.time.step_ns
        if self._step_ns is not None:
            types[0] = rounded_type(types[0])
        if keyring is not None:
            types[1] = pa.large_string()
        for number, swaps in enumerate(self.swaps):
            types[2 + number] = types[2 + number] if swaps is None else plain(types[2 + number])
        self._veils = [
            _veil(attribute, kind)
            for attribute, kind in zip(policy.attributes, types[2:], strict=False)
        ]
        for number, veil in enumerate(self._veils):
            types[2 + number] = types[2 + number] if veil is None else veil.type
        self.schema = pa.schema(list(zip(self.fields, types, strict=True)))

    @property
    def worded(self) -> list[str]:
        """The columns that may as well come as dictionaries."""
        named = self.fields[1 : 2 + len(self._policy.attributes)]
        return [name for name in named if name not in self._made]

    @property
    def reads(self) -> list[str]:
        """The columns that are needed; what a position leaves as is none of them."""
        names = [name for name in self.fields if name not in self._made] + self._beside
        if self._id_field is not None and self._id_field not in names:
            names.append(self._id_field)
        return names

    def check(self, schema: pa.Schema) -> None:
        """Raise the LookupError for a schema that lacks a field, or has one twice."""
        for name in self.reads:
            if schema.names.count(name) != 1:
                raise LookupError(name, schema.names)

    def nothing(self) -> pa.RecordBatch:
        """Give a batch without rows, for the names of its columns."""
        return pa.RecordBatch.from_pylist([], schema=self.schema)

    def act(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Decide the rows of a batch, and give those that leave."""
        batch, times = self.moments.read(batch, self.fields[0])
        if self._ids is not None and self._id_field is not None:
            batch, times = self._fresh(self._ids, batch, times, self._id_field)
        nothing = pa.nulls(batch.num_rows, pa.large_string())
        columns = [nothing if name in self._made else batch.column(name) for name in self.fields]
        users = columns[1]
        count = len(self._policy.attributes)
        counted = list(columns[2 : 2 + count])
        for number, allowed in enumerate(self._filters):
            counted[number] = self._filtered(number, allowed, counted[number])
        values = [
            [column] if found is None else found.of(self._read(batch, each, column))
            for each, found, column in zip(
                self._policy.attributes, self._levels, counted, strict=True
            )
        ]
        self.records += batch.num_rows
        decided: list[NDArray[np.int8]] = []
        masks: list[Mask] = []
        for number in reversed(range(len(self.leaving))):
            gates = self._gates[number * count : (number + 1) * count]
            decided = [
                self._decided(place, gate, times, users, value)
                for place, (gate, value) in enumerate(zip(gates, values, strict=True))
            ]
            masks = [each >= 0 for each in decided]
            for place, each in enumerate(decided, number * count):
                for level in range(len(self.levels[place])):
                    self.levels[place][level] += int(np.count_nonzero(each == level))
            self.leaving[number] += int(np.count_nonzero(np.logical_or.reduce(masks)))
        for number, found in enumerate(self._levels):
            if found is not None:
                columns[2 + number] = found.labels(values[number], decided[number])
        for number, swaps in enumerate(self.swaps):
            if swaps is not None:
                kind = plain(columns[2 + number].type)
                columns[2 + number] = swaps.into(columns[2 + number], kind)
        for number, (mask, veil) in enumerate(zip(masks, self._veils, strict=True)):
            value = columns[2 + number]
            if veil is not None and value.type != veil.type:
                value = columns[2 + number] = value.cast(veil.type)
            if not mask.all():
                nothing = pa.nulls(1, value.type)[0] if veil is None else veil
                columns[2 + number] = pc.if_else(bools(mask), value, nothing)
        if self._step_ns is not None:
            columns[0] = self.moments.rounded(columns[0], times, self._step_ns)
        leaves = np.logical_or.reduce(masks)
        if self._policy.record.empty == "drop" and not leaves.all():
            places = list(map(str, range(len(columns))))
            kept = pa.record_batch(columns, places).filter(bools(leaves))
            columns = kept.columns
        if self._keyring is not None:
            is_all = self._policy.record.empty == "blank"
            leaving = None if is_all else leaves.tobytes()
            unit = None if self.moments.unit is None else UNITS_NS[self.moments.unit]
            # The time of every record counts, also of those that do not leave.
            names = self._keyring.name(times if self._keyring.rotates else None, unit, leaving)
            columns[1] = self._pseudonyms(columns[1], names, leaving)
        if self._meter is not None:
            self._measure(self._meter, times, columns, masks)
        for number, field in enumerate(self.schema):
            if columns[number].type == field.type:
                continue
            if not pa.types.is_dictionary(columns[number].type):
                raise pa.ArrowTypeError("another type than in the batches before")
            columns[number] = columns[number].dictionary_decode()  # of its own accord
        return pa.record_batch(columns, schema=self.schema)

    def _measure(
        self, meter: Meter, times: pa.Array, columns: list[pa.Array], masks: list[Mask]
    ) -> None:
        """Show a meter what leaves, as whoever reads it sees it."""
        if len(columns[1]) != len(times):
            leaves = np.logical_or.reduce(masks)
            times, masks = times.filter(bools(leaves)), [mask[leaves] for mask in masks]
        fields = []
        for name, mask, values in zip(self._policy.names, masks, columns[2:], strict=False):
            seen = mask
            if self._hides_empty and _is_text(values.type):
                lengths = pc.fill_null(pc.binary_length(_decoded(values)), 0)
                seen = mask & (lengths.to_numpy(zero_copy_only=False) > 0)
            fields.append((name, flags(seen)))
        names = ["times", "users", *self._policy.names]
        unit = 1 if self.moments.unit is None else UNITS_NS[self.moments.unit]
        for when, who, *what in aligned([times, columns[1], *columns[2 : len(names)]], names):
            shown = [(name, each, seen) for (name, seen), each in zip(fields, what, strict=True)]
            meter._add_arrays(when, who, shown, unit)
        meter.follow(self._gates)

    def state(self) -> dict[str, Any]:
        """Give all that decides what becomes of the next rows, and the counts, for JSON."""
        return {
            "records": self.records,
            "leaving": self.leaving,
            "levels": self.levels,
            "filtered": self.filtered,
            "repeated": self.repeated,
            "fields": self.fields,
            "time_format": self.moments.time_format,
            "bad": self.moments.bad,
            "swaps": [
                None if swaps is None else base64.b64encode(swaps.state()).decode()
                for swaps in self.swaps
            ],
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.records, self.repeated = state["records"], state["repeated"]
        self.leaving = list(state["leaving"])
        self.levels = [list(each) for each in state["levels"]]
        self.filtered = list(state["filtered"])
        self.moments.time_format, self.moments.bad = state["time_format"], state["bad"]
        for swaps, held in zip(self.swaps, state["swaps"], strict=True):
            if swaps is not None and held is not None:
                swaps.resume(base64.b64decode(held))

    def _fresh(
        self, ids: EventIds, batch: pa.RecordBatch, times: pa.Array, name: str
    ) -> tuple[pa.RecordBatch, pa.Array]:
        """Leave out the rows whose id came before."""
        unit = None if self.moments.unit is None else UNITS_NS[self.moments.unit]
        bits, repeated = ids.fresh(times, batch.column(name), unit)
        if not repeated:
            return batch, times
        self.repeated += repeated
        fresh = pa.Array.from_buffers(pa.bool_(), batch.num_rows, [None, pa.py_buffer(bits)])
        return batch.filter(fresh), times.filter(fresh)

    @property
    def swapped(self) -> list[int]:
        """Values that left as others so far, for each attribute; none where none may."""
        if not any(self.swaps):
            return []
        return [0 if swaps is None else swaps.swapped for swaps in self.swaps]

    def _decided(
        self,
        attribute: int,
        gate: Gate,
        times: pa.Array,
        users: pa.Array,
        levels: list[pa.Array],
    ) -> NDArray[np.int8]:
        """Give the level released, 0 where there is but one, and -1 where veiled."""
        found, swaps = self._levels[attribute], self.swaps[attribute]
        if swaps is not None:
            return swaps.decided(
                times, users, levels, is_plain=found is None, time_unit=self.moments.unit
            )
        if found is not None:
            return gate.observe_levels_many(times, users, levels, time_unit=self.moments.unit)
        mask = gate.observe_many(times, users, levels[0], time_unit=self.moments.unit)
        return mask.view(np.int8) - np.int8(1)

    def _read(
        self, batch: pa.RecordBatch, attribute: Attribute, column: pa.Array
    ) -> list[pa.Array]:
        """Give the columns that an attribute is read from: itself, or those of a position."""
        return [batch.column(name) for name in attribute.fields] or [column]

    def _filtered(self, number: int, names: NameFilter, values: pa.Array) -> pa.Array:
        """Take out the values that a list leaves out, as if there were none."""
        bits, count = names.mask(values)
        if not count:
            return values
        self.filtered[number] += count
        counts = pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
        return pc.if_else(counts, values, pa.nulls(1, values.type)[0])

    def _pseudonyms(self, users: pa.Array, names: Names, leaves: bytes | None) -> pa.Array:
        if names.only is None or not pa.types.is_dictionary(users.type):
            return _named(names, users, leaves if names.only is None else None)
        # Batches of one row group bring the same words again and again.
        known = self._words
        if known is None or known[0] != names.only or not known[1].equals(users.dictionary):
            if len(users.dictionary) > _WORDS_FOR_A_ROW * len(users):
                return _named(names, users.dictionary_decode())
            known = names.only, users.dictionary, _named(names, users.dictionary)
            self._words = known
        return known[2].take(users.indices)


def _named(names: Names, users: pa.Array, leaves: bytes | None = None) -> pa.Array:
    count, present, ends, data = names.pseudonyms(users, leaves)
    buffers = [pa.py_buffer(present), pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), count, buffers)


def _veil(attribute: Attribute, kind: pa.DataType) -> pa.Scalar | None:
    """Give the text that a veiled value of a column becomes; None for null."""
    if attribute.veiled is None:
        return None
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not _is_text(kind):
        raise ValueError(
            f"attribute.veiled: the column {attribute.field!r} is of the type {kind}, which holds "
            "no text; let its veiled values become null"
        )
    # Arrow chooses between texts of this type only.
    kind = pa.large_string() if kind == pa.string_view() else kind
    return pa.scalar(attribute.veiled, kind)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
    )


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
