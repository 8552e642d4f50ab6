"""No data anywhere but in answers to those who may read: not in logs, errors, metrics."""

import json
from pathlib import Path

from events import START
from program import FIELDS, line
from service import NDJSON, Service, head, token

from zveil.serve.media import KINDS

USER, VALUE, KEY, PATH = "marker-user-7f3a", "marker-value-91c2", "marker-key-55", "marker-path-d0"
MARKERS = [USER, VALUE, KEY, PATH, "bWFya2Vy"]


def test_no_marker_is_found_outside_of_answers(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    both, admin = token(file, "both", "write", "read"), token(file, "admin", "admin", "read")
    writer = token(file, "writer", "write")
    seen: list[bytes] = []
    with Service("--tokens", file, rule=(*FIELDS, "-z", "2", "--window", "1h")) as started:
        good = line(START, USER, VALUE)
        bad = [
            good[:-5] + b"\n",
            good.replace(b"ts", b"marker-path-d0"),
            line("bWFya2Vy", USER, VALUE),
            line(START, {USER: VALUE}, VALUE),
            b'{"' + USER.encode() + b'": 1, "' + USER.encode() + b'": 2}\n',
            b"\xff" + good,
            b"[" * 300 + good,
            VALUE.encode() * 100_000 + b"\n",
        ]
        for kind in {*KINDS, "text/plain", VALUE}:
            for body in [good, *bad]:
                for who in (both, writer, admin, USER, None):
                    answer = started.post(body, kind=kind, token=who, Idempotency_Key=KEY)
                    if who is not both or answer.status != 200:
                        seen += [answer.body, repr(answer.headers).encode()]
        for path in ("/v1/forget", "/v1/z", "/v1/save", f"/{PATH}", f"/v1/observations/{PATH}"):
            said = [{"user": USER}, {"user": [USER]}, {USER: VALUE}, {"z": VALUE}, {"z": 10**30},
                    {"z": 2, "attribute": VALUE}]  # fmt: skip
            for each in said:
                for who in (admin, writer):
                    answer = started.ask(
                        "POST", f"{path}?q={VALUE}", json.dumps(each).encode(),
                        kind="application/json", token=who, Cookie=USER, Referer=PATH,
                    )  # fmt: skip
                    seen += [answer.body, repr(answer.headers).encode()]
        for method in ("GET", "PUT", "OPTIONS", "PATCH"):
            seen.append(started.ask(method, f"/v1/observations?{VALUE}", token=both).body)
        with started.connect() as client:
            client.sendall(f"{VALUE} /{PATH} HTTP/1.1\r\nHost: {USER}\r\n\r\n".encode())
            seen.append(client.recv(4096))
        with started.connect() as client:
            client.sendall(head("Content-Length: 900", f"Content-Type: {NDJSON}",
                                f"Authorization: Bearer {both}") + good)  # fmt: skip
        for path in ("/metrics", "/openapi.json", "/healthz", "/readyz"):
            seen.append(started.ask("GET", path, kind=None, token=both).body)
        started.end()
        log = "".join(started.spoken).encode()
    assert log.count(b'"event": "request"') > 50
    for marker in MARKERS:
        assert marker.encode() not in log
        assert not [each for each in seen if marker.encode() in each], marker
    assert both.encode() not in log


def test_an_error_inside_is_told_by_its_kind_alone(tmp_path: Path) -> None:
    """The file of a chain of keys is gone: what cannot be named does not leave."""
    folder = tmp_path / "keys"
    folder.mkdir()
    chain = folder / "chain"
    from zveil.keys import write_key

    write_key(chain, chain=True)
    rule = (*FIELDS, "-z", "1", "--window", "1h", "--rotate", "1h", "--key-file", str(chain))
    with Service(rule=rule) as started:
        assert started.post(line(START, USER, VALUE)).status == 200
        chain.unlink()
        folder.rmdir()
        answer = started.post(line(START + 86_400, USER, VALUE))
        assert (answer.status, answer.kind) == (500, "failed")
        failed = started.wait_for("failed")
        assert failed["error"].endswith("Error")
        started.end()
        assert USER not in "".join(started.spoken)
        assert VALUE not in "".join(started.spoken)
