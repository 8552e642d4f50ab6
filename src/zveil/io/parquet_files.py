"""Plain Parquet files, read and written natively: no other library is loaded for them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

from zveil._native import ParquetWay
from zveil.io.parquet_index import SPOILT, index_of
from zveil.io.sinks import ByteSink, SinkError
from zveil.io.sources import Input

MOST_ROWS = 16_384
"""Rows decided at a time: threads are worth it for so many, and they stay in the cache."""


class ParquetSource:
    """A plain Parquet file that a native way has opened, and how far it is.

    Parameters
    ----------
    source
        The file.
    way
        What reads it.
    """

    def __init__(self, source: Input, way: ParquetWay) -> None:
        self.input = source
        self._way = way

    @property
    def rows(self) -> int:
        """Rows decided so far, and passed over."""
        return self._way.rows

    @property
    def position(self) -> int:
        """Bytes consumed of the file, reckoned from its rows."""
        return round((self.input.size or 0) * self.rows / max(self._way.rows_total, 1))

    def pending(self) -> bool:
        """Say that the next rows are there: it is a file."""
        return True

    def wait(self, _seconds: float) -> bool:
        """Wait for nothing."""
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave it to the way, which opens the next one."""


class ParquetSink:
    """The bytes of a Parquet file, as a native way gives them; its index comes last.

    Parameters
    ----------
    path
        The file to write, replacing what it held; None for standard output.
    way
        What writes.
    inputs
        What is being read: a sink that is one of these files is refused, and left as it was.
    can_be_cut
        Whether `cut` is going to be called.
    mark
        What `cut` gave, here or by `BatchSink`: go on from there; by default the file begins anew.

    Raises
    ------
    SinkError
        If it cannot be opened, or is one of the inputs; or is to be cut and is no file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        way: ParquetWay,
        *,
        inputs: Sequence[Input] = (),
        can_be_cut: bool = False,
        mark: Mapping[str, Any] | None = None,
    ) -> None:
        kept = None if mark is None else int(mark["length"])
        self._sink = ByteSink(path, inputs=inputs, kept=kept)
        self.name = self._sink.name
        self._way = way
        self._can_be_cut = can_be_cut
        self._is_over = False
        self._begin = self._sink.position
        self._pieces: list[tuple[int, int]] = []
        if mark is not None:
            self._pieces = [(int(begin), int(end)) for begin, end in mark["pieces"]]
        if can_be_cut and not self._sink.is_file:
            self._sink.close()
            raise SinkError(
                f"{self.name}: parquet has its index at the end, so that it cannot be gone on "
                "with but in a file"
            )

    @property
    def position(self) -> int:
        """Bytes written."""
        return self._sink.position

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file with a name."""
        return self._sink.is_file

    @property
    def descriptor(self) -> int:
        """The open file."""
        return self._sink.descriptor

    def write(self, data: bytes) -> None:
        """Write bytes that the way gave; raises as `ByteSink.write` does."""
        if not data:
            return
        try:
            self._sink.write(data)
        except BaseException:
            self._is_over = True
            raise

    def flush(self) -> None:
        """Do nothing: Parquet cannot show anything before its end."""

    def cut(self) -> dict[str, Any]:
        """End what is begun, so that the file can be cut here; gives what `mark` takes.

        As `ParquetPieces` does: what is written next is a file of its own behind this one, whose
        index stays where it is and is taken for none.
        """
        if self._way.is_begun:
            self.write(self._way.end()[: -len(SPOILT)] + SPOILT)
            self._pieces.append((self._begin, self.position))
            self._begin = self.position
        return {
            "length": self.position,
            "pieces": [list(each) for each in self._pieces],
            "held": None,
        }

    def close(self) -> None:
        """Write the index, and close the file; after an error, only close it."""
        if self._is_over:
            self._sink.close()
            return
        self._is_over = True
        try:
            if self._pieces:
                self.cut()
                path = os.fspath(self._sink.path or "")
                indexes = [index_of(path, begin, end) for begin, end in self._pieces]
                self.write(ParquetWay.merged(indexes))
            else:
                self.write(self._way.end())
        finally:
            self._sink.close()
