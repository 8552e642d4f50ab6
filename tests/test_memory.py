"""Memory: flat over endless tails, O(z) for popular attributes, never past the limit."""

import time
from pathlib import Path

import numpy as np
import pytest

from zveil import Gate
from zveil.reference import Reference

WINDOW = 20_000


def tail(windows: int, start: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Attributes that are seen once and never again, one a nanosecond."""
    times = np.arange(start, start + windows * WINDOW)
    return times, times % 97, times


def gate(**options: object) -> Gate:
    return Gate(3, f"{WINDOW}ns", time_unit="ns", max_future=None, **options)  # type: ignore[arg-type]


def test_an_endless_tail_of_once_seen_attributes_stays_flat() -> None:
    tested = gate()
    sizes = []
    for lap in range(12):
        assert not tested.observe_many(*tail(5, lap * 5 * WINDOW)).any()
        sizes.append((tested.stats().attributes, tested.stats().bytes))
    # window + lateness is two windows; an epoch and a lap of the hand come on top.
    assert max(attributes for attributes, _ in sizes) < 6 * WINDOW
    # Now and then the tail needs the next size of the table: three laps to find it.
    held = [size for _, size in sizes[3:]]
    assert max(held) == min(held)


def test_one_at_a_time_stays_flat_too() -> None:
    tested = Gate(3, "500ns", time_unit="ns", max_future=None)
    sizes = []
    for t in range(60_000):
        tested.observe(t, t % 7, t)
        if t % 10_000 == 9_999:
            sizes.append(tested.stats().attributes)
    assert max(sizes) < 6 * 500


def test_a_popular_attribute_takes_memory_for_z_users_only() -> None:
    tested = Gate(20, "1h", max_future=None)
    tested.observe_many(np.zeros(1_000_000, int), np.arange(1_000_000), np.zeros(1_000_000, int))
    assert tested.stats().entries <= 64
    assert tested.stats().released == 1_000_000 - 19


def test_memory_comes_back_when_the_crowds_are_gone() -> None:
    tested = gate()
    small = tested.stats().bytes
    n = 400_000
    tested.observe_many(np.zeros(n, int), np.arange(n) % 5, np.arange(n) // 5)
    large = tested.stats().bytes
    assert large > 20 * small
    # Long after, a trickle of attributes with a single user lets the hand go round.
    times = np.arange(10**9, 10**9 + 40 * WINDOW, 8)
    tested.observe_many(times, np.zeros_like(times), -1 - times % 50)
    after = tested.stats()
    assert after.attributes <= 60
    # The table has shrunk, and one empty extent is kept at hand.
    assert after.bytes <= small + 2 * 2**20
    tested.observe_many(np.full(n, 3 * 10**9), np.arange(n) % 5, np.arange(n) // 5)
    assert tested.stats().bytes <= large


@pytest.mark.parametrize("limit", ["4MiB", "8MiB", "16MiB"])
def test_the_limit_is_never_passed_and_nothing_is_released_early(limit: str) -> None:
    tested = gate(memory_limit=limit)
    most = int(limit[:-3]) * 2**20
    reference = Reference(3, WINDOW)
    random = np.random.default_rng(3)
    n = 300_000
    times = np.arange(n) // 50
    users = random.integers(0, 50, n)
    attributes = random.integers(0, 60_000, n)
    mask = tested.observe_many(times, users, attributes)
    stats = tested.stats()
    assert stats.bytes <= most
    expected = [
        reference.observe(*row)
        for row in zip(times.tolist(), users.tolist(), attributes.tolist(), strict=True)
    ]
    assert not (mask & ~np.array(expected)).any()
    assert mask.any()
    if limit == "4MiB":
        assert stats.refused > 0
        assert mask.sum() < sum(expected)


def test_a_crowd_cut_short_by_the_limit_veils() -> None:
    tested = Gate(5_000, "1h", memory_limit="4MiB", max_future=None)
    n = 200_000
    # Forty attributes with five thousand users each want 8 MB.
    mask = tested.observe_many(np.zeros(n, int), np.arange(n) // 40, np.arange(n) % 40)
    assert tested.stats().refused > 0
    assert tested.stats().bytes <= 4 * 2**20
    assert mask.sum() <= 40


@pytest.mark.parametrize("limit", ["4MiB", "8MiB", "16MiB"])
def test_a_refused_attribute_is_not_taken_for_a_new_one(limit: str) -> None:
    """It left no clock behind, so late observations of it must not be decided by their own."""
    tested = Gate(2, 10, lateness=1_000, max_future=None, memory_limit=limit)
    n = 600_000
    tested.observe_many(np.zeros(n, int), np.zeros(n, int), np.arange(n))
    assert not tested.observe(1_500, "u0", "X")
    refused = tested.stats().refused
    assert refused > 0
    for i in range(40_000):
        tested.observe(2_300, "q", i % 40)
    assert tested.stats().attributes < 100
    assert not tested.observe(1_400, "u1", "X")
    assert not tested.observe(1_401, "u2", "X")
    # What is not behind the refused time is decided again.
    assert not tested.observe(2_301, "u1", "X")
    assert tested.observe(2_301, "u2", "X")


def test_who_was_refused_at_a_fine_level_does_not_count_at_a_coarser_one() -> None:
    tested = Gate(3, 10, max_future=None, memory_limit="8MiB")
    reference = Reference(3, 10)
    n = 600_000
    for gates in (tested, reference):
        gates.observe_levels(0, "s", ["example.org", "x"])
    tested.observe_many(np.zeros(n, int), np.zeros(n, int), np.arange(n))
    assert tested.stats().refused > 0
    for t in (0, 9):
        for user in range(5):
            path = ["example.org", "www"]
            level = tested.observe_levels(t, user, path)
            assert level in (None, reference.observe_levels(t, user, path))
    path = ["example.org", "clinic"]
    assert reference.observe_levels(12, "c", path) is None
    assert tested.observe_levels(12, "c", path) is None


def test_what_was_refused_is_remembered_by_a_snapshot(tmp_path: Path) -> None:
    tested = Gate(2, 10, lateness=1_000, max_future=None, memory_limit="4MiB")
    n = 600_000
    tested.observe_many(np.zeros(n, int), np.zeros(n, int), np.arange(n))
    tested.observe(1_500, "u0", "X")
    tested.snapshot(tmp_path / "state")
    restored = Gate.restore(tmp_path / "state", tested.key)
    for i in range(40_000):
        restored.observe(2_300, "q", i % 40)
    assert not restored.observe(1_400, "u1", "X")
    assert not restored.observe(1_401, "u2", "X")


def test_threads_go_by_one_wall_clock(tmp_path: Path) -> None:
    """Times around now, with no future allowed: every thread must take or refuse the same ones."""
    for _ in range(3):
        tested = Gate(2, "1h", max_future=0, threads=4)
        n = 200_000
        times = time.time_ns() + np.arange(n) * 2_000
        mask = tested.observe_many(times, np.arange(n) % 7, np.arange(n) % 50, time_unit="ns")
        stats = tested.stats()
        assert stats.released == int(mask.sum())
        tested.snapshot(tmp_path / "state")
        assert Gate.restore(tmp_path / "state", tested.key).stats().attributes == stats.attributes
