"""A threshold with noise: never below z, the same for whoever asks again, secret."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from zveil import Gate

ROWS = 30_000


def stream(seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    values = (random.random(ROWS) ** 3 * 500).astype(np.int64)
    return np.arange(ROWS), random.integers(0, 400, ROWS), values


def gate(**options: object) -> Gate:
    return Gate(5, 600, max_future=None, **{"noise": 4, "key": bytes(32)} | options)


def test_nothing_is_released_that_would_not_be_without_noise() -> None:
    events = stream()
    plain, noisy = gate(noise=0).observe_many(*events), gate().observe_many(*events)
    assert not np.any(noisy & ~plain)
    assert 0.5 * plain.sum() < noisy.sum() < plain.sum()


def test_a_rerun_repeats_it_and_another_key_does_not() -> None:
    events = stream()
    first = gate().observe_many(*events)
    assert np.array_equal(first, gate(threads=2).observe_many(*events))
    assert not np.array_equal(first, gate(key=bytes(31) + b"1").observe_many(*events))


def test_a_first_release_has_exactly_the_users_of_its_threshold() -> None:
    asked = gate()
    thresholds = set()
    for value in range(200):
        needed = asked.threshold(0, value)
        thresholds.add(needed)
        answers = [asked.observe(0, user, value) for user in range(12)]
        assert answers.index(True) == needed - 1
        assert all(answers[needed - 1 :])
    assert thresholds == {5, 6, 7, 8, 9}


def test_a_draw_holds_for_its_period() -> None:
    asked = gate(noise_period="1h")
    found = [asked.threshold(hour * 3600 + 60 * minute, "a") for hour in range(40)
             for minute in (0, 17, 59)]  # fmt: skip
    hours = [tuple(found[at : at + 3]) for at in range(0, len(found), 3)]
    assert all(len(set(hour)) == 1 for hour in hours)
    assert any(first != second for first, second in pairwise(hours))
    assert asked.level_thresholds(0, ["news", "a"]) != [asked.threshold(0, "a")] * 2


def test_another_period_counts_anew() -> None:
    """A crowd that was enough in one period is not for that reason enough in the next."""
    asked = gate(noise_period="10s", noise=6)
    attribute = next(
        a for a in range(1000) if (asked.threshold(0, a), asked.threshold(10, a)) == (5, 11)
    )
    assert [asked.observe(0, user, attribute) for user in range(8)][4:] == [True] * 4
    assert asked.observe(9, 0, attribute)
    assert not asked.observe(10, 0, attribute)


def test_forgetting_someone_releases_nobody_early() -> None:
    asked = gate(noise=6)
    attribute = next(a for a in range(1000) if asked.threshold(0, a) == 11)
    for user in range(8):
        asked.observe(0, user, attribute)
    asked.forget(0)
    assert not asked.observe(0, 1, attribute)


def test_a_snapshot_goes_on_with_the_same_draws(tmp_path: Path) -> None:
    events = stream()
    whole = gate(noise_period="1m").observe_many(*events)
    first = gate(noise_period="1m")
    before = first.observe_many(*(column[:10_000] for column in events))
    first.snapshot(tmp_path / "state")
    again = Gate.restore(tmp_path / "state", bytes(32))
    assert again.noise == 4
    after = again.observe_many(*(column[10_000:] for column in events))
    assert np.array_equal(whole, np.concatenate([before, after]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": -1}, "noise: expected a whole number from 0, got -1"),
        ({"noise": 3, "z_max": 7}, "noise: expected from 0 to z_max - z, here 2, got 3"),
        ({"noise": 3, "noise_period": 0}, "noise_period: expected nanoseconds from 1"),
    ],
)
def test_what_is_out_of_range_is_said(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Gate(5, 600, **options)


def test_a_raised_z_leaves_room_for_the_noise() -> None:
    asked = Gate(5, 600, noise=4, z_max=12)
    asked.z = 8
    with pytest.raises(ValueError, match="z: expected from 1 to z_max, here 8"):
        asked.z = 9
