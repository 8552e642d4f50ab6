"""What a policy means to Spark is what it means to `zveil run`; what cannot be meant is refused."""

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from native import PROGRAM

from zveil.engines.spark import Account, anonymize
from zveil.policy import PolicyError, read_policy

KEY = bytes(range(32))
ROW = """
[time]
field = "when.exactly"
round = "minute"
[user]
field = "who"
rotate = "2h"
keep_keys = true
"""
HOST = """
[[attribute]]
field = "host"
z = 3
window = "10m"
noise = 2
veiled = { text = "(few)" }
"""
PATH = """
[[attribute]]
field = "path"
z = 2
window = "20m"
hierarchy = [{ segments = "/", levels = 2 }]
"""
RECORD = """
[record]
keep = ["Host", "n"]
"""
POLICY = ROW + HOST + PATH + RECORD


def events(count: int = 4_000, seed: int = 1) -> pa.Table:
    """Make up events, sorted by time and user as Spark sorts them."""
    draw = random.Random(seed)
    start = 1_700_000_000_000_000
    rows = [
        {"when.exactly": start + draw.randrange(6 * 3_600) * 10**6,
         "who": draw.choice([None, *(f"u{number}" for number in range(60))]),
         "host": draw.choice([None, *(f"h{int(draw.paretovariate(0.5)) % 90}" for _ in range(9))]),
         "path": f"/{draw.choice('ab')}/{draw.randrange(4)}/{draw.randrange(40)}",
         "Host": draw.choice(["kept", None]), "n": number, "secret": "never"}
        for number in range(count)
    ]  # fmt: skip
    rows.sort(key=lambda row: (row["when.exactly"], row["who"] or ""))
    stamp = pa.timestamp("us", tz="UTC")
    schema = pa.schema([("when.exactly", stamp), ("who", pa.string()), ("host", pa.string()),
                        ("path", pa.string()), ("Host", pa.string()), ("n", pa.int64()),
                        ("secret", pa.string())])  # fmt: skip
    return pa.Table.from_pylist(rows, schema)


def in_one_process(table: pa.Table, policy: Path, key: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Let `zveil run` decide the rows."""
    came, left = policy.with_name("in.parquet"), policy.with_name("out.parquet")
    pq.write_table(table, came)
    done = subprocess.run(
        [PROGRAM, "run", came, "--policy", policy, "--key-file", key, "-o", left, "--json"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return pq.read_table(left), json.loads(done.stderr)


def rows(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


def written(folder: Path, text: str) -> tuple[Path, Path]:
    policy, key = folder / "zveil.toml", folder / "key"
    policy.write_text(text, encoding="utf-8")
    key.write_text(KEY.hex(), encoding="utf-8")
    key.chmod(0o600)
    return policy, key


@pytest.fixture
def frame(spark: Any) -> Any:
    return spark.createDataFrame(events())


@pytest.mark.parametrize("empty", ["drop", "blank"])
def test_it_is_the_same_policy_as_for_one_process(
    empty: str, frame: Any, spark: Any, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    policy, key = written(tmp_path, POLICY + f'empty = "{empty}"\n')
    account = Account(spark)
    table = anonymize(frame, policy, key_file=key, account=account).toArrow()
    wanted, told = in_one_process(events(), policy, key)
    assert table.schema.names == wanted.schema.names
    assert rows(table) == rows(wanted)
    summary = account.summary()
    assert (summary.records, summary.left) == (told["records"], told["left"])
    mine = json.loads(json.dumps(summary.as_dict()))["outcomes"]
    assert mine == told["outcomes"]
    spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize("empty", ["drop", "blank"])
def test_parts_of_a_stream_are_what_one_process_makes_of_each_attribute_alone(
    empty: str, spark: Any, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    table, source = events(), tmp_path / "source"
    source.mkdir()
    for number, part in enumerate((table.slice(0, 2_500), table.slice(2_500))):
        pq.write_table(part, source / f"{number}.parquet")
        os.utime(source / f"{number}.parquet", (1_700_000_000 + number,) * 2)
    leaves = f'{RECORD}empty = "{empty}"\n'
    policy, key = written(tmp_path, ROW + HOST + PATH + leaves)
    stream = spark.readStream.schema(spark.createDataFrame(table).schema)
    frame = stream.option("maxFilesPerTrigger", 1).parquet(str(source))
    account = Account(spark)
    left = anonymize(frame, policy, key_file=key, shards=3, account=account).writeStream
    left = left.option("checkpointLocation", str(tmp_path / "checkpoint"))
    left.trigger(availableNow=True).start(str(tmp_path / "sink")).awaitTermination()
    found = spark.read.parquet(str(tmp_path / "sink")).toArrow()
    summary = account.summary()
    outcomes = json.loads(json.dumps(summary.as_dict()))["outcomes"]
    wanted = []
    # What a part has of the other attribute is what a veiled one becomes. Each row has a path.
    alone = (("host", HOST, {"path": None}), ("path", PATH, {"host": "(few)"}))
    for outcome, (name, attribute, veiled) in zip(outcomes, alone, strict=True):
        policy, key = written(tmp_path, ROW + attribute + leaves)
        part, told = in_one_process(table.filter(pc.is_valid(table[name])), policy, key)
        wanted += [row | veiled for row in part.to_pylist()]
        assert outcome == told["outcomes"][0]
    names = found.schema.names
    assert rows(found) == sorted(repr({name: row[name] for name in names}) for row in wanted)
    assert summary.left == len(wanted) > 0
    spark.conf.unset("spark.sql.caseSensitive")


def test_the_key_and_the_values_are_in_no_plan_and_no_log(
    frame: Any, event_log: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    policy, key = written(tmp_path, POLICY)
    left = anonymize(frame, policy, key_file=key)
    left.count()
    for mode in ("extended", "formatted", "codegen", "cost"):
        left.explain(mode=mode)
    plans = left._jdf.queryExecution().toString() + left._jdf.queryExecution().analyzed().toJSON()
    shown = (capfd.readouterr().out + plans).encode()
    logged = b"".join(each.read_bytes() for each in event_log.rglob("*") if each.is_file())
    assert b"decide" in shown
    assert b"decide" in logged
    for secret in (KEY, KEY.hex().encode(), repr(KEY)[2:-1].encode(), b"AAECAwQFBgcICQ"):
        assert secret not in shown
        assert secret not in logged


def test_half_of_the_rows_with_one_value_and_many_without_any(spark: Any) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    count = 300_000
    frame = spark.range(count, numPartitions=4).select(
        F.timestamp_seconds(F.lit(1_700_000_000) + F.col("id") / 50).alias("ts"),
        (F.col("id") % 1000).cast("string").alias("uid"),
        F.when(F.col("id") % 2 == 0, "hot")
        .when(F.col("id") % 4 == 1, F.concat(F.lit("v"), (F.col("id") % 97).cast("string")))
        .alias("host"),
    )  # fmt: skip
    account = Account(spark)
    left = anonymize(frame, time="ts", user="uid", attribute="host", z=20, window="1h",
                     raw_users=True, account=account)  # fmt: skip
    found = {row["host"]: row["count"] for row in left.groupBy("host").count().collect()}
    # Every second row; the first 19 users come one behind the other.
    assert found["hot"] == count // 2 - 19
    assert account.summary().outcomes[0].empty == count // 4
    assert account.summary().records == count


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ('[[attribute]]\nfield = "b"\nz = 2\nwindow = "1h"\nswap = 0.1', "attribute.swap"),
        ('[input]\nid = "n"', "dropDuplicates"),
        ("[hold]\nk = 2\np = 0.9", "hold: who looks like whom"),
    ],
)
def test_what_does_not_partition_is_refused(
    changed: str, words: str, frame: Any, tmp_path: Path
) -> None:
    policy, _ = written(tmp_path, POLICY.replace("[record]", changed + "\n[record]"))
    with pytest.raises(PolicyError, match=words):
        anonymize(frame, policy)


def test_a_chain_of_keys_is_refused(frame: Any, tmp_path: Path) -> None:
    policy, _ = written(tmp_path, POLICY.replace("keep_keys = true", ""))
    with pytest.raises(PolicyError, match="keep_keys"):
        anonymize(frame, policy)


def test_a_streaming_frame_needs_a_key_that_is_kept(spark: Any) -> None:
    streaming = spark.readStream.format("rate").load().selectExpr("*", "value % 7 AS item")
    with pytest.raises(ValueError, match="zveil key FILE"):
        anonymize(streaming, time="timestamp", user="value", attribute="item", z=2, window="1h")


def test_columns_are_checked_before_anything_runs(frame: Any, tmp_path: Path) -> None:
    said = {"user": "who", "attribute": "host", "z": 2, "window": "1h"}
    with pytest.raises(ValueError, match="no field 'when'"):
        anonymize(frame, time="when", **said)
    with pytest.raises(PolicyError, match=r"time\.format: the column 'n' holds numbers"):
        anonymize(frame, time="n", **said)
    with pytest.raises(ValueError, match="expected either a policy"):
        anonymize(frame, read_policy(written(tmp_path, POLICY)[0]), z=3)
    with pytest.raises(TypeError, match="expected a data frame of Spark"):
        anonymize(events(), time="n", **said)
