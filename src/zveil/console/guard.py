"""The door of the console: who gets in, from where, and what a browser may do with the pages."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from zveil.console.sessions import Session, Sessions
from zveil.serve.settings import is_own_name

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "zveil-session"

_SAFE = {"GET", "HEAD"}
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # Not `no-referrer`: browsers then hide the origin of forms, which is what the guard asks for.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
_NOTHING = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
STRICT = f"{_NOTHING}; style-src 'self'; img-src 'self'"
"""For pages that are plain: style and the icon from here, and no script at all."""


def lively(nonce: str) -> str:
    """Give the policy of contents for pages of the library that draws them.

    Scripts come from this server, or carry the nonce of this one answer. The library makes
    functions of text (templates, methods of charts), hence ``unsafe-eval``, and sets the style of
    elements, hence ``unsafe-inline`` for style. Nothing is loaded from, or sent to, elsewhere.
    """
    return (
        f"{_NOTHING}; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'"
    )


@dataclass(frozen=True, kw_only=True)
class Door:
    """What the guard goes by.

    Parameters
    ----------
    sessions
        The logins; None if nobody has to log in.
    public
        Paths that are open to those who are not logged in, and answer for themselves.
    paths, below
        Paths of the console, and what some of them begin with.
    """

    sessions: Sessions | None
    public: frozenset[str]
    paths: frozenset[str]
    below: tuple[str, ...]

    def has(self, path: str) -> bool:
        """Whether there is such a path."""
        return path in self.public or path in self.paths or path.startswith(self.below)


class Guard:
    """Lets in what may come in; wraps the pages and the socket that keeps them up to date.

    Parameters
    ----------
    app
        What is guarded.
    door
        What it goes by.
    refuse
        Answers what is turned away, with a status: 401 not logged in, 403 from elsewhere, 421 by
        another name.
    """

    def __init__(self, app: App, door: Door, refuse: Callable[[int], App]) -> None:
        self._app, self._door, self._refuse = app, door, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or a socket."""
        if scope["type"] not in ("http", "websocket"):
            return
        headers = headers_of(scope)
        status, session = self._judge(scope, headers)
        if status is not None:
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await self._refuse(status)(scope, receive, plain(send))
            return
        # It would be written into pages: nobody here stands behind a path of another server.
        scope["headers"] = [each for each in scope["headers"] if each[0] != b"x-forwarded-prefix"]
        if scope["type"] == "websocket":
            await self._app(scope, self._while_it_holds(session, receive), send)
        else:
            is_plain = scope["path"] in self._door.public
            await self._app(scope, receive, _Page(send, is_plain=is_plain))

    def _judge(self, scope: Scope, headers: dict[str, str]) -> tuple[int | None, Session | None]:
        """Give the status to refuse with, if any, and the session."""
        door, path = self._door, scope["path"]
        if door.sessions is None and not is_own_name(headers.get("host", "").encode("latin-1")):
            # A page elsewhere could have a name of its own point here, and read along.
            return 421, None
        is_safe = scope["type"] == "http" and scope["method"] in _SAFE
        if not is_safe and not is_from_here(headers):
            return 403, None
        if path in door.public or door.sessions is None:
            return None, None
        session = door.sessions.find(cookie_of(headers))
        return (401, None) if session is None else (None, session)

    def _while_it_holds(self, session: Session | None, receive: Receive) -> Receive:
        """Give a receive that hangs up when the session ends."""
        sessions = self._door.sessions
        if session is None or sessions is None:
            return receive

        async def receive_or_end() -> Message:
            got = asyncio.ensure_future(receive())
            over = asyncio.ensure_future(session.ended.wait())
            try:
                await asyncio.wait(
                    {got, over},
                    timeout=max(sessions.left_s(session), 0.0),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if got.done() and sessions.left_s(session) > 0:
                    return got.result()
                return {"type": "websocket.disconnect", "code": 1008}
            finally:
                over.cancel()
                got.cancel()

        return receive_or_end


class _Page:
    """A send that adds headers, and to pages of the library a nonce for each of its scripts."""

    def __init__(self, send: Send, *, is_plain: bool) -> None:
        self._send, self._is_plain = send, is_plain
        self._start: Message | None = None
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            kind = dict(message["headers"]).get(b"content-type", b"")
            if self._is_plain or not kind.startswith(b"text/html"):
                await self._send(with_headers(message, STRICT))
            else:
                self._start = message
        elif message["type"] == "http.response.body" and self._start is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._give(self._start)
        else:
            await self._send(message)

    async def _give(self, start: Message) -> None:
        nonce = secrets.token_urlsafe(16)
        # Data in a page has its angle brackets escaped: these are the library's own scripts.
        body = bytes(self._body).replace(b"<script", f'<script nonce="{nonce}"'.encode())
        length = (b"content-length", str(len(body)).encode())
        others = [each for each in start["headers"] if each[0] != b"content-length"]
        await self._send(with_headers({**start, "headers": [*others, length]}, lively(nonce)))
        await self._send({"type": "http.response.body", "body": body, "more_body": False})


def plain(send: Send) -> Send:
    """Give a send that adds the headers of plain pages."""
    return _Page(send, is_plain=True)


def with_headers(message: Message, policy: str) -> Message:
    """Give the start of an answer with the headers that all answers have."""
    more = [*_HEADERS, (b"content-security-policy", policy.encode())]
    return {**message, "headers": [*message["headers"], *more]}


def is_from_here(headers: dict[str, str]) -> bool:
    """Whether a request was made by a page of this server, as the browser says.

    >>> is_from_here({"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"})
    True
    >>> is_from_here({"host": "127.0.0.1:8000", "origin": "http://evil.example"})
    False
    >>> is_from_here({"host": "127.0.0.1:8000"})
    False
    """
    site = headers.get("sec-fetch-site")
    if site is not None and site != "same-origin":
        return False
    origin = headers.get("origin")
    if origin is None:
        return site == "same-origin"
    return bool(headers.get("host")) and urlsplit(origin).netloc == headers["host"]


def headers_of(scope: Scope) -> dict[str, str]:
    """Give the headers of a request; of one that comes twice, the last."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def cookie_of(headers: dict[str, str]) -> str | None:
    """Give the id of the session that a browser sends.

    >>> cookie_of({"cookie": "other=1; zveil-session=abc"})
    'abc'
    """
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value
