"""Events over real connections: what comes back, in which order, and when."""

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from events import START
from program import FIELDS, line, run
from service import NDJSON, PATIENCE_S, Service, ask, chunk, head

from zveil.reference import Reference


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service("--raw-users") as started:
        yield started


CLOCK = iter(range(START, 10**10, 100_000))


def crowd(*users: str, host: str = "example.org") -> bytes:
    """Events of some users at one place, a day after those before."""
    now = next(CLOCK)
    return b"".join(line(now, user, host) for user in users)


def test_what_two_users_share_comes_back_and_nothing_else(service: Service) -> None:
    body = crowd("ada", "bob", "cyd")
    answer = service.post(body)
    assert (answer.status, answer.headers["content-type"]) == (200, NDJSON)
    assert answer.body.splitlines() == [
        json.dumps(json.loads(each), separators=(",", ":")).encode()
        for each in body.splitlines()[1:]
    ]
    assert service.post(crowd("ada")).body == b""


def pieces(body: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(body), size):
        yield body[at : at + size]


@pytest.mark.parametrize("size", [7, 4_096, 10**6])
def test_the_answer_is_that_of_a_pipe(tmp_path: Path, size: int) -> None:
    """The same bytes as `zveil run`, pseudonyms too, however the body is cut."""
    key = tmp_path / "key"
    key.write_text("17" * 32)
    key.chmod(0o600)
    body = b"".join(line(START + n, n % 7, f"host{n % 5}") for n in range(300))
    body += b'{"ts": 1}\n\nnot json\n\xff\n' + b"x" * 2_000 + b"\n" + line(START, "late", "host1")
    body += line(START + 300, "x", "host1")[:-1]
    wanted = run("--key-file", key, "--max-line", "1000", stdin=body).stdout
    assert wanted.count(b"\n") > 200
    with Service("--key-file", key, "--max-line", "1000") as started:
        answer = started.post(pieces(body, size))
        assert answer.body == wanted
        figures = started.metrics()
    assert figures["zveil_lines_total"] == body.count(b"\n") + 1
    assert figures['zveil_bad_lines_total{kind="too-long"}'] == 1
    assert figures['zveil_bad_lines_total{kind="not-utf8"}'] == 1


def test_a_line_is_answered_while_the_body_goes_on(service: Service) -> None:
    """Both ways at once: half a line waits, a whole one does not."""
    first, second = crowd("ada", "bob", host="a.example").splitlines(keepends=True)
    with service.connect() as client:
        client.sendall(head("Transfer-Encoding: chunked", f"Content-Type: {NDJSON}"))
        client.sendall(chunk(first + second[:10]))
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(PATIENCE_S)
        client.sendall(chunk(second[10:]))
        answer = client.makefile("rb")
        assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
        while answer.readline() != b"\r\n":
            pass
        size = int(answer.readline(), 16)
        released = answer.read(size)
        assert json.loads(released)["uid"] == "bob"
        answer.read(2)
        client.sendall(chunk(second))
        size = int(answer.readline(), 16)
        assert answer.read(size) == released
        answer.read(2)
        client.sendall(b"0\r\n\r\n")
        assert answer.readline() == b"0\r\n"


def test_a_single_observation_is_told_its_decision(service: Service) -> None:
    first, second = crowd("ada", "bob", host="b.example").splitlines()
    veiled = service.post(first, kind="application/json")
    assert (veiled.status, veiled.json) == (200, {"released": False, "record": None})
    pretty = json.dumps(json.loads(second), indent=2).encode()
    released = service.post(pretty, kind="application/json; charset=utf-8")
    assert released.json == {"released": True, "record": json.loads(second)}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "not-an-object"),
        (b"[]", "not-an-object"),
        (b"{", "cut-off"),
        (b'{"ts": 1, "uid": "a\n", "host": "b"}', "syntax"),
        (b'{"ts": 1, "uid": "a"}{"ts": 1}', "syntax"),
        (b'{"uid": "a", "host": "b"}', "missing-field"),
        (b'{"ts": "soon", "uid": "a", "host": "b"}', "time"),
    ],
)
def test_what_is_no_record_is_told_by_its_kind(service: Service, body: bytes, kind: str) -> None:
    service.post(crowd("ada"))
    answer = service.post(body, kind="application/json")
    assert (answer.status, answer.kind) == (422, "bad-record")
    assert answer.json["kind"] == kind
    assert "soon" not in answer.body.decode()


def test_a_body_of_bad_lines_only_is_a_problem(service: Service) -> None:
    answer = service.post(b'\n{"ts": 1}\nsecret\n')
    assert (answer.status, answer.kind) == (422, "bad-lines")
    assert answer.json["kinds"] == {"missing-field": 1, "syntax": 1}
    assert (answer.json["line"], answer.json["kind"]) == (2, "missing-field")
    assert b"secret" not in answer.body
    assert service.post(b"").status == 200
    assert service.post(b"\n\n").status == 200


def test_connections_share_one_crowd(service: Service) -> None:
    bodies = [crowd("ada", host="c.example")] + [b""] * 3
    when = json.loads(bodies[0])["ts"]
    bodies[1:] = [line(when, user, "c.example") for user in ("bob", "ada", "cyd")]
    clients = [http.client.HTTPConnection(*service.address) for _ in bodies]
    answers = [
        ask(client, "POST", "/v1/observations", body)
        for client, body in zip(clients, bodies, strict=True)
    ]
    for client in clients:
        client.close()
    assert [answer.body.count(b"\n") for answer in answers] == [0, 1, 1, 1]


def test_many_connections_decide_as_one_gate_on_the_merged_order() -> None:
    """Connections take turns, so that the order is known; test_serve_engine has them race."""
    random = Random(7)
    threads, blocks, lines = 8, 12, 6
    taken: list[tuple[int, list[dict[str, object]]]] = []
    with Service(
        "--raw-users", "--keep", "n", rule=(*FIELDS, "-z", "3", "--window", "10s")
    ) as started:
        lock = threading.Lock()
        order = iter(range(10**9))

        def post(worker: int) -> None:
            own = Random(worker)
            client = http.client.HTTPConnection(*started.address, timeout=PATIENCE_S)
            for _ in range(blocks):
                events = [
                    {"ts": START + own.randrange(40), "uid": f"u{own.randrange(6)}",
                     "host": f"h{own.randrange(4)}", "n": own.random()}
                    for _ in range(lines)
                ]  # fmt: skip
                body = b"".join(json.dumps(event).encode() + b"\n" for event in events)
                with lock:
                    number = next(order)
                    answer = ask(client, "POST", "/v1/observations", body)
                left = {json.loads(each)["n"] for each in answer.body.splitlines()}
                taken.append((number, [event | {"left": event["n"] in left} for event in events]))
            client.close()

        workers = [threading.Thread(target=post, args=(each,)) for each in range(threads)]
        random.shuffle(workers)
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    merged = [event for _, events in sorted(taken, key=lambda each: each[0]) for event in events]
    reference = Reference(3, 10)
    wanted = [reference.observe(event["ts"], event["uid"], event["host"]) for event in merged]
    assert [event["left"] for event in merged] == wanted
    assert 0.1 < sum(wanted) / len(wanted) < 0.9
