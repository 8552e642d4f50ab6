"""One process of `zveil run` on the messages: what it takes more than one machine to beat."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import messages
import numpy as np
from messages import Scale
from peers import DisagreementError
from report import Ratio, at_most
from watched import cores

ZVEIL = Path(sys.executable).parent / "zveil"
NAME = "one process of zveil run"


def ns(scale: Scale) -> float:
    """Give nanoseconds for a record, from file to file on one core, start and all.

    Of some rounds the fastest counts. What is written must be what is released.
    """
    stream = messages.stream(scale)
    mask = messages.released(stream, scale.z)
    with tempfile.TemporaryDirectory() as folder:
        source, sink = Path(folder) / "in.ndjson", Path(folder) / "out.ndjson"
        with source.open("wb") as file:
            file.writelines(value + b"\n" for _, value in messages.keyed(stream))
        command = [
            ZVEIL, "run", source, *messages.FIELDS, "-z", str(scale.z), "--window", "1h", "-q",
            "-o", sink,
        ]  # fmt: skip
        took = []
        for _ in range(scale.rounds):
            start = perf_counter()
            subprocess.run(command, check=True, preexec_fn=_held)
            took.append(perf_counter() - start)
        came = [messages.number_of(line) for line in sink.read_bytes().splitlines()]
        if came != np.flatnonzero(mask).tolist():
            raise DisagreementError("one process lets out other records than those released")
    return 1e9 * min(took) / len(mask)


def _held() -> None:
    os.sched_setaffinity(0, cores()[0])


def cost(engine: str, case: str, core_ns: float, native_ns: float) -> Ratio:
    """Tell how many cores an engine takes to keep up with one process.

    Parameters
    ----------
    core_ns
        Time of a core that the engine takes for a record, all of its processes together.
    native_ns
        The time that one process takes.
    """
    return Ratio(f"{engine}, cores to keep up", case, NAME, core_ns, native_ns, at_most(None))
