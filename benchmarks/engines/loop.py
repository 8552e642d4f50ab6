"""Peers: a worker with its gate taken out, and consumers in Python with the definition instead.

usage: python loop.py BROKERS GROUP FROM TO DELIVERY PACE [Z WINDOW_S [single]]

Without z every message goes on as it is, by the same native client code, with the settings, the
sizes and the commits of `zveil kafka`: what is left is what Kafka costs. With z it is a consumer in
Python that does the same as `zveil kafka`: reads with orjson, asks the reference, names users by
keyed BLAKE2b, writes with orjson. It trusts its input, and replays nothing. Its client has the
same settings, and its records are sent by the shortest way that there is in Python. It takes
batches as large as those of `zveil kafka`, or single messages, as consumers in Python are mostly
written.
"""

from __future__ import annotations

import gc
import secrets
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import repeat
from typing import Any

import orjson
from confluent_kafka import Message, TopicPartition

from zveil._native import KafkaReader, Left
from zveil.engines.kafka.client import Clients, Made
from zveil.engines.kafka.delivery import delivery
from zveil.engines.kafka.leaving import Leaving
from zveil.engines.kafka.sending import Sending
from zveil.reference import Reference

POLL_S = 0.1
Decide = Callable[[list[bytes]], tuple[list[bytes], list[bytes]]]
Go = Iterator[int | None]
"""What a contestant does, step by step: the offset behind what it has done, if it did something."""


def deciding(z: int, window_s: int) -> Decide:
    """Let those through that enough users share."""
    key = secrets.token_bytes(32)
    observe = Reference(z, window_s).observe

    def decide(values: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        leaving, hosts = [], []
        for value in values:
            event = orjson.loads(value)
            user, host = event["uid"], event["host"]
            if observe(event["ts"], user, host):
                event["uid"] = blake2b(user.encode(), digest_size=10, key=key).hexdigest()
                leaving.append(orjson.dumps(event))
                hosts.append(host.encode())
        return leaving, hosts

    return decide


def forwarding(clients: Clients, reader: KafkaReader, consumer: Any, going: Sending) -> Go:
    """Let all messages through, natively."""
    # As `zveil kafka` does it: or this would be the slower of the two for it.
    gc.freeze()
    gc.set_threshold(100_000)
    while True:
        consumer.poll(0)
        batch = reader.batch(_wait_s(going), clients.most)
        if batch is not None and len(batch):
            going.begin()
            going.send(Left.unchanged(batch))
            yield batch.offset(len(batch) - 1) + 1
        yield None


def batches(clients: Clients, consumer: Any, going: Sending, to: str, decide: Decide) -> Go:
    """Decide messages in Python, as many as there are."""
    while True:
        first = consumer.poll(_wait_s(going))
        messages = [] if first is None else [first, *consumer.consume(clients.most - 1, 0)]
        if any(map(Message.error, messages)):
            messages = [message for message in messages if message.error() is None]
        if messages:
            going.begin()
            left = decide(list(map(Message.value, messages)))
            # Not a loop: even that is a part of what a record takes.
            deque(map(going.producer.produce, repeat(to), *left), maxlen=0)
            yield messages[-1].offset() + 1
        yield None


def singly(consumer: Any, going: Sending, to: str, decide: Decide) -> Go:
    """Decide messages in Python, one after the other."""
    while True:
        message = consumer.poll(POLL_S)
        if message is not None and message.error() is None:
            going.begin()
            for value, key in zip(*decide([message.value()]), strict=True):
                going.producer.produce(to, value, key)
            yield message.offset() + 1
        yield None


def main(brokers: str, group: str, source: str, to: str, name: Any, pace: str, *rule: str) -> None:
    """Go on until told to end."""
    is_asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: is_asked.append(number))
    clients = Clients(brokers=brokers, group=group, delivery=name, at_once=pace == "at-once")
    made: Made = clients.consumer(_told)
    consumer, reader = made.steered, None
    going = delivery(
        clients,
        consumer,
        to,
        Leaving(key="source"),
        every_s=clients.every_s,
        report=_told,
        is_stopped=lambda: bool(is_asked),
    )
    if not rule:
        reader = KafkaReader(made.native, source)
        steps = forwarding(clients, reader, consumer, going)
    elif rule[2:] == ("single",):
        steps = singly(consumer, going, to, deciding(int(rule[0]), int(rule[1])))
    else:
        steps = batches(clients, consumer, going, to, deciding(int(rule[0]), int(rule[1])))

    def from_the_beginning(_: Any, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            each.offset = 0
        if reader is not None:
            reader.attend([each.partition for each in partitions])
        (consumer.incremental_assign if clients.is_cooperative else consumer.assign)(partitions)

    consumer.subscribe([source], on_assign=from_the_beginning)
    position: TopicPartition | None = None
    while not is_asked:
        behind = next(steps)
        if behind is not None:
            position = TopicPartition(source, 0, behind)
            going.serve()
        if going.is_due and position is not None:
            going.commit([position], is_last=False)
    consumer.close()


def _wait_s(going: Sending) -> float:
    wait_s = going.wait_s
    return POLL_S if wait_s is None else min(wait_s, POLL_S)


def _told(words: str) -> None:
    print(words, file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
