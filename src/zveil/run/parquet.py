"""The way of plain Parquet: from file to file natively, without a library for columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zveil._native import ParquetWay
from zveil.fields import FieldError
from zveil.io import (
    ByteSource,
    Compression,
    Format,
    Input,
    SourceError,
    of_path,
    parquet_files,
)
from zveil.io.parquet_files import ParquetSource
from zveil.io.parquet_index import index_of
from zveil.policy import Policy
from zveil.run.ending import BadInputError
from zveil.run.station import Counts, Pauses, Setting

_OTHER = "a column is not of the type it had in the files before, or of one that cannot be used"


class ParquetStream:
    """Plain Parquet files, one behind the other, through the gates into another one.

    It has the answers of `ColumnStream`, its state and its output, in less time and memory, for
    what is plain: `fitting` says what that is.

    Parameters
    ----------
    setting
        What it is told.
    way
        What reads, decides and writes; with the first file open.
    fields
        The columns that leave.
    """

    def __init__(self, setting: Setting, way: ParquetWay, fields: Sequence[str]) -> None:
        self._setting = setting
        self._way = way
        self._fields = list(fields)
        self.is_settled = True
        """Whether all that is decided is written."""

    @classmethod
    def fitting(
        cls,
        setting: Setting,
        inputs: Sequence[Input],
        state: Mapping[str, Any] | None = None,
    ) -> ParquetStream | None:
        """Give one for these inputs if all is plain.

        That is Parquet to Parquet; attributes that leave as they came or veiled, times as they
        came, and nothing that measures what leaves; in all files the same flat columns of numbers,
        truth values, text, bytes, dates and timestamps, packed with snappy or not at all; and a
        file that is gone on with has its columns written as they would be here.

        Parameters
        ----------
        setting
            What is told.
        inputs
            The files that are going to be read.
        state
            What `state`, here or of `ColumnStream`, gave: go on from there.
        """
        policy, outlet = setting.policy, setting.outlet
        is_parquet = outlet.to in (None, Format.PARQUET) and (
            outlet.path is None or of_path(outlet.path)[1] is Compression.NONE
        )
        files = [
            each.path
            for each in inputs
            if each.size is not None and each.compression is Compression.NONE
        ]
        paths = [path for path in files if path is not None]
        is_read = bool(paths) and len(paths) == len(inputs)
        is_measured = setting.meter is not None or setting.steering is not None
        if not (is_parquet and is_read and outlet.writes and _is_plain(policy)) or is_measured:
            return None
        fields = list(policy.fields)
        if policy.keeps_all:
            fields += [name for name in ParquetWay.names(paths[0]) or () if name not in fields]
        held = None if state is None else state["act"]
        is_other = state is not None and state["form"] != Format.PARQUET
        if is_other or (held is not None and held["fields"] != fields):
            return None
        way = ParquetWay(
            fields=fields,
            veiled=[attribute.veiled for attribute in policy.attributes],
            blank=policy.record.empty == "blank",
            unit=None if policy.time.format == "iso" else policy.time.format,
            stop_at_problem=setting.stop_at_problem,
            keyring=setting.keyring,
            most_rows=parquet_files.MOST_ROWS,
        )
        # All of them, since what is begun here cannot be ended by another.
        if not all(way.open(path, 0) for path in paths):
            return None
        if policy.time.format == "iso" and way.has_numbers:
            return None
        mark = outlet.mark
        if mark is not None and not _goes_on(way, outlet.path, mark):
            return None
        if held is not None:
            way.resume(held["records"], held["leaving"][0], held["bad"], held["time_format"])
        outlet.to = Format.PARQUET
        outlet.open_parquet(way)
        return cls(setting, way, fields)

    def state(self) -> dict[str, Any]:
        """Give all that decides what happens next, for JSON; `ColumnStream` takes it as well."""
        records, leaving, bad, _ = self._way.tally()
        attributes = len(self._setting.policy.attributes)
        act = {
            "records": records,
            "leaving": [leaving],
            "levels": [[] for _ in range(attributes)],
            "filtered": [],
            "repeated": 0,
            "fields": self._fields,
            "time_format": self._time_format,
            "bad": bad,
            "swaps": [None] * attributes,
        }
        return {"form": Format.PARQUET, "act": act}

    def done(self, source: Any) -> int:
        """Give how many rows of the present input are decided."""
        return int(source.rows)

    def batches(self, source: ByteSource, done: int | None = None) -> ParquetSource:
        """Open it; `done` rows are passed over."""
        path = source.input.path
        if path is None or not self._way.open(path, done or 0):
            raise FieldError(f"{source.input.name}: {_OTHER}")
        return ParquetSource(source.input, self._way)

    def go_through(self, source: ParquetSource, pauses: Pauses) -> None:
        """Read one input to its end."""
        way, outlet, stop = self._way, self._setting.outlet, self._setting.stop
        while True:
            self.is_settled = False
            try:
                data = way.step(self._setting.gates)
            except EOFError as error:
                self.is_settled = True  # nothing of it was decided
                words = f"{error}; what came before was used"
                raise SourceError(f"{source.input.name}: {words}") from None
            except TypeError:
                raise FieldError(f"{source.input.name}: {_OTHER}") from None
            if data is None:
                self.is_settled = True
                return
            outlet.write_parquet(data)
            self.is_settled = True
            if self._setting.stop_at_problem and way.tally()[2]:
                raise BadInputError(f"{source.input.name}: a time cannot be read")
            pauses.between()
            stop.check()

    def counts(self) -> Counts:
        """Tell what there was so far."""
        records, leaving, bad, _ = self._way.tally()
        return Counts(
            records=records,
            bad={"time": bad} if bad else {},
            leaving=[leaving],
            levels=[[] for _ in self._setting.policy.attributes],
            time_format=self._time_format,
        )

    def check_end(self) -> None:
        """Do nothing: columns that are not there were missed at the beginning."""

    def warn(self) -> None:
        """Do nothing: there is nothing that looks like a mistake."""

    @property
    def _time_format(self) -> str | None:
        """What times are: stated, or found out by now."""
        return self._setting.policy.time.format or self._way.tally()[3]


def _is_plain(policy: Policy) -> bool:
    """Whether values leave as they came, or not at all."""
    is_exact = all(not (each.hierarchy or each.swap or each.fields) for each in policy.attributes)
    return is_exact and not policy.filters() and policy.input.id is None and not policy.time.step_ns


def _goes_on(way: ParquetWay, path: str | None, mark: Mapping[str, Any]) -> bool:
    """Whether what was written before is as the way would have written it."""
    if mark.get("held") is not None or "pieces" not in mark or path is None:
        return False
    try:
        return all(way.wrote(index_of(path, begin, end)) for begin, end in mark["pieces"][:1])
    except (OSError, IndexError):
        return False
