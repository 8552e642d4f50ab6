"""Times that leave rounded: multiples of the step, and decisions as without rounding."""

from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from events import NANO, csv_lines, cut, fed, ndjson, objects, story, table, wanted
from hypothesis import given
from hypothesis import strategies as st
from program import ran
from test_run import T, policy

from zveil.io import Format
from zveil.policy.parts import STEPS_NS

randoms = st.integers(0, 2**32).map(Random)
roundings = st.sampled_from(["minute", "hour", "day"])


def step_s(rounding: Any) -> int:
    step = STEPS_NS[rounding]
    assert step is not None
    return step // NANO


@given(randoms, st.integers(1, 40), roundings, st.booleans(), st.booleans())
def test_text_leaves_as_without_rounding_but_for_its_times(
    random: Random, length: int, rounding: Any, is_json: bool, blank: bool
) -> None:
    told = story(random, length, values=[*"aab", None])
    rule: dict[str, Any] = {"raw_users": True, "empty": "blank" if blank else "drop"}
    form = Format.NDJSON if is_json else Format.CSV
    lines = ndjson(random, told) if is_json else csv_lines(random, told)
    data = b"".join(lines)
    exact, _ = fed(told.policy(**rule), [data], form)
    pieces = cut(random, data, random.randint(1, 5))
    found, _ = fed(told.policy(round=rounding, **rule), pieces, form)
    read = objects if is_json else table
    step = step_s(rounding)
    rounded = [record | {"ts": type(record["ts"])(int(record["ts"]) // step * step)}
               for record in read(exact)]  # type: ignore[operator]  # fmt: skip
    assert read(found) == rounded  # type: ignore[operator]
    assert len(rounded) == len(wanted(told, blank=blank))


@pytest.mark.parametrize(
    ("given", "by", "left"),
    [
        ("1700000000.123", "hour", "1699999200"),
        ("1700000000", "minute", "1699999980"),
        ("1700000000", "day", "1699920000"),
        ('"1700000000.5"', "hour", '"1699999200"'),
        ("1.7e9", "hour", "1699999200"),
        ("1700000000123", "hour", "1699999200000"),
        ("1700000000123456", "hour", "1699999200000000"),
        ("1700000000123456789", "hour", "1699999200000000000"),
        ("-1", "hour", "-3600"),
        ('"2023-11-14T23:13:20.5+01:00"', "hour", '"2023-11-14T22:00:00Z"'),
        ('"2023-11-14T22:13:20"', "minute", '"2023-11-14T22:13:00Z"'),
        ('"2023-11-14 22:13\\u003a20"', "minute", '"2023-11-14T22:13:00Z"'),
        ('"2024-02-29"', "hour", '"2024-02-29T00:00:00Z"'),
        ('"1969-12-31T23:59:59Z"', "day", '"1969-12-31T00:00:00Z"'),
    ],
)
def test_unit_and_spelling_are_those_of_the_input(given: str, by: Any, left: str) -> None:
    rule = policy(z=1, round=by, raw_users=True)
    line = f'{{"ts":{given},"uid":"u","host":"a"}}\n'.encode()
    found, _ = fed(rule, [line])
    assert found.decode() == f'{{"ts":{left},"uid":"u","host":"a"}}\n'
    found, _ = fed(rule, [line], Format.NDJSON, Format.CSV)
    assert found.decode() == f"ts,uid,host\n{left.strip(chr(34))},u,a\n"


def test_csv_times_become_numbers_or_dates() -> None:
    for given_time, left in (("1700000000.5", "1699999200"),
                             ('"2023-11-14T22:13:20Z"', '"2023-11-14T22:00:00Z"')):  # fmt: skip
        data = f"ts,uid,host\n{given_time},u,a\n".encode()
        rule = policy(z=1, round="hour", raw_users=True)
        found, _ = fed(rule, [data], Format.CSV, Format.NDJSON)
        assert found.decode() == f'{{"ts":{left},"uid":"u","host":"a"}}\n'
        found, _ = fed(rule, [data], Format.CSV)
        assert found.decode().splitlines()[1] == f"{left.strip(chr(34))},u,a"


def test_what_has_no_time_has_none_rounded() -> None:
    rule = policy(z=1, round="hour", raw_users=True, empty="blank")
    data = b'{"ts":null,"uid":"u","host":"a"}\n{"ts":1700000000,"uid":"u","host":"a"}\n'
    assert [record["ts"] for record in objects(fed(rule, [data])[0])] == [None, 1699999200]
    first = b'{"ts":"1677-09-21T00:12:44Z","uid":"u","host":"a"}\n'
    assert [record["ts"] for record in objects(fed(rule, [first])[0])] == [None]


KINDS = [
    pa.timestamp("s"), pa.timestamp("ms", tz="Asia/Kolkata"), pa.timestamp("us", tz="UTC"),
    pa.timestamp("ns"), pa.int64(), pa.int32(), pa.uint32(), pa.uint64(), pa.float64(),
    pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int32(), pa.int64()),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("by", ["minute", "hour", "day"])
def test_columns_leave_as_without_rounding_but_for_their_times(
    tmp_path: Path, kind: pa.DataType, by: Any
) -> None:
    random = Random(1)
    seconds = sorted(T + random.randrange(200_000) for _ in range(300))
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    times = pa.array(seconds)
    times = times.cast(pa.timestamp("s")).cast(plain) if pa.types.is_timestamp(plain) else times
    times = times.cast(plain)
    given_times = times.dictionary_encode() if pa.types.is_dictionary(kind) else times
    source = tmp_path / "in.parquet"
    users = [f"u{random.randrange(9)}" for _ in seconds]
    hosts = [random.choice("aabbc") for _ in seconds]
    pq.write_table(pa.table({"ts": given_times, "uid": users, "host": hosts}), source)
    found = {}
    for rounding in ("none", by):
        output = tmp_path / f"{rounding}.parquet"
        rule = policy(z=3, window="1h", raw_users=True, empty="blank", round=rounding)
        summary, _ = ran(rule, [source], output)
        found[rounding] = pq.read_table(output)
    exact, rounded = found["none"], found[by]
    assert rounded.select(["uid", "host"]) == exact.select(["uid", "host"])
    assert 0 < summary.outcomes[0].released < len(seconds)
    step = step_s(by)
    left = rounded["ts"].combine_chunks()
    if pa.types.is_timestamp(left.type):
        assert left.type == exact["ts"].type
        left = left.cast(pa.timestamp("s", tz=left.type.tz)).cast(pa.int64())
    assert [int(second) for second in left.to_pylist()] == [s // step * step for s in seconds]


def test_columns_of_dates_in_text(tmp_path: Path) -> None:
    source, output = tmp_path / "in.parquet", tmp_path / "out.parquet"
    times = ["2023-11-14T23:13:20.5+01:00", None, "2023-11-14 22:59:59", "1969-12-31T23:59:59Z"]
    columns = {"ts": times, "uid": ["u"] * 4, "host": ["a"] * 4}
    pq.write_table(pa.table(columns), source)
    ran(policy(z=1, round="hour", empty="blank"), [source], output)
    assert pq.read_table(output)["ts"].to_pylist() == [
        "2023-11-14T22:00:00Z", None, "2023-11-14T22:00:00Z", "1969-12-31T23:00:00Z",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("times", "left"),
    [
        (pa.array([1_700_000_000.75, None, float("nan")]), [1_699_999_200.0, None, None]),
        (pa.array([1.7e9], pa.float32()), [1_699_999_200.0]),
        (pa.array([-1, 0, -(2**31)], pa.int32()), [-3600, 0, None]),
        (pa.array([-(2**63) + 1], pa.timestamp("ns")), [None]),
        (pa.array([19675], pa.date32()), [datetime(2023, 11, 14, tzinfo=UTC).date()]),
    ],
)
def test_numbers_and_dates_at_their_ends(tmp_path: Path, times: pa.Array, left: list[Any]) -> None:
    source, output = tmp_path / "in.parquet", tmp_path / "out.parquet"
    names = ["u"] * len(times)
    pq.write_table(pa.table({"ts": times, "uid": names, "host": names}), source)
    ran(policy(z=1, round="hour", empty="blank", max_future=None), [source], output)
    found = pq.read_table(output)["ts"].to_pylist()
    assert [None if value != value else value for value in found] == left


@pytest.mark.parametrize("form", ["ndjson", "csv"])
def test_text_that_becomes_columns_is_rounded(tmp_path: Path, form: str) -> None:
    source, output = tmp_path / f"in.{form}", tmp_path / "out.parquet"
    if form == "csv":
        source.write_text("ts,uid,host\n1700000000.5,u,a\n")
    else:
        source.write_text('{"ts":1700000000.5,"uid":"u","host":"a"}\n')
    ran(policy(z=1, round="hour"), [source], output)
    [left] = pq.read_table(output)["ts"].to_pylist()
    assert left.timestamp() == 1_699_999_200
