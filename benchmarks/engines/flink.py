"""`zveil flink` beside PyFlink's own operator that does the same, from file to file."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import messages
import numpy as np
import one_process
from messages import AT_ONCE, THROUGHPUT, Scale
from numpy.typing import NDArray
from peers import DisagreementError
from report import Figures, Ratio, Result, at_least
from watched import HERE, PATIENCE_S, core_s, cores

# Flink has an environment of its own, which the others cannot share.
PROGRAMS = HERE.parents[1] / ".venv-flink" / "bin"
WHAT = "Flink, one core"
OURS, PEER = "zveil flink", "PyFlink's own operator"
PER_S = 150_000
"""Records a second that are enough by themselves."""
TIMES_PYTHON = 5
_LOOK_S = 0.05


def ours(file: Path, folder: Path, key: Path, z: int, pace: str) -> Sequence[str | Path]:
    """The program itself, on this machine."""
    rule = (*messages.FIELDS, "--time-format", "s", "-z", str(z), "--window", "1h")
    paced = ("--throughput",) if pace == THROUGHPUT else ()
    return [PROGRAMS / "zveil", "flink", *rule, "--key-file", key, *paced, "-q", "--output",
            folder, file]  # fmt: skip


def peer(file: Path, folder: Path, z: int, mode: str) -> Sequence[str | Path]:
    """The same in Python."""
    said = (str(z), "3600", mode)
    return [PROGRAMS / "python", HERE / "pyflink_peer.py", file, folder.as_uri(), *said]


def runs(scale: Scale) -> list[Result]:
    """Let both read files in turn, held to one core; keep the fastest run of each."""
    if not PROGRAMS.is_dir():
        return [Figures(WHAT, "", {}, note="not measured: make .venv-flink/ready")]
    best: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        key = folder / "key"
        subprocess.run([PROGRAMS / "zveil", "key", key], check=True)
        # Python is given fewer, or it would take minutes.
        sizes = {OURS: scale.flink_records, PEER: scale.pyflink_records}
        files = {who: _file(folder / f"{who[:5]}.ndjson", scale, size)
                 for who, size in sizes.items()}  # fmt: skip
        for turn in range(scale.rounds):
            contestants = {}
            for pace in (THROUGHPUT, AT_ONCE):
                contestants[f"{OURS}, {pace}"] = files[OURS], pace
            for mode in scale.pyflink_modes:
                contestants[f"{PEER}, {mode}"] = files[PEER], mode
            for label, ((file, mask), how) in contestants.items():
                out = folder / f"out-{turn}-{len(best)}-{time.monotonic_ns()}"
                if label.startswith(OURS):
                    command = ours(file, out, key, scale.z, how)
                else:
                    command = peer(file, out, scale.z, how)
                found = _rate(command, out, mask)
                print(f"  {turn + 1}  {label:52} {found:9,.0f} a second of a core", file=sys.stderr)
                best[label] = max(found, best.get(label, 0.0))
    return _beside(best, scale)


def _file(path: Path, scale: Scale, records: int) -> tuple[Path, NDArray[np.bool_]]:
    """Write the records; gives with them which are released."""
    stream = messages.stream(replace(scale, records=records))
    with path.open("wb") as file:
        file.writelines(value + b"\n" for _, value in messages.keyed(stream))
    return path, messages.released(stream, scale.z)


def _rate(command: Sequence[str | Path], out: Path, mask: NDArray[np.bool_]) -> float:
    """Give records for a second of a core, between the first tenth of what comes out and all of it.

    All processes of the program count. How far it is, is told by how much is written. What is
    written must be what is released.
    """
    held = (lambda: os.sched_setaffinity(0, cores()[0])) if len(cores()[1]) else None
    looks: list[tuple[float, int]] = []  # seconds of a core, bytes that are written
    with tempfile.TemporaryFile("w+") as said:
        # Where Java runs Python within itself, it looks for packages only there.
        packages = ":".join(map(str, PROGRAMS.parent.glob("lib/python*/site-packages")))
        process = subprocess.Popen(
            command, preexec_fn=held, stdout=said, stderr=said,
            env=os.environ | {"PYTHONPATH": packages},
        )  # fmt: skip
        until = time.monotonic() + PATIENCE_S
        try:
            while process.poll() is None and time.monotonic() < until:
                looks.append((_core_s(process.pid), _written(out)))
                time.sleep(_LOOK_S)
        finally:
            process.kill()
            process.wait()
        said.seek(0)
        if process.returncode:
            raise RuntimeError(f"it ended with {process.returncode}:\n{said.read()[-3000:]}")
    came = list(itertools.chain.from_iterable(
        file.read_bytes().splitlines() for file in _parts(out)))  # fmt: skip
    if sorted(map(messages.number_of, came)) != np.flatnonzero(mask).tolist():
        raise DisagreementError("other records came out than those that are released")
    last = sum(len(line) + 1 for line in came)
    begin, done = (
        next((look for look in looks if look[1] >= part * last), looks[-1]) for part in (0.1, 1)
    )
    count = len(mask) * (done[1] - begin[1]) / last
    # A tick of the system is a hundredth of a second.
    return count / max(done[0] - begin[0], 0.01)


def _core_s(pid: int) -> float:
    """Give the seconds that a process and all that it has started have had of any core."""
    parents: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = place.read_text().rpartition(")")[2].split()[1]
        except OSError:  # it has ended
            continue
        parents.setdefault(int(parent), []).append(int(place.parent.name))
    spent, waiting = 0.0, [pid]
    while waiting:
        one = waiting.pop()
        waiting += parents.get(one, [])
        with suppress(OSError):
            spent += core_s(one)
    return spent


def _parts(out: Path) -> list[Path]:
    """Find what is written, finished or not; PyFlink puts it into folders by the hour."""
    return [file for file in out.rglob("*") if file.is_file()]


def _written(out: Path) -> int:
    """Count the bytes that are written so far."""
    written = 0
    for file in _parts(out):
        with suppress(FileNotFoundError):  # it was just given its name
            written += file.stat().st_size
    return written


def _beside(best: Mapping[str, float], scale: Scale) -> list[Result]:
    case = messages.case(replace(scale, records=scale.flink_records))
    ours = {label: found for label, found in best.items() if label.startswith(OURS)}
    peers = {label: found for label, found in best.items() if label.startswith(PEER)}
    fastest = max(peers.values())
    results: list[Result] = []
    # Whichever is less is asked for.
    enough = at_least(min(TIMES_PYTHON, PER_S / fastest))
    for label, found in ours.items():
        shown = f"{label.partition(', ')[2]}, {case}"
        results.append(Ratio(WHAT, shown, PEER, 1e9 / found, 1e9 / fastest, enough))
    rates = {label: round(found) for label, found in best.items()}
    results.append(Figures(f"{WHAT}, records a second", case, rates))
    native_ns = one_process.ns(replace(scale, records=scale.flink_records))
    results.append(one_process.cost("Flink", case, 1e9 / max(ours.values()), native_ns))
    return results
