"""The order in which events arrive: components laid over each other, late events held back."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from zveil.simulate.draws import Cell, Component, generator
from zveil.simulate.events import Events
from zveil.simulate.variations import Late

_LATE = 1


def arriving(components: Sequence[Component], seed: int, late: Late | None) -> Iterator[Events]:
    """Give the events of all components in the order they arrive.

    Without late events that is the order of their times. Only what may still be overtaken is
    held: some cells, and the late events on their way.

    Parameters
    ----------
    components
        What to draw.
    seed
        Of the random numbers.
    late
        Which events come late; none by default.
    """
    if len(components) == 1 and late is None:
        yield from (cell.events for cell in components[0].cells(seed))
        return
    streams = {each.number: each.cells(seed) for each in components}
    reached = {each.number: each.midnight_ms + each.start_ms for each in components}
    pool = _Pool()
    while reached:
        slowest = min(reached, key=lambda number: (reached[number], number))
        cell = next(streams[slowest], None)
        if cell is None:
            del reached[slowest]
        else:
            pool.add(cell.events, _delays_ms(cell, slowest, seed, late))
            reached[slowest] = cell.until_ms
        yield pool.take(min(reached.values(), default=None))


class _Pool:
    """Events that have been drawn and not arrived."""

    def __init__(self) -> None:
        self._events: list[Events] = []
        self._arrivals: list[NDArray[np.int64]] = []
        self._taken_ms: int | None = None

    def add(self, events: Events, delays_ms: NDArray[np.int64]) -> None:
        self._events.append(events)
        self._arrivals.append(events.time_ms + delays_ms)

    def take(self, before_ms: int | None) -> Events:
        """Take out what arrives before this moment, in order; None for all of it."""
        if not self._events or (before_ms is not None and before_ms == self._taken_ms):
            return Events.joined([])
        self._taken_ms = before_ms
        events, arrivals = Events.joined(self._events), np.concatenate(self._arrivals)
        if before_ms is None:
            self._events, self._arrivals = [], []
            return events.at(np.argsort(arrivals, kind="stable"))
        is_here = arrivals < before_ms
        self._events, self._arrivals = [events.at(~is_here)], [arrivals[~is_here]]
        here = np.flatnonzero(is_here)
        return events.at(here[np.argsort(arrivals[here], kind="stable")])


def _delays_ms(cell: Cell, component: int, seed: int, late: Late | None) -> NDArray[np.int64]:
    delays = np.zeros(cell.events.size, np.int64)
    if late is not None:
        # Numbers of their own: the events are the same, late or not.
        random = generator(seed, component, cell.number, _LATE)
        rows = np.flatnonzero(random.random(len(delays)) < late.share)
        drawn = random.exponential(late.mean_ms, len(rows))
        delays[rows] = np.minimum(drawn, late.most_ms).astype(np.int64)
    return delays
