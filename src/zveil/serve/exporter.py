"""The figures of a run beside its pipe: a small server of its own, for `/metrics` and no more.

It needs nothing but Python, takes no body, and answers each connection once.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from zveil.serve import metrics
from zveil.serve.monitor import Figures, Latencies, figures
from zveil.serve.problem import Problem, ProblemError
from zveil.serve.settings import Limits
from zveil.serve.tokens import Tokens
from zveil.serve.visit import Message, Visit

if TYPE_CHECKING:
    from zveil.run import Run

_MOST_CONNECTIONS = 64
_PATIENCE_S = 5.0
_HEAD_BYTES = 16 << 10


class Board:
    """The figures of a run, for another thread than its own.

    The run is not held up: it only tells how long each block took. Whoever wants to know the
    figures reads its counters while it goes on, which are whole at any moment.

    Parameters
    ----------
    run
        Is to be watched with this.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._latencies = Latencies()
        self._shown = self._seen()

    def __call__(self, run: Run) -> None:
        """Take note of a block."""
        self._latencies.add(run.took_s)

    def read(self) -> Figures:
        """Give the figures as they stand."""
        # Between two of its inputs a run may have none for a moment.
        with contextlib.suppress(AttributeError):
            self._shown = self._seen()
        return self._shown

    def _seen(self) -> Figures:
        held = [gate.stats(entries=False) for gate in self._run.gates]
        summary = self._run.summary(is_brief=True)
        kept = summary.state
        return figures(
            summary,
            held,
            self._latencies,
            snapshot_age=None if kept is None else kept.age_seconds,
            snapshot_failures=0 if kept is None else kept.failed_saves,
        )


class Exporter:
    """Serves figures from a thread of its own, which ends with the program.

    Parameters
    ----------
    opened
        A socket that listens.
    tokens
        Who may read; None if anyone on this machine.
    read
        Gives the figures.
    """

    def __init__(
        self, opened: socket.socket, tokens: Tokens | None, read: Callable[[], Figures]
    ) -> None:
        self._opened = opened
        self._tokens = tokens
        self._read = read
        self._open = 0
        self._limits = Limits(idle_s=_PATIENCE_S, request_s=_PATIENCE_S)
        threading.Thread(target=lambda: asyncio.run(self._go()), daemon=True).start()

    async def _go(self) -> None:
        server = await asyncio.start_server(self._connected, sock=self._opened, limit=_HEAD_BYTES)
        async with server:
            await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            async with asyncio.timeout(_PATIENCE_S):
                if self._open > _MOST_CONNECTIONS:
                    answer = Problem("connections").raw()
                else:
                    answer = await self._answer(reader)
                writer.write(answer)
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # whoever asked has left, or is too slow
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return Problem("head-too-large").raw()
        first, *rest = head.split(b"\r\n")
        words = first.split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return Problem("bad-request").raw()
        method, path = words[0].decode("latin-1"), words[1].partition(b"?")[0]
        headers = [line.partition(b":") for line in rest if line]
        scope = {
            "method": method,
            "headers": [(name.strip().lower(), value.strip()) for name, _, value in headers],
        }
        try:
            return self._say(Visit(scope, _nothing, _nowhere, self._limits), path)
        except ProblemError as error:
            return error.problem.raw()

    def _say(self, visit: Visit, path: bytes) -> bytes:
        pages = {
            b"/metrics": metrics.MEDIA_TYPE,
            b"/healthz": "application/json",
            b"/readyz": "application/json",
        }
        kind = pages.get(path)
        if kind is None:
            return Problem("not-found").raw()
        if visit.scope["method"] not in ("GET", "HEAD"):
            return Problem("method", headers={"allow": "GET, HEAD"}).raw()
        body = b'{"status":"ok"}\n' if path == b"/healthz" else b'{"status":"ready"}\n'
        if path == b"/metrics":
            visit.authorize(self._tokens, "read")
            body = metrics.exposition(self._read())
        lines = [
            b"HTTP/1.1 200 OK",
            b"content-type: " + kind.encode(),
            b"content-length: %d" % len(body),
            b"cache-control: no-store",
            b"connection: close",
        ]
        sent = b"" if visit.scope["method"] == "HEAD" else body
        return b"\r\n".join([*lines, b"", sent])


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def _nowhere(_: Message) -> None:
    """Take an answer that nobody waits for."""
