"""What really happens: simulated streams, decided by the gate, and counted.

A stream begins with one window in which the gate warms up; what it releases there does not count.
Whatever was released of attributes up to some rank, within the first so many windows after that, is
found in the same table: an attribute's decisions do not depend on others, nor on what comes later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zveil.audit.crowds import class_sizes
from zveil.audit.points import Points, Resolution
from zveil.gate import Gate
from zveil.model.parameters import Count, Floats
from zveil.simulate import Events, Scenario

Ints = NDArray[np.int64]
Watch = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Releases:
    """What a gate released of a stream, after the window in which it warmed up.

    Attributes
    ----------
    users
        How many there are, with and without something released.
    windows
        How many there are after the first.
    user, rank, window
        Who had what released in which window, from 0; each once, sorted in this order.
    """

    users: int
    windows: int
    user: Ints
    rank: Ints
    window: Ints

    @classmethod
    def of(cls, scenario: Scenario, events: Events, z: int) -> Releases:
        """Run a new gate over a stream."""
        gate = Gate(z, scenario.window, max_future=None)
        is_released = gate.observe_many(*events, time_unit="ms")
        time_ms, user, rank = events.at(is_released)
        window = (time_ms - scenario.start * 1000) // scenario.window_ms - 1
        after = window >= 0
        # One number for each, so that sorting and telling apart is done on numbers.
        keys = user[after].astype(np.int64) * (scenario.attributes + 1) + rank[after]
        keys = keys * scenario.windows + window[after]
        keys.sort()
        is_new = np.ones(len(keys), np.bool_)
        is_new[1:] = keys[1:] != keys[:-1]
        keys, found = np.divmod(keys[is_new], scenario.windows)
        return cls(
            scenario.users, scenario.windows - 1, *np.divmod(keys, scenario.attributes + 1), found
        )

    def p_y(self) -> Floats:
        """Give the share of users and windows with each rank released, from rank 0 (nothing)."""
        return np.bincount(self.rank) / (self.users * self.windows)

    def p_k(
        self, horizon: int, attributes: int, ks: Sequence[int]
    ) -> dict[int, dict[Count, float]]:
        """Give the shares of users who have the same set released as at least k - 1 others.

        Parameters
        ----------
        horizon
            Windows after the warm-up that an observer links.
        attributes
            Ranks that exist; the others are left out.
        ks
            What to give it for.
        """
        is_seen = (self.window < horizon) & (self.rank <= attributes)
        sizes = set_sizes(self.user[is_seen], self.rank[is_seen])
        hidden = self.users - len(sizes)
        found: dict[int, dict[Count, float]] = {}
        for k in ks:
            alike = int(np.count_nonzero(sizes >= k))
            found[k] = {
                # Users with nothing released all look the same.
                "all": (alike + (hidden if hidden >= k else 0)) / self.users,
                "visible": alike / len(sizes) if len(sizes) else 1.0,
            }
        return found


def set_sizes(user: Ints, rank: Ints) -> Ints:
    """Give for each visible user how many have the same set, as the audit counts it."""
    is_first = np.ones(len(user), np.bool_)
    is_first[1:] = user[1:] != user[:-1]
    number = np.cumsum(is_first) - 1
    visible = np.flatnonzero(is_first)
    points = Points(
        user=number,
        value=rank.astype(np.int32),
        time_ns=np.zeros(len(user), np.int64),
        starts=visible,
        person=user[visible],
        period=np.zeros(len(visible), np.int64),
    )
    return class_sizes(points, points.traces(Resolution.SET))


def releases(scenario: Scenario, zs: Sequence[int], watch: Watch) -> Iterator[tuple[int, Releases]]:
    """Draw a stream once, and decide it for each z."""
    watch(f"simulating {scenario.expected_events():,.0f} events")
    events = Events.joined(list(scenario.columns()))
    for z in zs:
        watch(f"deciding {events.size:,} events with z = {z}")
        yield z, Releases.of(scenario, events, z)
