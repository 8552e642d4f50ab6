"""Which partitions a worker holds, and from where each is read."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from zveil.engines.kafka.client import KafkaFailure, Report
from zveil.engines.kafka.partition import Partition, Recipe, begin_of

Start = Literal["earliest", "latest"]

_ASK_S = 30.0


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


class Assignment:
    """The partitions of a worker, each with its gates.

    A partition that comes is read from where a replay has to begin. One that goes is kept for a
    moment: if it comes back before anyone has gone on with it, nothing has to be replayed.

    Parameters
    ----------
    consumer
        The client.
    topic
        What it is subscribed to.
    recipe
        What partitions are made from.
    is_cooperative
        Whether single partitions come and go.
    report
        Is told what is worth knowing.
    """

    def __init__(
        self,
        consumer: Any,
        topic: Topic,
        recipe: Recipe,
        *,
        is_cooperative: bool,
        report: Report,
    ) -> None:
        self.held: dict[int, Partition] = {}
        self.moves = 0
        self._consumer = consumer
        self._topic = topic
        self._recipe = recipe
        self._is_cooperative = is_cooperative
        self._report = report
        self._gone: dict[int, Partition] = {}

    def all(self) -> list[Partition]:
        """Give all partitions whose counts are not added up yet."""
        return [*self.held.values(), *self._gone.values()]

    def come(self, partitions: Sequence[Any]) -> list[Partition]:
        """Take partitions; gives those that were kept and are not needed any more."""
        self.moves += 1
        found = self._found(partitions)
        again = {each.number for each in found}
        dropped = [each for number, each in self._gone.items() if number not in again]
        dropped += [
            each for each in self._gone.values() if each.number in again and each not in found
        ]
        self._gone = {}
        self.held |= {each.number: each for each in found}
        offsets = self._offsets(found)
        if self._is_cooperative:
            self._consumer.incremental_assign(offsets)
        else:
            self._consumer.assign(offsets)
        return dropped

    def go(self, partitions: Sequence[Any], *, is_lost: bool = False) -> list[Partition]:
        """Give partitions away; what was lost may be decided by others already."""
        self.moves += 1
        numbers = [each.partition for each in partitions]
        gone = [self.held.pop(number) for number in numbers if number in self.held]
        kept = [] if is_lost else [each for each in gone if not each.is_newer]
        self._gone |= {each.number: each for each in kept}
        return [each for each in gone if each not in kept]

    def aborted(self, *, is_all: bool = False) -> None:
        """Take note that what was decided since the last commit is not kept."""
        for each in self.held.values():
            each.is_newer |= is_all or each.position > each.kept

    def rewind(self) -> list[Partition]:
        """Begin anew with what has seen too much, from what is committed; gives what was held."""
        old = [each for each in self.held.values() if each.is_newer]
        if not old:
            return old
        partitions = [self._at(each.number) for each in old]
        anew = self._found(partitions, anew=True)
        self.held |= {each.number: each for each in anew}
        if self._is_cooperative:
            self._consumer.incremental_unassign(partitions)
            self._consumer.incremental_assign(self._offsets(anew))
        else:
            self._consumer.assign(self._offsets(self.held.values()))
        return old

    @property
    def has_newer(self) -> bool:
        """Whether there is something to rewind."""
        return any(each.is_newer for each in self.held.values())

    def to_commit(self) -> list[Any]:
        """Give the offsets that are decided and not committed yet."""
        return [
            self._at(each.number, each.position, each.mark)
            for each in self.held.values()
            if each.position > each.kept and not each.is_newer
        ]

    def committed(self) -> None:
        """Take note that they are."""
        for each in self.held.values():
            each.kept = max(each.kept, each.position)

    def uncommitted(self) -> None:
        """Take note that some are not, though it was thought so: all are committed again."""
        for each in self.held.values():
            if each.position > each.decided:
                each.kept = min(each.kept, each.position - 1)

    def lags(self) -> dict[int, int]:
        """Tell how many messages of each partition are not decided yet, as far as it is known."""
        found = {}
        for number, each in list(self.held.items()):
            marks = self._consumer.get_watermark_offsets(self._at(number), cached=True)
            if marks is not None and marks[1] >= 0:
                found[number] = max(marks[1] - max(each.position, each.decided), 0)
        return found

    def _at(self, number: int, offset: int = -1001, mark: str | None = None) -> Any:
        from confluent_kafka import TopicPartition

        if mark is None:
            return TopicPartition(self._topic.name, number, offset)
        return TopicPartition(self._topic.name, number, offset, mark)

    def _offsets(self, partitions: Any) -> list[Any]:
        return [self._at(each.number, each.position) for each in partitions]

    def _found(self, partitions: Sequence[Any], *, anew: bool = False) -> list[Partition]:
        """Find out from where partitions are read; those that were kept go on."""
        if not partitions:
            return []
        found = []
        for told in _asked(lambda: self._consumer.committed(list(partitions), timeout=_ASK_S)):
            number = told.partition
            low, high = _asked(
                lambda told=told: self._consumer.get_watermark_offsets(told, timeout=_ASK_S)
            )
            kept = None if anew else self._gone.get(number)
            if kept is not None and _goes_on(kept, told.offset):
                found.append(kept)
                continue
            begin, decided = self._begin(told, low, high)
            found.append(self._recipe.partition(number, begin=begin, decided=decided))
        return found

    def _begin(self, told: Any, low: int, high: int) -> tuple[int, int]:
        """Give the offset that a partition is read from, and the first that is not decided."""
        where, name = f"{self._topic.name}[{told.partition}]", self._topic.start
        if told.offset < 0:
            if name == "earliest":
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

    def _before_now(self, told: Any) -> int:
        """Give an offset from which the last window is replayed, by the times of the messages.

        They need not be those of the events: so it is twice as long ago.
        """
        from confluent_kafka import TopicPartition

        since = int(time.time() * 1000) - 2 * self._recipe.span_ns // 10**6
        at = TopicPartition(told.topic, told.partition, max(since, 0))
        (found,) = _asked(lambda: self._consumer.offsets_for_times([at], timeout=_ASK_S))
        if found.offset >= 0:
            return int(found.offset)
        _, high = _asked(lambda: self._consumer.get_watermark_offsets(told, timeout=_ASK_S))
        return int(high)


def _goes_on(kept: Partition, committed: int) -> bool:
    """Whether a partition stands where its next messages are, and nobody has decided any since."""
    if kept.is_replaying:
        return False
    return kept.position == (kept.decided if committed < 0 else committed)


def _asked(call: Any) -> Any:
    """Ask Kafka something, for as long as it may take."""
    from confluent_kafka import KafkaException

    until = time.monotonic() + 2 * _ASK_S
    while True:
        try:
            answer = call()
        except KafkaException as found:
            error = found.args[0]
            if time.monotonic() > until or error.fatal():
                raise KafkaFailure(f"Kafka does not tell its offsets: {error.str()}") from None
            time.sleep(0.1)
        else:
            if answer is not None:
                return answer
            raise KafkaFailure("Kafka does not tell its offsets in time")
