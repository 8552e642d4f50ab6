"""The meter of the service, and a level that it holds: over all requests, and after a restart."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from events import START
from program import FIELDS, line, zveil
from service import ARROW, Service

RULE = (*FIELDS, "-z", "2", "--window", "1h", "--rotate", "24h", "--keep-keys")
HOLD = (
    "--time", "ts", "--user", "user", "--attribute", "site", "--window", "2h", "--rotate", "24h",
    "--keep-keys", "--hold", "k=2 p=0.8",
)  # fmt: skip


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "key"
    path.write_text("07" * 32 + "\n")
    path.chmod(0o600)
    return path


def visits(*pairs: str) -> bytes:
    return b"".join(line(START, user, f"{host}.example") for user, host in pairs)


def measured(found: dict[str, float]) -> tuple[float, ...]:
    alike = (found[f'zveil_alike_users{{k="{k}"}}'] for k in (2, 3, 5, 10))
    return (found["zveil_visible_users"], found["zveil_visible_classes"], *alike)


def test_requests_are_measured_as_one_stream(key: Path) -> None:
    with Service("--meter", "--key-file", key, rule=RULE) as started:
        started.post(visits("ua", "va", "wa"))
        assert measured(started.metrics()) == (2, 1, 2, 0, 0, 0)
        started.post(visits("ua", "xb", "yb"))
        # u and v and w have a; y has b.
        assert measured(started.metrics()) == (4, 2, 3, 3, 0, 0)
        answer = started.post(_arrow("vb", "wb"), kind=ARROW)
        assert answer.status == 200
        found = started.metrics()
        assert measured(found) == (4, 3, 2, 0, 0, 0)
        assert found["zveil_meter_stopped"] == 0
        assert found["zveil_meter_bytes"] > 0
        assert "zveil_hold_wanted" not in found


def _arrow(*pairs: str) -> bytes:
    import pyarrow as pa
    import pyarrow.ipc as ipc

    rows = [{"ts": START, "uid": user, "host": f"{host}.example"} for user, host in pairs]
    table = pa.Table.from_pylist(rows)
    target = pa.BufferOutputStream()
    with ipc.new_stream(target, table.schema) as writer:
        writer.write_table(table)
    return bytes(target.getvalue())


def test_it_goes_on_after_its_end_and_knows_what_a_kill_took(key: Path, tmp_path: Path) -> None:
    told = ("--meter", "--key-file", key, "--state", tmp_path, "--state-every", "1h")
    with Service(*told, rule=RULE) as started:
        started.post(visits("ua", "va", "wa"))
        assert started.end() == 0
    with Service(*told, rule=RULE) as started:
        assert measured(started.metrics()) == (2, 1, 2, 0, 0, 0)
        started.post(visits("ua"))
        assert measured(started.metrics()) == (3, 1, 3, 3, 0, 0)
        assert started.ask("POST", "/v1/save", b"", kind=None).status == 200
        started.post(visits("ub", "vb"))
        started.process.kill()
        started.process.wait()
    with Service(*told, rule=RULE) as started:
        # What left after the save was not measured: so nothing of this period is.
        assert any("not known to the meter" in str(each.get("why")) for each in started.log)
        found = started.metrics()
        assert found["zveil_meter_stopped"] == 1
        assert "zveil_visible_users" not in found
        started.post(
            line(START + 90_000, "u", "c.example") + line(START + 90_000, "v", "c.example")
        )
        assert measured(started.metrics()) == (1, 1, 0, 0, 0, 0)


def test_who_is_forgotten_is_in_no_meter(key: Path) -> None:
    with Service("--meter", "--key-file", key, rule=RULE) as started:
        started.post(visits("ua", "va", "wa"))
        answer = started.ask("POST", "/v1/forget", b'{"user": "u"}', kind="application/json")
        assert answer.status == 200
        assert started.metrics()["zveil_meter_stopped"] == 1


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Make two days of users who are alike."""
    path = tmp_path_factory.mktemp("stream") / "stream.csv"
    size = ("--users", "2000", "--attributes", "100", "--rate", "0.1", "--window", "2h")
    assert zveil("simulate", *size, "--windows", "18", "-q", "-o", path).returncode == 0
    with path.open() as file:
        return [
            {"ts": float(row["ts"]), "user": row["user"], "site": row["site"]}
            for row in csv.DictReader(file)
        ]


def blocks(rows: list[dict[str, Any]]) -> Iterator[bytes]:
    for start in range(0, len(rows), 500):
        yield "".join(json.dumps(row) + "\n" for row in rows[start : start + 500]).encode()


def test_a_level_is_held(stream: list[dict[str, Any]], key: Path, tmp_path: Path) -> None:
    half = len(stream) // 2
    told = ("--key-file", key, "--state", tmp_path, "--state-every", "1h")
    with Service(*told, rule=HOLD) as started:
        first = next(blocks(stream))
        # Nothing leaves before a window was seen.
        assert started.post(first).body == b""
        found = started.metrics()
        assert (found["zveil_hold_closed"], found['zveil_hold_wanted{k="2"}']) == (1, 0.8)
        for block in blocks(stream[500:half]):
            started.post(block)
        found = started.metrics()
        assert found["zveil_hold_closed"] == 0
        assert found['zveil_hold_changes_total{kind="opened"}'] == 1
        assert found['zveil_hold_outlook{k="2"}'] > 0.7
        z = found['zveil_z{attribute="site"}']
        assert z > 2
        answer = started.ask("POST", "/v1/z", b'{"z": 2}', kind="application/json")
        assert answer.status == 422
        assert "tuned" in answer.json["detail"]
        words = [each["why"] for each in started.log if each.get("event") == "tuning"]
        assert any("z = " in each for each in words), started.log[-3:]
        assert started.end() == 0
    with Service(*told, rule=HOLD) as started:
        found = started.metrics()
        assert found['zveil_z{attribute="site"}'] == z
        assert found['zveil_hold_changes_total{kind="opened"}'] == 1
        for block in blocks(stream[half:]):
            started.post(block)
        found = started.metrics()
        assert found["zveil_hold_closed"] == 0
        share = found['zveil_alike_users{k="2"}'] / found["zveil_visible_users"]
        assert share >= 0.8


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ((*FIELDS, "--window", "1h", "--hold", "p=0.8"), b"--rotate: expected with hold"),
        ((*FIELDS, "--window", "1h"), b"or what --hold is to hold"),
        ((*FIELDS, "--window", "1h", "--hold", "p=0.8", "-z", "3"), b"-z: --hold chooses z"),
    ],
)
def test_what_cannot_be_held_is_refused(rule: tuple[str, ...], words: bytes) -> None:
    done = zveil("serve", "--port", "0", *rule)
    assert done.returncode == 2
    assert words in b" ".join(done.stderr.split())
