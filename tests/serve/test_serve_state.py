"""The state of the service: it goes on after a restart, and loses nothing that it said it saved."""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from events import START
from program import FIELDS, line, zveil
from service import ARROW, Service

RULE = (*FIELDS, "-z", "3", "--window", "1h")


def one(user: str, when: int = START, host: str = "a.example") -> bytes:
    return line(when, user, host)


def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with Service("--state", state, rule=RULE) as started:
        assert started.post(one("ada") + one("bob") + b"{}\n").body == b""
        assert started.end() == 0
        assert started.log[0]["resumed"] is False
    with Service("--state", state, rule=RULE) as started:
        assert started.log[0]["resumed"] is True
        first = started.post(one("cyd"))
        assert first.body.count(b"\n") == 1
        figures = started.metrics()
        assert figures["zveil_records_total"] == 3
        assert figures['zveil_bad_lines_total{kind="missing-field"}'] == 1
        assert figures['zveil_observations_total{attribute="host"}'] == 3
        assert 0 <= figures["zveil_snapshot_age_seconds"] < 60
        assert started.end() == 0
    with Service("--state", state, rule=RULE) as started:
        # Pseudonyms go on, too.
        again = started.post(one("cyd"))
        assert again.body == first.body
    shown = json.loads(zveil("state", "show", state, "--json").stdout)
    assert shown["events"] == 3


def test_what_was_saved_outlasts_a_kill(tmp_path: Path) -> None:
    with Service("--state", tmp_path, "--state-every", "1h", rule=RULE) as started:
        started.post(one("ada"))
        saved = started.ask("POST", "/v1/save", b"", kind=None)
        assert (saved.status, saved.json) == (200, {"saved": True})
        started.post(one("bob"))
        started.process.kill()
        started.process.wait()
    with Service("--state", tmp_path, rule=RULE) as started:
        # Bob was not saved: so cyd is not enough, and another is.
        assert started.post(one("cyd")).body == b""
        assert started.post(one("dan")).body.count(b"\n") == 1


def test_it_is_saved_now_and_then(tmp_path: Path) -> None:
    with Service("--state", tmp_path, "--state-every", "100ms", rule=RULE) as started:
        started.post(one("ada"))
        until = time.monotonic() + 20
        while started.metrics().get("zveil_snapshot_age_seconds", 99) > 5:
            assert time.monotonic() < until
            time.sleep(0.1)
        started.post(one("bob"))
        posted = time.monotonic()
        while started.metrics()["zveil_snapshot_age_seconds"] > time.monotonic() - posted - 0.2:
            assert time.monotonic() < until
            time.sleep(0.1)
        started.process.kill()
        started.process.wait()
    with Service("--state", tmp_path, rule=RULE) as started:
        assert started.post(one("cyd")).body.count(b"\n") == 1


def test_a_forgotten_user_is_forgotten_on_the_disk_too(tmp_path: Path) -> None:
    with Service("--state", tmp_path, "--state-every", "1h", rule=RULE) as started:
        started.post(one("ada") + one("bob"))
        answer = started.ask("POST", "/v1/forget", b'{"user": "bob"}', kind="application/json")
        assert (answer.status, answer.json) == (200, {"attributes": 1})
        started.process.kill()
        started.process.wait()
    with Service("--state", tmp_path, rule=RULE) as started:
        assert started.post(one("cyd")).body == b""
        assert started.post(one("bob")).body.count(b"\n") == 1


def test_a_z_set_by_hand_holds_on(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    told = """
        time = {{ field = "ts" }}
        user = {{ field = "uid" }}
        attribute = [{{ field = "host", z = {z}, z_max = 10, window = "1h" }}]
    """
    policy.write_text(told.format(z=2))
    rule = ("--policy", str(policy), "--state", str(tmp_path / "state"))
    with Service(rule=rule) as started:
        answer = started.ask("POST", "/v1/z", b'{"z": 3}', kind="application/json")
        assert (answer.status, answer.json) == (200, {"z": 3})
        wrong = started.ask("POST", "/v1/z", b'{"z": 11}', kind="application/json")
        assert (wrong.status, wrong.kind) == (422, "bad-parameters")
        started.end()
    with Service(rule=rule) as started:
        assert started.post(one("ada") + one("bob")).body == b""
        assert started.metrics()['zveil_z{attribute="host"}'] == 3
        started.end()
    policy.write_text(told.format(z=4))
    with Service(rule=rule) as started:
        assert started.metrics()['zveil_z{attribute="host"}'] == 4


def test_events_with_an_id_are_decided_once(tmp_path: Path) -> None:
    rule = (*FIELDS, "-z", "1", "--window", "1h", "--id", "id", "--state", str(tmp_path))
    event = b'{"ts":%d,"uid":"ada","host":"a.example","id":"e1"}' % START
    with Service(rule=rule) as started:
        assert started.post(event, kind="application/json").json["released"] is True
        again = started.post(event, kind="application/json")
        assert (again.status, again.json) == (200, {"released": False, "record": None})
        assert started.metrics()["zveil_repeated_total"] == 1
        started.end()
    with Service(rule=rule) as started:
        assert started.post(event + b"\n").body == b""
        assert started.metrics()["zveil_repeated_total"] == 2


def test_the_state_of_a_service_is_not_that_of_a_run(tmp_path: Path) -> None:
    with Service("--state", tmp_path, rule=RULE) as started:
        started.post(one("ada"))
        started.end(signal.SIGINT)
    done = zveil("run", "--state", tmp_path, *RULE, stdin=one("bob"))
    assert done.returncode == 2
    assert b"the state of a service" in done.stderr
    other = tmp_path / "other"
    zveil("run", "--state", other, *RULE, stdin=one("bob"))
    done = zveil("serve", "--port", "0", "--state", other, *RULE)
    assert done.returncode == 2
    assert b"the state of a run" in done.stderr


def test_columns_count_in_the_state_too(tmp_path: Path) -> None:
    import pyarrow as pa

    batch = pa.RecordBatch.from_pylist([{"ts": START, "uid": "ada", "host": "a.example"}])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with Service("--state", tmp_path, rule=RULE) as started:
        assert started.post(bytes(sink.getvalue()), kind=ARROW).status == 200
        started.end()
    with Service("--state", tmp_path, rule=RULE) as started:
        assert started.metrics()["zveil_records_total"] == 1
        assert started.post(one("bob") + one("cyd")).body.count(b"\n") == 1


def test_without_a_state_there_is_none_to_save() -> None:
    with Service(rule=RULE) as started:
        answer = started.ask("POST", "/v1/save", b"", kind=None)
        assert (answer.status, answer.kind) == (409, "no-state")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/forget", b""),
        ("/v1/forget", b"[]"),
        ("/v1/forget", b"{}"),
        ("/v1/forget", b'{"user": null}'),
        ("/v1/forget", b'{"user": ""}'),
        ("/v1/forget", b'{"user": true}'),
        ("/v1/forget", b'{"user": "a", "more": 1}'),
        ("/v1/z", b'{"z": "2"}'),
        ("/v1/z", b'{"z": 0}'),
        ("/v1/z", b'{"z": 1.5}'),
        ("/v1/z", b'{"z": 1, "attribute": 7}'),
        ("/v1/z", b'{"z": 1, "attribute": "nothing"}'),
    ],
)
def test_parameters_are_checked(service: Service, path: str, said: bytes) -> None:
    answer = service.ask("POST", path, said, kind="application/json")
    assert (answer.status, answer.kind) == (422, "bad-parameters")
    assert service.ask("POST", path, said, kind="text/plain").kind == "media-type"


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service(rule=RULE) as started:
        yield started
