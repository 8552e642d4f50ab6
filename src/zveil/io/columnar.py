"""Columns: record batches from Parquet and Arrow, and to them."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from zveil.io.formats import Compression, Format
from zveil.io.sources import ByteSource, Input, SourceError, reason

__all__ = ["BatchSource", "batches", "schema"]

MOST_ROWS = 32_768
"""Rows of a batch at most."""

_PAGE_BYTES = 1 << 18
_MAGIC = b"ARROW1\0\0"
# A column of a Parquet file that takes no more for each row is in a dictionary throughout.
_WORD_BYTES = 5


def batches(source: Input, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Read an input batch by batch, as `BatchSource` does."""
    with BatchSource(source, columns) as opened:
        yield from opened


def schema(source: Input) -> pa.Schema:
    """Read which columns a file has; not for a pipe, which this would consume."""
    with BatchSource(source) as opened:
        return opened.schema


class BatchSource:
    """The record batches of a Parquet or Arrow input, at most 32,768 rows each.

    Parquet is read from files only, page by page, and only the columns named. An Arrow file is
    mapped into memory. An Arrow stream may come through a pipe, compressed or not, and each batch
    is given when it is there. Batches before a damage are given first, then a `SourceError`.

    Parameters
    ----------
    source
        What to open, or a source that is open already.
    columns
        Names of the columns to read, in the order wanted; all by default.
    worded
        Columns of text that may come as dictionaries although `schema` says text: they do where
        a Parquet file holds them so, and are read in a third of the time.
    after
        Rows to pass over.

    Raises
    ------
    SourceError
        If it cannot be opened, is no such file, or lacks a column.
    """

    schema: pa.Schema
    """The columns that batches have."""

    def __init__(
        self,
        source: Input | ByteSource,
        columns: Sequence[str] | None = None,
        *,
        worded: Sequence[str] = (),
        after: int = 0,
    ) -> None:
        self._worded = worded
        self.input = source.input if isinstance(source, ByteSource) else source
        self.rows = after
        """Rows given so far, and passed over."""
        self.rows_total: int | None = None
        """Rows of a Parquet file; Arrow does not tell them before its end."""
        self._opened = contextlib.ExitStack()
        self._bytes = source if isinstance(source, ByteSource) else None
        if self.input.format is None and self._bytes is None:  # only its content can tell
            self._bytes = self._opened.enter_context(ByteSource(self.input))
        self._share = 0.0
        """How much of a file with an index has been read."""
        self._is_parquet = False
        try:
            form = self.input.format if self._bytes is None else self._bytes.format
            self._is_parquet = form is Format.PARQUET
            with self._reworded():
                if self._is_parquet:
                    self._batches = self._parquet(columns)
                elif form is Format.ARROW:
                    self._batches = self._arrow(columns)
                else:
                    raise SourceError(f"{self.input.name}: expected parquet or arrow, got {form}")
                if not self._is_parquet:
                    self._batches = _behind(self._batches, after)
        except BaseException:
            self.close()
            raise
        self._stream = self._delivered(columns)

    @property
    def position(self) -> int:
        """Bytes consumed of the input as stored; of a file with an index, reckoned from it."""
        if self._bytes is not None:
            return self._bytes.position
        return round((self.input.size or 0) * self._share)

    def pending(self) -> bool:
        """Whether something of the next batch has arrived, or the end; of a file, always."""
        return self._bytes is None or self._bytes.pending()

    def wait(self, seconds: float) -> bool:
        """Wait until something has, for so long at the most; whether it has."""
        return self._bytes is None or self._bytes.wait(seconds)

    def close(self) -> None:
        """Close what was opened here."""
        self._opened.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        return next(self._stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _delivered(self, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        while True:
            with self._reworded():
                batch = next(self._batches, None)
                if batch is None:
                    return
                if columns is not None:
                    batch = batch.select(list(columns))
            for start in range(0, batch.num_rows, MOST_ROWS):
                part = batch.slice(start, MOST_ROWS)
                if not self._is_parquet:
                    self._check(part)
                self.rows += part.num_rows
                if self.rows_total is not None:
                    self._share = self.rows / self.rows_total
                yield part

    def _check(self, batch: pa.RecordBatch) -> None:
        """Refuse offsets that lead out of the batch: in a foreign file they would be followed."""
        with self._reworded():
            batch.validate(full=True)

    def _parquet(self, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        if self.input.size is None or self.input.path is None:
            raise SourceError(
                f"{self.input.name}: Parquet has its index at the end, so it cannot be read from a "
                "pipe or standard input; save it to a file first, and name that"
            )
        if self.input.compression is not Compression.NONE:
            raise SourceError(f"{self.input.name}: unpack it first; Parquet is packed inside")
        # Read page by page: whole chunks, or a map of the file, would count as memory.
        options = {"buffer_size": _PAGE_BYTES, "pre_buffer": False}
        file = pq.ParquetFile(self.input.path, **options)
        self._opened.callback(file.close)
        self.rows_total = file.metadata.num_rows
        self._describe(file.schema_arrow, columns)
        if worded := [name for name in self._worded if _is_worded(file, name)]:
            known = {"metadata": file.metadata, "read_dictionary": worded}
            file = pq.ParquetFile(self.input.path, **options, **known)
            self._opened.callback(file.close)
        names = None if columns is None else list(columns)
        rest, first = self.rows, 0
        while first < file.num_row_groups and rest >= file.metadata.row_group(first).num_rows:
            rest -= file.metadata.row_group(first).num_rows
            first += 1
        groups = list(range(first, file.num_row_groups))
        found = file.iter_batches(MOST_ROWS, row_groups=groups, columns=names, use_threads=False)
        return _behind(found, rest)

    def _arrow(self, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        is_plain = bool(self.input.size) and self.input.compression is Compression.NONE
        if self._bytes is not None or self.input.path is None or not is_plain:
            if self._bytes is None:
                self._bytes = self._opened.enter_context(ByteSource(self.input))
            return self._arrow_stream(pa.PythonFile(Whole(self._bytes), mode="r"), columns)
        file = self._opened.enter_context(pa.memory_map(os.fspath(self.input.path)))
        if file.read(len(_MAGIC)) == _MAGIC:
            with contextlib.suppress(pa.ArrowInvalid):
                return self._arrow_file(file, columns)
            file.seek(len(_MAGIC))  # its index at the end is lost, not what stands before
        else:
            file.seek(0)
        return self._arrow_stream(file, columns)

    def _arrow_file(
        self, file: pa.NativeFile, columns: Sequence[str] | None
    ) -> Iterator[pa.RecordBatch]:
        reader = pa.ipc.open_file(file)
        self._describe(reader.schema, columns)
        if columns is not None:
            numbers = sorted({reader.schema.get_field_index(name) for name in columns})
            options = pa.ipc.IpcReadOptions(included_fields=numbers)
            reader = pa.ipc.open_file(file, options=options)

        def read() -> Iterator[pa.RecordBatch]:
            for number in range(reader.num_record_batches):
                self._share = (number + 1) / reader.num_record_batches
                yield reader.get_batch(number)

        return read()

    def _arrow_stream(
        self, file: pa.NativeFile, columns: Sequence[str] | None
    ) -> Iterator[pa.RecordBatch]:
        reader = pa.ipc.open_stream(file)
        self._describe(reader.schema, columns)

        def read() -> Iterator[pa.RecordBatch]:
            for batch in reader:
                if self._bytes is None:
                    self._share = file.tell() / (self.input.size or 1)
                yield batch

        return read()

    def _describe(self, found: pa.Schema, columns: Sequence[str] | None) -> None:
        for name in columns or ():
            if found.names.count(name) > 1:
                raise SourceError(f"{self.input.name}: more than one column {name!r}")
            if name not in found.names:
                there = ", ".join(map(repr, found.names))
                raise SourceError(f"{self.input.name}: no column {name!r}; there are {there}")
        if columns is not None:
            found = pa.schema([found.field(name) for name in columns], found.metadata)
        self.schema = found

    @contextlib.contextmanager
    def _reworded(self) -> Iterator[None]:
        """Turn the libraries' errors, which may quote data, into one that names the input."""
        kind = "Parquet" if self._is_parquet else "Arrow"
        try:
            yield
        except SourceError:
            raise
        except pa.ArrowNotImplementedError:
            why = f"uses a part of {kind} that cannot be read"
            raise SourceError(f"{self.input.name}: {why}") from None
        except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
            why = f"{kind} data is damaged or ends early; what came before was used"
            if isinstance(error, OSError) and error.errno is not None:
                why = reason(error)
            raise SourceError(f"{self.input.name}: {why}") from None


def _behind(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Give what comes behind so many rows."""
    for batch in batches:
        if rows < batch.num_rows:
            yield batch.slice(rows)
        rows = max(rows - batch.num_rows, 0)


def _is_worded(file: pq.ParquetFile, name: str) -> bool:
    """Whether a column is text that stands in the file as numbers of words."""
    kind = file.schema_arrow.field(name).type
    if kind not in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        return False
    # Columns of structures before it stand in the file as several.
    at = next(i for i in range(len(file.schema)) if file.schema.column(i).path == name)
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    return bool(groups) and all(
        group.column(at).total_uncompressed_size <= _WORD_BYTES * group.num_rows for group in groups
    )


class Whole:
    """The bytes of a source for Arrow, which takes a short read for the end.

    An Arrow file is a stream between a magic word and an index, so that one can be read from a pipe
    as well: the word is left out here, and the index is never asked for.
    """

    closed = False

    def __init__(self, source: ByteSource, head: bytes | None = None) -> None:
        self._source = source
        self._head = b""
        if head is None:
            head = self.read(len(_MAGIC))
        self._head = b"" if head == _MAGIC else head

    def read(self, count: int) -> bytes:
        parts = [self._head[:count]]
        self._head = self._head[count:]
        missing = count - len(parts[0])
        while missing and (part := self._source.read(missing)):
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Leave the source to whoever opened it."""
