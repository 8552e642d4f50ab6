"""Real programs joined by real pipes: how long they take, and the most memory of one of them.

They are started from a small process, which this file is when it is called as a program. The system
counts what a process held before it became another program as that program's memory: started
from the benchmark itself, each would seem to hold the benchmark's columns.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

Command = Sequence[str | Path]

# What getrusage counts memory in.
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
_BLOCK = 1 << 20
_UNKEPT = "PYTHONDONTWRITEBYTECODE"


@dataclass(frozen=True)
class Passage:
    """One run of a pipeline, from the start of its first program to the end of its last."""

    seconds: float
    peak_bytes: int
    """The most memory of the watched program."""
    said: str
    """What the watched program wrote to standard error."""
    digest: str
    """SHA-256 of what came out, where that was asked for."""


def flow(*commands: Command, watched: int = 0, digest: bool = False) -> Passage:
    """Join the programs by pipes, throw away what comes out at the end, and watch one of them."""
    asked = {
        "commands": [[str(word) for word in command] for command in commands],
        "watched": watched,
        "digest": digest,
    }
    done = subprocess.run(
        [sys.executable, "-I", __file__],
        input=json.dumps(asked),
        stdout=subprocess.PIPE,
        text=True,
        env=_installed(),
    )
    if done.returncode:
        raise RuntimeError(f"a pipeline failed: {_spoken(commands)}")
    return Passage(**json.loads(done.stdout))


def _installed() -> dict[str, str]:
    """Let Python keep what it compiled in the first run, as installing a program does."""
    return {name: value for name, value in os.environ.items() if name != _UNKEPT}


def waits(command: Command, lines: Sequence[bytes], *, unanswered: int) -> list[float]:
    """Send lines one by one, each after the answer to the one before; gives seconds for each.

    The first ``unanswered`` lines get no answer and are not timed.
    """
    seconds = []
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
    ) as program:
        there, back = program.stdin, program.stdout
        if there is None or back is None:
            raise RuntimeError("there is no pipe")
        for number, line in enumerate(lines):
            start = perf_counter()
            there.write(line)
            if number < unanswered:
                continue
            answer = b""
            while not answer.endswith(b"\n"):
                more = back.read(_BLOCK)
                if not more:
                    raise RuntimeError(f"no answer to line {number + 1}: {_spoken([command])}")
                answer += more
            seconds.append(perf_counter() - start)
        there.close()
    return seconds


def _run(commands: Sequence[Sequence[str]], *, watched: int, digest: bool) -> Passage:
    programs: list[subprocess.Popen[bytes]] = []
    start = perf_counter()
    for number, command in enumerate(commands):
        is_last = number == len(commands) - 1
        before = programs[-1].stdout if programs else None
        programs.append(
            subprocess.Popen(
                command,
                stdin=before or subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if is_last and not digest else subprocess.PIPE,
                stderr=subprocess.PIPE if number == watched else None,
            )
        )
        if before is not None:
            before.close()
    out = hashlib.sha256()
    if digest and programs[-1].stdout is not None:
        while block := programs[-1].stdout.read(_BLOCK):
            out.update(block)
    peaks = [_peak_bytes(program) for program in programs]
    seconds = perf_counter() - start
    error = programs[watched].stderr
    said = error.read().decode() if error is not None else ""
    if any(program.returncode for program in programs):
        codes = [program.returncode for program in programs]
        raise SystemExit(f"{_spoken(commands)}: ended with {codes}\n{said}")
    return Passage(seconds, peaks[watched], said, out.hexdigest() if digest else "")


def _peak_bytes(program: subprocess.Popen[bytes]) -> int:
    """Wait for a program; gives the most memory it had."""
    _, status, usage = os.wait4(program.pid, 0)
    program.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * _RSS_UNIT


def _spoken(commands: Sequence[Command]) -> str:
    """Name the programs of a pipeline, without the folders they are in."""
    return " | ".join(" ".join(Path(word).name for word in command) for command in commands)


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump(asdict(_run(asked.pop("commands"), **asked)), sys.stdout)
