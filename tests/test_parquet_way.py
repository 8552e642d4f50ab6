"""Plain Parquet goes natively from file to file, and comes out as in the way of columns."""

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from events import KEY, TEXTS, keyring_of, objects, story
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from program import FIELDS, RULE, ran, run
from test_run import T, policy

from zveil._native import Keyring
from zveil.fields import FieldError
from zveil.io import SourceError
from zveil.meter import Meter
from zveil.policy import Policy
from zveil.reference import user_text
from zveil.run.columns import ColumnStream
from zveil.run.parquet import ParquetStream
from zveil.summary import Summary


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which way each run took."""
    taken: list[str] = []
    plain, columns = ParquetStream.__init__, ColumnStream.__init__

    def noted(name: str, init: Any) -> Any:
        def call(self: Any, *arguments: Any) -> None:
            taken.append(name)
            init(self, *arguments)

        return call

    monkeypatch.setattr(ParquetStream, "__init__", noted("plain", plain))
    monkeypatch.setattr(ColumnStream, "__init__", noted("columns", columns))
    return taken


def both(
    rule: Policy, paths: list[Path], folder: Path, **options: Any
) -> tuple[pa.Table, Summary, Summary]:
    """Run both ways; the table that both gave."""
    outputs = folder / "plain.parquet", folder / "columns.parquet"
    plain, _ = ran(rule, paths, outputs[0], **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ParquetStream, "fitting", lambda *_: None)
        columns, _ = ran(rule, paths, outputs[1], **options)
    made, wanted = map(pq.read_table, outputs)
    assert made.schema == wanted.schema
    assert made.equals(wanted)
    for name in ("records", "left", "bad", "time_format", "observed", "released"):
        assert getattr(plain, name) == getattr(columns, name), name
    return made, plain, columns


def rows(count: int = 2_000, seed: int = 1) -> dict[str, list[Any]]:
    random = Random(seed)
    start = datetime(2024, 5, 1, tzinfo=UTC)
    return {
        "note": [random.choice([None, "é", "x" * 200, ""]) for _ in range(count)],
        "host": [random.choice([None, *"aaabbc", "a-long-name-of-a-site.example"])
                 for _ in range(count)],
        "ts": [start + timedelta(seconds=n - random.choice([0, 0, 3])) for n in range(count)],
        "uid": [random.choice([None, *(f"u{n}" for n in range(9))]) for _ in range(count)],
        "size": [random.choice([None, 1, -5, 2**40]) for _ in range(count)],
    }  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.integers(0, 2**32).map(Random), st.integers(0, 80))
def test_random_streams_come_out_as_from_lines_and_from_columns(
    tmp_path: Path, random: Random, length: int
) -> None:
    told = story(random, length, values=[value or None for value in TEXTS])
    veiled = random.choice([None, None, "(veiled)"])
    rule = told.policy(
        empty=random.choice(["blank", "drop"]),
        raw_users=random.random() < 0.5,
        keep=random.choice([(), ("note",), ("*",)]),
    )
    marked = tuple(replace(each, veiled=veiled) for each in rule.attributes)
    rule = replace(rule, attributes=marked)
    columns: dict[str, list[Any]] = {"note": [event.note for event in told.events]}
    for at, name in enumerate(told.attributes):
        columns[name] = [event.values[at] for event in told.events]
    columns["uid"] = [user_text(event.user) for event in told.events]
    columns["ts"] = [event.t for event in told.events]
    schema = pa.schema([(name, pa.string() if name != "ts" else pa.int64()) for name in columns])
    path = tmp_path / "in.parquet"
    options = {"row_group_size": random.choice([3, 1_000]), "use_dictionary": random.random() < 0.5}
    pq.write_table(pa.table(columns, schema=schema), path, **options)
    found, summary, _ = both(rule, [path], tmp_path)
    lines = tmp_path / "in.ndjson"
    lines.write_text("".join(json.dumps({name: column[row] for name, column in columns.items()})
                             + "\n" for row in range(length)))  # fmt: skip
    ran(rule, [lines], tmp_path / "out.ndjson", stated=None)
    # Their order is that of the policy, then of the file.
    assert [*map(dict, found.to_pylist())] == objects((tmp_path / "out.ndjson").read_bytes())
    assert summary.records == length


TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "bool": (pa.bool_(), lambda n: n % 2 == 0),
    "int8": (pa.int8(), lambda n: n % 100),
    "uint16": (pa.uint16(), lambda n: n),
    "uint64": (pa.uint64(), lambda n: 2**63 + n),
    "float": (pa.float32(), lambda n: n / 2),
    "double": (pa.float64(), lambda n: n / 3),
    "large": (pa.large_string(), str),
    "bytes": (pa.binary(), lambda n: b"%d" % n),
    "large bytes": (pa.large_binary(), lambda n: b"%d" % n),
    "date": (pa.date32(), lambda n: date(2024, 1, 1) + timedelta(days=n)),
    "ms": (pa.timestamp("ms"), lambda n: datetime(2024, 1, 1) + timedelta(seconds=n)),
    "us": (pa.timestamp("us", "Europe/Rome"), lambda n: datetime.fromtimestamp(n, UTC)),
    "ns": (pa.timestamp("ns", "UTC"), lambda n: datetime.fromtimestamp(n, UTC)),
}


@pytest.mark.parametrize("blank", [False, True])
def test_kept_columns_keep_their_types(tmp_path: Path, ways: list[str], blank: bool) -> None:
    random = Random(4)
    kept = {
        name: pa.array([None if random.random() < 0.1 else make(n) for n in range(2_000)], kind)
        for name, (kind, make) in TYPES.items()
    }
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table(rows() | kept), path, row_group_size=700)
    rule = policy(window=30, keep=("*",), empty="blank" if blank else "drop")
    found, _, _ = both(rule, [path], tmp_path)
    assert ways == ["plain", "columns"]
    assert {name: found.schema.field(name).type for name in TYPES} == {
        name: kind for name, (kind, _) in TYPES.items()
    }
    assert found.num_rows == (2_000 if blank else found.num_rows)


TIMES: dict[str, Any] = {
    "s": [T + n for n in range(500)],
    "ms": [(T + n) * 1_000 for n in range(500)],
    "ns": [(T + n) * 10**9 for n in range(500)],
    "float": [T + n / 8 for n in range(500)],
    "none at first": [*([None] * 100), *((T + n) * 1_000 for n in range(400))],
    "mixed": [(T + n) * (10**9 if n % 7 else 1) for n in range(500)],
    "late": [T + n * (1 if n % 3 else -1) for n in range(500)],
    "date": [date(2024, 1, 1) + timedelta(days=n // 100) for n in range(500)],
    "stamp": [datetime.fromtimestamp(T + n, UTC) if n % 9 else None for n in range(500)],
}


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("stop", [False, True])
def test_times_are_read_alike(tmp_path: Path, ways: list[str], name: str, stop: bool) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table(rows(500) | {"ts": TIMES[name]}), path)
    if stop and name == "mixed":
        outputs = [tmp_path / "plain.parquet", tmp_path / "columns.parquet"]
        for output, fitting in zip(outputs, (ParquetStream.fitting, lambda *_: None), strict=True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(ParquetStream, "fitting", fitting)
                with pytest.raises(Exception, match="a time cannot be read"):
                    ran(policy(window=30), [path], output, stop_at_problem=True)
        assert pq.read_table(outputs[0]).equals(pq.read_table(outputs[1]))
        return
    _, summary, _ = both(policy(window=30), [path], tmp_path, stop_at_problem=stop)
    assert ways == ["plain", "columns"]
    assert summary.bad == ({"time": 72} if name == "mixed" else {})


@pytest.mark.parametrize("rotates", [False, True])
def test_pseudonyms_are_the_same(tmp_path: Path, ways: list[str], rotates: bool) -> None:
    path = tmp_path / "in.parquet"
    given = rows() | {"uid": [None if n % 11 == 0 else n % 9 for n in range(2_000)]}
    pq.write_table(pa.table(given), path)
    keys = Keyring.kept("base32", KEY, 60 * 10**9) if rotates else Keyring.fixed("hex", KEY)
    found, _, _ = both(policy(window=30), [path], tmp_path, keyring=keys)
    assert ways == ["plain", "columns"]
    names = set(found["uid"].to_pylist())
    assert len(names) > 100 if rotates else len(names) == 9


def test_several_threads_write_the_same(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table(rows(40_000)), path)
    for threads in (1, 2):
        ran(policy(window=30), [path], tmp_path / f"{threads}.parquet", threads=threads)
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()


def test_files_are_one_stream(tmp_path: Path, ways: list[str]) -> None:
    paths = []
    for number, kind in enumerate([{}, {"compression": "none"}, {"row_group_size": 7}]):
        paths.append(tmp_path / f"{number}.parquet")
        part = pa.table(rows()).slice(number * 600, 600)
        pq.write_table(part, paths[-1], **kind)
    found, _, _ = both(policy(window=30, keep=("size",)), paths, tmp_path)
    assert ways == ["plain", "columns"]
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table(rows()).slice(0, 1_800), whole)
    ran(policy(window=30, keep=("size",)), [whole], tmp_path / "out.parquet")
    assert found.equals(pq.read_table(tmp_path / "out.parquet"))


def test_a_file_without_rows(tmp_path: Path, ways: list[str]) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table(rows(10)).slice(0, 0), path)
    found, _, _ = both(policy(keep=("*",)), [path], tmp_path)
    assert ways == ["plain", "columns"]
    assert found.num_rows == 0


_SOME = pa.table(rows(300))
_WORDS = pa.dictionary(pa.int32(), pa.string())


@pytest.mark.parametrize(
    ("changes", "options", "rule"),
    [
        ({"size": [{"a": 1}] * 300}, {}, {"keep": ("size",)}),
        ({"size": [[1, 2]] * 300}, {}, {"keep": ("size",)}),
        ({"host": pa.array(rows(300)["host"]).cast(_WORDS)}, {}, {}),
        ({"ts": [str(t.isoformat()) for t in rows(300)["ts"]]}, {}, {}),
        ({"ts": pa.array(rows(300)["ts"]).cast(pa.timestamp("ns"))},
         {"use_deprecated_int96_timestamps": True}, {}),
        ({}, {"compression": "zstd"}, {}),
        ({}, {}, {"round": "hour"}),
        ({}, {}, {"swap": 0.2}),
    ],
)  # fmt: skip
def test_what_is_not_plain_goes_the_other_way(
    tmp_path: Path, ways: list[str], changes: dict[str, Any], options: dict[str, Any],
    rule: dict[str, Any],
) -> None:  # fmt: skip
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table(rows(300) | changes), path, **options)
    ran(policy(window=30, **rule), [path], tmp_path / "out.parquet")
    assert ways == ["columns"]


def test_what_is_measured_goes_the_other_way(tmp_path: Path, ways: list[str]) -> None:
    path, meter = tmp_path / "in.parquet", Meter()
    pq.write_table(_SOME, path)
    summary, _ = ran(policy(window=30), [path], tmp_path / "out.parquet", meter=meter)
    assert ways == ["columns"]
    assert summary.left > 100
    assert summary.meter is not None


def test_all_files_go_the_same_way(tmp_path: Path, ways: list[str]) -> None:
    """The second file is not plain: none is begun in a way that could not go on."""
    paths = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    pq.write_table(_SOME, paths[0])
    pq.write_table(_SOME, paths[1], compression="zstd")
    summary, _ = ran(policy(window=30), paths, tmp_path / "out.parquet")
    assert ways == ["columns"]
    assert summary.records == 600


def test_a_file_of_other_types_is_refused(tmp_path: Path) -> None:
    paths = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    pq.write_table(_SOME, paths[0])
    pq.write_table(_SOME.set_column(4, "size", pa.array(["x"] * 300)), paths[1])
    with pytest.raises(FieldError, match=r"2\.parquet: a column is not of the type"):
        ran(policy(window=30, keep=("size",)), paths, tmp_path / "out.parquet")


def test_what_comes_before_a_damage_is_used(tmp_path: Path, ways: list[str]) -> None:
    path, output = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table(rows(100_000)), path, row_group_size=40_000)
    data = bytearray(path.read_bytes())
    middle = pq.ParquetFile(path).metadata.row_group(2).column(1).data_page_offset
    data[middle : middle + 200] = b"\xff" * 200
    path.write_bytes(data)
    with pytest.raises(SourceError, match=r"in\.parquet: Parquet data is damaged"):
        ran(policy(window=30), [path], output)
    assert ways == ["plain"]
    assert pq.read_table(output).num_rows > 10_000


def test_no_library_for_columns_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(_SOME, path)
    program = (
        "import sys\nfrom zveil.cli import main\n"
        "try:\n    main()\nexcept SystemExit as ending:\n    assert not ending.code\n"
        "print(sorted({'numpy', 'pyarrow', 'scipy'} & sys.modules.keys()))\n"
    )
    arguments = ["run", *FIELDS, *RULE, "-q", str(path), "-o", str(tmp_path / "out.parquet")]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True)
    assert (done.stdout, done.stderr) == (b"[]\n", b"")


def test_standard_output_and_a_closed_pipe(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(_SOME, path)
    done = run(path, "-q")
    assert done.returncode == 0, done.stderr
    ran(policy(), [path], tmp_path / "out.parquet", keyring=keyring_of(policy()))
    assert (
        pq.read_table(pa.BufferReader(done.stdout)).num_rows
        == pq.read_table(tmp_path / "out.parquet").num_rows
    )
    full = run(path, "-o", "/dev/full", "--to", "parquet")
    assert full.returncode != 0
    assert b"no space left" in full.stderr
