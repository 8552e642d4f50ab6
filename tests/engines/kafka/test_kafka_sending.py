"""Records on their way out, through the client itself."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import topics
from broker import Address

from zveil._native import KafkaWriter, Left, MessageBatch
from zveil.engines.kafka.at_least_once import AtLeastOnce
from zveil.engines.kafka.client import PARTITIONER, ClientError, Clients, KafkaFailure
from zveil.engines.kafka.exactly_once import ExactlyOnce
from zveil.engines.kafka.hashes import murmur2
from zveil.engines.kafka.keying import keyer
from zveil.engines.kafka.leaving import Leaving
from zveil.engines.kafka.partition import Recipe
from zveil.engines.kafka.sending import Sending
from zveil.policy import Policy

POLICY = Policy.of(
    time="ts", user="uid", attributes=["host"], z=3, window="60s", raw_users=True, time_format="s"
)
NOBODY = "127.0.0.1:1"


class Through(Sending):
    """Sends, and commits nothing."""

    def commit(self, offsets: Sequence[Any], *, is_last: bool) -> bool:  # noqa: ARG002
        return True

    def abandon(self) -> None:
        pass


def clients(brokers: str, delivery: Any = "at-least-once", **said: Any) -> Clients:
    settings = {name.replace("_", "."): str(value) for name, value in said.items()}
    return Clients(brokers=brokers, group="sending", delivery=delivery, said=settings)


def sending(kind: type[Sending], made: Clients, to: str, leaving: Leaving) -> Any:
    return kind(made, None, to, leaving, 1.0, lambda _: None, lambda: True)


def unchanged(count: int) -> Left:
    rows = [(0, at, b"%d" % at, b"key%d" % at if at % 3 else None) for at in range(count)]
    return Left.unchanged(MessageBatch(list(rows)))


@pytest.mark.parametrize("step_ns", [None, 10**9])
@pytest.mark.parametrize("room", [1, 7, 1000])
def test_records_that_found_no_room_go_in_their_order_and_once(
    broker: Address, topic: Callable[..., str], room: int, step_ns: int | None
) -> None:
    to, made = topic(), clients(broker.bootstrap, queue_buffering_max_messages=room)
    delivery = sending(Through, made, to, Leaving(key="source", step_ns=step_ns))
    for count in (50, 0, 3):
        delivery.send(unchanged(count))
    assert delivery.producer.flush(60) == 0
    found = [(message.value(), message.key()) for message in topics.read(broker.bootstrap, to)]
    wanted = [(b"%d" % at, b"key%d" % at if at % 3 else None) for at in [*range(50), *range(3)]]
    assert found == wanted


def test_a_record_that_the_client_does_not_take_ends_it() -> None:
    made = clients(NOBODY, message_max_bytes=1000)
    left = Left.unchanged(
        MessageBatch([(0, at, b"x" * size, None) for at, size in [(0, 9), (1, 5000)]])
    )
    with pytest.raises(KafkaFailure, match=r"a record could not be sent: .*too large"):
        sending(Through, made, "out", Leaving()).send(left)


def test_nobody_waits_for_ever_where_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zveil.engines.kafka.sending.PATIENCE_S", 0.2)
    made = clients(NOBODY, queue_buffering_max_messages=5)
    with pytest.raises(KafkaFailure, match="see whether the brokers are there"):
        sending(Through, made, "out", Leaving()).send(unchanged(10))


def test_a_record_that_never_arrives_is_known_before_anything_is_committed() -> None:
    made = clients(NOBODY, message_timeout_ms=100)
    delivery = sending(AtLeastOnce, made, "out", Leaving())
    delivery.send(unchanged(3))
    delivery.producer.flush(10)
    with pytest.raises(KafkaFailure, match=r"a record could not be sent: .*timed out"):
        delivery.commit([], is_last=True)


def test_a_client_that_is_closed_is_not_used() -> None:
    from zveil._native import KafkaReader

    consumer, native = clients(NOBODY).consumer(lambda _: None)
    reader, other = KafkaReader(native, "in"), KafkaReader(native, "in")
    reader.attend([0])
    assert reader.batch(0, 10) is None
    del other
    consumer.close()
    del consumer
    for use in (lambda: reader.batch(0, 10), lambda: reader.attend([0])):
        with pytest.raises(RuntimeError, match="is closed"):
            use()
    producer, native = clients(NOBODY).producer(lambda _: None)
    writer = KafkaWriter(native, "out")
    del producer
    with pytest.raises(RuntimeError, match="is closed"):
        writer.send(unchanged(1))
    with pytest.raises(RuntimeError, match="is closed"):
        KafkaWriter(native, "out")


def test_plugins_that_others_set_are_kept() -> None:
    # One that is not there is tried, and told.
    with pytest.raises(ClientError, match="the client of Kafka does not take it"):
        clients(NOBODY, plugin_library_paths="/nowhere/at/all.so").producer(lambda _: None)
    from zveil import _native

    clients(NOBODY, plugin_library_paths=_native.__file__).producer(lambda _: None)


@pytest.mark.parametrize("partitioner", [PARTITIONER, "random"])
def test_where_a_transaction_went_is_known_by_its_keys_while_they_are_few(
    broker: Address, topic: Callable[..., str], partitioner: str
) -> None:
    made = clients(broker.bootstrap, "exactly-once", partitioner=partitioner)
    way = keyer(Recipe(policy=POLICY, partitions=12)).way
    everywhere = set(range(12))
    to = topic(12)

    def reached(hosts: list[bytes | None], leaving: Leaving | None = None) -> set[int]:
        delivery = sending(ExactlyOnce, made, to, leaving or Leaving())
        texts = [b"null" if host is None else b'"%s"' % host for host in hosts]
        rows = [b'{"ts":1700000000,"uid":"a","host":%s}' % text for text in texts]
        batch = MessageBatch([(0, at, row, b"own") for at, row in enumerate(rows)])
        found: list[set[int]] = []
        # The second transaction knows nothing of the first.
        for number in range(2):
            delivery.begin()
            if partitioner == PARTITIONER:
                assert set(delivery._reached(12)) == set()
            delivery.send(way.key_messages(batch, 0, len(batch) if number == 0 else 1))
            found.append(set(delivery._reached(12)))
            delivery.commit([], is_last=False)
        assert found[1] <= found[0]
        return found[0]

    few: list[bytes | None] = [b"one", b"two", b"one"]
    by_hash = {(murmur2(key) & 0x7FFFFFFF) % 12 for key in few if key is not None}
    assert reached(few) == (by_hash if partitioner == PARTITIONER else everywhere)
    assert reached([b"one", None]) == everywhere
    assert reached([b"%d" % number for number in range(1_000)]) == everywhere
    assert reached(few, Leaving(key="source")) == everywhere
