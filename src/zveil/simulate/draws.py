"""Poisson draws: who, what and when, cell by cell.

All users together are one Poisson stream. It is cut into cells of so much activity that a cell has
65,536 events on average, and each cell has random numbers of its own. So a cell is the same
whatever is drawn before it, however long the stream goes on, and whatever flashes come on top.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zveil.simulate.events import Events
from zveil.simulate.rates import Floats, Profile

CELL_EVENTS = 65_536


class Ranks:
    """Draws ranks with probabilities in proportion to weights.

    A random number is looked up in a table of equal slots; only where a slot holds the border of
    two ranks, the borders are searched.
    """

    def __init__(self, weights: Floats) -> None:
        self._borders = np.cumsum(weights)
        self._borders /= self._borders[-1]
        self._slots = 1 << max(10, min(20, 4 + len(weights).bit_length()))
        slots = np.arange(self._slots) / self._slots
        self._first = np.searchsorted(self._borders, slots, "right").astype(np.int32)

    def draw(self, random: np.random.Generator, count: int) -> NDArray[np.int32]:
        """Draw so many, from 1."""
        at = random.random(count)
        found = self._first[(at * self._slots).astype(np.int32)]
        rows = np.flatnonzero(at >= self._borders[found])
        found[rows] = np.searchsorted(self._borders, at[rows], "right")
        found += 1
        return found


class OneRank:
    """Draws one rank always."""

    def __init__(self, rank: int) -> None:
        self._rank = rank

    def draw(self, _: np.random.Generator, count: int) -> NDArray[np.int32]:
        """Draw so many."""
        return np.full(count, self._rank, np.int32)


class Users:
    """Draws users in proportion to their factors; classes are ranges of numbers, in their order.

    Parameters
    ----------
    counts
        Users in each class.
    factors
        What their rates are multiplied by.
    """

    def __init__(self, counts: NDArray[np.int64], factors: Floats) -> None:
        self._numbers = np.concatenate([[0], np.cumsum(counts)]).astype(np.float64)
        self._weights = np.concatenate([[0.0], np.cumsum(counts * factors)])

    @property
    def weight(self) -> float:
        """How many users of factor 1 they amount to."""
        return float(self._weights[-1])

    def draw(self, random: np.random.Generator, count: int) -> NDArray[np.int32]:
        """Draw so many, from 1."""
        at = random.random(count)
        if len(self._numbers) == 2:
            at *= self._numbers[-1]
        else:
            at = np.interp(at * self._weights[-1], self._weights, self._numbers)
        # Rounding may reach the upper end, which belongs to nobody.
        np.minimum(at, self._numbers[-1] - 1, out=at)
        found = at.astype(np.int32)
        found += 1
        return found


class Cell(NamedTuple):
    """Some events in order of time, where they are in the stream, and how far they reach."""

    number: int
    events: Events
    until_ms: int
    """No event of a later cell is before this."""


@dataclass(frozen=True)
class Component:
    """A Poisson stream that others are laid over.

    Times count from the midnight before the stream, at `midnight_ms`.
    """

    number: int
    """Tells its random numbers from those of others."""
    midnight_ms: int
    start_ms: int
    end_ms: int
    rate: float
    """Events per millisecond of activity."""
    users: Users
    ranks: Ranks | OneRank
    profile: Profile

    def cells(self, seed: int) -> Iterator[Cell]:
        """Draw it, cell by cell."""
        begin, end = self.profile.activity([self.start_ms, self.end_ms])
        length = CELL_EVENTS / self.rate
        for number in itertools.count():
            first, last = begin + number * length, begin + (number + 1) * length
            if first >= end:
                return
            random = generator(seed, self.number, number)
            at = random.random(random.poisson(CELL_EVENTS))
            at *= length
            at += first
            # Rounding must not carry an event past the first one of the next cell.
            np.minimum(at, last, out=at)
            at.sort()
            users = self.users.draw(random, len(at))
            ranks = self.ranks.draw(random, len(at))
            times = self.profile.times_ms(at).astype(np.int64)
            np.clip(times, self.start_ms, self.end_ms - 1, out=times)
            times += self.midnight_ms
            events = Events(times, users, ranks)
            # All of a cell is drawn, so that a longer stream begins with a shorter one.
            events = events.at(slice(0, int(np.searchsorted(at, end))))
            reached = min(float(self.profile.times_ms([last])[0]), self.end_ms)
            yield Cell(number, events, self.midnight_ms + int(reached))


def generator(seed: int, *place: int) -> np.random.Generator:
    """Make random numbers for one place of a stream; they do not depend on any other."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=place)))
