"""The messages that engines are measured on: records of 100 bytes, in one partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from workloads import START_NS, WINDOW_NS, Stream, in_order, short, uniform_users, zipf_attributes

import zveil

LENGTH = 100
THROUGHPUT, AT_ONCE = "throughput", "at-once"
FIELDS = ("--time", "ts", "--user", "uid", "--attribute", "host", "--keep", "p")


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much is measured: everything, unless said otherwise."""

    records: int = 1_000_000
    per_window: int = 250_000
    # Few enough that nearly all are released: whoever forwards all has no more to send.
    attributes: int = 1_000
    users: int = 100_000
    z: int = 20
    rounds: int = 3
    # Through a broker, times vary more than otherwise.
    kafka_rounds: int = 5
    paces: tuple[str, ...] = (THROUGHPUT, AT_ONCE)
    delay_s: int = 30
    # Rows for Spark, in so many times the records: its start is not what is measured.
    spark_times: int = 10
    # Rounds before those that count: Java compiles for its first minute or two.
    spark_warm_up: int = 6
    flink_records: int = 2_000_000
    pyflink_records: int = 60_000
    pyflink_modes: tuple[str, ...] = ("process", "thread")
    judged: bool = True


FULL = Scale()
QUICK = Scale(
    records=20_000,
    per_window=10_000,
    attributes=50,
    users=1_000,
    rounds=1,
    kafka_rounds=1,
    paces=(THROUGHPUT,),
    delay_s=4,
    spark_times=1,
    spark_warm_up=1,
    flink_records=20_000,
    pyflink_records=5_000,
    pyflink_modes=("process",),
    judged=False,
)


def stream(scale: Scale) -> Stream:
    """Make the stream: Zipf attributes, uniform users, time in order."""
    return Stream(
        scale.attributes,
        scale.users,
        scale.per_window,
        in_order(scale.records, scale.per_window),
        uniform_users(scale.users, scale.records),
        zipf_attributes(scale.attributes, scale.records),
    )


def case(scale: Scale) -> str:
    """Name the stream in the table of results."""
    shown = f"A={short(scale.attributes)} U={short(scale.users)} z={scale.z}"
    return f"{shown}, {short(scale.records)} records"


def keyed(stream: Stream) -> Iterator[tuple[bytes, bytes]]:
    """Give key and value of each message."""
    rows = zip(
        (stream.times // 10**6).tolist(), stream.users.tolist(), stream.attributes.tolist(),
        strict=True,
    )  # fmt: skip
    for number, (ms, user, attribute) in enumerate(rows):
        yield message(number, ms, user, attribute)


def message(number: int, ms: int, user: int, attribute: int) -> tuple[bytes, bytes]:
    """Make one: its number stands at its end, where `number_of` finds it."""
    host = b"www.site%d.example" % attribute
    head = b'{"ts":%d.%03d,"uid":"u%d","host":"%s","p":"' % (*divmod(ms, 1000), user, host)
    return host, b'%s%0*d"}' % (head, LENGTH - 2 - len(head), number)


def number_of(value: bytes) -> int:
    """Tell which message a record was made of."""
    return int(value[-12:-2])


def released(stream: Stream, z: int) -> NDArray[np.bool_]:
    """Say which are released; what comes out of the contestants is held against it."""
    gate = zveil.Gate(z, "1h", time_unit="ms")
    batches = [gate.observe_many(b.times // 10**6, b.users, b.attributes) for b in stream.batches()]
    return np.concatenate(batches)


def even(rate: float, seconds: float) -> Iterator[tuple[bytes, bytes]]:
    """Give messages that are all released but for the first, at even times."""
    for number in range(int(rate * seconds)):
        ms = START_NS // 10**6 + int(number * (WINDOW_NS // 10**6) / (rate * seconds))
        yield message(number, ms, number % 997, number % 13)
