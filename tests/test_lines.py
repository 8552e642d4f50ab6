"""Record batches as CSV and NDJSON."""

import base64
import csv
import io
import json
import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zveil.io.lines import to_csv, to_ndjson

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def as_json(values: list[Any], kind: pa.DataType | None = None) -> list[str]:
    """Give the JSON text of each value, as it stands in a line."""
    lines = to_ndjson(pa.record_batch({"a": pa.array(values, kind)})).decode()
    return [line.removeprefix('{"a":').removesuffix("}") for line in lines.split("\n")[:-1]]


@pytest.mark.parametrize(
    ("kind", "values", "written"),
    [
        (pa.string(), ["a", "", None], ['"a"', '""', "null"]),
        (pa.string(), ['q"\\', "né€😀"], [r'"q\"\\"', '"né€😀"']),
        (pa.string(), ["\n\t\x00\x7f"], ['"\\n\\t\\u0000\x7f"']),
        (pa.large_string(), ["a"], ['"a"']),
        (pa.bool_(), [True, False, None], ["true", "false", "null"]),
        (pa.int8(), [-128, 0, None], ["-128", "0", "null"]),
        (pa.uint64(), [2**64 - 1], ["18446744073709551615"]),
        (pa.float64(), [1.0, 0.1, -0.0, 1e300, 5e-324], ["1.0", "0.1", "-0.0", "1e+300", "5e-324"]),
        (pa.float64(), [math.nan, math.inf, -math.inf, None], ["null"] * 4),
        (pa.float32(), [0.1, 16777216.0], ["0.1", "16777216.0"]),
        (pa.float16(), [np.float16(1.5)], ["1.5"]),
        (pa.null(), [None], ["null"]),
        (pa.decimal128(9, 3), [Decimal("1.5"), Decimal("-0.001")], ["1.500", "-0.001"]),
        (pa.binary(), [b"\xff\x00", b"", None], ['"/wA="', '""', "null"]),
        (pa.list_(pa.binary()), [[b"ab"]], ['["YWI="]']),
        (pa.large_binary(), [b"ab"], ['"YWI="']),
        (pa.binary(2), [b"ab"], ['"YWI="']),
        (pa.date32(), [date(1969, 12, 31), None], ['"1969-12-31"', "null"]),
        (pa.date64(), [date(2026, 1, 1)], ['"2026-01-01"']),
        (pa.time32("s"), [time(10, 0, 10)], ['"10:00:10"']),
        (pa.time64("us"), [time(10, 0, 0, 500), time(10)], ['"10:00:00.0005"', '"10:00:00"']),
        (pa.duration("s"), [timedelta(seconds=90)], ['"PT90S"']),
        (pa.duration("us"), [timedelta(milliseconds=-1500), timedelta(0)], ['"-PT1.5S"', '"PT0S"']),
        (pa.list_(pa.int8()), [[1, None], [], None], ["[1,null]", "[]", "null"]),
        (pa.list_(pa.list_(pa.string())), [[["a"], None, []]], ['[["a"],null,[]]']),
        (pa.list_(pa.float64(), 2), [[1.0, math.nan], None], ["[1.0,null]", "null"]),
        (pa.struct({"x": pa.int8(), "ÿ": pa.string()}), [{"x": 1, "ÿ": None}, None],
         ['{"x":1,"ÿ":null}', "null"]),
        (pa.struct([]), [{}, None], ["{}", "null"]),
        (pa.map_(pa.string(), pa.int8()), [[("a", 1), ("b", None)], [], None],
         ['{"a":1,"b":null}', "{}", "null"]),
        (pa.map_(pa.int8(), pa.bool_()), [[(7, True)]], ['{"7":true}']),
        (pa.dictionary(pa.int8(), pa.string()), ["a", None, "a"], ['"a"', "null", '"a"']),
    ],
)  # fmt: skip
def test_json_of_each_type(kind: pa.DataType, values: list[Any], written: list[str]) -> None:
    assert as_json(values, kind) == written


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_are_utc_with_the_digits_they_need(unit: str) -> None:
    moment = datetime(2026, 1, 1, 1, 10, tzinfo=timezone(timedelta(hours=1)))
    assert as_json([moment], pa.timestamp(unit, "Europe/Rome")) == ['"2026-01-01T00:10:00Z"']
    assert as_json([datetime(2026, 1, 1, 0, 10)], pa.timestamp(unit)) == ['"2026-01-01T00:10:00Z"']


def test_timestamps_in_fractions() -> None:
    assert as_json([1_500], pa.timestamp("ms")) == ['"1970-01-01T00:00:01.5Z"']
    assert as_json([-1], pa.timestamp("ns", "UTC")) == ['"1969-12-31T23:59:59.999999999Z"']
    assert as_json([10], pa.timestamp("us")) == ['"1970-01-01T00:00:00.00001Z"']


def test_a_time_that_no_calendar_has_is_null() -> None:
    assert as_json([2**62, 0], pa.timestamp("s")) == ["null", '"1970-01-01T00:00:00Z"']


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="an older Arrow")
def test_encodings_of_columns_do_not_show() -> None:
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"])
    views = pa.array(["x", None, "z"], pa.string_view())
    batch = pa.record_batch({"runs": runs, "views": views})
    assert to_csv(batch) == b"runs,views\na,x\na,\nb,z\n"


@given(
    st.lists(texts, min_size=1, max_size=4, unique=True),
    st.lists(
        st.tuples(st.none() | texts, st.none() | st.integers(-(2**63), 2**63 - 1)), max_size=8
    ),
    st.integers(0, 8),
)
def test_json_reads_back(
    names: list[str], rows: list[tuple[str | None, int | None]], start: int
) -> None:
    columns = [pa.array([row[at % 2] for row in rows], [pa.string(), pa.int64()][at % 2])
               for at in range(len(names))]  # fmt: skip
    batch = pa.RecordBatch.from_arrays(columns, names).slice(start)
    lines = to_ndjson(batch).decode().split("\n")
    assert lines.pop() == ""
    assert [list(json.loads(line).items()) for line in lines] == [
        list(row.items()) for row in batch.to_pylist()
    ]


@given(st.lists(st.lists(st.none() | texts, max_size=3) | st.none(), max_size=8), st.integers(0, 8))
def test_nested_json_reads_back_from_any_slice(rows: list[list[str] | None], start: int) -> None:
    kind = pa.struct(
        {"inner": pa.list_(pa.string()), "pair": pa.list_(pa.struct({"x": pa.string()}))}
    )
    made = [
        None if row == [] else {"inner": row, "pair": row and [{"x": each} for each in row]}
        for row in rows
    ]
    batch = pa.record_batch({"a": pa.array(made, kind)}).slice(start)
    read = [json.loads(line)["a"] for line in to_ndjson(batch).decode().split("\n")[:-1]]
    assert read == made[start:]


@given(st.lists(st.floats(), max_size=10))
def test_floats_read_back_to_the_last_bit(numbers: list[float]) -> None:
    read = [json.loads(text) for text in as_json(numbers, pa.float64())]
    assert read == [number if math.isfinite(number) else None for number in numbers]


@given(st.lists(st.datetimes(timezones=st.just(UTC)), max_size=10))
def test_timestamps_read_back(moments: list[datetime]) -> None:
    read = [
        datetime.fromisoformat(json.loads(text)) for text in as_json(moments, pa.timestamp("us"))
    ]
    assert read == moments


@given(
    st.lists(st.tuples(st.none() | texts, texts, st.none() | st.integers(0, 9)), max_size=8),
    st.sampled_from([",", "\t", ";", "|"]),
    st.booleans(),
)
def test_csv_reads_back(
    rows: list[tuple[str | None, str, int | None]], delimiter: str, header: bool
) -> None:
    names = ["a", f"b{delimiter}", 'c"']
    kinds = [pa.string(), pa.string(), pa.int8()]
    columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
    text = to_csv(pa.RecordBatch.from_arrays(columns, names), delimiter, header).decode()
    read = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    if header:
        assert read.pop(0) == names
    assert read == [["" if each is None else str(each) for each in row] for row in rows]


def test_csv_quotes_only_what_needs_it() -> None:
    batch = pa.record_batch(
        {
            "text": ["plain text", "a,b", 'say "hi"', "two\nlines", "", None],
            "time": pa.array([0, 500, 0, 0, 0, None], pa.timestamp("ms")),
            "list": [[1], [1, 2], [], None, None, None],
            "data": [b"\xff", b"", None, None, None, None],
        }
    )
    assert to_csv(batch, ",", header=False).decode() == (
        f"plain text,1970-01-01T00:00:00Z,[1],{base64.b64encode(bytes([255])).decode()}\n"
        '"a,b",1970-01-01T00:00:00.5Z,"[1,2]",""\n'
        '"say ""hi""",1970-01-01T00:00:00Z,[],\n'
        '"two\nlines",1970-01-01T00:00:00Z,,\n'
        '"",1970-01-01T00:00:00Z,,\n'
        ",,,\n"
    )


def test_a_row_of_one_null_is_still_a_row() -> None:
    assert to_csv(pa.record_batch({"a": pa.array(["x", None])})) == b'a\nx\n""\n'


def test_nothing_to_write() -> None:
    empty = pa.record_batch({"a": pa.array([], pa.string())})
    assert to_csv(empty) == b"a\n"
    assert to_csv(empty, header=False) == b""
    assert to_ndjson(empty) == b""
