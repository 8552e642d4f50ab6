"""What the conformance suite is made of: records under a policy, and what may be told of each.

An engine takes records in and lets records out. Two engines agree if they tell the same of every
record: this module says what that is, from `zveil.reference` or from answers worked out by hand.

Which equality holds, for an engine that splits the stream by attribute over shards (partitions,
tasks, machines), keeps the order within a shard, and has one gate for each shard:

in time
    If no record lies further behind the newest time of *all* records before it than the lateness,
    the engine tells exactly what one gate tells that sees the whole stream. A shard's clock is
    never ahead of that of the whole, so nothing is late there either; and what is not late is
    decided by the records of its own attribute and their order alone.
late
    Otherwise each shard goes by its own clock: the engine tells exactly what as many gates tell,
    each on the records of its shard in their order. Of the records that are in time by the clock
    of all, it tells at least what one gate tells: a record that one gate would turn away may
    count.
one shard
    With one shard, or without shards, it tells exactly what one gate tells, late or not.

A record further in the future than allowed is refused by the wall clock, touches nothing, and so
is the same for all of them. With a hierarchy the split is by the coarsest label that a value has.
"""

import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from zveil.reference import Reference, user_text

NANO = 10**9
START = 1_700_000_000 * NANO
# Beyond this the wall clock of no test has come, and what lies there is refused.
FUTURE = 4_000_000_000 * NANO

Labels = list[str | None]
Told = dict[int, dict[str, Any]]
"""For each record that leaves, by its number: its fields, without those that tell nothing."""
Shard = Callable[[str, str], int]
"""From an attribute and the coarsest label of its value to the number of a shard."""


@dataclass(frozen=True)
class Attribute:
    """A field that is decided about."""

    field: str
    z: int
    window: int
    """Nanoseconds."""
    hierarchy: str = ""
    """The steps as the policy file has them; none if empty."""
    climb: Callable[[Any], Labels] | None = None
    """The labels that these steps make of a value, finest first, worked out without zveil."""
    rule: str = "fall-through"
    level: int | None = None

    def levels(self, value: Any) -> list[Any]:
        """Give the value and its labels, coarsest first."""
        return [value] if self.climb is None else [*reversed(self.climb(value)), value]


@dataclass(frozen=True)
class Record:
    """What comes in; `values` are those of the attributes by field, a missing one is None."""

    t: int
    """Nanoseconds."""
    user: Any
    values: dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A stream, and how it is to be decided."""

    name: str
    attributes: tuple[Attribute, ...]
    records: tuple[Record, ...]
    lateness: int | None = None
    """Nanoseconds."""
    round: str = "none"
    time_format: str = "s"
    answers: Told | None = None
    """What one gate tells, where it was worked out by hand."""

    def policy(self) -> str:
        """Write the policy file."""
        lines = [f'[time]\nfield = "ts"\nformat = "{self.time_format}"\nround = "{self.round}"']
        lines += ['[user]\nfield = "uid"\npseudonym = "raw"\n[record]\nkeep = ["n"]']
        if self.lateness is not None:
            lines += [f'[limits]\nlateness = "{self.lateness}ns"']
        for one in self.attributes:
            lines += [f'[[attribute]]\nfield = "{one.field}"\nz = {one.z}']
            lines += [f'window = "{one.window}ns"\nrule = "{one.rule}"']
            lines += [f"hierarchy = {one.hierarchy}"] if one.hierarchy else []
            lines += [f"level = {one.level}"] if one.level is not None else []
        return "\n".join(lines) + "\n"

    def line(self, number: int) -> bytes:
        """Write one record as JSON, numbered so that it is known again."""
        record = self.records[number]
        shown = {"n": number, "ts": None, "uid": record.user, **record.values}
        # A decimal is written out as it is, which the module for JSON cannot do.
        text = json.dumps(shown, ensure_ascii=False)
        return text.replace('"ts": null', f'"ts": {self._time(record.t)}').encode()

    def lines(self) -> list[bytes]:
        """Write all records."""
        return [self.line(number) for number in range(len(self.records))]

    def told(self, shard: Shard | None = None) -> Told:
        """Ask the definition what may be told: one gate for all, or one for each shard."""
        if shard is None and self.answers is not None:
            return self.answers
        gates: dict[tuple[str, int], Reference] = {}
        told: Told = {}
        for number, record in enumerate(self.records):
            if record.t > FUTURE:
                continue
            for one in self.attributes:
                value = record.values[one.field]
                home = 0 if shard is None else shard(one.field, coarsest(one, value))
                gate = gates.get((one.field, home))
                if gate is None:
                    gate = gates[one.field, home] = self._reference(one)
                label = _released(gate, one, record, value)
                if label is not None:
                    fields = {"ts": _rounded(record.t, self.round), "uid": user_text(record.user)}
                    told.setdefault(number, fields)[one.field] = label
        return told

    def late(self) -> bool:
        """Say whether a record is late by the clock of all."""
        gates = [self._reference(one) for one in self.attributes]
        for record in self.records:
            if record.t <= FUTURE:
                for gate, one in zip(gates, self.attributes, strict=True):
                    _released(gate, one, record, record.values[one.field])
        return any(gate.late for gate in gates)

    def read(self, leaving: Iterable[bytes]) -> Told:
        """Read what an engine let out; a record may come in parts, but no field of it twice."""
        told: Told = {}
        for line in leaving:
            shown = json.loads(line)
            exactly = json.loads(line, parse_float=Decimal)["ts"]
            assert shown.keys() <= {"n", "ts", "uid", *(one.field for one in self.attributes)}
            del shown["ts"]
            frame = {"ts": self._instant(exactly), "uid": user_text(shown.pop("uid"))}
            fields = told.setdefault(shown.pop("n"), dict(frame))
            assert frame.items() <= fields.items(), "parts of one record differ in time or user"
            for field, value in shown.items():
                if value is not None:
                    assert field not in fields, "something is told twice"
                    fields[field] = value
        return told

    def _reference(self, one: Attribute) -> Reference:
        # The lateness is the same for all attributes: the longest window if it is not stated.
        longest = max(other.window for other in self.attributes)
        lateness = longest if self.lateness is None else self.lateness
        if one.level is None:
            return Reference(one.z, one.window, lateness=lateness, rule=one.rule)
        # The policy counts from the value itself, the definition from the coarsest.
        depth = len(one.levels("1"))
        return Reference(
            one.z, one.window, lateness=lateness, rule=one.rule, fixed_level=depth - 1 - one.level
        )

    def _time(self, t: int) -> str:
        whole, rest = divmod(t, NANO)
        if self.time_format == "iso":
            moment = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            return f'"{moment}.{rest:09}Z"'
        if self.time_format == "ns":
            return str(t)
        return f"{whole}.{rest:09}" if rest else str(whole)

    def _instant(self, shown: Any) -> int:
        if self.time_format == "iso":
            moment, _, rest = shown.removesuffix("Z").partition(".")
            seconds = datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()
            return int(seconds) * NANO + int(rest.ljust(9, "0") or 0)
        return int(shown * (1 if self.time_format == "ns" else NANO))


def coarsest(one: Attribute, value: Any) -> str:
    """Give what a stream is split by: the coarsest label of a value that is not missing.

    1 and "1" are two values, which may well live in one shard.
    """
    if value is None:
        return ""
    return str(next(label for label in one.levels(value) if label is not None))


def spread(shards: int) -> Shard:
    """Split by a checksum, which is the same everywhere and always."""
    return lambda field, label: zlib.crc32(f"{field}={label}".encode()) % shards


def exact(told: Told) -> dict[int, str]:
    """Compare types too: 1, 1.0 and True are equal in Python."""
    return {number: repr(sorted(fields.items())) for number, fields in told.items()}


def _released(gate: Reference, one: Attribute, record: Record, value: Any) -> Any:
    if value is None or one.climb is None:
        return value if gate.observe(record.t, record.user, value) else None
    levels = one.levels(value)
    level = gate.observe_levels(record.t, record.user, levels)
    return None if level is None else levels[level]


def _rounded(t: int, step: str) -> int:
    length = {"none": 1, "minute": 60 * NANO, "hour": 3_600 * NANO, "day": 86_400 * NANO}[step]
    return t // length * length
