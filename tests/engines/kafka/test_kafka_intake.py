"""What is taken of a batch while partitions come and go, with a client that does as it is told."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, TopicPartition

from zveil._native import MessageBatch
from zveil.engines.kafka.assignment import Assignment
from zveil.engines.kafka.client import KafkaFailure
from zveil.engines.kafka.intake import Intake
from zveil.engines.kafka.offsets import Offsets, Topic
from zveil.engines.kafka.partition import Recipe
from zveil.policy import Policy

POLICY = Policy.of(
    time="ts", user="uid", attributes=["host"], z=3, window="60s", raw_users=True,
    max_future=None, time_format="s",
)  # fmt: skip


Row = tuple[int, int, bytes | None, bytes | None]


class Told:
    """A client, and what reads its messages: hands over what it was given."""

    def __init__(self) -> None:
        self.word: Message | None = None
        self.came = MessageBatch([])
        self.offset, self.mark = 6, "zveil1 2"
        self.errors: list[int] = []
        self.attended: list[int] = []
        self.assigned: list[dict[int, int]] = []

    def poll(self, _: float) -> Message | None:
        return self.word

    def batch(self, _: float, __: int) -> MessageBatch:
        return self.came

    def attend(self, numbers: list[int]) -> None:
        self.attended = numbers

    def committed(self, asked: list[TopicPartition], timeout: float) -> list[Any]:
        assert timeout > 0
        if self.errors:
            return [Unsure(each, KafkaError(self.errors.pop(0))) for each in asked]
        return [
            TopicPartition(each.topic, each.partition, self.offset, self.mark) for each in asked
        ]

    def get_watermark_offsets(self, _: TopicPartition, **__: object) -> tuple[int, int]:
        return 0, 10

    def assign(self, at: list[TopicPartition]) -> None:
        # Or some of their messages would come past the one who takes them.
        assert {each.partition for each in at} <= set(self.attended)
        self.assigned.append({each.partition: each.offset for each in at})


class Unsure:
    """A partition of which the client does not tell how far it is, as it does that."""

    offset, metadata = -1001, None

    def __init__(self, at: TopicPartition, error: KafkaError) -> None:
        self.topic, self.partition, self.error = at.topic, at.partition, error


@pytest.fixture
def client() -> Told:
    return Told()


@pytest.fixture
def offsets(client: Told) -> Offsets:
    return Offsets(client, Topic(name="in"), 10**9, lambda _: None)


@pytest.fixture
def held(client: Told, offsets: Offsets) -> Assignment:
    recipe = Recipe(policy=POLICY, partitions=2)
    made = Assignment(client, client, offsets, recipe, is_cooperative=False)  # type: ignore[arg-type]
    made.come([TopicPartition("in", 0), TopicPartition("in", 1)])
    return made


def messages(number: int, *offsets: int) -> list[Row]:
    return [(number, each, b"", None) for each in offsets]


def taken(
    client: Told, held: Assignment, came: list[Row], **told: Any
) -> list[tuple[int, list[int]]]:
    """Give the offsets that are taken of each partition, run by run."""
    client.came = MessageBatch(came, **told)
    intake = Intake(client, client, held, "in", most=100, report=lambda _: None)  # type: ignore[arg-type]
    batch = intake.batch(0)
    assert batch is client.came
    found = []
    for partition, start, end in intake.runs(batch):
        at = [batch.offset(number) for number in range(start, end)]
        partition.position = at[-1] + 1
        found.append((partition.number, at))
    return found


def test_what_is_replayed_is_apart_from_what_is_decided(client: Told, held: Assignment) -> None:
    assert client.assigned == [{0: 2, 1: 2}]
    came = [*messages(0, 2, 4, 5, 6, 8), *messages(1, 2, 3), *messages(0, 9)]
    found = taken(client, held, came)
    assert found == [(0, [2, 4, 5]), (0, [6, 8]), (1, [2, 3]), (0, [9])]


def test_a_worker_with_one_partition_takes_nothing_of_another_for_its_own(
    client: Told, held: Assignment
) -> None:
    held.go([TopicPartition("in", 1)])
    assert taken(client, held, messages(0, 6, 7, 8)) == [(0, [6, 7, 8])]
    # Offsets may be left out; what lies between is asked then.
    assert taken(client, held, messages(0, 9, 11, 12)) == [(0, [9, 11, 12])]
    came = [*messages(0, 13), *messages(1, 6), *messages(0, 14)]
    assert taken(client, held, came) == [(0, [13]), (0, [14])]
    assert taken(client, held, messages(1, 7, 8)) == []


def test_what_was_taken_before_is_passed_over(client: Told, held: Assignment) -> None:
    assert taken(client, held, messages(1, 2, 3)) == [(1, [2, 3])]
    assert taken(client, held, messages(1, 2, 3, 4)) == [(1, [4])]
    assert taken(client, held, messages(1, 3, 4)) == []


def test_one_that_comes_back_as_it_was_is_read_again_from_there(
    client: Told, held: Assignment
) -> None:
    assert taken(client, held, messages(1, 2, 3, 4, 5, 6, 7)) == [(1, [2, 3, 4, 5]), (1, [6, 7])]
    client.offset, before = 8, held.held[1]
    held.go([TopicPartition("in", 1)])
    held.come([TopicPartition("in", 1)])
    assert held.held[1] is before
    assert client.assigned[-1][1] == 8
    assert taken(client, held, messages(1, 8, 9)) == [(1, [8, 9])]
    # One that was lost has to see its past again.
    held.go([TopicPartition("in", 1)], is_lost=True)
    held.come([TopicPartition("in", 1)])
    assert held.held[1] is not before
    assert client.assigned[-1][1] == 2


def test_an_end_is_told_with_the_marks_before_it(client: Told, held: Assignment) -> None:
    assert taken(client, held, messages(0, 6, 7), ends=[(0, 10)]) == [(0, [6, 7])]
    assert held.held[0].is_at_end
    assert held.lags() == {0: 0, 1: 4}
    # They are no messages: what is committed stays where it was.
    assert held.held[0].position == 8


def test_what_is_wrong_is_told_or_ends_it(client: Told, held: Assignment) -> None:
    told: list[str] = []
    intake = Intake(client, client, held, "in", most=100, report=told.append)  # type: ignore[arg-type]
    client.came = MessageBatch([], errors=[(6, "no leader")])
    client.word = Message(topic="in", error=KafkaError(KafkaError._TRANSPORT))
    intake.batch(0)
    assert [words.split(":")[0] for words in told] == ["kafka", "kafka"]
    assert "no leader" in told[1]
    client.came = MessageBatch([], errors=[(KafkaError.OFFSET_OUT_OF_RANGE, "gone")])
    with pytest.raises(KafkaFailure, match="in: gone"):
        intake.batch(0)


def test_what_comes_past_the_reader_comes_again(client: Told, held: Assignment) -> None:
    assert taken(client, held, messages(0, 2, 3)) == [(0, [2, 3])]
    client.word = Message(topic="in", partition=0, offset=4, value=b"")
    assert taken(client, held, messages(1, 2)) == [(1, [2])]
    assert client.assigned[1:] == [{0: 4, 1: 2}]
    # Of a partition that has gone, nothing is wanted.
    client.word = Message(topic="in", partition=7, offset=4, value=b"")
    assert taken(client, held, messages(1, 3)) == [(1, [3])]
    assert len(client.assigned) == 2


def test_a_group_that_is_not_told_how_far_it_is_has_not_decided_nothing(
    client: Told, offsets: Offsets, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [TopicPartition("in", 0)]
    client.errors = [KafkaError.UNSTABLE_OFFSET_COMMIT] * 3
    assert [each.offset for each in offsets.committed(asked)] == [6]
    monkeypatch.setattr("zveil.engines.kafka.offsets._PATIENCE_S", 0.0)
    client.errors = [KafkaError.UNSTABLE_OFFSET_COMMIT] * 3
    with pytest.raises(KafkaFailure, match="does not tell its offsets"):
        offsets.committed(asked)
