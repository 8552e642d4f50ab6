"""`zveil run` for tests: the real program, or the same run within this process."""

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from events import keyring_of

from zveil.io import Format, find
from zveil.policy import Policy
from zveil.run import Run
from zveil.summary import Summary

PROGRAM = Path(sys.executable).parent / "zveil"
PATIENCE_S = 120
FIELDS = ("--time", "ts", "--user", "uid", "--attribute", "host")
RULE = ("-z", "2", "--window", "1h")


def zveil(
    *arguments: str | Path, stdin: bytes | int = b"", **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run the program to its end."""
    given = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
    return subprocess.run(
        [PROGRAM, *arguments], capture_output=True, timeout=PATIENCE_S, **given, **options
    )


def run(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run `zveil run` on the fields ts, uid and host: two users within an hour."""
    return zveil("run", *FIELDS, *RULE, *arguments, **options)


class Started:
    """The program while it runs, its ends being pipes. It is ended with the test."""

    def __init__(self, *arguments: str | Path, **options: Any) -> None:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            [PROGRAM, "run", *FIELDS, *RULE, *arguments], bufsize=0, **(pipes | options)
        )

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def line(self) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def rest(self) -> tuple[bytes, bytes]:
        """Close its input and wait for its end."""
        return self.process.communicate(timeout=PATIENCE_S)

    def __enter__(self) -> "Started":
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            for end in (self.process.stdin, self.process.stdout, self.process.stderr):
                if end is not None:
                    stack.callback(end.close)
            self.process.kill()
            self.process.wait()


def ran(
    policy: Policy,
    inputs: Sequence[Path],
    output: Path | None,
    *,
    stated: Format | None = None,
    **options: Any,
) -> tuple[Summary, list[str]]:
    """Run within this process; the summary, and what was reported."""
    reports: list[str] = []
    going = Run(
        policy, find([str(path) for path in inputs], stated),
        output=None if output is None else str(output),
        **{"keyring": keyring_of(policy), "report": reports.append} | options,
    )  # fmt: skip
    return going.go(), reports


def line(t: object, user: object, host: object) -> bytes:
    """One event as NDJSON."""
    return json.dumps({"ts": t, "uid": user, "host": host}).encode() + b"\n"
