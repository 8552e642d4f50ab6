"""A streaming frame as an engine: files of records, each of which is a micro-batch."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import spark_frame
from cases import Case, Told
from native import policy_file

from zveil.engines.spark import anonymize

KEY = bytes(range(32))
SHARDS = 3


def pieces(case: Case, count: int) -> list[list[int]]:
    """Cut the records of a case into micro-batches, by their numbers."""
    length = -(-len(case.records) // count)
    numbers = list(range(len(case.records)))
    return [numbers[start : start + length] for start in range(0, len(numbers), length)]


def in_order(case: Case, count: int) -> Told:
    """Ask the definition about micro-batches, each in the order of its times."""
    order = [
        number
        for piece in pieces(case, count)
        for number in sorted(piece, key=lambda at: (case.records[at].t, at))
    ]
    records = tuple(case.records[at] for at in order)
    told = replace(case, records=records, answers=None).told()
    return {order[at]: fields for at, fields in told.items()}


def write(case: Case, folder: Path, count: int, only: range | None = None) -> None:
    """Write policy, key, and a file for each micro-batch, or for some of them."""
    source = folder / "source"
    source.mkdir(exist_ok=True)
    policy_file(case, folder)
    (folder / "key").write_text(KEY.hex(), encoding="utf-8")
    (folder / "key").chmod(0o600)
    table = spark_frame.table(case)
    for number, piece in enumerate(pieces(case, count)):
        if only is None or number in only:
            # In no order that would help. A reader of the folder sees whole files only.
            mixed = sorted(piece, key=lambda at: at * 7919 % 1009)
            hidden = source / f".{number}"
            pq.write_table(table.take(pa.array(mixed)), hidden)
            os.utime(hidden, (1_700_000_000 + number,) * 2)
            hidden.rename(source / f"{number}.parquet")


def started(spark: Any, folder: Path, shards: int = SHARDS, **options: Any) -> Any:
    """Begin with the stream, or go on with it: until all files are through."""
    source = folder / "source"
    schema = spark.read.parquet(str(next(source.glob("*.parquet")))).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
    left = anonymize(rows, folder / "zveil.toml", key_file=folder / "key", shards=shards, **options)
    return (
        left.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "sink"))
        .trigger(availableNow=True)
        .start()
    )


def left(case: Case, spark: Any, folder: Path) -> Told:
    """Read what has come out."""
    return case.read(spark_frame.lines(spark.read.parquet(str(folder / "sink")).toArrow()))
