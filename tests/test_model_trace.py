"""A population estimated from columns of a trace."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zveil.model import Population, from_columns, plan

TIMES = [0, 5, 12, 13, 29]
USERS = ["ada", "bob", "ada", "ada", "cyd"]
SITES = ["x", "x", "y", "y", "x"]


def check(found: Population) -> None:
    assert found.users == 3
    # Three windows of three users: x by two, none, one of them; y by none, one, none.
    np.testing.assert_allclose(found.p_x, [3 / 9, 1 / 9])
    np.testing.assert_allclose(found.rates, [3 / 9, 2 / 9])


def test_the_mean_over_windows_of_the_share_of_users() -> None:
    check(from_columns(TIMES, USERS, SITES, window=10))


START = datetime(2026, 1, 1, 7, 3, tzinfo=UTC)
MOMENTS = [START + timedelta(seconds=each) for each in TIMES]


@pytest.mark.parametrize(
    ("times", "users", "sites"),
    [
        (np.array(TIMES), np.array([1, 2, 1, 1, 3]), np.array(SITES)),
        (np.array(TIMES, float) - 7.25, pa.array(USERS), pa.array(SITES).dictionary_encode()),
        (np.array(TIMES, "datetime64[s]"), USERS, SITES),
        (MOMENTS, USERS, SITES),
        (pa.chunked_array([TIMES[:2], TIMES[2:]]), pa.chunked_array([USERS[:3], USERS[3:]]), SITES),
        (pd.Series(MOMENTS), pd.Series(USERS), pd.Series(SITES).astype("category")),
        (pl.Series(MOMENTS), pl.Series(USERS), pl.Series(SITES)),
    ],
)
def test_columns_of_any_kind(times: object, users: object, sites: object) -> None:
    check(from_columns(times, users, sites, window="10s"))


def test_units_of_time() -> None:
    milliseconds = np.array(TIMES) * 1_000
    check(from_columns(milliseconds, USERS, SITES, window="10s", time_unit="ms"))


def test_windows_without_number() -> None:
    far = [-(2**61), 0, 2**61]
    found = from_columns(far, ["ada", "bob", "ada"], ["x", "y", "z"], window=1e-9, time_unit="ns")
    np.testing.assert_allclose(found.p_x, [1 / 2**63] * 3)


def test_rows_with_something_missing_do_not_count() -> None:
    check(
        from_columns(
            pa.array([*TIMES, None, 1, 900]),
            pa.array([*USERS, "dan", None, "eve"]),
            pa.array([*SITES, "x", "x", None]),
            window=10,
        )
    )


rows = st.tuples(st.integers(-50, 50), st.integers(0, 5), st.integers(0, 5))


@given(st.lists(rows, min_size=1, max_size=60), st.integers(1, 30))
def test_it_is_what_counting_gives(stream: list[tuple[int, int, int]], window: int) -> None:
    times, users, sites = zip(*stream, strict=True)
    found = from_columns(list(times), list(users), list(sites), window=window)
    start, crowd = min(times), len(set(users))
    windows = (max(times) - start) // window + 1
    seen = {((t - start) // window, u, a) for t, u, a in stream}
    expected = [
        sum(site == each for _, _, site in seen) / (windows * crowd)
        for each in dict.fromkeys(sites)
    ]
    assert found.users == crowd
    np.testing.assert_allclose(found.p_x, expected)


def test_a_plan_from_a_trace_is_that_of_the_population_it_came_from() -> None:
    random = np.random.default_rng(2)
    population = Population.power_law(users=2_000, attributes=100, rate=0.2)
    windows = 40
    index, user, site = np.nonzero(random.random((windows, 2_000, 100)) < population.p_x)
    found = from_columns(index * 60 + 30, user, site, window="1m")
    assert found.users == 2_000
    ranked = np.sort(found.p_x)[::-1]
    np.testing.assert_allclose(ranked[:20], population.p_x[:20], rtol=0.1)
    expected = plan(population, horizon=1).kept
    estimated = plan(found, horizon=1).kept
    assert expected is not None
    assert estimated is not None
    assert estimated.z == pytest.approx(expected.z, rel=0.05)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"window": 0}, ValueError, "window: expected a duration above 0"),
        ({"window": "soon"}, ValueError, "window: expected a duration such as"),
        ({"times": []}, ValueError, "expected columns of one length"),
        ({"times": ["a"] * 5}, TypeError, "times: expected numbers or datetimes, got string"),
        ({"times": [np.inf] * 5}, ValueError, "times: expected times within 146 years of 1970"),
        ({"times": [*range(4), np.nan]}, ValueError, "times: expected times within 146 years"),
        ({"times": [2 * 10**12] * 5}, ValueError, "is time_unit right"),
        ({"users": pa.nulls(5)}, ValueError, "at least one row with a time, a user"),
        ({"time_unit": "days"}, ValueError, "time_unit: expected 's'"),
    ],
)
def test_errors_say_what_is_wrong(
    change: dict[str, object], error: type[Exception], words: str
) -> None:
    options: dict[str, object] = {"times": TIMES, "users": USERS, "attributes": SITES, "window": 10}
    with pytest.raises(error, match=words):
        from_columns(**(options | change))  # type: ignore[arg-type]
