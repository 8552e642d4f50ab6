"""Records on their way out, and when it is time to commit."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from zveil._native import KafkaWriter, Left
from zveil.engines.kafka.client import Clients, KafkaFailure, Made, Report
from zveil.engines.kafka.leaving import Leaving

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
    to, leaving
        The topic that records go to, and what leaves with them.
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
        to: str,
        leaving: Leaving,
        every_s: float,
        report: Report,
        is_stopped: Callable[[], bool],
    ) -> None:
        self.commits = 0
        self.aborts = 0
        self._clients = clients
        self._report = report
        self._to = to
        self._leaving = leaving
        self._take(clients.producer(report))
        self._consumer = consumer
        self._every_s = every_s
        self._is_stopped = is_stopped
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

    def send(self, left: Left) -> None:
        """Send what leaves of messages; waits where too many records are under way."""
        from confluent_kafka import KafkaError

        at, sent_ms, until = 0, self._leaving.sent_ms(), time.monotonic() + PATIENCE_S
        while True:
            count, code = self._writer.send(left, at, sent_ms=sent_ms)
            at += count
            if code is None:
                return
            if code != KafkaWriter.QUEUE_FULL:
                self._refused(KafkaError(code))
            if count:
                until = time.monotonic() + PATIENCE_S
            elif time.monotonic() > until:
                raise KafkaFailure(
                    f"records could not be sent for {PATIENCE_S:.0f} s: see whether the brokers "
                    "are there"
                )
            self.producer.poll(0.05)

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
        self.producer.poll(0)

    def _take(self, made: Made) -> None:
        """Go on with this producer."""
        self.producer, self._native = made
        self._writer = self._leaving.writer(self._native, self._to)

    def _refused(self, error: Any) -> None:
        """Raise what it means that the client does not even take a record."""
        raise KafkaFailure(f"a record could not be sent: {error.str()}")

    def _done(self) -> None:
        self._since = None
        self._last = time.monotonic()
        self.commits += 1
