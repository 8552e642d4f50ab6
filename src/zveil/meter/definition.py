"""The definition of the meter, in plain Python: sets of values, compared.

`zveil.Meter` is tested against this module. It keeps every set, raw, and is written to be read;
the meter shows the same from fingerprints, at the cost of a lookup or two for each release.

Observer
    Sees what leaves: pseudonyms and values, no times. All that it has of a pseudonym is the *set*
    of values that left under it, of all fields; the same word in two fields is two values. Two
    users with equal sets look the same to it; k of a user is how many look like that, the user
    included. Whoever has nothing released is not visible and counts nowhere.
Periods
    Pseudonyms change for everybody at once: an event at t is in period floor(t / length). Each
    period is measured by itself, since its pseudonyms are in no other. Without a length there is
    one period, without an end.
Time out of order
    The clock is the largest time there was. A period is over when no event of it is taken any
    more: when clock - lateness lies in a later one. What comes for it afterwards is counted as
    late, and nothing else.

    >>> meter = Definition(length=10)
    >>> for t, user, value in [(0, "u", "a"), (1, "v", "a"), (2, "v", "b"), (3, "w", "a")]:
    ...     meter.add(t, user, value)
    >>> now = meter.report()
    >>> now.users, now.classes, now.sizes
    (3, 2, {1: 1, 2: 2})
    >>> meter.add(10, "u", "a")
    >>> [(period.users, period.is_over) for period in meter.periods()]
    [(3, True), (1, False)]
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from math import inf

from zveil.meter.reading import Reading
from zveil.reference import attribute_key, user_text


class Definition:
    """Hold the sets that were released, and compare them.

    Parameters
    ----------
    length
        How long a period is; one without an end by default. Of the unit that times have; the
        start of a period is told in it too.
    lateness
        How far behind the clock a time may lie.
    """

    def __init__(self, *, length: int | None = None, lateness: float = 0) -> None:
        self.length = length
        self.lateness = lateness
        self.clock: float = -inf
        self._sets: dict[int, dict[str, set[Hashable]]] = {}
        self._late: Counter[int] = Counter()

    def add(self, t: float, user: object, value: Hashable, *, field: str = "") -> None:
        """Take in one value as it leaves: the user's pseudonym, or the id if that leaves raw.

        Nothing is added where the user or the value is missing.
        """
        u, a = user_text(user), attribute_key(value)
        if u is None or a is None:
            return
        period = self._period(t)
        self.advance(t)
        if self._is_over(period):
            self._late[period] += 1
        else:
            sets = self._sets.setdefault(period, defaultdict(set))
            sets[u].add((field, a))

    def advance(self, t: float) -> None:
        """Move the clock on: time passes also where nothing is released."""
        self.clock = max(self.clock, t)

    def report(self) -> Reading:
        """Show the period that the clock is in."""
        return self._read(0 if self.clock == -inf else self._period(self.clock))

    def periods(self) -> list[Reading]:
        """Show all periods of which there is anything to be shown, in their order."""
        return [self._read(period) for period in sorted(self._sets.keys() | self._late.keys())]

    def k(self, user: object) -> int:
        """Count the users who look like this one in the present period; 0 if it is not visible."""
        sets = self._sets.get(self._period(self.clock), {})
        own = sets.get(user_text(user) or "", set())
        return sum(own == other for other in sets.values()) if own else 0

    def _read(self, period: int) -> Reading:
        sets = self._sets.get(period, {})
        classes = Counter(frozenset(values) for values in sets.values())
        sizes: Counter[int] = Counter()
        for k in classes.values():
            sizes[k] += k
        return Reading(
            start_ns=None if self.length is None else period * self.length,
            users=len(sets),
            classes=len(classes),
            sizes=dict(sorted(sizes.items())),
            pairs=sum(map(len, sets.values())),
            late=self._late[period],
            is_over=self._is_over(period),
            is_stopped=False,
        )

    def _period(self, t: float) -> int:
        return 0 if self.length is None else int(t // self.length)

    def _is_over(self, period: int) -> bool:
        return self.clock > -inf and self._period(self.clock - self.lateness) > period
