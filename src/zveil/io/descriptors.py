"""File descriptors: what is there now, and pipes that hold more."""

import contextlib
import select
import sys

if sys.platform != "win32":
    import fcntl

PIPE_BYTES = 1 << 20


def enlarge(descriptor: int) -> None:
    """Let a pipe hold 1 MiB, where the system allows it; anything else stays as it is.

    Fewer and larger reads and writes: a pipe holds 64 KiB otherwise.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            if fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ) < PIPE_BYTES:
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def is_readable(descriptor: int, timeout_ms: int | None = 0) -> bool:
    """Whether a read would return at once: data is there, or the end, or an error.

    Parameters
    ----------
    timeout_ms
        How long to wait for that; None for as long as it takes.
    """
    return _poll(descriptor, "POLLIN", timeout_ms)


def wait_writable(descriptor: int) -> None:
    """Wait until a write would take something, or fail."""
    _poll(descriptor, "POLLOUT", None)


def _poll(descriptor: int, event: str, timeout_ms: int | None) -> bool:
    if not hasattr(select, "poll"):  # Windows: only sockets can be asked
        return False
    poll = select.poll()
    poll.register(descriptor, getattr(select, event))
    return bool(poll.poll(timeout_ms))
