"""observe_many over every kind of column: the same decisions as one at a time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from zveil import Gate

ROWS = 3_000
RANDOM = np.random.default_rng(5)
SECONDS = np.sort(RANDOM.integers(0, 60_000, ROWS)) + 1_700_000_000
USERS = RANDOM.integers(0, 40, ROWS)
VALUES = np.sqrt(RANDOM.integers(0, 900, ROWS)).astype(int)
TEXT_USERS = [f"user {user}" for user in USERS]
TEXTS = [f"www.site-number-{value}.example" for value in VALUES]


def one_by_one(times: Any, users: Any, attributes: Any, **options: Any) -> list[bool]:
    gate = Gate(z=5, window="1h", **options)
    return [
        gate.observe(t, user, attribute)
        for t, user, attribute in zip(times, users, attributes, strict=True)
    ]


EXPECTED = one_by_one(SECONDS.tolist(), TEXT_USERS, TEXTS)


def test_the_stream_is_worth_testing_on() -> None:
    assert 500 < sum(EXPECTED) < ROWS - 500


def many(times: Any, users: Any, attributes: Any, **options: Any) -> list[bool]:
    unit = options.pop("unit", None)
    mask = Gate(z=5, window="1h", **options).observe_many(times, users, attributes, time_unit=unit)
    assert mask.dtype == np.bool_
    assert mask.flags.writeable
    return list(mask.tolist())


TEXT_COLUMNS = {
    "list": list,
    "tuple": tuple,
    "numpy text": np.array,
    "numpy object": lambda values: np.array(values, dtype=object),
    "pandas": pd.Series,
    "pandas category": lambda values: pd.Series(values, dtype="category"),
    "pandas arrow": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.string())),
    "polars": pl.Series,
    "polars categorical": lambda values: pl.Series(values, dtype=pl.Categorical),
    "arrow string": lambda values: pa.array(values, pa.string()),
    "arrow large_string": lambda values: pa.array(values, pa.large_string()),
    "arrow string_view": lambda values: pa.array(values, pa.string_view()),
    "arrow dictionary": lambda values: pa.array(values).dictionary_encode(),
    "arrow chunks": lambda values: pa.chunked_array(
        [values[:7], [], values[7:1000], values[1000:]]
    ),
    "arrow dictionary of int8": lambda values: (
        pa.array(values).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
    ),
    "arrow slice": lambda values: pa.array(["x", *values, "y"])[1:-1],
    "arrow run-end": lambda values: pa.compute.run_end_encode(pa.array(values)),
}


@pytest.mark.parametrize("kind", TEXT_COLUMNS)
def test_text(kind: str) -> None:
    column = TEXT_COLUMNS[kind]
    assert many(SECONDS, column(TEXT_USERS), column(TEXTS)) == EXPECTED
    assert many(SECONDS, TEXT_USERS, column(TEXTS)) == EXPECTED


def test_a_dictionary_with_more_words_than_rows() -> None:
    words = pa.array([f"word {n}" for n in range(100)])
    keys = pa.array([3, 3, None, 5], pa.int16())
    column = pa.DictionaryArray.from_arrays(keys, words)
    gate = Gate(z=2, window="1h")
    assert gate.observe_many([0, 0, 0, 0], ["x", "y", "z", "x"], column).tolist() == [
        False, True, False, False,
    ]  # fmt: skip
    assert gate.observe(0, "y", "word 5")
    assert gate.stats().invalid == 1


@pytest.mark.parametrize("kind", ["binary", "large_binary", "binary_view", "numpy", "fixed"])
def test_bytes_are_another_value_than_text(kind: str) -> None:
    values = [text.encode().ljust(40) for text in TEXTS]
    column: Any
    if kind == "numpy":
        column = np.array(values)
    elif kind == "fixed":
        column = pa.array(values, pa.binary(40))
    else:
        column = pa.array(values, getattr(pa, kind)())
    assert many(SECONDS, TEXT_USERS, column) == EXPECTED
    gate = Gate(z=1, window="1h")
    gate.observe_many(SECONDS[:1], TEXT_USERS[:1], column[:1])
    gate.observe(int(SECONDS[0]), TEXT_USERS[0], values[0].decode())
    assert gate.stats().attributes == 2


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_integers_of_any_width_are_one_value(dtype: str) -> None:
    expected = one_by_one(SECONDS.tolist(), USERS.tolist(), VALUES.tolist())
    assert many(SECONDS, USERS.astype(dtype), VALUES.astype(dtype)) == expected
    gate = Gate(z=2, window="1h")
    gate.observe(0, "1", 5)
    assert not gate.observe_many([0], np.array([1], dtype), np.array([5], dtype)).any()
    assert gate.observe_many([0], np.array([2], dtype), np.array([5], dtype)).all()


def test_large_integers() -> None:
    gate = Gate(z=2, window="1h")
    large = np.array([2**64 - 1, 2**63], np.uint64)
    gate.observe_many([0, 0], [1, 1], large)
    assert gate.observe(0, 2, 2**64 - 1)
    assert gate.observe(0, 2, 2**63)
    assert not gate.observe(0, 2, -1)


def test_floats_and_bools() -> None:
    gate = Gate(z=2, window="1h")
    values = np.array([0.0, -0.0, 1.5, np.nan, 1.5])
    users = np.array([1.0, 2.0, 1.0, 1.0, np.nan])
    assert gate.observe_many(np.zeros(5), users, values).tolist() == [
        False, True, False, False, False,
    ]  # fmt: skip
    assert gate.stats().invalid == 2
    assert gate.observe(0, 2, np.float32(1.5))
    assert not gate.observe_many([0], ["x"], np.array([True])).any()
    assert gate.observe(0, "y", True)


TIME_COLUMNS = {
    "int seconds": (lambda t: t, "s"),
    "int32 seconds": (lambda t: t.astype("int32"), "s"),
    "uint64 seconds": (lambda t: t.astype("uint64"), "s"),
    "float seconds": (lambda t: t.astype(float), None),
    "ms": (lambda t: t * 10**3, "ms"),
    "us": (lambda t: t * 10**6, "us"),
    "ns": (lambda t: t * 10**9, "ns"),
    "datetime64[s]": (lambda t: t.astype("datetime64[s]"), None),
    "datetime64[ms]": (lambda t: t.astype("datetime64[s]").astype("datetime64[ms]"), None),
    "datetime64[us]": (lambda t: t.astype("datetime64[s]").astype("datetime64[us]"), None),
    "datetime64[ns]": (lambda t: t.astype("datetime64[s]").astype("datetime64[ns]"), None),
    "datetimes": (lambda t: [datetime.fromtimestamp(int(s), UTC) for s in t], None),
    "pandas": (lambda t: pd.Series(pd.to_datetime(t, unit="s")), None),
    "pandas zone": (lambda t: pd.Series(pd.to_datetime(t, unit="s", utc=True)), None),
    "pandas index": (lambda t: pd.to_datetime(t, unit="s"), None),
    "polars": (lambda t: pl.Series(t * 1000).cast(pl.Datetime("ms")), None),
    "arrow s": (lambda t: pa.array(t, pa.timestamp("s")), None),
    "arrow ms, zone": (lambda t: pa.array(t * 1000, pa.timestamp("ms", "Asia/Tokyo")), None),
    "arrow us": (lambda t: pa.array(t * 10**6, pa.timestamp("us")), None),
    "arrow ns": (lambda t: pa.array(t * 10**9, pa.timestamp("ns")), None),
    "arrow date64": (lambda t: pa.array(t * 1000).view(pa.date64()), None),
    "arrow dictionary": (lambda t: pa.array(t, pa.timestamp("s")).dictionary_encode(), None),
}


@pytest.mark.parametrize("kind", TIME_COLUMNS)
def test_times(kind: str) -> None:
    convert, unit = TIME_COLUMNS[kind]
    assert many(convert(SECONDS), TEXT_USERS, TEXTS, unit=unit) == EXPECTED  # type: ignore[no-untyped-call]


def test_dates_and_coarse_units() -> None:
    days = np.array(["2026-01-01", "2026-01-02"], "datetime64[D]")
    for column in (days, days.astype("datetime64[h]"), pa.array(days)):
        gate = Gate(z=2, window="1d")
        assert gate.observe_many(column, ["x", "y"], ["a", "a"]).tolist() == [False, True]
        assert gate.stats().clock_ns == 1767312000 * 10**9


def test_the_units_of_a_gate_are_those_of_its_batches() -> None:
    gate = Gate(z=2, window="1s", time_unit="ms")
    assert gate.observe_many([0, 1000], ["x", "y"], ["a", "a"]).tolist() == [False, True]
    assert gate.observe(2000, "x", "a")
    assert not gate.observe_many([3.001], ["y"], ["a"], time_unit="s").any()


def test_nulls_are_veiled_and_never_counted() -> None:
    gate = Gate(z=2, window="1h")
    times = pa.array([0, 0, None, 0, 0], pa.timestamp("s"))
    users = pa.array(["x", None, "y", "z", "y"])
    attributes = pa.array(["a", "a", "a", None, "a"])
    mask = gate.observe_many(times, users, attributes)
    assert mask.tolist() == [False, False, False, False, True]
    assert (gate.stats().invalid, gate.stats().entries) == (3, 2)
    frame = pd.DataFrame({"t": [0, 0], "u": ["p", None], "a": [np.nan, 1.0]})
    assert not gate.observe_many(frame["t"], frame["u"], frame["a"]).any()
    nothing = pa.nulls(2)
    assert not gate.observe_many(nothing, nothing, nothing).any()
    assert gate.stats().invalid == 7


def test_no_rows() -> None:
    gate = Gate(z=2, window="1h")
    for nothing in (
        [],
        np.array([], int),
        pa.chunked_array([], pa.int64()),
        pl.Series([], dtype=int),
    ):
        assert gate.observe_many(nothing, nothing, nothing).shape == (0,)
        assert gate.observe_levels_many(nothing, nothing, [nothing]).shape == (0,)


def test_levels() -> None:
    coarse = pa.array(VALUES // 10).dictionary_encode()
    gate = Gate(z=5, window="1h")
    found = gate.observe_levels_many(SECONDS, pl.Series(USERS), [coarse, VALUES])
    assert found.dtype == np.int8
    other = Gate(z=5, window="1h")
    for row, level in enumerate(found.tolist()):
        value = int(VALUES[row])
        one = other.observe_levels(int(SECONDS[row]), int(USERS[row]), [value // 10, value])
        assert level == (-1 if one is None else one)
    assert set(found.tolist()) == {-1, 0, 1}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (([1, 2], ["x"], ["a"]), "expected columns of one length, got times 2, users 1"),
        (([1], "x", ["a"]), "users: expected a column of values, got str"),
        (([1], iter("x"), ["a"]), "users: expected a column of values"),
        (([1], ["x"], [["secret"]]), "attributes: expected text, bytes, integers"),
        (([1, 1], ["x", "y"], [1, "secret"]), "attributes: expected a column of one type"),
        ((["noon"], ["x"], ["a"]), "times: expected numbers, timestamps or dates, got Utf8"),
        (([1], [datetime(2026, 1, 1)], ["a"]), "users: expected text, bytes, integers"),
        (([1], np.zeros((1, 1)), ["a"]), "users: expected a column, got an array of 2 dimensions"),
        (([timedelta(1)], ["x"], ["a"]), "times: expected numbers, timestamps or dates"),
    ],
)
def test_wrong_columns_are_named_without_the_data(columns: tuple[Any, ...], words: str) -> None:
    gate = Gate(z=1, window="1h")
    with pytest.raises((TypeError, ValueError)) as caught:
        gate.observe_many(*columns)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)
    assert gate.stats().observed == 0
