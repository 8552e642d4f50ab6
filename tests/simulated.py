"""What a simulated stream came to, counted the plain way."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from zveil.simulate import Events, Scenario


def all_of(parts: Iterable[Events]) -> Events:
    return Events.joined(list(parts))


def measured_px(scenario: Scenario, events: Events) -> NDArray[np.float64]:
    """Give the share of users and windows with at least one event, by rank."""
    windows = (events.time_ms - scenario.start * 1000) // scenario.window_ms
    assert windows.min() >= 0
    assert windows.max() < scenario.windows
    pairs = (events.rank.astype(np.int64) * scenario.windows + windows) * scenario.users
    ranks = np.unique(pairs + events.user - 1) // (scenario.windows * scenario.users)
    counts = np.bincount(ranks, minlength=scenario.attributes + 1)[1:]
    return counts / (scenario.users * scenario.windows)


def deviations(scenario: Scenario, events: Events) -> NDArray[np.float64]:
    """Give how far p^X is from what is expected, in standard deviations of independent trials."""
    expected = scenario.px()
    spread = np.sqrt(expected * (1 - expected) / (scenario.users * scenario.windows))
    return (measured_px(scenario, events) - expected) / spread


def users_by_rank(events: Events) -> NDArray[np.int64]:
    """Give how many users showed each rank."""
    pairs = np.unique(events.rank.astype(np.int64) << 32 | events.user)
    return np.bincount(pairs >> 32)[1:]
