"""What bounds the service: how much, how many, how long."""

from __future__ import annotations

from dataclasses import dataclass

MAX_BODY = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a client may take up. Times are in seconds, sizes in bytes."""

    max_body: int = MAX_BODY
    """A request with more is refused, or cut off where it is."""
    max_requests: int = 256
    """Requests with a body that run at a time; more are refused."""
    max_connections: int = 4096
    """Connections open at a time; more are refused."""
    head_s: float = 10.0
    """How long the head of a request may take."""
    head_bytes: int = 32 << 10
    """How large it may be."""
    idle_s: float = 60.0
    """How long a body may pause, an answer be left unread, or a connection be without request."""
    request_s: float = 3600.0
    """How long a request may take."""
    shutdown_s: float = 10.0
    """How long running requests may go on when the service is told to end."""
    tick_s: float = 0.05
    """Answers to those who may not read are given at multiples of this after the end of their
    body, so that they do not tell how long deciding took."""


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Where the service listens."""

    host: str = "127.0.0.1"
    port: int = 8117
    tls_cert: str | None = None
    tls_key: str | None = None

    @property
    def is_safe(self) -> bool:
        """Whether nobody but this machine can connect."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Say whether an address or a name is this machine's own, whoever asks.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    import ipaddress

    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_own_name(header: bytes | None) -> bool:
    """Say whether a ``Host`` header names this machine's loopback.

    Without tokens nothing else is answered: a page in a browser could have a name of its own lead
    here, and read what it gets.

    >>> is_own_name(b"localhost:8117"), is_own_name(b"[::1]:8117"), is_own_name(b"a.example:8117")
    (True, True, False)
    """
    if not header:
        return False
    text = header.decode("latin-1")
    host = text.partition("]")[0] + "]" if text.startswith("[") else text.partition(":")[0]
    return is_loopback(host)
