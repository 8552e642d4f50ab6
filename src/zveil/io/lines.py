"""Record batches as lines of text: CSV and NDJSON, a column at a time."""

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

# Offsets of 64 bits: the lines of one batch may pass 2 GiB.
_TEXT = pa.large_string()
_UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def to_csv(batch: pa.RecordBatch, delimiter: str = ",", header: bool = True) -> bytes:
    r"""Write a batch as CSV, quoting only what needs it; nulls are empty, empty text is ``""``.

    Values are as in `to_ndjson`, without the quotes; lists and structs are their JSON.

    Parameters
    ----------
    delimiter
        One character between values.
    header
        Whether the names of the columns come first.

    Examples
    --------
    >>> to_csv(pa.record_batch({"user": ["ada", 'b"b'], "n": [1, None]}))
    b'user,n\nada,1\n"b""b",\n'
    """
    names = _quoted(pa.array(batch.schema.names, _TEXT), delimiter).to_pylist()
    head = (delimiter.join(names) + "\n").encode() if header else b""
    columns = [_csv_values(column, delimiter) for column in batch.columns]
    if len(columns) == 1:  # an empty line would be no row at all
        columns = [pc.fill_null(columns[0], '""')]
    pieces = [piece for column in columns for piece in (delimiter, column)]
    return head + _text(_joined(*pieces[1:], "\n")) if columns else head


def to_ndjson(batch: pa.RecordBatch) -> bytes:
    r"""Write a batch as NDJSON: an object a line, keys in the order of the columns.

    Times are ISO 8601 with the digits they need; timestamps are in UTC with ``Z``, and are taken as
    UTC if they have no zone. Durations are as ``PT1.5S``, decimals are numbers, binary is base64.
    NaN, infinities, and times that no calendar has are null. Text is UTF-8, not escaped to ASCII.

    Examples
    --------
    >>> batch = pa.record_batch({"user": ["ada"], "seen": pa.array([1500], pa.timestamp("ms"))})
    >>> to_ndjson(batch)
    b'{"user":"ada","seen":"1970-01-01T00:00:01.5Z"}\n'
    """
    if not batch.num_columns:
        return b"{}\n" * int(batch.num_rows)
    return _text(_json_objects(batch.schema.names, batch.columns, "}\n"))


def _joined(*pieces: str | pa.Array) -> pa.Array:
    """Join columns, and text the same in each row, to one column; nulls are nothing."""
    columns = [pa.scalar(each, _TEXT) if isinstance(each, str) else each for each in pieces]
    return pc.binary_join_element_wise(
        *columns, pa.scalar("", _TEXT), null_handling="replace", null_replacement=""
    )


def _around(before: str, values: pa.Array, after: str) -> pa.Array:
    """Put text around each value; nulls stay nulls."""
    ends = pa.scalar(before, _TEXT), pa.scalar(after, _TEXT)
    return pc.binary_join_element_wise(ends[0], values, ends[1], pa.scalar("", _TEXT))


def _text(rows: pa.Array) -> bytes:
    """Give the values of a column without nulls, one behind the other."""
    return _bytes(rows).tobytes()


def _bytes(values: pa.Array) -> NDArray[np.uint8]:
    """Show the text of a column, one value behind the other: its buffer is just that."""
    _, offsets, data = values.buffers()
    if data is None or not len(values):
        return np.empty(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int64)[[values.offset, values.offset + len(values)]]
    return np.frombuffer(data, np.uint8)[slice(*bounds)]


def _csv_values(column: pa.Array, delimiter: str) -> pa.Array:
    column = _stored(column)
    if _is_text(column.type):
        return _quoted(column.cast(_TEXT), delimiter)
    _, values, after = _json_bare(column)
    zone = after.removesuffix('"')
    return _quoted(_around("", values, zone) if zone else values, delimiter)


def _quoted(values: pa.Array, delimiter: str) -> pa.Array:
    is_empty = pc.equal(pc.binary_length(values), 0)
    # Most columns have nothing to quote, and their bytes show that faster than any search.
    if _occurring(values).isdisjoint([*b'"\r\n', *delimiter.encode()]):
        return pc.if_else(is_empty, '""', values) if pc.any(is_empty).as_py() else values
    special = pc.match_substring_regex(values, f'["\\r\\n\\x{{{ord(delimiter):x}}}]|^$')
    return pc.if_else(special, _around('"', pc.replace_substring(values, '"', '""'), '"'), values)


def _occurring(values: pa.Array) -> set[int]:
    """Give the bytes that occur in a column of text."""
    return set(np.flatnonzero(np.bincount(_bytes(values), minlength=256)).tolist())


def _json_values(column: pa.Array) -> pa.Array:
    """Give the JSON text of each value; a null stays one."""
    before, values, after = _json_bare(column)
    return _around(before, values, after) if before or after else values


def _json_bare(column: pa.Array) -> tuple[str, pa.Array, str]:
    """Give what stands before each value, the values, and what stands behind.

    Whoever joins them to something larger does all of it at once.
    """
    column = _stored(column)
    kind = column.type
    if _is_text(kind):
        return '"', _json_text(column.cast(_TEXT)), '"'
    if pa.types.is_timestamp(kind):
        return '"', _json_times(column), 'Z"'
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return '"', _json_times(column), '"'
    if pa.types.is_duration(kind):
        digits = _UNITS[kind.unit]
        return '"', _each(column.cast(pa.int64()), lambda number: _duration(number, digits)), '"'
    if str(kind).startswith(("binary", "large_binary", "fixed_size_binary")):
        return '"', _each(column, lambda value: base64.b64encode(value).decode("ascii")), '"'
    return "", _json_whole(column), ""


def _json_whole(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        return column.cast(_TEXT)
    if pa.types.is_floating(kind):
        return _json_floats(column)
    if pa.types.is_null(kind):
        return pa.nulls(len(column), _TEXT)
    is_list = pa.types.is_fixed_size_list(kind)  # which older Arrow does not count as nested
    if is_list or (pa.types.is_nested(kind) and not pa.types.is_union(kind)):
        return pc.if_else(column.is_valid(), _json_nested(column), pa.scalar(None, _TEXT))
    return _each(column, lambda value: json.dumps(value, ensure_ascii=False, default=str))


def _each(column: pa.Array, write: Callable[[Any], str]) -> pa.Array:
    """Write value by value, for types that are rare or have no faster way."""
    return pa.array(
        [None if value is None else write(value) for value in column.to_pylist()], _TEXT
    )


def _json_nested(column: pa.Array) -> pa.Array:
    """Write what is inside as a column of its own, and gather it; nulls give anything."""
    kind = column.type
    if pa.types.is_struct(kind):
        if not kind.num_fields:
            return pa.array(["{}"] * len(column), _TEXT)
        return _json_objects([field.name for field in kind], column.flatten())
    if not pa.types.is_map(kind):
        items = pc.fill_null(_json_values(column.flatten()), "null")
        return _around("[", _json_items(column, items), "]")
    pairs = column.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
    keys, values = (_stored(part) for part in pairs.flatten().flatten())
    names = _json_values(keys)
    if not _is_text(keys.type):
        names = _around('"', pc.replace_substring(names, '"', ""), '"')
    items = _joined(names, ":", pc.fill_null(_json_values(values), "null"))
    return _around("{", _json_items(pairs, items), "}")


def _json_objects(names: list[str], columns: list[pa.Array], end: str = "}") -> pa.Array:
    pieces: list[str | pa.Array] = []
    glue = "{"
    for name, column in zip(names, columns, strict=True):
        before, values, after = _json_bare(column)
        if values.null_count:
            values = pc.fill_null(_around(before, values, after), "null")
            before = after = ""
        pieces += [glue + json.dumps(name, ensure_ascii=False) + ":" + before, values]
        glue = after + ","
    return _joined(*pieces, glue.removesuffix(",") + end)


def _json_items(lists: pa.Array, items: pa.Array) -> pa.Array:
    """Join the texts of all items, list by list."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(offsets, items), pa.scalar(",", _TEXT))


def _stored(column: pa.Array) -> pa.Array:
    """Take off what is only another way to store values: dictionaries, runs, extensions."""
    if isinstance(column, pa.ExtensionArray):
        return _stored(column.storage)
    if pa.types.is_dictionary(column.type):
        return _stored(column.dictionary_decode())
    if pa.types.is_run_end_encoded(column.type):
        return _stored(pc.run_end_decode(column))
    return column


def _is_text(kind: pa.DataType) -> bool:
    return str(kind) in {"string", "large_string", "string_view"}


def _json_text(values: pa.Array) -> pa.Array:
    occurring = _occurring(values)
    for code in (0x5C, 0x22, *range(0x20)):  # the backslash first: the others bring some in
        if code in occurring:
            values = pc.replace_substring(values, chr(code), json.dumps(chr(code))[1:-1])
    return values


def _json_floats(column: pa.Array) -> pa.Array:
    if pa.types.is_float16(column.type):  # older Arrow casts it to nothing
        column = pa.array(column.to_numpy(zero_copy_only=False).astype(np.float32))
    column = pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))
    texts = column.cast(_TEXT)
    # A whole number keeps its point, so that a reader sees a column of one type.
    is_whole = pc.and_(
        pc.equal(pc.trunc(column), column), pc.invert(pc.match_substring(texts, "e"))
    )
    return pc.if_else(is_whole, _around("", texts, ".0"), texts)


def _json_times(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        column = column.cast(pa.int64()).cast(pa.timestamp(kind.unit))
    texts = column.cast(_TEXT)
    is_beyond = pc.starts_with(texts, "<")  # Arrow's own words for what no calendar has
    if pc.any(is_beyond).as_py():
        texts = pc.if_else(is_beyond, pa.scalar(None, _TEXT), texts)
    if _has_digits(kind):
        texts = pc.ascii_rtrim(pc.ascii_rtrim(texts, "0"), ".")
    return pc.replace_substring(texts, " ", "T") if pa.types.is_timestamp(kind) else texts


def _has_digits(kind: pa.DataType) -> bool:
    """Whether texts of this type have digits behind the second."""
    return not pa.types.is_date(kind) and kind.unit != "s"


def _duration(number: int, digits: int) -> str:
    whole, part = divmod(abs(number), 10**digits)
    fraction = f".{part:0{digits}}".rstrip("0").rstrip(".") if digits else ""
    return f"{'-' if number < 0 else ''}PT{whole}{fraction}S"
