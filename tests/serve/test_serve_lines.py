"""Cutting of bodies: lines, and messages of Arrow."""

import contextlib
import struct
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zveil.serve.ipc import Messages, StreamError
from zveil.serve.lines import Lines

PIECES = [b"a", b"bb", b"\n", b"\r\n", b"x" * 9, b"\xef\xbb\xbf"]
BODY = st.lists(st.sampled_from(PIECES)).map(b"".join)


@given(BODY, st.lists(st.integers(0, 40)), st.integers(3, 12))
def test_however_it_is_cut_the_lines_are_the_same(
    body: bytes, cuts: list[int], max_line: int
) -> None:
    lines = Lines(max_line)
    places = sorted({min(cut, len(body)) for cut in cuts} | {0, len(body)})
    blocks = [lines.take(body[a:b]) for a, b in pairwise(places)]
    blocks.append(lines.end())
    assert all(block.endswith(b"\n") for block in blocks if block)
    found = b"".join(blocks).split(b"\n")
    wanted = body.split(b"\n")
    if wanted[-1] == b"":
        wanted.pop()
    wanted = [b"", *wanted][1:]
    assert len(found) - 1 == len(wanted)
    for number, (one, two) in enumerate(zip(found, wanted, strict=False)):
        whole = two.removeprefix(b"\xef\xbb\xbf") if number == 0 else two
        # A line that is too long may be cut where it is still too long.
        assert one == whole or (len(two) > max_line and whole.startswith(one))


def stream(**options: object) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"a": [1, 2, 3], "b": ["x", "y", None]})
    with pa.ipc.new_stream(sink, batch.schema, **options) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch)
    return bytes(sink.getvalue())


@given(st.lists(st.integers(0, 1000)))
def test_messages_are_whole_however_they_come(cuts: list[int]) -> None:
    data = stream()
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    messages = Messages()
    found = [message for a, b in pairwise(places) for message in messages.take(data[a:b])]
    assert [message.kind for message in found] == [1, 3, 3]
    assert b"".join(message.data for message in found) == data[:-8]
    assert messages.is_over
    assert messages.is_whole


def test_packed_batches_are_refused() -> None:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pytest.raises(StreamError, match="packed"):
        list(Messages().take(stream(options=options)))


@pytest.mark.parametrize(
    "data",
    [
        b"PAR1PAR1",
        b"ARROW1\0\0",
        b"\xff\xff\xff\xff" + struct.pack("<i", -5),
        b"\xff\xff\xff\xff" + struct.pack("<i", 2**30),
        b"\xff\xff\xff\xff" + struct.pack("<i", 8) + bytes(8),
        b"\xff\xff\xff\xff" + struct.pack("<i", 8) + b"\xff" * 8,
    ],
)
def test_what_is_no_stream_is_refused(data: bytes) -> None:
    with pytest.raises(StreamError):
        list(Messages().take(data))


@given(st.data())
def test_damaged_metadata_are_refused_or_read(data: st.DataObject) -> None:
    damaged = bytearray(stream())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(StreamError):
        assert all(message.kind in (1, 2, 3) for message in Messages().take(bytes(damaged)))
