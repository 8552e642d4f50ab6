"""Where the past of a partition is found: by what is committed, by times, or as much as is left."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from broker import Address
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka.workers import Feeder, Group, Stream, require_same
from topics import produce


@pytest.fixture
def made(broker: Address, topic: Callable[..., str], tmp_path: Path) -> Iterator[Group]:
    found = Group(broker.bootstrap, topic(1), topic(1), tmp_path)
    yield found
    found.close()


def committed(made: Group, offset: int) -> None:
    """Commit as another program does, which knows nothing of the past."""
    consumer = Consumer({"bootstrap.servers": made.bootstrap, "group.id": made.name})
    consumer.commit(offsets=[TopicPartition(made.source, 0, offset)], asynchronous=False)
    consumer.close()


def test_offsets_of_others_are_gone_on_from_with_all_that_is_left(made: Group) -> None:
    stream = Stream.drawn(21, 1500, 1)
    produce(made.bootstrap, made.source, stream.messages())
    committed(made, 1000)
    worker = made.start("--once")
    account = worker.ended()
    assert "does not tell where to begin" in worker.said()
    assert (account["records"], account["kafka"]["replayed"]) == (500, 1000)
    require_same(made.output(), stream, 1000)


def test_a_group_that_begins_now_knows_the_last_window(made: Group) -> None:
    stream = Stream.drawn(22, 1200, 1)
    messages = stream.messages()
    produce(made.bootstrap, made.source, messages[:1000])
    worker = made.start("--start", "latest")
    made.until(lambda: "replaying offsets 0 to 1,000" in worker.said())
    produce(made.bootstrap, made.source, messages[1000:])
    made.wait()
    assert worker.end()["records"] == 200
    require_same(made.output(), stream, 1000)


def test_what_was_deleted_is_told_and_makes_for_less(made: Group) -> None:
    stream = Stream.drawn(23, 3000, 1)
    messages = stream.messages()
    produce(made.bootstrap, made.source, messages[:2000])
    made.start("--once").ended()
    produce(made.bootstrap, made.source, messages[2000:])
    admin = AdminClient({"bootstrap.servers": made.bootstrap})
    gone = TopicPartition(made.source, 0, 2100)
    admin.delete_records([gone])[gone].result(30)
    worker = made.start("--once")
    account = worker.ended()
    assert "100 messages were deleted before they were decided" in worker.said()
    assert "some of the last window was deleted" in worker.said()
    assert account["records"] == 900
    found, wanted = set(made.output()), set(stream.released())
    assert found < wanted
    # Once the window and the lateness have passed, nothing is amiss any more.
    assert set(stream.released(2100 + 5 * 150)) <= found


def test_a_topic_that_was_made_anew_is_noticed(made: Group) -> None:
    produce(made.bootstrap, made.source, Stream.drawn(24, 10, 1).messages())
    committed(made, 5)
    admin = AdminClient({"bootstrap.servers": made.bootstrap})
    gone = TopicPartition(made.source, 0, 10)
    made.start("--once").ended()
    admin.delete_records([gone])[gone].result(30)
    committed(made, 11)
    worker = made.start("--once")
    worker.ended(code=1)
    assert "the group has decided more than there is" in worker.said()


def test_workers_share_at_least_once_too(
    broker: Address, topic: Callable[..., str], tmp_path: Path
) -> None:
    stream, made = Stream.drawn(25, 6000, 4), Group(broker.bootstrap, topic(4), topic(4), tmp_path)
    least = ("--delivery", "at-least-once", "--commit-every", "100ms")
    try:
        feeder = Feeder(made.bootstrap, made.source, stream, 2000)
        first = made.start(*least)
        made.until(lambda: made.decided() > 1000)
        second = made.start(*least)
        feeder.allow(4000)
        made.until(lambda: "replaying" in second.said())
        feeder.allow()
        made.until(lambda: made.decided() > 4000)
        first.end()
        feeder.finish()
        made.wait()
        second.end()
        found = made.output()
        assert set(found) == set(stream.released())
        assert len(found) < len(stream.released()) + 2000
    finally:
        made.close()
