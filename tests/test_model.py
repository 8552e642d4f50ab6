"""The paper's quantities: its published readings, exact arithmetic, and the far tails."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zveil.model import (
    Population,
    log_p_q,
    log_p_y,
    p_n,
    p_o,
    p_q,
    p_x,
    p_y,
    paper,
    released,
    utility,
)
from zveil.model.tails import at_least, log_at_least, sum_at_least

PAPER = Population.power_law()


def exact_tail(count: int, trials: int, p: Fraction) -> Fraction:
    """Sum the terms in exact arithmetic."""
    return sum(
        (
            math.comb(trials, i) * p**i * (1 - p) ** (trials - i)
            for i in range(max(count, 0), trials + 1)
        ),
        Fraction(0),
    )


@given(
    st.integers(0, 40), st.integers(-1, 42), st.fractions(0, 1, max_denominator=1000), st.booleans()
)
def test_tails_are_exact(trials: int, count: int, p: Fraction, in_logarithms: bool) -> None:
    expected = float(exact_tail(count, trials, p))
    if in_logarithms:
        (found,) = log_at_least(count, trials, [float(p)])
        assert found == pytest.approx(math.log(expected) if expected else -math.inf, abs=1e-12)
    else:
        (found,) = at_least(count, trials, [float(p)])
        assert found == pytest.approx(expected, rel=1e-11, abs=0)


@pytest.mark.parametrize(
    ("count", "trials", "p"),
    [
        (5_000, 2_000_000, 0.0024),
        (5_000, 2_000_000, 0.0026),
        (19, 49_999, 0.05 / 300),
        (3_000, 10**6, 0.0025),
        (12_345, 10**7, 0.0012),
    ],
)
def test_tails_of_large_sums_agree_with_their_terms(count: int, trials: int, p: float) -> None:
    terms, term = [], 0.0
    for i in range(count, trials + 1):
        ways = math.lgamma(trials + 1) - math.lgamma(i + 1) - math.lgamma(trials - i + 1)
        term = math.exp(ways + i * math.log(p) + (trials - i) * math.log1p(-p))
        terms.append(term)
        if i > trials * p + 1 and term < 1e-17 * max(terms):
            break
    assert at_least(count, trials, [p])[0] == pytest.approx(math.fsum(terms), rel=1e-6)


@pytest.mark.parametrize("p", [1e-300, 1e-100, 1e-20, 1e-6])
def test_tails_below_the_smallest_float_have_a_logarithm(p: float) -> None:
    count, trials = 3_000, 1_000_000
    first = (
        math.lgamma(trials + 1)
        - math.lgamma(count + 1)
        - math.lgamma(trials - count + 1)
        + count * math.log(p)
        + (trials - count) * math.log1p(-p)
    )
    (found,) = log_at_least(count, trials, [p])
    # The terms after the first add less than a geometric series would.
    ratio = (trials - count) / (count + 1) * p / (1 - p)
    assert first <= found <= first - math.log1p(-ratio) + 1e-6
    assert at_least(count, trials, [p])[0] == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.fractions(0, 1, max_denominator=50)),
        min_size=1,
        max_size=3,
    ),
    st.integers(-1, 40),
)
def test_tails_of_sums_over_groups(groups: list[tuple[int, Fraction]], count: int) -> None:
    chances = [Fraction(1)]
    for trials, p in groups:
        own = [math.comb(trials, i) * p**i * (1 - p) ** (trials - i) for i in range(trials + 1)]
        chances = [
            sum(
                (
                    own[i] * chances[total - i]
                    for i in range(len(own))
                    if 0 <= total - i < len(chances)
                ),
                Fraction(0),
            )
            for total in range(len(chances) + trials)
        ]
    expected = float(sum(chances[max(count, 0) :], Fraction(0)))
    (found,) = sum_at_least(count, [(n, np.array([float(p)])) for n, p in groups])
    assert found == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("wanted", [5, 50, 400, 900])
def test_groups_that_are_alike_are_one(wanted: int) -> None:
    p = np.geomspace(1e-4, 0.9, 50)
    halves = sum_at_least(wanted, [(400, p), (600, p)])
    np.testing.assert_allclose(halves, at_least(wanted, 1_000, p), atol=1e-12)


def test_the_readings_of_the_paper() -> None:
    assert p_x(PAPER)[299] == pytest.approx(1.67e-4, rel=1e-2)
    assert p_y(PAPER, 20)[299] == pytest.approx(1.73e-7, rel=5e-3)
    np.testing.assert_array_equal(p_y(PAPER, 1), p_x(PAPER))
    assert p_q(PAPER, 20, 24) == pytest.approx(4.06832e-5, rel=2e-6)
    assert math.exp(log_p_q(PAPER, 20, 24)) == pytest.approx(p_q(PAPER, 20, 24))


@pytest.mark.parametrize(
    ("z", "k", "horizon", "expected"),
    [
        (20, 2, 24, 0.86921),
        (35, 2, 24, 0.9998),
        (35, 3, 24, 0.9979),
        (35, 4, 24, 0.9898),
        (20, 2, 22, 0.980),
        (20, 2, 45, 0.005),
        (120, 2, 70, 0.97054),
        (120, 2, 150, 0.57877),
        (120, 2, 400, 1.0),
        (1, 2, 10, 0.9999),
        (1, 2, 24, 0.0004),
    ],
)
def test_the_formula_of_the_paper(z: int, k: int, horizon: float, expected: float) -> None:
    digits = len(str(expected)) - 2
    assert paper(PAPER, z, k, horizon) == pytest.approx(expected, abs=0.6 * 10**-digits)


@pytest.mark.parametrize(("users", "z", "expected"), [(22_000, 9, 0.52111), (100_000, 40, 0.98861)])
def test_the_formula_of_the_paper_with_other_crowds(users: int, z: int, expected: float) -> None:
    assert paper(Population.power_law(users), z, 2, 24) == pytest.approx(expected, abs=6e-6)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_formula_of_the_paper_is_the_sum_that_it_prints(k: int) -> None:
    alike, others = p_q(PAPER, 20, 24), PAPER.users - 1
    fewer = math.fsum(
        math.comb(others, i) * alike**i * (1 - alike) ** (others - i) for i in range(k - 1)
    )
    assert paper(PAPER, 20, k, 24) == pytest.approx(1 - fewer, abs=1e-10)


def test_horizons_are_real_numbers() -> None:
    half, whole = p_n(PAPER, 20, 0.5), p_n(PAPER, 20, 1)
    np.testing.assert_allclose(half * (2 - half), whole, rtol=1e-12)


def test_small_chances_are_not_lost() -> None:
    tiny = Population(10, [1e-300, 1e-20])
    np.testing.assert_allclose(p_n(tiny, 1, 24), [24e-300, 24e-20], rtol=1e-12)
    assert log_p_q(tiny, 1, 24) == pytest.approx(-48e-20, rel=1e-12)
    assert log_p_y(tiny, 3)[0] == pytest.approx(3 * math.log(1e-300) + math.log(36))


def test_no_more_is_released_for_a_larger_z() -> None:
    chances = [p_o(PAPER, z) for z in (1, 2, 3, 20, 200, 2_000, 50_000, 50_001)]
    assert all((more >= less).all() for more, less in itertools.pairwise(chances))
    assert (chances[0] == 1).all()
    assert (chances[-1] == 0).all()


def test_what_is_left_to_use_agrees_with_a_simulation() -> None:
    random = np.random.default_rng(7)
    population = Population.power_law(users=400, attributes=60, rate=0.3)
    z, windows, runs = 12, 3, 300
    shown = random.random((runs, windows, 400, 60)) < population.p_x
    out = shown & (shown.sum(axis=2, keepdims=True) >= z)
    left = utility(population, z, windows)
    assert left.attributes_per_user == pytest.approx(out.any(axis=1).sum(axis=2).mean(), rel=0.01)
    assert left.distinct_attributes == pytest.approx(
        out.any(axis=(1, 2)).sum(axis=1).mean(), rel=0.01
    )
    weights = population.rates / population.p_x  # observations in a window that has any
    assert left.released == pytest.approx(
        (out * weights).sum() / (shown * weights).sum(), rel=0.005
    )


def test_what_is_left_at_the_ends() -> None:
    assert released(PAPER, 1) == pytest.approx(1)
    assert released(PAPER, 50_001) == 0
    assert released(Population(10, [0.0]), 2) == 0


def test_a_population_can_be_given_in_three_ways() -> None:
    ranks = np.arange(1, 101)
    rates = Population.from_rates(1_000, 0.05 / ranks)
    power = Population.power_law(1_000, 100)
    np.testing.assert_allclose(rates.p_x, power.p_x)
    np.testing.assert_allclose(Population(1_000, rates.p_x).rates, rates.rates)
    np.testing.assert_allclose(
        Population.power_law(1_000, 100, window=2).p_x,
        Population.power_law(1_000, 100, rate=0.1).p_x,
    )
    with pytest.raises(ValueError, match="read-only"):
        power.p_x[0] = 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Population(0, [0.5]), "users: expected a whole number from 1 .* got 0"),
        (lambda: Population(2.5, [0.5]), "users: .* got 2.5"),  # type: ignore[arg-type]
        (lambda: Population(True, [0.5]), "users: .* got True"),
        (lambda: Population(10, []), "p_x: expected one number for each"),
        (lambda: Population(10, [[0.5]]), "p_x: expected one number for each"),
        (lambda: Population(10, ["x"]), "p_x: expected a column of numbers"),
        (lambda: Population(10, [0.5, 1.5]), "p_x: expected numbers from 0 to 1, got 0.5 to 1.5"),
        (lambda: Population(10, [math.nan]), "p_x: expected numbers from 0 to 1, got nan"),
        (lambda: Population(10, [0.5], [1, 2]), "rates: expected one for each of 1 .* got 2"),
        (lambda: Population(10, [0.5], [math.inf]), "rates: expected finite numbers from 0"),
        (lambda: Population.power_law(rate=-1), "rate: expected a finite number above 0, got -1"),
        (lambda: Population.power_law(attributes=0), "attributes: .* from 1 .* got 0"),
        (lambda: Population.power_law(window=0), "window: expected a finite number above 0"),
        (lambda: Population.power_law(exponent=math.inf), "exponent: .* got inf"),
        (lambda: p_o(PAPER, 0), "z: expected a whole number from 1 .* got 0"),
        (lambda: p_n(PAPER, 20, 0), "horizon: expected a finite number above 0, got 0"),
        (lambda: paper(PAPER, 20, 0, 24), "k: expected a whole number from 1 .* got 0"),
    ],
)
def test_errors_name_the_parameter_its_range_and_what_came(
    make: Callable[[], object], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        make()
