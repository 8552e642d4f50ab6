"""One back-fill by Spark, to be run where PySpark is: prints how long it took, as JSON.

usage: python backfill.py INPUT OUTPUT KEY-FILE Z ROUNDS
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from time import perf_counter

from pyspark.sql import SparkSession

import zveil
from zveil.engines.spark import anonymize


def main() -> None:
    """Read Parquet, decide, write Parquet: some rounds in one session of two cores."""
    source, sink, key, z, rounds = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory() as folder:
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.driver.memory", "2g")
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.ui.enabled", "false")
            # As docs/spark.md advises where everything is on one machine.
            .config("spark.sql.execution.arrow.maxBytesPerBatch", str(2**31 - 1))
            .config("spark.driver.extraJavaOptions", "-XX:+UseParallelGC")
            .config("spark.shuffle.compress", "false")
            .config("spark.local.dir", folder)
            .getOrCreate()
        )
        seconds = []
        for _ in range(int(rounds)):
            start = perf_counter()
            left = anonymize(
                session.read.parquet(source), time="ts", user="uid", attribute="host", z=int(z),
                window="1h", key_file=key,
            )  # fmt: skip
            left.write.mode("overwrite").parquet(sink)
            seconds.append(perf_counter() - start)
        print(
            json.dumps({"seconds": seconds, "pyspark": session.version, "zveil": zveil.__version__})
        )
        session.stop()


if __name__ == "__main__":
    main()
