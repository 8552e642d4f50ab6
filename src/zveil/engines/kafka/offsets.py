"""How far partitions are decided, and from where they are read: asked of Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from zveil.engines.kafka.client import KafkaFailure, Report
from zveil.engines.kafka.past import begin_of

Start = Literal["earliest", "latest"]

_ASK_S = 30.0
_TELL_S = 2.0
_PATIENCE_S = 60.0
_AGAIN_S = 0.1


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic, and how one begins with it.

    Parameters
    ----------
    name
        Its own.
    start
        Where a group begins that has decided nothing yet.
    """

    name: str
    start: Start = "earliest"


class Offsets:
    """Where the partitions of a topic stand.

    Parameters
    ----------
    consumer
        The client.
    topic
        What is asked about.
    span_ns
        How far back in the time of events anything matters.
    report
        Is told what is worth knowing.
    """

    def __init__(self, consumer: Any, topic: Topic, span_ns: int, report: Report) -> None:
        self._consumer = consumer
        self._topic = topic
        self._span_ns = span_ns
        self._report = report

    def at(self, number: int, offset: int = -1001, mark: str | None = None) -> Any:
        """Name a partition, an offset of it, and what goes with that when it is committed."""
        from confluent_kafka import TopicPartition

        if mark is None:
            return TopicPartition(self._topic.name, number, offset)
        return TopicPartition(self._topic.name, number, offset, mark)

    def committed(self, partitions: Sequence[Any]) -> list[Any]:
        """Ask how far partitions are decided; waits while a transaction leaves that open.

        Raises
        ------
        KafkaFailure
            If it is not told in time: nothing may be decided then.
        """
        from confluent_kafka import KafkaException

        def ask() -> list[Any]:
            # The client waits by itself for what a transaction comes to, but does not tell.
            found: list[Any] = self._consumer.committed(list(partitions), timeout=_TELL_S)
            for each in found:
                # Its offset would be one as if there were none: all would be decided again.
                if each.error is not None:
                    raise KafkaException(each.error)
            return found

        answer: list[Any] = self._asked(
            ask,
            f"{self._topic.name}: Kafka does not tell yet how far it is decided; if another worker "
            "has left a transaction open, what that comes to is waited for",
        )
        return answer

    def begin(self, told: Any) -> tuple[int, int]:
        """Give the offset that a partition is read from, and the first that is not decided."""
        low, high = self._ends(told)
        where = f"{self._topic.name}[{told.partition}]"
        if told.offset < 0:
            if self._topic.start == "earliest":
                return low, low
            return max(self._before_now(told), low), high
        if told.offset > high:
            raise KafkaFailure(
                f"{where}: the group has decided more than there is; if the topic was made anew, "
                "take another --group, or reset this one's offsets"
            )
        decided = max(told.offset, low)
        if decided > told.offset:
            self._report(
                f"warning: {where}: {low - told.offset:,} messages were deleted before they were "
                "decided; let the topic keep them for longer"
            )
        begin = begin_of(told.metadata, told.offset)
        if begin is None:
            self._report(
                f"{where}: the committed offset does not tell where to begin; all that is left of "
                "the partition before it is replayed"
            )
            begin = low
        elif begin < low:
            self._report(
                f"warning: {where}: some of the last window was deleted; until it has passed, more "
                "is veiled than would be. Let the topic keep at least the window and the lateness"
            )
        return max(begin, low), decided

    def behind(self, number: int) -> int | None:
        """Give the end of a partition as the client last heard of it; None if it did not."""
        ends = self._consumer.get_watermark_offsets(self.at(number), cached=True)
        return None if ends is None or ends[1] < 0 else int(ends[1])

    def _ends(self, told: Any) -> tuple[int, int]:
        low, high = self._asked(lambda: self._consumer.get_watermark_offsets(told, timeout=_ASK_S))
        return int(low), int(high)

    def _before_now(self, told: Any) -> int:
        """Give an offset from which the last window is replayed, by the times of the messages.

        They need not be those of the events: so it is twice as long ago.
        """
        from confluent_kafka import KafkaException

        since = int(time.time() * 1000) - 2 * self._span_ns // 10**6

        def ask() -> Any:
            at = self.at(told.partition, max(since, 0))
            (found,) = self._consumer.offsets_for_times([at], timeout=_ASK_S)
            if found.error is not None:
                raise KafkaException(found.error)
            return found

        found = self._asked(ask)
        return int(found.offset) if found.offset >= 0 else self._ends(told)[1]

    def _asked(self, call: Callable[[], Any], waiting: str | None = None) -> Any:
        """Ask Kafka something, for as long as it may take; the first time that fails it is told."""
        from confluent_kafka import KafkaException

        until, words = time.monotonic() + _PATIENCE_S, "there is no answer"
        while True:
            try:
                answer = call()
            except KafkaException as found:
                error = found.args[0]
                words = error.str()
                if error.fatal():
                    until = 0.0
            else:
                if answer is not None:
                    return answer
            if time.monotonic() > until:
                raise KafkaFailure(f"Kafka does not tell its offsets: {words}")
            if waiting is not None:
                self._report(waiting)
                waiting = None
            time.sleep(_AGAIN_S)
