"""What leaves of a message beside its value."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

from zveil._native import KafkaClient, KafkaWriter

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
    def has_headers(self) -> bool:
        """Whether any header may leave."""
        return self.headers is None or bool(self.headers)

    def writer(self, client: KafkaClient, topic: str) -> KafkaWriter:
        """Make what sends records to a topic."""
        headers = None if self.headers is None else sorted(self.headers)
        return KafkaWriter(client, topic, key=self.key, headers=headers, timestamps=self.timestamp)

    def sent_ms(self) -> int | None:
        """Give the time of sending where it is rounded; None where that is left to the client."""
        if self.step_ns is None:
            return None
        now = time.time_ns()
        return (now - now % self.step_ns) // 10**6
