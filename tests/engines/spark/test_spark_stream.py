"""A streaming frame tells what one gate tells that sees its micro-batches one behind the other."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import spark_frame
import spark_stream
from cases import exact
from suite import CASES, LATE

from zveil.engines.spark import Account
from zveil.policy import PolicyError

DRIVER = Path(__file__).with_name("driver.py")
PATIENCE_S = 120


SINGLE = [name for name, case in CASES.items() if len(case.attributes) == 1]


@pytest.mark.parametrize("name", SINGLE)
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


def test_a_query_goes_on_where_it_was_stopped(spark: Any, tmp_path: Path) -> None:
    case = spark_frame.columnar(CASES["paths fall-through"])
    for part in (range(2), range(2, 5)):
        spark_stream.write(case, tmp_path, count=5, only=part)
        account = Account(spark)
        query = spark_stream.started(spark, tmp_path, ties=["n"], account=account)
        query.awaitTermination()
        decided = sum(len(spark_stream.pieces(case, 5)[number]) for number in part)
        assert account.summary().records == decided
    wanted = spark_stream.in_order(case, 5)
    assert exact(spark_stream.left(case, spark, tmp_path)) == exact(wanted)


def test_a_driver_that_is_killed_begins_again_and_tells_the_same(
    spark: Any, tmp_path: Path
) -> None:
    count = 6
    case = spark_frame.columnar(CASES["a long stream"])
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


def test_several_attributes_are_refused(spark: Any, tmp_path: Path) -> None:
    case = spark_frame.columnar(CASES["several attributes"])
    spark_stream.write(case, tmp_path, count=1)
    with pytest.raises(PolicyError, match="start a query for each attribute"):
        spark_stream.started(spark, tmp_path)


def test_another_number_of_shards_is_refused(spark: Any, tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    case = spark_frame.columnar(CASES["a long stream"])
    spark_stream.write(case, tmp_path, count=2, only=range(1))
    spark_stream.started(spark, tmp_path, 1, ties=["n"]).awaitTermination()
    spark_stream.write(case, tmp_path, count=2, only=range(1, 2))
    label = spark_stream.started(spark, tmp_path, 2, ties=["n"])
    with pytest.raises(StreamingQueryException, match="shards: this checkpoint was begun with 1"):
        label.awaitTermination()
