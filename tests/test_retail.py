"""Real purchases, where the data set is at hand: the published counts."""

import gzip
import os
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

from zveil import Gate, anonymize

DATA = Path(
    os.environ.get(
        "ZVEIL_RETAIL",
        Path(__file__).resolve().parents[2] / "shared" / "data" / "online-retail.csv.gz",
    )
)

if not DATA.exists():
    pytest.skip(
        "the retail data set is not part of the repository; set ZVEIL_RETAIL to its path",
        allow_module_level=True,
    )


def purchases() -> pyarrow.Table:
    with gzip.open(DATA) as file:
        return pyarrow.csv.read_csv(file)


@pytest.mark.parametrize(("window", "z", "released"), [("7d", 20, 62_639), ("30d", 5, 368_735)])
def test_the_published_counts(window: str, z: int, released: int) -> None:
    table = purchases()
    assert table.num_rows == 406_829
    for threads in (1, 2):
        gate = Gate(z, window, threads=threads)
        mask = gate.observe_many(table["time"], table["user"], table["item"])
        assert int(mask.sum()) == gate.stats().released == released
    kept = anonymize(table, time="time", user="user", attribute="item", z=z, window=window)
    assert kept.num_rows == released


def test_visible_users() -> None:
    table = purchases()
    kept = anonymize(table, time="time", user="user", attribute="item", z=20, window="7d")
    assert len(np.unique(kept["user"].to_numpy())) == 3_726
