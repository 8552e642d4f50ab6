"""The end of the service: in order, whatever is going on."""

import json
import signal
import socket
import time

import pytest
from events import START
from program import FIELDS, RULE, line, zveil
from service import NDJSON, Service, chunk, head

TWO = line(START, "ada", "a.example") + line(START, "bob", "a.example")
OPEN = head("Transfer-Encoding: chunked", f"Content-Type: {NDJSON}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_in_order(number: int) -> None:
    with Service() as started:
        with started.connect() as idle:
            assert started.post(TWO).status == 200
            assert started.end(number) == 0
            assert idle.recv(100) == b""
        assert started.log[-1]["event"] == "ended"


def test_what_was_accepted_is_answered() -> None:
    """A request that runs when the signal comes may go on to its end."""
    with Service() as started, started.connect() as client:
        client.sendall(OPEN + chunk(TWO))
        assert client.recv(12) == b"HTTP/1.1 200"
        started.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + 10
        while True:  # nobody new is let in
            try:
                started.connect(1).close()
            except OSError:
                break
            assert time.monotonic() < until
        client.sendall(chunk(TWO) + b"0\r\n\r\n")
        answer = b""
        while data := client.recv(65536):
            answer += data
        assert answer.count(b"a.example") == 3
        assert answer.endswith(b"0\r\n\r\n")
        assert started.process.wait(10) == 0


def test_a_request_that_does_not_end_is_cut_off() -> None:
    with Service("--shutdown-timeout", "1s") as started, started.connect() as client:
        client.sendall(OPEN + chunk(TWO))
        assert client.recv(12) == b"HTTP/1.1 200"
        began = time.monotonic()
        assert started.end() == 0
        assert time.monotonic() - began < 8
        answer = b""
        try:
            while data := client.recv(65536):
                answer += data
        except ConnectionError:
            pass
        assert b"a.example" in answer
        assert not answer.endswith(b"0\r\n\r\n")


def test_a_second_signal_ends_it_at_once() -> None:
    with Service("--shutdown-timeout", "1h") as started, started.connect() as client:
        client.sendall(OPEN + chunk(TWO))
        client.recv(12)
        started.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert started.process.poll() is None
        assert started.end() == 0


def test_an_address_in_use_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = zveil("serve", *FIELDS, *RULE, "--port", port)
    assert done.returncode == 1
    assert b"cannot listen there" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "-z: say how many"),
        (["-z", "2"], "Missing option '--time'"),
        ([*FIELDS, *RULE, "--tls-key", "README"], "README"),
        ([*FIELDS, *RULE, "--max-body", "much"], "max-body"),
        ([*FIELDS, *RULE, "--idle-timeout", "0s"], "--idle-timeout: expected more"),
        ([*FIELDS, *RULE, "--tokens", "nowhere"], "--tokens: nowhere is not there"),
        ([*FIELDS, *RULE, "--policy", "x.toml"], "--policy"),
    ],
)
def test_wrong_usage_is_told(options: list[str], words: str) -> None:
    done = zveil("serve", "--port", "0", *options)
    assert done.returncode == 2
    assert words in done.stderr.decode()


def test_without_the_extra_the_command_says_what_to_install(tmp_path: object) -> None:
    code = (
        "import sys; sys.modules['uvicorn'] = None\n"
        "from zveil.cli import main; main(['serve', *sys.argv[1:]])"
    )
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", code, *FIELDS, *RULE], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert b"pip install 'zveil[serve]'" in done.stderr
    del tmp_path


def test_the_log_is_lines_of_json() -> None:
    with Service() as started:
        started.post(TWO + b"{}\n")
        started.end()
        for spoken in started.spoken:
            assert json.loads(spoken)["time"].endswith("Z")
        (request,) = [each for each in started.log if each["event"] == "request"]
        assert request["route"] == "/v1/observations"
        assert (request["status"], request["lines"], request["bad"]) == (200, 3, 1)
        assert request["bytes_in"] == len(TWO) + 3


def test_quiet_tells_no_requests() -> None:
    with Service("-q") as started:
        started.post(TWO)
        started.end()
        assert [each["event"] for each in started.log] == ["listening", "ended"]
