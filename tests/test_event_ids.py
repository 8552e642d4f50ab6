"""Ids of events: what came before is found out, for a window of the stream, within a limit."""

from collections import OrderedDict
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zveil import Gate
from zveil._native import EventIds, TextWay

KEY = bytes(range(32))
NANO = 10**9


def ids(window: float = 10, most: int = 1_000, **options: int | None) -> EventIds:
    future = {"max_future_ns": None} | options
    return EventIds(key=KEY, window_ns=int(window * NANO), most=most, **future)


def asked(known: EventIds, times: list[float | None], values: pa.Array) -> list[bool]:
    bits, repeated = known.fresh(pa.array(times, pa.float64()), values, NANO)
    mask = pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
    assert repeated == len(values) - sum(mask.to_pylist())
    return mask.to_pylist()


def test_a_repeated_id_is_found_out_within_the_window() -> None:
    known = ids()
    assert asked(known, [0, 10, 11, 11], pa.array(["a", "a", "a", "b"])) == [1, 0, 1, 1]
    assert (known.repeated, known.forgotten, len(known)) == (1, 0, 2)


def test_an_event_without_an_id_is_taken() -> None:
    assert asked(ids(), [0, 0, None], pa.array([None, None, None], pa.string())) == [1, 1, 1]


def test_one_id_in_several_types() -> None:
    known = ids()
    assert asked(known, [0], pa.array([7])) == [1]
    texts = pa.array(["7"])
    for same in (texts, pa.array([7.0]), pa.array([b"7"]), texts.dictionary_encode()):
        assert asked(known, [0], same) == [0]


def test_the_oldest_go_first_and_are_counted() -> None:
    known = ids(most=2)
    assert asked(known, [0] * 5, pa.array(["a", "b", "c", "b", "a"])) == [1, 1, 1, 0, 1]
    assert (len(known), known.forgotten) == (2, 2)


def test_a_time_from_the_future_wipes_nothing() -> None:
    known = EventIds(key=KEY, window_ns=10 * NANO, most=10)
    absurd = 9e9
    assert asked(known, [0, absurd, 5, 5], pa.array(["a", "b", "a", "b"])) == [1, 1, 0, 0]


@given(st.integers(0, 2**32).map(Random), st.integers(1, 300))
def test_equals_a_plain_dictionary(random: Random, length: int) -> None:
    window, most = random.randint(0, 30), random.randint(1, 40)
    known, clock, forgotten = ids(window, most), -99, 0
    held: OrderedDict[int, int] = OrderedDict()
    for number in range(length):
        time, value = number // 3 - random.randint(0, 9), random.randrange(50)
        clock = max(clock, time)
        while held and next(iter(held.values())) < clock - window:
            held.popitem(last=False)
        is_fresh = value not in held
        if is_fresh:
            if len(held) == most:
                held.popitem(last=False)
                forgotten += 1
            held[value] = clock
        assert asked(known, [time], pa.array([value])) == [is_fresh]
    assert (len(known), known.forgotten) == (len(held), forgotten)


def test_memory_is_flat() -> None:
    known = ids(window=1_000, most=20_000)
    largest = 0
    for block in range(60):
        first = block * 10_000
        asked(known, [block * 10.0] * 10_000, pa.array(range(first, first + 10_000)))
        if block > 10:
            largest = largest or known.memory
            assert known.memory <= largest
    assert largest < 20_000 * 64


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"most": 0}, "most: expected from 1"),
        ({"window_ns": -1}, "window: expected"),
        ({"max_future_ns": -1}, "max_future: expected"),
    ],
)
def test_settings_are_checked(wrong: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        EventIds(**({"key": KEY, "window_ns": 1, "most": 1} | wrong))  # type: ignore[arg-type]


def test_columns_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="ids: expected one for each time"):
        ids().fresh(pa.array([1, 2]), pa.array(["a"]), 1)


def way(source: str, fields: list[str], *, keep_rest: bool = False) -> TextWay:
    return TextWay(
        source=source, source_delimiter=",", to="ndjson", to_delimiter="", fields=fields,
        attributes=1, veiled=[None], ladders=[None], positions=[None], swaps=[0.0],
        keep_rest=keep_rest, blank=True, time_format="s", step_ns=None, max_line=1_000,
        stop_at_problem=False, keyring=None, threads=1, id_field="id",
    )  # fmt: skip


def gate() -> Gate:
    return Gate(1, 100, max_future=None, time_unit="ns", key=KEY)


def test_a_bad_record_does_not_use_up_its_id() -> None:
    tested, known = way("ndjson", ["ts", "uid", "host"]), ids()
    bad = b'{"ts":1,"uid":true,"host":"x","id":1}\n{"ts":"soon","uid":"u","host":"x","id":1}\n'
    good = b'{"ts":1,"uid":"u","host":"x","id":1}\n'
    other = b'{"ts":1,"uid":"u","host":"x","id":{}}\n'
    held = gate()
    out = b"".join(tested.feed([held], bad + good + good + other, True, ids=known))
    assert out == b'{"ts":1,"uid":"u","host":"x"}\n'
    tally = tested.tally()
    assert (tally["records"], tally["repeated"], tally["lines"]) == (1, 1, 5)
    assert tally["bad"]["wrong-type"] == 2
    assert held.stats().observed == 1


def test_without_ids_at_hand_everything_is_taken() -> None:
    line = b'{"ts":1,"uid":"u","host":"x","id":1}\n'
    tested = way("ndjson", ["ts", "uid", "host"])
    assert len(b"".join(tested.feed([gate()], line * 3, True)).splitlines()) == 3


def test_an_id_leaves_where_it_is_kept_by_name_only() -> None:
    line = b'{"ts":1,"uid":"u","host":"x","id":"e1","note":2}\n'
    kept = way("ndjson", ["ts", "uid", "host", "id"])
    out = kept.feed([gate()], line * 2, True, ids=ids())
    assert b"".join(out) == b'{"ts":1,"uid":"u","host":"x","id":"e1"}\n'
    rest = way("ndjson", ["ts", "uid", "host"], keep_rest=True)
    out = rest.feed([gate()], line * 2, True, ids=ids())
    assert b"".join(out) == b'{"ts":1,"uid":"u","host":"x","note":2}\n'


def test_a_table_must_have_the_column() -> None:
    tested = way("csv", ["ts", "uid", "host"])
    with pytest.raises(LookupError) as told:
        tested.feed([gate()], b"ts,uid,host\n1,u,x\n", True, ids=ids())
    assert told.value.args == ("id", ["ts", "uid", "host"])
    tested = way("csv", ["ts", "uid", "host"], keep_rest=True)
    data = b"id,ts,uid,more,host\ne,1,u,m,x\ne,1,u,m,x\n,2,u,m,x\n,2,u,m,x\n"
    out = b"".join(tested.feed([gate()], data, True, ids=ids())).splitlines()
    assert out[0] == b'{"ts":1,"uid":"u","host":"x","more":"m"}'
    assert len(out) == 3
