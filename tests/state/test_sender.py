"""Standard input cannot be rewound: a sender that repeats has every event decided once."""

import fcntl
import json
import os
import struct
import subprocess
import termios
import threading
from contextlib import suppress
from pathlib import Path
from random import Random
from time import sleep

import pytest
from faults import NEVER, Ended, needs_faults, run
from program import PROGRAM, zveil
from scenes import FIELDS, KEY, RULE, STATE, events, ndjson, stated
from stage import KILLS

pytestmark = needs_faults

TOLD = (*FIELDS, *RULE, "--keep", "n", "--id", "n", "--format", "ndjson")


class Sender:
    """Sends lines into a pipe in pieces of any size, as long as someone reads."""

    def __init__(self, place: Path, random: Random) -> None:
        for name in ("out", "in", "scratch"):
            (place / name).mkdir(parents=True)
        self.folder, self.scratch = place / "out", place / "scratch"
        self.pipe = place / "in" / "pipe"
        self.random = random
        os.mkfifo(self.pipe)
        (self.folder / STATE).parent.mkdir()
        key = place / "key"
        key.write_text(KEY)
        key.chmod(0o600)
        self.arguments: list[str | Path] = ["-q", *TOLD, "--key-file", key]
        self.arguments += stated(self.folder)

    def send(self, data: bytes, *, tick: int, output: Path | None) -> tuple[Ended, bytes]:
        """Start the program, send it the data; how it ended, and what it wrote to a pipe."""
        reading = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        writing = os.open(self.pipe, os.O_WRONLY)
        os.set_blocking(reading, True)
        back, out = os.pipe()
        received: list[bytes] = []

        def receive() -> None:
            while piece := os.read(back, 1 << 16):
                received.append(piece)

        def feed() -> None:
            left = data
            with suppress(BrokenPipeError):
                while left:
                    size = self.random.randrange(1, 900)
                    os.write(writing, left[:size])
                    left = left[size:]
                    while waiting(reading) and not over.is_set():
                        sleep(0.0002)
                    if over.is_set():
                        break
            os.close(writing)

        over = threading.Event()
        threads = [threading.Thread(target=call) for call in (receive, feed)]
        for thread in threads:
            thread.start()
        told = [] if output is None else ["-o", output]
        try:
            ended = run(
                self.folder, self.scratch, [*self.arguments, *told],
                reads=self.pipe.parent, stdin=reading, stdout=out, tick=tick,
            )  # fmt: skip
        finally:
            over.set()
            os.close(out)
            for thread in threads:
                thread.join()
            os.close(reading)
            os.close(back)
        return ended, b"".join(received)

    def acknowledged(self) -> int:
        """How many events the state says were taken."""
        if not (self.folder / STATE / "state").exists():
            return 0
        shown = zveil("state", "show", self.folder / STATE, "--json", "--key-file",
                      self.folder.parent / "key")  # fmt: skip
        assert shown.returncode == 0, shown.stderr
        return int(json.loads(shown.stdout)["events"])


def waiting(descriptor: int) -> int:
    """How many bytes are in the pipe."""
    held = fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4))
    return int(struct.unpack("i", held)[0])


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    return ndjson(events(Random("sender"), 300)).splitlines(keepends=True)


@pytest.fixture(scope="module")
def wanted(lines: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What leaves where nothing happens, without state and ids."""
    place = tmp_path_factory.mktemp("undisturbed")
    key = place / "key"
    key.write_text(KEY)
    key.chmod(0o600)
    told = [word for word in TOLD if word != "--id"]
    told.pop(told.index("--keep") + 2)
    done = zveil("run", *told, "-q", "--key-file", key, stdin=b"".join(lines))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 50
    return done.stdout


@pytest.mark.parametrize("seed", range(max(1, KILLS // 300)))
@pytest.mark.parametrize("repeats", ["from what was acknowledged", "from any line before it"])
def test_every_event_is_decided_once_and_is_in_the_file_once(
    lines: list[bytes], wanted: bytes, tmp_path: Path, repeats: str, seed: int
) -> None:
    random = Random(f"{repeats} {seed}")
    whole = Sender(tmp_path / "whole", random)
    output = whole.folder / "out.ndjson"
    ended, _ = whole.send(b"".join(lines), tick=NEVER, output=output)
    assert ended.code == 0, ended.said
    assert output.read_bytes() == wanted

    sender = Sender(tmp_path / "killed", random)
    output = sender.folder / "out.ndjson"
    for life in range(8):
        start = sender.acknowledged()
        if repeats == "from any line before it":
            # Not so far back that an id may have been forgotten.
            start = random.randrange(max(0, start - 20), start + 1)
        tick = random.randrange(1, ended.ticks // 3) if life < 7 else NEVER
        ended_now, _ = sender.send(b"".join(lines[start:]), tick=tick, output=output)
        if not ended_now.is_killed:
            break
    assert ended_now.code == 0, ended_now.said
    assert output.read_bytes() == wanted


def test_into_a_pipe_everything_comes_at_least_once_and_nothing_more(
    lines: list[bytes], wanted: bytes, tmp_path: Path
) -> None:
    random = Random("pipe")
    sender = Sender(tmp_path, random)
    came: set[bytes] = set()
    for life in range(8):
        start = sender.acknowledged()
        tick = random.randrange(1_000, 30_000) if life < 7 else NEVER
        ended, out = sender.send(b"".join(lines[start:]), tick=tick, output=None)
        # The last line may be cut off by the kill.
        came |= {line for line in out.splitlines(keepends=True) if line.endswith(b"\n")}
        if not ended.is_killed:
            break
    assert ended.code == 0, ended.said
    assert came == set(wanted.splitlines(keepends=True))


def test_a_slow_pipe_is_saved_though_no_more_comes(lines: list[bytes], tmp_path: Path) -> None:
    """The next line may take hours: what was decided is safe before."""
    sender = Sender(tmp_path, Random(0))
    with subprocess.Popen(
        [PROGRAM, "run", *sender.arguments, "-o", sender.folder / "out.ndjson"],
        stdin=subprocess.PIPE, bufsize=0,
    ) as started:  # fmt: skip
        assert started.stdin is not None
        started.stdin.write(b"".join(lines[:9]))
        for _ in range(200):
            if sender.acknowledged() == 9:
                break
            sleep(0.02)
        else:
            pytest.fail("nothing was saved while no input came")
        started.kill()
    assert sender.acknowledged() == 9
