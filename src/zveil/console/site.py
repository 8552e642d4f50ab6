"""The console put together: pages, their door, and where they hang in the server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zveil.policy import Policy
from zveil.serve.monitor import Monitor

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.applications import Starlette
    from starlette.routing import BaseRoute

    from zveil.console.ear import Listen
    from zveil.console.guard import Door, Guard
    from zveil.console.login import Tokens
    from zveil.console.view import View

_ASSETS = ("console.css", "console.js", "icon.svg")
_LIBRARY = ("/_nicegui/", "/_nicegui_ws/")
_PLAIN = ("/login", "/logout", "/console/console.css", "/console/icon.svg")


def mount(
    app: Starlette,
    *,
    monitor: Monitor | None,
    policy: Policy | None,
    tokens: Tokens | None,
    listen: Listen | None = None,
    released: str | Path | None = None,
    upload: str | int = "256MiB",
) -> None:
    """Hang the console into a server, below everything that the server answers itself.

    Only once in a process: the library that draws the pages has one set of them.

    Parameters
    ----------
    app
        A Starlette or FastAPI application; its other routes must be there already.
    monitor
        Figures of the stream that it serves; None if there is none.
    policy
        What decides about the stream.
    tokens
        The tokens there are; None if nobody has to log in, which is for servers that listen
        on the loopback alone.
    listen
        Has a listener told every block of lines that comes in from now on, and gives what ends
        that: for plans from the running stream. None if that cannot be had.
    released
        Folder of released files that may be picked for an audit; none by default.
    upload
        How large a file may be that a browser sends.

    Raises
    ------
    ValueError
        If what the console is made with is not installed, or the folder is not there.
    """
    if find_spec("nicegui") is None:
        raise ValueError("console: needs NiceGUI; install it with: pip install 'zveil[serve]'")
    if released is not None and not Path(released).is_dir():
        raise ValueError(f"released: there is no directory {released}")

    from zveil.console.files import Inbox, Shelf
    from zveil.console.guard import Door, Guard
    from zveil.console.login import refusal
    from zveil.console.sessions import Sessions
    from zveil.console.view import View

    sessions = None if tokens is None else Sessions()
    view = View(
        monitor=monitor,
        policy=policy,
        needs_token=tokens is not None,
        inbox=Inbox(upload),
        shelf=None if released is None else Shelf(Path(released).resolve()),
        listen=listen,
    )
    inner = _pages(view, sessions, tokens)
    door = Door(
        sessions=sessions,
        public=frozenset(_PLAIN if tokens is not None else _PLAIN[2:]),
        paths=frozenset(
            {"/", "/plan", "/audit", "/favicon.ico", "/console/session", "/console/console.js"}
        ),
        below=(*_LIBRARY, "/console/files/"),
    )
    app.router.routes.append(_way_in(Guard(inner, door, refusal), door))
    _live_with(app, inner, view)


def _way_in(guard: Guard, door: Door) -> BaseRoute:
    """Give a route for the paths of the console alone: for others the server has its own words."""
    from starlette.routing import Match, Mount

    class WayIn(Mount):
        def matches(self, scope: Any) -> tuple[Match, Any]:
            is_ours = scope["type"] in ("http", "websocket") and door.has(scope["path"])
            return super().matches(scope) if is_ours else (Match.NONE, {})

    return WayIn("/", guard)


def _pages(view: View, sessions: Any, tokens: Tokens | None) -> FastAPI:
    """Make the application behind the door."""
    from fastapi import FastAPI
    from nicegui import ui
    from starlette.responses import Response

    from zveil.console.login import login, logout
    from zveil.console.pages import make_pages
    from zveil.console.sessions import Attempts

    inner = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    if sessions is not None and tokens is not None:
        both = ["GET", "POST"]
        inner.add_route("/login", login(sessions, Attempts(), tokens), methods=both)
        inner.add_route("/logout", logout(sessions), methods=both)
    inner.add_route("/console/session", lambda _: Response(status_code=204))
    inner.add_route("/console/files/{ticket}", view.inbox.answer, methods=["POST"])
    for name in _ASSETS:
        inner.add_route(f"/console/{name}", _asset(name))
    make_pages(view, may_leave=sessions is not None)
    ui.run_with(
        inner,
        title="zveil",
        dark=None,
        language="en-US",
        binding_refresh_interval=None,
        tailwind=False,
        gzip_middleware_factory=None,
        favicon=Path(__file__).parent / "assets" / "icon.svg",
        show_welcome_message=False,
    )
    return inner


def _asset(name: str) -> Any:
    from starlette.requests import Request
    from starlette.responses import FileResponse

    path = Path(__file__).parent / "assets" / name

    async def answer(_: Request) -> FileResponse:
        # Asked about each time, answered with "not changed": a new version is seen at once.
        return FileResponse(path, headers={"cache-control": "no-cache"})

    return answer


def _live_with(app: Starlette, inner: FastAPI, view: View) -> None:
    """Begin and end with the server."""
    outer = app.router.lifespan_context

    @asynccontextmanager
    async def both(started: Any) -> AsyncIterator[Any]:
        async with inner.router.lifespan_context(inner), outer(started) as state:
            try:
                yield state
            finally:
                await view.close()

    app.router.lifespan_context = both
