"""What a test does with topics: fill one, read one to its end, see how far a group has come."""

import time
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

PATIENCE_S = 60
_QUIET = {"log_level": 0}  # what goes wrong is raised


def produce(
    bootstrap: str,
    topic: str,
    messages: Iterable[tuple[int, bytes | None, bytes | None]],
    **settings: Any,
) -> None:
    """Send (partition, key, value), in this order within each partition, and wait for the last."""
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    options = {"enable.idempotence": True, "linger.ms": 5, **_dotted(settings)}
    producer = Producer({"bootstrap.servers": bootstrap, **_QUIET, **options})
    for partition, key, value in messages:
        while True:
            try:
                producer.produce(topic, value, key, partition, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0, "the broker does not take the messages"
    assert not failed, failed[0]


@cache
def admin_of(bootstrap: str) -> AdminClient:
    """Give a client that administers a broker: one for all that is asked, and never thrown away."""
    return AdminClient({"bootstrap.servers": bootstrap, **_QUIET})


def ends(bootstrap: str, topic: str, *, committed: bool = True) -> dict[int, int]:
    """Give the offset behind the last message of each partition, as readers see it."""
    admin = admin_of(bootstrap)
    partitions = admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in partitions}
    found = admin.list_offsets(asked, isolation_level=level, request_timeout=PATIENCE_S)
    return {part.partition: future.result().offset for part, future in found.items()}


def read(bootstrap: str, topic: str, *, committed: bool = True) -> list[Message]:
    """Read a topic from beginning to end, partition by partition; what was aborted is not there."""
    level = "read_committed" if committed else "read_uncommitted"
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader",
                         "enable.auto.commit": False, "enable.partition.eof": True,
                         "isolation.level": level, **_QUIET})  # fmt: skip
    found: dict[int, list[Message]] = {number: [] for number in ends(bootstrap, topic)}
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in found])
    open_ones, until = set(found), time.monotonic() + PATIENCE_S
    try:
        while open_ones:
            assert time.monotonic() < until, "the topic does not end"
            for message in consumer.consume(10_000, 0.2):
                error, number = message.error(), message.partition()
                assert number is not None
                if error is None:
                    found[number].append(message)
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    open_ones.discard(number)
    finally:
        consumer.close()
    return [message for number in sorted(found) for message in found[number]]


def behind(messages: Sequence[Message]) -> dict[int, int]:
    """Give the offset behind the last message of each partition that has one.

    That may be less than its end: a transaction leaves a mark there, which nobody reads.
    """
    return {message.partition() or 0: (message.offset() or 0) + 1 for message in messages}


def values(messages: Sequence[Message]) -> list[bytes]:
    """Give what the messages hold; a message without a value is a trace of something."""
    held = [message.value() for message in messages]
    assert None not in held
    return [value for value in held if value is not None]


def positions(bootstrap: str, group: str, topic: str) -> dict[int, int]:
    """Give the offsets that a group has committed; partitions without one are not there."""
    until = time.monotonic() + PATIENCE_S
    while True:
        asked = admin_of(bootstrap).list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group)]
        )
        try:
            parts = asked[group].result(PATIENCE_S).topic_partitions
            break
        except KafkaException as failure:
            # A broker that has just started reads first what groups have committed.
            if not failure.args[0].retriable() or time.monotonic() > until:
                raise
            time.sleep(0.1)
    return {one.partition: one.offset for one in parts if one.topic == topic and one.offset >= 0}


def shares(bootstrap: str, group: str) -> list[int]:
    """Give how many partitions each member of a group has; none while they are still shared out."""
    try:
        found = admin_of(bootstrap).describe_consumer_groups([group])[group].result(PATIENCE_S)
    except KafkaException:  # there is no such group yet
        return []
    if found.state != ConsumerGroupState.STABLE:
        return []
    return [len(member.assignment.topic_partitions) for member in found.members]


def _dotted(settings: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in settings.items()}
