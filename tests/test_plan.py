"""Planning: the figures to meet, the guarantee of the search, and what it refuses."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zveil.model import Population, Unreachable, averaged, plan, released, smallest_z
from zveil.model.parameters import Count
from zveil.model.plan import _Search

PAPER = Population.power_law()


@pytest.mark.parametrize(
    ("horizon", "visible", "everyone"), [(24, 163, 162), (4, 60, 40), (1, 26, 4)]
)
def test_the_defaults_of_the_paper(horizon: float, visible: int, everyone: int) -> None:
    for count, expected in (("visible", visible), ("all", everyone)):
        z, found = smallest_z(PAPER, horizon=horizon, count=count)
        assert z == expected
        assert found.of(count) >= 0.95
        if z > 1:
            assert averaged(PAPER, z - 1, 2, horizon).of(count) < 0.95


populations = st.builds(
    lambda users, chances: Population(users, chances),
    st.integers(2, 120),
    st.lists(st.floats(1e-4, 0.9), min_size=1, max_size=8),
)


@settings(max_examples=120, deadline=None)
@given(
    populations,
    st.integers(2, 5),
    st.floats(0.05, 0.99),
    st.sampled_from([0.5, 1, 4, 30]),
    st.sampled_from(["visible", "all"]),
)
def test_no_smaller_z_reaches_it(
    population: Population, k: int, wanted: float, horizon: float, count: Count
) -> None:
    values = [averaged(population, z, k, horizon) for z in range(1, population.users + 1)]
    off = max(value.visible_error for value in values if value.visible_share)
    # What lies on the edge may go either way.
    if k > population.users or any(abs(v.of(count) - wanted) <= 2 * off for v in values):
        return
    # Where nobody is visible, nobody is promised anything.
    good = [v.of(count) >= wanted and (count == "all" or v.visible_share > 0) for v in values]
    if not any(good):
        with pytest.raises(Unreachable, match="no z reaches"):
            smallest_z(population, k=k, probability=wanted, horizon=horizon, count=count)
        return
    z, _ = smallest_z(population, k=k, probability=wanted, horizon=horizon, count=count)
    assert z == good.index(True) + 1


def test_it_falls_again_and_is_found_all_the_same() -> None:
    # Among visible users a large z leaves what hardly anyone holds: p_k falls to 0.
    population = Population.power_law(users=1_000, attributes=50)
    values = [averaged(population, z, 2, 24).visible for z in range(1, 200)]
    assert any(later < earlier for earlier, later in pairwise(values))
    assert max(values) > 0.95 > values[-1]
    z, _ = smallest_z(population)
    assert z == next(at for at, value in enumerate(values, 1) if value >= 0.95)


def test_a_search_looks_at_few_z() -> None:
    for users in (50_000, 1_000_000):
        population = Population.power_law(users)
        search = _Search(population, 2, 0.95, 24, "visible")
        assert search.first(1, users)
        assert search.at.cache_info().misses < 120


def test_options_for_changing_ids() -> None:
    seen: list[tuple[int, int]] = []
    found = plan(PAPER, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(done, len(found.options)) for done in range(len(found.options))]
    assert found.kept is not None
    assert found.kept.z == 163
    assert {option.rotate_every for option in found.options} == {1, 2, 3, 4, 6, 8, 12, 16, 24}
    by_period = {option.rotate_every: option for option in found.options}
    assert (by_period[1].z, by_period[4].z) == (26, 60)
    for option in found.options:
        assert option.p_k >= 0.95
        assert option.released == released(PAPER, option.z)
    shares = [option.released for option in found.options]
    assert shares == sorted(shares, reverse=True)


def test_horizons_of_any_length() -> None:
    small = Population.power_law(users=2_000, attributes=50)
    assert [each.rotate_every for each in plan(small, horizon=0.5).options] == [0.5]
    periods = sorted(each.rotate_every for each in plan(small, horizon=2.5, count="all").options)
    assert periods == [1, 2, 2.5]


def test_ids_that_stay_may_be_too_much_where_changing_them_helps() -> None:
    few = Population(10, [0.05] * 6)
    found = plan(few, probability=0.3, horizon=12)
    assert found.kept is None
    assert {option.rotate_every for option in found.options} == {2, 3, 4, 6, 8}
    assert all(option.p_k >= 0.3 for option in found.options)
    assert max(averaged(few, z, 2, 12).visible for z in range(1, 11)) < 0.3


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"k": 1}, ValueError, "k: expected a whole number from 2"),
        ({"k": 101}, ValueError, "k: expected at most the number of users, 100, got 101"),
        ({"probability": 1.0}, ValueError, "probability: expected a number above 0 and below 1"),
        ({"probability": 0}, ValueError, "probability: .* got 0"),
        ({"horizon": -1}, ValueError, "horizon: expected a finite number above 0, got -1"),
        ({"count": "some"}, ValueError, "count: expected 'visible' or 'all', got 'some'"),
        ({"k": 90, "probability": 0.999}, Unreachable, "no z reaches 0.999 .* however often"),
    ],
)
def test_the_impossible_is_refused_with_a_reason(
    options: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        plan(Population.power_law(users=100, attributes=20), **options)  # type: ignore[arg-type]


def test_nobody_is_one_of_two_alone() -> None:
    with pytest.raises(ValueError, match="k: expected at most the number of users, 1, got 2"):
        smallest_z(Population(1, [0.5]))
