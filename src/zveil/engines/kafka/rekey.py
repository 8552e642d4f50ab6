"""A topic that is keyed by attribute, made of one that is not.

A crowd has to be counted in one place. So a record goes to the partition of its value, at the
coarsest level where there are several: its key is that value as text.

A record with several attributes belongs to several partitions. It is split: one message for each
attribute that has a value, with the others taken out, and what is kept beside them in each. The
parts are decided by themselves and leave by themselves. They are not joined again: that would have
to wait for the last of them, and to remember records by an id, which is what zero delay and a
state without identifiers mean to avoid. A reader who must join them keeps an id of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from zveil._native import Left, MessageBatch, Witness
from zveil.engines.kafka.keying import keyer
from zveil.engines.kafka.partition import Partition, Recipe
from zveil.policy import Policy, PolicyError


def check(policy: Policy) -> None:
    """Refuse what cannot be split.

    Raises
    ------
    PolicyError
        If a record would have to be split whose attributes are made of several fields.
    """
    for place, each in enumerate(policy.attributes):
        if each.fields and len(policy.attributes) > 1:
            raise PolicyError(
                ("attribute", place, "fields"),
                "a record with a position and other attributes is not split; rekey it with a "
                "policy of one attribute each",
            )


@dataclass(frozen=True, kw_only=True)
class KeyRecipe(Recipe):
    """What partitions are made from whose messages are only given other keys."""

    def partition(self, number: int, *, begin: int, decided: int) -> Partition:
        """Make a partition; there is nothing to replay."""
        del begin
        return KeyedPartition(number, self, decided)


class KeyedPartition(Partition):
    """A partition whose messages go on under the keys of their values, undecided.

    Parameters
    ----------
    number, recipe
        As for `Partition`.
    position
        The next offset.
    """

    def __init__(self, number: int, recipe: Recipe, position: int) -> None:
        super().__init__(number, recipe, [], None, begin=position, decided=position)
        self._way = keyer(recipe).way
        self._sent = 0

    def take(
        self, messages: MessageBatch, start: int, end: int, witness: Witness | None
    ) -> Left | None:
        """Give messages their keys; those that cannot be read do not go on."""
        del witness
        self._is_deciding = True
        left = self._way.key_messages(messages, start, end)
        self.position = messages.offset(end - 1) + 1
        self._past.note(self.position, None)
        self._sent += len(left)
        self._bytes_in += left.bytes_in
        self._bytes_out += left.bytes_out
        return left

    def _reading(self) -> Iterator[tuple[Any, int]]:
        yield "bytes_in", self._bytes_in
        yield "bytes_out", self._bytes_out
        tally = self._way.tally()
        for name in ("lines", "records", "passed"):
            yield name, int(tally[name])
        yield "leaving", self._sent
        for kind, count in tally["bad"].items():
            yield ("bad", kind), count
