"""Records on their way out, and when it is time to commit."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import length_hint
from typing import Any

from zveil.engines.kafka.client import Clients, KafkaFailure, Report

PATIENCE_S = 60.0
"""How long Kafka may take to answer before a worker gives up."""


class AbortedError(Exception):
    """What was decided since the last commit is not kept: it has to be decided again."""


class Sending(ABC):
    """Sends records; what becomes of them and of offsets is for those who derive from it.

    Parameters
    ----------
    clients
        How producers are made.
    consumer
        The client that messages come from.
    every_s
        The shortest time between two commits.
    report
        Is told what is worth knowing.
    is_stopped
        Whether someone asked to stop: then nothing is tried for long.
    """

    def __init__(
        self,
        clients: Clients,
        consumer: Any,
        every_s: float,
        report: Report,
        is_stopped: Callable[[], bool],
    ) -> None:
        self.commits = 0
        self.aborts = 0
        self._clients = clients
        self._report = report
        self._producer = self._made()
        self._consumer = consumer
        self._every_s = every_s
        self._is_stopped = is_stopped
        self._topic: str | None = None
        self._since: float | None = None
        self._last = 0.0

    def begin(self) -> None:
        """Be ready for records."""
        if self._since is None:
            self._since = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether it is time to commit."""
        wait_s = self.wait_s
        return wait_s is not None and wait_s <= 0

    @property
    def wait_s(self) -> float | None:
        """How long there is until then; None if there is nothing to commit."""
        if self._since is None:
            return None
        return max(self._last + self._every_s - time.monotonic(), 0.0)

    def send(self, topic: str, value: bytes, key: bytes | None = None, **more: Any) -> None:
        """Send a record; waits where too many are under way."""
        from confluent_kafka import KafkaException

        self._topic = topic
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._producer.produce(topic, value, key, **more)
            except BufferError:
                if time.monotonic() > until:
                    raise KafkaFailure(
                        f"records could not be sent for {PATIENCE_S:.0f} s: see whether the "
                        "brokers are there"
                    ) from None
                self._producer.poll(0.05)
            except KafkaException as found:
                self._refused(found.args[0])
            else:
                return

    def send_all(self, topic: str, values: Sequence[bytes], keys: Sequence[bytes | None]) -> None:
        """Send records with their keys: nothing is done for each but what the client needs."""
        from confluent_kafka import KafkaException

        self._topic = topic
        if len(values) != len(keys):
            raise ValueError(f"keys: expected {len(values)}, one for each record, got {len(keys)}")
        left = iter(values)
        # Not a loop of ours: even that is a part of what a record takes.
        sending = map(self._producer.produce, repeat(topic), left, keys)
        while True:
            try:
                deque(sending, maxlen=0)
            except BufferError:
                # The one that found no room is the last that was taken; those behind it wait.
                at = len(values) - length_hint(left) - 1
                self.send(topic, values[at], keys[at])
            except KafkaException as found:
                self._refused(found.args[0])
            else:
                return

    @abstractmethod
    def commit(self, offsets: Sequence[Any], *, is_last: bool) -> bool:
        """Keep how far it is decided; all records sent before are out then.

        False if they are not out yet, and it is worth to go on meanwhile; not if it is the last
        commit for some of the partitions.

        Raises
        ------
        AbortedError
            If nothing since the last commit is kept.
        KafkaFailure
            If there is no way to go on.
        """

    @abstractmethod
    def abandon(self) -> None:
        """Keep nothing of what was sent since the last commit, as far as that can be."""

    def serve(self) -> None:
        """Hear what became of records."""
        self._producer.poll(0)

    def _made(self) -> Any:
        return self._clients.producer(self._report)

    def _refused(self, error: Any) -> None:
        """Raise what it means that the client does not even take a record."""
        raise KafkaFailure(f"a record could not be sent: {error.str()}")

    def _done(self) -> None:
        self._since = None
        self._last = time.monotonic()
        self.commits += 1
