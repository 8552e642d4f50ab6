"""Whether a topic is keyed by attribute: told by what is on its partitions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from zveil._native import MessageBatch, Witness
from zveil.act import TextAct
from zveil.engines.kafka.client import Report
from zveil.engines.kafka.hashes import HASHES
from zveil.engines.kafka.partition import Recipe
from zveil.policy import Policy

# So many messages are looked at each second, and a word is said once so many were seen.
_SAMPLE = 32
_ENOUGH = 100
_EVERY_S = 1.0


def keyer(recipe: Recipe) -> TextAct:
    """Make what finds the keys of messages: what it reads leaves as it came, and undecided."""
    policy = recipe.policy
    attributes = tuple(
        replace(each, veiled=None, swap=0.0, only=None, except_=None) for each in policy.attributes
    )
    bare = replace(
        policy,
        attributes=attributes,
        time=replace(policy.time, round="none"),
        user=replace(policy.user, pseudonym="raw", rotate=None, keep_keys=False),
        record=replace(policy.record, empty="drop"),
        input=replace(policy.input, id=None),
        hold=None,
    )
    return replace(recipe, policy=bare, keyring=None).act([])


class Keying:
    """Looks at some messages each second, and at every value by its hash; warns of what it finds.

    A value that is on two partitions has two crowds: nothing is released too early, but less than
    could be.

    Parameters
    ----------
    recipe
        What partitions are made from.
    topic
        The name of the topic.
    report
        Is told.
    """

    def __init__(self, recipe: Recipe, topic: str, report: Report) -> None:
        self.witness = Witness() if recipe.partitions > 1 else None
        self._policy: Policy = recipe.policy
        self._partitions = recipe.partitions
        self._topic = topic
        self._report = report
        self._act = keyer(recipe) if recipe.partitions > 1 else None
        self._next = 0.0
        self._seen = self._keyed = 0
        self._fitting = set(HASHES)
        self._said: set[str] = set()
        self._told: dict[int, int] = {}

    def look(self, messages: MessageBatch) -> None:
        """Look at some of the messages that have come, if it is time to."""
        now = time.monotonic()
        if self._act is None or now < self._next:
            return
        self._next = now + _EVERY_S
        some = messages.some(_SAMPLE)
        left = self._act.way.key_messages(some, 0, len(some))
        for place, key in zip(left.places, left.keys, strict=True):
            if key is not None:
                self._compare(some.key(place), key, some.partition(place))

    def split(self) -> dict[str, int]:
        """Tell how often a value of each attribute came on another partition than before."""
        found = [] if self.witness is None else self.witness.found()
        names = self._policy.names
        return {name: count for name, (count, _, _) in zip(names, found, strict=False)}

    def _compare(self, came: bytes | None, key: bytes, partition: int) -> None:
        self._seen += 1
        if came == key:
            self._keyed += 1
            self._fitting -= {
                name for name, of in HASHES.items() if of(key) % self._partitions != partition
            }

    def warn(self) -> None:
        """Say what was found; to be called now and then, and at the end."""
        topic = self._topic
        if self._seen >= _ENOUGH and 2 * self._keyed < self._seen:
            self._once(
                "keys",
                f"warning: {topic}: the keys of its messages are not the values of "
                f"{_named(self._policy.names)}. If values are not on one partition each, less is "
                "released; `zveil kafka rekey` writes a topic that is keyed so",
            )
        elif self._keyed and not self._fitting:
            self._once(
                "hash",
                f"warning: {topic}: messages are not on the partitions that their keys' hashes "
                "give (murmur2, CRC32). If its writers do not choose partitions alike, values are "
                "on several, and less is released",
            )
        found = [] if self.witness is None else self.witness.found()
        for place, (count, one, two) in enumerate(found):
            # At the first, and then whenever they are ten times as many.
            if count and count >= 10 * self._told.get(place, 0):
                self._told[place] = count
                self._report(
                    f"WARNING: {topic}: a value of {self._policy.names[place]!r} is on two "
                    f"partitions, such as {one} and {two} ({count:,} times so far): its crowd is "
                    "cut in two, and less is released than could be. The topic has to be keyed "
                    "by attribute; `zveil kafka rekey` writes one that is"
                )

    def _once(self, what: str, words: str) -> None:
        if what not in self._said:
            self._said.add(what)
            self._report(words)


def _named(names: Sequence[str]) -> str:
    return " or ".join(map(repr, names))
