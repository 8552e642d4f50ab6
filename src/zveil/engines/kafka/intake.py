"""Messages as the client hands them over: for which partition, and whether they are replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from zveil._native import KafkaReader, MessageBatch, problem_sentence
from zveil.engines.kafka.assignment import Assignment
from zveil.engines.kafka.client import KafkaFailure, Report
from zveil.engines.kafka.partition import Partition

_SHOWN = 10
# By the numbers of Kafka's protocol: an offset out of range, a topic that is not there, no right to
# read it; the negative one is the client's own, of the first.
_GONE = (1, 3, 29, -145)


class Intake:
    """Takes what has come, and sorts it by the partitions of a worker.

    Parameters
    ----------
    consumer
        The client.
    reader
        Takes its messages.
    held
        The partitions.
    topic
        The name of what is read.
    most
        Messages of one batch at the most.
    report
        Is told what is worth knowing.
    """

    def __init__(
        self,
        consumer: Any,
        reader: KafkaReader,
        held: Assignment,
        topic: str,
        *,
        most: int,
        report: Report,
    ) -> None:
        self._consumer = consumer
        self._reader = reader
        self._held = held
        self._topic = topic
        self._most = most
        self._report = report
        self._shown = 0

    def batch(self, wait_s: float) -> MessageBatch | None:
        """Wait for a message, and take what has come with it; None if there was none.

        Before that everything else is heard: partitions that come or go, and answers. So none
        moves between the first message of a batch and the last, and what was fetched before
        one came is not among them.
        """
        # Without partitions there are no messages to wait for.
        word = self._consumer.poll(0 if self._held.held else wait_s)
        if word is not None:
            error = word.error()
            if error is not None:
                self._wrong(error.code(), error.str())
            else:
                # It is not where messages are taken from: then all behind it have to come again.
                self._held.reread(word.partition())
        batch = self._reader.batch(wait_s if self._held.held else 0, self._most)
        for code, words in () if batch is None else batch.errors:
            self._wrong(code, words)
        return batch

    def runs(self, batch: MessageBatch) -> Iterator[tuple[Partition, int, int]]:
        """Give messages of one partition after the other, what is replayed apart from the rest."""
        for number, start, end in batch.runs():
            yield from self._parts(batch, number, start, end)
        for number, behind in batch.ends:
            held = self._held.held.get(number)
            if held is not None:
                held.is_at_end, held.end = True, behind
                # Behind the last message may be marks of transactions.
                held.position = max(held.position, held.decided)

    def _parts(
        self, batch: MessageBatch, number: int, start: int, end: int
    ) -> Iterator[tuple[Partition, int, int]]:
        held = self._held.held.get(number)
        if held is None or held.is_newer:
            return  # it has gone while they were on their way, or they come again
        start = batch.first_at(start, end, held.position)
        if start == end:
            return
        if held.is_replaying and batch.offset(end - 1) >= held.decided:
            at = batch.first_at(start, end, held.decided)
            if at > start:
                yield held, start, at
            held.position = held.decided
            start = at
        yield held, start, end

    def _wrong(self, code: int, words: str) -> None:
        if code in _GONE:
            raise KafkaFailure(f"{self._topic}: {words}")
        self._report(f"kafka: {words}")

    def tell(self, troubles: Sequence[tuple[int, str, int]], messages: MessageBatch) -> None:
        """Report bad messages: where they are and what is wrong, never what they hold."""
        for place, kind, column in troubles:
            self._shown += 1
            if self._shown <= _SHOWN:
                where = f"{self._topic}[{messages.partition(place)}]@{messages.offset(place)}"
                self._report(f"{where}:{column}: {problem_sentence(kind)}")
            elif self._shown == _SHOWN + 1:
                self._report("further bad messages are only counted")
