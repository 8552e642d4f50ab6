"""A worker with its gate taken out, or with the definition in the gate's place: two peers.

usage: python loop.py BROKERS GROUP FROM TO DELIVERY PACE [Z WINDOW_S [single]]

Without z every message goes on as it is, by the same client library, with the settings, the sizes
and the commits of `zveil kafka`: what is left is what the client library costs. With z it is a
consumer in Python that does the same as `zveil kafka`: reads with orjson, asks the reference, names
users by keyed BLAKE2b, writes with orjson. It trusts its input, and replays nothing. It takes
batches as `zveil kafka` does, or single messages, as consumers in Python are mostly written.
"""

from __future__ import annotations

import gc
import secrets
import signal
import sys
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import orjson
from confluent_kafka import Message, TopicPartition

from zveil.engines.kafka.client import Clients
from zveil.engines.kafka.delivery import delivery
from zveil.reference import Reference

Decide = Callable[[list[bytes], list[bytes]], tuple[list[bytes], list[bytes]]]


def everything(values: list[bytes], keys: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Let all messages through."""
    return values, keys


def deciding(z: int, window_s: int) -> Decide:
    """Let those through that enough users share."""
    key = secrets.token_bytes(32)
    observe = Reference(z, window_s).observe

    def decide(values: list[bytes], _: list[bytes]) -> tuple[list[bytes], list[bytes]]:
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


def main(
    brokers: str,
    group: str,
    source: str,
    to: str,
    name: Any,
    pace: str,
    decide: Decide,
    *,
    single: bool = False,
) -> None:
    """Go on until told to end."""
    if decide is everything:
        # As `zveil kafka` does it: or this would be the slower of the two for it.
        gc.freeze()
        gc.set_threshold(100_000)
    is_asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: is_asked.append(number))
    clients = Clients(brokers=brokers, group=group, delivery=name, at_once=pace == "at-once")
    consumer = clients.consumer(_told)
    going = delivery(
        clients,
        consumer,
        every_s=clients.every_s,
        report=_told,
        is_stopped=lambda: bool(is_asked),
    )

    def from_the_beginning(_: Any, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            each.offset = 0
        (consumer.incremental_assign if clients.is_cooperative else consumer.assign)(partitions)

    consumer.subscribe([source], on_assign=from_the_beginning)
    position: TopicPartition | None = None
    while single and not is_asked:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            going.begin()
            for value, key in zip(*decide([message.value()], []), strict=True):
                going.send(to, value, key)
            going.serve()
            position = TopicPartition(source, 0, message.offset() + 1)
        if position is not None and going.is_due:
            going.commit([position], is_last=False)
    while not is_asked:
        wait_s = going.wait_s
        first = consumer.poll(0.1 if wait_s is None else min(wait_s, 0.1))
        messages = [] if first is None else [first, *consumer.consume(clients.most - 1, 0)]
        if any(map(Message.error, messages)):
            messages = [message for message in messages if message.error() is None]
        if messages:
            values, keys = list(map(Message.value, messages)), list(map(Message.key, messages))
            going.begin()
            going.send_all(to, *decide(values, keys))
            position = TopicPartition(source, 0, messages[-1].offset() + 1)
            going.serve()
        if going.is_due and position is not None:
            going.commit([position], is_last=False)
    consumer.close()


def _told(words: str) -> None:
    print(words, file=sys.stderr)


if __name__ == "__main__":
    *said, pace = sys.argv[1:7]
    rule = [int(word) for word in sys.argv[7:9]]
    main(*said, pace, deciding(*rule) if rule else everything, single=sys.argv[9:] == ["single"])
