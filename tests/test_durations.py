"""Durations and sizes as people write them."""

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from zveil.durations import duration_ns, size_bytes


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1h", 3_600_000_000_000),
        ("90s", 90_000_000_000),
        ("1h30m", 5_400_000_000_000),
        ("1h 30min", 5_400_000_000_000),
        ("1.5d", 129_600_000_000_000),
        ("2w", 1_209_600_000_000_000),
        ("500ms", 500_000_000),
        ("7us", 7_000),
        ("1ns", 1),
        ("0s", 0),
        (0, 0),
        (60, 60_000_000_000),
        (0.1, 100_000_000),
        (np.float64(0.5), 500_000_000),
        (np.int64(2), 2_000_000_000),
        (timedelta(hours=1), 3_600_000_000_000),
        (timedelta(microseconds=1), 1_000),
        (pd.Timedelta(3, "ns"), 3),
        ("9223372036854775807ns", 2**63 - 1),
    ],
)
def test_duration(value: object, expected: int) -> None:
    assert duration_ns(value, "window") == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    ["", "1", "h", "1 hour", "-1h", "1h-30m", "1e3s", "9223372036854775808ns", -1, None, True,
     float("nan"), float("inf"), timedelta(-1), [1], "\uff11h"],
)  # fmt: skip
def test_no_duration(value: object) -> None:
    with pytest.raises(ValueError, match="lateness: expected a duration such as '1h'"):
        duration_ns(value, "lateness")  # type: ignore[arg-type]


def test_size() -> None:
    sizes = {"1kB": 1000, "1KiB": 1024, "1.5 GB": 1_500_000_000, "7": 7, 7: 7, "2TiB": 2**41}
    for value, expected in sizes.items():
        assert size_bytes(value, "memory_limit") == expected  # type: ignore[arg-type]
    for wrong in ("", "GB", "-1", "1 PB", -1, True, 1.5, None):
        with pytest.raises(ValueError, match="memory_limit: expected bytes"):
            size_bytes(wrong, "memory_limit")  # type: ignore[arg-type]
