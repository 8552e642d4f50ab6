"""Sinks: bytes that arrive, and errors that name the sink."""

import errno
import gzip
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from plumbing import PATIENCE_S, Pipe, pipe, within

from zveil.io.decompression import decompressor
from zveil.io.formats import Compression
from zveil.io.inputs import find
from zveil.io.sinks import ByteSink, SinkClosed, SinkError

PACKED = [Compression.GZIP, Compression.ZSTD]
FULL = Path("/dev/full")

needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")


def sink_of(made: Pipe, compression: Compression = Compression.NONE) -> ByteSink:
    """A sink into a pipe, whose only writing end it then is."""
    sink = ByteSink(f"/dev/fd/{made.writer}", compression=compression)
    made.close(made.writer)
    return sink


def unpacked(data: bytes, compression: Compression) -> bytes:
    if compression is Compression.GZIP:
        return gzip.decompress(data)
    if compression is Compression.ZSTD:
        return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    return data


class TestFiles:
    @pytest.mark.parametrize(
        ("ending", "compression"),
        [
            ("ndjson", Compression.NONE),
            ("ndjson.gz", Compression.GZIP),
            ("csv.zst", Compression.ZSTD),
        ],
    )
    def test_the_ending_says_how_to_pack(
        self, tmp_path: Path, ending: str, compression: Compression
    ) -> None:
        path = tmp_path / f"out.{ending}"
        with ByteSink(path) as sink:
            assert sink.compression is compression
            sink.write(b"one\n")
            sink.flush()
            sink.write(memoryview(b"two\n" * 100_000))
        assert unpacked(path.read_bytes(), compression) == b"one\n" + b"two\n" * 100_000
        assert sink.position == path.stat().st_size
        assert (sink.name, sink.path) == (str(path), path)

    def test_what_is_given_goes_before_the_ending(self, tmp_path: Path) -> None:
        with ByteSink(tmp_path / "a.gz", compression=Compression.NONE) as sink:
            sink.write(b"plain")
        assert (tmp_path / "a.gz").read_bytes() == b"plain"

    @pytest.mark.parametrize("compression", PACKED)
    def test_nothing_written_is_a_whole_frame(
        self, tmp_path: Path, compression: Compression
    ) -> None:
        with ByteSink(tmp_path / "a", compression=compression):
            pass
        assert unpacked((tmp_path / "a").read_bytes(), compression) == b""

    def test_an_older_and_longer_file_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"older and longer")
        with ByteSink(tmp_path / "a") as sink:
            sink.write(b"new")
        assert (tmp_path / "a").read_bytes() == b"new"

    @pytest.mark.parametrize("compression", PACKED)
    @given(parts=st.lists(st.tuples(st.binary(max_size=200), st.booleans()), max_size=10))
    def test_flushes_change_nothing_but_the_moment(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        compression: Compression,
        parts: list[tuple[bytes, bool]],
    ) -> None:
        path = tmp_path_factory.getbasetemp() / f"flushes-{compression}"
        with ByteSink(path, compression=compression) as sink:
            seen = decompressor(compression)
            assert seen is not None
            written = shown = b""
            with path.open("rb") as reader:
                for part, is_flushed in parts:
                    sink.write(part)
                    written += part
                    if is_flushed:
                        sink.flush()
                        seen.feed(reader.read())
                        shown += b"".join(iter(seen.take, b""))
                        assert shown == written
        assert unpacked(path.read_bytes(), compression) == written

    def test_any_buffer_can_be_written(self, tmp_path: Path) -> None:
        numbers = memoryview(bytearray(80)).cast("d")
        with ByteSink(tmp_path / "a") as sink:
            sink.write(numbers)
        assert (tmp_path / "a").stat().st_size == 80


class TestInputs:
    def test_an_input_is_refused_and_left_as_it_was(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_bytes(b"t,u\n")
        (tmp_path / "link.csv").symlink_to(path)
        (tmp_path / "hard.csv").hardlink_to(path)
        for name in "a.csv", "link.csv", "hard.csv":
            with pytest.raises(SinkError, match=rf"{name}: is also read, as .*a\.csv"):
                ByteSink(tmp_path / name, inputs=find([str(path)]))
        assert path.read_bytes() == b"t,u\n"

    def test_standard_input_counts(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_bytes(b"t,u\n")
        program = "from zveil.io import *; ByteSink(inputs=find([]))"
        with path.open("rb") as source, path.open("ab") as target:
            done = subprocess.run(
                [sys.executable, "-c", program],
                stdin=source,
                stdout=target,
                stderr=subprocess.PIPE,
                timeout=60,
            )
        assert b"SameFileError: <stdout>: is also read, as <stdin>" in done.stderr
        assert path.read_bytes() == b"t,u\n"

    def test_a_device_may_be_both(self) -> None:
        with ByteSink(os.devnull, inputs=find([os.devnull])) as sink:
            sink.write(b"gone")

    def test_an_input_that_went_away_is_no_hindrance(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_bytes(b"t,u\n")
        inputs = find([str(path)])
        path.unlink()
        with ByteSink(tmp_path / "b.csv", inputs=inputs) as sink:
            sink.write(b"t,u\n")


class TestPipes:
    @pytest.mark.parametrize("compression", list(Compression))
    def test_what_is_flushed_can_be_read_at_once(self, compression: Compression) -> None:
        with pipe() as made:
            sink = sink_of(made, compression)
            seen = decompressor(compression)
            for line in b"one\n", b"two\n":
                sink.write(line)
                sink.flush()
                got = within(lambda: os.read(made.reader, 1000))
                if seen is not None:
                    seen.feed(got)
                    got = seen.take()
                assert got == line
            sink.close()

    def test_more_than_a_pipe_holds_is_written_whole(self) -> None:
        data = os.urandom(5_000_000)
        got = bytearray()
        with pipe() as made:

            def read() -> None:
                while part := os.read(made.reader, 70_000):
                    got.extend(part)

            reader = threading.Thread(target=read, daemon=True)
            reader.start()
            with sink_of(made) as sink:
                within(lambda: sink.write(data))
            reader.join(PATIENCE_S)
            assert bytes(got) == data

    def test_a_non_blocking_pipe_is_waited_for(self) -> None:
        program = (
            "import os; os.set_blocking(1, False); from zveil.io import *\n"
            "with ByteSink() as sink: sink.write(b'x' * 3_000_000)\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
        assert len(done.stdout) == 3_000_000
        assert not done.stderr

    @pytest.mark.parametrize("compression", list(Compression))
    def test_a_closed_pipe_is_no_error_of_ours(self, compression: Compression) -> None:
        with pipe() as made:
            sink = sink_of(made, compression)
            made.close(made.reader)
            with pytest.raises(SinkClosed, match="closed by its reader"):
                sink.write(os.urandom(500_000))
            with pytest.raises(SinkError, match="nothing more can be written"):
                sink.write(b"more")
            within(sink.close)
            within(sink.close)

    def test_a_pipe_closed_before_the_end_of_the_frame(self) -> None:
        with pipe() as made:
            sink = sink_of(made, Compression.GZIP)
            made.close(made.reader)
            with pytest.raises(SinkClosed):
                sink.close()
            sink.close()


class TestErrors:
    @needs_full
    @pytest.mark.parametrize("compression", list(Compression))
    def test_a_full_disk(self, compression: Compression) -> None:
        sink = ByteSink(FULL, compression=compression)
        with pytest.raises(SinkError, match="/dev/full: no space left on device") as caught:
            sink.write(os.urandom(500_000))
        assert caught.value.errno == errno.ENOSPC
        sink.close()

    @needs_full
    @pytest.mark.parametrize("compression", PACKED)
    def test_a_disk_that_is_full_at_the_very_end(self, compression: Compression) -> None:
        sink = ByteSink(FULL, compression=compression)
        with pytest.raises(SinkError, match="no space left"):
            sink.close()
        sink.close()

    def test_no_such_folder(self, tmp_path: Path) -> None:
        with pytest.raises(SinkError, match=r"nowhere/a\.csv: no such file or directory"):
            ByteSink(tmp_path / "nowhere/a.csv")

    def test_a_folder_in_its_place(self, tmp_path: Path) -> None:
        with pytest.raises(SinkError, match="is a directory"):
            ByteSink(tmp_path)

    def test_nothing_is_written_after_the_end(self, tmp_path: Path) -> None:
        sink = ByteSink(tmp_path / "a.gz")
        sink.close()
        with pytest.raises(SinkError, match="nothing more"):
            sink.write(b"late")


class TestStandardOutput:
    def run(self, program: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-c", "from zveil.io import *\n" + program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    @pytest.mark.parametrize("path", ["None", "'-'"])
    def test_it_is_written_and_stays_open(self, path: str) -> None:
        program = f"with ByteSink({path}) as sink: sink.write(b'one\\n')\nprint(sink.name)"
        got, errors = self.run(program).communicate(timeout=60)
        assert (got, errors) == (b"one\n<stdout>\n", b"")

    def test_a_reader_that_leaves_causes_no_traceback(self) -> None:
        program = (
            "import sys; sink = ByteSink(); sink.write(b'ready\\n'); sys.stdin.read()\n"
            "try:\n    sink.write(b'x')\n"
            "except SinkClosed:\n    sink.close(); print('left over in a buffer'); sys.exit(0)\n"
        )
        started = self.run(program)
        assert started.stdin is not None
        assert started.stdout is not None
        assert started.stderr is not None
        assert started.stdout.readline() == b"ready\n"
        started.stdout.close()
        started.stdin.close()
        assert started.stderr.read() == b""
        assert started.wait(PATIENCE_S) == 0
        started.stderr.close()

    def test_closed_from_the_start(self) -> None:
        _, errors = self.run("import os; os.close(1); ByteSink()").communicate(timeout=60)
        assert b"SinkError: <stdout>: bad file descriptor" in errors

    def test_an_interrupted_write_is_not_waited_for_again(self) -> None:
        program = (
            "import sys; sink = ByteSink(compression=Compression.GZIP); import os\n"
            "sys.stderr.write('ready\\n'); sys.stderr.flush()\n"
            "try:\n    sink.write(os.urandom(3 << 20))\n"
            "except KeyboardInterrupt:\n    sink.close(); sys.stderr.write('closed\\n')\n"
        )
        started = self.run(program)
        assert started.stdout is not None
        assert started.stderr is not None
        assert started.stderr.readline() == b"ready\n"
        os.read(started.stdout.fileno(), 1)  # it is in its write, and nobody reads on
        started.send_signal(signal.SIGINT)
        assert within(started.stderr.read) == b"closed\n"
        started.communicate(timeout=PATIENCE_S)
