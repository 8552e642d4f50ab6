"""The streams that are measured: Zipf attributes, uniform users, time in order, all seeded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Integers = NDArray[np.int64]

WINDOW_NS = 3_600 * 10**9
START_NS = 1_700_000_000 * 10**9  # any time that has passed: the gate refuses the future
SEED = 20_200_101
CHUNK = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much is measured: everything, unless said otherwise."""

    observations: int = 20_000_000
    per_window: int = 1_000_000
    attribute_counts: tuple[int, int, int] = (5_000, 100_000, 5_000_000)
    user_counts: tuple[int, int] = (10_000, 1_000_000)
    z_values: tuple[int, ...] = (5, 20, 100, 400)
    z: int = 20
    rounds: int = 3
    # Two threads are disturbed twice as often.
    meter_rounds: int = 5
    # Prefixes are for the slow peers, on streams they could not finish.
    slow_rounds: int = 2
    reference_prefix: int = 1_200_000
    zanon_prefix: int = 100_000
    single_prefix: int = 500_000
    growth_attributes: int = 5_000_000
    growth_batch: int = 1_000
    worst_case_observations: int = 5_000_000
    text_events: int = 20_000_000
    text_users: int = 100_000
    text_rounds: int = 5
    idle_lines: int = 2_000
    audit_events: int = 5_000_000
    estimator_attributes: int = 27_482
    estimator_sweep: int = 200
    # Long enough for several saves.
    state_events: int = 30_000_000
    state_rounds: int = 3
    state_live: int = 1_000_000
    # Often enough for several saves while all of them live.
    state_often: str = "250ms"
    state_kept: int = 5_000_000
    judged: bool = True


FULL = Scale()

# Small enough for a test. Everything fits the cache and start-up costs show, so that its ratios
# say nothing and are not judged.
QUICK = Scale(
    observations=200_000,
    per_window=10_000,
    attribute_counts=(500, 5_000, 50_000),
    user_counts=(1_000, 20_000),
    rounds=1,
    meter_rounds=1,
    slow_rounds=1,
    reference_prefix=20_000,
    zanon_prefix=5_000,
    single_prefix=20_000,
    growth_attributes=100_000,
    worst_case_observations=50_000,
    text_events=50_000,
    text_users=5_000,
    text_rounds=1,
    idle_lines=200,
    audit_events=50_000,
    estimator_attributes=2_000,
    estimator_sweep=10,
    state_events=50_000,
    state_rounds=1,
    state_live=5_000,
    state_often="1ms",
    state_kept=20_000,
    judged=False,
)


@dataclass(frozen=True)
class Stream:
    """Columns of observations; users and attributes are NumPy integers or Arrow strings."""

    attribute_count: int
    user_count: int
    per_window: int
    times: Integers
    users: Any
    attributes: Any

    def __len__(self) -> int:
        return len(self.times)

    @property
    def case(self) -> str:
        """The stream's place in the grid, as it stands in the table of results."""
        return f"A={short(self.attribute_count)} U={short(self.user_count)}"

    def prefix(self, length: int) -> Stream:
        """Give the first observations alone."""
        return self.part(0, length)

    def part(self, start: int, stop: int) -> Stream:
        """Give the observations from ``start`` to before ``stop``, without a copy."""
        return replace(
            self,
            times=self.times[start:stop],
            users=self.users[start:stop],
            attributes=self.attributes[start:stop],
        )

    def batches(self) -> Iterator[Stream]:
        """Cut the stream into batches of one window each, as every peer takes it."""
        for start in range(0, len(self), self.per_window):
            yield self.part(start, start + self.per_window)

    def with_strings(self) -> Stream:
        """Give the same stream as Arrow strings: ``u12345`` at ``www.site1234.example``."""
        return replace(
            self,
            users=_strings("u", self.users, ""),
            attributes=_strings("www.site", self.attributes, ".example"),
        )

    def live_pairs(self) -> int:
        """Count the pairs (attribute, user) in the window that ends with the stream, exactly."""
        first = np.searchsorted(self.times, self.times[-1] - WINDOW_NS, side="left")
        pairs = self.attributes[first:] * self.user_count + self.users[first:]
        return len(np.unique(pairs))


def grid(scale: Scale) -> Iterator[Stream]:
    """Make the streams of the grid one after another, only one set of attributes at a time."""
    times = in_order(scale.observations, scale.per_window)
    users = [uniform_users(count, scale.observations) for count in scale.user_counts]
    for attribute_count in scale.attribute_counts:
        attributes = zipf_attributes(attribute_count, scale.observations)
        for user_count, column in zip(scale.user_counts, users, strict=True):
            yield Stream(attribute_count, user_count, scale.per_window, times, column, attributes)


def for_text(scale: Scale, events: int | None = None) -> Stream:
    """Make the stream that goes through files and pipes, of another length where one is given."""
    attribute_count = scale.attribute_counts[1]
    length = scale.text_events if events is None else events
    return Stream(
        attribute_count,
        scale.text_users,
        scale.per_window,
        in_order(length, scale.per_window),
        uniform_users(scale.text_users, length),
        zipf_attributes(attribute_count, length),
    )


def in_order(observations: int, per_window: int) -> Integers:
    """Spread times evenly, so many to a window."""
    return START_NS + np.arange(observations, dtype=np.int64) * (WINDOW_NS // per_window)


def uniform_users(count: int, observations: int) -> Integers:
    """Draw each observation's user from all alike."""
    generator = np.random.default_rng((SEED, count, 1))
    return generator.integers(0, count, observations, dtype=np.int64)


def zipf_attributes(count: int, observations: int) -> Integers:
    """Draw attributes with weight 1/rank; the ids are shuffled, so that an id tells no rank."""
    generator = np.random.default_rng((SEED, count, 2))
    ids = generator.permutation(count).astype(np.int64)
    cumulative = np.cumsum(1.0 / np.arange(1, count + 1))
    attributes = np.empty(observations, dtype=np.int64)
    for start in range(0, observations, CHUNK):
        part = attributes[start : start + CHUNK]
        drawn = generator.random(len(part)) * cumulative[-1]
        ranks = np.searchsorted(cumulative, drawn, side="right")
        # Rounding can put the largest draws on the very end of the last rank.
        part[:] = ids[np.minimum(ranks, count - 1)]
    return attributes


def once_seen(observations: int, per_window: int, *, user_count: int) -> Stream:
    """Make a stream in which every attribute occurs once."""
    return Stream(
        observations,
        user_count,
        per_window,
        in_order(observations, per_window),
        uniform_users(user_count, observations),
        np.random.default_rng((SEED, 3)).permutation(observations).astype(np.int64),
    )


def cycling_users(count: int, observations: int, per_window: int) -> Stream:
    """Make a stream of one attribute whose users come round and round in the same order."""
    users = np.arange(observations, dtype=np.int64) % count
    times = in_order(observations, per_window)
    return Stream(1, count, per_window, times, users, np.zeros(observations, dtype=np.int64))


def short(number: int) -> str:
    """Write 5_000_000 as 5e6 and 1_200_000 as 1.2e6."""
    mantissa, exponent = f"{number:e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}" if number >= 1_000 else str(number)


def _strings(before: str, numbers: Integers, after: str) -> pa.Array:
    text = pc.cast(pa.array(numbers), pa.string())
    return pc.binary_join_element_wise(before, text, after, "")
