"""A run takes no more memory for much input than for little: 64 MB beside the gate's state."""

import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from program import FIELDS, PROGRAM, Started, line
from test_run import T

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the peak")

MEGABYTE = 10**6
MOST = 64 * MEGABYTE


def peak(process: int) -> int:
    """The most memory that a process has had so far; 0 if it is gone."""
    with suppress(OSError):
        for row in Path(f"/proc/{process}/status").read_text().splitlines():
            if row.startswith("VmHWM:"):
                return int(row.split()[1]) * 1024
    return 0


@pytest.fixture(scope="module")
def idle() -> int:
    """What the program has had when it waits for its second line."""
    with Started("-z", "1") as going:
        going.send(line(T, "u", "a"))
        assert going.line()
        return peak(going.process.pid)


def piece(form: str) -> bytes:
    """About a megabyte: 19 of 20 lines are released, and each has a field that is left out."""
    if form == "csv":
        rows = [b"%d,user-%d,%d,%s\n" % (T, n % 50, n % 500, b"x" * 80) for n in range(10_000)]
    else:
        rows = [
            b'{"ts":%d,"uid":"user-%d","host":"%d","note":"%s"}\n' % (T, n % 50, n % 500, b"x" * 50)
            for n in range(10_000)
        ]
    return b"".join(rows)


def peak_of(size: int, form: str, *arguments: str) -> int:
    """Feed so many bytes through a pipe; the peak, looked at until the program ends."""
    command = [str(PROGRAM), "run", *FIELDS, "-z", "1", "--window", "1h", "-q", "--format", form]
    with subprocess.Popen(
        [*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as going:
        feeding = threading.Thread(target=feed, args=(going, size, form))
        feeding.start()
        most = highest(going)
        feeding.join()
        assert going.returncode == 0
    return most


def highest(going: subprocess.Popen[bytes]) -> int:
    """The peak of a program, looked at until it ends."""
    most = 0
    while going.poll() is None:
        most = max(most, peak(going.pid))
        time.sleep(0.01)
    return most


def feed(going: subprocess.Popen[bytes], size: int, form: str) -> None:
    assert going.stdin is not None
    if form == "csv":
        going.stdin.write(b"ts,uid,host,note\n")
    data = piece(form)
    for _ in range(size // len(data)):
        going.stdin.write(data)
    going.stdin.close()


@pytest.mark.parametrize(
    ("megabytes", "form", "arguments"),
    [
        (10, "ndjson", []),
        (200, "ndjson", []),
        (100, "ndjson", ["--threads", "2"]),
        (100, "csv", ["--keep", "*"]),
        (100, "csv", ["--keep", "*", "--to", "parquet"]),
        (100, "ndjson", ["--to", "arrow"]),
        (50, "ndjson", ["--dry-run"]),
    ],
)
def test_memory_does_not_grow_with_the_input(
    idle: int, megabytes: int, form: str, arguments: list[str]
) -> None:
    assert idle > 10 * MEGABYTE
    # Formats of columns load a library of their own, whatever the size of the input.
    little = max(idle, peak_of(MEGABYTE, form, *arguments)) if "--to" in arguments else idle
    assert peak_of(megabytes * MEGABYTE, form, *arguments) - little < MOST


@pytest.mark.parametrize("rows", [100_000, 2_000_000])
def test_plain_parquet_takes_no_more_than_text(idle: int, tmp_path: Path, rows: int) -> None:
    """Whatever its size, and although it is another format: no library is loaded for it."""
    path = tmp_path / "in.parquet"
    users = pa.array(f"user-{number % 50}" for number in range(rows))
    hosts = pa.array(f"www.{number % 500}.example" for number in range(rows))
    times = pa.array([T]).take(pa.array([0] * rows))
    pq.write_table(pa.table({"ts": times, "uid": users, "host": hosts}), path)
    command = [PROGRAM, "run", *FIELDS, "-z", "1", "--window", "1h", "-q", path]
    command += ["-o", tmp_path / "out.parquet"]
    with subprocess.Popen(command) as going:
        assert highest(going) - idle < MOST
    assert going.returncode == 0


def test_a_line_that_never_ends_takes_no_memory(idle: int) -> None:
    with Started("-z", "1") as going:
        going.send(line(T, "u", "a"))
        assert going.line()
        for _ in range(150):
            going.send(b"x" * MEGABYTE)
        going.send(b"\n" + line(T, "v", "a"))
        assert going.line()
        assert peak(going.process.pid) - idle < MOST


def test_an_open_quote_takes_no_memory(idle: int) -> None:
    with Started("-z", "1", "--format", "csv", "--max-bad", "100%", "-q") as going:
        going.send(b'ts,uid,host\n1700000000,u,"')
        assert going.line() == b"ts,uid,host\n"
        for _ in range(50):
            going.send(b"x\n" * (MEGABYTE // 2))
        going.send(b"1700000000,v,a\n")
        assert going.line().endswith(b",a\n")
        assert peak(going.process.pid) - idle < MOST
