"""Decompression piece by piece."""

import gzip
import zlib
from collections.abc import Iterable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from zveil.io.decompression import DecompressionError, Decompressor, Gzip, decompressor
from zveil.io.formats import Compression
from zveil.io.zstd import ZstdReader

SKIPPABLE = b"\x53*M\x18\x03\0\0\0any"
EMPTY_SKIPPABLE = b"\x50*M\x18\0\0\0\0"


def drain(tested: Decompressor, pieces: Iterable[bytes]) -> bytes:
    plain = []
    for piece in pieces:
        tested.feed(piece)
        while part := tested.take():
            assert len(part) <= 1 << 18
            plain.append(part)
    tested.finish()
    return b"".join(plain)


def cut(data: bytes, sizes: list[int]) -> Iterable[bytes]:
    """Cut data into pieces of these sizes, over and over."""
    at = turn = 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        yield data[at : at + size]
        at, turn = at + size, turn + 1


# Random bytes pack badly, runs of one byte pack well, and long ones fill more than one block.
plains = st.lists(
    st.one_of(st.binary(max_size=300), st.builds(bytes, st.integers(0, 400_000))), max_size=4
).map(b"".join)
cuts = st.lists(st.integers(1, 5_000), min_size=1, max_size=5)


@given(st.lists(plains, min_size=1, max_size=3), cuts, st.integers(0, 40), st.integers(1, 9))
def test_gzip_in_any_pieces(
    members: list[bytes], sizes: list[int], padding: int, level: int
) -> None:
    packed = b"".join(gzip.compress(each, level) + b"\0" * padding for each in members)
    assert drain(Gzip(), cut(packed, sizes)) == b"".join(members)


@given(
    st.lists(plains, min_size=1, max_size=3),
    cuts,
    st.sampled_from([b"", SKIPPABLE, EMPTY_SKIPPABLE]),
    st.sampled_from([-5, 1, 3, 12]),
    st.booleans(),
    st.booleans(),
)
def test_zstd_in_any_pieces(
    frames: list[bytes], sizes: list[int], between: bytes, level: int, is_summed: bool, knows: bool
) -> None:
    packer = zstandard.ZstdCompressor(level, write_checksum=is_summed, write_content_size=knows)
    packed = between + b"".join(packer.compress(each) + between for each in frames)
    assert drain(ZstdReader(), cut(packed, sizes)) == b"".join(frames)


@given(plains.filter(bool), st.sampled_from([Compression.GZIP, Compression.ZSTD]))
def test_a_flushed_part_comes_out_before_the_rest_is_there(
    plain: bytes, compression: Compression
) -> None:
    if compression is Compression.GZIP:
        stream = zlib.compressobj(wbits=31)
        packed = stream.compress(plain) + stream.flush(zlib.Z_SYNC_FLUSH)
    else:
        packer = zstandard.ZstdCompressor().compressobj()
        packed = packer.compress(plain) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    tested = decompressor(compression)
    assert tested is not None
    tested.feed(packed)
    assert b"".join(iter(tested.take, b"")) == plain
    with pytest.raises(DecompressionError, match="ends early"):
        tested.finish()


def salvage(tested: Decompressor, packed: bytes) -> tuple[bytes, str]:
    """Give what comes out before the error, and the error."""
    plain = []
    tested.feed(packed)
    try:
        while part := tested.take():
            plain.append(part)
        tested.finish()
    except DecompressionError as error:
        return b"".join(plain), str(error)
    return b"".join(plain), ""


@pytest.mark.parametrize("wrong", [-1, -5])
def test_a_wrong_sum_of_gzip_is_told_after_all_of_it(wrong: int) -> None:
    plain = bytes(range(256)) * 4_000
    packed = bytearray(gzip.compress(plain))
    packed[wrong] ^= 1
    assert salvage(Gzip(), bytes(packed)) == (plain, "gzip data is damaged")


def test_a_wrong_sum_of_zstd_is_told_after_all_of_it() -> None:
    plain = bytes(range(256)) * 4_000
    packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(plain))
    packed[-1] ^= 1
    got, error = salvage(ZstdReader(), bytes(packed))
    assert got == plain
    assert "zstd data is damaged" in error


@given(st.data())
def test_before_a_damage_everything_comes_and_nothing_else(data: st.DataObject) -> None:
    plain = b"".join(b"%d\n" % (number * number) for number in range(30_000))
    name = data.draw(st.sampled_from(["gzip", "zstd"]))
    packed = gzip.compress(plain) if name == "gzip" else zstandard.compress(plain)
    stop = data.draw(st.integers(1, len(packed) - 1))
    tested = Gzip() if name == "gzip" else ZstdReader()
    got, error = salvage(tested, packed[:stop])
    assert plain.startswith(got)
    assert error == f"{name} data ends early"


@pytest.mark.parametrize("tested", [Gzip(), ZstdReader()], ids=["gzip", "zstd"])
def test_what_is_no_such_data_gives_nothing(tested: Decompressor) -> None:
    assert salvage(tested, b"time,user,attribute\n")[0] == b""
    with pytest.raises(DecompressionError, match="damaged"):
        tested.take() or tested.finish()


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_what_follows_the_last_frame_and_is_none_is_told(name: str) -> None:
    packed = gzip.compress(b"plain") if name == "gzip" else zstandard.compress(b"plain")
    got, error = salvage(Gzip() if name == "gzip" else ZstdReader(), packed + b"garbage")
    assert got == b"plain"
    assert "damaged" in error


def test_nothing_is_a_whole_stream() -> None:
    assert drain(Gzip(), []) == drain(ZstdReader(), []) == b""


def test_no_compression_needs_nothing_undone() -> None:
    assert decompressor(Compression.NONE) is None
