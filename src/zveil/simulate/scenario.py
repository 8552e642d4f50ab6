"""A scenario: who exposes what how often. It gives the events, and what to expect of them."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zveil.durations import Duration
from zveil.simulate.arrival import arriving
from zveil.simulate.draws import Component, OneRank, Ranks, Users
from zveil.simulate.events import Events, blocks
from zveil.simulate.rates import DAY_MS, Floats, Profile, calibrated, curve, exposed, power_law
from zveil.simulate.table import Table
from zveil.simulate.variations import Flash, Late, UserClass, duration_ms

START = 1_577_836_800
"""2020-01-01T00:00:00Z: a gate refuses times that are yet to come."""

# Unix times of ten digits: 2001-09-09 to 2286-11-20.
_FIRST, _LAST = 10**9, 10**10
_MOST_USERS = 2**31 - 1
_MOST_ATTRIBUTES = 10_000_000
_MOST_PER_MS = 1_000_000
_ROWS = 65_536


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A made-up stream of events: users expose attributes as Poisson processes.

    In a window a user exposes the attribute of rank r ``rate / r ** exponent`` times on average, so
    at least once with the probability ``p^X = 1 - exp(-rate / r ** exponent)``. The defaults are
    those of the paper. The same scenario gives the same events, with the same NumPy.

    Parameters
    ----------
    users
        From 1 to 2**31 - 1; they are numbered from 1.
    attributes
        From 1 to 10,000,000; they are numbered from 1, the most popular.
    rate
        Of the attribute of rank 1, per user and window; above 0.
    exponent
        How steeply rates fall with the rank; 0 or more.
    window
        Whole milliseconds.
    windows
        How many windows the stream lasts; from 1.
    start
        Unix time in whole seconds, from 2001-09-09 to 2286-11-20.
    seed
        0 or more.
    popularity
        Points (rank, p^X) instead of `rate` and `exponent`: rates are such that p^X, averaged over
        users and the windows of a day, lies on the line through them, straight on log-log scales.
        What a flash adds comes on top.
    classes
        Shares of the users with rates of their own. The first share has the lowest numbers.
    diurnal
        0 for the same rate at all hours, 1 for a full day and night (UTC), in between for less.
        Days have as many events as without; p^X is less, as activity crowds into fewer windows.
    flashes
        Crowds that come suddenly, on top.
    late
        Which events arrive after younger ones.
    title
        What this is, for whoever finds a file of it.

    Examples
    --------
    >>> scenario = Scenario(users=100, attributes=10, windows=3)
    >>> next(scenario.columns()).rank[:5]
    array([1, 7, 1, 3, 2], dtype=int32)
    """

    users: int = 50_000
    attributes: int = 5_000
    rate: float = 0.05
    exponent: float = 1.0
    window: Duration = "1h"
    windows: int = 25
    start: int = START
    seed: int = 1
    popularity: tuple[tuple[float, float], ...] = ()
    classes: tuple[UserClass, ...] = ()
    diurnal: float = 0.0
    flashes: tuple[Flash, ...] = ()
    late: Late | None = None
    title: str = "Poisson users with power-law attributes"

    def __post_init__(self) -> None:
        _check_whole("users", self.users, 1, _MOST_USERS)
        _check_whole("attributes", self.attributes, 1, _MOST_ATTRIBUTES)
        _check_whole("windows", self.windows, 1, 10**9)
        _check_whole("start", self.start, _FIRST, _LAST - 1)
        _check_whole("seed", self.seed, 0, 2**63 - 1)
        if not 0 < self.rate < math.inf:
            raise ValueError(f"rate: expected a number above 0, got {self.rate!r}")
        if not 0 <= self.exponent < math.inf:
            raise ValueError(f"exponent: expected a number of at least 0, got {self.exponent!r}")
        if not 0 <= self.diurnal <= 1:
            raise ValueError(f"diurnal: expected a depth from 0 to 1, got {self.diurnal!r}")
        if self.start * 1000 + self.windows * self.window_ms >= _LAST * 1000:
            raise ValueError(
                f"windows: expected an end before 2286-11-20, got {self.windows:,} windows"
            )
        if self.classes and abs(sum(each.share for each in self.classes) - 1) > 1e-9:
            total = sum(each.share for each in self.classes)
            raise ValueError(f"class: expected shares that make 1, got {total:g}")
        for flash in self.flashes:
            if flash.rank is not None and flash.rank > self.attributes:
                raise ValueError(
                    f"flash: expected a rank from 1 to {self.attributes:,}, got {flash.rank:,}"
                )
            if flash.at_ms >= self.windows * self.window_ms:
                raise ValueError(f"flash: expected a start within the stream, got {flash.at!r}")
        self._check_popularity()
        busiest = 1.75 * (1 + sum(flash.factor - 1 for flash in self.flashes))
        if (rate := self._components[0].rate * busiest) > _MOST_PER_MS:
            raise ValueError(
                f"rate: expected at most {_MOST_PER_MS:,} events a millisecond, got {rate:,.0f}"
            )

    @property
    def window_ms(self) -> int:
        """The window in milliseconds."""
        return duration_ms(self.window, "window")

    @property
    def user_digits(self) -> int:
        """How many digits the names of users have."""
        return max(5, len(str(self.users)))

    @property
    def attribute_digits(self) -> int:
        """How many digits the names of attributes have."""
        return max(5, len(str(self.attributes)))

    def columns(self, rows: int = _ROWS) -> Iterator[Events]:
        """Give the events as columns of integers.

        Parameters
        ----------
        rows
            Rows of a block, from 1; the last one has less. The events are the same for any.

        Examples
        --------
        >>> from zveil import Gate
        >>> gate = Gate(z=20, window="1h")
        >>> for events in Scenario(users=1000, windows=3).columns():
        ...     mask = gate.observe_many(*events, time_unit="ms")
        >>> gate.stats().released
        195
        """
        _check_whole("rows", rows, 1, 2**24)
        yield from blocks(arriving(self._components, self.seed, self.late), rows)

    def batches(self, rows: int = _ROWS) -> Iterator[pa.RecordBatch]:
        """Give the events as record batches: a time, and user and attribute as text.

        Parameters
        ----------
        rows
            Rows of a batch, from 1; the last one has less. The events are the same for any.

        Examples
        --------
        >>> batch = next(Scenario(users=100, windows=3).batches())
        >>> batch.column("attribute")[0].as_py()
        'site-00009.example'
        """
        table = Table(self)
        yield from (table.batch(events) for events in self.columns(rows))

    def px(self, user_class: int | None = None) -> Floats:
        """Give the expected p^X of each rank.

        That is the probability that a user exposes it at least once in a window, exact for the
        model and averaged over users and windows. Without classes, days and flashes it is
        ``1 - exp(-rate / r ** exponent)``.

        Parameters
        ----------
        user_class
            Only of this class, from 0; of all users by default.

        Examples
        --------
        >>> Scenario().px()[:2].round(6)
        array([0.048771, 0.02469 ])
        """
        factors, shares = self._factors, self._counts / self.users
        if user_class is not None:
            _check_whole("user_class", user_class, 0, len(factors) - 1)
            factors, shares = factors[[user_class]], np.ones(1)
        windows = self._exposures(None)
        found = exposed(self.rates, *_kinds(windows, factors, shares))
        for rank in {flash.rank for flash in self.flashes if flash.rank is not None}:
            kinds = _kinds(self._exposures(rank), factors, shares)
            found[rank - 1] = exposed(self.rates[[rank - 1]], *kinds)[0]
        return found

    def expected_events(self) -> float:
        """Give the expected number of events.

        >>> round(Scenario(users=100, attributes=2, windows=10).expected_events(), 6)
        75.0
        """
        weight = float(np.dot(self._counts, self._factors))
        total = self.rates.sum() * self._exposures(None).sum()
        for rank in {flash.rank for flash in self.flashes if flash.rank is not None}:
            extra = self._exposures(rank).sum() - self._exposures(None).sum()
            total += self.rates[rank - 1] * extra
        return float(weight * total)

    @cached_property
    def rates(self) -> Floats:
        """Events of each rank per window, of a user of factor 1 at the mean rate of the day."""
        if not self.popularity:
            return power_law(self.rate, self.exponent, self.attributes)
        px = curve(self.popularity, self.attributes)
        # Over a whole day, so that a longer stream begins with a shorter one.
        count = max(1, round(DAY_MS / self.window_ms))
        edges = np.arange(count + 1, dtype=np.int64) * self.window_ms
        calm = _activities(self._profile, self._start_ms + edges) / self.window_ms
        return calibrated(px, *_kinds(calm, self._factors, self._counts / self.users))

    @cached_property
    def _profile(self) -> Profile:
        return Profile(self.diurnal)

    @property
    def _start_ms(self) -> int:
        """The start since the midnight before."""
        return self.start * 1000 % DAY_MS

    @property
    def _edges_ms(self) -> NDArray[np.int64]:
        return np.arange(self.windows + 1, dtype=np.int64) * self.window_ms

    @cached_property
    def _factors(self) -> Floats:
        return np.array([each.factor for each in self.classes] or [1.0])

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        shares = np.cumsum([each.share for each in self.classes] or [1.0])
        edges = np.rint(shares / shares[-1] * self.users).astype(np.int64)
        counts: NDArray[np.int64] = np.diff(edges, prepend=0)
        return counts

    def _exposures(self, rank: int | None) -> Floats:
        """Give the activity of each window, in windows, with the flashes about all or this rank."""
        edges = self._edges_ms
        found = _activities(self._profile, self._start_ms + edges)
        for flash in self.flashes:
            if flash.rank in (None, rank):
                within = np.clip(edges, flash.at_ms, flash.until_ms)
                extra = _activities(self._profile, self._start_ms + within)
                found += (flash.factor - 1) * extra
        return found / self.window_ms

    @cached_property
    def _components(self) -> list[Component]:
        start = self._start_ms
        end = start + self.windows * self.window_ms
        users, ranks = Users(self._counts, self._factors), Ranks(self.rates)
        total = users.weight * float(self.rates.sum()) / self.window_ms
        midnight = self.start * 1000 - start
        found = [Component(0, midnight, start, end, total, users, ranks, self._profile)]
        for number, flash in enumerate(self.flashes, 1):
            if flash.factor == 1:
                continue
            rate, what = total, ranks if flash.rank is None else OneRank(flash.rank)
            if flash.rank is not None:
                rate *= float(self.rates[flash.rank - 1] / self.rates.sum())
            until = min(end, start + flash.until_ms)
            begin, rate = start + flash.at_ms, rate * (flash.factor - 1)
            found.append(
                Component(number, midnight, begin, until, rate, users, what, self._profile)
            )
        return found

    def _check_popularity(self) -> None:
        if not self.popularity:
            return
        ranks, values = zip(*self.popularity, strict=True)
        is_rising = all(a < b for a, b in itertools.pairwise(ranks))
        if not is_rising or ranks[0] > 1 or ranks[-1] < self.attributes:
            raise ValueError(
                f"popularity: expected rising ranks from 1 to {self.attributes:,}, got {ranks!r}"
            )
        if not all(0 < value < 1 for value in values):
            raise ValueError(f"popularity: expected p^X between 0 and 1, got {values!r}")


def _check_whole(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(
            f"{name}: expected a whole number from {least:,} to {most:,}, got {value!r}"
        )


def _activities(profile: Profile, edges_ms: NDArray[np.int64]) -> Floats:
    return np.diff(profile.activity(edges_ms.astype(np.float64)))


def _kinds(windows: Floats, factors: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Give what rates are multiplied by, and how often, over windows and classes of users."""
    kinds, counts = np.unique(windows, return_counts=True)
    weights = np.outer(shares, counts / len(windows))
    return np.outer(factors, kinds).ravel(), weights.ravel()
