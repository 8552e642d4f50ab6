"""One worker of a consumer group: messages in, decided, what is safe out."""

from __future__ import annotations

import bisect
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from zveil._native import problem_sentence
from zveil.engines.kafka.account import Account
from zveil.engines.kafka.assignment import Assignment, Topic
from zveil.engines.kafka.client import Clients, KafkaFailure, Report
from zveil.engines.kafka.delivery import AbortedError, delivery
from zveil.engines.kafka.keying import Keying
from zveil.engines.kafka.partition import Left, Partition, Recipe

MessageKey = Literal["released", "none", "source"]

_POLL_S = 0.1
_TICK_S = 1.0
_SHOWN = 10
# By the numbers of Kafka's protocol: an offset out of range, a topic that is not there, no right to
# read it; the negative one is the client's own, of the first.
_GONE = (1, 3, 29, -145)


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


class Worker:
    """Takes messages of a topic, decides them, and sends what is released to another.

    Parameters
    ----------
    clients
        How the clients are made.
    recipe
        What partitions are made from.
    topic, to
        Where messages come from, and where they go to.
    leaving
        What leaves beside values.
    every_s
        The shortest time between two commits.
    most
        Messages that are decided in one go at the most.
    once
        End where all partitions of this worker are decided to their end.
    is_keyed
        The topic is meant to be keyed by attribute: it is told where it is not.
    report
        Is told what is worth knowing: never a value, a key or an id.
    """

    def __init__(
        self,
        clients: Clients,
        recipe: Recipe,
        topic: Topic,
        to: str,
        *,
        leaving: Leaving,
        every_s: float,
        most: int,
        once: bool = False,
        is_keyed: bool = True,
        report: Report,
    ) -> None:
        self._topic = topic
        self._to = to
        self._leaving = leaving
        self._most = most
        self._once = once
        self._report = report
        self._is_asked = False
        self._is_over = False
        self._shown = 0
        self._next_tick = 0.0
        self._is_refused = False
        self._consumer = clients.consumer(report, on_commit=self._committed)
        self._delivery = delivery(
            clients,
            self._consumer,
            every_s=every_s,
            report=report,
            is_stopped=lambda: self._is_asked,
        )
        self._held = Assignment(
            self._consumer,
            topic,
            recipe,
            is_cooperative=clients.is_cooperative,
            report=report,
        )
        self._keying = Keying(recipe, topic.name, report) if is_keyed else None
        self.account = Account(recipe.policy, self._held, self._delivery, self._keying)

    def stop(self) -> None:
        """Ask it to end; from a signal handler too."""
        self._is_asked = True

    def go(self) -> None:
        """Work until asked to stop.

        Raises
        ------
        KafkaFailure
            If it cannot go on.
        """
        self._consumer.subscribe(
            [self._topic.name],
            on_assign=lambda _, partitions: self._come(partitions),
            on_revoke=lambda _, partitions: self._go(partitions),
            on_lost=lambda _, partitions: self._lose(partitions),
        )
        try:
            while not self._is_asked and not (self._once and self._is_done()):
                self._step()
            self._commit(is_last=True)
            if self._keying is not None:
                self._keying.warn()
        except BaseException:
            self._abandon()
            raise
        finally:
            self._is_over = True
            self.account.stop()
            # Its partitions go to others at once, not after the session.
            self._consumer.close()

    def _step(self) -> None:
        wait_s = self._delivery.wait_s
        first = self._consumer.poll(_POLL_S if wait_s is None else min(wait_s, _POLL_S))
        if first is not None:
            arrived = time.perf_counter()
            messages = [first, *self._consumer.consume(self._most - 1, 0)]
            try:
                self._take(messages)
            except AbortedError:
                # Some of these messages may not have been taken at all.
                self._held.aborted(is_all=True)
            self._delivery.serve()
            self.account.latencies.add(time.perf_counter() - arrived)
        if self._is_refused:
            self._is_refused = False
            self._held.uncommitted()
            self._delivery.begin()
        if self._held.has_newer:
            self.account.drop(self._held.rewind())
        if self._delivery.is_due:
            self._commit()
        now = time.monotonic()
        if now >= self._next_tick:
            self._next_tick = now + _TICK_S
            self.account.lags = self._held.lags()
            if self._keying is not None:
                self._keying.warn()

    def _take(self, messages: list[Any]) -> None:
        from confluent_kafka import Message

        ended: list[int] = []
        if any(map(Message.error, messages)):
            messages = self._good(messages, ended)
        start = 0
        # Messages come in runs of one partition.
        for number, run in groupby(map(Message.partition, messages)):
            end = start + len(list(run))
            self._take_run(number, messages[start:end])
            start = end
        for number in ended:
            held = self._held.held.get(number)
            if held is not None:
                held.is_at_end = True
                # Behind the last message may be marks of transactions.
                held.position = max(held.position, held.decided)
        if self._keying is not None and messages:
            self._keying.look(messages)

    def _take_run(self, number: int, messages: list[Any]) -> None:
        """Take messages of one partition, those that are replayed apart from those behind them."""
        from confluent_kafka import Message

        held = self._held.held.get(number)
        if held is None or held.is_newer:
            return  # it has gone while they were on their way, or they come again
        if messages[0].offset() < held.position:
            at = bisect.bisect_left(messages, held.position, key=Message.offset)
            messages = messages[at:]
        if not messages:
            return
        if held.is_replaying and messages[-1].offset() >= held.decided:
            at = bisect.bisect_left(messages, held.decided, key=Message.offset)
            if at:
                self._decide(held, messages[:at])
            held.position = held.decided
            messages = messages[at:]
        self._decide(held, messages)

    def _decide(self, held: Partition, messages: list[Any]) -> None:
        from confluent_kafka import Message

        values = list(map(Message.value, messages))
        witness = None if self._keying is None else self._keying.witness
        left = held.take(values, messages[-1].offset() + 1, witness)
        if left is None:
            return
        self._delivery.begin()
        if left.troubles:
            self._tell(left.troubles, messages)
        self.account.bytes_in += sum(map(len, filter(None, values)))
        self.account.bytes_out += sum(map(len, left.records))
        leaving = self._leaving
        if leaving.is_plain:
            keys = left.keys if leaving.key == "released" else [None] * len(left.keys)
            self._delivery.send_all(self._to, left.records, keys)
        else:
            self._send_beside(left, messages)

    def _send_beside(self, left: Left, messages: Sequence[Any]) -> None:
        """Send records with what leaves beside them."""
        leaving = self._leaving
        now = time.time_ns()
        sent = 0 if leaving.step_ns is None else (now - now % leaving.step_ns) // 10**6
        for place, record, key in zip(left.places, left.records, left.keys, strict=True):
            source = messages[place]
            more: dict[str, Any] = {}
            if leaving.timestamp:
                more["timestamp"] = source.timestamp()[1]
            elif sent:
                more["timestamp"] = sent
            if leaving.headers is None:
                more["headers"] = source.headers()
            elif leaving.headers:
                more["headers"] = [
                    (name, value)
                    for name, value in source.headers() or ()
                    if name in leaving.headers
                ]
            if leaving.key != "released":
                key = source.key() if leaving.key == "source" else None
            self._delivery.send(self._to, record, key, **more)

    def _commit(self, *, is_last: bool = False) -> None:
        try:
            is_kept = self._delivery.commit(self._held.to_commit(), is_last=is_last)
        except AbortedError:
            self._report(
                "a transaction was aborted: what is not committed is decided again, with what was "
                "seen before it"
            )
            self._held.aborted()
        else:
            if is_kept:
                self._held.committed()

    def _committed(self, error: Any, partitions: Sequence[Any]) -> None:
        """Hear what became of offsets that were not waited for."""
        self._is_refused |= error is not None or any(each.error for each in partitions)

    def _come(self, partitions: list[Any]) -> None:
        self.account.drop(self._held.come(partitions))
        for each in partitions:
            held = self._held.held[each.partition]
            if held.is_replaying:
                self._report(
                    f"{self._topic.name}[{held.number}]: replaying offsets {held.position:,} to "
                    f"{held.decided:,}, then deciding"
                )

    def _go(self, partitions: list[Any]) -> None:
        """Give partitions away: what was decided is committed while they are still ours."""
        if not self._is_over:
            self._commit(is_last=True)
        self.account.drop(self._held.go(partitions))

    def _lose(self, partitions: list[Any]) -> None:
        """Others may have the partitions already: nothing that is not committed counts."""
        self._report("partitions were taken away: this worker was silent for too long")
        self._delivery.abandon()
        self._held.aborted()
        self.account.drop(self._held.go(partitions, is_lost=True))

    def _abandon(self) -> None:
        """End without keeping what is not committed, as far as that can be."""
        # It ends all the same, and what is open times out.
        with suppress(KafkaFailure, AbortedError):
            self._delivery.abandon()

    def _good(self, messages: list[Any], ended: list[int]) -> list[Any]:
        """Leave out what is no message but a word about a partition, such as its end."""
        from confluent_kafka import KafkaError

        found = []
        for each in messages:
            error = each.error()
            if error is None:
                found.append(each)
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.append(each.partition())
            elif error.code() in _GONE:
                raise KafkaFailure(f"{self._topic.name}: {error.str()}")
            elif not error.retriable():
                self._report(f"kafka: {error.str()}")
        return found

    def _is_done(self) -> bool:
        held = list(self._held.held.values())
        return bool(held) and all(each.is_at_end for each in held)

    def _tell(self, troubles: Sequence[tuple[int, str, int]], messages: Sequence[Any]) -> None:
        """Report bad messages: where they are and what is wrong, never what they hold."""
        for place, kind, column in troubles:
            self._shown += 1
            if self._shown <= _SHOWN:
                each = messages[place]
                self._report(
                    f"{each.topic()}[{each.partition()}]@{each.offset()}:{column}: "
                    f"{problem_sentence(kind)}"
                )
            elif self._shown == _SHOWN + 1:
                self._report("further bad messages are only counted")
