"""The data of the figures: against published readings, exact sums, and counting by hand."""

import csv
import io
import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest

from zveil.figures import NAMES
from zveil.figures.catalogue import FIGURES
from zveil.figures.contents import CONTENTS, Work
from zveil.figures.detail import FULL, QUICK
from zveil.figures.measurements import Releases
from zveil.figures.rows import COLUMNS, DAY, FLAT_DAY, Row, as_csv
from zveil.model import Population, p_q, paper
from zveil.reference import Reference
from zveil.simulate import Events, Scenario


def said(_: str) -> None:
    pass


def rows(name: str, streams: int = 0, seed: int = 1) -> list[Row]:
    return list(CONTENTS[name](Work(replace(QUICK, streams=streams), seed, said)))


def value(found: Iterable[Row], **wanted: object) -> float:
    """Give the value of the one row that is wanted."""
    (row,) = (
        row for row in found if all(getattr(row, name) == each for name, each in wanted.items())
    )
    return row.value


@pytest.fixture(scope="module")
def by_z() -> list[Row]:
    return rows("z-by-k")


def test_the_rank_that_the_paper_reads() -> None:
    found = rows("rank")
    assert value(found, z=20, rank=300) == pytest.approx(1.73e-7, rel=3e-3)
    assert value(found, z=1, rank=300) == pytest.approx(1.67e-4, rel=3e-3)


def test_what_the_paper_reads_off_attributes() -> None:
    found = rows("a-by-k")
    assert value(found, k=2, attributes=100, source="paper") > 0.98
    assert value(found, k=2, attributes=5_000, source="paper") == pytest.approx(0.86921, abs=6e-6)
    others = rows("a-by-z")
    assert value(others, z=1, attributes=5_000, source="paper") < 0.001
    assert value(others, z=10, attributes=5_000, source="paper") == pytest.approx(0.272, abs=6e-4)


@pytest.mark.parametrize(
    ("z", "k", "expected"),
    [(20, 2, 0.86921), (35, 2, 0.9998), (35, 3, 0.9979), (35, 4, 0.9898), (120, 2, 1.0)],
)
def test_the_formula_by_z(by_z: list[Row], z: int, k: int, expected: float) -> None:
    assert value(by_z, z=z, k=k, source="paper") == pytest.approx(expected, abs=6e-5)


@pytest.mark.parametrize(
    ("z", "k", "expected"),
    [(10, 2, 0.0375), (20, 2, 0.1257), (20, 3, 0.0854), (20, 4, 0.0685), (120, 2, 0.862),
     (200, 2, 0.982)],
)  # fmt: skip
def test_the_average_by_z(by_z: list[Row], z: int, k: int, expected: float) -> None:
    found = value(by_z, z=z, k=k, source="averaged", among="all")
    assert found == pytest.approx(expected, abs=6e-4)


def test_users_with_z_in_proportion() -> None:
    found = rows("u-by-k")
    assert value(found, users=22_000, z=9, k=2, source="paper") == pytest.approx(0.52111, abs=6e-6)
    assert value(found, users=100_000, z=40, k=2, source="paper") == pytest.approx(
        0.98861, abs=6e-6
    )


def test_the_horizon() -> None:
    found = rows("n-by-k")
    assert value(found, horizon=22, k=2, source="paper") == pytest.approx(0.980, abs=6e-4)
    assert value(found, horizon=45, k=2, source="paper") == pytest.approx(0.005, abs=6e-4)
    others = rows("n-by-z")
    for horizon, expected in [(70, 0.97054), (150, 0.57877), (400, 1.0)]:
        assert value(others, horizon=horizon, z=120, source="paper") == pytest.approx(
            expected, abs=6e-6
        )
    assert value(others, horizon=10, z=1, source="paper") == pytest.approx(0.9999, abs=6e-5)
    assert value(others, horizon=24, z=1, source="paper") == pytest.approx(0.0004, abs=6e-5)


def test_the_synthetic_day() -> None:
    found = rows("day-z")
    assert value(found, z=200, k=2, source="paper") < 0.01
    assert value(found, z=350, k=2, source="paper") > 0.99
    assert value(found, z=380, k=4, source="paper") > 0.99
    by_rank = rows("day-rank")
    assert value(by_rank, z=1, rank=1) == pytest.approx(0.34, abs=0.005)
    for row in found + by_rank:
        assert row.population.startswith("SYNTHETIC")
        assert (row.users, row.attributes) == (9_670, 27_497)


def test_the_formula_to_sixty_digits() -> None:
    """Exact sums and products at the defaults, to tell the last digits of p_3 and p_4."""
    users, attributes, z = 50_000, 5_000, 20
    with localcontext() as context:
        context.prec = 60
        alike = Decimal(1)
        for rank in range(1, attributes + 1):
            absent = (Decimal("-0.05") / rank).exp()
            fewer = sum(binomial(users - 1, (1 - absent) / absent, absent, z - 1), Decimal())
            present = 1 - (1 - (1 - absent) * (1 - fewer)) ** 24
            alike *= present**2 + (1 - present) ** 2
        terms = binomial(users - 1, alike / (1 - alike), 1 - alike, 3)
        exact = [float(1 - each) for each in itertools.accumulate(terms)]
    population = Population.power_law()
    assert p_q(population, z, 24) == pytest.approx(float(alike), rel=1e-12)
    assert exact == pytest.approx([0.8692098, 0.6031560, 0.3325579], abs=5e-8)
    assert [paper(population, z, k, 24) for k in (2, 3, 4)] == pytest.approx(exact, rel=1e-11)


def binomial(trials: int, odds: Decimal, fails: Decimal, count: int) -> list[Decimal]:
    """Give the first terms of a binomial distribution."""
    terms = [fails**trials]
    for number in range(1, count):
        terms.append(terms[-1] * odds * (trials - number + 1) / number)
    return terms


@pytest.mark.parametrize("z", [1, 3, 6])
def test_releases_are_what_the_reference_releases(z: int) -> None:
    scenario = Scenario(users=60, attributes=8, rate=0.6, windows=5, seed=4)
    events = Events.joined(list(scenario.columns()))
    released = Releases.of(scenario, events, z)
    gate = Reference(z, 3_600_000)
    held: dict[int, set[tuple[int, int]]] = {user: set() for user in range(1, 61)}
    for time, user, rank in zip(*(column.tolist() for column in events), strict=True):
        window = (time - scenario.start * 1000) // 3_600_000 - 1
        if gate.observe(time, user, rank) and window >= 0:
            held[user].add((rank, window))
    shown = Counter(rank for points in held.values() for rank, _ in points)
    expected = [shown[rank] / (60 * 4) for rank in range(1 + max(shown))]
    assert released.p_y().tolist() == pytest.approx(expected)
    for horizon, attributes in [(4, 8), (1, 8), (4, 3), (2, 1)]:
        sets = [
            frozenset(
                rank for rank, window in held[user] if window < horizon and rank <= attributes
            )
            for user in held
        ]
        sizes = Counter(sets)
        for k, found in released.p_k(horizon, attributes, (1, 2, 3)).items():
            assert found["all"] == np.mean([sizes[each] >= k for each in sets])
            visible = [sizes[each] >= k for each in sets if each]
            assert found["visible"] == (np.mean(visible) if visible else 1)


@pytest.mark.parametrize("name", ["z-by-k", "n-by-k"])
def test_the_gate_does_what_is_averaged(name: str) -> None:
    found = rows(name, streams=1)
    for row in (row for row in found if row.source == "measured"):
        place = {each: getattr(row, each) for each in ("users", "horizon", "z", "k", "among")}
        assert row.value == pytest.approx(value(found, source="averaged", **place), abs=0.01)
        assert (row.low, row.high, row.streams) == (row.value, row.value, 1)


def test_several_streams_are_one_value() -> None:
    detail = replace(QUICK, streams=3, measured_users=(5_000,), users=(2_500,))
    found = [row for row in CONTENTS["u-by-k"](Work(detail, 1, said)) if row.streams]
    assert {row.streams for row in found} == {3}
    assert len(found) == 6
    for row in found:
        assert row.low is not None
        assert row.high is not None
        assert row.low <= row.value <= row.high
    assert any(row.low != row.high for row in found)


def test_the_same_seed_gives_the_same_data_and_another_other() -> None:
    first, again, other = (as_csv(rows("n-by-k", 1, seed)) for seed in (1, 1, 2))
    assert first == again
    lines = [
        [line for line in each.splitlines() if ",measured," in line] for each in (first, other)
    ]
    assert lines[0] != lines[1]
    assert set(first.splitlines()) - set(lines[0]) == set(other.splitlines()) - set(lines[1])


def test_a_day_is_measured_with_and_without_day_and_night() -> None:
    detail = replace(QUICK, streams=1, day_zs=(350,))
    found = [row for row in CONTENTS["day-z"](Work(detail, 1, said)) if row.k == 2]
    averaged = value(found, source="averaged", among="all")
    flat = value(found, population=FLAT_DAY, among="all")
    assert flat == pytest.approx(averaged, abs=0.04)
    assert value(found, population=DAY, source="measured", among="all") < flat / 4


def test_the_catalogue_is_whole() -> None:
    assert tuple(CONTENTS) == NAMES
    assert len(set(NAMES)) == 12
    for figure in FIGURES:
        assert figure.is_synthetic == figure.name.startswith("day")
        assert figure.is_synthetic == ("SYNTHETIC" in figure.title)
        assert figure.is_synthetic == ("no real data" in figure.fixed)


def test_what_is_measured_has_its_place_on_a_curve() -> None:
    for detail in (FULL, QUICK):
        assert set(detail.measured_ranks) <= set(detail.ranks) & set(detail.day_ranks)
        assert set(detail.measured_attributes) <= set(detail.attributes)
        assert set(detail.measured_users) <= set(detail.users)
        assert set(detail.measured_zs) <= set(detail.zs)
        assert set(detail.measured_horizons) <= set(detail.horizons)
        assert set(detail.measured_long_horizons) <= set(detail.long_horizons)
        assert set(detail.measured_day_zs) <= set(detail.day_zs)


def test_csv_is_tidy() -> None:
    found = rows("rank")
    table = list(csv.DictReader(io.StringIO(as_csv(found))))
    assert tuple(table[0]) == COLUMNS
    assert len(table) == len(found)
    assert set(COLUMNS) == set(Row._fields)
    first = table[0]
    assert first["k"] == first["low"] == first["streams"] == ""
    assert float(first["value"]) == pytest.approx(found[0].value, rel=1e-5)
