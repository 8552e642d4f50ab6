"""Record batches as lines of text: CSV and NDJSON, a column at a time."""

import base64
import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
    rows = _text(_around("", _joined(columns, delimiter), "\n")) if columns else b""
    return head + rows


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
    return _text(_around("", _json_objects(batch.schema.names, batch.columns), "\n"))


def _joined(columns: list[pa.Array], separator: str) -> pa.Array:
    """Join columns to one of text, nulls as nothing."""
    return pc.binary_join_element_wise(
        *columns, pa.scalar(separator, _TEXT), null_handling="replace", null_replacement=""
    )


def _around(before: str, values: pa.Array, after: str) -> pa.Array:
    """Put text around each value that is not null."""
    ends = pa.scalar(before, _TEXT), pa.scalar(after, _TEXT)
    return pc.binary_join_element_wise(ends[0], values, ends[1], pa.scalar("", _TEXT))


def _text(rows: pa.Array) -> bytes:
    """Give the values of a column without nulls, one behind the other: its buffer is just that."""
    _, offsets, data = rows.buffers()
    if data is None or not len(rows):
        return b""
    bounds = memoryview(offsets).cast("q")
    return bytes(memoryview(data)[bounds[rows.offset] : bounds[rows.offset + len(rows)]])


def _csv_values(column: pa.Array, delimiter: str) -> pa.Array:
    column = _stored(column)
    if _is_text(column.type):
        return _quoted(column.cast(_TEXT), delimiter)
    values = _json_values(column)
    if pa.types.is_nested(column.type):
        return _quoted(values, delimiter)
    return _quoted(pc.replace_substring(values, '"', ""), delimiter)


def _quoted(values: pa.Array, delimiter: str) -> pa.Array:
    special = pc.match_substring_regex(values, f'["\\r\\n\\x{{{ord(delimiter):x}}}]|^$')
    if not pc.any(special).as_py():
        return values
    return pc.if_else(special, _around('"', pc.replace_substring(values, '"', '""'), '"'), values)


def _json_values(column: pa.Array) -> pa.Array:
    """Give the JSON text of each value; a null stays one."""
    column = _stored(column)
    kind = column.type
    if _is_text(kind):
        return _json_text(column.cast(_TEXT))
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        return column.cast(_TEXT)
    if pa.types.is_floating(kind):
        return _json_floats(column)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        return _json_times(column)
    if pa.types.is_null(kind):
        return pa.nulls(len(column), _TEXT)
    if pa.types.is_nested(kind) and not pa.types.is_union(kind):
        return pc.if_else(column.is_valid(), _json_nested(column), pa.scalar(None, _TEXT))
    if pa.types.is_duration(kind):
        digits = _UNITS[kind.unit]
        numbers = column.cast(pa.int64()).to_pylist()
        return pa.array([None if n is None else _duration(n, digits) for n in numbers], _TEXT)
    values = column.to_pylist()
    return pa.array([None if value is None else _json_odd(value) for value in values], _TEXT)


def _json_nested(column: pa.Array) -> pa.Array:
    """Write what is inside as a column of its own, and gather it; nulls give anything."""
    kind = column.type
    if pa.types.is_struct(kind):
        return _json_objects([field.name for field in kind], column.flatten())
    if not pa.types.is_map(kind):
        items = pc.fill_null(_json_values(column.flatten()), "null")
        return _around("[", _json_items(column, items), "]")
    pairs = column.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
    keys, values = (_stored(part) for part in pairs.flatten().flatten())
    names = _json_values(keys)
    if not _is_text(keys.type):
        names = _around('"', pc.replace_substring(names, '"', ""), '"')
    items = _joined([names, pc.fill_null(_json_values(values), "null")], ":")
    return _around("{", _json_items(pairs, items), "}")


def _json_objects(names: list[str], columns: list[pa.Array]) -> pa.Array:
    parts = []
    for number, (name, column) in enumerate(zip(names, columns, strict=True)):
        key = ("," if number else "{") + json.dumps(name, ensure_ascii=False) + ":"
        parts.append(_around(key, pc.fill_null(_json_values(column), "null"), ""))
    return _around("", _joined(parts, ""), "}")


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
    if pc.any(pc.match_substring_regex(values, r'[\x00-\x1f"\\]')).as_py():
        for code in (0x5C, 0x22, *range(0x20)):  # the backslash first: the others bring some in
            values = pc.replace_substring(values, chr(code), json.dumps(chr(code))[1:-1])
    return _around('"', values, '"')


def _json_floats(column: pa.Array) -> pa.Array:
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    finite = pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))
    # A whole number keeps its point, so that a reader sees a column of one type.
    return pc.replace_substring_regex(finite.cast(_TEXT), r"^(-?[0-9]+)$", r"\1.0")


def _json_times(column: pa.Array) -> pa.Array:
    kind = column.type
    is_timestamp = pa.types.is_timestamp(kind)
    if is_timestamp and kind.tz is not None:
        column = column.cast(pa.int64()).cast(pa.timestamp(kind.unit))
    texts = column.cast(_TEXT)
    is_beyond = pc.match_substring(texts, "<")  # Arrow's own words for what no calendar has
    texts = pc.if_else(is_beyond, pa.scalar(None, _TEXT), texts)
    texts = pc.replace_substring_regex(texts, r"\.?0*$", "") if _has_digits(kind) else texts
    return _around('"', pc.replace_substring(texts, " ", "T"), 'Z"' if is_timestamp else '"')


def _has_digits(kind: pa.DataType) -> bool:
    """Whether texts of this type have digits behind the second."""
    return not pa.types.is_date(kind) and kind.unit != "s"


def _duration(number: int, digits: int) -> str:
    whole, part = divmod(abs(number), 10**digits)
    fraction = f".{part:0{digits}}".rstrip("0").rstrip(".") if digits else ""
    return f'"{"-" if number < 0 else ""}PT{whole}{fraction}S"'


def _json_odd(value: object) -> str:
    if isinstance(value, bytes):
        return json.dumps(base64.b64encode(value).decode("ascii"))
    return json.dumps(value, ensure_ascii=False, default=str)
