"""Unicity: how many users a few of their points single out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zveil.audit.observations import Ints
from zveil.audit.points import Resolution, Traces

POINTS = (1, 2, 3, 4, 5)
_Z_95 = 1.959963984540054
# Candidates looked at in one go.
_BLOCK = 1 << 22
_FIRST_WIDTH = 64


@dataclass(frozen=True, kw_only=True)
class Unicity:
    """Of users tried, how many `points` of their own single out."""

    points: int
    tried: int
    singled_out: int
    too_few: int
    """Visible users with fewer points than that, left out."""

    @property
    def share(self) -> float | None:
        """The share singled out; None if nobody has so many points."""
        return self.singled_out / self.tried if self.tried else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the share."""
        return wilson(self.singled_out, self.tried) if self.tried else None


class Index:
    """Who has which point: looks up users by points."""

    def __init__(self, traces: Traces) -> None:
        self.traces = traces
        _, points = np.unique(traces.packed(), return_inverse=True)
        self.point = points.astype(np.int64)
        """The number of each row's point."""
        order = np.argsort(self.point, kind="stable")
        self._users = traces.user[order]
        self._lengths = np.bincount(self.point)
        self._starts = np.cumsum(self._lengths) - self._lengths
        self._wide = len(traces.starts)
        self._pairs = self.point[order] * self._wide + self._users

    def has(self, users: Ints, points: Ints) -> NDArray[np.bool_]:
        """Whether each user has the point beside it."""
        wanted = points * self._wide + users
        places = np.searchsorted(self._pairs, wanted)
        places[places == len(self._pairs)] = 0
        found: NDArray[np.bool_] = self._pairs[places] == wanted
        return found

    def single_out(self, users: Ints, rows: Ints) -> NDArray[np.bool_]:
        """Whether nobody but the user has all of the points.

        Parameters
        ----------
        users
            Those tried.
        rows
            For each of them, in columns, rows of the traces that hold the points known.
        """
        points = self.point[rows]
        # The rarest first: those who have it are looked through for the others.
        rarest = np.argsort(self._lengths[points], axis=1, kind="stable")
        points = np.take_along_axis(points, rarest, axis=1)
        lengths, starts = self._lengths[points[:, 0]], self._starts[points[:, 0]]
        alone = np.ones(len(users), np.bool_)
        pending = np.arange(len(users))
        done, width = 0, _FIRST_WIDTH
        while len(pending):
            # A few of each first: where many share a point, another with all of them soon comes.
            takes = np.minimum(width, lengths[pending] - done)
            owners = np.repeat(pending, takes)
            ramp = np.arange(len(owners)) - np.repeat(np.cumsum(takes) - takes, takes)
            candidates = self._users[starts[owners] + done + ramp]
            is_other = candidates != users[owners]
            owners, candidates = owners[is_other], candidates[is_other]
            for column in range(1, points.shape[1]):
                has_too = self.has(candidates, points[owners, column])
                owners, candidates = owners[has_too], candidates[has_too]
            alone[owners] = False
            done += width
            pending = pending[alone[pending] & (lengths[pending] > done)]
            width = max(_FIRST_WIDTH, _BLOCK // max(len(pending), 1))
        return alone


def unicity(
    traces: Traces, *, sample: int, seed: int, points: Sequence[int] = POINTS
) -> list[Unicity]:
    """Try users with random points of theirs.

    Parameters
    ----------
    traces
        The distinct points of each user; those of other users are what they are held against.
    sample
        Most users tried for each number of points; all if there are fewer.
    seed
        The same seed draws the same users and points.
    points
        The numbers of points.
    """
    index = Index(traces)
    counts = traces.counts
    found = []
    for number in points:
        random = np.random.default_rng([seed, number])
        able = np.flatnonzero(counts >= number)
        if len(able) > sample:
            able = np.sort(random.choice(able, sample, replace=False))
        rows = traces.starts[able][:, None] + _draws(random, counts[able], number)
        found.append(
            Unicity(
                points=number,
                tried=len(able),
                singled_out=int(np.count_nonzero(index.single_out(able, rows))),
                too_few=int(np.count_nonzero(counts < number)),
            )
        )
    return found


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Give Wilson's 95 % interval of a share.

    >>> [round(end, 3) for end in wilson(0, 10)]
    [0.0, 0.278]
    """
    p, z2 = successes / trials, _Z_95**2
    middle = p + z2 / (2 * trials)
    half = _Z_95 * math.sqrt(p * (1 - p) / trials + z2 / (4 * trials**2))
    scale = 1 + z2 / trials
    # Exactly nothing and all at the ends, where rounding would leave a little.
    low = (middle - half) / scale if successes else 0.0
    high = (middle + half) / scale if successes < trials else 1.0
    return low, high


def _draws(random: np.random.Generator, counts: Ints, number: int) -> Ints:
    """Draw so many different numbers below each count."""
    drawn = np.empty((len(counts), number), np.int64)
    for column in range(number):
        fresh = random.integers(0, counts - column)
        # The numbers below `fresh` that were drawn before push it up, the smallest first.
        for before in np.sort(drawn[:, :column], axis=1).T:
            fresh += fresh >= before
        drawn[:, column] = fresh
    return drawn


def resolution_words(resolution: Resolution) -> str:
    """Say what one point is.

    >>> resolution_words(Resolution.HOUR)
    'a value and its hour'
    """
    return f"a value and its {resolution.label}" if resolution.length_ns else "a value"
