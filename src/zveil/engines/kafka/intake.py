"""Messages as the client hands them over: for which partition, and whether they are replayed."""

from __future__ import annotations

import bisect
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from zveil._native import problem_sentence
from zveil.engines.kafka.assignment import Assignment
from zveil.engines.kafka.client import KafkaFailure, Report
from zveil.engines.kafka.partition import Partition

_SHOWN = 10
# By the numbers of Kafka's protocol: an offset out of range, a topic that is not there, no right to
# read it; the negative one is the client's own, of the first.
_GONE = (1, 3, 29, -145)


class Batch(NamedTuple):
    """What has come in one go."""

    arrived: float
    """When its first message was there, by `time.perf_counter`."""
    messages: list[Any]
    ends: list[tuple[int, int]]
    """Partitions that were read to their end, and where that is."""


class Intake:
    """Takes what has come, and sorts it by the partitions of a worker.

    Parameters
    ----------
    consumer
        The client.
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
        self, consumer: Any, held: Assignment, topic: str, *, most: int, report: Report
    ) -> None:
        self._consumer = consumer
        self._held = held
        self._topic = topic
        self._most = most
        self._report = report
        self._shown = 0

    def batch(self, wait_s: float) -> Batch | None:
        """Wait for a message, and take what has come with it; None if there was none."""
        from confluent_kafka import Message

        first = self._consumer.poll(wait_s)
        if first is None:
            return None
        arrived = time.perf_counter()
        before = self._held.grants()
        messages = [first, *self._consumer.consume(self._most - 1, 0)]
        ends: list[tuple[int, int]] = []
        after = self._held.grants()
        if after != before:
            # Partitions were given out while these were fetched. What was fetched before that is
            # not theirs who have them now, and cannot be told from what was fetched behind it.
            moved = {number for number in after if after[number] != before.get(number)}
            messages = [each for each in messages if each.partition() not in moved]
            self._held.reread(moved)
        if any(map(Message.error, messages)):
            messages = self._good(messages, ends)
        return Batch(arrived, messages, ends)

    def runs(self, batch: Batch) -> Iterator[tuple[Partition, list[Any]]]:
        """Give messages of one partition after the other, what is replayed apart from the rest."""
        from confluent_kafka import Message

        messages = batch.messages
        if self._is_run(messages):
            yield from self._parts(messages[0].partition(), messages)
        else:
            start = 0
            for number, run in groupby(map(Message.partition, messages)):
                end = start + len(list(run))
                yield from self._parts(number, messages[start:end])
                start = end
        for number, end in batch.ends:
            held = self._held.held.get(number)
            if held is not None:
                held.is_at_end, held.end = True, end
                # Behind the last message may be marks of transactions.
                held.position = max(held.position, held.decided)

    def _is_run(self, messages: Sequence[Any]) -> bool:
        """Whether it is seen from both ends that all are of one partition.

        A worker that has one gets no others; and between the ends there are as many offsets as
        messages. To ask each of them takes as long as to decide some.
        """
        if not messages or len(self._held.held) > 1:
            return False
        first, last = messages[0], messages[-1]
        is_same: bool = first.partition() == last.partition()
        return is_same and last.offset() - first.offset() == len(messages) - 1

    def _parts(self, number: int, messages: list[Any]) -> Iterator[tuple[Partition, list[Any]]]:
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
                yield held, messages[:at]
            held.position = held.decided
            messages = messages[at:]
        yield held, messages

    def _good(self, messages: list[Any], ends: list[tuple[int, int]]) -> list[Any]:
        """Leave out what is no message but a word about a partition, such as its end."""
        from confluent_kafka import KafkaError

        found = []
        for each in messages:
            error = each.error()
            if error is None:
                found.append(each)
            elif error.code() == KafkaError._PARTITION_EOF:
                ends.append((each.partition(), each.offset()))
            elif error.code() in _GONE:
                raise KafkaFailure(f"{self._topic}: {error.str()}")
            elif not error.retriable():
                self._report(f"kafka: {error.str()}")
        return found

    def tell(self, troubles: Sequence[tuple[int, str, int]], messages: Sequence[Any]) -> None:
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
