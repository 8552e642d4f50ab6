"""Killed at any block and started again, a run writes what it would have: in every format."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from durable import Place, some

from zveil.io import columnar, parquet_files
from zveil.policy import Policy
from zveil.run import text
from zveil.run.parquet import ParquetStream

T = 1_700_000_000
ROWS = [
    {"ts": T + n // 3 - n % 7, "uid": f"u{n * n % 11}", "host": "abcdefgh"[n * n % 8], "n": n,
     "note": 'a "b",\nc' if n % 5 == 0 else "é"}
    for n in range(600)
]  # fmt: skip


def ndjson(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def comma(rows: list[dict[str, Any]]) -> bytes:
    target = io.StringIO(newline="")
    writer = csv.DictWriter(target, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return target.getvalue().encode()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    target = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), target, row_group_size=170)
    return target.getvalue().to_pybytes()


def arrow(rows: list[dict[str, Any]], new: Any = pa.ipc.new_stream) -> bytes:
    target, table = pa.BufferOutputStream(), pa.Table.from_pylist(rows)
    with new(target, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)
    return target.getvalue().to_pybytes()


INPUTS = {
    "in.ndjson": ndjson(ROWS),
    "cut.ndjson": ndjson(ROWS)[:-1],
    "in.csv": comma(ROWS),
    "in.csv.gz": gzip.compress(comma(ROWS)),
    "in.ndjson.zst": zstandard.compress(ndjson(ROWS)),
    "in.parquet": parquet(ROWS),
    "in.arrows": arrow(ROWS),
    "in.arrow": arrow(ROWS, pa.ipc.new_file),
}
PAIRS = [
    ("in.ndjson", "out.ndjson"), ("cut.ndjson", "out.ndjson"), ("in.csv", "out.csv"),
    ("in.csv.gz", "out.csv.gz"), ("in.ndjson.zst", "out.ndjson.zst"),
    ("in.ndjson", "out.csv"), ("in.ndjson", "out.parquet"), ("cut.ndjson", "out.arrows"),
    ("in.csv", "out.arrow"), ("in.csv", "out.arrow.gz"), ("in.parquet", "out.parquet"),
    ("in.parquet", "out.csv"), ("in.parquet", "out.ndjson"), ("in.arrows", "out.arrows"),
    ("in.arrows", "out.arrows.zst"), ("in.arrow", "out.arrow"), ("in.arrow", "out.ndjson.gz"),
]  # fmt: skip


def unpacked(path: Path) -> bytes:
    held = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(held)
    if path.suffix == ".zst":
        with zstandard.ZstdDecompressor().stream_reader(held, read_across_frames=True) as reader:
            return reader.read()
    return held


def content(path: Path) -> Any:
    """Give what anyone reads there: bytes of lines, records of columns."""
    if ".parquet" in path.name:
        return pq.read_table(path).to_pylist()
    held = unpacked(path)
    if ".arrow" not in path.name:
        return held
    opened = pa.ipc.open_stream if ".arrows" in path.name else pa.ipc.open_file
    return opened(held).read_all().to_pylist()


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_BLOCK", 3_000)
    monkeypatch.setattr(columnar, "MOST_ROWS", 40)
    monkeypatch.setattr(parquet_files, "MOST_ROWS", 40)


def policy(**options: Any) -> Policy:
    return Policy.of(
        **{"time": "ts", "user": "uid", "attributes": ["host"], "z": 3, "window": 60,
           "keep": ["n", "note"]} | options
    )  # fmt: skip


@pytest.mark.parametrize(("source", "output"), PAIRS)
def test_a_killed_run_goes_on(source: str, output: str, tmp_path: Path) -> None:
    given = tmp_path / source
    given.write_bytes(INPUTS[source])
    place = Place(tmp_path / "place", policy(), output)
    lefts = place.lefts([given])
    assert len(lefts) > 6
    wanted = content(place.path)
    assert len(wanted) > 100
    saved = 0
    for left in some(lefts, 4):
        place.put(left)
        saved += (place.state / "state").exists()
        summary = place.run([given], interval=60.0)
        assert content(place.path) == wanted
        assert summary.records == len(ROWS)
    # Once more, where nothing has come since.
    place.run([given], interval=60.0)
    assert content(place.path) == wanted
    assert saved >= 3


@pytest.mark.parametrize("first", ["plain", "columns"])
def test_each_way_of_parquet_goes_on_with_the_state_of_the_other(
    first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path / "in.parquet"
    given.write_bytes(INPUTS["in.parquet"])
    place = Place(tmp_path / "place", policy(), "out.parquet")
    fitting = ParquetStream.fitting
    ways = {"plain": fitting, "columns": lambda *_: None}
    monkeypatch.setattr(ParquetStream, "fitting", ways.pop(first))
    lefts = place.lefts([given])
    wanted = content(place.path)
    assert len(wanted) > 100
    monkeypatch.setattr(ParquetStream, "fitting", *ways.values())
    for left in some(lefts, 4):
        place.put(left)
        assert place.run([given]).records == len(ROWS)
        assert content(place.path) == wanted


@pytest.mark.parametrize("source", ["in.ndjson", "in.parquet"])
@pytest.mark.parametrize(
    "options", [{"swap": 0.3}, {"noise": 2}, {"empty": "blank"}, {"keep": ["*"]}]
)
def test_with_all_that_a_policy_may_say(
    source: str, options: dict[str, Any], tmp_path: Path
) -> None:
    given = tmp_path / source
    given.write_bytes(INPUTS[source])
    place = Place(tmp_path / "place", policy(**options))
    lefts = place.lefts([given])
    wanted = content(place.path)
    for left in some(lefts, 3):
        place.put(left)
        summary = place.run([given], interval=60.0)
        assert content(place.path) == wanted
    undisturbed = Place(tmp_path / "undisturbed", policy(**options))
    whole = undisturbed.run([given], interval=3600.0)
    assert content(undisturbed.path) == wanted
    assert whole.outcomes == summary.outcomes


def test_parquet_in_pieces_is_read_by_others(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    given = tmp_path / "in.ndjson"
    given.write_bytes(INPUTS["in.ndjson"])
    place = Place(tmp_path / "place", policy(), "out.parquet")
    lefts = place.lefts([given])
    place.put(lefts[len(lefts) // 2])
    place.run([given])
    wanted = pq.read_table(place.path)["n"].to_pylist()
    assert polars.read_parquet(place.path)["n"].to_list() == wanted
    assert polars.scan_parquet(place.path).select("uid").collect().height == len(wanted)


def test_nobody_takes_a_piece_of_parquet_for_the_whole(tmp_path: Path) -> None:
    given = tmp_path / "in.ndjson"
    given.write_bytes(INPUTS["in.ndjson"])
    place = Place(tmp_path / "place", policy(), "out.parquet")
    for left in place.lefts([given])[2:-1]:
        held = left.get(place.path, b"")
        assert not held.endswith(b"PAR1")
