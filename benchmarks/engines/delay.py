"""Send records to one topic when they are due, read them from another, and tell how late each was.

usage: python delay.py BROKERS TO FROM RATE SECONDS > seconds-as-float64

Lateness counts from when a record was due, not from when it was sent: whoever falls behind shows
it, the sender too. What did not come is nan. Both sides do as little as they can meanwhile, since
they share the cores with what is measured: records are made beforehand and looked at afterwards.
"""

from __future__ import annotations

import gc
import multiprocessing
import sys
import time

import numpy as np
from confluent_kafka import Consumer, Message, Producer, TopicPartition

sys.path[1:1] = [sys.path[0] + "/..", sys.path[0] + "/../../tests/engines"]

from messages import even, number_of  # noqa: E402

# Until everyone is connected.
BEGIN_S = 3.0
# How long it is waited for the last at the end.
END_S = 10.0
# So often it is sent what is due: each time costs the broker a request, and those behind it more.
TICK_S = 0.002


Messages = list[tuple[bytes, bytes]]
"""Keys and values, made beforehand: making them is nobody's delay."""
Arrivals = list[tuple[float, list[bytes]]]
"""When some values were read, and these."""


def send(brokers: str, topic: str, rate: float, messages: Messages, begin: float) -> None:
    """Send records when they are due, those of a tick together and at its end."""
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 0.5, "acks": 1,
                         "socket.nagle.disable": True})  # fmt: skip
    producer.list_topics(topic, timeout=30)  # it is connected before the first is due
    produce, sent, tick = producer.produce, 0, 0
    while sent < len(messages):
        tick += 1
        time.sleep(max(begin + tick * TICK_S - time.monotonic(), 0))
        due = int((time.monotonic() - begin) * rate) + 1
        for key, value in messages[sent:due]:
            while True:
                try:
                    produce(topic, value, key)
                    break
                except BufferError:  # the broker is behind, and the record later than it was
                    producer.poll(0.005)
        sent = max(sent, due)
        producer.poll(0)
    if producer.flush(120):
        raise RuntimeError("the broker does not take what is sent")


def read(brokers: str, topic: str, count: int, until: float) -> Arrivals:
    """Read until all have come, or it is too late."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "reader",
                         "isolation.level": "read_committed", "fetch.wait.max.ms": 100,
                         "socket.nagle.disable": True, "enable.auto.commit": False})  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, 0)])
    came: Arrivals = []
    while time.monotonic() < until:
        first = consumer.poll(0.1)
        if first is None:
            continue
        batch = [first, *consumer.consume(10_000, 0)]
        now = time.monotonic()
        values = list(map(Message.value, batch))
        came.append((now, values))
        if number_of(values[-1]) == count - 1:
            break
    consumer.close()
    return came


def lateness(came: Arrivals, rate: float, count: int, begin: float) -> np.ndarray:
    """Tell how late each record was read, in seconds."""
    late = np.full(count, np.nan)
    for now, values in came:
        numbers = np.array([number_of(value) for value in values])
        late[numbers] = now - begin - numbers / rate
    return late


def main(brokers: str, to: str, source: str, rate: float, seconds: float) -> None:
    """Do both at once, and let no garbage collector come in between."""
    messages = list(even(rate, seconds))
    count = len(messages)
    gc.disable()
    begin = time.monotonic() + BEGIN_S
    # What is made already is not sent to the other process: both have it.
    fork = multiprocessing.get_context("fork")
    sender = fork.Process(target=send, args=(brokers, to, rate, messages, begin))
    sender.start()
    came = read(brokers, source, count, begin + seconds + END_S)
    sender.join()
    if sender.exitcode:
        raise SystemExit("delay.py: the sender has failed")
    sys.stdout.buffer.write(lateness(came, rate, count, begin).tobytes())


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(float, sys.argv[4:6]))
