"""What a worker came to, over all partitions that it held: the account, and the figures."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from zveil.engines.kafka.assignment import Assignment
from zveil.engines.kafka.keying import Keying
from zveil.engines.kafka.partition import Partition
from zveil.engines.kafka.sending import Sending
from zveil.gate import Stats
from zveil.policy import Attribute, Policy
from zveil.serve.monitor import Figures, Flow, Latencies, figures
from zveil.summary import Outcome, Summary


class Account:
    """Adds up what was decided; may be read from another thread while the worker goes on.

    Only what is committed counts: so each decision counts once, on one worker.

    Parameters
    ----------
    policy
        What is decided.
    held, delivery, keying
        Of the worker; the last is None where nothing is decided.
    """

    def __init__(
        self, policy: Policy, held: Assignment, delivery: Sending, keying: Keying | None
    ) -> None:
        self.lags: dict[int, int] = {}
        self.latencies = Latencies()
        self._policy = policy
        self._held = held
        self._delivery = delivery
        self._keying = keying
        self._gone: Counter[Any] = Counter()
        self._replayed = 0
        self._time_format: str | None = None
        self._began = time.monotonic()
        self._ended: float | None = None

    def drop(self, partitions: Iterable[Partition]) -> None:
        """Add what partitions came to that are not held any more."""
        for each in partitions:
            self._gone.update(each.counts())
            self._replayed += each.replayed
            self._time_format = each.time_format or self._time_format

    def stop(self) -> None:
        """Take note of the end, and of all that is held."""
        self._ended = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long it has worked."""
        return (self._ended or time.monotonic()) - self._began

    def summary(self) -> Summary:
        """Give the account at this moment."""
        counts, live = Counter(self._gone), self._held.all()
        for each in live:
            counts.update(each.counts())
        policy = self._policy
        found = Summary(policy=policy.fingerprint)
        found.lines = counts["lines"]
        found.records = counts["records"]
        found.passed = counts["passed"]
        found.left = counts["records"] if policy.record.empty == "blank" else counts["leaving"]
        found.bad = {
            name[1]: count
            for name, count in counts.items()
            if isinstance(name, tuple) and name[0] == "bad" and count
        }
        found.repeated = None if policy.input.id is None else counts["repeated"]
        found.outcomes = [_outcome(each, place, counts) for place, each in self._attributes()]
        found.bytes_in, found.bytes_out = counts["bytes_in"], counts["bytes_out"]
        found.state_bytes = sum(stats.bytes for stats in self._stats(live))
        found.seconds = self.seconds
        found.time_format = self._time_format
        for each in live:
            found.time_format = each.time_format or found.time_format
        return found

    def figures(self) -> Figures:
        """Give the figures as they stand."""
        return figures(
            self.summary(), self._stats(self._held.all()), self.latencies, flow=self.flow()
        )

    def flow(self) -> Flow:
        """Tell how it goes with Kafka."""
        live = self._held.all()
        return Flow(
            lags=dict(self.lags),
            replaying=sum(each.is_replaying for each in live),
            replayed=self._replayed + sum(each.replayed for each in live),
            moves=self._held.moves,
            commits=self._delivery.commits,
            aborts=self._delivery.aborts,
            split={} if self._keying is None else self._keying.split(),
        )

    def _attributes(self) -> list[tuple[int, Attribute]]:
        """Give those that are decided about: none where messages are only given keys."""
        return [] if self._keying is None else list(enumerate(self._policy.attributes))

    def _stats(self, live: list[Partition]) -> list[Stats]:
        """Add up what the gates of each attribute hold."""
        found = []
        for place, _ in self._attributes():
            held = [each.gates[place].stats(entries=False) for each in live if each.gates]
            sums = {
                name: sum(getattr(stats, name) for stats in held)
                for name in Stats.__dataclass_fields__
                if name != "clock_ns"
            }
            found.append(Stats(**sums, clock_ns=None))
        return found


def _outcome(attribute: Attribute, place: int, counts: Counter[Any]) -> Outcome:
    def of(name: str) -> int:
        return counts[name, place]

    known = of("released") + of("late") + of("future") + of("invalid")
    found = Outcome(
        attribute=attribute.field,
        z=attribute.z,
        window_ns=attribute.window_ns,
        observed=of("observed"),
        released=of("released"),
        few_users=of("observed") - known,
        late=of("late"),
        future=of("future"),
        empty=of("invalid") - of("filtered"),
        filtered=of("filtered"),
        refused=of("refused"),
        swapped=of("swapped") if attribute.swap else None,
    )
    if attribute.hierarchy is None:
        return found
    names = attribute.hierarchy.names
    return found.at_levels(names, [counts["level", place, level] for level in range(len(names))])
