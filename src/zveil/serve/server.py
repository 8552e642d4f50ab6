"""The process: sockets, signals, and an end in order."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Iterator
from types import FrameType
from typing import Any

import uvicorn

from zveil.serve.app import Service
from zveil.serve.listening import BACKLOG, url_of
from zveil.serve.protocol import bounded
from zveil.serve.settings import Listening

# Files that are open besides connections.
_OTHER_FILES = 64


class Server(uvicorn.Server):
    """A server that ends in order when it is told to, and lets the caller save what there is."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take the signals that end it; a second one ends it at once."""
        taken = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in taken}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Begin to end, or end at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._service.is_ending = True


def serve(made: Any, service: Service, opened: socket.socket, listening: Listening) -> None:
    """Serve until a signal ends it; then what was accepted has been answered."""
    limits = service.limits
    _allow_files(limits.max_connections + _OTHER_FILES, service)
    service.log.take_over()
    config = uvicorn.Config(
        made,
        http=bounded(limits, service.traffic, service.log),
        ssl_certfile=listening.tls_cert,
        ssl_keyfile=listening.tls_key,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=max(round(limits.idle_s), 1),
        timeout_graceful_shutdown=max(round(limits.shutdown_s), 1),
        backlog=BACKLOG,
    )
    service.log.say("listening", url=url_of(opened, listening))
    Server(config, service).run(sockets=[opened])
    service.log.say("ended")


def _allow_files(wanted: int, service: Service) -> None:
    """Ask for as many open files as there may be connections."""
    try:
        import resource
    except ImportError:  # not on this system
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= wanted:
        return
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (OSError, ValueError):
        most = soft
    if most < wanted:
        service.log.say("few files", allowed=most, wanted=wanted)
