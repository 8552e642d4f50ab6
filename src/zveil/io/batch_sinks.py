"""Sinks for columns: record batches to Parquet and Arrow."""

import base64
import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from zveil.io.columnar import Whole
from zveil.io.formats import COMPRESSIONS, Compression, Format, of_path
from zveil.io.parquet_pieces import ParquetPieces, settings
from zveil.io.sinks import ByteSink, SinkClosed, SinkError, worded
from zveil.io.sources import ByteSource, Input

_GROUP_ROWS = 1 << 17
_GROUP_BYTES = 4 << 20
_SMALL = 256
# Rows of so many bytes are worth a group of their own where a file must be cut.
_WORTH_A_GROUP = 1 << 20
_INDEXED = {".arrow", ".feather", ".ipc"}
_MAGIC = b"ARROW1\0\0"


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
    can_be_cut
        Whether `cut` is going to be called.
    mark
        What `cut` gave: go on from there; by default the file begins anew.

    Raises
    ------
    SinkError
        If it cannot be opened, is one of the inputs, or is in no format for columns; or if it is
        to be cut, and has an index that only a file can have.

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
        can_be_cut: bool = False,
        mark: Mapping[str, Any] | None = None,
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
        kept = None if mark is None else int(mark["length"])
        self._sink = ByteSink(path, compression=wrap, inputs=inputs, kept=kept)
        self.name = self._sink.name
        self._target = _Target(self._sink)
        self._file = pa.PythonFile(self._target, mode="w")
        self._batches = 0
        self._writer: Any = None
        self._pieces: ParquetPieces | None = None
        with self._told():
            if can_be_cut and (self._is_parquet or is_indexed) and not self._sink.is_file:
                raise SinkError(
                    f"{self.name}: {form} has its index at the end, so that it cannot be gone on "
                    "with but in a file"
                )
            if self._is_parquet:
                if can_be_cut:
                    self._pieces = ParquetPieces(self._sink, self._target, self.schema, mark)
                    self._held = _unpacked(mark)
                    self._held_rows = sum(batch.num_rows for batch in self._held)
                    self._held_bytes = sum(batch.nbytes for batch in self._held)
                return
            if not self._sink.is_file and not self._sink.is_begun:
                mark = None  # a pipe has a new reader, who wants to know the columns
            new = pa.ipc.new_file if is_indexed else pa.ipc.new_stream
            self._writer = new(self._file, self.schema)
            if mark is not None:
                self._go_on(mark, is_indexed=is_indexed)

    @property
    def position(self) -> int:
        """Bytes written, as stored."""
        return self._sink.position

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file with a name."""
        return self._sink.is_file

    @property
    def descriptor(self) -> int:
        """The open file."""
        return self._sink.descriptor

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
                self._batches += 1
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

    def cut(self) -> dict[str, Any]:
        """End what is begun, so that the file can be cut here; gives what `mark` takes.

        Rows that wait for a row group are in it, if they are few.

        Raises
        ------
        SinkClosed, SinkError
            As `ByteSink.write` does.
        """
        with self._told():
            if self._pieces is None:
                length = self._sink.cut()
                return {"length": length, "plain": self._target.written, "batches": self._batches}
            if self._held_bytes >= _WORTH_A_GROUP:
                self._write_group()
            return self._pieces.cut() | {"held": _packed(self._held, self.schema)}

    def close(self) -> None:
        """Write what is held and the index, and close the file; after an error, only close it."""
        if self._target.is_over:
            return
        try:
            with self._told():
                if self._held or (self._writer is None and self._pieces is None):
                    self._write_group()
                if self._pieces is not None:
                    self._pieces.close()
                else:
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
        if self._pieces is not None:
            self._pieces.write(table, _GROUP_ROWS)
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, self.schema, **settings(table))
        if table.num_rows:
            self._writer.write_table(table, row_group_size=_GROUP_ROWS)

    def _go_on(self, mark: Mapping[str, Any], *, is_indexed: bool) -> None:
        """Bring a new writer to where the one before was, without a byte written."""
        self._target.is_mute = True
        self._batches = int(mark["batches"])
        wrap, path = self._sink.compression, self._sink.path
        if self._batches and path is not None and self._sink.is_file:
            with ByteSource(_as_input(path, wrap)) as source:
                source.skip(len(_MAGIC) if is_indexed else 0)
                columns = self.schema.serialize().to_pybytes()
                if Whole(source, head=b"").read(len(columns)) != columns:
                    raise _other(self.name)
        if is_indexed and path is not None:
            # Its index is of all batches: they are written again, to nowhere.
            with ByteSource(_as_input(path, wrap)) as source:
                reader = pa.ipc.open_stream(pa.PythonFile(Whole(source), mode="r"))
                for _ in range(self._batches):
                    self._writer.write_batch(reader.read_next_batch())
            if self._batches and self._target.written != mark["plain"]:
                raise _other(self.name)
        elif self._batches:
            # With the first batch go the columns.
            self._writer.write_batch(pa.RecordBatch.from_pylist([], schema=self.schema))
        self._target.is_mute = False
        self._target.written = int(mark["plain"])

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Give the sink's own error back, whatever Arrow made of it, and then keep quiet."""
        try:
            yield
        except BaseException as error:
            failure = self._target.failure
            if failure is None and isinstance(error, OSError):
                failure = worded(self.name, error)
            self._target.is_over = True
            self._held = []
            if self._writer is not None:
                with contextlib.suppress(Exception):
                    self._writer.close()
            if self._pieces is not None:
                self._pieces.abandon()
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
        self.written = 0
        """Bytes so far, before they are packed."""
        self.is_mute = False
        """What comes was written before, and is only counted."""

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self.written += view.nbytes
        if self.is_mute:
            pass
        elif not self.is_over:
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


def _other(name: str) -> SinkError:
    return SinkError(
        f"{name}: has other columns, or was written by another version of Arrow; it cannot be gone "
        "on with"
    )


def _as_input(path: Path, compression: Compression) -> Input:
    return Input(path, str(path), Format.ARROW, compression, os.stat(path).st_size)


def _packed(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> str | None:
    """Give rows as text that holds them."""
    if not batches:
        return None
    target = pa.BufferOutputStream()
    with pa.ipc.new_stream(target, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return base64.b64encode(target.getvalue()).decode()


def _unpacked(mark: Mapping[str, Any] | None) -> list[pa.RecordBatch]:
    if mark is None or mark["held"] is None:
        return []
    with pa.ipc.open_stream(base64.b64decode(mark["held"])) as reader:
        return list(reader)
