"""What is decided goes out, and how far it is decided is kept: together, or one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from zveil.engines.kafka.caller import Caller, StuckError
from zveil.engines.kafka.client import Clients, KafkaFailure, Report

PATIENCE_S = 60.0
"""How long Kafka may take to answer before a worker gives up."""

_TRY_S = 5.0
# For so long more is decided while records are on their way; so often it is asked whether they are.
_LATE_S = 1.0
_AGAIN_S = 0.01
# A call may take so much longer than it was told to before it is taken to be stuck.
_STUCK_S = 3 * _TRY_S
_FENCED = (
    "fenced: another worker has this one's --instance, or its transaction took longer than "
    "transaction.timeout.ms; what it did not commit is decided by others"
)
# A transaction that fails so often without any between that does not is not going to succeed.
_MOST_ABORTS = 10


class AbortedError(Exception):
    """What was decided since the last commit is not kept: it has to be decided again."""


class Deliver(Protocol):
    """How records and offsets go out."""

    commits: int
    aborts: int

    def send(self, topic: str, value: bytes, key: bytes | None = None, **more: Any) -> None:
        """Send a record; by name its timestamp and headers."""

    def send_all(self, topic: str, values: Sequence[bytes], keys: Sequence[bytes | None]) -> None:
        """Send records with their keys."""

    def begin(self) -> None:
        """Be ready for records."""

    def serve(self) -> None:
        """Hear what became of records."""

    @property
    def is_due(self) -> bool:
        """Whether it is time to commit."""

    @property
    def wait_s(self) -> float | None:
        """How long there is until then; None if there is nothing to commit."""

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

    def abandon(self) -> None:
        """Keep nothing of what was sent since the last commit, as far as that can be."""


def delivery(
    clients: Clients,
    consumer: Any,
    *,
    every_s: float,
    report: Report,
    is_stopped: Callable[[], bool],
) -> Deliver:
    """Make it.

    Parameters
    ----------
    clients
        How producers are made, and for which kind of it.
    consumer
        The client that messages come from.
    every_s
        The shortest time between two commits.
    report
        Is told what is worth knowing.
    is_stopped
        Whether someone asked to stop: then nothing is tried for long.
    """
    make = ExactlyOnce if clients.delivery == "exactly-once" else AtLeastOnce
    return make(clients, consumer, every_s, report, is_stopped)


class _Timed:
    """When to commit."""

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
        self._producer = clients.producer(report, on_delivery=self._sent)
        self._consumer = consumer
        self._every_s = every_s
        self._is_stopped = is_stopped
        self._since: float | None = None
        self._last = 0.0
        self._failed: Any = None

    def begin(self) -> None:
        if self._since is None:
            self._since = time.monotonic()

    @property
    def is_due(self) -> bool:
        wait_s = self.wait_s
        return wait_s is not None and wait_s <= 0

    @property
    def wait_s(self) -> float | None:
        if self._since is None:
            return None
        return max(self._last + self._every_s - time.monotonic(), 0.0)

    def send(self, topic: str, value: bytes, key: bytes | None = None, **more: Any) -> None:
        """Send a record; waits where too many are under way."""
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
            else:
                return

    def send_all(self, topic: str, values: Sequence[bytes], keys: Sequence[bytes | None]) -> None:
        """Send records with their keys: nothing is done for each but what the client needs."""
        produce = self._producer.produce
        for value, key in zip(values, keys, strict=True):
            try:
                produce(topic, value, key)
            except BufferError:
                self.send(topic, value, key)

    def serve(self) -> None:
        """Hear what became of records."""
        self._producer.poll(0)

    def _sent(self, error: Any, _: Any) -> None:
        if error is not None:
            self._failed = error

    def _done(self) -> None:
        self._since = None
        self._last = time.monotonic()
        self.commits += 1


class ExactlyOnce(_Timed):
    """Records and offsets in one transaction: readers of what is committed see each once."""

    def __init__(self, *made: Any) -> None:
        super().__init__(*made)
        self._caller = Caller()
        self._left: list[Any] = []
        self._is_open = False
        self._fruitless = 0
        self._try(lambda: self._producer.init_transactions(_TRY_S))

    def begin(self) -> None:
        """Open a transaction, if none is."""
        super().begin()
        if not self._is_open:
            self._try(self._producer.begin_transaction)
            self._is_open = True

    def commit(self, offsets: Sequence[Any], *, is_last: bool) -> bool:  # noqa: ARG002
        """Commit the transaction, with offsets in it: all at once, or nothing of it."""
        if not self._is_open:
            return True
        producer = self._producer
        try:
            if offsets:
                group, sent = self._consumer.consumer_group_metadata(), list(offsets)
                self._try(lambda: producer.send_offsets_to_transaction(sent, group, _TRY_S))
            self._try(lambda: producer.commit_transaction(_TRY_S))
        except AbortedError:
            self.abandon()
            self._fruitless += 1
            if self._fruitless >= _MOST_ABORTS:
                raise KafkaFailure(
                    f"{_MOST_ABORTS} transactions failed in a row: a record may be larger than the "
                    "topic takes, or the worker may not write to it"
                ) from None
            raise
        self._fruitless = 0
        self._is_open = False
        self._done()
        return True

    def abandon(self) -> None:
        """Abort the transaction: nobody sees what was sent in it."""
        self._since = None
        if self._is_open:
            self._is_open = False
            self.aborts += 1
            with suppress(AbortedError):
                self._try(lambda: self._producer.abort_transaction(_TRY_S))

    def _try(self, call: Callable[[], Any]) -> None:
        """Do a step of a transaction, again where that helps."""
        from confluent_kafka import KafkaError, KafkaException

        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._caller.call(call, _STUCK_S)
            except StuckError:
                # Its coordinator came back, and it has not noticed.
                self._renew("Kafka does not answer this producer any more")
                raise AbortedError from None
            except KafkaException as found:
                error = found.args[0]
                if error.fatal() and error.code() in (
                    KafkaError._FENCED,
                    KafkaError.INVALID_PRODUCER_EPOCH,
                    KafkaError.PRODUCER_FENCED,
                ):
                    if self._clients.instance is not None:
                        raise KafkaFailure(_FENCED) from None
                    # Nobody else has a name that was drawn.
                    self._renew("a transaction took longer than transaction.timeout.ms")
                    raise AbortedError from None
                if error.txn_requires_abort():
                    raise AbortedError from None
                is_over = time.monotonic() > until or self._is_stopped()
                if error.fatal() or not error.retriable() or is_over:
                    raise KafkaFailure(f"transaction: {error.str()}") from None
            else:
                return

    def _renew(self, why: str) -> None:
        """Go on with another producer, which closes what this one has left open."""
        self._report(f"{why}: its transaction is closed, and another producer takes its place")
        # It may still be in a call: it goes when the program does.
        self._left.append(self._producer)
        if len(self._left) > _MOST_ABORTS:
            raise KafkaFailure(f"{why}: tried {_MOST_ABORTS} times")
        self._is_open = False
        self.aborts += 1
        self._caller = Caller()
        self._producer = self._clients.producer(self._report, on_delivery=self._sent)
        self._try(lambda: self._producer.init_transactions(_TRY_S))


class AtLeastOnce(_Timed):
    """Records go out at once, and offsets behind them: after a failure some come again."""

    def __init__(self, *made: Any) -> None:
        super().__init__(*made)
        self._late: float | None = None

    def commit(self, offsets: Sequence[Any], *, is_last: bool) -> bool:
        """Commit offsets once records are out; waits for them only at the end, or after long."""
        now = time.monotonic()
        if len(self._producer) and not is_last and now < (self._late or now + _LATE_S):
            self._check()
            self._late = self._late or now + _LATE_S
            self._last = now - self._every_s + _AGAIN_S
            return False
        until = now + PATIENCE_S
        while self._producer.flush(1.0):
            self._check()
            if time.monotonic() > until or self._is_stopped():
                raise KafkaFailure("records could not be sent: see whether the brokers are there")
        self._check()
        self._late = None
        if offsets and not self._keep(list(offsets), is_last=is_last):
            self._last = time.monotonic()
            return False
        self._done()
        return True

    def _keep(self, offsets: list[Any], *, is_last: bool) -> bool:
        """Commit offsets; false if the group is just being shared out anew."""
        from confluent_kafka import KafkaError, KafkaException

        try:
            self._consumer.commit(offsets=offsets, asynchronous=not is_last)
        except KafkaException as found:
            error = found.args[0]
            moved = (
                KafkaError.ILLEGAL_GENERATION,
                KafkaError.UNKNOWN_MEMBER_ID,
                KafkaError.REBALANCE_IN_PROGRESS,
                KafkaError._ASSIGNMENT_LOST,
            )
            # Whoever has the partition now decides again what was not committed.
            if error.code() not in moved and not error.retriable():
                raise KafkaFailure(f"offsets could not be committed: {error.str()}") from None
            return False
        return True

    def abandon(self) -> None:
        """Commit nothing; what was sent is out."""
        self._since = None

    def _check(self) -> None:
        if self._failed is not None:
            raise KafkaFailure(f"a record could not be sent: {self._failed.str()}")
