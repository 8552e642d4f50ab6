"""A program that anonymizes a stream of files until all of them are through.

usage: python driver.py FOLDER, with a folder that has `source`, `zveil.toml` and `key`
"""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from spark_stream import SHARDS, started

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "512m")
        .config("spark.sql.shuffle.partitions", str(SHARDS))
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    started(session, folder, ties=["n"]).awaitTermination()
    session.stop()
