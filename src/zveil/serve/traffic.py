"""What goes over the wire, in counts."""

from __future__ import annotations

import threading
from collections import Counter


class Traffic:
    """Counts requests and connections; read by `/metrics`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.requests: Counter[tuple[str, int]] = Counter()
        """Requests answered, by route and status; 0 for those who left before."""
        self.refused: Counter[str] = Counter()
        """Requests and connections that were turned away or cut off, by the kind of problem."""
        self.bytes_in = 0
        self.bytes_out = 0
        self.running = 0
        """Requests now running."""
        self.connections = 0
        """Connections now open."""

    def answered(self, route: str, status: int, bytes_in: int, bytes_out: int) -> None:
        """Count a request."""
        with self._lock:
            self.requests[route, status] += 1
            self.bytes_in += bytes_in
            self.bytes_out += bytes_out
