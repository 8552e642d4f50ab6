"""The output of a run: opened once it is known what leaves, as lines or as columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zveil.io import ByteSink, Compression, Format, Input, of_path

if TYPE_CHECKING:
    import pyarrow as pa

    from zveil._native import ParquetWay
    from zveil.io.batch_sinks import BatchSink
    from zveil.io.parquet_files import ParquetSink

STDOUT = "standard output"

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
    can_be_cut
        Whether `cut` is going to be called.
    """

    def __init__(
        self,
        path: str | None,
        to: Format | None,
        inputs: Sequence[Input],
        *,
        writes: bool,
        can_be_cut: bool = False,
    ) -> None:
        self.path = None if path == "-" else path
        self._can_be_cut = can_be_cut
        self._mark: Mapping[str, Any] | None = None
        self.saved: Mapping[str, Any] | None = None
        """What `go_on` was given."""
        self._keeps_rest = False
        self.to = to or (None if path is None else of_path(path)[0])
        """The format that is written; None until the input tells it."""
        self.writes = writes
        self._inputs = list(inputs)
        self._sink: ByteSink | BatchSink | ParquetSink | None = None
        self._written = 0
        self.has_header = False
        """Whether the names of the columns stand above the lines."""

    @property
    def is_open(self) -> bool:
        """Whether it is known what leaves, and where it goes is open."""
        return self._sink is not None

    @property
    def position(self) -> int:
        """Bytes written, as stored."""
        return self._written if self._sink is None else self._sink.position

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.path or STDOUT

    @property
    def wants_file(self) -> bool:
        """Whether it is to be a file that can be gone on with."""
        return self.path is not None and (
            os.path.isfile(self.path) or not os.path.lexists(self.path)
        )

    @property
    def is_file(self) -> bool:
        """Whether it is open, and a file that can be gone on with."""
        return self._sink is not None and self._sink.is_file

    def go_on(
        self, to: Format | None, output: Mapping[str, Any] | None, *, keeps_rest: bool
    ) -> None:
        """Go on from where `cut` was when a state was saved.

        Parameters
        ----------
        to
            The format that was written.
        output
            What was saved of it: in `sink` what `cut` gave.
        keeps_rest
            Let whole lines stay that were written after that.
        """
        self.to = to or self.to
        self.saved = output
        self._mark = None if output is None else output["sink"]
        self._keeps_rest = keeps_rest

    @property
    def mark(self) -> Mapping[str, Any] | None:
        """Where it is going to be gone on from; None if it begins anew, or is open."""
        return self._mark

    def cut(self) -> dict[str, Any] | None:
        """End what is begun, so that a file can be cut here; what `go_on` takes as `sink`."""
        if self._sink is None:
            return None
        if not self._sink.is_file:
            return {"length": self._sink.position, "plain": 0, "batches": 0}
        if isinstance(self._sink, ByteSink):
            return {"length": self._sink.cut()}
        return self._sink.cut()

    def to_sync(self) -> list[int]:
        """Give the descriptors that must be on the disk before a state that names their length."""
        return [self._sink.descriptor] if self._sink is not None and self._sink.is_file else []

    def open_lines(self, header: Sequence[str] = ()) -> None:
        """Open it for lines.

        Parameters
        ----------
        header
            Names of columns; whoever reads a pipe from here on wants to know them again.
        """
        mark, self._mark = self._mark, None
        kept = None if mark is None else int(mark["length"])
        if kept is not None and self._keeps_rest and self.path is not None and self.wants_file:
            kept = _whole_lines(Path(self.path), kept, is_csv=self.to in _DELIMITERS)
        sink = ByteSink(self.path, inputs=self._inputs, kept=kept)
        self._sink = sink
        if self._can_be_cut and mark is None:
            _sync_name(sink)
        is_behind = mark is not None and (sink.is_file or sink.is_begun)
        self.has_header = is_behind
        if mark is not None and not is_behind and self.to in _DELIMITERS and header:
            import csv
            import io

            text = io.StringIO()
            csv.writer(text, delimiter=_DELIMITERS[self.to], lineterminator="\n").writerow(header)
            sink.write(text.getvalue().encode())
            self.has_header = True

    def open_columns(self, schema: pa.Schema) -> None:
        """Open it for columns."""
        from zveil.io.batch_sinks import BatchSink

        mark, self._mark = self._mark, None
        self._sink = BatchSink(
            self.path,
            schema,
            format=self.to,
            inputs=self._inputs,
            can_be_cut=self._can_be_cut,
            mark=mark,
        )
        if self._can_be_cut and mark is None:
            _sync_name(self._sink)

    def open_parquet(self, way: ParquetWay) -> None:
        """Open it for the bytes of Parquet that a native way gives."""
        from zveil.io.parquet_files import ParquetSink

        mark, self._mark = self._mark, None
        sink = ParquetSink(
            self.path, way, inputs=self._inputs, can_be_cut=self._can_be_cut, mark=mark
        )
        self._sink = sink
        if self._can_be_cut and mark is None:
            _sync_name(sink)

    def write_lines(self, lines: memoryview) -> None:
        """Write lines as they are."""
        if isinstance(self._sink, ByteSink):
            self._sink.write(lines)

    def write_parquet(self, data: bytes) -> None:
        """Write what a native way gave."""
        if self._sink is not None and not isinstance(self._sink, ByteSink):
            self._sink.write(data)

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
            self._sink.write(to_csv(batch, _DELIMITERS[self.to], header=not self.has_header))
            self.has_header = True

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


def _sync_name(sink: ByteSink | BatchSink | ParquetSink) -> None:
    """See to it that a new file is still there after a power cut: a state is to go on with it."""
    if sink.is_file:
        from zveil.state.folder import sync_folder

        sync_folder(Path(os.path.abspath(sink.name)).parent)


def _whole_lines(path: Path, start: int, *, is_csv: bool) -> int:
    """Give the end of the last whole line of a file behind a place where one ends."""
    if of_path(path.name)[1] is not Compression.NONE:
        return start
    end = place = start
    quotes = 0
    with path.open("rb") as file:
        file.seek(start)
        for line in file:
            place += len(line)
            # In CSV a line break between quotes belongs to its field.
            quotes += line.count(b'"') if is_csv else 0
            if line.endswith(b"\n") and not quotes % 2:
                end = place
    return end
