"""However a run is ended, what was decided is written, and the exit code says why."""

import gzip
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from events import objects
from plumbing import within
from program import FIELDS, PROGRAM, RULE, Started, line, run
from test_run import T

from zveil.keys import write_key

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "key"
    write_key(path)
    return path


def events(count: int) -> bytes:
    return b"".join(line(T + n // 10, f"planted-{n % 13}", "abc"[n * n % 3]) for n in range(count))


@pytest.fixture(scope="module")
def undisturbed(key: Path) -> tuple[bytes, bytes]:
    data = events(60_000)
    return data, run("--key-file", key, "-q", stdin=data).stdout


@pytest.mark.parametrize("number", CODES)
def test_a_signal_in_mid_stream_leaves_a_prefix(
    key: Path, undisturbed: tuple[bytes, bytes], number: signal.Signals
) -> None:
    data, whole = undisturbed
    with Started("--key-file", key) as going:
        assert going.process.stdout is not None
        assert going.process.stderr is not None
        # Most of it does not fit into the pipes: it is in the middle when the signal comes.
        feeding = threading.Thread(target=lambda: feed(going, data), daemon=True)
        feeding.start()
        out = going.line()
        going.process.send_signal(number)
        out += going.process.stdout.read()
        err = going.process.stderr.read()
        within(going.process.wait)
        assert going.process.returncode == CODES[number]
        feeding.join()
    assert whole.startswith(out)
    assert out.endswith(b"\n")
    assert 0 < len(out) < len(whole)
    assert b"ended early: signal" in err
    assert b"Traceback" not in err
    assert b"planted" not in err


def feed(going: Started, data: bytes) -> None:
    with suppress(BrokenPipeError):
        going.send(data)


@pytest.mark.parametrize("number", CODES)
def test_a_signal_while_waiting_ends_it_at_once(number: signal.Signals) -> None:
    with Started("-z", "1", "--json") as going:
        going.send(line(T, "u", "a") + b'{"ts":17')
        assert going.line()
        going.process.send_signal(number)  # its input stays open
        within(going.process.wait)
        assert going.process.returncode == CODES[number]
        assert going.process.stdout is not None
        assert going.process.stderr is not None
        assert not going.process.stdout.read()
        assert b'"ended": "signal"' in going.process.stderr.read()


ELSEWHERE = """
import os, signal, threading, time
from pathlib import Path
from zveil.io import ByteSource, Compression, Format, Input
from zveil.io.descriptors import wake_by_signals

def stop(*_):
    raise SystemExit(143)

signal.signal(signal.SIGTERM, stop)
wake_by_signals()
reader, writer = os.pipe()

def elsewhere():
    time.sleep(0.3)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

threading.Thread(target=elsewhere, daemon=True).start()
name = Path(f"/dev/fd/{reader}")
ByteSource(Input(name, "pipe", Format.NDJSON, Compression.NONE, None)).read()
"""


def test_a_signal_that_does_not_interrupt_the_read_ends_the_wait_too() -> None:
    """One that comes to another thread, as one that comes a moment before the read."""
    going = subprocess.Popen([sys.executable, "-c", ELSEWHERE])
    try:
        assert within(going.wait) == 143
    finally:
        going.kill()


def test_a_signal_before_the_first_byte(tmp_path: Path) -> None:
    with Started("-z", "1", "--format", "ndjson", "-o", tmp_path / "out.ndjson") as going:
        while not (tmp_path / "out.ndjson").exists() and going.process.poll() is None:
            pass
        going.process.send_signal(signal.SIGTERM)
        within(going.process.wait)
        assert going.process.returncode == 143


def seen(path: Path, process: subprocess.Popen[bytes]) -> None:
    while not path.exists() and process.poll() is None:
        time.sleep(0.001)


def test_a_signal_leaves_parquet_that_can_be_read(tmp_path: Path) -> None:
    output = tmp_path / "out.parquet"
    with Started("-z", "1", "-o", output, stderr=subprocess.DEVNULL) as going:
        going.send(events(1000))
        # The first batch makes the file; what it holds waits for its row group.
        within(lambda: seen(output, going.process))
        going.process.send_signal(signal.SIGTERM)
        within(going.process.wait)
        assert going.process.returncode == 143
    assert 0 < pq.read_table(output).num_rows <= 1000


def shell(command: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    given = " ".join([str(PROGRAM), "run", *FIELDS, *RULE])
    return subprocess.run(
        ["/bin/bash", "-c", f"set -o pipefail; {command.format(run=given)}"],
        capture_output=True, timeout=120, **options,
    )  # fmt: skip


def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    source = tmp_path / "in.ndjson"
    source.write_bytes(events(50_000))
    for to in ("ndjson", "csv"):
        done = shell(f"{{run}} --to {to} -q {source} | head -1")
        assert done.returncode == 0
        assert done.stdout.count(b"\n") == 1
        assert not done.stderr
    done = shell(f"{{run}} {source} | head -1")
    assert b"ended early: closed pipe" in done.stderr
    assert b"Error" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("to", ["ndjson", "csv", "arrow", "parquet"])
def test_a_full_disk_is_told(tmp_path: Path, to: str) -> None:
    source = tmp_path / "in.ndjson"
    source.write_bytes(events(1000))
    done = shell(f"{{run}} --to {to} {source} > /dev/full")
    assert done.returncode == 1
    assert b"<stdout>: no space left on device" in done.stderr
    assert b"ended early: error" in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


@contextmanager
def small_disk(size: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder],  # noqa: S607
            capture_output=True,
        )
        if made.returncode:
            pytest.skip("a small disk cannot be mounted here")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)  # noqa: S607


def test_a_disk_that_fills_up_holds_a_prefix(tmp_path: Path, key: Path) -> None:
    source = tmp_path / "in.ndjson"
    source.write_bytes(events(20_000))
    whole = run("--key-file", key, "-q", source).stdout
    with small_disk("256k") as disk:
        done = run("--key-file", key, source, "-o", disk / "out.ndjson")
        assert done.returncode == 1
        assert b"no space left" in done.stderr
        held = (disk / "out.ndjson").read_bytes()
        assert len(held) > 100_000
        assert whole.startswith(held)


def test_a_damaged_input_ends_it_behind_what_was_good(tmp_path: Path) -> None:
    packed = gzip.compress(events(5_000))
    source = tmp_path / "in.ndjson.gz"
    source.write_bytes(packed[: len(packed) // 2])
    done = run("-q", source)
    assert done.returncode == 1
    assert str(source).encode() in done.stderr
    assert len(objects(done.stdout)) > 1000
    assert done.stdout.endswith(b"\n")


def test_a_closed_standard_output_is_told() -> None:
    done = shell('echo \'{{"ts":1700000000,"uid":1,"host":2}}\' | {run} -q >&-')
    assert done.returncode == 1
    assert b"<stdout>" in done.stderr
    assert b"Traceback" not in done.stderr


def test_an_input_is_never_the_output(tmp_path: Path) -> None:
    source = tmp_path / "in.ndjson"
    source.write_bytes(events(10))
    done = run("-q", source, "-o", source)
    assert done.returncode == 2
    assert b"write to another file" in done.stderr
    assert source.read_bytes() == events(10)
