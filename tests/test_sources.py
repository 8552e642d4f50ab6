"""Sources: what arguments mean, and bytes as they arrive."""

import gzip
import os
import random
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from plumbing import PATIENCE_S, pipe, within

from zveil.io.formats import Compression, Format
from zveil.io.inputs import find, natural
from zveil.io.sources import ByteSource, Input, SourceError

LINES = b"".join(b'{"user":%d}\n' % number for number in range(50_000))


def write(path: Path, data: bytes = b"{}\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def names(found: list[Input], below: Path) -> list[str]:
    return [Path(each.name).relative_to(below).as_posix() for each in found]


def read_all(source: ByteSource, most: int = 1 << 20) -> bytes:
    parts = []
    while part := source.read(most):
        assert len(part) <= most
        parts.append(part)
    return b"".join(parts)


class TestFind:
    def test_a_file(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv.gz", gzip.compress(b"t,u\n"))
        assert find([str(path)]) == [
            Input(path, str(path), Format.CSV, Compression.GZIP, path.stat().st_size)
        ]

    def test_the_name_is_what_was_given(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        write(tmp_path / "a.csv")
        assert find(["./a.csv"])[0].name == "./a.csv"

    @pytest.mark.parametrize("arguments", [[], ["-"]])
    def test_standard_input(self, arguments: list[str]) -> None:
        [found] = find(arguments, Format.CSV)
        assert (found.path, found.name, found.format) == (None, "<stdin>", Format.CSV)

    def test_standard_input_is_read_only_once(self) -> None:
        with pytest.raises(SourceError, match="only once"):
            find(["-", "-"])

    def test_a_directory_gives_what_is_known_in_natural_order(self, tmp_path: Path) -> None:
        for name in [
            "part-10.csv",
            "part-2.csv",
            "Part-1.ndjson.zst",
            "day-9/b.parquet",
            "day-10/a.tsv",
            "notes.txt",
            ".hidden.csv",
            ".git/a.csv",
            "_SUCCESS",
        ]:
            write(tmp_path / name, zstandard.compress(b"{}") if name.endswith("zst") else b"x")
        assert names(find([str(tmp_path)]), tmp_path) == [
            "day-9/b.parquet",
            "day-10/a.tsv",
            "Part-1.ndjson.zst",
            "part-2.csv",
            "part-10.csv",
        ]
        assert names(find([str(tmp_path)], Format.TSV), tmp_path) == ["day-10/a.tsv"]

    def test_patterns_that_no_shell_expanded(self, tmp_path: Path) -> None:
        for name in ["a-10.csv", "a-9.csv", "deep/er/a-1.csv", "b.tsv", "folder.csv/x.tsv"]:
            write(tmp_path / name)
        assert names(find([f"{tmp_path}/*.csv"]), tmp_path) == ["a-9.csv", "a-10.csv"]
        assert names(find([f"{tmp_path}/**/a-?.csv"]), tmp_path) == ["a-9.csv", "deep/er/a-1.csv"]

    def test_a_name_that_looks_like_a_pattern(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a[1].csv")
        assert names(find([str(path)]), tmp_path) == ["a[1].csv"]

    def test_the_order_of_arguments_holds_and_files_may_come_twice(self, tmp_path: Path) -> None:
        late, early = write(tmp_path / "b.csv"), write(tmp_path / "a.csv")
        found = find([str(late), str(early), str(late)])
        assert names(found, tmp_path) == ["b.csv", "a.csv", "b.csv"]

    def test_the_content_tells_what_the_ending_does_not(self, tmp_path: Path) -> None:
        plain = write(tmp_path / "events.log", b' {"a": 1}\n')
        packed = write(tmp_path / "events", gzip.compress(b'{"a": 1}\n'))
        secret = write(tmp_path / "events.csv", gzip.compress(b"t,u\n"))
        found = find([str(plain), str(packed), str(secret)])
        assert [(each.format, each.compression) for each in found] == [
            (Format.NDJSON, Compression.NONE),
            (Format.NDJSON, Compression.GZIP),
            (Format.CSV, Compression.GZIP),
        ]

    def test_what_is_stated_goes_before_the_ending(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv.gz", gzip.compress(b"t\tu\n"))
        [found] = find([str(path)], Format.TSV)
        assert (found.format, found.compression) == (Format.TSV, Compression.GZIP)

    def test_an_empty_file_is_no_error(self, tmp_path: Path) -> None:
        assert find([str(write(tmp_path / "_SUCCESS", b""))])[0].format is Format.NDJSON

    @pytest.mark.parametrize(
        ("argument", "told"),
        [
            ("missing.csv", "no such file"),
            ("*.nothing", "no file matches"),
            ("empty", "no file with a known ending"),
            ("notes.txt", "--format"),
            ("https://example.org/a.csv", "pipe it"),
            ("dangling.csv", "no such file"),
        ],
    )
    def test_errors_name_the_argument_and_what_to_do(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argument: str, told: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        write(tmp_path / "notes.txt", b"Dear reader")
        (tmp_path / "empty").mkdir()
        (tmp_path / "dangling.csv").symlink_to("nowhere")
        with pytest.raises(SourceError) as caught:
            find([argument])
        assert str(caught.value).startswith(f"{argument}: ")
        assert told in str(caught.value)

    def test_a_directory_without_the_stated_format(self, tmp_path: Path) -> None:
        write(tmp_path / "a.csv")
        with pytest.raises(SourceError, match="no parquet file"):
            find([str(tmp_path)], Format.PARQUET)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_no_permission(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv")
        path.chmod(0)
        with pytest.raises(SourceError, match=r"a\.csv: permission denied"):
            find([str(path)])


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=20), st.text(max_size=5))
def test_natural_order_counts(numbers: list[int], stem: str) -> None:
    stem = stem.rstrip("0123456789")
    listed = sorted((f"{stem}{number}.csv" for number in numbers), key=natural)
    assert listed == [f"{stem}{number}.csv" for number in sorted(numbers)]


@given(st.lists(st.text("aB0\u0661/-.", max_size=6), max_size=10))
def test_any_names_can_be_ordered(listed: list[str]) -> None:
    backwards = listed[::-1]
    assert sorted(listed, key=natural) == sorted(backwards, key=natural)


class TestFiles:
    @pytest.mark.parametrize("most", [1, 1000, 1 << 20])
    def test_all_of_it_in_order(self, tmp_path: Path, most: int) -> None:
        data = LINES[:3_000] if most == 1 else LINES
        with ByteSource(find([str(write(tmp_path / "a.ndjson", data))])[0]) as source:
            assert read_all(source, most) == data
            assert source.position == len(data)
            assert source.read() == b""
            assert source.pending()

    @pytest.mark.parametrize("ending", ["gz", "zst"])
    def test_packed_files(self, tmp_path: Path, ending: str) -> None:
        pack = gzip.compress if ending == "gz" else zstandard.compress
        packed = pack(LINES) + pack(LINES)
        with ByteSource(find([str(write(tmp_path / f"a.ndjson.{ending}", packed))])[0]) as source:
            assert read_all(source, 70_001) == LINES * 2
            assert source.position == len(packed)

    @pytest.mark.parametrize("ending", ["gz", "zst"])
    def test_truncated_files_give_what_they_have(self, tmp_path: Path, ending: str) -> None:
        noise = random.Random(1).randbytes(600_000)
        packed = gzip.compress(noise) if ending == "gz" else zstandard.compress(noise)
        path = write(tmp_path / f"a.csv.{ending}", packed[:-100])
        with ByteSource(find([str(path)])[0]) as source:
            parts: list[bytes] = []
            with pytest.raises(SourceError) as caught:
                parts.extend(iter(source.read, b""))
            got = b"".join(parts)
            assert noise.startswith(got)
            # zstd gives whole blocks only.
            assert len(got) >= len(noise) - (200 if ending == "gz" else 128 * 1024)
            kind = "gzip" if ending == "gz" else "zstd"
            assert str(caught.value) == (
                f"{path}: {kind} data ends early; what came before was used"
            )
            assert source.pending()
            with pytest.raises(SourceError):
                source.read()

    def test_a_directory_in_its_place(self, tmp_path: Path) -> None:
        given = Input(tmp_path, "there", Format.CSV, Compression.NONE, None)
        with pytest.raises(SourceError, match="there: is a directory"):
            ByteSource(given)

    def test_a_file_that_went_away(self, tmp_path: Path) -> None:
        given = Input(tmp_path / "gone", "gone", Format.CSV, Compression.NONE, 3)
        with pytest.raises(SourceError, match="gone: no such file or directory"):
            ByteSource(given)

    def test_closing_twice_and_reading_then(self, tmp_path: Path) -> None:
        source = ByteSource(find([str(write(tmp_path / "a.csv"))])[0])
        source.close()
        source.close()
        with pytest.raises(SourceError, match="bad file descriptor"):
            source.read()


class TestPipes:
    def test_the_first_line_comes_before_the_second_is_sent(self) -> None:
        with pipe() as made, ByteSource(made.input()) as source:
            assert not source.pending()
            for line in b'{"a":1}\n', b'{"a":2}\n', b"\n":
                made.send(line)
                assert source.pending()
                assert within(source.read) == line
                assert not source.pending()
            made.close(made.writer)
            assert source.pending()
            assert within(source.read) == b""

    def test_the_first_byte_alone_comes_too(self) -> None:
        with pipe() as made, ByteSource(made.input()) as source:
            made.send(b"\n")
            assert within(source.read) == b"\n"

    @pytest.mark.parametrize("compression", [Compression.GZIP, Compression.ZSTD])
    @pytest.mark.parametrize("is_told", [True, False])
    def test_packed_lines_come_one_by_one(self, compression: Compression, is_told: bool) -> None:
        if compression is Compression.GZIP:
            packer = zlib.compressobj(wbits=31)
            step = zlib.Z_SYNC_FLUSH
        else:
            packer = zstandard.ZstdCompressor().compressobj()
            step = zstandard.COMPRESSOBJ_FLUSH_BLOCK
        told = compression if is_told else Compression.NONE
        with pipe() as made, ByteSource(made.input(compression=told)) as source:
            packed = packer.compress(b'{"a":1}\n') + packer.flush(step)
            made.send(packed[:3])
            assert not source.pending()
            made.send(packed[3:])
            assert source.pending()
            assert within(source.read) == b'{"a":1}\n'
            assert not source.pending()
            made.send(packer.compress(b'{"a":2}\n') + packer.flush(step))
            assert within(source.read) == b'{"a":2}\n'
            assert source.compression is compression

    def test_what_is_there_comes_in_one_read(self) -> None:
        with pipe() as made, ByteSource(made.input()) as source:
            for number in range(100):
                made.send(b"%02d" % number)
            assert len(within(source.read)) == 200

    def test_a_pipe_is_made_larger(self) -> None:
        fcntl = pytest.importorskip("fcntl")
        if not hasattr(fcntl, "F_GETPIPE_SZ"):
            pytest.skip("pipes have one size here")
        with pipe() as made, ByteSource(made.input()):
            size = fcntl.fcntl(made.reader, fcntl.F_GETPIPE_SZ)
            if size < 1 << 20:
                pytest.skip("this system allows no larger pipes")
            assert size == 1 << 20

    def test_a_non_blocking_pipe_is_waited_for(self) -> None:
        # Not through /dev/fd, which would open the pipe anew, with flags of its own.
        program = "import os; os.set_blocking(0, False); " + READ_STDIN
        done = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert done.stdin is not None
        assert done.stdout is not None
        assert done.stdout.readline() == b"ready\n"
        done.stdin.write(b"{}\n")
        got, _ = done.communicate(timeout=PATIENCE_S)
        assert got == b"{}\n"

    def test_a_slow_writer(self, tmp_path: Path) -> None:
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        command = f"exec > {fifo}; printf 'a,b\\n'; sleep 0.2; printf 'c,d\\n'"
        with subprocess.Popen(["/bin/sh", "-c", command]):
            [found] = find([str(fifo)], Format.CSV)
            assert found.size is None
            with ByteSource(found) as source:
                assert within(lambda: read_all(source)) == b"a,b\nc,d\n"

    def test_the_content_of_a_pipe_tells_its_format(self) -> None:
        with pipe() as made, ByteSource(made.input(None)) as source:
            made.send(b"\n {")
            assert within(lambda: source.format) is Format.NDJSON
            assert within(source.read) == b"\n {"

    @pytest.mark.parametrize("text", [b"time,user\n", b"PA"])
    def test_or_it_must_be_said(self, text: bytes) -> None:
        with pipe() as made, ByteSource(made.input(None)) as source:
            made.send(text)
            if text == b"PA":
                made.close(made.writer)
            with pytest.raises(SourceError, match=r"pipe: .*--format \(ndjson, csv, "):
                within(lambda: source.format)

    def test_an_empty_pipe_has_no_format_to_complain_about(self) -> None:
        with pipe() as made, ByteSource(made.input(None)) as source:
            made.close(made.writer)
            assert within(lambda: source.format) is Format.NDJSON
            assert source.read() == b""


READ_STDIN = (
    "from zveil.io import *; import sys; source = ByteSource(find([])[0]); "
    "print('ready', flush=True); sys.stdout.buffer.write(source.read())"
)


class TestStandardInput:
    def run(self, program: str, **options: object) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            [sys.executable, "-c", program], capture_output=True, timeout=60, **options
        )

    def test_a_pipe(self) -> None:
        assert self.run(READ_STDIN, input=b"a,b\n").stdout == b"ready\na,b\n"

    def test_a_file(self, tmp_path: Path) -> None:
        with write(tmp_path / "a", b"a,b\n").open() as file:
            program = "from zveil.io import *; print(find([])[0].size)"
            assert self.run(program, stdin=file).stdout == b"4\n"

    def test_closed(self) -> None:
        done = self.run("import os; os.close(0); " + READ_STDIN, stdin=subprocess.DEVNULL)
        assert b"SourceError: <stdin>: bad file descriptor" in done.stderr

    def test_an_interrupt_passes_and_loses_nothing(self) -> None:
        program = (
            "from zveil.io import *; import sys\n"
            "source = ByteSource(find([])[0])\n"
            "try:\n    print(source.read(), flush=True)\n    source.read()\n"
            "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
            "print(source.read())\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as started:
            assert started.stdin is not None
            assert started.stdout is not None
            started.stdin.write(b"one")
            started.stdin.flush()
            assert started.stdout.readline() == b"b'one'\n"
            # It may not wait in its read yet: then the signal meets it on the way there.
            started.send_signal(signal.SIGINT)
            assert started.stdout.readline() == b"interrupted\n"
            got, _ = started.communicate(b"two", timeout=PATIENCE_S)
            assert got == b"b'two'\n"


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_bomb_does_not_fill_the_memory(tmp_path: Path, ending: str) -> None:
    """1 GB of zeros, read 1 MiB at a time, in a process of its own."""
    path = tmp_path / f"bomb.csv.{ending}"
    zeros = bytes(1 << 20)
    with gzip.open(path, "wb", 1) if ending == "gz" else zstandard.open(path, "wb") as file:
        for _ in range(1000):
            file.write(zeros)
    program = (
        "import resource, sys; from zveil.io import *\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "source = ByteSource(find([sys.argv[1]])[0])\n"
        "before, total = peak(), 0\n"
        "while part := source.read():\n    total += len(part)\n"
        "print(total, peak() - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, timeout=120, check=True
    )
    total, grown = map(int, done.stdout.split())
    assert total == 1000 << 20
    kilobytes = grown if sys.platform == "linux" else grown // 1024
    assert kilobytes < 20 * 1024
