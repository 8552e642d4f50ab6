"""Records on their way out, with a producer that has little room."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from zveil.engines.kafka.client import PARTITIONER, KafkaFailure
from zveil.engines.kafka.exactly_once import ExactlyOnce
from zveil.engines.kafka.hashes import murmur2
from zveil.engines.kafka.sending import Sending


class Narrow:
    """A producer that takes a few records, and more when it is served."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.taken: list[tuple[bytes, bytes | None]] = []
        self.waits = 0

    def produce(self, topic: str, value: bytes, key: bytes | None) -> None:
        assert topic == "out"
        if value == b"refused":
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        if len(self.taken) == self.room:
            raise BufferError
        self.taken.append((value, key))

    def poll(self, _: float) -> None:
        self.waits += 1
        self.room += 3 * (self.waits % 2)  # room for some more, every other time


class Through(Sending):
    """Sends, and commits nothing."""

    def __init__(self, producer: Narrow) -> None:
        self._given = producer
        super().__init__(None, None, 1.0, print, lambda: False)  # type: ignore[arg-type]

    def _made(self) -> Any:
        return self._given

    def commit(self, offsets: Sequence[Any], *, is_last: bool) -> bool:  # noqa: ARG002
        return True

    def abandon(self) -> None:
        pass


@pytest.mark.parametrize("room", [0, 1, 9, 10, 11])
def test_records_that_found_no_room_go_in_their_order_and_once(room: int) -> None:
    producer = Narrow(room)
    values = [b"%d" % number for number in range(10)]
    keys = [None if number % 3 else b"key" for number in range(10)]
    Through(producer).send_all("out", values, keys)
    assert producer.taken == list(zip(values, keys, strict=True))
    assert (producer.waits > 0) == (room < 10)


def test_nothing_behind_a_record_that_is_refused_is_sent() -> None:
    producer = Narrow(10)
    with pytest.raises(KafkaFailure, match="a record could not be sent"):
        Through(producer).send_all("out", [b"1", b"refused", b"2"], [None, None, None])
    assert producer.taken == [(b"1", None)]


def test_records_and_keys_are_as_many() -> None:
    producer = Narrow(10)
    with pytest.raises(ValueError, match="expected 2, one for each record, got 1"):
        Through(producer).send_all("out", [b"1", b"2"], [None])
    assert producer.taken == []


class Transactional(Narrow):
    """A producer whose transactions always succeed."""

    def init_transactions(self, _: float) -> None:
        pass

    def begin_transaction(self) -> None:
        pass

    def commit_transaction(self, _: float) -> None:
        pass


@pytest.mark.parametrize("partitioner", [PARTITIONER, "random"])
def test_where_a_transaction_went_is_known_by_its_keys_while_they_are_few(partitioner: str) -> None:
    producer = Transactional(10_000)
    clients = SimpleNamespace(
        producer=lambda _: producer, producer_settings=lambda: {"partitioner": partitioner}
    )
    delivery = ExactlyOnce(clients, None, 1.0, print, lambda: False)
    everywhere = set(range(12))

    def reached(keys: list[bytes | None]) -> set[int]:
        delivery.begin()
        delivery.send_all("out", [b"record"] * len(keys), keys)
        found = set(delivery._reached(12))
        delivery.commit([], is_last=False)
        return found

    few = [b"one", b"two", b"one"]
    by_hash = {(murmur2(key) & 0x7FFFFFFF) % 12 for key in few}
    assert reached(few) == (by_hash if partitioner == PARTITIONER else everywhere)
    assert reached([b"one", None]) == everywhere
    assert reached([b"%d" % number for number in range(1_000)]) == everywhere
    assert reached(few) == (by_hash if partitioner == PARTITIONER else everywhere)
