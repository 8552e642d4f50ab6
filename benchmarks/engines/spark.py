"""`zveil.engines.spark` on two cores beside one process of `zveil run`, on the same Parquet."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import messages
import one_process
import pyarrow as pa
import pyarrow.parquet as pq
from messages import Scale
from peers import DisagreementError
from report import Figures, Ratio, Result, at_least
from workloads import WINDOW_NS

HERE = Path(__file__).resolve().parent
ZVEIL = Path(sys.executable).parent / "zveil"
SPARK = HERE.parents[1] / ".venv-spark" / "bin" / "python"
RATE = "Spark, two cores"
ENOUGH_PER_S = 700_000
OF_ONE_PROCESS = 1 / 3


def runs(scale: Scale) -> list[Result]:
    """Measure both, and see that the same rows leave."""
    if not SPARK.exists():
        raise FileNotFoundError("no .venv-spark: make .venv-spark/ready")
    rows = scale.records * scale.spark_times
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, key = folder / "source.parquet", folder / "key"
        subprocess.run([ZVEIL, "key", key], check=True, stdout=subprocess.DEVNULL)
        pq.write_table(table(scale), source, row_group_size=1 << 17)
        one, sink = folder / "one.parquet", folder / "spark"
        native = []
        for _ in range(scale.rounds):
            start = perf_counter()
            command = [
                ZVEIL, "run", source, "--time", "ts", "--user", "uid", "--attribute", "host",
                "-z", str(scale.z), "--window", "1h", "--key-file", key, "-o", one, "-q",
            ]  # fmt: skip
            subprocess.run(command, check=True)
            native.append(perf_counter() - start)
        rounds = scale.spark_warm_up + scale.rounds
        told = subprocess.run(
            [SPARK, HERE / "backfill.py", source, sink, key, str(scale.z), str(rounds)],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        ).stdout  # fmt: skip
        if checksum(one) != checksum(sink):
            raise DisagreementError("Spark lets out other rows than one process")
        first, *later = json.loads(told.splitlines()[-1])["seconds"]
        spark = min(later)
    # Of the two bounds, the one that asks for less.
    wanted = min(OF_ONE_PROCESS, ENOUGH_PER_S / (rows / min(native)))
    case = f"{rows:,} rows, {messages.case(scale)}"
    ours, other = 1e9 * spark / rows, 1e9 * min(native) / rows
    seconds = {"Spark": spark, "Spark, first round": first, "zveil run": min(native)}
    rates = {name: round(rows / took) for name, took in seconds.items()}
    return [
        Ratio(RATE, case, "zveil run", ours, other, at_least(round(wanted, 4))),
        Figures(f"{RATE}, rows a second", case, rates),
        # Both cores are taken while it runs, and more of them would go as fast at the best.
        one_process.cost("Spark", case, 2 * ours, other),
    ]


def version() -> str:
    """Give the version of PySpark."""
    asked = [SPARK, "-c", "import pyspark; print(pyspark.__version__)"]
    return subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def table(scale: Scale) -> pa.Table:
    """Make the rows: the stream of the messages, so many times one behind the other."""
    stream = messages.stream(scale)
    users = pa.array([f"u{user}" for user in range(scale.users)]).take(pa.array(stream.users))
    hosts = [f"www.site{number}.example" for number in range(scale.attributes)]
    values = pa.array(hosts).take(pa.array(stream.attributes))
    parts = []
    length = -(-scale.records * WINDOW_NS // scale.per_window)
    for part in range(scale.spark_times):
        # No two rows at one time, so that there is one order.
        micros = (stream.times + part * length) // 1_000
        times = pa.array(micros).cast(pa.timestamp("us", tz="UTC"))
        parts.append(pa.table({"ts": times, "uid": users, "host": values}))
    return pa.concat_tables(parts)


def checksum(path: Path) -> tuple[int, int]:
    """Tell how many rows there are, and a sum that changes if one of them is another."""
    left = pq.read_table(path, columns=["ts", "uid", "host"])
    # Spark writes timestamps in a form of its own, which are read as nanoseconds.
    times = left["ts"].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    columns = [times, left["uid"].cast(pa.string()), left["host"].cast(pa.string())]
    total = 0
    for time, user, host in zip(*(each.to_pylist() for each in columns), strict=True):
        total += hash((time, user, host))
    return len(left), total % 2**64
