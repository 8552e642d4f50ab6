"""HTTP/1.1 on a socket: what uvicorn does, and bounds on those who have sent no request yet."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from zveil.serve.log import Log
from zveil.serve.problem import Problem
from zveil.serve.settings import Limits
from zveil.serve.traffic import Traffic


def bounded(limits: Limits, traffic: Traffic, log: Log) -> type[HttpToolsProtocol]:
    """Make a protocol whose connections are bounded: in number, and in time and size of a head.

    Where there are too many, the one goes that has waited longest without saying what it wants: so
    nobody keeps others out by connections that do nothing.
    """
    waiting: dict[asyncio.Protocol, None] = {}

    class Bounded(HttpToolsProtocol):
        """A connection."""

        _timer: asyncio.TimerHandle | None = None
        _head_bytes = 0
        # A body may still come when its request was answered long ago.
        _is_body_due = False
        _is_refused = False
        _is_counted = False

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Take a connection, or turn it away."""
            super().connection_made(transport)
            traffic.connections += 1
            self._is_counted = True
            self._wait_for_head()
            if traffic.connections > limits.max_connections:
                oldest = cast(Bounded, next(iter(waiting)))
                oldest._refuse("connections")

        def connection_lost(self, exc: Exception | None) -> None:
            """Forget it."""
            self._stop_waiting()
            if self._is_counted:
                self._is_counted = False
                traffic.connections -= 1
            super().connection_lost(exc)

        def eof_received(self) -> bool:  # type: ignore[override]
            """Answer a client that has sent its request and closes its half of the connection."""
            cycle: Any = self.cycle
            if cycle is None or cycle.response_complete or cycle.more_body:
                return False  # nothing is owed; or the rest of a body will never come
            cycle.keep_alive = False
            return True

        def data_received(self, data: bytes) -> None:
            """Read on, if it is within bounds."""
            if self._is_refused:
                return
            cycle: Any = self.cycle
            if cycle is None or (cycle.response_complete and self._timer is None):
                self._wait_for_head()
            if self._timer is not None and not self._is_body_due:
                self._head_bytes += len(data)
            super().data_received(data)
            if self._timer is not None and self._head_bytes > limits.head_bytes:
                self._refuse("head-too-large")

        def on_headers_complete(self) -> None:
            """Begin a request."""
            self._is_body_due = True
            self._stop_waiting()
            if len(self.url) + sum(len(a) + len(b) for a, b in self.headers) > limits.head_bytes:
                self._refuse("head-too-large")
                return
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            """Take a part of a body."""
            if not self._is_refused:
                super().on_body(body)

        def on_message_complete(self) -> None:
            """End a body."""
            self._is_body_due = False
            if not self._is_refused:
                super().on_message_complete()

        def on_message_begin(self) -> None:
            """Let whoever answers cut the connection off."""
            super().on_message_begin()
            self.scope["zveil.abort"] = self.transport.abort  # type: ignore[typeddict-unknown-key]

        def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # uvicorn's signature
            """Say that this is no HTTP."""
            self._refuse("bad-request")

        def _wait_for_head(self) -> None:
            if self._timer is None:
                self._head_bytes = 0
                waiting[self] = None
                self._timer = self.loop.call_later(limits.head_s, self._refuse, "slow")

        def _stop_waiting(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
                waiting.pop(self, None)

        def _refuse(self, kind: str) -> None:
            """Say why, and close; whoever does not read that is cut off."""
            self._stop_waiting()
            self._is_refused = True
            if self.transport.is_closing():
                return
            traffic.refused[kind] += 1
            log.request(method="none", route="none", status=Problem(kind).status, problem=kind)
            self.transport.write(Problem(kind).raw())
            self.transport.close()
            self.loop.call_later(limits.head_s, self.transport.abort)

    return Bounded
