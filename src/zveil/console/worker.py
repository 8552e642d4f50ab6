"""A process beside the service that works things out, so that no decision ever waits for a curve.

The model and audits keep a processor busy for as long as they take, and an audit takes memory with
every line of its file. In a process of its own, at a low priority, neither is at the expense of the
events, and both can be stopped. `zveil.console.tasks` is what runs in it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any

LONGEST_S = 600.0
_LINE = 64 << 20


class WorkError(Exception):
    """What was asked for cannot be worked out; the words say why, and quote no data."""


class Worker:
    """One process that does one task after another.

    It is started with the first task and ends with `close`, with the service, or after a task that
    took too long.

    Parameters
    ----------
    file
        A file that it may read, given to it open; its tasks are told the number.
    longest_s
        Most seconds for a task.
    """

    def __init__(self, *, file: IO[bytes] | None = None, longest_s: float = LONGEST_S) -> None:
        self._number = None if file is None else file.fileno()
        self._longest_s = longest_s
        self._process: asyncio.subprocess.Process | None = None
        self._killed: list[asyncio.subprocess.Process] = []
        self._turn = asyncio.Lock()
        self._is_closed = self._is_used = False

    async def ask(
        self, task: str, given: Mapping[str, Any], watch: Callable[[str], object] | None = None
    ) -> Any:
        """Have a task done and give what comes out.

        Parameters
        ----------
        task
            Its name, one of `zveil.console.tasks`.
        given
            What it is given; plain values.
        watch
            Is told what is being done.

        Raises
        ------
        WorkError
            If it cannot be done, takes too long, or the process ended.
        """
        async with self._turn:
            if self._is_closed:
                raise WorkError("the page was left")
            try:
                return await asyncio.wait_for(self._ask(task, given, watch), self._longest_s)
            except TimeoutError:
                self._kill()
                raise WorkError(
                    f"it took more than {self._longest_s / 60:g} minutes and was stopped"
                ) from None
            except asyncio.CancelledError:
                # Its answer would be taken for that of the next task.
                self._kill()
                raise

    async def _ask(
        self, task: str, given: Mapping[str, Any], watch: Callable[[str], object] | None
    ) -> Any:
        given = dict(given) | ({} if self._number is None else {"number": self._number})
        process = await self._start()
        if process.stdin is None or process.stdout is None:
            raise WorkError("the process that works things out has no pipes")
        try:
            process.stdin.write(json.dumps({"task": task, "given": given}).encode() + b"\n")
            await process.stdin.drain()
            while line := await process.stdout.readline():
                answer = json.loads(line)
                if "doing" in answer:
                    if watch is not None:
                        watch(answer["doing"])
                elif "error" in answer:
                    raise WorkError(answer["error"])
                else:
                    return answer["result"]
        except (ConnectionError, ValueError):
            self._kill()
        raise WorkError("the process that works things out ended; there may be too little memory")

    async def _start(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            if self._is_used:
                raise WorkError("the file is gone; send it again")
            # Its number may stand for another file by then.
            self._is_used = self._number is not None
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "zveil.console.tasks",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=_environment(),
                pass_fds=() if self._number is None else (self._number,),
                limit=_LINE,
            )
        return self._process

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            self._killed.append(process)

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._is_closed = True
        self._kill()

    async def over(self) -> None:
        """Wait until the processes that were ended are gone; nothing else has to."""
        for process in self._killed:
            await process.wait()
        self._killed.clear()


def _environment() -> dict[str, str]:
    """Give the environment without what only the service needs, keys above all."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ZVEIL_")}
    # One processor: the others are for events.
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return kept | dict.fromkeys(threads, "1")
