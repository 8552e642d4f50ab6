"""Measuring a trace: the gate's decisions and the shares, against the plainest way to count."""

from collections import Counter
from itertools import pairwise
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zveil.model import Trace, measure
from zveil.model.measurement import Meter
from zveil.model.parameters import Count
from zveil.reference import Reference

WINDOW = 10


class Row(NamedTuple):
    t: int
    user: int
    host: int | None
    page: int | None


def trace_of(rows: list[Row]) -> Trace:
    return Trace.of_columns(
        [row.t for row in rows],
        [row.user for row in rows],
        {"host": [row.host for row in rows], "page": [row.page for row in rows]},
        window=WINDOW,
    )


def drawn(seed: int, *, disorder: int) -> list[Row]:
    random = Random(seed)
    rows = []
    for number in range(random.randrange(20, 400)):
        host = int(random.paretovariate(0.7)) % 9
        page = random.choice([None, int(random.paretovariate(0.7)) % 5])
        late = random.randrange(disorder) if disorder else 0
        rows.append(Row(max(number // 4 - late, 0), random.randrange(12), host, page))
    return rows


def plainly(
    rows: list[Row], z: int, k: int, rotate_every: float, count: Count
) -> tuple[float | None, float, int]:
    """Count p_k, the share released and the visible users with dicts and loops."""
    references = {name: Reference(z, WINDOW) for name in ("host", "page")}
    first = min(row.t for row in rows)
    span = max(row.t for row in rows) - first
    whole = max(span // WINDOW + (span % WINDOW >= 9), 1)
    warm_up = 1 if whole >= 4 else 0
    start, end = first + warm_up * WINDOW, first + whole * WINDOW
    length = rotate_every * WINDOW
    periods = max(int((end - start) // length), 1)
    sets: dict[tuple[int, int], set[tuple[str, int]]] = {}
    observed = released = 0
    for row in rows:
        for name, value in (("host", row.host), ("page", row.page)):
            if value is None:
                continue
            passes = references[name].observe(row.t, row.user, value)
            is_measured = start <= row.t < end
            observed += is_measured
            released += is_measured and passes
            period = int((row.t - start) // length)
            if is_measured and passes and period < periods:
                sets.setdefault((period, row.user), set()).add((name, value))
    alike = Counter((period, frozenset(held)) for (period, _), held in sets.items())
    hidden = sum(size for size in alike.values() if size >= k)
    users = len(sets)
    if count == "all":
        everyone = len({row.user for row in rows})
        silent = [everyone - sum(p == period for p, _ in sets) for period in range(periods)]
        hidden += sum(number for number in silent if number >= k)
        users = everyone * periods
    return hidden / users if users else None, released / observed if observed else 0.0, len(sets)


@pytest.mark.parametrize("disorder", [0, 3, 25])
@pytest.mark.parametrize("seed", range(25))
def test_any_trace_is_measured_as_plain_counting_does(seed: int, disorder: int) -> None:
    rows = drawn(seed, disorder=disorder)
    meters: dict[tuple[int, Count], Meter] = {}
    for z in (1, 2, 3, 5, 12):
        for k, rotate_every, count in (
            (2, 1, "visible"), (2, 2, "all"), (3, 3, "visible"), (2, 0.5, "visible"),
            (2, 100, "visible"), (3, 2.5, "all"),
        ):  # fmt: skip
            meter = meters.setdefault((k, count), Meter(trace_of(rows), k=k, count=count))
            found = meter.at(z, rotate_every)
            p_k, released, visible = plainly(rows, z, k, rotate_every, count)
            assert found.visible == visible
            assert found.p_k == (None if p_k is None else pytest.approx(p_k))
            assert found.released == pytest.approx(released)
            assert found.p_k is None or 0 <= found.low <= found.p_k <= found.high <= 1


def test_a_field_is_a_name_space_of_its_own() -> None:
    # Both users show "a", in two fields: no value has two users.
    rows = [Row(0, 1, 7, None), Row(1, 2, None, 7)]
    assert measure(trace_of(rows), z=2).released == 0
    assert trace_of(rows).attributes == 2


def test_what_is_left_out() -> None:
    # Windows of ten: warm-up, four whole ones, and a piece of a sixth.
    times = list(range(53))
    trace = Trace.of_columns(times, [1] * len(times), ["a"] * len(times), window=WINDOW)
    meter = Meter(trace, k=1, count="visible")
    assert (trace.windows, trace.whole_windows, meter.warm_up, meter.windows) == (6, 5, 1, 4)
    by_period = {every: meter.at(1, every) for every in (1, 3, 4, 9)}
    assert [found.periods for found in by_period.values()] == [4, 1, 1, 1]
    assert [found.windows for found in by_period.values()] == [1, 3, 4, 4]
    assert [found.visible for found in by_period.values()] == [4, 1, 1, 1]


def test_a_short_trace_is_measured_from_its_beginning() -> None:
    times = list(range(30))
    trace = Trace.of_columns(times, times, ["a"] * len(times), window=WINDOW)
    meter = Meter(trace, k=2, count="visible")
    assert (meter.warm_up, meter.windows) == (0, 3)
    assert meter.at(1, 3).visible == 30


def test_a_last_window_that_is_nearly_covered_counts() -> None:
    for last, whole in ((38, 3), (39, 4), (40, 4), (49, 5)):
        trace = Trace.of_codes(np.array([0, last]) * 10**9, [0, 0], [0, 0], window=WINDOW)
        assert trace.whole_windows == whole, last
    assert Trace.of_codes([0, 1], [0, 0], [0, 0], window=WINDOW).whole_windows == 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=60
    )
)
def test_a_larger_z_never_releases_more(rows: list[tuple[int, int, int]]) -> None:
    times, users, values = zip(*sorted(rows), strict=True)
    meter = Meter(
        Trace.of_columns(times, users, values, window=WINDOW), k=2, count="visible"
    )  # fmt: skip
    found = [meter.at(z, 2) for z in range(1, 7)]
    for one, other in pairwise(found):
        assert one.released >= other.released
        assert one.visible >= other.visible


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"z": 0}, "z: expected a whole number from 1"),
        ({"z": 2, "k": 0}, "k: expected a whole number from 1"),
        ({"z": 2, "rotate_every": 0}, "rotate_every: expected a finite number above 0"),
        ({"z": 2, "count": "some"}, "count: expected"),
    ],
)
def test_wrong_parameters_are_named(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        measure(trace_of([Row(0, 1, 1, 1)]), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("time_ns", "window", "words"),
    [
        ([0], 0, "window: expected a duration above 0"),
        ([], 1, "times: expected at least one row"),
        ([0, 2**62], 1, "time: expected times within 146 years"),
    ],
)
def test_a_trace_that_is_none(time_ns: list[int], window: int, words: str) -> None:
    codes = [0] * len(time_ns)
    with pytest.raises(ValueError, match=words):
        Trace.of_codes(time_ns, codes, codes, window=window)
