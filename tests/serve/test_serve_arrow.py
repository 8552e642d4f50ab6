"""Arrow over HTTP: batches in, what is released out."""

import http.client
import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from events import START
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from program import FIELDS
from service import ARROW, Answer, Service

CLOCK = iter(range(START, 10**10, 100_000))


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service("--raw-users", "--keep", "n") as started:
        yield started


def rows(*users: Any, host: Any = "a.example") -> pa.RecordBatch:
    now = next(CLOCK)
    return pa.RecordBatch.from_pylist(
        [{"ts": now, "uid": user, "host": host, "n": n, "x": "x"} for n, user in enumerate(users)]
    )


def stream(*batches: pa.RecordBatch, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema, **options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def table(answer: Answer) -> pa.Table:
    assert (answer.status, answer.headers["content-type"]) == (200, ARROW), answer
    return pa.ipc.open_stream(io.BytesIO(answer.body)).read_all()


def test_what_is_released_comes_back_as_batches(service: Service) -> None:
    first, second = rows("ada", "bob", "cyd"), rows("ada", None, "bob")
    found = table(service.post(stream(first, second), kind=ARROW))
    assert found.column_names == ["ts", "uid", "host", "n"]
    assert found["n"].to_pylist() == [1, 2, 2]
    assert found["uid"].to_pylist() == ["bob", "cyd", "bob"]


def test_it_may_come_in_pieces_of_any_size(service: Service) -> None:
    body = stream(rows("ada", "bob"), rows("ada", "bob"))
    for size in (1, 100, 1000):
        moved = stream(rows("ada", "bob"), rows("ada", "bob"))
        assert len(moved) == len(body)
        pieces = (moved[at : at + size] for at in range(0, len(moved), size))
        assert table(service.post(pieces, kind=ARROW)).num_rows == 2


def test_text_and_columns_are_one_stream(service: Service) -> None:
    batch = rows("ada", host="both.example")
    when = batch.column("ts")[0].as_py()
    assert table(service.post(stream(batch), kind=ARROW)).num_rows == 0
    text = b'{"ts":%d,"uid":"bob","host":"both.example"}\n' % when
    assert service.post(text).body.count(b"\n") == 1


def test_dictionaries_are_taken(service: Service) -> None:
    def worded(host: str, *users: str) -> pa.RecordBatch:
        batch = rows(*users, host=host)
        column = pa.array([host] * len(users)).dictionary_encode()
        return batch.set_column(2, "host", column)

    one, two = worded("d1.example", "ada", "bob"), worded("d2.example", "ada", "bob", "cyd")
    found = table(service.post(stream(one, two), kind=ARROW))
    assert found["host"].to_pylist() == ["d1.example", "d2.example", "d2.example"]


def test_a_retry_is_answered_the_same(service: Service) -> None:
    body = stream(rows("ada", "bob"))
    first = service.post(body, kind=ARROW, Idempotency_Key="arrow")
    assert table(first).num_rows == 1
    again = service.post(body, kind=ARROW, Idempotency_Key="arrow")
    assert (again.status, again.body) == (first.status, first.body)
    other = service.post(stream(rows("ada", "bob")), kind=ARROW, Idempotency_Key="arrow")
    assert other.kind == "key-reused"


def packed() -> bytes:
    return stream(rows("ada"), options=pa.ipc.IpcWriteOptions(compression="zstd"))


def without(name: str) -> bytes:
    return stream(rows("ada").drop_columns([name]))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "no columns"),
        (b"nothing of the kind", "no Arrow stream"),
        (stream(rows("ada"))[:-100], "middle of a message"),
        (stream(rows("ada")) + b"more", "follows the end"),
        (packed(), "Packed"),
        (without("host"), "one column 'host'"),
        (stream(rows([1])), "cannot be read"),
        (stream(rows("ada").set_column(0, "ts", pa.array([[1]]))), "cannot be read"),
        (stream(pa.record_batch({"ts": pa.nulls(2**21), "uid": pa.nulls(2**21),
                                 "host": pa.nulls(2**21), "n": pa.nulls(2**21)})), "rows"),
    ],
)  # fmt: skip
def test_what_cannot_be_decided_is_told(service: Service, body: bytes, words: str) -> None:
    answer = service.post(body, kind=ARROW)
    assert (answer.status, answer.kind) == (422, "bad-columns")
    assert words in answer.json["detail"]


def test_times_that_are_none_are_counted() -> None:
    batch = rows("ada", "bob").set_column(0, "ts", pa.array(["2026-01-01T00:00:00Z", "never"]))
    with Service(rule=(*FIELDS, "-z", "1", "--window", "1h")) as fresh:
        assert table(fresh.post(stream(batch), kind=ARROW)).num_rows == 1
        assert fresh.metrics()['zveil_bad_lines_total{kind="time"}'] == 1


GOOD = stream(rows("ada", "bob"), rows("cyd", "dan"))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_body_harms_nobody(service: Service, data: st.DataObject) -> None:
    damaged = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        answer = service.post(bytes(damaged), kind=ARROW)
    except (http.client.IncompleteRead, ConnectionError):
        pass  # it was found out after the answer had begun, which is then cut off
    else:
        assert answer.status in (200, 422), answer
    assert service.ask("GET", "/readyz", kind=None).status == 200
