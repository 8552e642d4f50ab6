"""Columns: batches from and to Parquet and Arrow."""

import gzip
import io
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from plumbing import pipe, within

from zveil.io.batch_sinks import BatchSink
from zveil.io.columnar import MOST_ROWS, BatchSource, batches, schema
from zveil.io.formats import Compression, Format
from zveil.io.inputs import find
from zveil.io.sinks import SinkClosed, SinkError
from zveil.io.sources import ByteSource, Input, SourceError

ROWS = 100_000
TABLE = pa.table(
    {
        "time": pa.array(range(ROWS), pa.timestamp("ms")),
        "user": [f"user-{number % 977}" for number in range(ROWS)],
        "site": pa.array([f"site-{number % 31}" for number in range(ROWS)]).dictionary_encode(),
        "noise": [random.Random(number).random() for number in range(ROWS)],
    }
)
SMALL = pa.record_batch({"user": ["ada", None], "n": [1, 2]})


def stream_of(table: pa.Table, rows: int = 10_000) -> bytes:
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return buffer.getvalue()


def file_of(table: pa.Table, rows: int = 10_000) -> bytes:
    buffer = io.BytesIO()
    with pa.ipc.new_file(buffer, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return buffer.getvalue()


def parquet_of(table: pa.Table, rows: int = 30_000) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=rows)
    return buffer.getvalue()


KINDS: dict[str, Callable[[pa.Table], bytes]] = {
    "a.parquet": parquet_of,
    "a.arrow": file_of,
    "one-batch.feather": lambda table: file_of(table, ROWS),
    "a.arrows": stream_of,
    "a.arrows.gz": lambda table: gzip.compress(stream_of(table), 1),
    "a.arrows.zst": lambda table: zstandard.compress(stream_of(table)),
    "a.arrow.zst": lambda table: zstandard.compress(file_of(table)),
}


def put(folder: Path, name: str, data: bytes) -> Input:
    (folder / name).write_bytes(data)
    return find([str(folder / name)])[0]


def packed_noise() -> pa.Table:
    """Data that no packing makes smaller, so that a cut hits the middle of it."""
    return TABLE.select(["user", "noise"])


class TestSources:
    @pytest.mark.parametrize("name", KINDS)
    def test_everything_in_batches_of_a_bounded_size(self, tmp_path: Path, name: str) -> None:
        given = put(tmp_path, name, KINDS[name](TABLE))
        with BatchSource(given) as source:
            assert source.schema.names == TABLE.schema.names
            assert source.rows_total in (None, ROWS)
            got = list(source)
            assert source.rows == ROWS
            # Behind the last batch of a stream there are a few bytes more, or an index.
            assert given.size is not None
            assert given.size * 0.9 < source.position <= given.size
        assert max(batch.num_rows for batch in got) <= MOST_ROWS
        dense = pa.schema(
            [
                field.with_type(pa.string()) if field.name == "site" else field
                for field in TABLE.schema
            ]
        )
        assert pa.Table.from_batches(got).cast(dense).equals(TABLE.cast(dense))

    @pytest.mark.parametrize("name", KINDS)
    def test_only_the_columns_wanted_in_the_order_wanted(self, tmp_path: Path, name: str) -> None:
        given = put(tmp_path, name, KINDS[name](TABLE))
        with BatchSource(given, ["noise", "user"]) as source:
            assert source.schema.names == ["noise", "user"]
            table = pa.Table.from_batches(source)
        assert table.equals(TABLE.select(["noise", "user"]))

    @pytest.mark.parametrize("name", KINDS)
    def test_a_column_that_is_not_there(self, tmp_path: Path, name: str) -> None:
        given = put(tmp_path, name, KINDS[name](TABLE))
        with pytest.raises(SourceError, match=r"no column 'who'; there are 'time', 'user', 'site'"):
            BatchSource(given, ["user", "who"])

    def test_a_name_that_two_columns_have(self, tmp_path: Path) -> None:
        twice = pa.table([[1], [2]], names=["a", "a"])
        with pytest.raises(SourceError, match="more than one column 'a'"):
            BatchSource(put(tmp_path, "a.arrow", file_of(twice)), ["a"])

    def test_the_short_forms(self, tmp_path: Path) -> None:
        given = put(tmp_path, "a.parquet", parquet_of(TABLE))
        assert schema(given).names == TABLE.schema.names
        assert sum(batch.num_rows for batch in batches(given, ["user"])) == ROWS

    @pytest.mark.parametrize("name", KINDS)
    def test_no_rows_at_all(self, tmp_path: Path, name: str) -> None:
        given = put(tmp_path, name, KINDS[name](TABLE.slice(0, 0)))
        with BatchSource(given) as source:
            assert source.schema.names == TABLE.schema.names
            assert list(source) == []

    @pytest.mark.parametrize("name", KINDS)
    def test_what_comes_before_a_cut_is_given(self, tmp_path: Path, name: str) -> None:
        data = KINDS[name](packed_noise())
        given = put(tmp_path, name, data[: len(data) * 2 // 3])
        got = []

        def read() -> None:
            with BatchSource(given) as source:
                got.extend(source)

        with pytest.raises(SourceError) as caught:
            read()
        assert str(caught.value).startswith(f"{given.name}: ")
        assert "ends early; what came before was used" in str(caught.value)
        rows = sum(batch.num_rows for batch in got)
        # Parquet has its index, and a batch its offsets, where it was cut off.
        assert rows == 0 if name in ("a.parquet", "one-batch.feather") else 30_000 < rows < 80_000

    def test_a_damage_inside_parquet(self, tmp_path: Path) -> None:
        buffer = io.BytesIO()
        pq.write_table(packed_noise(), buffer, row_group_size=20_000, compression="zstd")
        data = bytearray(buffer.getvalue())
        middle = len(data) * 6 // 10
        data[middle : middle + 4_000] = bytes(4_000)
        given = put(tmp_path, "a.parquet", bytes(data))
        rows = 0

        def read() -> None:
            nonlocal rows
            for batch in batches(given):
                rows += batch.num_rows

        with pytest.raises(SourceError, match=r"a\.parquet: Parquet data is damaged"):
            read()
        assert rows >= MOST_ROWS // 2

    @pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.arrows", "a.arrows.gz"])
    def test_what_is_no_such_file(self, tmp_path: Path, name: str) -> None:
        for data in b"", b"time,user\n", b"ARROW1\0\0", b"\xff" * 100:
            packed = gzip.compress(data) if name.endswith("gz") else data
            given = put(tmp_path, name, packed)
            with pytest.raises(SourceError, match="damaged or ends early"):
                BatchSource(given)

    def test_offsets_that_lead_outside_are_refused(self, tmp_path: Path) -> None:
        data = stream_of(pa.table({"user": ["ada", "bob"]}))
        offsets = b"".join(number.to_bytes(4, "little") for number in (0, 3, 6))
        assert data.count(offsets) == 1
        wild = data.replace(offsets, offsets[:8] + (1 << 30).to_bytes(4, "little"))
        with pytest.raises(SourceError, match="damaged"):
            list(batches(put(tmp_path, "a.arrows", wild)))

    def test_parquet_needs_a_file(self) -> None:
        with pipe() as made, pytest.raises(SourceError, match="save it to a file first"):
            BatchSource(made.input(Format.PARQUET))
        stdin = Input(None, "<stdin>", Format.PARQUET, Compression.NONE, None)
        with pytest.raises(SourceError, match=r"<stdin>: .*save it to a file first"):
            BatchSource(stdin)

    def test_packed_parquet_is_to_be_unpacked(self, tmp_path: Path) -> None:
        given = put(tmp_path, "a.parquet.gz", gzip.compress(parquet_of(TABLE)))
        with pytest.raises(SourceError, match="unpack it first"):
            BatchSource(given)

    def test_text_is_not_for_columns(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match="expected parquet or arrow, got csv"):
            BatchSource(put(tmp_path, "a.csv", b"t,u\n"))

    def test_a_file_that_went_away(self, tmp_path: Path) -> None:
        for name in "a.parquet", "a.arrow":
            given = put(tmp_path, name, KINDS[name](TABLE))
            assert given.path is not None
            given.path.unlink()
            with pytest.raises(SourceError, match=r"a\.\w+: no such file or directory"):
                BatchSource(given)


class TestPipes:
    @pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
    @pytest.mark.parametrize("form", [Format.ARROW, None])
    def test_each_batch_comes_before_the_next_is_sent(
        self, compression: Compression, form: Format | None
    ) -> None:
        with pipe() as made:
            sink = BatchSink(
                f"/dev/fd/{made.writer}",
                SMALL.schema,
                format=Format.ARROW,
                compression=compression,
            )
            made.close(made.writer)
            with ByteSource(made.input(form)) as opened:
                sink.write(SMALL)  # and the schema, before it
                sink.flush()
                source = within(lambda: BatchSource(opened, ["n"]))
                assert source.schema.names == ["n"]
                for _ in range(3):
                    assert source.pending()
                    assert within(lambda: next(source))["n"].to_pylist() == [1, 2]
                    assert not source.pending()
                    sink.write(SMALL)
                    sink.flush()
                sink.close()
                assert len(within(lambda: list(source))) == 1

    def test_a_pipe_may_hold_a_file(self) -> None:
        small = pa.Table.from_batches([SMALL])
        with pipe() as made:
            made.send(file_of(small))
            made.close(made.writer)
            assert pa.Table.from_batches(batches(made.input(Format.ARROW))).equals(small)

    def test_an_interrupt_passes(self) -> None:
        program = (
            "import sys; from zveil.io import *; from zveil.io.columnar import *\n"
            "try:\n    source = BatchSource(find([], Format.ARROW)[0])\n"
            "    print(source.schema.names, flush=True)\n"
            "    next(source)\n"
            "except KeyboardInterrupt:\n    print('interrupted')\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as started:
            assert started.stdin is not None
            assert started.stdout is not None
            started.stdin.write(stream_of(TABLE)[:100_000])
            started.stdin.flush()
            assert started.stdout.readline() == b"['time', 'user', 'site', 'noise']\n"
            started.send_signal(signal.SIGINT)
            assert within(started.stdout.read) == b"interrupted\n"


class TestSinks:
    @pytest.mark.parametrize(
        "name",
        [
            "a.parquet",
            "a.pq",
            "a.arrow",
            "a.feather",
            "a.ipc",
            "a.arrows",
            "a.arrows.zst",
            "a.arrow.gz",
        ],
    )
    def test_what_is_written_can_be_read(self, tmp_path: Path, name: str) -> None:
        with BatchSink(tmp_path / name, TABLE.schema) as sink:
            for batch in TABLE.to_batches(7_001):
                sink.write(batch)
            sink.flush()
        given = find([str(tmp_path / name)])[0]
        assert sink.position == given.size
        table = pa.Table.from_batches(batches(given))
        assert table.column_names == TABLE.column_names
        assert table.to_pylist() == TABLE.to_pylist()

    def test_files_and_streams(self, tmp_path: Path) -> None:
        for name in "a.arrow", "a.feather", "a.ipc", "a.arrows", "a.bin":
            with BatchSink(tmp_path / name, SMALL.schema, format=Format.ARROW) as sink:
                sink.write(SMALL)
            is_file = (tmp_path / name).read_bytes().startswith(b"ARROW1")
            assert is_file == (name in ("a.arrow", "a.feather", "a.ipc"))

    @pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.arrows"])
    def test_no_batch_is_a_whole_file(self, tmp_path: Path, name: str) -> None:
        BatchSink(tmp_path / name, SMALL.schema).close()
        assert schema(find([str(tmp_path / name)])[0]) == SMALL.schema

    def test_dictionaries_that_differ_from_batch_to_batch(self, tmp_path: Path) -> None:
        parts = [
            pa.record_batch({"a": pa.array(values).dictionary_encode()})
            for values in (["x", "y"], ["z", None], ["y", "q"])
        ]
        for name in "a.parquet", "a.arrow", "a.arrows":
            with BatchSink(tmp_path / name, parts[0].schema) as sink:
                for part in parts:
                    sink.write(part)
            table = pa.Table.from_batches(batches(find([str(tmp_path / name)])[0]))
            assert table["a"].to_pylist() == ["x", "y", "z", None, "y", "q"]

    def test_row_groups_are_gathered_from_small_batches(self, tmp_path: Path) -> None:
        one = pa.record_batch({"a": pa.array([1], pa.int64())})
        many = pa.record_batch({"a": pa.array(range(600_000), pa.int64())})
        with BatchSink(tmp_path / "a.parquet", one.schema) as sink:
            for _ in range(1_000):
                sink.write(one)
            assert len(sink._held) < 300
            sink.write(many)
            sink.write(many)
            assert not sink._held
            sink.write(one)
        found = pq.ParquetFile(tmp_path / "a.parquet").metadata
        rows = [found.row_group(number).num_rows for number in range(found.num_row_groups)]
        assert rows == [131_072] * 4 + [76_712] + [131_072] * 4 + [75_712, 1]

    def test_row_groups_are_bounded_in_bytes(self, tmp_path: Path) -> None:
        wide = pa.record_batch({"a": ["x" * 1_000] * 1_250})
        with BatchSink(tmp_path / "a.parquet", wide.schema) as sink:
            for _ in range(10):
                sink.write(wide)
                assert sink._held_bytes < 4 << 20
        found = pq.ParquetFile(tmp_path / "a.parquet").metadata
        assert [found.row_group(n).num_rows for n in range(found.num_row_groups)] == [
            5_000,
            5_000,
            2_500,
        ]

    @pytest.mark.parametrize("form", [Format.PARQUET, Format.ARROW])
    def test_standard_output(self, tmp_path: Path, form: Format) -> None:
        program = (
            "import pyarrow as pa; from zveil.io import *\n"
            "from zveil.io.batch_sinks import BatchSink\n"
            f"batch = pa.record_batch({{'a': [1, 2]}})\n"
            f"with BatchSink(None, batch.schema, format=Format('{form}')) as sink:\n"
            "    sink.write(batch)\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
        assert not done.stderr
        given = put(tmp_path, "a.parquet" if form is Format.PARQUET else "a.arrows", done.stdout)
        assert pa.Table.from_batches(batches(given))["a"].to_pylist() == [1, 2]

    @pytest.mark.parametrize(
        ("name", "told"),
        [
            ("a.csv", "expected parquet or arrow"),
            ("a", "expected parquet or arrow"),
            ("a.parquet.gz", "packed inside"),
            ("nowhere/a.parquet", "no such file or directory"),
        ],
    )
    def test_what_cannot_be_opened(self, tmp_path: Path, name: str, told: str) -> None:
        with pytest.raises(SinkError, match=told):
            BatchSink(tmp_path / name, SMALL.schema)
        assert list(tmp_path.iterdir()) == []

    def test_an_input_is_refused(self, tmp_path: Path) -> None:
        given = put(tmp_path, "a.parquet", parquet_of(TABLE))
        with pytest.raises(SinkError, match="is also read"):
            BatchSink(tmp_path / "a.parquet", TABLE.schema, inputs=[given])
        assert sum(batch.num_rows for batch in batches(given)) == ROWS

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
    @pytest.mark.parametrize("form", [Format.PARQUET, Format.ARROW])
    def test_a_full_disk(self, form: Format) -> None:
        def write() -> None:
            with BatchSink("/dev/full", SMALL.schema, format=form) as sink:
                sink.write(SMALL)

        with pytest.raises(SinkError, match="/dev/full: no space left on device"):
            write()

    @pytest.mark.parametrize("form", [Format.PARQUET, Format.ARROW])
    def test_a_closed_pipe(self, form: Format) -> None:
        with pipe() as made:
            sink = BatchSink(f"/dev/fd/{made.writer}", SMALL.schema, format=form)
            made.close(made.writer, made.reader)

            def write() -> None:
                sink.write(SMALL)
                sink.close()

            with pytest.raises(SinkClosed):
                within(write)
            within(sink.close)
            if form is Format.ARROW:
                with pytest.raises(SinkError):
                    sink.write(SMALL)


def test_memory_does_not_grow_with_a_parquet_file(tmp_path: Path) -> None:
    """Ten times the rows, in one row group: about the same memory."""
    program = (
        "import sys, pyarrow as pa; from zveil.io import *; from zveil.io.columnar import *\n"
        "for batch in batches(find([sys.argv[1]])[0], ['user', 'time']): pass\n"
        "print(pa.default_memory_pool().max_memory())\n"
    )
    peaks = []
    for copies in 2, 20:
        path = tmp_path / f"{copies}.parquet"
        pq.write_table(
            pa.concat_tables([TABLE] * copies), path, row_group_size=10**8, use_dictionary=False
        )
        done = subprocess.run(
            [sys.executable, "-c", program, path], capture_output=True, timeout=60, check=True
        )
        peaks.append(int(done.stdout))
    assert peaks[1] < peaks[0] * 1.5
    assert peaks[1] < 30 << 20


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    folder = Path("/dev/fd")
    if not folder.exists():
        pytest.skip("descriptors cannot be counted here")
    given = [put(tmp_path, name, make(TABLE)) for name, make in KINDS.items()]
    before = len(os.listdir(folder))
    for each in given:
        assert sum(batch.num_rows for batch in batches(each)) == ROWS
        with pytest.raises(SourceError):
            BatchSource(each, ["who"])
    assert len(os.listdir(folder)) == before


def test_parquet_is_written_by_what_its_first_rows_hold(tmp_path: Path) -> None:
    draw = random.Random(3)
    rows = pa.table({
        "name": ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz234567", k=20))
                 for _ in range(9_000)],
        "site": [f"www.site{draw.randrange(50)}.example" for _ in range(9_000)],
        "page": [{"tag": "a", "number": draw.getrandbits(62)} for _ in range(9_000)],
    })  # fmt: skip
    path = tmp_path / "out.parquet"
    with BatchSink(path, rows.schema) as sink:
        for batch in rows.to_batches(1_000):
            sink.write(batch)
    file = pq.ParquetFile(path)
    group = file.metadata.row_group(0)
    chunks = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    worded = {name for name, chunk in chunks.items() if "RLE_DICTIONARY" in chunk.encodings}
    assert worded == {"site", "page.tag"}
    assert chunks["name"].compression == chunks["page.number"].compression == "UNCOMPRESSED"
    assert file.read() == rows
