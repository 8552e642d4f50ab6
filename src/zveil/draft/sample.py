"""The first records of an input, field by field: what a policy is drafted from."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from zveil._native import field_path
from zveil.draft.profile import looks_like_a_value
from zveil.io import ByteSource, Format, Input, SourceError

MOST_RECORDS = 20_000
_MOST_BYTES = 64 << 20
_MOST_FIELDS = 300
_DEEPEST = 8
_DELIMITERS = {Format.CSV: ",", Format.TSV: "\t"}


@dataclass
class Sample:
    """Records as columns: for each field the value in each record, None where there is none."""

    format: Format
    records: int = 0
    bad: int = 0
    """Lines that are no records."""
    fields: dict[str, list[Any]] = field(default_factory=dict)
    """By the names that a policy has for them."""

    def add(self, members: Iterator[tuple[str, Any]]) -> None:
        """Take one more record."""
        for name, value in members:
            column = self.fields.get(name)
            if column is None:
                if len(self.fields) >= _MOST_FIELDS:
                    continue
                column = self.fields[name] = []
            if len(column) <= self.records:  # the first of several members of one name
                column.extend([None] * (self.records - len(column)))
                column.append(value)
        self.records += 1

    def end(self) -> None:
        """Make all columns as long as there are records."""
        for column in self.fields.values():
            column.extend([None] * (self.records - len(column)))


def read_sample(inputs: Sequence[Input], most: int = MOST_RECORDS) -> Sample:
    """Read the first records of some inputs; bad lines are counted and left out.

    Parameters
    ----------
    inputs
        As `zveil.io.find` gives them. The format is that of the first; others are left out.
    most
        Records to read.

    Raises
    ------
    SourceError
        If an input cannot be read, or its fields have no names.
    """
    sample: Sample | None = None
    for source in inputs:
        with ByteSource(source) as opened:
            if sample is None:
                sample = Sample(opened.format)
            if opened.format is sample.format:
                _read(opened, sample, most)
        if sample.records >= most:
            break
    if sample is None:
        raise SourceError("expected at least one file")
    sample.end()
    if sample.format in _DELIMITERS and any(
        looks_like_a_value(name) or name in column for name, column in sample.fields.items()
    ):
        raise SourceError(
            f"{inputs[0].name}: the first line should name the columns, and looks like a record; "
            "put a line with names before it"
        )
    return sample


def _read(opened: ByteSource, sample: Sample, most: int) -> None:
    form = opened.format
    if form is Format.NDJSON:
        _read_objects(opened, sample, most)
    elif form in _DELIMITERS:
        _read_rows(opened, sample, most, _DELIMITERS[form])
    elif not form.is_text:
        _read_columns(opened, sample, most)
    else:
        raise SourceError(
            f"{opened.input.name}: the fields of {form} are known; its page of the documents has "
            "a policy to begin with"
        )


def _lines(opened: ByteSource) -> Iterator[str]:
    """Give whole lines; one that is cut off by the bound of bytes is none."""
    rest, read = b"", 0
    while (data := opened.read()) and read < _MOST_BYTES:
        read += len(data)
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace") + "\n"
    if rest and not data:
        yield rest.decode("utf-8", "replace")


def _read_objects(opened: ByteSource, sample: Sample, most: int) -> None:
    for line in _lines(opened):
        if sample.records >= most:
            return
        if not line.strip("\ufeff \t\r\n"):
            continue
        try:
            record = json.loads(line.removeprefix("\ufeff"))
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            sample.add(_members(record))
        else:
            sample.bad += 1


def _members(record: dict[str, Any], above: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Give what is in an object, and in the objects inside it."""
    for key, value in record.items():
        name = above + key.replace("\\", "\\\\").replace(".", "\\.")
        if isinstance(value, dict) and value and depth < _DEEPEST:
            yield from _members(value, f"{name}.", depth + 1)
        elif key:
            yield name, value


def _read_rows(opened: ByteSource, sample: Sample, most: int, delimiter: str) -> None:
    rows = csv.reader(_lines(opened), delimiter=delimiter)
    names: list[str] | None = None
    while sample.records < most:
        try:
            row = next(rows, None)
        except csv.Error:
            sample.bad += 1
            continue
        if row is None:
            return
        if not row:
            continue
        if names is None:
            names = row
            names[0] = names[0].removeprefix("\ufeff")
        elif len(row) == len(names):
            values = (value if value else None for value in row)
            sample.add(zip(names, values, strict=True))
        else:
            sample.bad += 1


def _read_columns(opened: ByteSource, sample: Sample, most: int) -> None:
    import pyarrow as pa

    from zveil.io.columnar import BatchSource

    with BatchSource(opened) as batches:
        # Members of a struct have no name that a policy could call them by.
        names = [each.name for each in batches.schema if not pa.types.is_nested(each.type)]
        for batch in batches:
            rows = batch.slice(0, most - sample.records)
            columns = [rows.column(name).to_pylist() for name in names]
            for row in zip(*columns, strict=True):
                sample.add(zip(names, row, strict=True))
            if sample.records >= most:
                return


def is_nameable(name: str) -> bool:
    """Whether a policy can name a field so.

    >>> is_nameable("page.host"), is_nameable("a..b")
    (True, False)
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return all(field_path(name))
