"""The application: which address does what, and one shape of answers for all that goes wrong."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from zveil.serve import metrics
from zveil.serve.admin import Admin
from zveil.serve.engine import Engine
from zveil.serve.log import Log
from zveil.serve.observations import Observations
from zveil.serve.openapi import document
from zveil.serve.problem import Problem, ProblemError, refuse
from zveil.serve.replay import Replays
from zveil.serve.settings import Limits
from zveil.serve.tokens import Tokens
from zveil.serve.traffic import Traffic
from zveil.serve.visit import Gone, Receive, Scope, Send, Visit

Answer = Callable[[Visit], Awaitable[None]]


@dataclass(kw_only=True)
class Service:
    """All that the application is made of."""

    engine: Engine
    tokens: Tokens | None = None
    limits: Limits = field(default_factory=Limits)
    log: Log = field(default_factory=Log)
    traffic: Traffic = field(default_factory=Traffic)
    is_ending: bool = False


def app(service: Service) -> Starlette:
    """Make the application of a service."""
    limits, tokens = service.limits, service.tokens
    replays = Replays()
    observations = Observations(service.engine, tokens, limits, replays)
    admin = Admin(service.engine, tokens, service.log, replays)
    most_z = service.engine.most_z
    described = json.dumps(document(limits, most_z, has_tokens=tokens is not None)).encode()

    async def metrics_(visit: Visit) -> None:
        visit.authorize(tokens, "read")
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(None, service.engine.monitor.now)
        await visit.answer(200, metrics.MEDIA_TYPE, metrics.exposition(found, service.traffic))

    async def healthz(visit: Visit) -> None:
        await visit.answer(200, "application/json", b'{"status":"ok"}\n')

    async def readyz(visit: Visit) -> None:
        if service.is_ending or service.engine.is_broken:
            raise refuse("ending" if service.is_ending else "broken")
        await visit.answer(200, "application/json", b'{"status":"ready"}\n')

    async def openapi(visit: Visit) -> None:
        await visit.answer(200, "application/json", described)

    routes: list[tuple[str, str, Answer]] = [
        ("POST", "/v1/observations", observations),
        ("POST", "/v1/forget", admin.forget),
        ("POST", "/v1/z", admin.set_z),
        ("POST", "/v1/save", admin.save),
        ("GET", "/metrics", metrics_),
        ("GET", "/healthz", healthz),
        ("GET", "/readyz", readyz),
        ("GET", "/openapi.json", openapi),
    ]
    made = Starlette(
        routes=[
            Route(path, _Endpoint(service, path, method, answer), methods=[method])
            for method, path, answer in routes
        ],
        lifespan=lambda _: _beside(service),
        exception_handlers={HTTPException: _framework, 500: _framework},
    )
    made.router.redirect_slashes = False
    made.add_middleware(_Watched, service=service, paths={path for _, path, _ in routes})
    return made


class _Endpoint:
    """An address of the service: takes a request within limits, and answers whatever happens."""

    def __init__(self, service: Service, path: str, method: str, answer: Answer) -> None:
        self._service = service
        self._path = path
        self._takes_body = method == "POST"
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = self._service
        visit = Visit(scope, receive, send, service.limits)
        scope["zveil.visit"] = visit
        service.traffic.running += 1
        try:
            if self._takes_body and service.traffic.running > service.limits.max_requests:
                raise refuse("busy")
            await self._answer(visit)
        except ProblemError as error:
            service.traffic.refused[error.problem.kind] += 1
            with contextlib.suppress(Gone):
                await visit.answer_problem(error.problem)
        except Gone:
            visit.cut_off()
        except asyncio.CancelledError:
            # The service is ending: what was decided was answered, and the rest is cut off.
            visit.cut_off()
            raise
        except Exception as error:  # whatever it is, nobody else may suffer
            place = _place(error)
            service.log.say("failed", route=self._path, error=type(error).__name__, place=place)
            with contextlib.suppress(Gone):
                await visit.answer_problem(Problem("failed"))
        finally:
            service.traffic.running -= 1


class _Watched:
    """Counts and logs requests; those of other parts of the application too."""

    def __init__(self, inner: Any, service: Service, paths: set[str]) -> None:
        self._inner = inner
        self._service = service
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        status = 0

        async def seen(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            await self._inner(scope, receive, seen)
        finally:
            route = scope["path"] if scope["path"] in self._paths else "other"
            visit: Visit | None = scope.get("zveil.visit")
            took_ms = round(1e3 * (loop.time() - began), 3)
            came, went = (0, 0) if visit is None else (visit.bytes_in, visit.bytes_out)
            self._service.traffic.answered(route, status, came, went)
            more: dict[str, Any] = {}
            if visit is not None:
                more = {"bytes_in": came, "bytes_out": went}
                if visit.token is not None and visit.token.name:
                    more["token"] = visit.token.name
                if visit.lines:
                    more |= {"lines": visit.lines, "bad": visit.bad}
                if not visit.is_over:
                    more["cut_off"] = True
            self._service.log.request(
                method=scope["method"] if scope["method"] in _METHODS else "other",
                route=route, status=status, ms=took_ms, **more,
            )  # fmt: skip


_METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"}


async def _framework(request: Request, error: Exception) -> Response:
    """Give what the framework has to say in the shape of all problems."""
    kinds = {404: "not-found", 405: "method", 413: "too-large", 415: "media-type"}
    status = error.status_code if isinstance(error, HTTPException) else 500
    kind = kinds.get(status, "bad-request" if status < 500 else "failed")
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    allow = {"allow": headers["Allow"]} if "Allow" in headers else {}
    problem = Problem(kind, headers=allow)
    found = {name.decode(): value.decode() for name, value in problem.head()}
    body = b"" if request.method == "HEAD" else problem.body
    return Response(body, problem.status, found)


@contextlib.asynccontextmanager
async def _beside(service: Service) -> AsyncIterator[None]:
    """Keep the state and the figures while the application runs."""

    async def keep() -> None:
        failed = False
        while True:
            try:
                await service.engine.keep()
                failed = False
            except OSError as error:
                if not failed:
                    service.log.say("saving failed", error=type(error).__name__)
                failed = True
            await asyncio.sleep(1)

    loop = asyncio.get_running_loop()
    task = loop.create_task(keep())
    # Where there is no such signal, or another thread has them, tokens are read at the start only.
    with contextlib.suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGHUP, _reload, service)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _reload(service: Service) -> None:
    """Read the tokens again."""
    if service.tokens is None:
        return
    try:
        service.tokens.reload()
    except ValueError as error:
        service.log.say("tokens not read", why=str(error))
    else:
        service.log.say("tokens read", count=len(service.tokens))


def _place(error: Exception) -> str:
    """Tell where in the program it happened, not what was said about it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    code = trace.tb_frame.f_code
    return f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
