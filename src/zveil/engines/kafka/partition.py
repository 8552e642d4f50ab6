"""One partition: its gates, what they have seen, and how far it is decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from zveil._native import EventIds, Keyring, Left, MessageBatch, Witness
from zveil.act import TextAct
from zveil.durations import size_bytes
from zveil.engines.kafka.past import Past
from zveil.gate import Gate
from zveil.io import Format
from zveil.policy import Policy
from zveil.policy.policy import SMALLEST_GATE
from zveil.run import MAX_LINE, event_ids


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What every partition of a topic is made from, alike on every worker.

    Parameters
    ----------
    policy
        What is decided and what leaves.
    partitions
        How many the topic has: each may take its share of the memory.
    format
        How messages are written.
    columns
        Of CSV: what its columns are called.
    keyring
        The keys of the pseudonyms; None if user ids leave as they are.
    gate_key, ids_key
        32 secret bytes each.
    memory
        Bytes for all partitions where the policy has no limit.
    max_message
        A message of more bytes is bad.
    """

    policy: Policy
    partitions: int
    format: Format = Format.NDJSON
    columns: Sequence[str] = ()
    keyring: Keyring | None = None
    gate_key: bytes | None = None
    ids_key: bytes | None = None
    memory: int | None = None
    max_message: int = MAX_LINE

    @property
    def share(self) -> Policy:
        """The policy with a partition's share of the limits."""
        policy, count = self.policy, max(self.partitions, 1)
        limits, memory = policy.limits, self.memory
        if limits.memory is not None:
            memory = size_bytes(limits.memory, "memory")
        if memory is not None:
            memory = max(memory // count, SMALLEST_GATE * len(policy.attributes))
        values = limits.attributes
        if values is not None:
            values = max(values // count, len(policy.attributes))
        return replace(policy, limits=replace(limits, memory=memory, attributes=values))

    @property
    def span_ns(self) -> int:
        """How far back in the time of events anything can matter to a decision."""
        longest = max(each.window_ns for each in self.policy.attributes)
        return longest + self.policy.lateness_ns

    def act(self, gates: Sequence[Gate], ids: EventIds | None = None) -> TextAct:
        """Make what reads, asks and writes."""
        act = TextAct(
            self.policy,
            gates,
            self.format,
            self.format,
            keyring=self.keyring,
            max_line=self.max_message,
            stop_at_problem=False,
            ids=ids,
        )
        act.way.begin_messages(list(self.columns))
        return act

    def partition(self, number: int, *, begin: int, decided: int) -> Partition:
        """Make a partition that has seen nothing.

        Parameters
        ----------
        number
            Its own.
        begin
            The offset that it is read from.
        decided
            The first offset that is not decided yet: what comes before is only seen.
        """
        share = self.share
        gates = share.gates(key=self.gate_key)
        ids = event_ids(share, self.ids_key, None) if share.input.id is not None else None
        return Partition(number, self, gates, ids, begin=begin, decided=decided)


class Partition:
    """One partition on its way; as `Recipe.partition` makes it.

    Attributes
    ----------
    position
        The next offset.
    decided
        The first offset that is to be decided: what comes before is replayed.
    kept
        What was last committed.
    end
        The end of the partition as it was last told; marks of transactions may lie before it,
        which are no messages.
    is_newer
        What it has seen is newer than what is committed: it must decide nothing more.
    """

    def __init__(
        self,
        number: int,
        recipe: Recipe,
        gates: list[Gate],
        ids: EventIds | None,
        *,
        begin: int,
        decided: int,
    ) -> None:
        self.number = number
        self.position = begin
        self.decided = decided
        self.kept = decided
        self.end = begin
        self.gates = gates
        self.is_at_end = False
        self.is_newer = False
        self.replayed = 0
        self._ids = ids
        self._way = recipe.act(gates, ids).way
        self._past = Past(recipe.span_ns, begin)
        self._is_deciding = False
        self._bytes_in = self._bytes_out = 0
        # What was counted before the first decision, and up to the last that is kept.
        self._before: dict[Any, int] = {}
        self._settled: dict[Any, int] = {}

    @property
    def is_replaying(self) -> bool:
        """Whether it has not seen yet all that it had seen before."""
        return self.position < self.decided

    @property
    def mark(self) -> str:
        """What goes with a committed offset: where a replay up to it begins."""
        return self._past.mark

    def take(
        self, messages: MessageBatch, start: int, end: int, witness: Witness | None
    ) -> Left | None:
        """Take a run of messages, which are the next ones; None while they are replayed.

        All of them are to be replayed, or none.
        """
        silent = self.is_replaying
        if not silent and not self._is_deciding:
            self._is_deciding, self._before = True, dict(self._reading())
        left = self._way.decide_messages(
            self.gates,
            messages,
            start,
            end,
            silent=silent,
            ids=self._ids,
            witness=witness,
            partition=self.number,
        )
        self.position = messages.offset(end - 1) + 1
        self._past.note(self.position, self._clock_ns())
        if silent:
            self.replayed += end - start
            return None
        self._bytes_in += left.bytes_in
        self._bytes_out += left.bytes_out
        return left

    def settle(self) -> None:
        """Take note that what it has decided is committed: only that counts."""
        self.kept = max(self.kept, self.position)
        if self._is_deciding:
            self._settled = dict(self._reading())

    def counts(self) -> dict[Any, int]:
        """Count what was decided and is committed, by name; from any thread."""
        settled = self._settled
        return {name: count - self._before.get(name, 0) for name, count in settled.items()}

    @property
    def time_format(self) -> str | None:
        """What times are, as far as it is known."""
        return self._way.time_format

    def _clock_ns(self) -> int | None:
        clocks = [gate.stats(entries=False).clock_ns for gate in self.gates]
        return max((clock for clock in clocks if clock is not None), default=None)

    def _reading(self) -> Iterator[tuple[Any, int]]:
        yield "bytes_in", self._bytes_in
        yield "bytes_out", self._bytes_out
        tally = self._way.tally()
        for name in ("lines", "records", "passed", "repeated"):
            yield name, int(tally[name])
        yield "leaving", sum(tally["leaving"])
        for kind, count in tally["bad"].items():
            yield ("bad", kind), count
        for place, gate in enumerate(self.gates):
            stats = gate.stats(entries=False)
            for name in ("observed", "released", "late", "future", "invalid", "refused"):
                yield (name, place), getattr(stats, name)
        for place, levels in enumerate(tally["levels"]):
            for level, count in enumerate(levels):
                yield ("level", place, level), count
        for name in ("swapped", "filtered"):
            for place, count in enumerate(tally[name]):  # type: ignore[literal-required]
                yield (name, place), count
