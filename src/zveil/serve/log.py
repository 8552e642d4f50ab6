"""The log of the service: a line of JSON for each request, with no word of what was in it."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TextIO

_MOST_A_SECOND = 200


class Log:
    """Writes lines of JSON; where many come, some are only counted.

    Neither addresses of clients nor queries nor bodies are in it, and a path only if it is one that
    the service has.

    Parameters
    ----------
    stream
        Where to; standard error by default.
    requests
        Whether each request is told.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        requests: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream or sys.stderr
        self._tells_requests = requests
        self._clock = clock
        self._lock = threading.Lock()
        self._second = 0
        self._count = self._left_out = 0

    def say(self, event: str, **more: Any) -> None:
        """Write a line."""
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": moment.replace("+00:00", "Z"), "event": event, **more})
        with self._lock:
            try:
                self._stream.write(line + "\n")
                self._stream.flush()
            except (OSError, ValueError):
                # The service goes on where nobody listens any more.
                return

    def request(self, **more: Any) -> None:
        """Write a line about a request; past 200 a second they are counted."""
        if not self._tells_requests:
            return
        second = int(self._clock())
        if second != self._second:
            left_out, self._left_out = self._left_out, 0
            self._second, self._count = second, 0
            if left_out:
                self.say("requests left out", count=left_out)
        self._count += 1
        if self._count > _MOST_A_SECOND:
            self._left_out += 1
            return
        self.say("request", **more)

    def take_over(self) -> None:
        """Let the libraries log here: what kind of thing happened, and nothing they quote."""
        handler = _Handler(self)
        for name in _LIBRARIES:
            logger = logging.getLogger(name)
            logger.handlers = [] if "." in name else [handler]
            logger.propagate = "." in name
            logger.setLevel(logging.WARNING)


_LIBRARIES = (
    "uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "nicegui", "socketio", "engineio",
)  # fmt: skip


class _Handler(logging.Handler):
    """Passes on where a message of a library comes from, not what it says."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        kind = record.exc_info[0] if record.exc_info else None
        self._log.say(
            "library",
            level=record.levelname.lower(),
            place=f"{record.name}:{record.lineno}",
            **({} if kind is None else {"error": kind.__name__}),
        )
