"""What leaves of a message beside its value."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from zveil.engines.kafka.partition import Left
from zveil.engines.kafka.sending import Sending

MessageKey = Literal["released", "none", "source"]


@dataclass(frozen=True, kw_only=True)
class Leaving:
    """What leaves of a message beside its value.

    Parameters
    ----------
    key
        ``"released"``: the value that is released, as text; ``"source"``: the message's own.
    headers
        The names of the headers that leave as they are; None for all of them.
    timestamp
        Whether the message's own leaves; otherwise it is when the record was sent.
    step_ns
        What the time of sending is rounded down to.
    """

    key: MessageKey = "released"
    headers: frozenset[str] | None = frozenset()
    timestamp: bool = False
    step_ns: int | None = None

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing but values, and keys of them."""
        bare = not self.timestamp and not self.step_ns and self.key != "source"
        return bare and self.headers is not None and not self.headers

    def send(self, delivery: Sending, to: str, left: Left, messages: Sequence[Any]) -> None:
        """Send to a topic what is left of messages."""
        if self.is_plain:
            keys = left.keys if self.key == "released" else [None] * len(left.keys)
            delivery.send_all(to, left.records, keys)
            return
        now = time.time_ns()
        sent = 0 if self.step_ns is None else (now - now % self.step_ns) // 10**6
        for place, record, key in zip(left.places, left.records, left.keys, strict=True):
            source = messages[place]
            if self.key != "released":
                key = source.key() if self.key == "source" else None
            delivery.send(to, record, key, **self._beside(source, sent))

    def _beside(self, source: Any, sent: int) -> dict[str, Any]:
        more: dict[str, Any] = {}
        if self.timestamp:
            more["timestamp"] = source.timestamp()[1]
        elif sent:
            more["timestamp"] = sent
        if self.headers is None:
            more["headers"] = source.headers()
        elif self.headers:
            more["headers"] = [
                (name, value) for name, value in source.headers() or () if name in self.headers
            ]
        return more
