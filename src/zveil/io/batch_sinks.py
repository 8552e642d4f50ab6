"""Sinks for columns: record batches to Parquet and Arrow."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from zveil.io.formats import COMPRESSIONS, Compression, Format, of_path
from zveil.io.sinks import ByteSink, SinkClosed, SinkError
from zveil.io.sources import Input

_GROUP_ROWS = 1 << 17
_GROUP_BYTES = 4 << 20
_SMALL = 256
# Rows looked at for how to write a column, and the share of bytes that must be saved by it.
_SAMPLE_ROWS = 8192
_WORTH_A_TRY = 0.8
_INDEXED = {".arrow", ".feather", ".ipc"}


class BatchSink:
    """Record batches to Parquet or Arrow.

    Arrow is written as a file with an index to ``.arrow``, ``.feather`` and ``.ipc``, and as a
    stream everywhere else: standard output, ``.arrows``, any other name. Each batch
    is written at once.

    Parquet gathers batches to row groups of 131,072 rows or 4 MiB, whichever is less, packed
    with snappy: zstd at level 1 makes files a quarter smaller, but takes a sixth longer. The first
    group shows in which columns values repeat, so that a dictionary pays, and which can be packed
    at all: pseudonyms hardly can. It may go into a pipe, but nothing of it can be read before
    `close` has written its index.

    Parameters
    ----------
    path
        The file to write, replacing what it held; None or ``-`` for standard output.
    schema
        The columns of all batches.
    format
        Parquet or Arrow; by the ending of the path by default.
    compression
        Of an Arrow file or stream as a whole; by the ending of the path by default.
    inputs
        What is being read: a sink that is one of these files is refused, and left as it was.

    Raises
    ------
    SinkError
        If it cannot be opened, is one of the inputs, or is in no format for columns.

    Examples
    --------
    >>> batch = pa.record_batch({"site": ["example.org"]})
    >>> with BatchSink(os.devnull, batch.schema, format=Format.PARQUET) as sink:
    ...     sink.write(batch)
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        schema: pa.Schema,
        *,
        format: Format | None = None,  # noqa: A002  # the same thing has the same name everywhere
        compression: Compression | None = None,
        inputs: Sequence[Input] = (),
    ) -> None:
        name = "-" if path is None else os.fspath(path)
        form, wrap = of_path(name)
        form = format or form
        wrap = wrap if compression is None else compression
        if form is None or form.is_text:
            raise SinkError(f"{name}: expected parquet or arrow, by its ending or as its format")
        if form is Format.PARQUET and wrap is not Compression.NONE:
            raise SinkError(f"{name}: Parquet is packed inside, not as a whole")
        is_indexed = form is Format.ARROW and _bare_ending(name) in _INDEXED
        self._is_parquet = form is Format.PARQUET
        self._is_dense = self._is_parquet or is_indexed
        self.schema = _dense_schema(schema) if self._is_dense else schema
        """What is written. Dictionaries are replaced by their values, except in a stream: there
        each batch can bring its own."""
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = self._held_rows = 0
        self._sink = ByteSink(path, compression=wrap, inputs=inputs)
        self.name = self._sink.name
        self._target = _Target(self._sink)
        self._file = pa.PythonFile(self._target, mode="w")
        self._writer: Any = None
        if self._is_parquet:
            return
        with self._told():
            new = pa.ipc.new_file if is_indexed else pa.ipc.new_stream
            self._writer = new(self._file, self.schema)

    @property
    def position(self) -> int:
        """Bytes written, as stored."""
        return self._sink.position

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch, or hold it until a row group is full.

        Raises
        ------
        SinkClosed, SinkError
            As `ByteSink.write` does.
        """
        if self._target.is_over:
            raise SinkError(f"{self.name}: closed, or failed before; nothing more can be written")
        if self._is_dense:
            batch = _dense(batch)
        with self._told():
            if not self._is_parquet:
                self._writer.write_batch(batch)
                return
            self._held.append(batch)
            self._held_rows += batch.num_rows
            self._held_bytes += batch.nbytes
            if self._held_bytes >= _GROUP_BYTES or self._held_rows >= _GROUP_ROWS:
                self._write_group()
            elif len(self._held) >= _SMALL:
                # Thousands of small batches would weigh more than what is in them.
                table = pa.Table.from_batches(self._held).combine_chunks()
                self._held = table.to_batches()

    def flush(self) -> None:
        """Let a reader see the batches written; Parquet cannot show any before its end."""
        if not self._is_parquet:
            self._sink.flush()

    def close(self) -> None:
        """Write what is held and the index, and close the file; after an error, only close it."""
        if self._target.is_over:
            return
        try:
            with self._told():
                if self._held or self._writer is None:
                    self._write_group()
                self._writer.close()
        finally:
            self._target.is_over = True
            self._sink.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write_group(self) -> None:
        table = pa.Table.from_batches(self._held, self.schema)
        self._held, self._held_bytes, self._held_rows = [], 0, 0
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, self.schema, **_settings(table))
        if table.num_rows:
            self._writer.write_table(table, row_group_size=_GROUP_ROWS)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Give the sink's own error back, whatever Arrow made of it, and then keep quiet."""
        try:
            yield
        except BaseException:
            failure = self._target.failure
            self._target.is_over = True
            self._held = []
            if self._writer is not None:
                with contextlib.suppress(Exception):
                    self._writer.close()
            self._sink.close()
            if failure is not None:
                raise failure from None
            raise


class _Target:
    """A sink for Arrow to write to; once it is over it drops what comes, such as an index."""

    closed = False

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self.is_over = False
        self.failure: SinkClosed | SinkError | None = None

    def write(self, data: Any) -> int:
        view = memoryview(data)
        if not self.is_over:
            try:
                self._sink.write(view)
            except (SinkClosed, SinkError) as error:
                self.failure = error
                self.is_over = True
                raise
        return view.nbytes

    def flush(self) -> None:
        """Do nothing: the sink has no buffer."""

    def close(self) -> None:
        """Leave the sink to whoever opened it."""


def _settings(first: pa.Table) -> dict[str, Any]:
    """Say how columns are written, by the first rows of each: written as a try, both ways."""
    sample = first.slice(0, _SAMPLE_ROWS)
    packed, repeated = {}, []
    for plain, worded in zip(_tried(sample, False), _tried(sample, True), strict=True):
        pays = worded.total_uncompressed_size <= _WORTH_A_TRY * plain.total_uncompressed_size
        taken = worded if pays else plain
        packs = taken.total_compressed_size <= _WORTH_A_TRY * taken.total_uncompressed_size
        packed[taken.path_in_schema] = "snappy" if packs else "none"
        if pays:
            repeated.append(taken.path_in_schema)
    return {"compression": packed or "snappy", "use_dictionary": repeated or not packed}


def _tried(sample: pa.Table, use_dictionary: bool) -> list[pq.ColumnChunkMetaData]:
    """Write rows to nowhere, and tell how large each column came out."""
    target = pa.BufferOutputStream()
    pq.write_table(sample, target, compression="snappy", use_dictionary=use_dictionary)
    metadata = pq.ParquetFile(pa.BufferReader(target.getvalue())).metadata
    if not metadata.num_row_groups:
        return []
    group = metadata.row_group(0)
    return [group.column(number) for number in range(group.num_columns)]


def _bare_ending(name: str) -> str:
    stem, ending = os.path.splitext(name.lower())
    return os.path.splitext(stem)[1] if ending in COMPRESSIONS else ending


def _dense_schema(schema: pa.Schema) -> pa.Schema:
    for number, field in enumerate(schema):
        if pa.types.is_dictionary(field.type):
            schema = schema.set(number, field.with_type(field.type.value_type))
    return schema


def _dense(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_dense_schema(batch.schema))
