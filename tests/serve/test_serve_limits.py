"""Bounds: whoever is slow, large, many or rude is turned away, and the others go on."""

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from events import START
from program import FIELDS, line
from service import NDJSON, Service, chunk, head

ONE = line(START, "ada", "example.org")
ALL = ("-z", "1", "--window", "1h")
LONG = os.environ.get("ZVEIL_LONG")
"""Set to have a gigabyte sent."""


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    options = ["--head-timeout", "1s", "--idle-timeout", "1s", "--request-timeout", "3s"]
    options += ["--max-body", "1MiB", "--max-requests", "4", "--max-connections", "60"]
    with Service(*options, rule=(*FIELDS, *ALL)) as started:
        yield started


def goes_on(service: Service) -> None:
    """Others are answered at once."""
    began = time.monotonic()
    assert service.post(ONE).status == 200
    assert time.monotonic() - began < 5


def status(client: socket.socket) -> int:
    """Of the answer; 0 if the connection is ended without one."""
    try:
        with client.makefile("rb") as answer:
            words = answer.readline().split()
            return int(words[1]) if words else 0
    except ConnectionError:
        return 0


def kind(client: socket.socket) -> str:
    """Of the problem that is answered."""
    with client.makefile("rb") as answer:
        return str(json.loads(answer.read().partition(b"\r\n\r\n")[2])["type"]).rpartition(":")[2]


@pytest.mark.parametrize("said", [b"", b"POST /v1", head("X: y")[:-2]])
def test_a_slow_head_is_cut_off(service: Service, said: bytes) -> None:
    with service.connect() as client:
        client.sendall(said)
        goes_on(service)
        assert status(client) == 408


def test_a_head_that_drips_is_cut_off(service: Service) -> None:
    began = time.monotonic()
    with service.connect() as client:
        while time.monotonic() - began < 20:
            try:
                client.sendall(b"G")
            except ConnectionError:
                break
            time.sleep(0.1)
    assert time.monotonic() - began < 8


@pytest.mark.parametrize(
    ("said", "code", "problem"),
    [
        (b"\x16\x03\x01 this is no HTTP\r\n\r\n", 400, "bad-request"),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400, "bad-request"),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400, "bad-request"),
        (head("Content-Length: 1", "Content-Length: 2"), 400, "bad-request"),
        (b"GET /" + b"a" * 100_000, 431, "head-too-large"),
        (head("X: " + "y" * 100_000), 431, "head-too-large"),
    ],
)
def test_what_is_no_request_is_refused(
    service: Service, said: bytes, code: int, problem: str
) -> None:
    with service.connect() as client:
        client.sendall(said)
        with client.makefile("rb") as answer:
            whole = answer.read()
    assert int(whole.split()[1]) == code
    assert json.loads(whole.partition(b"\r\n\r\n")[2])["type"] == f"urn:zveil:problem:{problem}"
    goes_on(service)


def test_a_body_that_comes_behind_its_answer_is_no_head(service: Service) -> None:
    with service.connect() as client, client.makefile("rb") as answers:

        def answered() -> int:
            code = int(answers.readline().split()[1])
            length = 0
            while (field := answers.readline().strip().lower()) != b"":
                name, _, value = field.partition(b": ")
                length = int(value) if name == b"content-length" else length
            answers.read(length)
            return code

        client.sendall(head("Content-Length: 500000", path="/nowhere"))
        assert answered() == 404
        for _ in range(50):
            client.sendall(10_000 * b" ")
        client.sendall(head(path="/nowhere", method="GET"))
        assert answered() == 404
        # Behind that, bounds hold as before.
        client.sendall(head("X: " + "y" * 100_000, path="/nowhere", method="GET"))
        assert answered() == 431


def test_a_body_that_pauses_is_cut_off(service: Service) -> None:
    with service.connect() as client:
        client.sendall(head("Content-Length: 1000", f"Content-Type: {NDJSON}") + b"{")
        goes_on(service)
        assert status(client) == 408


def test_a_body_that_drips_is_cut_off(service: Service) -> None:
    with service.connect() as client:
        client.sendall(head("Content-Length: 100000", f"Content-Type: {NDJSON}"))
        began = time.monotonic()
        try:
            while time.monotonic() - began < 20:
                client.sendall(b"{")
                time.sleep(0.2)
        except ConnectionError:
            pass
        assert 2 < time.monotonic() - began < 10
    goes_on(service)


def test_an_answer_is_cut_off_where_the_body_stays_away(service: Service) -> None:
    """What was answered before is no whole answer, and does not look like one."""
    with service.connect() as client:
        client.sendall(head("Transfer-Encoding: chunked", f"Content-Type: {NDJSON}") + chunk(ONE))
        answer = b""
        try:
            while data := client.recv(65536):
                answer += data
        except ConnectionError:
            pass
    assert b"example.org" in answer
    assert not answer.endswith(b"0\r\n\r\n")


def test_a_large_body_is_refused(service: Service) -> None:
    body = ONE * (2**20 // len(ONE) + 1)
    stated = service.post(body)
    assert (stated.status, stated.kind) == (413, "too-large")
    assert stated.json["limit_bytes"] == 2**20
    with service.connect() as client:
        client.sendall(head("Transfer-Encoding: chunked", f"Content-Type: {NDJSON}"))
        answer = b""
        try:
            for _ in range(20):
                client.sendall(chunk(b"x" * 100_000))
            answer = client.recv(100)
        except ConnectionError:
            pass
        # Nothing was answered before: so it is told why, if it listens in time.
        assert answer[:12] in (b"HTTP/1.1 413", b"")
    goes_on(service)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_packed_bodies_are_refused(service: Service, encoding: str) -> None:
    answer = service.post(ONE, Content_Encoding=encoding)
    assert (answer.status, answer.kind) == (415, "encoding")


def test_a_client_that_closes_its_half_is_answered(service: Service) -> None:
    with service.connect() as client:
        client.sendall(head(f"Content-Length: {len(ONE)}", f"Content-Type: {NDJSON}") + ONE)
        client.shutdown(socket.SHUT_WR)
        with client.makefile("rb") as answer:
            assert b"example.org" in answer.read()
    with service.connect() as client:
        client.sendall(head("Content-Length: 1000", f"Content-Type: {NDJSON}") + ONE)
        client.shutdown(socket.SHUT_WR)
        with client.makefile("rb") as answer:
            assert not answer.read().endswith(b"0\r\n\r\n")
    goes_on(service)


def test_only_so_many_requests_run_at_a_time(service: Service) -> None:
    with ExitStack() as stack:
        for _ in range(4):
            client = stack.enter_context(service.connect())
            client.sendall(head("Content-Length: 10", f"Content-Type: {NDJSON}"))
        until = time.monotonic() + 5
        while (answer := service.post(ONE)).status == 200 and time.monotonic() < until:
            time.sleep(0.05)
        assert (answer.status, answer.kind) == (503, "busy")
        assert answer.headers["retry-after"] == "1"
        assert service.ask("GET", "/healthz", kind=None).status == 200
    until = time.monotonic() + 5
    while service.post(ONE).status != 200:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_only_so_many_connections_are_open_at_a_time(service: Service) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(service.connect()) for _ in range(70)]
        # Those who have waited longest without saying anything make room for others.
        assert [status(client) for client in clients[:5]] == [503] * 5
        goes_on(service)
    until = time.monotonic() + 5
    while service.ask("GET", "/healthz", kind=None).status != 200:
        assert time.monotonic() < until
        time.sleep(0.05)
    goes_on(service)
    assert service.metrics()['zveil_http_refused_total{problem="connections"}'] >= 10


def test_who_sends_and_does_not_read_is_slowed_down_then_cut_off() -> None:
    with Service("--idle-timeout", "2s", rule=(*FIELDS, *ALL)) as started:
        before = started.resident()
        with started.connect() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(head("Transfer-Encoding: chunked", f"Content-Type: {NDJSON}"))
            block, sent = chunk(ONE * 1000), 0
            client.settimeout(0.5)
            while True:
                try:
                    sent += client.send(block)
                except TimeoutError:  # slowed down: nothing more is taken
                    break
                assert sent < 1 << 26
            goes_on(started)
            client.settimeout(20)
            while True:
                try:
                    client.send(block)
                except ConnectionError:  # cut off
                    break
            goes_on(started)
        assert started.resident() - before < 64 << 20


def test_two_thousand_connections_do_no_harm() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2200:
        pytest.skip(f"the system allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2200), hard))
    with Service() as started, ExitStack() as stack:
        before = started.resident()
        for number in range(2000):
            client = stack.enter_context(started.connect())
            if number % 2:
                client.sendall(b"POST /v1/observations HTTP/1.1\r\n")
        took = []
        for _ in range(20):
            began = time.monotonic()
            goes_on(started)
            took.append(time.monotonic() - began)
        assert started.metrics()["zveil_http_connections"] > 2000
        assert sorted(took)[10] < 0.5
        assert started.resident() - before < 128 << 20


def test_a_long_body_takes_no_memory(tmp_path: Path) -> None:
    """A gigabyte if ZVEIL_LONG is set; a part of it otherwise."""
    size = 1 << 30 if LONG else 24 << 20
    block = b"".join(line(START, n % 50, f"host{n % 1000}") for n in range(5_000))
    del tmp_path
    with Service(rule=(*FIELDS, "-z", "20", "--window", "1h")) as started:
        started.post(block)
        before = started.resident()
        answer = started.post(block for _ in range(size // len(block)))
        assert answer.status == 200
        assert started.resident() - before < 16 << 20
        figures = started.metrics()
    assert figures["zveil_lines_total"] == 5_000 * (1 + size // len(block))


def test_a_line_without_end_takes_no_memory() -> None:
    with Service() as started:
        before = started.resident()
        answer = started.post([b"x" * 100_000] * 300 + [b"\n", ONE])
        assert answer.status == 200
        assert started.resident() - before < 16 << 20
        assert started.metrics()['zveil_bad_lines_total{kind="too-long"}'] == 1
