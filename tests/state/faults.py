"""The real program on a disk that fails, or killed at a chosen moment: what `faults.c` is told."""

import shutil
import struct
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from program import PATIENCE_S, PROGRAM

SOURCE = Path(__file__).with_name("faults.c")
BOARD_BYTES = 4096
NEVER = 2**62

needs_faults = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)


@cache
def library() -> Path:
    """Compile it once."""
    built = Path(mkdtemp(prefix="zveil-faults-"), "faults.so")
    subprocess.run(
        ["cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", built, SOURCE, "-ldl"],  # noqa: S607
        check=True,
    )
    return built


@dataclass(frozen=True)
class Step:
    """One thing done to a file of the folder."""

    who: str
    """``program``, or ``fork`` for what it forked."""
    kind: str
    path: str
    """Below the folder."""
    is_hit: bool


@dataclass(frozen=True)
class Ended:
    """A run that is over."""

    code: int
    """Negative for a signal."""
    said: str
    steps: list[Step] = field(repr=False)
    ticks: int
    fired: bool
    """Whether the fault came to pass: a run may be over before."""

    @property
    def is_killed(self) -> bool:
        return self.code == -9

    @property
    def hit(self) -> str:
        """Where it was hit, for messages."""
        return ", ".join(
            f"{n}: {step.who} {step.kind} {step.path}"
            for n, step in enumerate(self.steps, 1) if step.is_hit
        )[:300]  # fmt: skip


def run(
    folder: Path,
    scratch: Path,
    arguments: Sequence[str | Path],
    *,
    reads: Path | None = None,
    shadow: Path | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    program: Sequence[str | Path] = (PROGRAM, "run"),
    **told: Any,
) -> Ended:
    """Run the program to its end, which may come early.

    Parameters
    ----------
    folder
        What faults are about.
    scratch
        For what is counted; outside of the folder.
    reads
        Where reads are slow.
    shadow
        Where it is noted what is synced.
    stdin, stdout
        Its ends; nothing by default.
    program
        What is run.
    told
        What `faults.c` reads from FAULTS_AT and so on, by the names behind it in small letters.
    """
    board, log = scratch / "board", scratch / "log"
    board.write_bytes(bytes(BOARD_BYTES))
    log.unlink(missing_ok=True)
    places = {"folder": folder, "board": board, "log": log, "reads": reads, "shadow": shadow}
    environment = {
        f"FAULTS_{name.upper()}": str(value)
        for name, value in (places | told).items() if value is not None
    }  # fmt: skip
    process = subprocess.Popen(
        [*program, *arguments], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE,
        start_new_session=True, cwd=scratch,
        env={"PATH": "/usr/bin:/bin", "LD_PRELOAD": str(library())} | environment,
    )  # fmt: skip
    try:
        _, said = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    _, ticks, fired = struct.unpack_from("QQi", board.read_bytes())
    return Ended(process.returncode, said.decode(), list(_steps(log)), ticks, bool(fired))


def plain(arguments: Sequence[str | Path], cwd: Path) -> Ended:
    """Run the program to its end on a disk that does not fail."""
    done = subprocess.run(
        [PROGRAM, "run", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, timeout=PATIENCE_S, cwd=cwd, env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    return Ended(done.returncode, done.stderr.decode(), [], 0, False)


def _steps(log: Path) -> Iterable[Step]:
    if log.exists():
        for line in log.read_text().splitlines():
            _, who, kind, rest = line.split(" ", 3)
            yield Step(who, kind, rest.removesuffix(" !"), rest.endswith(" !"))


def require_worded(ended: Ended) -> None:
    """Let it end with a documented code and a sentence, never by falling over."""
    assert ended.code in (0, 1, 2, 3), (ended.code, ended.hit, ended.said)
    for word in ("Traceback", "panicked", "Exception", "RuntimeError"):
        assert word not in ended.said, (ended.hit, ended.said)
    if ended.code:
        assert "Error: " in ended.said, (ended.hit, ended.said)
