"""k: how many visible users show exactly the same as a user does."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zveil.audit.observations import Ints
from zveil.audit.points import Points, Resolution, Traces
from zveil.meter import KS

GROUPS = ((1, 1), (2, 2), (3, 4), (5, 9), (10, 19), (20, None))
"""What users are counted in by their k, from and to."""

Words = NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class Crowds:
    """The distribution of k over visible users, for one thing that an observer may know."""

    resolution: Resolution
    users: int
    at_least: dict[int, int]
    """For each k of `KS`: users whose k is at least that."""
    groups: tuple[int, ...]
    """Users in each of `GROUPS`."""
    classes: int
    """Different sets: each stands for a class of users who look the same."""
    entropy_bits: float
    """What the knowledge says about who it is: the entropy of the classes."""
    most_bits: float
    """What would name one user among all."""

    @property
    def shares(self) -> dict[int, float | None]:
        """The shares of users whose k is at least 2, 3, 5, 10; None if there are no users."""
        return {k: share(count, self.users) for k, count in self.at_least.items()}

    @property
    def alone(self) -> int:
        """Users whom nobody equals: singled out."""
        return self.groups[0]


def crowds(k: Ints, resolution: Resolution, among: Ints | None = None) -> Crowds:
    """Count users by their k.

    Parameters
    ----------
    k
        For each user, as `class_sizes` gives it.
    resolution
        What it was found at.
    among
        For each user, how many they are compared with, themselves included; all by default.

    Examples
    --------
    >>> found = crowds(np.array([2, 2, 1, 1]), Resolution.SET)
    >>> found.shares[2], found.classes, found.entropy_bits, found.most_bits
    (0.5, 3, 1.5, 2.0)
    """
    users = len(k)
    if among is None:
        among = np.full(users, users)
    return Crowds(
        resolution=resolution,
        users=users,
        at_least={least: int(np.count_nonzero(k >= least)) for least in KS},
        groups=tuple(
            int(np.count_nonzero((k >= low) & (k <= (high or users)))) for low, high in GROUPS
        ),
        classes=round(float(np.sum(1 / k))),
        # A class of k adds -k/n log2(k/n): each of its users -1/n log2(k/n).
        entropy_bits=float(np.mean(np.log2(among / k))) if users else 0.0,
        most_bits=float(np.mean(np.log2(among))) if users else 0.0,
    )


def class_sizes(points: Points, traces: Traces) -> Ints:
    """Give k for each user: how many of their period have exactly the same set of points.

    Sets are compared by fingerprints of 128 bits under a random key. That two different ones among
    n are taken for one has a chance of about n^2 / 2^129: 10^-25 for ten million users.
    """
    if points.users == 0:
        return np.empty(0, np.int64)
    one, two = fingerprints(traces)
    order = np.lexsort((two, one, points.period))
    is_first = np.ones(points.users, np.bool_)
    for column in (one, two, points.period):
        ordered = column[order]
        is_first[1:] &= ordered[1:] == ordered[:-1]
    # Now true where a user equals the one before, except for the first.
    is_first[1:] = ~is_first[1:]
    classes = np.cumsum(is_first) - 1
    k = np.empty(points.users, np.int64)
    k[order] = np.bincount(classes)[classes]
    return k


def fingerprints(traces: Traces) -> tuple[Words, Words]:
    """Give two words of 64 bits for each user's set, equal for equal sets of any order.

    Each point becomes a random word, and the words of a set are added up modulo 2^64. A point is
    in a set once, so that two different sets differ by words that nothing cancels.
    """
    packed = traces.packed()
    one, two = (np.add.reduceat(_mixed(packed), traces.starts) for _ in range(2))
    return one, two


def share(part: int, whole: int) -> float | None:
    """Give a share, or None of nothing."""
    return part / whole if whole else None


def _mixed(words: Words) -> Words:
    """Turn numbers into words that look random, under a key that is drawn for this once.

    Not by tables: their words for (a, c), (b, d), (a, d) and (b, c) would cancel out.
    """
    for _ in range(2):
        words = words ^ np.uint64(secrets.randbits(64))
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        words ^= words >> np.uint64(31)
    return words
