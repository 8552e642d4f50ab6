"""The native scanners of JSON, CSV and times, against Python's own."""

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from zveil._native import parse_time, scan_csv, scan_json

PATHS = [["ts"], ["uid"], ["user", "id"], ["user", "name", "last"], [""]]
NAMES = ["ts", "uid", "user", "id", "name", "last", "", "other"]


def problem(call: Callable[..., Any], *arguments: Any) -> str | None:
    """Give the name of what is wrong, None if nothing is."""
    try:
        call(*arguments)
    except ValueError as error:
        return str(error)
    return None


# --- JSON ---

text = st.text(st.characters(exclude_categories=["Cs"]))
finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers() | finite | text
keys = st.sampled_from(NAMES) | text


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6)


values = st.recursive(scalars, nested, max_leaves=8)
objects = st.dictionaries(keys, values, max_size=20)
separators = st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")])


class RefusedError(Exception):
    """Raised where Python's reader is told to be as strict as ours."""


def strict(line: str | bytes) -> Any:
    """Read JSON as strictly: Python alone takes NaN, and the last of two equal keys."""

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(members)) < len(members):
            raise RefusedError("duplicate-key")
        return dict(members)

    def constant(_: str) -> Any:
        raise RefusedError("syntax")

    return json.loads(line, object_pairs_hook=pairs, parse_constant=constant, parse_int=Decimal)


ABSENT = object()


def lookup(value: Any, path: list[str]) -> Any:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return ABSENT
        value = value[name]
    return value


def check(found: tuple[str, bytes], value: Any) -> None:
    kind, raw = found
    if value is ABSENT:
        assert found == ("absent", b"")
    elif value is None:
        assert found == ("null", b"null")
    elif value is True or value is False:
        assert found == (str(value).lower(), str(value).lower().encode())
    elif isinstance(value, str):
        assert found == ("text", value.encode())
    elif isinstance(value, Decimal):
        assert kind == "integer"
        assert Decimal(raw.decode()) == value
    elif isinstance(value, float):
        assert kind == "number"
        assert float(raw) == value
    else:
        assert kind == ("object" if isinstance(value, dict) else "array")
        assert strict(raw) == value


def agree(line: bytes) -> None:
    """See that Python and the scanner take the line alike, or refuse it both."""
    try:
        expected = strict(line.decode())
    except (RefusedError, ValueError, RecursionError):
        assert problem(scan_json, line, PATHS)
        return
    if not isinstance(expected, dict):
        assert problem(scan_json, line, PATHS) == "not-an-object"
        return
    for found, path in zip(scan_json(line, PATHS), PATHS, strict=True):
        check(found, lookup(expected, path))


@given(objects, separators, st.booleans())
def test_json_is_found(
    value: dict[str, Any], separators: tuple[str, str], ascii_only: bool
) -> None:
    line = json.dumps(value, separators=separators, ensure_ascii=ascii_only).encode()
    assert problem(scan_json, line, PATHS) is None
    agree(line)


# Where the scanner is stricter, Python's answer cannot be asked for:
# - a line feed between tokens: a record is one line, and must be one when it is written again;
# - half a surrogate pair: Python makes a str of it that has no UTF-8 form;
# - nesting past 128.
@given(
    objects,
    separators,
    st.lists(
        st.tuples(
            st.integers(0, 10_000), st.sampled_from('"\\{}[],:0123456789-+.eEutrfnN \t\r\x7fé')
        )
    ),
)
@example({"a": 1}, (",", ":"), [(6, "}")])
def test_json_with_changes_is_taken_or_refused_as_python_does(
    value: dict[str, Any], separators: tuple[str, str], changes: list[tuple[int, str]]
) -> None:
    line = list(json.dumps(value, separators=separators, ensure_ascii=False))
    for place, character in changes:
        line[place % len(line)] = character
    whole = "".join(line)
    assume("\\ud" not in whole.lower())
    agree(whole.encode())


@given(objects, st.integers(0, 10_000), st.booleans())
def test_json_cut_off_is_told(value: dict[str, Any], place: int, ascii_only: bool) -> None:
    line = json.dumps(value, ensure_ascii=ascii_only)
    part = line[: place % len(line)].encode()
    assert problem(scan_json, part, PATHS) == "cut-off"


@given(st.text() | st.from_regex(r'\{("[a-z\\u0-9]*":[0-9."a-z\[\]{}]*,?)*\}', fullmatch=True))
def test_any_text_is_taken_or_refused_as_python_does(line: str) -> None:
    assume("\\ud" not in line.lower() and "\n" not in line)
    assume(not any("\ud800" <= character <= "\udfff" for character in line))
    agree(line.encode())


@given(st.binary())
def test_any_bytes_are_answered(line: bytes) -> None:
    names = {None, "cut-off", "nul-byte", "not-utf8", "syntax", "not-an-object", "too-deep"}
    assert problem(scan_json, line, PATHS) in names


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"ts":1,"ts":1}', "duplicate-key"),
        (b'{"host":1,"ho\\u0073t":2}', "duplicate-key"),
        (b'{"a":[{"b":{"c":1,"\\u0063":2}}]}', "duplicate-key"),
        (b'{"a":NaN}', "syntax"),
        (b'{"a":Infinity}', "syntax"),
        (b'{"a":"\t"}', "syntax"),
        (b'{"a":1}{"a":1}', "syntax"),
        (b'{"a":\n1}', "syntax"),
        (b'{"a":01}', "syntax"),
        (b"[]", "not-an-object"),
        (b'{"a":"\\ud800"}', "not-utf8"),
        (b'{"a":"\xff"}', "not-utf8"),
        (b'{"a":1\x00}', "nul-byte"),
        (b'{"a":"\x00"}', "nul-byte"),
        (b'{"a":' + b"[" * 128 + b"]" * 128 + b"}", "too-deep"),
        (b'{"a":' + b"[" * 127 + b"]" * 127 + b"}", None),
        (b"", "cut-off"),
    ],
)
def test_json_problems(line: bytes, expected: str | None) -> None:
    assert problem(scan_json, line, PATHS) == expected


# --- CSV ---

# Python's reader ends lines at a lone CR too; ours takes it as data, as RFC 4180 has it.
fields = st.text(st.sampled_from('abc,;"\n é'), max_size=30) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n")
)


@given(st.lists(st.lists(fields, min_size=1, max_size=6)), st.sampled_from(",;\t|"), st.booleans())
def test_csv_that_python_wrote_is_read(
    records: list[list[str]], delimiter: str, crlf: bool
) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n" if crlf else "\n").writerows(records)
    assert scan_csv(out.getvalue().encode(), delimiter) == records


@given(st.text(st.sampled_from('ab,;"\n '), max_size=60), st.sampled_from(",;"))
@example('"a"b\n', ",")
@example('a"b"",c\n', ",")
@example('"a', ",")
@example('"a\n', ",")
def test_any_csv_is_read_as_python_reads_it(data: str, delimiter: str) -> None:
    try:
        reader = csv.reader(data.splitlines(keepends=True), delimiter=delimiter, strict=True)
        expected = [record for record in reader if record]
    except csv.Error:
        assert problem(scan_csv, data.encode(), delimiter) in {"syntax", "cut-off"}
        return
    assert scan_csv(data.encode(), delimiter) == expected


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    assert problem(scan_csv, data, ",") in {None, "syntax", "cut-off", "nul-byte", "not-utf8"}


def test_csv_line_ends() -> None:
    assert scan_csv(b"a,b\r\nc\rd,e\n\r\n\nf", ",") == [["a", "b"], ["c\rd", "e"], ["f"]]
    assert problem(scan_csv, b"a", ",,") == "delimiter: expected one ASCII character"


# --- times ---

UNITS = {"s": 9, "ms": 6, "us": 3, "ns": 0}
LIMIT = 2**63
EXACT = Context(prec=10_000)


@given(
    st.from_regex(r"[+-]?[0-9]{1,25}(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
    | st.from_regex(r"1[67][0-9]{8,17}(\.[0-9]{1,12})?", fullmatch=True),
    st.sampled_from(sorted(UNITS)),
)
@example("-0.0000000001", "s")
@example("9223372036.854775807", "s")
@example("-9223372036.854775808", "s")
def test_numbers_are_read_as_decimals(text: str, unit: str) -> None:
    number = EXACT.scaleb(Decimal(text), UNITS[unit])
    nanos = int(number.to_integral_value(rounding=ROUND_FLOOR, context=EXACT))
    if -LIMIT < nanos < LIMIT:
        assert parse_time(text.encode(), unit) == nanos
    else:
        assert problem(parse_time, text.encode(), unit) == "time"


@given(st.text(st.sampled_from("0123456789.eE+-x _")), st.sampled_from(sorted(UNITS)))
def test_what_is_no_number_is_refused(text: str, unit: str) -> None:
    try:
        Decimal(text)
    except InvalidOperation:
        assert problem(parse_time, text.encode(), unit) == "time"
        return
    # Decimal takes more: underscores, spaces around, nothing before or behind the point.
    if problem(parse_time, text.encode(), unit) is None:
        test_numbers_are_read_as_decimals.hypothesis.inner_test(text, unit)  # type: ignore[attr-defined]


instants = st.datetimes(datetime(1678, 1, 1), datetime(2262, 1, 1))
zones = st.none() | st.integers(-23 * 60 - 59, 23 * 60 + 59).map(
    lambda minutes: timezone(timedelta(minutes=minutes))
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(
    instants,
    zones,
    st.sampled_from("T "),
    st.sampled_from(["minutes", "seconds", "milliseconds", "microseconds"]),
    st.sampled_from(["+hh:mm", "+hhmm", "+hh", "Z"]),
)
def test_iso_dates_are_read_as_datetime_reads_them(
    instant: datetime, zone: timezone | None, separator: str, precision: str, style: str
) -> None:
    text = instant.replace(tzinfo=zone).isoformat(separator, precision)
    if zone is not None and style == "+hhmm":
        text = text[:-3] + text[-2:]
    elif zone is not None and style == "+hh" and text.endswith(":00"):
        text = text[:-3]
    elif zone == UTC and style == "Z":
        text = text.removesuffix("+00:00") + "Z"
    expected = datetime.fromisoformat(text)
    since = (expected if expected.tzinfo else expected.replace(tzinfo=UTC)) - EPOCH
    nanos = since // timedelta(microseconds=1) * 1000
    assert parse_time(text.encode(), "iso") == nanos
    assert parse_time(text.replace(".", ",").encode(), "iso") == nanos


@given(st.dates(date(1678, 1, 1), date(2261, 12, 31)))
def test_bare_dates_are_midnight(day: date) -> None:
    nanos = (day - date(1970, 1, 1)).days * 86_400 * 10**9
    assert parse_time(day.isoformat().encode(), "iso") == nanos


@given(
    st.integers(1678, 2261), st.integers(0, 13), st.integers(0, 32),
    st.integers(0, 25), st.integers(0, 61), st.integers(0, 61),
)  # fmt: skip
def test_the_calendar_is_checked(
    year: int, month: int, day: int, hour: int, minute: int, second: int
) -> None:
    text = f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
    try:
        datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        expected = None
    except ValueError:
        expected = "time"
    assert problem(parse_time, text.encode(), "iso") == expected


def test_an_unknown_format_is_refused() -> None:
    assert problem(parse_time, b"1", "minutes") == "format: expected s, ms, us, ns or iso"
