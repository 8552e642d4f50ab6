"""A streaming frame tells what one gate tells that sees its micro-batches one behind the other."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import spark_frame
import spark_stream
from cases import exact
from native import policy_file
from suite import CASES, LATE

from zveil.engines.spark import Account

DRIVER = Path(__file__).with_name("driver.py")
PATIENCE_S = 120


@pytest.mark.parametrize("name", CASES)
def test_it_tells_what_one_gate_tells_of_the_micro_batches(
    name: str, spark: Any, tmp_path: Path
) -> None:
    case = spark_frame.columnar(CASES[name])
    spark_stream.write(case, tmp_path, count=3)
    # What is later than allowed is so by the clock of its shard: one shard is one gate.
    shards = 1 if name in LATE else 3
    spark_stream.started(spark, tmp_path, shards, ties=["n"]).awaitTermination()
    wanted = spark_stream.in_order(case, 3)
    assert exact(spark_stream.left(case, spark, tmp_path)) == exact(wanted)


@pytest.mark.parametrize("name", ["paths fall-through", "several attributes"])
def test_a_query_goes_on_where_it_was_stopped(name: str, spark: Any, tmp_path: Path) -> None:
    case = spark_frame.columnar(CASES[name])
    for part in (range(2), range(2, 5)):
        spark_stream.write(case, tmp_path, count=5, only=part)
        account = Account(spark)
        query = spark_stream.started(spark, tmp_path, ties=["n"], account=account)
        query.awaitTermination()
        records = [
            case.records[at] for number in part for at in spark_stream.pieces(case, 5)[number]
        ]
        values = [
            [value for value in each.values.values() if value is not None] for each in records
        ]
        assert account.summary().records == sum(max(1, len(each)) for each in values)
    wanted = spark_stream.in_order(case, 5)
    assert exact(spark_stream.left(case, spark, tmp_path)) == exact(wanted)


def test_a_driver_that_is_killed_begins_again_and_tells_the_same(
    spark: Any, tmp_path: Path
) -> None:
    count = 6
    case = spark_frame.columnar(CASES["several attributes"])
    spark_stream.write(case, tmp_path, count)
    commits = tmp_path / "checkpoint" / "commits"
    killed = 0
    for after in (1, 3):
        driver = subprocess.Popen(
            [sys.executable, DRIVER, tmp_path], start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        until = time.monotonic() + PATIENCE_S
        # In the midst of the micro-batch behind that one.
        while not (commits / str(after)).exists():
            assert driver.poll() is None, driver.communicate()[1].decode()[-3000:]
            assert time.monotonic() < until
            time.sleep(0.01)
        os.killpg(driver.pid, signal.SIGKILL)
        driver.communicate()
        killed += not (commits / str(count - 1)).exists()
    assert killed == 2
    spark_stream.started(spark, tmp_path, ties=["n"]).awaitTermination()
    wanted = spark_stream.in_order(case, count)
    assert exact(spark_stream.left(case, spark, tmp_path)) == exact(wanted)


@pytest.mark.parametrize("name", ["a long stream", "several attributes"])
def test_another_number_of_shards_or_policy_is_refused(
    name: str, spark: Any, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    case = spark_frame.columnar(CASES[name])
    spark_stream.write(case, tmp_path, count=2, only=range(1))
    spark_stream.started(spark, tmp_path, 1, ties=["n"]).awaitTermination()
    spark_stream.write(case, tmp_path, count=2, only=range(1, 2))
    query = spark_stream.started(spark, tmp_path, 2, ties=["n"])
    with pytest.raises(StreamingQueryException, match="shards: this checkpoint was begun with 1"):
        query.awaitTermination()
    other = replace(case, attributes=tuple(replace(each, z=each.z + 1) for each in case.attributes))
    policy_file(other, tmp_path)
    query = spark_stream.started(spark, tmp_path, 1, ties=["n"])
    with pytest.raises(StreamingQueryException, match="policy: this checkpoint was begun under an"):
        query.awaitTermination()
