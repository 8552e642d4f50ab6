"""One request on its way: who asks, what comes in, what goes out, all within limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from zveil.serve.problem import Problem, refuse
from zveil.serve.settings import Limits, is_own_name
from zveil.serve.tokens import ANYONE, Token, Tokens, bearer

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# After an answer that does not need the rest of a body, so much of it is still read: a client that
# is cut off while it sends may never see the answer.
_LINGER_S, _LINGER_BYTES = 1.0, 4 << 20


class Gone(Exception):  # noqa: N818  # no error of ours
    """The client has left, or was cut off; there is nobody to answer."""


class Visit:
    """A request and its answer.

    Parameters
    ----------
    scope, receive, send
        As ASGI has them.
    limits
        What bounds it.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, limits: Limits) -> None:
        self.scope = scope
        self._receive, self._send = receive, send
        self._limits = limits
        self._began = time.monotonic()
        self.token: Token | None = None
        self.status = 0
        self.bytes_in = self.bytes_out = 0
        self.lines = self.bad = 0
        self.is_read = False
        """Whether the whole body has come."""
        self.read_at = self._began
        """When it had, by the clock that goes on."""
        self.is_over = False
        self._is_asked_on = False

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.monotonic() - self._began

    def header(self, name: bytes) -> bytes | None:
        """Give a header of the request; names are in small letters."""
        for each, value in self.scope["headers"]:
            if each == name:
                return bytes(value)
        return None

    def authorize(self, tokens: Tokens | None, right: str) -> Token:
        """Find out who asks; raises the problem of one who has not the right.

        Without tokens anyone may do everything, if the service was asked for by a name of the
        loopback: so a page of elsewhere in a browser may not.
        """
        if tokens is None:
            if not is_own_name(self.header(b"host")):
                raise refuse("host", "Ask for 127.0.0.1 or localhost, or give the service tokens.")
            self.token = ANYONE
            return ANYONE
        secret = bearer(self.header(b"authorization"))
        found = None if secret is None else tokens.find(secret)
        if found is None:
            raise refuse("token-needed", "Send the header: Authorization: Bearer TOKEN")
        self.token = found
        if not found.may(right):
            raise refuse("forbidden", f"It needs the right to {right}.")
        return found

    async def body(self) -> AsyncIterator[bytes]:
        """Give the body as it comes; raises the problem of one that is too large or too slow."""
        stated = self.header(b"content-length")
        if stated is not None and stated.isdigit() and int(stated) > self._limits.max_body:
            raise refuse("too-large", limit_bytes=self._limits.max_body)
        while not self.is_read:
            left_s = self._limits.request_s - self.seconds
            try:
                async with asyncio.timeout(max(min(self._limits.idle_s, left_s), 0)):
                    self._is_asked_on = True
                    message = await self._receive()
            except TimeoutError:
                raise refuse("slow") from None
            if message["type"] != "http.request":
                raise Gone
            data = message.get("body", b"")
            self.is_read = not message.get("more_body", False)
            self.read_at = time.monotonic()
            self.bytes_in += len(data)
            if self.bytes_in > self._limits.max_body:
                raise refuse("too-large", limit_bytes=self._limits.max_body)
            yield data

    async def whole(self, most: int) -> bytes:
        """Give the whole body, if it is not larger than that."""
        found = bytearray()
        async for data in self.body():
            found += data
            if len(found) > most:
                raise refuse("too-large", limit_bytes=most)
        return bytes(found)

    async def start(
        self, status: int, headers: Iterable[tuple[bytes, bytes]], *, length: int | None = None
    ) -> None:
        """Begin the answer; without a length it is sent in chunks."""
        self.status = status
        sent = [*headers, (b"cache-control", b"no-store")]
        if length is not None:
            sent.append((b"content-length", b"%d" % length))
        await self._say({"type": "http.response.start", "status": status, "headers": sent})

    async def write(self, data: bytes, *, more: bool = True) -> None:
        """Send a part of the answer; a client that does not read is cut off after a while."""
        self.bytes_out += len(data)
        self.is_over = not more
        await self._say({"type": "http.response.body", "body": data, "more_body": more})

    async def answer(self, status: int, media_type: str, data: bytes) -> None:
        """Send a whole answer."""
        await self.start(status, [(b"content-type", media_type.encode())], length=len(data))
        await self.write(data, more=False)

    async def answer_problem(self, problem: Problem) -> None:
        """Send a problem; an answer that has begun is cut off: nobody shall take it for whole."""
        if self.status:
            self.cut_off()
            return
        head = problem.head()
        if not self.is_read:
            head.append((b"connection", b"close"))
        self.status = problem.status
        await self._say({"type": "http.response.start", "status": problem.status, "headers": head})
        data = b"" if self.scope["method"] == "HEAD" else problem.body
        await self.write(data, more=True)
        await self._linger()
        await self.write(b"", more=False)

    def cut_off(self) -> None:
        """End the connection at once."""
        self.is_over = True
        abort = self.scope.get("zveil.abort")
        if abort is not None:
            abort()

    async def _say(self, message: Message) -> None:
        try:
            async with asyncio.timeout(self._limits.idle_s):
                await self._send(message)
        except TimeoutError:
            self.cut_off()
            raise Gone from None
        except OSError:
            raise Gone from None

    async def _linger(self) -> None:
        """Read on for a moment, unless the client waits to be asked for its body."""
        if self.is_read or (self.header(b"expect") is not None and not self._is_asked_on):
            return
        read = 0
        try:
            async with asyncio.timeout(_LINGER_S):
                while read < _LINGER_BYTES:
                    message = await self._receive()
                    read += len(message.get("body", b""))
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return
        except TimeoutError:
            return
