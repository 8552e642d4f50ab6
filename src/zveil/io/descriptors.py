"""File descriptors: what is there now, and pipes that hold more."""

import contextlib
import os
import select
import signal
import sys
import time

if sys.platform != "win32":
    import fcntl

PIPE_BYTES = 1 << 20

_wakers: list[int] = []


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


def wake_by_signals() -> None:
    """Let signals end every wait for input; to be called once, in the main thread.

    Python runs a handler between two steps of its own: one for a signal that came just before a
    blocking read would run only after it, which in an idle pipe may be never.
    """
    if not _wakers and hasattr(select, "poll"):
        reader, writer = (_beyond_standard(end) for end in os.pipe())
        for end in (reader, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        _wakers.append(reader)


def _beyond_standard(descriptor: int) -> int:
    """Move it past the standard ones: if one of them is closed, a new one takes its place."""
    if sys.platform == "win32" or descriptor > 2:
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return moved


def wait_readable(descriptor: int, seconds: float | None = None) -> bool:
    """Wait until a read would return at once, if signals are to end that; else leave it to read.

    Parameters
    ----------
    seconds
        How long to wait at the most; whether it is readable then.
    """
    if seconds is None and not _wakers:
        return True
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    for each in (descriptor, *_wakers):
        poll.register(each, select.POLLIN)
    ends = None if seconds is None else time.monotonic() + seconds
    while True:
        left = None if ends is None else max(ends - time.monotonic(), 0) * 1000
        found = dict(poll.poll(left))
        if descriptor in found or not found:
            return descriptor in found
        with contextlib.suppress(BlockingIOError):
            os.read(_wakers[0], 4096)


def wait_writable(descriptor: int) -> None:
    """Wait until a write would take something, or fail."""
    _poll(descriptor, "POLLOUT", None)


def _poll(descriptor: int, event: str, timeout_ms: int | None) -> bool:
    if not hasattr(select, "poll"):  # Windows: only sockets can be asked
        return False
    poll = select.poll()
    poll.register(descriptor, getattr(select, event))
    return bool(poll.poll(timeout_ms))
