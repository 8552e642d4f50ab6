"""Idempotency keys: a request that comes again is answered as before."""

import json
from collections.abc import Iterator
from itertools import count

import pytest
from events import START
from program import line
from service import NDJSON, Service, chunk, head

from zveil.serve.problem import ProblemError
from zveil.serve.replay import Replays
from zveil.serve.tokens import ANYONE


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service("--raw-users") as started:
        yield started


KEYS = (f"key-{number}" for number in count())
CLOCK = count(START, 100_000)


def body(*users: str) -> bytes:
    now = next(CLOCK)
    return b"".join(line(now, user, "example.org") for user in users)


@pytest.mark.parametrize("kind", [NDJSON, "application/json"])
def test_a_retry_is_answered_the_same_and_decided_once(service: Service, kind: str) -> None:
    """The second time bob would be released, too."""
    key, sent = next(KEYS), body("ada", "bob") if kind == NDJSON else body("ada")
    before = service.metrics()["zveil_records_total"]
    first = service.post(sent, kind=kind, Idempotency_Key=key)
    records = service.metrics()["zveil_records_total"] - before
    for _ in range(3):
        again = service.post(sent, kind=kind, Idempotency_Key=key)
        assert (again.status, again.body) == (first.status, first.body)
        assert again.headers["idempotency-replayed"] == "true"
    assert service.metrics()["zveil_records_total"] - before == records > 0


def test_a_problem_is_remembered_too(service: Service) -> None:
    key = next(KEYS)
    for sent, kind in ((b"{}\n", NDJSON), (b"{}", "application/json")):
        first = service.post(sent, kind=kind, Idempotency_Key=key + kind)
        again = service.post(sent, kind=kind, Idempotency_Key=key + kind)
        assert first.status == again.status == 422
        assert first.body == again.body


def test_another_body_under_the_same_key_is_refused(service: Service) -> None:
    key, sent = next(KEYS), body("ada", "bob")
    first = service.post(sent, Idempotency_Key=key)
    before = service.metrics()["zveil_records_total"]
    for other in (body("ada", "bob"), sent + sent, sent[:50], b"", sent + b"\n"):
        answer = service.post(other, Idempotency_Key=key)
        assert (answer.status, answer.kind) == (422, "key-reused"), other
    assert service.metrics()["zveil_records_total"] == before
    assert service.post(sent, Idempotency_Key=key).body == first.body


@pytest.mark.parametrize("key", ["", "a b", "k" * 129, "\xe4"])
def test_a_key_that_is_none_is_refused(service: Service, key: str) -> None:
    answer = service.post(body("ada"), Idempotency_Key=key)
    assert (answer.status, answer.kind) == (422, "bad-key")


def test_while_the_first_runs_the_second_is_told_so(service: Service) -> None:
    key, sent = next(KEYS), body("ada", "bob")
    with service.connect() as client:
        more = ("Transfer-Encoding: chunked", f"Content-Type: {NDJSON}", f"Idempotency-Key: {key}")
        client.sendall(head(*more) + chunk(sent))
        assert client.recv(12) == b"HTTP/1.1 200"
        answer = service.post(sent, Idempotency_Key=key)
        assert (answer.status, answer.kind) == (409, "key-running")
        client.sendall(b"0\r\n\r\n")
        while not client.recv(65536).endswith(b"0\r\n\r\n"):
            pass
    assert service.post(sent, Idempotency_Key=key).headers["idempotency-replayed"] == "true"


def test_a_request_that_broke_off_is_gone_on_with(service: Service) -> None:
    """What was decided is answered as then, the rest is decided now: nothing twice."""
    key = next(KEYS)
    sent = body("ada", "bob", "cyd", "dan")
    two = len(b"".join(sent.splitlines(keepends=True)[:2]))
    before = service.metrics()["zveil_records_total"]
    with service.connect() as client:
        more = ("Transfer-Encoding: chunked", f"Content-Type: {NDJSON}", f"Idempotency-Key: {key}")
        client.sendall(head(*more) + chunk(sent[: two + 10]))
        assert client.recv(12) == b"HTTP/1.1 200"
    while (answer := service.post(sent, Idempotency_Key=key)).status == 409:
        pass
    assert [json.loads(each)["uid"] for each in answer.body.splitlines()] == ["bob", "cyd", "dan"]
    assert service.metrics()["zveil_records_total"] - before == 4
    assert service.post(sent, Idempotency_Key=key).body == answer.body


def test_an_answer_too_large_to_keep_is_not_given_twice(service: Service) -> None:
    key = next(KEYS)
    sent = body("ada", "bob") * 20_000
    assert len(service.post(sent, Idempotency_Key=key).body) > 1 << 20
    answer = service.post(sent, Idempotency_Key=key)
    assert (answer.status, answer.kind) == (409, "answer-gone")


def test_answers_are_forgotten_with_a_user(service: Service) -> None:
    key, sent = next(KEYS), body("ada", "bob")
    service.post(sent, Idempotency_Key=key)
    service.ask("POST", "/v1/forget", b'{"user": "ada"}', kind="application/json")
    again = service.post(sent, Idempotency_Key=key)
    assert "idempotency-replayed" not in again.headers


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def finished(replays: Replays, key: bytes, answer: bytes) -> None:
    record = replays.begin(ANYONE, key)
    record.take(b"body", 4)
    record.say(answer)
    record.finish(200, NDJSON)
    replays.end(record)


def test_memory_is_bounded_in_number_bytes_and_time() -> None:
    clock = Clock()
    replays = Replays(keep_s=10, most=5, most_bytes=100, most_answer=50, clock=clock)
    for number in range(20):
        finished(replays, b"%d" % number, b"x" * 10)
    assert len(replays) == 5
    for number in range(20):
        finished(replays, b"large%d" % number, b"x" * 50)
    assert len(replays) == 2
    clock.now = 11
    assert not replays.begin(ANYONE, b"large19").is_begun
    assert len(replays) == 1
    with pytest.raises(ProblemError, match="key-running"):
        replays.begin(ANYONE, b"large19")
    finished(replays, b"huge", b"x" * 51)
    with pytest.raises(ProblemError, match="answer-gone"):
        replays.begin(ANYONE, b"huge")
