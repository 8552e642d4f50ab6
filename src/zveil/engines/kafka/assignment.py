"""Which partitions a worker holds, and where each of them stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from zveil._native import KafkaReader
from zveil.engines.kafka.offsets import Offsets
from zveil.engines.kafka.partition import Partition, Recipe


class Assignment:
    """The partitions of a worker, each with its gates.

    A partition that comes is read from where a replay has to begin. One that goes is kept for a
    moment: if it comes back before anyone has gone on with it, nothing has to be replayed.

    Parameters
    ----------
    consumer
        The client.
    reader
        Takes its messages.
    offsets
        Tells where partitions stand.
    recipe
        What partitions are made from.
    is_cooperative
        Whether single partitions come and go.
    """

    def __init__(
        self,
        consumer: Any,
        reader: KafkaReader,
        offsets: Offsets,
        recipe: Recipe,
        *,
        is_cooperative: bool,
    ) -> None:
        self.held: dict[int, Partition] = {}
        self.moves = 0
        self._consumer = consumer
        self._reader = reader
        self._offsets = offsets
        self._recipe = recipe
        self._is_cooperative = is_cooperative
        self._gone: dict[int, Partition] = {}

    def all(self) -> list[Partition]:
        """Give all partitions whose counts are not added up yet."""
        return [*self.held.values(), *self._gone.values()]

    def come(self, partitions: Sequence[Any]) -> list[Partition]:
        """Take partitions; gives those that were kept and are not needed any more."""
        self.moves += 1
        found = []
        for told in self._offsets.committed(partitions) if partitions else ():
            kept = self._gone.get(told.partition)
            if kept is not None and _goes_on(kept, told.offset):
                found.append(kept)
            else:
                found.append(self._anew(told))
        dropped = [each for each in self._gone.values() if each not in found]
        self._gone = {}
        self.held |= {each.number: each for each in found}
        self._read(found, is_new=True)
        return dropped

    def go(self, partitions: Sequence[Any], *, is_lost: bool = False) -> list[Partition]:
        """Give partitions away; what was lost may be decided by others already."""
        self.moves += 1
        numbers = [each.partition for each in partitions]
        gone = [self.held.pop(number) for number in numbers if number in self.held]
        kept = [] if is_lost else [each for each in gone if not each.is_newer]
        self._gone |= {each.number: each for each in kept}
        self._reader.attend(sorted(self.held))
        return [each for each in gone if each not in kept]

    def reread(self, number: int) -> None:
        """Have a partition read again from where it stands."""
        if number in self.held:
            self._read([self.held[number]])

    def aborted(self, *, is_all: bool = False) -> None:
        """Take note that what was decided since the last commit is not kept."""
        for each in self.held.values():
            each.is_newer |= is_all or each.position > each.kept

    def rewind(self) -> list[Partition]:
        """Begin anew with what has seen too much, from what is committed; gives what was held."""
        old = [each for each in self.held.values() if each.is_newer]
        told = self._offsets.committed([self._offsets.at(each.number) for each in old])
        anew = [self._anew(each) for each in told]
        for each in told:
            held = self.held[each.partition]
            # The answer to a commit may be lost that was carried out all the same.
            if each.offset == held.position > held.kept:
                held.settle()
        self.held |= {each.number: each for each in anew}
        self._read(anew)
        return old

    def share(self) -> str:
        """Say which partitions there are, of how many."""
        # There may be more of them by now than when the worker started.
        count = max(self._recipe.partitions, 1 + max(self.held, default=0))
        if not self.held:
            return f"none of {count:,} partitions is on this worker, which waits for one"
        return f"{len(self.held):,} of {count:,} partitions on this worker: {_spelled(self.held)}"

    @property
    def has_newer(self) -> bool:
        """Whether there is something to rewind."""
        return any(each.is_newer for each in self.held.values())

    def to_commit(self) -> list[Any]:
        """Give the offsets that are decided and not committed yet."""
        return [
            self._offsets.at(each.number, each.position, each.mark)
            for each in self.held.values()
            if each.position > each.kept and not each.is_newer
        ]

    def committed(self) -> None:
        """Take note that they are."""
        for each in self.held.values():
            if each.position > each.kept and not each.is_newer:
                each.settle()

    def uncommitted(self) -> None:
        """Take note that some are not, though it was thought so: all are committed again."""
        for each in self.held.values():
            if each.position > each.decided:
                each.kept = min(each.kept, each.position - 1)

    def lags(self) -> dict[int, int]:
        """Tell how many messages of each partition are not decided yet, as far as it is known."""
        found = {}
        for number, each in list(self.held.items()):
            behind = self._offsets.behind(number)
            if behind is not None:
                # The end that was reached may lie behind marks, which nobody has to decide.
                found[number] = max(behind - max(each.position, each.decided, each.end), 0)
        return found

    def _anew(self, told: Any) -> Partition:
        begin, decided = self._offsets.begin(told)
        return self._recipe.partition(told.partition, begin=begin, decided=decided)

    def _read(self, partitions: Sequence[Partition], *, is_new: bool = False) -> None:
        """Have partitions read from where they stand on."""
        # Where not single ones are given out, all that are held are said again.
        said = partitions if self._is_cooperative else list(self.held.values())
        at = [self._offsets.at(each.number, each.position) for each in said]
        self._reader.attend(sorted(self.held))
        if not self._is_cooperative:
            self._consumer.assign(at)
        else:
            if not is_new:
                self._consumer.incremental_unassign(at)
            self._consumer.incremental_assign(at)


def _spelled(numbers: Iterable[int]) -> str:
    """Spell numbers in their order, those behind each other as first and last."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def _goes_on(kept: Partition, committed: int) -> bool:
    """Whether a partition stands where its next messages are, and nobody has decided any since."""
    if kept.is_replaying:
        return False
    return kept.position == (kept.decided if committed < 0 else committed)
