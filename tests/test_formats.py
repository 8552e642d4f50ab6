"""Formats: by ending and by first bytes."""

import gzip

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from zveil.io.formats import (
    COMPRESSIONS,
    FORMATS,
    WRITABLE,
    Compression,
    Format,
    is_short,
    may_be_wrapped,
    of_path,
    sniff,
)
from zveil.io.presets import PRESETS


@pytest.mark.parametrize(
    ("name", "form", "compression"),
    [
        ("a.ndjson", Format.NDJSON, Compression.NONE),
        ("a.jsonl", Format.NDJSON, Compression.NONE),
        ("a.json", Format.NDJSON, Compression.NONE),
        ("a.ldjson", Format.NDJSON, Compression.NONE),
        ("a.csv", Format.CSV, Compression.NONE),
        ("a.tsv", Format.TSV, Compression.NONE),
        ("a.tab", Format.TSV, Compression.NONE),
        ("a.parquet", Format.PARQUET, Compression.NONE),
        ("a.pq", Format.PARQUET, Compression.NONE),
        ("a.arrow", Format.ARROW, Compression.NONE),
        ("a.arrows", Format.ARROW, Compression.NONE),
        ("a.ipc", Format.ARROW, Compression.NONE),
        ("a.feather", Format.ARROW, Compression.NONE),
        ("a.csv.gz", Format.CSV, Compression.GZIP),
        ("a.csv.gzip", Format.CSV, Compression.GZIP),
        ("a.csv.zst", Format.CSV, Compression.ZSTD),
        ("a.csv.zstd", Format.CSV, Compression.ZSTD),
        ("folder.csv/A.JSONL.GZ", Format.NDJSON, Compression.GZIP),
        ("folder.csv/notes", None, Compression.NONE),
        ("a.gz", None, Compression.GZIP),
        ("a.csv.bz2", None, Compression.NONE),
        ("a.gz.csv", Format.CSV, Compression.NONE),
        ("csv", None, Compression.NONE),
        ("", None, Compression.NONE),
    ],
)
def test_the_ending_tells(name: str, form: Format | None, compression: Compression) -> None:
    assert of_path(name) == (form, compression)


@given(
    st.text(max_size=20),
    st.sampled_from(sorted(FORMATS)),
    st.sampled_from(["", *sorted(COMPRESSIONS)]),
    st.booleans(),
)
def test_whatever_stands_before_the_ending_does_not_matter(
    stem: str, ending: str, wrap: str, is_loud: bool
) -> None:
    name = stem + ((ending + wrap).upper() if is_loud else ending + wrap)
    assert of_path(name) == (FORMATS[ending], COMPRESSIONS.get(wrap, Compression.NONE))


@pytest.mark.parametrize(
    ("head", "form", "compression"),
    [
        (b'{"a": 1}', Format.NDJSON, Compression.NONE),
        (b" \r\n\t{", Format.NDJSON, Compression.NONE),
        (b"\xef\xbb\xbf{", Format.NDJSON, Compression.NONE),
        (b"PAR1....", Format.PARQUET, Compression.NONE),
        (b"ARROW1\0\0", Format.ARROW, Compression.NONE),
        (b"\xff\xff\xff\xff\x10\0\0\0", Format.ARROW, Compression.NONE),
        (gzip.compress(b'{"a": 1}', mtime=0), None, Compression.GZIP),
        (zstandard.compress(b'{"a": 1}'), None, Compression.ZSTD),
        (b"\x50*M\x18\0\0\0\0", None, Compression.ZSTD),
        (b"time,user\n", None, Compression.NONE),
        (b"[1, 2]", None, Compression.NONE),
        (b"PAR", None, Compression.NONE),
        (b"", None, Compression.NONE),
    ],
)
def test_the_first_bytes_tell(head: bytes, form: Format | None, compression: Compression) -> None:
    assert sniff(head) == (form, compression)


def test_what_arrow_writes_is_told() -> None:
    batch = pa.record_batch({"a": [1]})
    stream, file = pa.BufferOutputStream(), pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch)
    with pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    for written in stream, file:
        assert sniff(written.getvalue().to_pybytes()[:8])[0] is Format.ARROW


@given(st.binary(max_size=8), st.binary(max_size=8))
def test_more_bytes_change_nothing_once_they_are_enough(head: bytes, more: bytes) -> None:
    if not is_short(head):
        assert sniff(head + more) == sniff(head)
    if not may_be_wrapped(head):
        assert sniff(head + more)[1] == sniff(head)[1]


@pytest.mark.parametrize("head", [b"", b"\x1f", b"\x28\xb5", b"PAR", b"ARROW", b"\xff\xff", b" \n"])
def test_these_are_not_enough(head: bytes) -> None:
    assert is_short(head)


def test_text_and_columns() -> None:
    assert [form for form in WRITABLE if form.is_text] == [Format.NDJSON, Format.CSV, Format.TSV]
    logs = set(Format) - set(WRITABLE)
    assert all(form.is_text and form.is_log and form.written is Format.NDJSON for form in logs)
    assert {preset.format for preset in PRESETS.values()} == logs - {Format.ZEEK_JSON}
