"""Every format in and out, packed or not, one file or many; times in every way they are told."""

import gzip
import io
import itertools
import os
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from events import TEXTS, keyring_of, objects, story, table, wanted
from hypothesis import given
from hypothesis import strategies as st
from program import line, ran, run
from test_run import T, policy

from zveil.act.columns import ColumnsAct
from zveil.io import Format
from zveil.io.columnar import BatchSource
from zveil.io.inputs import find
from zveil.reference import Reference, user_text

RANDOM = Random(1)
ROWS = [
    (T + number - RANDOM.choice([0, 0, 0, 2, 7]), f"u{RANDOM.randrange(20)}",
     "abcdefgh"[int(RANDOM.random() ** 2 * 8)])
    for number in range(200)
]  # fmt: skip


def released(z: int = 2, window: int = 5) -> list[tuple[int, str, str]]:
    gate = Reference(z, window)
    return [row for row in ROWS if gate.observe(*row)]


def batch(times: Any = None, **columns: Any) -> pa.RecordBatch:
    t, users, hosts = (list(column) for column in zip(*ROWS, strict=True))
    given = {"ts": t if times is None else times, "uid": users, "host": hosts}
    return pa.record_batch(given | columns)


def written(form: Format, path: Path) -> None:
    """Write the rows in a format."""
    if form is Format.NDJSON:
        data = b"".join(line(*row) for row in ROWS)
    elif form is Format.PARQUET:
        pq.write_table(pa.Table.from_batches([batch()]), path, row_group_size=50)
        return
    elif form is Format.ARROW:
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, batch().schema) as writer:
            for start in range(0, len(ROWS), 30):
                writer.write_batch(batch().slice(start, 30))
        data = sink.getvalue()
    else:
        glue = "," if form is Format.CSV else "\t"
        rows = [("ts", "uid", "host"), *ROWS]
        data = "".join(glue.join(map(str, row)) + "\n" for row in rows).encode()
    if path.suffix == ".gz":
        data = gzip.compress(data)
    elif path.suffix == ".zst":
        data = zstandard.compress(data)
    path.write_bytes(data)


def read(path: Path) -> list[tuple[int, str, str]]:
    """Read what left, in whatever format, as rows like those that came."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    elif path.suffix == ".zst":
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    kind = path.name.split(".")[1]
    if kind == "ndjson":
        rows = objects(data)
    elif kind in ("csv", "tsv"):
        rows = table(data, "," if kind == "csv" else "\t")
    elif kind == "parquet":
        rows = pq.read_table(path).to_pylist()
    else:
        rows = pa.ipc.open_file(data).read_all().to_pylist()
    return [(seconds(row["ts"]), row["uid"], row["host"]) for row in rows]


def seconds(t: Any) -> int:
    if hasattr(t, "timestamp"):
        return round(t.timestamp())
    return int(t)


FORMATS = ["ndjson", "csv", "tsv", "parquet", "arrow"]


@pytest.mark.parametrize("source", [*FORMATS, "ndjson.gz", "csv.zst", "tsv.gz", "arrow.zst"])
def test_each_format_becomes_each(tmp_path: Path, source: str) -> None:
    path = tmp_path / f"in.{source}"
    written(Format(source.partition(".")[0]), path)
    for to in [*FORMATS, "ndjson.zst", "csv.gz"]:
        output = tmp_path / f"out.{to}"
        summary, reports = ran(policy(raw_users=True, window=5), [path], output)
        assert read(output) == released(), to
        assert not reports
        assert (summary.records, summary.left) == (200, len(released()))


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_users_have_the_same_pseudonyms_in_every_format(tmp_path: Path, form: str) -> None:
    names = []
    for kind in ("ndjson", form):
        path, output = tmp_path / f"in.{kind}", tmp_path / "out.ndjson"
        written(Format(kind), path)
        ran(policy(window=5), [path], output)
        names.append([user for _, user, _ in read(output)])
    assert names[0] == names[1]
    assert len(set(names[0])) == len({user for _, user, _ in released()})
    assert not any(name.startswith("u") and len(name) < 4 for name in names[0])


def test_a_program_reads_standard_input_in_any_format(tmp_path: Path) -> None:
    for name in ("in.arrow", "in.csv.gz"):
        path = tmp_path / name
        written(Format(name.split(".")[1]), path)
        arguments = ["--raw-users", "--window", "5s", "--to", "ndjson"]
        arguments += ["--format", name.split(".")[1]] if "csv" in name else []
        with path.open("rb") as opened:  # a file in the place of a pipe
            done = run(*arguments, stdin=opened.fileno())
        piped = run(*arguments, stdin=path.read_bytes())
        assert done.returncode == piped.returncode == 0, done.stderr
        rows = [(row["ts"], row["uid"], row["host"]) for row in objects(done.stdout)]
        assert [(int(t), user, host) for t, user, host in rows] == released()
        assert piped.stdout == done.stdout


def test_files_directories_and_patterns_are_one_stream_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    (folder / "deep").mkdir(parents=True)
    for number, name in enumerate(["part-2.csv", "part-10.csv", "part-30.csv.gz"]):
        data = f"uid,ts,host\nu{number},{T},a\n".encode()
        (folder / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    (folder / "notes.txt").write_text("not an event")
    for arguments in (
        [folder],
        [f"{folder}/*.csv*"],
        [folder / "part-2.csv", folder / "part-10.csv", folder / "part-30.csv.gz"],
    ):
        output = tmp_path / "out.csv"
        summary, _ = ran(policy(raw_users=True), [Path(each) for each in arguments], output)
        # The second and third user stand in a crowd that the files before began.
        assert output.read_bytes() == f"ts,uid,host\n{T},u1,a\n{T},u2,a\n".encode()
        assert (summary.lines, summary.records) == (6, 3)


@pytest.mark.parametrize(
    ("told", "scale"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9), ("iso", None)]
)
@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet"])
@pytest.mark.parametrize("stated", [True, False])
def test_times_in_every_unit(
    tmp_path: Path, told: Any, scale: int | None, form: str, stated: bool
) -> None:
    times: list[Any] = [
        datetime.fromtimestamp(t, UTC).isoformat() if scale is None else t * scale
        for t, _, _ in ROWS
    ]
    path, output = tmp_path / f"in.{form}", tmp_path / "out.ndjson"
    if form == "parquet":
        pq.write_table(pa.Table.from_batches([batch(times)]), path)
    else:
        lines = [line(t, *row[1:]) for t, row in zip(times, ROWS, strict=True)]
        if form == "csv":
            lines = [f"{t},{row[1]},{row[2]}\n".encode()
                     for t, row in zip(times, ROWS, strict=True)]  # fmt: skip
            lines.insert(0, b"ts,uid,host\n")
        path.write_bytes(b"".join(lines))
    rule = policy(raw_users=True, window=5, time_format=told if stated else None)
    summary, _ = ran(rule, [path], output)
    assert [(row["uid"], row["host"]) for row in objects(output.read_bytes())] == [
        row[1:] for row in released()
    ]
    assert summary.time_format == told
    assert 50 < summary.left < 150


@pytest.mark.parametrize("form", ["ndjson", "parquet"])
def test_a_unit_that_is_stated_is_believed(tmp_path: Path, form: str) -> None:
    """Ten digits taken for nanoseconds: all within one window."""
    path, output = tmp_path / f"in.{form}", tmp_path / "out.ndjson"
    written(Format(form), path)
    summary, _ = ran(policy(window=5, time_format="ns"), [path], output)
    assert summary.left > len(released())


def test_floats_are_times_too(tmp_path: Path) -> None:
    path, output = tmp_path / "in.parquet", tmp_path / "out.ndjson"
    times = np.array([t + 0.25 for t, _, _ in ROWS])
    pq.write_table(pa.Table.from_batches([batch(times)]), path)
    ran(policy(raw_users=True, window=5), [path], output)
    assert read(output) == released()
    source = tmp_path / "in.ndjson"
    source.write_bytes(b"".join(line(t + 0.25, *row) for t, *row in ROWS))
    ran(policy(raw_users=True, window=5), [source], output)
    assert read(output) == released()


@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet", "text in parquet"])
@pytest.mark.parametrize("stated", [True, False])
def test_times_of_a_coarser_unit_do_not_move_together(
    tmp_path: Path, form: str, stated: bool
) -> None:
    """Seconds among nanoseconds: hours apart, they would lie within one microsecond."""
    times = [T + hour * 3600 for hour in range(20)] + [(T + n) * 10**9 for n in range(40)]
    rows = [(t, f"u{number}", "a" if t < 10**12 else "b") for number, t in enumerate(times)]
    path, output = tmp_path / f"in.{form.split()[-1]}", tmp_path / "out.ndjson"
    if "parquet" in form:
        told = [str(t) for t in times] if "text" in form else times
        columns = {"ts": told, "uid": [r[1] for r in rows], "host": [r[2] for r in rows]}
        if "text" in form:  # goes by the first
            columns = {name: [*held[-40:], *held[:20]] for name, held in columns.items()}
        pq.write_table(pa.table(columns), path)
    elif form == "csv":
        data = "".join(",".join(map(str, row)) + "\n" for row in [("ts", "uid", "host"), *rows])
        path.write_text(data)
    else:
        path.write_bytes(b"".join(line(*row) for row in rows))
    rule = policy(window=2, time_format="ns" if stated else None)
    summary, _ = ran(rule, [path], output, max_line=10**6)
    hosts = [record["host"] for record in objects(output.read_bytes())]
    assert summary.time_format == "ns"
    assert hosts.count("b") == 39
    if not stated:
        assert summary.bad == {"time": 20}
        assert hosts.count("a") == 0


@pytest.mark.parametrize("strange", [float("nan"), float("inf"), 1e18, 1.0])
def test_one_strange_time_does_not_decide_the_unit_of_all(tmp_path: Path, strange: float) -> None:
    path, output = tmp_path / "in.parquet", tmp_path / "out.ndjson"
    times = np.array([float(t) for t, _, _ in ROWS])
    times[len(ROWS) // 2] = strange
    pq.write_table(pa.Table.from_batches([batch(times)]), path)
    summary, _ = ran(policy(raw_users=True, window=5), [path], output)
    gate = Reference(2, 5)
    assert summary.time_format == "s"
    good = [row for number, row in enumerate(ROWS) if number != len(ROWS) // 2]
    assert read(output) == [row for row in good if gate.observe(*row)]


def test_bad_times_of_a_column_do_not_leave_even_blank(tmp_path: Path) -> None:
    path, output = tmp_path / "in.parquet", tmp_path / "out.ndjson"
    times = [datetime.fromtimestamp(t, UTC).isoformat() for t, _, _ in ROWS]
    times[3], times[50] = "planted", "planted too"
    users = [user for _, user, _ in ROWS]
    users[3] = "planted-user"
    pq.write_table(pa.Table.from_batches([batch(times, uid=users)]), path)
    for veiled in ("drop", "blank"):
        summary, _ = ran(policy(raw_users=True, window=5, empty=veiled), [path], output)
        assert b"planted" not in output.read_bytes()
        assert summary.bad == {"time": 2}
        assert summary.records == summary.observed == 198
        assert len(objects(output.read_bytes())) == summary.left


@pytest.mark.parametrize("kind", [pa.dictionary(pa.int32(), pa.string()), pa.large_string()])
def test_columns_of_other_types(tmp_path: Path, kind: pa.DataType) -> None:
    columns = {name: pa.array([row[at] for row in ROWS]).cast(kind)
               for at, name in ((1, "uid"), (2, "host"))}  # fmt: skip
    times = pa.array([t * 1000 for t, _, _ in ROWS], pa.timestamp("ms", "UTC"))
    path = tmp_path / "in.arrow"
    data = batch(times, **columns)
    with pa.OSFile(os.fspath(path), "wb") as file, pa.ipc.new_file(file, data.schema) as writer:
        writer.write_batch(data)
    for to in ("arrow", "csv", "parquet"):
        output = tmp_path / f"out.{to}"
        ran(policy(raw_users=True, window=5), [path], output)
        if to == "csv":
            found = [(row["uid"], row["host"]) for row in table(output.read_bytes())]
        else:
            found = [row[1:] for row in read(output)]
        assert found == [row[1:] for row in released()]


@given(st.integers(0, 2**32).map(Random), st.integers(1, 60), st.booleans())
def test_columns_are_decided_as_the_definition_says(
    random: Random, length: int, blank: bool
) -> None:
    told = story(random, length, values=[value or None for value in TEXTS])
    rule = told.policy(empty="blank" if blank else "drop", raw_users=True, keep=("note",))
    columns = {"ts": [event.t for event in told.events]}
    columns["uid"] = [user_text(event.user) for event in told.events]
    columns |= {name: [event.values[at] for event in told.events]
                for at, name in enumerate(told.attributes)}  # fmt: skip
    columns["note"] = [event.note for event in told.events]
    schema = pa.schema([(name, pa.string() if name != "ts" else pa.int64()) for name in columns])
    rows = pa.record_batch(columns, schema=schema)
    act = ColumnsAct(rule, rule.gates(), schema, keyring=keyring_of(rule))
    places = sorted(random.randrange(length + 1) for _ in range(3))
    left = [
        row
        for start, end in itertools.pairwise([0, *places, length])
        for row in act.act(rows.slice(start, end - start)).to_pylist()
    ]
    assert left == [
        {"ts": event.t, "uid": user_text(event.user), **shown, "note": event.note}
        for event, shown in wanted(told, blank=blank)
    ]


@pytest.mark.parametrize("blank", [False, True])
def test_dictionaries_of_a_parquet_file_change_nothing(tmp_path: Path, blank: bool) -> None:
    """Columns whose values repeat are read as dictionaries, of which each row group has its own."""
    random = Random(2)
    rows = {
        "ts": [T + number for number in range(9_000)],
        # Beside a structure, which takes two columns of the file.
        "page": [{"path": "/", "size": number} for number in range(9_000)],
        "uid": [random.choice([None, *(f"user-{n}" for n in range(9))]) for _ in range(9_000)],
        "host": [random.choice([None, *(f"{n}.example" for n in range(40))]) for _ in range(9_000)],
    }
    rule = policy(window=30, keep=("page",), empty="blank" if blank else "drop")
    found = {}
    for name, worded in (("words", True), ("plain", False)):
        path, output = tmp_path / f"{name}.parquet", tmp_path / f"{name}.out.parquet"
        pq.write_table(pa.table(rows), path, use_dictionary=worded, row_group_size=4_000)
        with BatchSource(find([str(path)])[0], worded=["uid", "host"]) as source:
            kinds = [str(column.type) for column in next(source).select(["uid", "host"]).columns]
        assert all(kind.startswith("dictionary") for kind in kinds) is worded
        ran(rule, [path], output)
        found[name] = pq.read_table(output)
        assert found[name].schema.field("host").type == pa.string()
    assert found["words"].num_rows > 100
    assert found["words"] == found["plain"]


def test_files_of_two_formats_are_not_one_stream(tmp_path: Path) -> None:
    for form in (Format.CSV, Format.NDJSON):
        written(form, tmp_path / f"in.{form}")
    done = run(tmp_path / "in.csv", tmp_path / "in.ndjson", "-q")
    assert done.returncode == 2
    assert b"one format at a time" in done.stderr


def test_columns_that_change_their_type_are_told_without_a_traceback(tmp_path: Path) -> None:
    for name, hosts in (("1", [5] * 200), ("2", ["planted"] * 200)):
        pq.write_table(pa.Table.from_batches([batch(host=hosts)]), tmp_path / f"{name}.parquet")
    done = run(tmp_path / "1.parquet", tmp_path / "2.parquet", "-q", "-o", tmp_path / "o.parquet")
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert b"planted" not in done.stderr
    assert b"2.parquet" in done.stderr
