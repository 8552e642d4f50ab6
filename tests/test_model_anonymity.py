"""The averaged p_k: brute force, exact sums, the published table, the extremes, and its cost."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zveil.model import Population, averaged, p_k, p_n, paper
from zveil.model import anonymity as anonymity_module
from zveil.model import spread as spread_module
from zveil.model import tails as tails_module
from zveil.model.anonymity import swing

PAPER = Population.power_law()


def shared(p: float, others: int, wanted: int) -> float:
    """P[Bin(others, p) >= wanted], by its terms."""
    if wanted > others:
        return 0.0
    fewer = math.fsum(math.comb(others, i) * p**i * (1 - p) ** (others - i) for i in range(wanted))
    return 1 - fewer


def enumerated(chances: list[float], users: int, k: int) -> tuple[float, float]:
    """Average over every set: all users, and the visible ones."""
    everyone, empty, nothing = [], 0.0, 0.0
    for held in itertools.product([False, True], repeat=len(chances)):
        p = math.prod(q if has else 1 - q for q, has in zip(chances, held, strict=True))
        term = p * shared(p, users - 1, k - 1)
        everyone.append(term)
        if not any(held):
            empty, nothing = term, p
    total = math.fsum(everyone)
    return total, math.fsum([total, -empty]) / (1 - nothing)


probabilities = st.one_of(
    st.floats(0.001, 0.999), st.floats(1e-6, 1e-3), st.sampled_from([0.5, 0.25, 0.75, 1 - 1e-9])
)


@settings(max_examples=150, deadline=None)
@given(st.lists(probabilities, min_size=1, max_size=9), st.integers(2, 3_000), st.integers(2, 25))
def test_brute_force(chances: list[float], users: int, k: int) -> None:
    found = averaged(Population(users, chances), 1, k, 1)
    everyone, visible = enumerated(chances, users, k)
    assert abs(found.everyone - everyone) <= found.error + 1e-12
    assert abs(found.visible - visible) <= found.visible_error + 1e-9
    assert found.error <= 1e-4
    assert found.visible_share == pytest.approx(1 - math.prod(1 - q for q in chances), rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(probabilities, min_size=1, max_size=7),
    st.integers(2, 500),
    st.integers(2, 6),
    st.sampled_from([1e-2, 1e-3, 1e-5]),
)
def test_a_coarser_grid_keeps_its_bound(
    chances: list[float], users: int, k: int, error: float
) -> None:
    found = averaged(Population(users, chances), 1, k, 1, error=error)
    assert abs(found.everyone - enumerated(chances, users, k)[0]) <= found.error + 1e-12
    assert found.error <= 1.2 * error + 1e-8


@pytest.mark.parametrize(
    ("first", "second", "users", "k"),
    [
        ((300, 0.01), (100, 0.03), 50_000, 2),
        ((4_000, 0.001), (2, 0.4), 5_000, 3),
        ((20_000, 0.0002), (50, 0.02), 10**6, 2),
        ((500, 0.02), (5, 0.9), 10**6, 5),
        ((70, 0.06), (70, 0.0601), 10**5, 2),
        ((100, 0.004), (1, 1e-12), 2_000, 30),
    ],
)
def test_many_attributes_against_the_exact_sum(
    first: tuple[int, float], second: tuple[int, float], users: int, k: int
) -> None:
    # With two kinds of attributes, a set's probability depends on how many it has of each.
    (a, p), (b, q) = first, second
    terms, empty = [], 0.0
    for i, j in itertools.product(range(min(a, 60) + 1), range(min(b, 60) + 1)):
        level = i * math.log(p) + (a - i) * math.log1p(-p)
        level += j * math.log(q) + (b - j) * math.log1p(-q)
        ways = math.log(math.comb(a, i)) + math.log(math.comb(b, j))
        term = (
            math.exp(ways + level) * tails_module.at_least(k - 1, users - 1, [math.exp(level)])[0]
        )
        terms.append(term)
        empty = terms[0]
    nothing = math.exp(a * math.log1p(-p) + b * math.log1p(-q))
    found = averaged(Population(users, [p] * a + [q] * b), 1, k, 1)
    assert abs(found.everyone - math.fsum(terms)) <= found.error
    assert abs(found.visible - (math.fsum(terms) - empty) / (1 - nothing)) <= found.visible_error
    assert found.visible_error < 1e-5


def test_all_at_once_or_one_by_one_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = averaged(PAPER, 20, 2, 24)
    monkeypatch.setattr(spread_module, "_CHAINED_AT_LEAST", 10**6)
    one_by_one = averaged(PAPER, 20, 2, 24)
    assert at_once.everyone == pytest.approx(one_by_one.everyone, abs=1e-10)
    assert at_once.visible == pytest.approx(one_by_one.visible, abs=1e-10)


def test_hardly_anyone_is_visible() -> None:
    # Those who are have one attribute; what is subtracted must not drown them.
    for chance in (1e-8, 1e-12, 1e-100, 1e-300):
        found = averaged(Population(1_000, [chance] * 200), 1, 2, 1)
        expected = -math.expm1(999 * math.log1p(-chance))
        assert found.visible_share == pytest.approx(200 * chance, rel=1e-6)
        assert found.visible == pytest.approx(expected, abs=1e-6)
        assert found.visible_error < 1e-4
        assert found.everyone == pytest.approx(1, abs=1e-5)


def test_the_program_of_the_authors() -> None:
    population = Population.power_law(users=5_000, attributes=20, rate=0.2, window=2)
    assert averaged(population, 150, 2, 1).everyone == pytest.approx(0.97099, abs=1e-5)
    assert averaged(population, 150, 3, 1).everyone == pytest.approx(0.95332, abs=1e-5)


@pytest.mark.parametrize(
    ("z", "k", "expected", "measured"),
    [
        (10, 2, 0.0375, 0.039),
        (20, 2, 0.1257, 0.127),
        (20, 3, 0.0854, 0.087),
        (20, 4, 0.0685, 0.070),
        (40, 2, 0.333, 0.335),
        (80, 2, 0.674, 0.669),
        (120, 2, 0.862, 0.863),
        (200, 2, 0.982, 0.982),
    ],
)
def test_the_stream_that_was_measured(z: int, k: int, expected: float, measured: float) -> None:
    found = averaged(PAPER, z, k, 24)
    assert found.everyone == pytest.approx(expected, abs=6e-4)
    # 50,000 users, whose sets come in groups: some 0.5 %.
    assert found.everyone == pytest.approx(measured, abs=0.006)
    assert found.everyone <= paper(PAPER, z, k, 24)


def test_visible_users_at_the_defaults() -> None:
    assert averaged(PAPER, 20, 2, 24).visible == pytest.approx(0.1244, abs=6e-5)
    assert 1 - averaged(PAPER, 20, 2, 1).visible_share == pytest.approx(0.76, abs=0.005)


@pytest.mark.parametrize(("z", "horizon"), [(1, 1), (20, 24), (100, 24)])
def test_sets_that_are_drawn(z: int, horizon: float) -> None:
    random = np.random.default_rng(3)
    population = Population.power_law(users=20_000, attributes=500)
    sets: list[list[int]] = [[] for _ in range(population.users)]
    for attribute, chance in enumerate(p_n(population, z, horizon)):
        for user in np.nonzero(random.random(population.users) < chance)[0]:
            sets[user].append(attribute)
    crowds = Counter(map(tuple, sets))
    alike = sum(crowd for crowd in crowds.values() if crowd >= 2)
    seen = population.users - crowds[()]
    found = averaged(population, z, 2, horizon)
    assert found.everyone == pytest.approx(alike / population.users, abs=0.01)
    assert found.visible == pytest.approx((alike - crowds[()]) / seen, abs=0.015)


@pytest.mark.parametrize("users", [1, 2, 3, 10**6, 2**53])
@pytest.mark.parametrize("z", [1, 2, 5_000, 10**6])
@pytest.mark.parametrize("k", [1, 2, 3, 1_000])
@pytest.mark.parametrize("horizon", [1e-9, 1.5, 1e6])
def test_extremes_give_probabilities(users: int, z: int, k: int, horizon: float) -> None:
    chances = [0.0, 1e-300, 1e-12, 1e-3, 0.5, 1 - 1e-16, 1.0]
    population = Population(users, chances)
    found = averaged(population, z, k, horizon)
    for value in (found.everyone, found.visible, found.visible_share, found.error):
        assert 0 <= value <= 1
    assert 0 <= paper(population, z, k, horizon) <= 1
    if k == 1:
        assert found.everyone == found.visible == 1
    if k > users:
        assert found.everyone == 0


@pytest.mark.parametrize("attributes", [1, 2, 100])
def test_attributes_that_nobody_or_everybody_has(attributes: int) -> None:
    nobody = averaged(Population(100, [0.0] * attributes), 2, 2, 24)
    assert (nobody.everyone, nobody.visible, nobody.visible_share) == (1, 1, 0)
    everybody = averaged(Population(100, [1.0] * attributes), 2, 2, 24)
    assert (everybody.everyone, everybody.visible, everybody.visible_share) == (1, 1, 1)


def test_a_catalogue_so_large_that_nobody_is_alike() -> None:
    found = averaged(Population.power_law(rate=5, attributes=20_000), 1, 2, 24)
    assert found.everyone == found.visible == 0
    assert found.error < 1e-6


@pytest.mark.parametrize(
    ("others", "wanted"), [(1, 1), (2, 1), (5, 4), (50, 3), (49_999, 1), (10**6, 40)]
)
def test_the_derivatives_that_bound_errors_are_the_largest(others: int, wanted: int) -> None:
    levels = np.linspace(-math.log(others) - 12, -1e-9, 200_001)
    values = tails_module.at_least(wanted, others, np.exp(levels))
    step = levels[1] - levels[0]
    largest = (values[:-1] + np.diff(values) / step).max()
    assert largest <= swing(others, wanted) * (1 + 1e-3)
    assert largest >= swing(others, wanted) * 0.99
    most = np.abs(np.diff(values, 2) / step**2).max()
    bend = anonymity_module._bend(others, wanted)
    assert most <= bend * (1 + 1e-2)
    assert most >= bend * 0.95


def test_the_two_names_of_p_k() -> None:
    assert p_k(PAPER, 20, 2, 24) == averaged(PAPER, 20, 2, 24).everyone
    assert p_k(PAPER, 20, 2, 24, count="visible") == averaged(PAPER, 20, 2, 24).visible
    assert p_k(PAPER, 20, 2, 24, estimator="paper") == paper(PAPER, 20, 2, 24)
    with pytest.raises(ValueError, match="estimator: expected 'averaged' or 'paper', got 'mean'"):
        p_k(PAPER, 20, 2, 24, estimator="mean")
    with pytest.raises(ValueError, match="count: the paper's formula knows only 'all'"):
        p_k(PAPER, 20, 2, 24, estimator="paper", count="visible")
    with pytest.raises(ValueError, match="count: expected 'visible' or 'all', got 'some'"):
        p_k(PAPER, 20, 2, 24, count="some")  # type: ignore[arg-type]


def test_a_sweep_over_z_takes_few_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    operations = Counter[str]()
    real_tail, real_spread = tails_module.betainc, anonymity_module.spread

    def counted_tail(a: float, b: float, p: np.ndarray) -> np.ndarray:
        operations["tails"] += np.size(p)
        return np.asarray(real_tail(a, b, p))

    def counted_spread(absent: np.ndarray, **options: float) -> spread_module.Spread:
        found = real_spread(absent, **options)
        operations["points"] += found.masses.size
        operations["steps"] += found.masses.size * found.chained
        return found

    monkeypatch.setattr(tails_module, "betainc", counted_tail)
    monkeypatch.setattr(anonymity_module, "spread", counted_spread)
    web = Population.power_law(users=9_670, attributes=27_482, rate=0.4)
    for z in range(1, 401, 2):
        averaged(web, z, 2, 24)
    # About a nanosecond a step, a microsecond a tail; 5.5 million attributes in all.
    assert operations["tails"] < 600_000
    assert operations["points"] < 200 * 40_000
    assert operations["steps"] < 1_000_000_000
