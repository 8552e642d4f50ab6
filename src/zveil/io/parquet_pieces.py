"""Parquet that is written by one writer after another, with one index at its end."""

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from zveil.io.parquet_index import SPOILT, index_of
from zveil.io.sinks import ByteSink

_MAGIC = b"PAR1"
# Rows looked at for how to write a column, and the share of bytes that must be saved by it.
_SAMPLE_ROWS = 8192
_WORTH_A_TRY = 0.8


class ParquetPieces:
    """A Parquet file that can be gone on with.

    A writer of Parquet remembers where its row groups are until it writes its index. To cut the
    file it is ended, its index staying in the file as bytes that no reader looks at, and another
    writer goes on behind, as if its file began there. At the end the indexes of all become one.

    Parameters
    ----------
    sink
        The file; opened, and cut where it is gone on with.
    target
        What writes to it.
    schema
        The columns.
    mark
        What `cut` gave: go on from there.
    """

    def __init__(
        self,
        sink: ByteSink,
        target: Any,
        schema: pa.Schema,
        mark: Mapping[str, Any] | None = None,
    ) -> None:
        self._sink = sink
        self._target = target
        self._schema = schema
        self._settings: dict[str, Any] | None = None
        self._writer: pq.ParquetWriter | None = None
        self._begin = 0
        self._pieces: list[tuple[int, int]] = []
        if mark is not None:
            self._pieces = [(int(begin), int(end)) for begin, end in mark["pieces"]]

    def write(self, table: pa.Table, group_rows: int) -> None:
        """Write rows, in groups of so many at the most."""
        if self._writer is None:
            self._open(table)
        if table.num_rows and self._writer is not None:
            self._writer.write_table(table, row_group_size=group_rows)

    def cut(self) -> dict[str, Any]:
        """End the present writer; gives what `mark` takes."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            end = self._sink.position
            self._sink.overwrite(SPOILT, end - len(SPOILT))
            self._pieces.append((self._begin, end))
        return {"length": self._sink.position, "pieces": [list(each) for each in self._pieces]}

    def close(self) -> None:
        """Write the index of all row groups."""
        if not self._pieces and self._writer is None:
            self._open(pa.Table.from_batches([], self._schema))
        self.cut()
        whole, *others = [self._index(begin, end) for begin, end in self._pieces]
        for other in others:
            whole.append_row_groups(other)
        written = pa.BufferOutputStream()
        whole.write_metadata_file(written)
        self._target.write(written.getvalue().to_pybytes()[len(_MAGIC) :])

    def abandon(self) -> None:
        """Leave the file as it is."""
        if self._writer is not None:
            self._writer.is_open = False  # or it would write an index when it goes
            self._writer = None

    def _open(self, first: pa.Table) -> None:
        if self._settings is None:
            self._settings = settings(first)
        self._begin = self._sink.position
        file = pa.PythonFile(self._target, mode="w")
        self._writer = pq.ParquetWriter(file, self._schema, **self._settings)

    def _index(self, begin: int, end: int) -> pq.FileMetaData:
        """Read the index of a piece, as one of the whole file."""
        index = index_of(os.fspath(self._sink.path or ""), begin, end)
        held = index + len(index).to_bytes(4, "little") + _MAGIC
        return pq.read_metadata(pa.BufferReader(held))


def settings(first: pa.Table) -> dict[str, Any]:
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
