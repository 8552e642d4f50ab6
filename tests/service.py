"""`zveil serve` for tests: the real program on a free port, and clients on real sockets."""

import http.client
import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from program import FIELDS, PROGRAM, RULE

PATIENCE_S = 30
NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
MANY = ("--max-future", "any")


class Service:
    """The program while it serves; it is ended with the test."""

    def __init__(
        self,
        *arguments: str | Path,
        rule: Sequence[str] = (*FIELDS, *RULE),
        console: bool = False,
        environment: dict[str, str] | None = None,
    ) -> None:
        pages = () if console else ("--no-console",)
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--port", "0", *pages, *rule, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | (environment or {}),
        )  # fmt: skip
        self.log: list[dict[str, Any]] = []
        self.spoken: list[str] = []
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = self.wait_for("listening")["url"]
        self.address = ("127.0.0.1", int(self.url.rpartition(":")[2]))

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.spoken.append(line)
            try:
                said = json.loads(line)
            except ValueError:
                continue
            self.log.append(said)
            self._events.put(said)

    def wait_for(self, event: str) -> dict[str, Any]:
        """The next line of the log about something."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                said = self._events.get(timeout=0.2)
            except queue.Empty:
                assert self.process.poll() is None, "".join(self.spoken)
                assert time.monotonic() < until, (event, self.spoken)
                continue
            if said["event"] == event:
                return said

    def connect(self, timeout: float = PATIENCE_S) -> socket.socket:
        return socket.create_connection(self.address, timeout=timeout)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | Iterable[bytes] | None = None,
        *,
        kind: str | None = NDJSON,
        token: str | None = None,
        **headers: str,
    ) -> "Answer":
        """Ask once, on a connection of its own."""
        client = http.client.HTTPConnection(*self.address, timeout=PATIENCE_S)
        try:
            return ask(client, method, path, body, kind=kind, token=token, **headers)
        finally:
            client.close()

    def post(self, body: bytes | Iterable[bytes], **options: Any) -> "Answer":
        return self.ask("POST", "/v1/observations", body, **options)

    def metrics(self, token: str | None = None) -> dict[str, float]:
        """The figures, by name and labels as they are written."""
        answer = self.ask("GET", "/metrics", kind=None, token=token)
        assert answer.status == 200, answer
        lines = [line for line in answer.body.decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def resident(self) -> int:
        """Memory of the process in bytes."""
        fields = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    def end(self, number: int = signal.SIGTERM) -> int:
        """Tell it to end, and give its exit code; all of its log is there then."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE_S)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.process.stdout.close()
        self.process.stderr.close()


class Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def kind(self) -> str:
        """Of a problem."""
        assert self.headers["content-type"] == "application/problem+json", self
        assert self.json["status"] == self.status
        return str(self.json["type"]).removeprefix("urn:zveil:problem:")

    def __repr__(self) -> str:
        return f"{self.status} {self.headers} {self.body[:500]!r}"


def ask(
    client: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | Iterable[bytes] | None = None,
    *,
    kind: str | None = NDJSON,
    token: str | None = None,
    **headers: str,
) -> Answer:
    """Ask on an open connection; headers by their names with _ for -."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if kind is not None:
        sent["Content-Type"] = kind
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    client.request(method, path, body, sent)
    answer = client.getresponse()
    found = {name.lower(): value for name, value in answer.getheaders()}
    return Answer(answer.status, found, answer.read())


def token(file: Path, name: str, *rights: str) -> str:
    """Make a token with the program."""
    options = [f"--right={right}" for right in rights]
    made = subprocess.run(
        [PROGRAM, "token", "new", name, *options, "--file", file],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return made.stdout.strip()


def head(*lines: str, path: str = "/v1/observations", method: str = "POST") -> bytes:
    """The head of a request, for sockets."""
    given = [f"{method} {path} HTTP/1.1", "Host: localhost", *lines, "", ""]
    return "\r\n".join(given).encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)
