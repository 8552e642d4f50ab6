"""Points of users in order, and what is left of them at coarser times."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zveil.audit.observations import Codes, Ints, Observations

_HOUR_NS = 3_600_000_000_000


class Resolution(enum.Enum):
    """How finely an observer knows times; weeks, days and hours are cut from the Unix epoch."""

    SET = ("set", 0, "all values, no times")
    WEEK = ("week", 7 * 24 * _HOUR_NS, "all values and their weeks")
    DAY = ("day", 24 * _HOUR_NS, "all values and their days")
    HOUR = ("hour", _HOUR_NS, "all values and their hours")
    MINUTE = ("minute", _HOUR_NS // 60, "all values and their minutes")

    def __init__(self, label: str, length_ns: int, knowledge: str) -> None:
        self.label = label
        self.length_ns = length_ns
        """0: no times at all."""
        self.knowledge = knowledge
        """What the observer is assumed to know of a user, in words."""

    def bins(self, time_ns: Ints) -> Ints:
        """Give the number of the bin that each time is in.

        >>> Resolution.DAY.bins(np.array([-1, 0, 86_400_000_000_000])).tolist()
        [-1, 0, 1]
        """
        return time_ns // self.length_ns if self.length_ns else np.zeros_like(time_ns)


@dataclass(frozen=True, kw_only=True)
class Traces:
    """The distinct points (value, bin of time) of each user, user by user."""

    value: Codes
    bin: Ints
    starts: Ints
    """Where the points of each user begin."""

    @property
    def counts(self) -> Ints:
        """How many points each user has."""
        return np.diff(self.starts, append=len(self.value))

    @property
    def user(self) -> Ints:
        """The user of each point."""
        return np.repeat(np.arange(len(self.starts)), self.counts)

    def packed(self) -> NDArray[np.uint64]:
        """Give each point as one number, the same for all who have it."""
        bins = (self.bin - self.bin.min(initial=0)).astype(np.uint64)
        found: NDArray[np.uint64] = (self.value.astype(np.uint64) << np.uint64(32)) | bins
        return found


@dataclass(frozen=True, kw_only=True)
class Points:
    """What visible users released, sorted by user, value and time.

    Sorted so, the distinct points of every resolution are found in one pass over neighbours. Users
    are numbered anew from 0: only those with something released are here.
    """

    user: Ints
    value: Codes
    time_ns: Ints
    starts: Ints
    """Where the rows of each user begin."""
    person: Ints
    """Who each user is, which an observer does not know: in several periods, several users."""
    period: Ints
    """The period that each user is seen in; users are compared with others of their period."""

    @classmethod
    def of(cls, observations: Observations) -> Points:
        """Sort the observations of a stream."""
        is_visible = np.bincount(observations.user, minlength=len(observations.users)) > 0
        persons = np.flatnonzero(is_visible)
        return cls._sorted(
            (np.cumsum(is_visible) - 1)[observations.user],
            observations.value,
            observations.time_ns,
            persons,
            np.zeros(len(persons), np.int64),
        )

    def rotated(self, length_ns: int) -> Points:
        """Make every user another one in each period; periods are cut from the Unix epoch."""
        period = self.time_ns // length_ns
        first = period.min(initial=0)
        # In the order of periods, so that the users of one period have numbers in a row.
        keys = (period - first) * len(self.starts) + self.user
        found, user = np.unique(keys, return_inverse=True)
        person = self.person[found % max(len(self.starts), 1)]
        return self._sorted(
            user.astype(np.int64),
            self.value,
            self.time_ns,
            person,
            found // max(len(self.starts), 1) + first,
        )

    @classmethod
    def _sorted(cls, user: Ints, value: Codes, time_ns: Ints, person: Ints, period: Ints) -> Points:
        if np.any(time_ns[1:] < time_ns[:-1]):
            by_time = np.argsort(time_ns, kind="stable")
            user, value, time_ns = user[by_time], value[by_time], time_ns[by_time]
        keys = user * (int(value.max(initial=0)) + 1) + value
        order = np.argsort(keys, kind="stable")
        user = user[order]
        return cls(
            user=user,
            value=value[order],
            time_ns=time_ns[order],
            starts=np.searchsorted(user, np.arange(len(person))),
            person=person,
            period=period,
        )

    @property
    def users(self) -> int:
        """How many there are."""
        return len(self.starts)

    def traces(self, resolution: Resolution) -> Traces:
        """Give each user's distinct points."""
        bins = resolution.bins(self.time_ns)
        is_first = np.ones(len(self.user), np.bool_)
        is_first[1:] = (
            (self.user[1:] != self.user[:-1])
            | (self.value[1:] != self.value[:-1])
            | (bins[1:] != bins[:-1])
        )
        before = np.cumsum(is_first) - 1
        return Traces(value=self.value[is_first], bin=bins[is_first], starts=before[self.starts])
