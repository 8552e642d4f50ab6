"""The output of a run: opened once it is known what leaves, as lines or as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zveil.io import ByteSink, Format, Input, of_path

if TYPE_CHECKING:
    import pyarrow as pa

    from zveil.io.batch_sinks import BatchSink

_DELIMITERS = {Format.CSV: ",", Format.TSV: "\t"}


class Outlet:
    """Where released records go.

    Parameters
    ----------
    path
        The file to write; None for standard output.
    to
        The format to write, by default by the ending of the path, else that of the input.
    inputs
        What is being read, and so is not written to.
    writes
        False for a trial, of which nothing leaves.
    """

    def __init__(
        self, path: str | None, to: Format | None, inputs: Sequence[Input], *, writes: bool
    ) -> None:
        self.path = path
        self.to = to or (None if path is None else of_path(path)[0])
        """The format that is written; None until the input tells it."""
        self.writes = writes
        self._inputs = list(inputs)
        self._sink: ByteSink | BatchSink | None = None
        self._written = 0
        self._has_header = False

    @property
    def is_open(self) -> bool:
        """Whether it is known what leaves, and where it goes is open."""
        return self._sink is not None

    @property
    def position(self) -> int:
        """Bytes written, as stored."""
        return self._written if self._sink is None else self._sink.position

    def open_lines(self) -> None:
        """Open it for lines."""
        self._sink = ByteSink(self.path, inputs=self._inputs)

    def open_columns(self, schema: pa.Schema) -> None:
        """Open it for columns."""
        from zveil.io.batch_sinks import BatchSink

        self._sink = BatchSink(self.path, schema, format=self.to, inputs=self._inputs)

    def write_lines(self, lines: bytes) -> None:
        """Write lines as they are."""
        if isinstance(self._sink, ByteSink):
            self._sink.write(lines)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write a batch: as columns, or as lines if it was opened for them."""
        if self._sink is None:
            return
        if not isinstance(self._sink, ByteSink):
            self._sink.write(batch)
            return
        from zveil.io.lines import to_csv, to_ndjson

        if self.to is None or self.to is Format.NDJSON:
            self._sink.write(to_ndjson(batch))
        else:
            self._sink.write(to_csv(batch, _DELIMITERS[self.to], header=not self._has_header))
            self._has_header = True

    def flush(self) -> None:
        """Let a reader see all that was written."""
        if self._sink is not None:
            self._sink.flush()

    def close(self) -> None:
        """End it in order."""
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.close()
            self._written = sink.position
