"""Send records to one topic when they are due, read them from another, and tell how late each was.

usage: python delay.py BROKERS TO FROM RATE SECONDS > seconds-as-float64

Lateness counts from when a record was due, not from when it was sent: whoever falls behind shows
it. What did not come is nan.
"""

from __future__ import annotations

import multiprocessing
import sys
import time

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition

sys.path[1:1] = [sys.path[0] + "/..", sys.path[0] + "/../../tests/engines"]

from messages import even, number_of  # noqa: E402

# Until everyone is connected.
BEGIN_S = 3.0
# How long it is waited for the last at the end.
END_S = 10.0


def send(brokers: str, topic: str, rate: float, seconds: float, begin: float) -> None:
    """Send each record when it is due."""
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 1, "acks": 1,
                         "socket.nagle.disable": True})  # fmt: skip
    producer.list_topics(topic, timeout=30)  # it is connected before the first is due
    for number, (key, value) in enumerate(even(rate, seconds)):
        due = begin + number / rate
        while (wait := due - time.monotonic()) > 0:
            producer.poll(0)
            time.sleep(min(wait, 0.0005))
        producer.produce(topic, value, key)
    producer.flush(30)


def read(brokers: str, topic: str, rate: float, seconds: float, begin: float) -> np.ndarray:
    """Read until all have come, or nothing comes any more."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "reader",
                         "isolation.level": "read_committed", "fetch.wait.max.ms": 100,
                         "socket.nagle.disable": True, "enable.auto.commit": False})  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, 0)])
    count = int(rate * seconds)
    late = np.full(count, np.nan)
    until = begin + seconds + END_S
    while time.monotonic() < until:
        first = consumer.poll(0.1)
        if first is None:
            continue
        batch = [first, *consumer.consume(10_000, 0)]
        now = time.monotonic()
        for message in batch:
            number = number_of(message.value())
            late[number] = now - begin - number / rate
        if number == count - 1:
            break
    consumer.close()
    return late


def main(brokers: str, to: str, source: str, rate: float, seconds: float) -> None:
    """Do both at once."""
    begin = time.monotonic() + BEGIN_S
    asked = (brokers, to, rate, seconds, begin)
    sender = multiprocessing.Process(target=send, args=asked)
    sender.start()
    late = read(brokers, source, rate, seconds, begin)
    sender.join()
    sys.stdout.buffer.write(late.tobytes())


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(float, sys.argv[4:6]))
