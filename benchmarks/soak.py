"""Run `zveil run --state` for hours at full speed, kill it now and then, and watch what it takes.

usage: python benchmarks/soak.py [--for 2h] [--per-window 1000000] [--lives 12] [--rows 60]

Shows memory, file handles, rate and saves; at the end it says whether memory and handles stayed
flat and decisions were those of the definition. The exit code is 1 if not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from endless import BLOCK, Judge, Lines, Stream

from zveil.durations import duration_ns

ZVEIL = Path(sys.executable).parent / "zveil"
Z = 20
# The later half may take so much more than the one before: pages of the heap come and go.
FLAT = 1.1
# A save has a pipe to the process that writes, for a moment both its ends, which few looks meet.
# One that was left open at every save would come to more.
SAVING = 2
_PIECE = 1 << 20


@dataclass(frozen=True)
class Sample:
    """What the program takes at one moment."""

    resident: int
    with_fork: int
    """Bytes of it and of the process that writes a snapshot, what they share counted once."""
    handles: int


class Life:
    """The program from a start to its end, fed and read by threads."""

    def __init__(self, folder: Path, stream: Stream, judge: Judge, lock: threading.Lock,
                 first: int) -> None:  # fmt: skip
        self._stream, self._judge, self._lock = stream, judge, lock
        self._said = (folder / "said").open("wb")
        self._is_over = threading.Event()
        self.sent = first
        self.failure: Exception | None = None
        self.program = subprocess.Popen(
            [ZVEIL, "run", "--format", "ndjson", "--time", "ts", "--user", "uid",
             "--attribute", "host", "--keep", "id", "--id", "id", "-z", str(Z), "--window", "1h",
             "--state", folder / "state", "--state-every", EVERY, "--json"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said,
        )  # fmt: skip
        self._threads = [threading.Thread(target=work) for work in (self._send, self._receive)]
        for thread in self._threads:
            thread.start()

    def sample(self) -> Sample | None:
        """Look at it from outside; None if it is gone."""
        place = Path("/proc", str(self.program.pid))
        try:
            forked = (place / "task" / str(self.program.pid) / "children").read_text().split()
            handles = len(os.listdir(place / "fd"))
            resident = _bytes_of(place / "status", "VmRSS")
        except OSError:
            return None
        together = 0
        for each in [str(self.program.pid), *forked]:
            with suppress(OSError):
                together += _bytes_of(Path("/proc", each, "smaps_rollup"), "Pss")
        return Sample(resident, together, handles)

    def kill(self) -> None:
        """End it as a crash does."""
        self.program.kill()
        self._join()

    def finish(self) -> int:
        """Let it come to its end; gives its exit code."""
        self._is_over.set()
        self._join()
        return self.program.returncode

    def _join(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        self.program.wait()
        self._said.close()
        if self.failure is not None:
            raise self.failure

    def _send(self) -> None:
        pipe = self.program.stdin
        block, behind = divmod(self.sent, BLOCK)
        with suppress(BrokenPipeError):
            while pipe is not None and not self._is_over.is_set():
                events = self._stream.events(block)
                lines = self._stream.lines(events)[behind:]
                with self._lock:
                    self._judge.saw(events)
                pipe.write(lines.tobytes())
                self.sent += len(lines)
                block, behind = block + 1, 0
        with suppress(BrokenPipeError):
            if pipe is not None:
                pipe.close()

    def _receive(self) -> None:
        pipe, lines = self.program.stdout, Lines()
        try:
            while pipe is not None and (data := os.read(pipe.fileno(), _PIECE)):
                with self._lock:
                    self._judge.came(lines.of(data))
        except ValueError as error:
            self.failure = error
            self.program.kill()
        if pipe is not None:
            pipe.close()


class Soak:
    """All lives of one stream."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.folder = folder
        self.seconds = duration_ns(options.duration, "for") / 1e9
        self.lives, self.rows = options.lives, options.rows
        self.stream = Stream(per_window=options.per_window)
        self.judge = Judge(z=Z, memory=20 * options.per_window)
        self._warm = 3 * options.per_window
        self._lock = threading.Lock()
        self.samples: list[Sample] = []
        """Since the state has its full size."""
        self.code = 0

    def go(self) -> None:
        """Run for as long as was asked."""
        print("  time  lives     events  events/s  memory  with fork  handles  saves  compared")
        draw = random.Random(1)
        began = monotonic()
        ends = sorted(self.seconds * (n + draw.random()) / self.lives for n in range(self.lives))
        ends[-1] = self.seconds
        rows = [self.seconds * (n + 1) / self.rows for n in range(self.rows)]
        saves, last, sent, before = 0, None, 0, began
        for number, end in enumerate(ends, 1):
            life = Life(self.folder, self.stream, self.judge, self._lock, self.acknowledged())
            while monotonic() - began < end and life.program.poll() is None:
                sleep(0.05)
                seen = self._save()
                saves, last = saves + (seen != last), seen
                now = monotonic()
                if rows and now - began >= rows[0]:
                    rows = [row for row in rows if row > now - began]
                    sample = life.sample()
                    self._compare()
                    if sample is not None:
                        rate = (self.judge.frontier - sent) / (now - before)
                        self._row(now - began, number, rate, sample, saves)
                        if self.judge.frontier > self._warm:
                            self.samples.append(sample)
                    sent, before = self.judge.frontier, now
            if number < len(ends) and life.program.poll() is None:
                life.kill()
            else:
                self.code = life.finish()
            if self.code or life.program.returncode not in (0, -signal.SIGKILL):
                self.code = self.code or life.program.returncode
                return
        self._compare()

    def acknowledged(self) -> int:
        """How many events the state has, so that the next is sent first."""
        if not (self.folder / "state" / "state").exists():
            return 0
        shown = subprocess.run(
            [ZVEIL, "state", "show", self.folder / "state", "--json"], capture_output=True,
            check=True,
        )  # fmt: skip
        return int(json.loads(shown.stdout)["events"])

    def verdict(self) -> bool:
        """Say how it went; True if all was well."""
        said = (self.folder / "said").read_text(encoding="utf-8", errors="replace")
        half = len(self.samples) // 2
        judge = self.judge
        good = []
        if half:
            early, late = self.samples[:half], self.samples[half:]
            for name, unit, scale, bound, more in (
                ("resident", "MB", 1e6, FLAT, 0), ("handles", "", 1, 1, SAVING),
            ):  # fmt: skip
                most = [max(getattr(sample, name) for sample in part) for part in (early, late)]
                is_flat = most[1] <= most[0] * bound + more
                good.append(is_flat)
                print(
                    f"{name}: at most {most[0] / scale:,.0f} {unit} in the first half, "
                    f"{most[1] / scale:,.0f} {unit} in the second: "
                    f"{'flat' if is_flat else 'NOT FLAT'}".replace("  ", " ")
                )
        else:
            good.append(False)
            print("the run was too short to say whether memory and handles are flat: run it longer")
        is_equal = bool(judge.compared) and not judge.missing and not judge.early
        good.append(is_equal)
        print(
            f"decisions: {judge.sampled:,} of {judge.frontier + 1:,} events held against the "
            f"definition, {judge.compared:,} released; {judge.missing:,} are missing, "
            f"{judge.early:,} came out that should not have: "
            f"{'equal' if is_equal else 'NOT EQUAL'}"
        )
        if self.code:
            good.append(False)
            print(f"the program ended with {self.code}:\n{said}")
        else:
            shown = json.loads(said.splitlines()[-1]).get("state")
            print(f"the last life: {json.dumps(shown)}")
        return all(good)

    def _compare(self) -> None:
        with self._lock:
            self.judge.compare()

    def _save(self) -> int | None:
        """Tell one snapshot from the next."""
        with suppress(OSError):
            return os.stat(self.folder / "state" / "state").st_mtime_ns
        return None

    def _row(self, seconds: float, life: int, rate: float, sample: Sample, saves: int) -> None:
        print(
            f"{seconds:6.0f}  {life:5}  {self.judge.frontier + 1:9,}  {rate:8,.0f}  "
            f"{sample.resident / 1e6:3,.0f} MB  {sample.with_fork / 1e6:6,.0f} MB  "
            f"{sample.handles:7}  {saves:5}  {self.judge.compared:8,}",
            flush=True,
        )


def _bytes_of(file: Path, name: str) -> int:
    for line in file.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def main() -> int:
    """Run it and judge it."""
    global EVERY
    parser = argparse.ArgumentParser(prog="soak.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--for", dest="duration", default="2h", metavar="DURATION")
    parser.add_argument("--per-window", type=int, default=1_000_000, metavar="EVENTS")
    parser.add_argument("--lives", type=int, default=12, help="starts; all but the last are killed")
    parser.add_argument("--rows", type=int, default=60, help="rows of the table")
    parser.add_argument("--state-every", default="10s", metavar="DURATION")
    options = parser.parse_args()
    EVERY = options.state_every
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), options)
        soak.go()
        return 0 if soak.verdict() else 1


EVERY = "10s"

if __name__ == "__main__":
    sys.exit(main())
