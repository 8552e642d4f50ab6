"""`zveil.engines.spark` as an engine: records become rows, which it sorts by time itself."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from cases import Case, Record, Told
from native import policy_file

from zveil.engines.spark import anonymize
from zveil.reference import user_text

Order = Callable[[int, Record], Any]


def columnar(case: Case) -> Case:
    """Give a case as columns can hold it: one type each. Times that are no text count in ns."""

    def text(value: Any) -> Any:
        return None if value is None else value if isinstance(value, str) else json.dumps(value)

    records = tuple(
        replace(
            record,
            user=user_text(record.user),
            values={field: text(value) for field, value in record.values.items()},
        )
        for record in case.records
    )
    form = case.time_format if case.time_format == "iso" else "ns"
    answers = case.answers
    return replace(case, records=records, time_format=form, answers=answers)


def in_order(case: Case, ties: Order) -> Told:
    """Ask the definition about the records in the order of their times, and ties in another."""
    keys = [(record.t, ties(number, record)) for number, record in enumerate(case.records)]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    records = tuple(case.records[at] for at in order)
    told = replace(case, records=records, answers=None).told()
    return {order[at]: fields for at, fields in told.items()}


def table(case: Case) -> pa.Table:
    """Make the rows, in the order of the records."""
    times = [json.loads(case.line(number))["ts"] for number in range(len(case.records))]
    columns = {
        "n": pa.array(range(len(times)), pa.int64()),
        "ts": pa.array(times, pa.string() if case.time_format == "iso" else pa.int64()),
        "uid": pa.array([record.user for record in case.records], pa.string()),
    }
    for one in case.attributes:
        values = [record.values[one.field] for record in case.records]
        columns[one.field] = pa.array(values, pa.string())
    return pa.table(columns)


def frame(case: Case, spark: Any, partitions: int = 3) -> Any:
    """Make the rows, in no order that would help."""
    rows = table(case)
    mixed = sorted(range(rows.num_rows), key=lambda number: number * 7919 % 1009)
    return spark.createDataFrame(rows.take(pa.array(mixed))).repartition(partitions)


def stamped(case: Case, spark: Any) -> Any:
    """Make the rows with timestamps, as tables have them: to the microsecond."""
    from pyspark.sql import functions as F  # noqa: N812

    return frame(case, spark).withColumn(
        "ts", F.timestamp_micros((F.col("ts") / 1000).cast("long"))
    )


def told(case: Case, folder: Path, spark: Any, *, stamps: bool = False, **options: Any) -> Told:
    """Let the cluster decide the rows of a case."""
    rows = stamped(case, spark) if stamps else frame(case, spark)
    left = anonymize(rows, policy_file(case, folder), **options)
    return case.read(lines(left.toArrow()))


def lines(table: pa.Table) -> list[bytes]:
    """Write rows as the suite reads records."""
    kind = table.schema.field("ts").type
    if pa.types.is_timestamp(kind):
        whole = [None if t is None else t * 1000 for t in table["ts"].cast("int64").to_pylist()]
        table = table.set_column(table.schema.get_field_index("ts"), "ts", pa.array(whole))
    return [json.dumps(row).encode() for row in table.to_pylist()]
