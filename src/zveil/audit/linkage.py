"""Linkage: whether users are found again once their pseudonyms have changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zveil.audit.crowds import class_sizes, fingerprints
from zveil.audit.observations import Ints
from zveil.audit.points import Points, Resolution, Traces
from zveil.audit.unicity import wilson


@dataclass(frozen=True, kw_only=True)
class Linkage:
    """Users seen in one period and the next, and how many of them an observer matches by sets."""

    both: int
    """Cases of a user who is visible in a period and in the one after it."""
    same_set: int
    """Of `both`: matched because their set is equal, and nobody else's in either period."""
    same_set_wrong: int
    """Matches by equal sets that join two people."""
    tried: int
    """Of `both`: cases drawn for the match by likeness."""
    alike: int
    """Of `tried`: the set most like theirs in the next period is their own."""
    by_chance: float
    """What guessing blindly would match, on average, of one case."""

    @property
    def same_set_share(self) -> float | None:
        """The share of cases matched by equal sets."""
        return self.same_set / self.both if self.both else None

    @property
    def alike_share(self) -> float | None:
        """The share of cases tried that were matched by likeness."""
        return self.alike / self.tried if self.tried else None

    @property
    def alike_interval(self) -> tuple[float, float] | None:
        """The 95 % interval of `alike_share`."""
        return wilson(self.alike, self.tried) if self.tried else None


def linkage(points: Points, *, sample: int, seed: int) -> Linkage | None:
    """Match the users of each period with those of the next.

    By equal sets of values; and by likeness, as someone would who expects sets to change: the share
    of values in common, where a value weighs the more the fewer have it. A tie is no match.

    Parameters
    ----------
    points
        Rotated: a person is another user in each period.
    sample, seed
        Most cases tried by likeness, and what draws them.

    Returns
    -------
    None if nobody is seen in two periods: then ids really changed, and it cannot be known.
    """
    by_person = np.lexsort((points.period, points.person))
    person, period = points.person[by_person], points.period[by_person]
    is_again = person[1:] == person[:-1]
    if not np.any(is_again):
        return None
    is_next = is_again & (period[1:] == period[:-1] + 1)
    first, second = by_person[:-1][is_next], by_person[1:][is_next]
    traces = points.traces(Resolution.SET)
    right, wrong = _equal_sets(points, traces)
    random = np.random.default_rng([seed, 0])
    tried = np.arange(len(first))
    if len(tried) > sample:
        tried = np.sort(random.choice(tried, sample, replace=False))
    _, places, sizes = np.unique(points.period, return_inverse=True, return_counts=True)
    likeness = _Likeness(traces, places, np.cumsum(sizes) - sizes, sizes)
    alike = sum(
        likeness.nearest(one, int(places[two])) == two
        for one, two in zip(first[tried].tolist(), second[tried].tolist(), strict=True)
    )
    return Linkage(
        both=len(first),
        same_set=right,
        same_set_wrong=wrong,
        tried=len(tried),
        alike=alike,
        by_chance=float(np.mean(1 / sizes[places[second]])) if len(second) else 0.0,
    )


def _equal_sets(points: Points, traces: Traces) -> tuple[int, int]:
    """Count matches by equal sets that nobody else has: right ones and wrong ones."""
    one, two = fingerprints(traces)
    alone = np.flatnonzero(class_sizes(points, traces) == 1)
    order = alone[np.lexsort((points.period[alone], two[alone], one[alone]))]
    before, after = order[:-1], order[1:]
    is_match = (
        (one[before] == one[after])
        & (two[before] == two[after])
        & (points.period[after] == points.period[before] + 1)
    )
    is_right = is_match & (points.person[before] == points.person[after])
    return int(np.count_nonzero(is_right)), int(np.count_nonzero(is_match & ~is_right))


class _Likeness:
    """Finds the user of a period whose set is most like a given one.

    The users of a period have numbers in a row.
    """

    def __init__(self, traces: Traces, places: Ints, firsts: Ints, sizes: Ints) -> None:
        self._traces, self._firsts, self._sizes = traces, firsts, sizes
        self._counts = traces.counts
        users = traces.user
        self._wide = int(traces.value.max(initial=0)) + 1
        keys = places[users] * self._wide + traces.value
        order = np.argsort(keys, kind="stable")
        self._users = users[order]
        self._keys, starts, lengths = np.unique(keys[order], return_index=True, return_counts=True)
        self._starts, self._lengths = starts, lengths
        weights = np.log((sizes[self._keys // self._wide] + 1) / lengths)
        self._weights = weights
        self._totals = np.bincount(
            self._users, np.repeat(weights, lengths), minlength=len(traces.starts)
        )

    def nearest(self, user: int, place: int) -> int | None:
        """Give the one user of the period whose set is most like; None if there is a tie."""
        start = self._traces.starts[user]
        values = self._traces.value[start : start + self._counts[user]]
        wanted = place * self._wide + values.astype(np.int64)
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        is_there = self._keys[at] == wanted
        at = at[is_there]
        size, first = int(self._sizes[place]), int(self._firsts[place])
        # A value that nobody has in the next period weighs as if one user had it.
        own = self._weights[at].sum() + np.count_nonzero(~is_there) * np.log(size + 1)
        lengths = self._lengths[at]
        ramp = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        holders = self._users[np.repeat(self._starts[at], lengths) + ramp] - first
        common = np.bincount(holders, np.repeat(self._weights[at], lengths), minlength=size)
        scores = common / (own + self._totals[first : first + size] - common)
        best = scores.max(initial=0.0)
        if best <= 0:
            return None
        # Sums of the same weights in another order differ in their last bits.
        near = np.flatnonzero(scores >= best * (1 - 1e-9))
        return first + int(near[0]) if len(near) == 1 else None
