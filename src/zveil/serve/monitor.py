"""What goes on in a stream, in figures: for `/metrics`, for the console, and for tests."""

from __future__ import annotations

import bisect
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zveil.gate import Stats
from zveil.meter import Reading
from zveil.summary import Summary

BOUNDS_S = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
)  # fmt: skip
"""Upper bounds of the histogram of latencies, in seconds."""

SECONDS, MINUTES = 600, 1440
"""How many figures are kept: one a second for ten minutes, one a minute for a day."""

_LATELY = 4096


@dataclass(frozen=True, kw_only=True)
class Part:
    """The figures of one attribute; its name is a field's, which the policy says."""

    attribute: str
    z: int
    window_ns: int
    observed: int
    released: int
    veiled: Mapping[str, int]
    """By reason: ``few_users``, ``late``, ``future``, ``empty``, ``filtered``."""
    refused: int
    """How many of those with few users met the memory limit."""
    attributes: int
    """Values remembered now."""
    state_bytes: int


@dataclass(frozen=True, kw_only=True)
class Latency:
    """How long decisions took, from the arrival of what was decided; not each line by itself."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS_S) + 1)
    """How many took no longer than each of `BOUNDS_S`, and longer than the one before; then the
    rest."""
    sum_s: float = 0.0

    @property
    def count(self) -> int:
        """How many were measured."""
        return sum(self.counts)


@dataclass(frozen=True, kw_only=True)
class Flow:
    """How it goes with Kafka; counts are since the worker's start."""

    lags: Mapping[int, int]
    """By partition: messages that are there and not decided."""
    replaying: int = 0
    """Partitions that rebuild what they had seen, and decide nothing yet."""
    replayed: int = 0
    """Messages that were seen again for that."""
    moves: int = 0
    """Times that partitions came or went."""
    commits: int = 0
    aborts: int = 0
    split: Mapping[str, int] = field(default_factory=dict)
    """By attribute: times that a value came on another partition than before."""


@dataclass(frozen=True, kw_only=True)
class Holding:
    """How a level of k-anonymity is held."""

    k: int
    wanted: float
    """The share of visible users who are to be k alike when the period ends."""
    z: int | None
    """What is needed now; None where nothing is released."""
    outlook: float | None
    """What the period is expected to end with; None where nothing is known."""
    changes: Mapping[str, int]
    """How often z was set, by what became of it: ``opened``, ``raised``, ``lowered``,
    ``closed``."""

    @classmethod
    def of(cls, account: Mapping[str, Any]) -> Holding:
        """Read it off what `zveil.hold.Controller.account` gives."""
        return cls(
            k=account["k"],
            wanted=account["p"],
            z=account["z"],
            outlook=account["outlook"],
            changes=account["tally"],
        )


@dataclass(frozen=True, kw_only=True)
class Figures:
    """How a stream stands at a moment; counts are since its start. No value of the data is here."""

    at: float
    """Seconds since 1970."""
    policy: str
    """The policy's fingerprint."""
    lines: int = 0
    """Lines of text that came in."""
    records: int = 0
    """Good records: each was decided."""
    left: int = 0
    """Records that left."""
    observed: int = 0
    """Observations decided, over all attributes."""
    released: int = 0
    veiled: Mapping[str, int] = field(default_factory=dict)
    """By reason, over all attributes: ``few_users``, ``late``, ``future``, ``empty``,
    ``filtered``."""
    late: int = 0
    bad: Mapping[str, int] = field(default_factory=dict)
    """Bad lines, by kind."""
    repeated: int = 0
    """Events left out because their id had been seen."""
    attributes: int = 0
    """Values remembered now, over all attributes."""
    state_bytes: int = 0
    latency_ms: Mapping[float, float] = field(default_factory=dict)
    """The median and the 99th percentile of the last decisions: keys 0.5 and 0.99; empty before
    the first."""
    latency: Latency = field(default_factory=Latency)
    snapshot_age: float | None = None
    """Seconds since the state was saved; None if it never was."""
    snapshot_failures: int = 0
    parts: tuple[Part, ...] = ()
    """Each attribute, in the order of the policy."""
    meter: Reading | None = None
    """How many visible users look the same in the present period; None without a meter."""
    meter_bytes: int = 0
    hold: Holding | None = None
    """What is done to hold a level of k-anonymity; None where none is."""
    flow: Flow | None = None
    """Of a worker of Kafka."""

    @property
    def z(self) -> int:
        """The smallest z of all attributes."""
        return min((part.z for part in self.parts), default=0)

    @property
    def window_ns(self) -> int:
        """The longest window of all attributes."""
        return max((part.window_ns for part in self.parts), default=0)


class Latencies:
    """Measures how long decisions take; may be told from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._sum_s = 0.0
        self._lately: deque[float] = deque(maxlen=_LATELY)

    def add(self, seconds: float) -> None:
        """Count one."""
        with self._lock:
            self._counts[bisect.bisect_left(BOUNDS_S, seconds)] += 1
            self._sum_s += seconds
            self._lately.append(seconds)

    def all(self) -> Latency:
        """Give the histogram since the start."""
        with self._lock:
            return Latency(counts=tuple(self._counts), sum_s=self._sum_s)

    def quantiles_ms(self, shares: Sequence[float] = (0.5, 0.99)) -> dict[float, float]:
        """Give quantiles of the last few thousand, in milliseconds; nothing without any."""
        with self._lock:
            lately = sorted(self._lately)
        if not lately:
            return {}
        last = len(lately) - 1
        return {share: 1e3 * lately[round(share * last)] for share in shares}


class Monitor:
    """Figures of a stream, now and over the past day.

    Parameters
    ----------
    read
        Gives the figures as they stand. It is called by one thread at a time.

    Examples
    --------
    >>> monitor = Monitor(lambda: Figures(at=time.time(), policy=""))
    >>> monitor.tick()
    >>> len(monitor.history()), monitor.now().observed
    (1, 0)
    """

    def __init__(self, read: Callable[[], Figures]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._seconds: deque[Figures] = deque(maxlen=SECONDS)
        self._minutes: deque[Figures] = deque(maxlen=MINUTES)

    def now(self) -> Figures:
        """Give the figures as they stand; takes a moment where much is being decided."""
        with self._lock:
            return self._read()

    def tick(self) -> None:
        """Keep the figures as they stand; to be called once a second."""
        with self._lock:
            found = self._read()
            self._seconds.append(found)
            if not self._minutes or found.at - self._minutes[-1].at >= 60:
                self._minutes.append(found)

    def history(self) -> list[Figures]:
        """Give the past, oldest first: one a minute for a day, one a second for ten minutes."""
        with self._lock:
            seconds = list(self._seconds)
            first = seconds[0].at if seconds else 0.0
            return [each for each in self._minutes if each.at < first] + seconds


def figures(
    summary: Summary,
    held: Sequence[Stats],
    latencies: Latencies,
    *,
    snapshot_age: float | None = None,
    snapshot_failures: int = 0,
    flow: Flow | None = None,
) -> Figures:
    """Put the figures together.

    Parameters
    ----------
    summary
        The account of the stream.
    held
        What the gate of each attribute holds.
    latencies
        How long decisions took.
    snapshot_age, snapshot_failures, flow
        As in `Figures`.
    """
    parts = [
        Part(
            attribute=each.attribute,
            z=each.z,
            window_ns=each.window_ns,
            observed=each.observed,
            released=each.released,
            veiled={
                "few_users": each.few_users,
                "late": each.late,
                "future": each.future,
                "empty": each.empty,
                "filtered": each.filtered,
            },
            refused=each.refused,
            attributes=stats.attributes,
            state_bytes=stats.bytes,
        )
        for each, stats in zip(summary.outcomes, held, strict=True)
    ]
    reasons = parts[0].veiled if parts else {}
    veiled = {reason: sum(part.veiled[reason] for part in parts) for reason in reasons}
    return Figures(
        at=time.time(),
        policy=summary.policy,
        lines=summary.lines,
        records=summary.records,
        left=summary.left,
        observed=summary.observed,
        released=summary.released,
        veiled=veiled,
        late=veiled.get("late", 0),
        bad=dict(summary.bad),
        repeated=summary.repeated or 0,
        attributes=sum(part.attributes for part in parts),
        state_bytes=sum(part.state_bytes for part in parts),
        latency_ms=latencies.quantiles_ms(),
        latency=latencies.all(),
        snapshot_age=snapshot_age,
        snapshot_failures=snapshot_failures,
        parts=tuple(parts),
        meter=None if summary.meter is None else summary.meter.present.brief(),
        meter_bytes=0 if summary.meter is None else summary.meter.bytes,
        hold=None if summary.hold is None else Holding.of(summary.hold),
        flow=flow,
    )
