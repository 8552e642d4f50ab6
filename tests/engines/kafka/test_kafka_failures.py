"""Whatever happens to workers and brokers, readers see what one undisturbed gate releases, once."""

import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from broker import Broker
from kafka.workers import Feeder, Group, Stream, same
from topics import produce

Make = Callable[..., str]


@pytest.fixture
def group(broker: Broker, topic: Make, tmp_path: Path) -> Iterator[Callable[[int], Group]]:
    made: list[Group] = []

    def make(partitions: int) -> Group:
        found = Group(broker.bootstrap, topic(partitions), topic(partitions), tmp_path)
        made.append(found)
        return found

    yield make
    for each in made:
        each.close()


def test_a_worker_that_is_killed_again_and_again_decides_each_once(
    group: Callable[[int], Group],
) -> None:
    stream, made = Stream.drawn(1, 12_000, 2), group(2)
    feeder, rng = Feeder(made.bootstrap, made.source, stream, seconds=12), random.Random(1)
    kills = 0
    while feeder.is_alive():
        worker, before = made.start("--instance", "one"), made.decided()
        made.until(lambda before=before: made.decided() > before or not feeder.is_alive())
        time.sleep(rng.uniform(0, 0.3))
        worker.kill()
        kills += 1
    worker = made.start("--instance", "one")
    made.wait()
    account = worker.end()
    assert kills > 3
    assert account["kafka"]["replayed"] > 0
    assert same(made.output(), stream.released())


def test_killed_at_least_once_nothing_is_lost_and_nothing_else_comes(
    group: Callable[[int], Group],
) -> None:
    stream, made = Stream.drawn(2, 6_000, 1), group(1)
    feeder = Feeder(made.bootstrap, made.source, stream, seconds=6)
    for _ in range(3):
        worker = made.start("--delivery", "at-least-once", "--commit-every", "200ms")
        before = made.decided()
        made.until(lambda before=before: made.decided() > before or not feeder.is_alive())
        worker.kill()
    worker = made.start("--delivery", "at-least-once")
    feeder.join()
    made.wait()
    worker.end()
    assert set(made.output()) == set(stream.released())


def test_partitions_move_between_workers_and_back(group: Callable[[int], Group]) -> None:
    stream, made = Stream.drawn(3, 12_000, 4), group(4)
    feeder = Feeder(made.bootstrap, made.source, stream, seconds=12)
    first = made.start()
    made.until(lambda: made.decided() > 1000)
    second = made.start()
    made.until(lambda: "replaying" in second.said())
    made.until(lambda: made.decided() > 5000)
    told = first.end()
    made.until(lambda: made.decided() > 8000)
    third = made.start()
    made.until(lambda: "replaying" in third.said())
    feeder.join()
    made.wait()
    accounts = [told, second.end(), third.end()]
    assert same(made.output(), stream.released())
    assert sum(each["records"] for each in accounts) == len(stream.events)
    assert all(each["records"] for each in accounts)
    assert sum(each["released"] for each in accounts) == len(stream.released())


def test_a_broker_that_is_killed_and_comes_back(own_broker: Broker, tmp_path: Path) -> None:
    stream, broker = Stream.drawn(4, 4_000, 2), own_broker
    source, to = broker.create_topic("in", 2), broker.create_topic("out", 2)
    made = Group(broker.bootstrap, source, to, tmp_path)
    messages = stream.messages()
    try:
        produce(broker.bootstrap, source, messages[:2000])
        worker = made.start()
        made.until(lambda: made.decided() > 500)
        broker.kill()
        time.sleep(2)
        broker.start()
        produce(broker.bootstrap, source, messages[2000:])
        made.wait()
        worker.end()
        assert same(made.output(), stream.released())
    finally:
        made.close()


def test_a_zombie_that_wakes_up_is_fenced(group: Callable[[int], Group]) -> None:
    stream, made = Stream.drawn(5, 8_000, 1), group(1)
    timeout = ("--set", "producer.transaction.timeout.ms=4000")
    feeder = Feeder(made.bootstrap, made.source, stream, seconds=8)
    zombie = made.start(*timeout)
    made.until(lambda: made.decided() > 500)
    zombie.process.send_signal(signal.SIGSTOP)
    other = made.start(*timeout)
    before = made.decided()
    made.until(lambda: made.decided() > min(before + 500, 7_900))
    zombie.process.send_signal(signal.SIGCONT)
    feeder.join()
    made.wait()
    other.end()
    zombie.process.terminate()
    assert zombie.process.wait(60) in (0, 1), zombie.said()
    assert same(made.output(), stream.released())


def test_two_of_one_name_are_one_too_many(group: Callable[[int], Group]) -> None:
    stream, made = Stream.drawn(6, 3_000, 2), group(2)
    feeder = Feeder(made.bootstrap, made.source, stream, seconds=15)
    first = made.start("--instance", "same")
    made.until(lambda: made.decided() > 300)
    second = made.start("--instance", "same")
    assert first.process.wait(60) == 1
    assert "fenced: another worker has this one's --instance" in first.said()
    feeder.join()
    made.wait()
    second.end()
    assert same(made.output(), stream.released())


def test_what_was_decided_is_not_decided_again_by_a_new_worker(
    group: Callable[[int], Group],
) -> None:
    stream, made = Stream.drawn(7, 12_000, 1), group(1)
    messages = stream.messages()
    produce(made.bootstrap, made.source, messages[:11_500])
    assert made.start("--once").process.wait(60) == 0
    produce(made.bootstrap, made.source, messages[11_500:])
    worker = made.start("--once")
    assert worker.process.wait(60) == 0
    account = worker.account()
    assert account["records"] == 500
    # What the window and the lateness hold, 120 s of five a second, and a batch more at the most.
    assert 600 < account["kafka"]["replayed"] <= 620 + 2000
    assert made.positions() == {0: 12_000}
    assert same(made.output(), stream.released())
