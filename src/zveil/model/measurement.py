"""What the gate's output comes to on a trace: the real gate, and how many users then look alike."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from zveil.gate import Gate
from zveil.model.parameters import Count, counted, positive, whole
from zveil.model.trace import Ints, Trace

# Where so many windows follow it, the first is left out: the gate begins empty, and releases less.
_FOLLOWING = 3
_DEVIATIONS = 2.5758293035489004  # 99 of 100 draws from a normal distribution are within these
_MASKS = 48  # decisions kept, an eighth of a byte an observation each
_ODD = np.uint64(0x9E3779B97F4A7C15)

Mask = NDArray[np.bool_]
Words = NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What a z came to on a trace, with user ids that change every so many windows.

    Attributes
    ----------
    z, rotate_every
        What was measured.
    windows
        Windows that each period really has: fewer than ``rotate_every`` where the trace is shorter.
    periods
        How many were measured.
    visible
        Users with something released, those of each period counted anew.
    counted
        Users that p_k is the share of: those visible, or all of each period.
    p_k
        Share of them who had the same set released as at least k - 1 others of their period; None
        where there are none.
    low, high
        The bounds of p_k: a 99 % Wilson interval, in which ``counted / k`` users stand for
        themselves, since whoever is hidden is hidden together with k - 1 others at least.
    released
        Share of observations released.
    """

    z: int
    rotate_every: float
    windows: float
    periods: int
    visible: int
    counted: int
    p_k: float | None
    low: float
    high: float
    released: float


def measure(
    trace: Trace, z: int, *, k: int = 2, rotate_every: float = 24, count: Count = "visible"
) -> Measurement:
    """Run the gate over a trace and measure how many users are one of at least k.

    The first window is left out where at least three more follow, because the gate begins empty.
    The rest is cut into periods; a last piece that is shorter is left out unless it is the only
    one.

    Parameters
    ----------
    trace
        What was observed.
    z
        For the gate; from 1.
    k
        Users who must share a set, the user among them; from 1.
    rotate_every
        Windows after which user ids change; above 0.
    count
        Whether the share is taken of ``"visible"`` users, or of ``"all"``.

    Examples
    --------
    >>> trace = Trace.of_columns(
    ...     [0, 1, 2, 3], ["ada", "bob", "cyd", "bob"], ["x", "x", "x", "y"], window="1h"
    ... )
    >>> found = measure(trace, z=2, k=2)
    >>> found.visible, found.p_k, found.released
    (2, 1.0, 0.5)
    """
    return Meter(trace, k=k, count=count).at(z, rotate_every)


class Meter:
    """Measures a trace at one z after another; keeps the last decisions and the last periods."""

    def __init__(self, trace: Trace, *, k: int, count: Count) -> None:
        self._trace, self._k, self._count = trace, whole(k, "k", 1), counted(count)
        self.warm_up = int(trace.whole_windows > _FOLLOWING)
        """Windows left out in the beginning."""
        self.windows = trace.whole_windows - self.warm_up
        """Windows that are measured."""
        self._start_ns = trace.start_ns + self.warm_up * trace.window_ns
        since = trace.time_ns - self._start_ns
        self._is_measured = (since >= 0) & (since < self.windows * trace.window_ns)
        self._measured = int(np.count_nonzero(self._is_measured))
        self._order = _by_user_and_attribute(trace)
        # Sets are compared by sums of random words, one for each attribute. That two different
        # sets of n are taken for one has a chance of about n^2 / 2^65.
        random = np.random.default_rng(secrets.randbits(128))
        self._words = random.integers(0, 2**64, trace.attributes, dtype=np.uint64)
        self._packed = lru_cache(maxsize=_MASKS)(self._decide)
        self._periods = lru_cache(maxsize=1)(self._cut)

    def at(self, z: int, rotate_every: float) -> Measurement:
        """Measure one z and period; see `measure`."""
        packed = self._packed(whole(z, "z", 1))
        mask = np.unpackbits(packed, count=len(self._trace)).view(np.bool_)
        periods = self._periods(positive(rotate_every, "rotate_every"))
        visible, hidden = periods.hidden(mask, self._k)
        users = int(visible.sum())
        if self._count == "all":
            # Those with nothing released are all alike.
            everyone = self._trace.users
            silent = everyone - visible
            hidden += int(silent[silent >= self._k].sum())
            hidden += (periods.count - len(visible)) * everyone * (everyone >= self._k)
            users = everyone * periods.count
        low, high = wilson(hidden / users, users / self._k) if users else (0.0, 1.0)
        kept = int(np.count_nonzero(mask & self._is_measured))
        return Measurement(
            z=z,
            rotate_every=rotate_every,
            windows=min(rotate_every, self.windows),
            periods=periods.count,
            visible=int(visible.sum()),
            counted=users,
            p_k=hidden / users if users else None,
            low=low,
            high=high,
            released=kept / self._measured if self._measured else 0.0,
        )

    def _decide(self, z: int) -> NDArray[np.uint8]:
        """Run a gate for each field over the trace, as it came."""
        trace = self._trace
        masks = [np.empty(0, np.bool_)]
        for rows in trace.fields:
            # Whether a time is in the future is for those to say who read the trace.
            gate = Gate(z, f"{trace.window_ns}ns", max_future=None, time_unit="ns")
            masks.append(
                gate.observe_many(trace.time_ns[rows], trace.user[rows], trace.attribute[rows])
            )
        return np.packbits(np.concatenate(masks))

    def _cut(self, rotate_every: float) -> _Periods:
        trace, order = self._trace, self._order
        length_ns = max(round(rotate_every * trace.window_ns), 1)
        measured_ns = self.windows * trace.window_ns
        count = max(measured_ns // length_ns, 1)
        since = trace.time_ns[order] - self._start_ns
        is_in = (since >= 0) & (since < min(count * length_ns, measured_ns))
        rows = order[is_in]
        return _Periods(
            count,
            rows,
            (since[is_in] // length_ns),
            trace.user[rows].astype(np.int64),
            trace.attribute[rows],
            self._words,
            len(trace),
        )


class _Periods:
    """What users showed in each period, ready to be looked through for any decisions.

    The rows come sorted by user, attribute and time.
    """

    def __init__(
        self,
        count: int,
        rows: Ints,
        period: Ints,
        user: Ints,
        attribute: NDArray[np.int32],
        words: Words,
        observations: int,
    ) -> None:
        self.count = count
        is_first = np.ones(len(rows), np.bool_)
        is_first[1:] = (
            (user[1:] != user[:-1])
            | (attribute[1:] != attribute[:-1])
            | (period[1:] != period[:-1])
        )
        # Points, (user, period, attribute) once each, in the order of (user, period).
        holder = user[is_first] * count + period[is_first]
        order = np.argsort(holder, kind="stable")
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order))
        self._words = words[attribute[is_first][order]]
        self._point = np.full(observations, len(order), np.int32)
        self._point[rows] = place[np.cumsum(is_first) - 1]
        holder = holder[order]
        self._starts = np.flatnonzero(np.diff(holder, prepend=-1))
        self._period = holder[self._starts] % count

    def hidden(self, mask: Mask, k: int) -> tuple[Ints, int]:
        """Count the visible users of each period that has any, and those of all who are k alike."""
        points = len(self._words)
        is_held = np.zeros(points + 1, np.bool_)
        is_held[self._point[mask]] = True
        if not is_held[:points].any():
            return np.zeros(0, np.int64), 0
        is_held = is_held[:points]
        is_visible = np.logical_or.reduceat(is_held, self._starts)
        sets = np.add.reduceat(np.where(is_held, self._words, np.uint64(0)), self._starts)
        period = self._period[is_visible]
        found = np.sort(sets[is_visible] + period.astype(np.uint64) * _ODD)
        sizes = np.diff(np.flatnonzero(np.diff(found)) + 1, prepend=0, append=len(found))
        # Never a place for each period: one wrong time can make billions of empty ones.
        visible = np.unique(period, return_counts=True)[1]
        return visible.astype(np.int64), int(sizes[sizes >= k].sum())


def _by_user_and_attribute(trace: Trace) -> Ints:
    """Sort the rows by user, attribute and time."""
    keys = trace.user.astype(np.int64) * trace.attributes + trace.attribute
    order = np.argsort(keys, kind="stable")
    times, ordered = trace.time_ns[order], keys[order]
    # Nothing more to do where time is in order, as it nearly always is.
    if np.any((times[1:] < times[:-1]) & (ordered[1:] == ordered[:-1])):
        order = np.lexsort((trace.time_ns, keys))
    return order


def wilson(share: float, trials: float) -> tuple[float, float]:
    """Give the 99 % interval of a share of so many trials, by Wilson's score.

    >>> [round(end, 3) for end in wilson(0.5, 100)]
    [0.375, 0.625]
    """
    square = _DEVIATIONS**2
    scale = 1 + square / trials
    middle = share + square / (2 * trials)
    half = _DEVIATIONS * sqrt(share * (1 - share) / trials + square / (4 * trials**2))
    # Rounding must not put a share of 0 or 1 outside.
    low, high = (middle - half) / scale, (middle + half) / scale
    return max(min(low, share), 0.0), min(max(high, share), 1.0)
