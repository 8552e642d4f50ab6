"""`zveil.engines.spark` tells what one gate tells that sees all rows in the order of times."""

from pathlib import Path
from typing import Any

import pytest
import spark_frame
from cases import exact
from suite import CASES


@pytest.mark.parametrize("name", CASES)
def test_it_tells_what_one_gate_tells_in_the_order_of_times(
    name: str, spark: Any, tmp_path: Path
) -> None:
    case = spark_frame.columnar(CASES[name])
    wanted = spark_frame.in_order(case, lambda number, _: number)
    assert exact(spark_frame.told(case, tmp_path, spark, ties=["n"])) == exact(wanted)


@pytest.mark.parametrize("name", ["ties", "several attributes", "paths fall-through"])
def test_without_another_order_ties_are_broken_by_the_user(
    name: str, spark: Any, tmp_path: Path
) -> None:
    case = spark_frame.columnar(CASES[name])
    wanted = spark_frame.in_order(case, lambda _, record: record.user or "")
    assert exact(wanted) != exact(spark_frame.in_order(case, lambda number, _: number))
    assert exact(spark_frame.told(case, tmp_path, spark)) == exact(wanted)


@pytest.mark.parametrize("shards", [1, 2, 7])
@pytest.mark.parametrize("name", ["late by the window", "several attributes"])
def test_any_number_of_shards_tells_the_same(
    name: str, shards: int, spark: Any, tmp_path: Path
) -> None:
    case = spark_frame.columnar(CASES[name])
    wanted = spark_frame.in_order(case, lambda number, _: number)
    told = spark_frame.told(case, tmp_path, spark, ties=["n"], shards=shards)
    assert exact(told) == exact(wanted)


@pytest.mark.parametrize("name", ["a long stream", "table fall-through"])
def test_timestamps_are_instants_whatever_the_zone_of_the_session(
    name: str, spark: Any, tmp_path: Path
) -> None:
    case = spark_frame.columnar(CASES[name])
    wanted = spark_frame.in_order(case, lambda number, _: number)
    told = spark_frame.told(case, tmp_path, spark, ties=["n"], stamps=True)
    assert exact(told) == exact(wanted)
