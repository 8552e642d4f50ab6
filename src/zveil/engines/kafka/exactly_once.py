"""Records and offsets in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from zveil._native import Left
from zveil.engines.kafka.caller import Caller, StuckError
from zveil.engines.kafka.client import PARTITIONER, KafkaFailure
from zveil.engines.kafka.hashes import murmur2
from zveil.engines.kafka.sending import PATIENCE_S, AbortedError, Sending

_TRY_S = 5.0
# A call may take so much longer than it was told to before it is taken to be stuck.
_STUCK_S = 3 * _TRY_S
_FENCED = (
    "fenced: another worker has this one's --instance, or its transaction took longer than "
    "transaction.timeout.ms; what it did not commit is decided by others"
)
# From so many keys on, records are taken to be on every partition.
_MANY = 100
# What fails so often without anything between that does not is not going to succeed.
_MOST_FAILURES = 10


class ExactlyOnce(Sending):
    """Records and offsets in one transaction: readers of what is committed see each once."""

    def __init__(self, *made: Any) -> None:
        super().__init__(*made)
        self._caller = Caller()
        self._left: list[Any] = []
        self._is_open = False
        # Of the transaction that is open, or was last; None for any.
        self._keys: set[bytes | None] | None = set()
        self._offsets: list[Any] = []
        self._aborted = self._renewed = 0
        self._init()

    def begin(self) -> None:
        """Open a transaction, if none is."""
        super().begin()
        if not self._is_open:
            self._try(self.producer.begin_transaction)
            self._is_open = True
            self._keys, self._offsets = set(), []

    def send(self, left: Left) -> None:
        """Send what leaves of messages; waits where too many records are under way."""
        if self._keys is not None and len(left):
            self._note(left.keys if self._leaving.key == "released" else (None,))
        super().send(left)

    def commit(self, offsets: Sequence[Any], *, is_last: bool) -> bool:  # noqa: ARG002
        """Commit the transaction, with offsets in it: all at once, or nothing of it."""
        if not self._is_open:
            return True
        producer = self.producer
        try:
            if offsets:
                group, self._offsets = self._consumer.consumer_group_metadata(), list(offsets)
                sent = self._offsets
                self._try(lambda: producer.send_offsets_to_transaction(sent, group, _TRY_S))
            self._try(lambda: producer.commit_transaction(_TRY_S))
        except AbortedError:
            self.abandon()
            raise
        self._aborted = self._renewed = 0
        self._is_open = False
        self._done()
        return True

    def abandon(self) -> None:
        """Abort the transaction: nobody sees what was sent in it."""
        self._since = None
        if not self._is_open:
            return
        producer = self.producer
        try:
            self._try(lambda: producer.abort_transaction(_TRY_S))
        except AbortedError:
            if self.producer is producer:
                self._renew("a transaction could not be aborted")
        else:
            self._is_open = False
            self.aborts += 1
        self._aborted += 1
        if self._aborted >= _MOST_FAILURES:
            raise KafkaFailure(
                f"{_MOST_FAILURES} transactions failed in a row: a record may be larger than the "
                "topic takes, or the worker may not write to it"
            )

    def _note(self, keys: Iterable[bytes | None]) -> None:
        """Remember keys while they are few: to keep them all took a tenth of the time."""
        known = set() if self._keys is None else self._keys
        known.update(keys)
        self._keys = known if len(known) <= _MANY else None

    def _refused(self, error: Any) -> None:
        from confluent_kafka import KafkaError

        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            super()._refused(error)
        # The transaction has failed meanwhile.
        raise AbortedError

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
                if error.fatal():
                    is_fenced = error.code() in (
                        KafkaError._FENCED,
                        KafkaError.INVALID_PRODUCER_EPOCH,
                        KafkaError.PRODUCER_FENCED,
                    )
                    if is_fenced and self._clients.instance is not None:
                        raise KafkaFailure(_FENCED) from None
                    # Nobody else has a name that was drawn.
                    why = "a transaction took longer than transaction.timeout.ms"
                    self._renew(why if is_fenced else f"transaction: {error.str()}")
                    raise AbortedError from None
                if error.txn_requires_abort():
                    raise AbortedError from None
                is_over = time.monotonic() > until or self._is_stopped()
                if not error.retriable() or is_over:
                    raise KafkaFailure(f"transaction: {error.str()}") from None
            else:
                return

    def _renew(self, why: str) -> None:
        """Go on with another producer, which closes what this one has left open."""
        self._renewed += 1
        if self._renewed > _MOST_FAILURES:
            raise KafkaFailure(f"{why}: tried {_MOST_FAILURES} times")
        self._report(f"{why}: its transaction is closed, and another producer takes its place")
        # It may still be in a call: it goes when the program does.
        self._left.append(self.producer)
        was_open, self._is_open = self._is_open, False
        self.aborts += was_open
        self._caller = Caller()
        self._take(self._clients.producer(self._report))
        self._init()
        if was_open:
            # If that fails in a way that helps, a later producer has aborted all of it.
            with suppress(AbortedError):
                self._sweep()

    def _init(self) -> None:
        # If that fails in a way that helps, yet another producer has done it.
        with suppress(AbortedError):
            self._try(lambda: self.producer.init_transactions(_TRY_S))

    def _sweep(self) -> None:
        """Have all marked as aborted that this one's transactions have left open.

        A broker that was killed ends transactions before it knows again where partitions are. It
        takes them for deleted then, and leaves their marks out, though it tells that all is closed:
        what lies there would be seen with the next transaction that is committed, records and
        offsets each with one that happens to go to the same partition. So one is aborted first that
        goes where the last one went. What has its mark already is not touched by that.
        """
        from confluent_kafka import KafkaException

        producer, topic, offsets = self.producer, self._to, self._offsets
        self._try(producer.begin_transaction)
        try:
            if self._keys != set():
                known = producer.list_topics(topic, timeout=PATIENCE_S).topics[topic]
                for number in self._reached(len(known.partitions)):
                    producer.produce(topic, b"", b"", number)
            # What is still on its way would not be sent any more.
            producer.flush(PATIENCE_S)
        except KafkaException as found:
            raise KafkaFailure(f"transaction: {found.args[0].str()}") from None
        if offsets:
            group = self._consumer.consumer_group_metadata()
            # If the group does not take them, the transaction goes to its partition all the same.
            with suppress(AbortedError):
                self._try(lambda: producer.send_offsets_to_transaction(offsets, group, _TRY_S))
        if producer is self.producer:
            self._try(lambda: producer.abort_transaction(_TRY_S))

    def _reached(self, partitions: int) -> Iterable[int]:
        """Give the partitions that records of the last transaction may be on."""
        keys = self._keys
        is_known = self._clients.producer_settings()["partitioner"] == PARTITIONER
        if not is_known or keys is None or None in keys:
            return range(partitions)
        return {(murmur2(key) & 0x7FFFFFFF) % partitions for key in keys if key is not None}
