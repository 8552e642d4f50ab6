"""Tokens: who may do what, and what a writer may learn."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from events import START
from program import FIELDS, RULE, line, zveil
from service import NDJSON, Service, head, token

from zveil.serve.tokens import RIGHTS, Tokens, TokensError, add_token


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    made = {
        "": str(file),
        "writer": token(file, "writer", "write"),
        "reader": token(file, "reader", "read"),
        "both": token(file, "both", "write", "read"),
        "admin": token(file, "admin", "admin"),
    }
    assert file.stat().st_mode & 0o777 == 0o600
    assert not any(secret in file.read_text() for name, secret in made.items() if name)
    return made


@pytest.fixture(scope="module")
def service(tokens: dict[str, str]) -> Iterator[Service]:
    with Service("--tokens", tokens[""]) as started:
        yield started


EVENTS = b"".join(line(START, user, "example.org") for user in ("ada", "bob", "cyd"))


def test_a_writer_gets_counts_and_no_decisions(service: Service, tokens: dict[str, str]) -> None:
    shared = service.post(EVENTS, token=tokens["writer"])
    alone = service.post(
        b"".join(line(START, "ada", f"a{n}.example") for n in range(3)), token=tokens["writer"]
    )
    for answer in (shared, alone):
        assert answer.status == 202
        assert answer.json == {"accepted": 3, "bad": {}}
        assert answer.headers.keys() == shared.headers.keys()
    assert shared.body == alone.body
    single = service.post(EVENTS.splitlines()[0], kind="application/json", token=tokens["writer"])
    assert (single.status, single.json) == (202, {"accepted": 1, "bad": {}})
    late = service.post(line(START - 10**6, "ada", "example.org"), token=tokens["writer"])
    assert late.json == {"accepted": 1, "bad": {}}
    bad = service.post(EVENTS + b"{}\n", token=tokens["writer"])
    assert bad.json == {"accepted": 3, "bad": {"missing-field": 1}}
    assert service.post(EVENTS, token=tokens["both"]).body.count(b"\n") == 3


def test_an_answer_to_a_writer_waits_for_a_tick(service: Service, tokens: dict[str, str]) -> None:
    """It comes no sooner than a twentieth of a second after the end of the body."""
    service.post(EVENTS, token=tokens["writer"])
    service.post(EVENTS.splitlines()[0], kind="application/json", token=tokens["writer"])
    done = [each for each in service.log if each.get("token") == "writer"][-2:]
    assert [each["ms"] >= 50 for each in done] == [True, True]


@pytest.mark.parametrize(
    ("method", "path", "right"),
    [
        ("POST", "/v1/observations", "write"),
        ("POST", "/v1/forget", "admin"),
        ("POST", "/v1/z", "admin"),
        ("POST", "/v1/save", "admin"),
        ("GET", "/metrics", "read"),
    ],
)
def test_each_address_needs_its_right(
    service: Service, tokens: dict[str, str], method: str, path: str, right: str
) -> None:
    held = {"writer": {"write"}, "reader": {"read"}, "both": {"write", "read"}, "admin": {"admin"}}
    for name, rights in held.items():
        answer = service.ask(method, path, b"" if method == "POST" else None, token=tokens[name])
        if right in rights:
            assert answer.status not in (401, 403), (name, answer)
        else:
            assert (answer.status, answer.kind) == (403, "forbidden")
    for wrong in (None, "", "zveil_", tokens["both"][:-1], tokens["both"] + "x", "x" * 5000):
        answer = service.ask(method, path, b"" if method == "POST" else None, token=wrong)
        assert (answer.status, answer.kind) == (401, "token-needed")
        assert answer.headers["www-authenticate"] == "Bearer"
    basic = service.ask(method, path, b"" if method == "POST" else None, Authorization="Basic eA==")
    assert basic.status == 401


def test_health_needs_no_token(service: Service) -> None:
    for path in ("/healthz", "/readyz", "/openapi.json"):
        assert service.ask("GET", path, kind=None).status == 200


def test_a_hangup_reads_the_tokens_anew(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    old = token(file, "old", "read")
    with Service("--tokens", file) as started:
        assert started.ask("GET", "/metrics", kind=None, token=old).status == 200
        file.write_text("")
        new = token(file, "new", "read")
        started.process.send_signal(signal.SIGHUP)
        assert started.wait_for("tokens read")["count"] == 1
        assert started.ask("GET", "/metrics", kind=None, token=old).status == 401
        assert started.ask("GET", "/metrics", kind=None, token=new).status == 200
        file.write_text("nonsense\n")
        started.process.send_signal(signal.SIGHUP)
        started.wait_for("tokens not read")
        assert started.ask("GET", "/metrics", kind=None, token=new).status == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])  # noqa: S104
def test_elsewhere_is_refused_without_tokens(host: str) -> None:
    done = zveil("serve", *FIELDS, *RULE, "--host", host)
    assert done.returncode == 2
    assert b"without --tokens only the loopback" in done.stderr


def test_without_tokens_a_page_of_elsewhere_is_not_answered() -> None:
    """A name of its own that leads to the loopback gives a page in a browser nothing."""
    with Service() as started:
        for host, status in [
            ("127.0.0.1:8117", 200), ("localhost", 200), ("[::1]:1", 200),
            ("evil.example", 403), ("127.0.0.1.evil.example", 403), ("", 403),
        ]:  # fmt: skip
            answer = started.ask("GET", "/metrics", kind=None, Host=host)
            assert answer.status == status, host
        simple = started.post(EVENTS, kind="text/plain")
        assert (simple.status, simple.kind) == (415, "media-type")
        assert not any("access-control" in name for name in simple.headers)


def test_a_token_is_found_by_all_of_it(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    secrets = {name: add_token(file, name, [name]) for name in RIGHTS}
    tokens = Tokens(file)
    for name, secret in secrets.items():
        found = tokens.find(secret)
        assert found is not None
        assert (found.name, found.rights) == (name, {name})
        assert tokens.find(secret[:-1]) is None
        assert tokens.find(secret.encode() + b"\xff" * 1000) is None
    with pytest.raises(TokensError, match="has a token named 'read' already"):
        add_token(file, "read", ["read"])


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ("", "no token in it"),
        ("# nothing\n", "no token in it"),
        ("name read\n", ":1: expected a name"),
        ("name read sha256:00\n", ":1: expected a name"),
        (f"name fly sha256:{'0' * 64}\n", "expected rights of write, read, admin"),
        (f"na/me read sha256:{'0' * 64}\n", "expected a name of letters"),
        (f"a read sha256:{'0' * 64}\na write sha256:{'1' * 64}\n", "two tokens are named 'a'"),
    ],
)
def test_a_file_that_cannot_be_used_is_told(tmp_path: Path, held: str, words: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(held)
    file.chmod(0o600)
    with pytest.raises(TokensError) as caught:
        Tokens(file)
    assert words in str(caught.value)


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    add_token(file, "a", ["read"])
    os.chmod(file, 0o640)
    done = zveil("serve", *FIELDS, *RULE, "--tokens", file)
    assert done.returncode == 2
    assert b"chmod 600" in done.stderr


def test_the_tokens_of_a_stranger_do_not_share_keys(
    service: Service, tokens: dict[str, str]
) -> None:
    """An Idempotency-Key is the token's own: another's answer is not given away."""
    when = START + 10**6
    body = b"".join(line(when, user, "k.example") for user in ("ada", "bob"))
    first = service.post(body, token=tokens["both"], Idempotency_Key="k")
    other = service.post(body, token=tokens["writer"], Idempotency_Key="k")
    again = service.post(body, token=tokens["both"], Idempotency_Key="k")
    assert first.body == again.body != other.body
    assert json.loads(other.body) == {"accepted": 2, "bad": {}}
    assert "idempotency-replayed" in again.headers
    assert "idempotency-replayed" not in other.headers


def test_one_token_does_not_keep_others_out(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    greedy, other = (token(file, name, "write", "read") for name in ("greedy", "other"))
    with Service("--tokens", file, "--max-requests", "4") as started, ExitStack() as stack:
        said = ("Content-Length: 10", f"Content-Type: {NDJSON}", f"Authorization: Bearer {greedy}")
        for _ in range(3):
            stack.enter_context(started.connect()).sendall(head(*said))
        until = time.monotonic() + 10
        while (answer := started.post(EVENTS, token=greedy)).status == 200:
            assert time.monotonic() < until
        assert (answer.status, answer.kind) == (503, "busy")
        assert started.post(EVENTS, token=other).status == 200
