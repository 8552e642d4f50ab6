"""anonymize: a table in, the same kind of table out."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from zveil import anonymize
from zveil.reference import Reference

ROWS = 2_000
RANDOM = np.random.default_rng(8)
COLUMNS: dict[str, Any] = {
    "when": np.sort(RANDOM.integers(0, 10_000, ROWS)),
    "who": [f"u{user}" for user in RANDOM.integers(0, 50, ROWS)],
    "page": [f"/{page}" for page in RANDOM.integers(0, 40, ROWS)],
    "extra": RANDOM.random(ROWS),
}
NAMES: dict[str, Any] = {"time": "when", "user": "who", "attribute": "page", "z": 5, "window": 600}


def expected() -> list[int]:
    reference = Reference(5, 600)
    rows = zip(COLUMNS["when"].tolist(), COLUMNS["who"], COLUMNS["page"], strict=True)
    return [row for row, values in enumerate(rows) if reference.observe(*values)]


EXPECTED = expected()


def test_pandas_keeps_its_index() -> None:
    frame = pd.DataFrame(COLUMNS, index=range(10, 10 + ROWS))
    released = anonymize(frame, **NAMES)
    assert isinstance(released, pd.DataFrame)
    assert released.index.tolist() == [row + 10 for row in EXPECTED]
    pd.testing.assert_frame_equal(released, frame.iloc[EXPECTED])


def test_polars() -> None:
    frame = pl.DataFrame(COLUMNS)
    assert anonymize(frame, **NAMES).equals(frame[EXPECTED])
    with pytest.raises(TypeError, match="call collect"):
        anonymize(frame.lazy(), **NAMES)


def test_arrow() -> None:
    table = pa.table(COLUMNS)
    assert anonymize(table, **NAMES).equals(table.take(EXPECTED))
    batch = table.to_batches()[0]
    assert anonymize(batch, **NAMES).equals(batch.take(pa.array(EXPECTED)))
    chunked = pa.concat_tables([table.slice(0, 700), table.slice(700)])
    assert anonymize(chunked, **NAMES).equals(table.take(EXPECTED))


def test_a_reader_is_decided_as_it_is_read() -> None:
    table = pa.table(COLUMNS)
    reader = pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(300)))
    released = anonymize(reader, **NAMES)
    assert isinstance(released, pa.RecordBatchReader)
    assert released.read_all().equals(table.take(EXPECTED))


def test_anything_with_the_arrow_stream_interface() -> None:
    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table(COLUMNS).__arrow_c_stream__(requested_schema)

    released: Any = anonymize(Stream(), **NAMES)
    assert released.equals(pa.table(COLUMNS).take(EXPECTED))


def test_what_is_veiled_for_another_reason_is_said() -> None:
    table = pa.table({"t": [10_000, 0], "u": ["x", "y"], "a": ["a", "a"]})
    names: dict[str, Any] = {"time": "t", "user": "u", "attribute": "a", "z": 1, "window": 60}
    with pytest.warns(UserWarning, match="1 of 2 rows veiled: older than the lateness"):
        anonymize(table, **names)
    assert anonymize(table, **names, lateness="1d").num_rows == 1
    with pytest.warns(UserWarning, match="without a time, user or attribute"):
        anonymize(pa.table({"t": [1], "u": [None], "a": ["a"]}), **names)
    with pytest.warns(UserWarning, match="check time_unit"):
        anonymize(pa.table({"t": [1_700_000_000_000], "u": ["x"], "a": ["a"]}), **names)


def test_a_misspelt_column_lists_those_there_are() -> None:
    for table in (pa.table(COLUMNS), pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS)):
        with pytest.raises(ValueError, match=r"user: no column 'whom'.*'when', 'who', 'page'"):
            anonymize(table, **{**NAMES, "user": "whom"})
    with pytest.raises(TypeError, match="table: expected a pandas or Polars data frame"):
        anonymize([1, 2], **NAMES)
