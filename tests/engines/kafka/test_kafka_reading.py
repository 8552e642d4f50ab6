"""Messages taken natively from the client, while partitions are set to other places."""

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import topics
from broker import Address
from confluent_kafka import KafkaError, TopicPartition

from zveil._native import KafkaReader, MessageBatch
from zveil.engines.kafka.client import Clients

COUNT = 5_000
PATIENCE_S = 60


@pytest.fixture
def source(broker: Address, topic: Callable[..., str]) -> str:
    name = topic(2)
    rows = ((number % 2, b"k%d" % number, b"v%d" % number) for number in range(2 * COUNT))
    topics.produce(broker.bootstrap, name, rows)
    return name


@pytest.fixture
def made(broker: Address, source: str) -> Iterator[tuple[Any, KafkaReader]]:
    clients = Clients(brokers=broker.bootstrap, group=f"group-{source}")
    consumer, native = clients.consumer(lambda _: None)
    reader = KafkaReader(native, source)
    # So that it is known which partitions there are.
    consumer.list_topics(source, timeout=PATIENCE_S)
    reader.attend([0, 1])
    yield consumer, reader
    consumer.close()


def batches(consumer: Any, reader: KafkaReader, most: int) -> Iterator[MessageBatch]:
    """Give what comes, as long as it is asked for."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        word = consumer.poll(0)
        assert word is None, ("past the reader", word.error(), word.offset())
        batch = reader.batch(0.1, most)
        if batch is not None:
            assert not batch.errors
            yield batch
    raise AssertionError("nothing came any more")


def test_all_messages_come_once_and_in_order(source: str, made: tuple[Any, KafkaReader]) -> None:
    consumer, reader = made
    consumer.assign([TopicPartition(source, number, 0) for number in range(2)])
    came: dict[int, list[int]] = {0: [], 1: []}
    ends: dict[int, int] = {}
    for batch in batches(consumer, reader, 700):
        assert len(batch) <= 700
        for number, start, end in batch.runs():
            for at in range(start, end):
                assert batch.key(at) == b"k%d" % (2 * batch.offset(at) + number)
            came[number] += [batch.offset(at) for at in range(start, end)]
        ends |= dict(batch.ends)
        if len(ends) == 2:
            break
    assert came == {0: list(range(COUNT)), 1: list(range(COUNT))}
    assert ends == {0: COUNT, 1: COUNT}


@pytest.mark.parametrize("is_cooperative", [False, True])
def test_nothing_comes_that_was_fetched_before_a_partition_was_set_elsewhere(
    source: str, made: tuple[Any, KafkaReader], is_cooperative: bool
) -> None:
    consumer, reader = made
    rng, at = random.Random(7), {0: 0, 1: 0}
    consumer.assign([TopicPartition(source, number, 0) for number in range(2)])
    for turn in range(60):
        # What has come, and what waits behind it, is of the places before.
        if turn % 3:
            next(batches(consumer, reader, rng.choice([1, 50, 3000])))
        elif turn % 2:
            time.sleep(0.02)
        at = {number: rng.randrange(COUNT) for number in at}
        said = [TopicPartition(source, number, offset) for number, offset in at.items()]
        if is_cooperative:
            consumer.incremental_unassign(said)
            consumer.incremental_assign(said)
        else:
            consumer.assign(said)
        seen: set[int] = set()
        for batch in batches(consumer, reader, rng.choice([1, 10, 1000])):
            for number, start, end in batch.runs():
                found = [batch.offset(place) for place in range(start, end)]
                assert found == list(range(at[number], at[number] + len(found)))
                at[number] += len(found)
                seen.add(number)
            for number, end in batch.ends:
                assert at[number] == end == COUNT
                seen.add(number)
            if len(seen) == 2:
                break


def test_an_offset_that_is_not_there_is_told(source: str, made: tuple[Any, KafkaReader]) -> None:
    consumer, reader = made
    consumer.assign([TopicPartition(source, 0, 10 * COUNT)])
    until = time.monotonic() + PATIENCE_S
    codes: list[int] = []
    while not codes and time.monotonic() < until:
        word, batch = consumer.poll(0), reader.batch(0.1, 10)
        codes += [] if word is None else [word.error().code()]
        codes += [] if batch is None else [code for code, _ in batch.errors]
    assert codes[0] in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)
