"""Messages through a partition: as lines would be, and as if nobody had ever moved it."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zveil._native import Left, MessageBatch, Witness
from zveil.act import TextAct
from zveil.engines.kafka.keying import keyer
from zveil.engines.kafka.partition import Partition, Recipe
from zveil.engines.kafka.past import Past, begin_of
from zveil.hierarchy import parse
from zveil.io import Format
from zveil.policy import Attribute, Policy, Time, User
from zveil.policy.parts import Limits

START = 1_700_000_000


def policy(**more: Any) -> Policy:
    said: dict[str, Any] = {
        "time": "ts", "user": "uid", "attributes": ["host"], "z": 3, "window": "60s",
        "raw_users": True, "max_future": None, "time_format": "s",
    }  # fmt: skip
    return Policy.of(**said | more)


def recipe(**more: Any) -> Recipe:
    return Recipe(policy=policy(**more), partitions=1, gate_key=bytes(32))


def drawn(seed: int, count: int, *, span: int = 40) -> list[bytes]:
    rng = random.Random(seed)
    return [
        json.dumps(
            {
                "ts": START + number // 4 - rng.randrange(span),
                "uid": f"u{rng.randrange(12)}",
                "host": rng.choice(["a", "b", "c.example", 7, 7.0, None, "é", 'q"q', True]),
                "n": number,
            },
            indent=rng.choice([None, None, 1]),
        ).encode()
        for number in range(count)
    ]


def batch_of(values: Sequence[bytes | None], first: int = 0) -> MessageBatch:
    return MessageBatch([(0, first + at, value, None) for at, value in enumerate(values)])


def left_of(
    partition: Partition,
    values: Sequence[bytes | None],
    first: int = 0,
    witness: Witness | None = None,
) -> Left | None:
    return partition.take(batch_of(values, first), 0, len(values), witness)


def taken(partition: Partition, values: Sequence[bytes | None], first: int = 0) -> list[bytes]:
    left = left_of(partition, values, first) if values else None
    return [] if left is None else left.records


@given(st.integers(0, 10_000), st.lists(st.integers(0, 60), max_size=6))
def test_messages_leave_as_lines_do(seed: int, cuts: list[int]) -> None:
    values, made = drawn(seed, 60), recipe(keep=["n"])
    way = TextAct(
        made.policy, made.policy.gates(key=bytes(32)), Format.NDJSON, Format.NDJSON,
        keyring=None, max_line=1 << 20, stop_at_problem=False,
    )  # fmt: skip
    lines = b"".join(value.replace(b"\n", b" ") + b"\n" for value in values)
    wanted = b"".join(way.lines(lines, last=True)).splitlines()
    partition, found, at = made.partition(0, begin=0, decided=0), [], 0
    for cut in sorted({*cuts, 60}):
        found += taken(partition, values[at:cut], at)
        at = cut
    assert found == wanted


@given(st.integers(0, 10_000), st.integers(0, 400), st.integers(1, 50))
def test_a_partition_that_moves_goes_on_as_if_it_had_not(seed: int, moved: int, batch: int) -> None:
    values, made = drawn(seed, 400), recipe(keep=["n"])
    undisturbed = taken(made.partition(0, begin=0, decided=0), values)
    first, found = made.partition(0, begin=0, decided=0), []
    for at in range(0, moved, batch):
        found += taken(first, values[at : min(at + batch, moved)], at)
    begin = begin_of(first.mark, moved)
    assert begin is not None
    second = made.partition(0, begin=begin, decided=moved)
    if begin < moved:
        assert left_of(second, values[begin:moved], begin) is None
        assert second.counts() == {}
    found += taken(second, values[moved:], moved)
    assert found == undisturbed
    # What is not committed does not count: it may be decided again.
    assert second.counts() == {}
    second.settle()
    if moved < 400:
        assert second.counts()["records"] == 400 - moved
        assert second.counts()["bytes_in"] == sum(map(len, values[moved:]))


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=300),
    st.integers(0, 300),
    st.integers(1, 20),
)
def test_a_replay_begins_before_all_that_matters(times: list[int], span: int, batch: int) -> None:
    past, clock = Past(span, 0), 0
    for at in range(0, len(times), batch):
        piece = times[at : at + batch]
        clock = max(clock, *piece)
        past.note(at + len(piece), clock)
        assert all(time < clock - span for time in times[: past.begin])
        # Not much more than that: whatever comes before the first that matters, but for a batch.
        running = [max(times[: n + 1]) for n in range(at + len(piece))]
        first = next(n for n, latest in enumerate(running) if latest >= clock - span)
        assert past.begin >= first - batch - span // 256 * batch - 1 or past.begin == 0


def test_a_long_past_takes_little_room() -> None:
    past = Past(1000, 0)
    for number in range(100_000):
        past.note(number, number // 10)
    assert len(past._pieces) < 400
    assert 85_000 < past.begin <= 90_000


def test_messages_are_told_apart_whatever_they_hold() -> None:
    partition = recipe(z=1, keep=["n"]).partition(0, begin=0, decided=0)
    good = b'{"ts":1700000000,"uid":"a","host":"h","n":%d}'
    values = [
        good % 0, b"", None, b"{}{}", b"\xff", good % 1 + b"\n", b'{"ts":1700000000,\n"uid":1}',
        b'{"ts":1700000000,"uid":"a\nb","host":"h"}', good % 2, b"x" * (2 << 20), good % 3,
    ]  # fmt: skip
    left = left_of(partition, values)
    assert left is not None
    assert list(left.places) == [0, 5, 8, 10]
    assert [json.loads(record)["n"] for record in left.records] == [0, 1, 2, 3]
    kinds = [(place, kind) for place, kind, _ in left.troubles]
    assert kinds == [
        (3, "syntax"),
        (4, "not-utf8"),
        (6, "missing-field"),
        (7, "syntax"),
        (9, "too-long"),
    ]
    partition.settle()
    counts = partition.counts()
    assert (counts["records"], counts["passed"], counts["lines"]) == (4, 2, 11)


def test_a_message_of_csv_is_one_record() -> None:
    made = replace(recipe(z=1, keep=["x"]), format=Format.CSV, columns=["ts", "uid", "x", "host"])
    partition = made.partition(0, begin=0, decided=0)
    row = b"1700000000,a,%s,h"
    values = [row % b"1", b"ts,uid,x,host", row % b'"2\n3"', row % b"4" + b"\r\n", row % b'"5',
              row % b"6" + b"\n" + row % b"7", row % b"8"]  # fmt: skip
    left = left_of(partition, values)
    assert left is not None
    assert list(left.places) == [0, 2, 3, 6]
    assert left.records[1] == b'1700000000,a,h,"2\n3"'
    assert [(place, kind) for place, kind, _ in left.troubles] == [
        (1, "time"), (4, "cut-off"), (5, "syntax"),
    ]  # fmt: skip
    with pytest.raises(LookupError):
        replace(made, columns=["ts", "uid", "x"]).partition(0, begin=0, decided=0)


def test_the_key_that_leaves_is_what_the_record_shows() -> None:
    ladder = parse([{"segments": ".", "levels": 2}])
    host = Attribute("host", z=2, window="60s", hierarchy=ladder)
    other = Attribute("app", z=2, window="60s")
    made = Policy(
        time=Time("ts", format="s"), user=User("uid", pseudonym="raw"), attributes=(host, other),
        limits=Limits(max_future=None),
    )  # fmt: skip
    partition = Recipe(policy=made, partitions=1).partition(0, begin=0, decided=0)
    events = [
        ("a", "x.b.c", 1),
        ("b", "y.b.c", 1),
        ("c", "y.b.c", 1),
        ("d", None, 1),
        ("e", None, 2),
    ]
    values = [
        json.dumps({"ts": START, "uid": user, "host": host, "app": app}).encode()
        for user, host, app in events
    ]
    left = left_of(partition, values)
    assert left is not None
    shown = [(record["host"], record["app"]) for record in map(json.loads, left.records)]
    for key, (label, app) in zip(left.keys, shown, strict=True):
        assert key == (str(app) if label is None else label).encode()
    assert list(left.places) == [1, 2, 3]


@pytest.mark.parametrize("form", [Format.NDJSON, Format.CSV])
def test_equal_values_have_equal_keys(form: Format) -> None:
    made = replace(recipe(), format=form, columns=["ts", "uid", "host"])
    if form is Format.CSV:
        values = [b"1700000000,a,h", b'1700000000,a,"h"', b"1700000000,a,"]
        wanted = [b"h", b"h", None]
    else:
        hosts = [
            b'"h"',
            b'"\\u0068"',
            b"7",
            b"-0",
            b"0",
            b"0.0",
            b"-0.0",
            b"1e2",
            b"100.0",
            b"true",
        ]
        values = [b'{"ts":1700000000,"uid":"a","host":%s}' % host for host in hosts]
        wanted = [b"h", b"h", b"7", b"0", b"0", b"0.0", b"0.0", b"100.0", b"100.0", b"true"]
    left = keyer(made).way.key_messages(batch_of(values), 0, len(values))
    assert left.keys == wanted
    assert left.places == list(range(len(values)))
    assert left.records == values
    assert left.troubles == []
    assert left.bytes_in == left.bytes_out == sum(map(len, values))


def test_a_value_on_two_partitions_is_found_at_once() -> None:
    made, witness = recipe(), Witness()
    one, two = (made.partition(number, begin=0, decided=0) for number in (0, 3))
    event = b'{"ts":1700000000,"uid":"a","host":"%s"}'
    left_of(one, [event % b"a", event % b"b"], 0, witness)
    left_of(two, [event % b"c"], 0, witness)
    assert witness.found() == [(0, 0, 0)]
    left_of(two, [event % b"a"], 1, witness)
    assert witness.found() == [(1, 0, 3)]
    many = [event % (b"%d" % number) for number in range(200_000)]
    for _ in range(2):
        left_of(one, many, one.position, witness)
    assert witness.found() == [(1, 0, 3)]


def test_limits_are_shared_by_partitions() -> None:
    made = replace(recipe(memory="800MB", max_attributes=1000), partitions=8)
    assert made.share.limits.memory == 100_000_000
    assert made.share.limits.attributes == 125
    assert made.share.fingerprint != made.policy.fingerprint
    assert replace(made, partitions=10_000).share.limits.memory == 4 << 20


def test_a_run_in_the_middle_of_a_batch_is_taken_as_if_it_were_alone() -> None:
    event = b'{"ts":1700000000,"uid":"%s","host":"h","n":%d}'
    good = [event % (b"abc"[at : at + 1], at) for at in range(3)]
    messages = MessageBatch(
        [(0, 7, b"bad", None), (1, 3, good[0], b"k"), (1, 4, b"{", None), (1, 5, good[1], None),
         (1, 9, good[2], b""), (0, 8, None, None)],
    )  # fmt: skip
    assert messages.runs() == [(0, 0, 1), (1, 1, 5), (0, 5, 6)]
    assert [messages.first_at(1, 5, offset) for offset in (0, 4, 6, 10)] == [1, 2, 4, 5]
    assert [messages.key(number) for number in (1, 3, 4)] == [b"k", None, b""]
    partition = recipe(z=2, keep=["n"]).partition(1, begin=3, decided=3)
    left = partition.take(messages, 1, 5, None)
    assert left is not None
    assert (left.places, len(left)) == ([3, 4], 2)
    assert [json.loads(record)["n"] for record in left.records] == [1, 2]
    assert left.keys == [b"h", b"h"]
    assert [(place, kind) for place, kind, _ in left.troubles] == [(2, "cut-off")]
    assert left.bytes_in == sum(map(len, good)) + 1
    assert left.bytes_out == sum(map(len, left.records))
    assert partition.position == 10
    for start, end in ((0, 7), (4, 3)):
        with pytest.raises(IndexError):
            partition.take(messages, start, end, None)
    with pytest.raises(IndexError):
        messages.offset(6)


def test_what_is_left_unchanged_is_all_of_it() -> None:
    left = Left.unchanged(MessageBatch([(0, 1, b"one", b"k"), (0, 2, None, None)]))
    assert (left.records, left.keys, left.places) == ([b"one", b""], [None, None], [0, 1])
    assert (len(left), left.bytes_in, left.bytes_out) == (2, 3, 3)
