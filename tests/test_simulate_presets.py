"""The presets against what the paper says of its model and of its day at an ISP."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from simulated import all_of, deviations, measured_px, users_by_rank

from zveil import Gate
from zveil.simulate import Events, Scenario, isp_day, paper


@pytest.fixture(scope="module")
def day() -> tuple[Scenario, Events]:
    scenario = isp_day()
    return scenario, all_of(scenario.columns())


def test_the_paper_has_its_parameters() -> None:
    scenario = paper()
    assert (scenario.users, scenario.attributes, scenario.windows) == (50_000, 5_000, 25)
    ranks = np.arange(1, 5_001)
    assert np.allclose(scenario.px(), 1 - np.exp(-0.05 / ranks), rtol=1e-12)
    assert scenario.expected_events() == pytest.approx(50_000 * 25 * (0.05 / ranks).sum())


def test_the_paper_is_measured() -> None:
    scenario = paper()
    events = all_of(scenario.columns())
    assert events.size == pytest.approx(scenario.expected_events(), abs=4 * 754)
    found = deviations(scenario, events)
    assert np.abs(found[:1_000]).max() < 5
    assert 0.95 < found[:1_000].std() < 1.05
    assert measured_px(scenario, events)[0] == pytest.approx(0.048771, abs=0.0008)


def crowded(users: int, px: NDArray[np.float64], z: int) -> NDArray[np.float64]:
    """Give p^Y = p^X * P[Bin(users - 1, p^X) >= z - 1]."""
    others = np.arange(z - 1)
    ways = [
        math.lgamma(users) - math.lgamma(i + 1) - math.lgamma(users - i) for i in others.tolist()
    ]
    logs = np.array(ways)[:, None] + np.outer(others, np.log(px))
    fewer = np.exp(logs + np.outer(users - 1 - others, np.log1p(-px))).sum(0)
    return px * (1 - np.minimum(fewer, 1))


def test_the_expected_popularity_is_the_published_one() -> None:
    px = isp_day().px()
    assert px[0] == pytest.approx(0.34, rel=1e-9)
    assert (px > 0.1).sum() == 7
    assert (crowded(9_670, px[:500], 10) > 0.01).sum() == 70
    assert (np.diff(px) < 0).all()


def test_the_published_formula_gives_the_published_reading() -> None:
    px = isp_day().px()[:500]

    def p_2(z: int) -> float:
        exposed = 1 - (1 - crowded(9_670, px, z)) ** 24
        equal = np.prod(exposed**2 + (1 - exposed) ** 2)
        return float(1 - (1 - equal) ** 9_669)

    assert p_2(200) < 0.001
    assert p_2(350) > 0.999
    assert 0.02 < p_2(250) < 0.1


def test_the_day_is_as_large_as_published(day: tuple[Scenario, Events]) -> None:
    scenario, events = day
    assert scenario.users == 9_670
    assert len(np.unique(events.user)) == 9_670
    users = users_by_rank(events)
    assert abs((users > 0).sum() - 27_482) < 20
    assert abs((users == 1).sum() - 15_464) < 20


def test_any_seed_is_near_the_published_counts() -> None:
    users = users_by_rank(all_of(isp_day(seed=77).columns()))
    assert abs((users > 0).sum() - 27_482) < 4 * 115
    assert abs((users == 1).sum() - 15_464) < 4 * 115


def test_the_counts_are_expected_and_not_luck() -> None:
    once = -np.expm1(-24 * isp_day().rates)
    seen = -np.expm1(9_670 * np.log1p(-once))
    by_one = 9_670 * once * np.exp(9_669 * np.log1p(-once))
    assert seen.sum() == pytest.approx(27_482, abs=10)
    assert by_one.sum() == pytest.approx(15_464, abs=10)


def test_the_day_is_measured(day: tuple[Scenario, Events]) -> None:
    scenario, events = day
    px = measured_px(scenario, events)
    assert px[0] == pytest.approx(0.34, abs=0.004)
    assert px[:7].min() > 0.1 > px[7:].max()
    assert np.abs(deviations(scenario, events)[:1_000]).max() < 4.5


def test_about_seventy_sites_are_released_often(day: tuple[Scenario, Events]) -> None:
    scenario, events = day
    mask = Gate(10, "1h").observe_many(*events, time_unit="ms")
    py = measured_px(scenario, events.at(mask))
    assert 66 <= (py > 0.01).sum() <= 74
    # From rank 200 on, a crowd of ten is not always there.
    released = py[:1_000] / measured_px(scenario, events)[:1_000]
    assert released[:100].min() > 0.9
    assert released[900:].max() < 0.6


def test_the_day_has_a_night(day: tuple[Scenario, Events]) -> None:
    hours = np.bincount(day[1].time_ms // 3_600_000 % 24)
    assert hours.argmin() == 4
    assert hours.argmax() == 21
    assert 7 < hours.max() / hours.min() < 10


def test_the_day_is_called_synthetic() -> None:
    assert isp_day().title.startswith("synthetic")
    assert "synthetic" in (isp_day.__doc__ or "")
