"""Whatever happens to workers and brokers, readers see what one undisturbed gate releases, once."""

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from broker import Broker
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka.workers import PATIENCE_S, Feeder, Group, Stream, require_same
from topics import produce


def test_a_worker_that_is_killed_again_and_again_decides_each_once(
    group: Callable[..., Group],
) -> None:
    stream, made, rng = Stream.drawn(1, 8_000, 2), group(2), random.Random(1)
    feeder = Feeder(made.bootstrap, made.source, stream, 1_000)
    for kills in range(1, 6):
        # Asked first: the answer may take longer than the worker.
        before, worker = made.decided(), made.start("--instance", "one")
        made.until(lambda before=before: made.decided() > before)
        feeder.allow(1_000 + 1_000 * kills)
        time.sleep(rng.uniform(0, 0.3))  # at any moment
        worker.kill()
    worker = made.start("--instance", "one")
    feeder.finish()
    made.wait()
    assert worker.end()["kafka"]["replayed"] > 0
    require_same(made.output(), stream)


def test_killed_at_least_once_nothing_is_lost_and_nothing_else_comes(
    group: Callable[..., Group],
) -> None:
    stream, made = Stream.drawn(2, 6_000, 1), group(1)
    feeder = Feeder(made.bootstrap, made.source, stream, 1_000)
    for kills in range(1, 4):
        before = made.decided()
        worker = made.start("--delivery", "at-least-once", "--commit-every", "200ms")
        made.until(lambda before=before: made.decided() > before)
        feeder.allow(1_000 + 1_000 * kills)
        worker.kill()
    worker = made.start("--delivery", "at-least-once")
    feeder.finish()
    made.wait()
    worker.end()
    assert set(made.output()) == set(stream.released())


def test_partitions_move_between_workers_and_back(group: Callable[..., Group]) -> None:
    stream, made = Stream.drawn(3, 10_000, 4), group(4)
    feeder = Feeder(made.bootstrap, made.source, stream, 2_000)
    first = made.start()
    made.until(lambda: made.decided() > 1_000)
    second = made.start()
    feeder.allow(4_000)
    made.until(lambda: "replaying" in second.said())
    feeder.allow(6_000)
    made.until(lambda: made.decided() > 5_000)
    told = first.end()
    third = made.start()
    feeder.allow(8_000)
    made.until(lambda: "replaying" in third.said())
    feeder.finish()
    made.wait()
    accounts = [told, second.end(), third.end()]
    require_same(made.output(), stream)
    assert sum(each["records"] for each in accounts) == len(stream.events)
    assert all(each["records"] for each in accounts)
    assert sum(each["released"] for each in accounts) == len(stream.released())


def test_a_broker_that_is_killed_and_comes_back(own_broker: Broker, tmp_path: Path) -> None:
    stream, broker = Stream.drawn(4, 4_000, 2), own_broker
    source, to = broker.create_topic("in", 2), broker.create_topic("out", 2)
    made = Group(broker.bootstrap, source, to, tmp_path)
    messages = stream.messages()
    try:
        produce(broker.bootstrap, source, messages[:1000])
        worker = made.start("--commit-every", "5s")
        made.wait()
        # In the middle of a transaction, the one before being closed: brokers that are killed while
        # they write its marks may leave some out.
        made.until(lambda: not made.is_open())
        produce(broker.bootstrap, source, messages[1000:2000])
        made.until(made.is_open)
        broker.kill()
        broker.start()
        produce(broker.bootstrap, source, messages[2000:])
        made.wait()
        account = worker.end()
        require_same(made.output(), stream)
        # What had to be decided again counts once.
        assert account["records"] == 4_000
        assert account["released"] == len(stream.released())
    finally:
        made.close()


@pytest.mark.parametrize("is_committed", [True, False])
def test_what_a_transaction_leaves_open_is_waited_for(
    group: Callable[..., Group], *, is_committed: bool
) -> None:
    """As by a worker that died, or a broker, between what it decided and how that ended."""
    stream, made = Stream.drawn(8, 3_000, 1), group(1)
    messages = stream.messages()
    produce(made.bootstrap, made.source, messages[:2_000])
    made.start("--once").ended()
    produce(made.bootstrap, made.source, messages[2_000:])
    asking = Consumer({"bootstrap.servers": made.bootstrap, "group.id": made.name})
    other = Producer(
        {"bootstrap.servers": made.bootstrap, "transactional.id": f"other-{made.name}"}
    )
    other.init_transactions(PATIENCE_S)
    other.begin_transaction()
    at = [TopicPartition(made.source, 0, 2_500, "zveil1 0")]
    other.send_offsets_to_transaction(at, asking.consumer_group_metadata(), PATIENCE_S)
    worker = made.start("--once")
    made.until(lambda: "is waited for" in worker.said())
    before = len(made.output())
    (other.commit_transaction if is_committed else other.abort_transaction)(PATIENCE_S)
    asking.close()
    first = 2_500 if is_committed else 2_000
    assert worker.ended()["records"] == 3_000 - first
    assert made.output() == [*stream.released()[:before], *stream.released(first)]


def test_a_zombie_that_wakes_up_is_fenced(group: Callable[..., Group]) -> None:
    stream, made = Stream.drawn(5, 6_000, 1), group(1)
    timeout = ("--set", "producer.transaction.timeout.ms=4000")
    feeder = Feeder(made.bootstrap, made.source, stream, 3_000)
    zombie = made.start(*timeout)
    made.until(lambda: made.decided() > 500)
    zombie.process.send_signal(signal.SIGSTOP)
    other = made.start(*timeout)
    feeder.allow(5_000)
    made.until(lambda: made.decided() > 4_000)
    zombie.process.send_signal(signal.SIGCONT)
    feeder.finish()
    made.wait()
    other.end()
    zombie.process.terminate()
    assert zombie.process.wait(PATIENCE_S) in (0, 1), zombie.said()
    require_same(made.output(), stream)


def test_two_of_one_name_are_one_too_many(group: Callable[..., Group]) -> None:
    stream, made = Stream.drawn(6, 3_000, 2), group(2)
    feeder = Feeder(made.bootstrap, made.source, stream, 1_000)
    first = made.start("--instance", "same")
    made.until(lambda: made.decided() > 300)
    second = made.start("--instance", "same")
    # Until it has something to commit it does not notice.
    made.until(lambda: "replaying" in second.said() or first.process.poll() is not None)
    feeder.allow()
    first.ended(code=1)
    assert "fenced: another worker has this one's --instance" in first.said()
    feeder.finish()
    made.wait()
    second.end()
    require_same(made.output(), stream)


def test_what_was_decided_is_not_decided_again_by_a_new_worker(
    group: Callable[..., Group],
) -> None:
    stream, made = Stream.drawn(7, 12_000, 1), group(1)
    messages = stream.messages()
    produce(made.bootstrap, made.source, messages[:11_500])
    made.start("--once").ended()
    produce(made.bootstrap, made.source, messages[11_500:])
    account = made.start("--once").ended()
    assert account["records"] == 500
    # What the window and the lateness hold, 120 s of five a second, and a batch more at the most.
    assert 600 < account["kafka"]["replayed"] <= 620 + 2000
    assert made.positions() == {0: 12_000}
    require_same(made.output(), stream)
