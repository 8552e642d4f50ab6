"""One worker of a consumer group: messages in, decided, what is safe out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from zveil._native import KafkaReader, MessageBatch
from zveil.engines.kafka.account import Account
from zveil.engines.kafka.assignment import Assignment
from zveil.engines.kafka.client import Clients, KafkaFailure, Report
from zveil.engines.kafka.delivery import delivery
from zveil.engines.kafka.intake import Intake
from zveil.engines.kafka.keying import Keying
from zveil.engines.kafka.leaving import Leaving
from zveil.engines.kafka.offsets import Offsets, Topic
from zveil.engines.kafka.partition import Partition, Recipe
from zveil.engines.kafka.sending import AbortedError

_POLL_S = 0.1
_TICK_S = 1.0


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
        The shortest time between two commits; that of the clients by default.
    once
        End where all partitions of this worker are decided to their end.
    is_keyed
        The topic is meant to be keyed by attribute: it is told where it is not.
    report
        Is told what is worth knowing: never a value, a key or an id.
    tell
        Is told which partitions this worker has; nobody by default.
    """

    def __init__(
        self,
        clients: Clients,
        recipe: Recipe,
        topic: Topic,
        to: str,
        leaving: Leaving,
        report: Report,
        *,
        every_s: float | None = None,
        once: bool = False,
        is_keyed: bool = True,
        tell: Report | None = None,
    ) -> None:
        self._topic = topic.name
        self._once = once
        self._report = report
        self._tell = tell
        self._share = ""
        self._is_asked = False
        self._is_over = False
        self._is_refused = False
        self._next_tick = 0.0
        self._consumer, native = clients.consumer(report, on_commit=self._committed)
        reader = KafkaReader(
            native, topic.name, headers=leaving.has_headers, timestamps=leaving.timestamp
        )
        self._delivery = delivery(
            clients,
            self._consumer,
            to,
            leaving,
            every_s=clients.every_s if every_s is None else every_s,
            report=report,
            is_stopped=lambda: self._is_asked,
        )
        offsets = Offsets(self._consumer, topic, recipe.span_ns, report)
        self._held = Assignment(
            self._consumer, reader, offsets, recipe, is_cooperative=clients.is_cooperative
        )
        self._intake = Intake(
            self._consumer, reader, self._held, topic.name, most=clients.most, report=report
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
            [self._topic],
            on_assign=lambda _, partitions: self._come(partitions),
            on_revoke=lambda _, partitions: self._go(partitions),
            on_lost=lambda _, partitions: self._lose(partitions),
        )
        try:
            while not self._is_asked and not self._is_done():
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
        batch = self._intake.batch(_POLL_S if wait_s is None else min(wait_s, _POLL_S))
        if batch is not None:
            self._take(batch)
        if self._is_refused:
            self._is_refused = False
            self._held.uncommitted()
            self._delivery.begin()
        if self._delivery.is_due:
            self._commit()
        if self._held.has_newer:
            self.account.drop(self._held.rewind())
        now = time.monotonic()
        if now >= self._next_tick:
            self._next_tick = now + _TICK_S
            self._look()

    def _look(self) -> None:
        """See how it goes, and say what is new."""
        self.account.lags = self._held.lags()
        if self._keying is not None:
            self._keying.warn()
        share = self._held.share()
        if self._tell is not None and share != self._share:
            self._share = share
            self._tell(f"{self._topic}: {share}")

    def _take(self, batch: MessageBatch) -> None:
        try:
            for held, start, end in self._intake.runs(batch):
                self._decide(held, batch, start, end)
        except AbortedError:
            self._delivery.abandon()
            # Some of these messages may not have been taken at all.
            self._undo(is_all=True)
            return
        self._delivery.serve()
        if len(batch):
            if self._keying is not None:
                self._keying.look(batch)
            self.account.latencies.add(batch.age_s)

    def _decide(self, held: Partition, batch: MessageBatch, start: int, end: int) -> None:
        witness = None if self._keying is None else self._keying.witness
        left = held.take(batch, start, end, witness)
        if left is None:
            return
        self._delivery.begin()
        if left.troubles:
            self._intake.tell(left.troubles, batch)
        self._delivery.send(left)

    def _commit(self, *, is_last: bool = False) -> None:
        try:
            is_kept = self._delivery.commit(self._held.to_commit(), is_last=is_last)
        except AbortedError:
            self._undo()
        else:
            if is_kept:
                self._held.committed()

    def _undo(self, *, is_all: bool = False) -> None:
        self._report(
            "a transaction was aborted: what is not committed is decided again, with what was seen "
            "before it"
        )
        self._held.aborted(is_all=is_all)

    def _committed(self, error: Any, partitions: Sequence[Any]) -> None:
        """Hear what became of offsets that were not waited for."""
        self._is_refused |= error is not None or any(each.error for each in partitions)

    def _come(self, partitions: list[Any]) -> None:
        self.account.drop(self._held.come(partitions))
        for each in partitions:
            held = self._held.held[each.partition]
            if held.is_replaying:
                self._report(
                    f"{self._topic}[{held.number}]: replaying offsets {held.position:,} to "
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

    def _is_done(self) -> bool:
        """Whether it was told to end with what is there, and all of that is decided and kept."""
        held = list(self._held.held.values())
        if not self._once or not held or not all(each.is_at_end for each in held):
            return False
        self._commit(is_last=True)
        return not self._held.has_newer and not self._held.to_commit()
