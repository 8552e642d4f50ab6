"""Figures beside a pipe: the same as of the service, by the same rules."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from events import START
from program import Started, line, run
from prometheus_client.parser import text_string_to_metric_families
from service import token

from zveil.serve.metrics import METRICS


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        return int(opened.getsockname()[1])


def ask(
    port: int, path: str = "/metrics", *headers: str, method: str = "GET", host: str = "localhost"
) -> tuple[int, bytes]:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall("\r\n".join(lines).encode())
        with client.makefile("rb") as answer:
            head, _, body = answer.read().partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def figures(port: int) -> dict[str, float]:
    status, body = ask(port)
    assert status == 200
    return {
        sample.name + "".join(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


@pytest.fixture
def port() -> Iterator[int]:
    port = free_port()
    with Started("--metrics", str(port), "-q") as started:
        started.send(line(START, "ada", "a.example") + line(START, "bob", "a.example"))
        assert b"a.example" in started.line()
        yield port


def test_the_figures_of_a_run_are_shown_while_it_runs(port: int) -> None:
    found = figures(port)
    assert found["zveil_records_total"] == 2
    assert found["zveil_released_totalhost"] == 1
    assert found["zveil_veiled_totalhostfew_users"] == 1
    until = time.monotonic() + 20
    while not figures(port)["zveil_decision_seconds_count"]:  # told after what leaves is written
        assert time.monotonic() < until
    names = {family.name for family in text_string_to_metric_families(ask(port)[1].decode())}
    wanted = {name.removesuffix("_total") for name in METRICS}
    elsewhere = ("http", "kafka")
    missing = {n for n in wanted - names if not any(word in n for word in elsewhere)}
    with_meter = ("zveil_visible", "zveil_alike", "zveil_meter", "zveil_hold")
    assert {name for name in missing if not name.startswith(with_meter)} == {
        "zveil_snapshot_age_seconds"
    }


def test_the_meter_of_a_run_is_shown_too() -> None:
    port = free_port()
    with Started("--metrics", str(port), "-q", "--meter") as started:
        started.send(line(START, "ada", "a.example") + line(START, "bob", "a.example"))
        assert b"a.example" in started.line()
        found = figures(port)
        assert (found["zveil_visible_users"], found["zveil_visible_classes"]) == (1, 1)
        assert (found["zveil_alike_users2"], found["zveil_meter_stopped"]) == (0, 0)
        started.send(line(START, "cyd", "a.example"))
        assert b"a.example" in started.line()
        assert figures(port)["zveil_alike_users2"] == 2


def test_it_answers_to_little_else(port: int) -> None:
    assert ask(port, "/healthz") == (200, b'{"status":"ok"}\n')
    assert ask(port, "/readyz")[0] == 200
    assert ask(port, "/healthz", method="HEAD") == (200, b"")
    for status, kind, answer in [
        (404, "not-found", ask(port, "/v1/observations", method="POST")),
        (405, "method", ask(port, "/metrics", method="POST")),
        (431, "head-too-large", ask(port, "/" + "a" * 40_000)),
        (400, "bad-request", ask(port, "/a b c")),
        (403, "host", ask(port, "/metrics", host="evil.example")),
    ]:
        assert answer[0] == status
        assert json.loads(answer[1])["type"] == f"urn:zveil:problem:{kind}"


def test_slow_ones_do_not_keep_others_out(port: int) -> None:
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
    try:
        for client in clients:
            client.sendall(b"GET /metr")
        assert ask(port)[0] == 200
    finally:
        for client in clients:
            client.close()


def test_tokens_are_asked_for(tmp_path: Path) -> None:
    file, port = tmp_path / "tokens", free_port()
    reader, writer = token(file, "reader", "read"), token(file, "writer", "write")
    with Started("--metrics", f"127.0.0.1:{port}", "--tokens", file, "-q") as started:
        started.send(line(START, "ada", "a.example") + line(START, "bob", "a.example"))
        started.line()
        assert ask(port)[0] == 401
        assert ask(port, "/metrics", f"Authorization: Bearer {writer}")[0] == 403
        assert ask(port, "/metrics", f"Authorization: Bearer {reader}")[0] == 200


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--metrics", "0.0.0.0:9117"], b"--metrics: without --tokens only the loopback"),
        (["--metrics", "here"], b"--metrics: expected a port"),
        (["--metrics", "99999"], b"--metrics: expected a port"),
        (["--tokens", "nowhere"], b"--tokens: goes with --metrics"),
        (["--metrics", "0", "--tokens", "nowhere"], b"--tokens: nowhere is not there"),
    ],
)
def test_wrong_usage_is_told(options: list[str], words: bytes) -> None:
    done = run(*options)
    assert done.returncode == 2
    assert words in done.stderr


def test_an_address_in_use_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("--metrics", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert b"--metrics: cannot listen there" in done.stderr


def test_what_is_written_is_the_same() -> None:
    body = b"".join(line(START + n, n % 7, f"h{n % 5}") for n in range(20_000))
    plain = run("--raw-users", stdin=body)
    beside = run("--raw-users", "--metrics", "0", stdin=body)
    assert plain.stdout == beside.stdout
    assert beside.returncode == 0
