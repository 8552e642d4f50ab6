"""Sockets that listen."""

from __future__ import annotations

import socket

from zveil.serve.settings import Listening

BACKLOG = 2048


class ListeningError(OSError):
    """The address cannot be listened on."""


def listen(listening: Listening, option: str = "--host, --port") -> socket.socket:
    """Open the socket; raises `ListeningError` with the option that named it."""
    host = "127.0.0.1" if listening.host.lower() == "localhost" else listening.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        opened = socket.create_server((host, listening.port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise ListeningError(f"{option}: cannot listen there: {words.lower()}") from None
    opened.setblocking(False)
    return opened


def url_of(opened: socket.socket, listening: Listening) -> str:
    """Give the address as it is typed."""
    host, port = opened.getsockname()[:2]
    scheme = "https" if listening.tls_cert else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
