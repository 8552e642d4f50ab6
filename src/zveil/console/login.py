"""The login form, and the pages that say no: plain HTML without any script."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from html import escape
from typing import Any, Protocol, TypeAlias
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from zveil.console.guard import COOKIE, App
from zveil.console.sessions import SESSION_S, Attempts, Sessions

Answer: TypeAlias = Callable[[Request], Awaitable[Response]]


class Token(Protocol):
    """A token that is known."""

    def may(self, right: str, /) -> bool:
        """Whether it has a right: ``read``, ``write`` or ``admin``."""


class Tokens(Protocol):
    """The tokens there are."""

    def find(self, secret: str, /) -> Any:
        """Give the token that this is; None if it is none."""

    def knows(self, token: Any, /) -> bool:
        """Whether a token is still one of them."""


_LARGEST = 4096
_TAKES_S = 30.0
_NO_STORE = {"cache-control": "no-store"}

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} \N{MIDDLE DOT} zveil</title>
<link rel="stylesheet" href="/console/console.css">
<link rel="icon" href="/console/icon.svg">
</head>
<body class="plain">
<main class="door">
<p class="mark">zveil</p>
<h1>{title}</h1>
{body}
</main>
</body>
</html>
"""

_FORM = """\
<p class="quiet">The console needs a token that may read: one of those in the file that the service
was started with.</p>
<form method="post" action="/login">
{problem}
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus
 spellcheck="false" autocapitalize="off"{described}>
<button type="submit">Log in</button>
</form>
"""

_WORDS = {
    403: (
        "Not from here",
        "This was sent by a page of another site, so nothing was done.",
    ),
    421: (
        "Another name",
        "This server takes requests under its own name only. Open it as localhost or 127.0.0.1, "
        "or behind a proxy that passes the name on.",
    ),
}


def login(sessions: Sessions, attempts: Attempts, tokens: Tokens) -> Answer:
    """Give what answers ``/login``: the form, and a session for a right token.

    Parameters
    ----------
    sessions
        The logins.
    attempts
        How often somebody may try.
    tokens
        The tokens there are.
    """

    async def answer(request: Request) -> Response:
        if request.method != "POST":
            return _form()
        address = request.client.host if request.client else ""
        wait_s = attempts.wait_s(address)
        if wait_s > 0:
            return _form(
                f"Too many wrong tokens. Try again in {_minutes(wait_s)}.",
                429,
                {"retry-after": str(math.ceil(wait_s))},
            )
        try:
            secret = await asyncio.wait_for(_secret(request), _TAKES_S)
        except (TimeoutError, ClientDisconnect):
            return _form("The form did not arrive.", 408)
        token: Token | None = tokens.find(secret) if secret else None
        if token is None:
            attempts.failed(address)
            return _form("This token is not known here.", 401)
        if not token.may("read"):
            return _form("This token may not read, and the console only reads.", 403)
        attempts.succeeded(address)
        response = RedirectResponse("/", 303, _NO_STORE)
        response.set_cookie(
            COOKIE,
            sessions.begin(lambda: tokens.knows(token)),
            max_age=SESSION_S,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    return answer


def logout(sessions: Sessions) -> Answer:
    """Give what answers ``/logout``: it ends the session, here and in the browser."""

    async def answer(request: Request) -> Response:
        if request.method != "POST":
            return RedirectResponse("/", 303, _NO_STORE)
        sessions.end(request.cookies.get(COOKIE))
        response = RedirectResponse("/login", 303, _NO_STORE)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response

    return answer


def refusal(status: int) -> App:
    """Give what answers a request that the guard turns away."""
    if status == 401:
        return RedirectResponse("/login", 303, _NO_STORE)
    title, words = _WORDS[status]
    body = f'<p>{escape(words)}</p>\n<p><a href="/">To the console</a></p>'
    return HTMLResponse(_PAGE.format(title=title, body=body), status, _NO_STORE)


def _form(problem: str = "", status: int = 200, more: dict[str, str] | None = None) -> Response:
    told = f'<p class="problem" id="problem" role="alert">{escape(problem)}</p>' if problem else ""
    described = ' aria-invalid="true" aria-describedby="problem"' if problem else ""
    body = _FORM.format(problem=told, described=described)
    return HTMLResponse(
        _PAGE.format(title="Log in", body=body), status, {**_NO_STORE, **(more or {})}
    )


async def _secret(request: Request) -> str:
    """Read the token of the form; empty if there is none, or the form is no such form."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _LARGEST:
            return ""
    try:
        return parse_qs(body.decode("ascii"), max_num_fields=4).get("token", [""])[0].strip()
    except ValueError:
        return ""


def _minutes(seconds: float) -> str:
    """Write how long to wait.

    >>> _minutes(20), _minutes(61)
    ('a minute', '2 minutes')
    """
    count = math.ceil(seconds / 60)
    return "a minute" if count <= 1 else f"{count} minutes"
