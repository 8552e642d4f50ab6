"""Classes of users: one class is the plain model, two are what a simulation gives."""

from collections import Counter

import numpy as np
import pytest

from zveil.model import Classes, Population, averaged, class_p_k, class_p_o, p_o

RATES = [np.array([0.6, 0.3, 0.1, 0.05, 0.02, 0.01]), np.array([0.02, 0.02, 0.9, 0.05, 0.4, 0.3])]
TWO = Classes(600, shares=[0.75, 0.25], rates=RATES)


def test_one_class_is_the_plain_model() -> None:
    rates = 0.1 / np.arange(1, 60)
    one, plain = Classes(3_000, [1.0], [rates]), Population.from_rates(3_000, rates)
    np.testing.assert_allclose(class_p_o(one, 15)[0], p_o(plain, 15), atol=1e-12)
    found, exact = class_p_k(one, 15, 2, 6), averaged(plain, 15, 2, 6)
    # The sets drawn are corrected by what is known exactly: here by all of it.
    assert found.everyone == pytest.approx(exact.everyone, abs=1e-6)
    assert found.visible == pytest.approx(exact.visible, abs=1e-6)


def test_classes_that_are_alike_are_one() -> None:
    rates = 0.1 / np.arange(1, 200)
    alike = Classes(20_000, [0.5, 0.3, 0.2], [rates] * 3)
    plain = Population.from_rates(20_000, rates)
    for chances in class_p_o(alike, 20):
        np.testing.assert_allclose(chances, p_o(plain, 20), atol=1e-11)
    found, exact = class_p_k(alike, 20, 3, 12), averaged(plain, 20, 3, 12)
    assert found.everyone == pytest.approx(exact.everyone, abs=1e-5)
    assert found.class_visible == pytest.approx((exact.visible,) * 3, abs=1e-5)


def test_releases_agree_with_a_simulation() -> None:
    random = np.random.default_rng(5)
    z, runs = 25, 3_000
    counts = [
        random.binomial(each.users, each.p_x, (runs, each.attributes)) for each in TWO.populations
    ]
    # Someone who shows it is released if the crowd, the person among it, is at least z.
    total = sum(counts)
    for own, chances in enumerate(class_p_o(TWO, z)):
        weight = counts[own]
        simulated = (weight * (total >= z)).sum(axis=0) / weight.sum(axis=0)
        np.testing.assert_allclose(chances, simulated, atol=0.02)


@pytest.mark.parametrize("k", [2, 4])
def test_sets_agree_with_a_simulation(k: int) -> None:
    random = np.random.default_rng(11)
    z, horizon, runs = 25, 3, 60
    alike, seen, alike_seen, users = np.zeros((4, 2))
    chances = [
        1 - (1 - each.p_x * out) ** horizon
        for each, out in zip(TWO.populations, class_p_o(TWO, z), strict=True)
    ]
    bits = 1 << np.arange(6)
    for _ in range(runs):
        sets = [
            (random.random((members, 6)) < chance) @ bits
            for members, chance in zip(TWO.members, chances, strict=True)
        ]
        crowds = Counter(np.concatenate(sets).tolist())
        for own, held in enumerate(sets):
            hidden = np.array([crowds[each] >= k for each in held.tolist()])
            users[own] += held.size
            alike[own] += hidden.sum()
            seen[own] += (held > 0).sum()
            alike_seen[own] += (hidden & (held > 0)).sum()
    found = class_p_k(TWO, z, k, horizon)
    assert found.class_everyone == pytest.approx(tuple(alike / users), abs=0.01)
    assert found.class_visible == pytest.approx(tuple(alike_seen / seen), abs=0.01)
    assert found.everyone == pytest.approx(alike.sum() / users.sum(), abs=0.008)
    assert found.visible == pytest.approx(alike_seen.sum() / seen.sum(), abs=0.008)
    assert 0 < found.error < 0.01


def test_the_busy_few_are_worse_off() -> None:
    ranks = np.arange(1, 200)
    found = class_p_k(Classes(5_000, [0.95, 0.05], [0.05 / ranks, 0.5 / ranks]), 20, 2, 12)
    assert found.class_visible[1] < 0.2 < 0.7 < found.class_visible[0]


def test_it_is_the_same_each_time() -> None:
    assert class_p_k(TWO, 25, 2, 3) == class_p_k(TWO, 25, 2, 3)


def test_more_sets_make_the_error_smaller() -> None:
    few, many = (class_p_k(TWO, 25, 2, 3, sets=sets) for sets in (1_000, 16_000))
    assert many.error < few.error / 3
    assert abs(many.everyone - few.everyone) < 2 * few.error


@pytest.mark.parametrize("z", [1, 25, 601, 10_000])
@pytest.mark.parametrize("k", [1, 2, 600, 601])
def test_extremes_give_probabilities(z: int, k: int) -> None:
    extreme = Classes(600, [0.5, 0.5], [[0.0, 1e-300, 50.0], [800.0, 0.1, 0.0]])
    found = class_p_k(extreme, z, k, 24, sets=200)
    for value in (found.everyone, found.visible, *found.class_everyone, *found.class_visible):
        assert 0 <= value <= 1
    if k == 1:
        assert found.everyone == found.visible == 1


def test_members_are_whole_users() -> None:
    assert Classes(10, [1 / 3, 1 / 3, 1 / 3], [[0.1]] * 3).users == 10
    assert sorted(Classes(11, [0.5, 0.5], [[0.1]] * 2).members) == [5, 6]


@pytest.mark.parametrize(
    ("users", "shares", "rates", "words"),
    [
        (100, [0.5, 0.6], [[0.1]] * 2, "shares: expected numbers that add up to 1, got 1.1"),
        (100, [0.0, 1.0], [[0.1]] * 2, "shares: expected a number above 0 and below 1, got"),
        (100, [0.5, 0.5], [[0.1]], "rates: expected one column for each of 2 classes, got 1"),
        (100, [0.5, 0.5], [[0.1], [0.1, 0.2]], "rates: expected the same attributes in each"),
        (2, [0.9, 0.1], [[0.1]] * 2, "shares: expected at least one of 2 users in each class"),
    ],
)
def test_errors_say_what_is_wrong(
    users: int, shares: list[float], rates: list[list[float]], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        Classes(users, shares, rates)
