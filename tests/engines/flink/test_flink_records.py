"""What leaves is what `zveil run` lets out under the same key, byte by byte."""

import json
import subprocess
from pathlib import Path
from random import Random

import jobs
import pytest
from cluster import Cluster
from native import PROGRAM

START = 1_700_000_000
HOSTS = ["a", "b", 'q"q', "é€😀", "/", " x ", 1, 1.5, -0.0, 1e3, 1e-7, 2**70, True, None, "1", ""]
USERS = [7, "7", 7.0, 8, "u v", "ü", 2**70, None, "0", -0.0, "-1"]


def policy(user: str = "", time: str = "", attribute: str = "", record: str = "") -> str:
    return (
        f'[time]\nfield = "at.ts"\nformat = "s"\n{time}\n[user]\nfield = "uid"\n{user}\n'
        f'[[attribute]]\nfield = "page.host"\nz = 2\nwindow = "1h"\n{attribute}\n'
        f'[record]\nkeep = ["n", "page.note"]\n{record}\n'
    )


POLICIES = {
    "letters": policy(),
    "digits, rotating": policy('pseudonym = "hex"\nrotate = "2h"\nkeep_keys = true'),
    "uuid, rounded, blank": policy('pseudonym = "uuid"', 'round = "hour"',
                                   'veiled = { text = "<é>" }', 'empty = "blank"'),
    "raw, labels": policy('pseudonym = "raw"', "", 'hierarchy = [{ bins = [1, 10] }]'),
}  # fmt: skip

BAD = [b"", b"{", b'{"at":{"ts":1}}', b"\xff\xfe", b'{"uid":1,"uid":2}', b"[1]", b"null",
       b'{"at":{"ts":"x"},"uid":1,"page":{"host":"a"}}', b'{"at":{"ts":1},"page":{"host":"a"}}',
       b'{"at":{"ts":1},"uid":1.5,"page":{"host":"a"}}',
       b'{"at":{"ts":1},"uid":1,"page":{"host":[]}}',
       b'{"at":{"ts":1e99},"uid":1,"page":{"host":"a"}}', b'{"at":{"ts":01},"uid":1}',
       b'{"at":{"ts":1},"uid":"\\ud800","page":{"host":"a"}}']  # fmt: skip


def events(seed: int) -> list[bytes]:
    random, made, now = Random(seed), [], START
    for number in range(1_500):
        now += random.choice((0, 1, 30, 400))
        shown = now - random.choice((0, 0, 0, 100, 5_000))
        event = {
            "n": number,
            "at": {"ts": random.choice((shown, shown + 0.25, str(shown))), "zone": "x"},
            "uid": random.choice(USERS),
            "page": {"host": random.choice(HOSTS), "note": random.choice((None, [1, {"a": "b"}]))},
        }
        if random.random() < 0.1:
            del event["page"]["note"]
        made.append(json.dumps(event, ensure_ascii=random.random() < 0.5).encode())
        if random.random() < 0.01:
            made.append(random.choice(BAD))
    return made


def native(folder: Path, *arguments: str | Path) -> list[bytes]:
    done = subprocess.run(
        [PROGRAM, "run", *arguments, "--max-bad", "100%", "-q"], capture_output=True, cwd=folder
    )
    assert done.returncode in (0, 3), done.stderr.decode()
    return done.stdout.splitlines()


@pytest.fixture
def key(tmp_path: Path) -> Path:
    subprocess.run([PROGRAM, "key", tmp_path / "key"], check=True)
    return tmp_path / "key"


@pytest.mark.parametrize("name", POLICIES)
def test_records_of_json_are_the_same(
    name: str, cluster: Cluster, key: Path, tmp_path: Path
) -> None:
    file, rule = tmp_path / "events.ndjson", tmp_path / "zveil.toml"
    file.write_bytes(b"".join(line + b"\n" for line in events(len(name))))
    rule.write_text(POLICIES[name], encoding="utf-8")
    asked: list[str | Path] = ["--policy", rule]
    asked += [] if name.startswith("raw") else ["--key-file", key]
    wanted = native(tmp_path, file, *asked)
    jobs.run(cluster, *asked, "--output", tmp_path / "out", file)
    assert len(wanted) > 300
    assert sorted(jobs.lines(tmp_path / "out")) == sorted(wanted)


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_records_of_csv_are_the_same(
    form: str, cluster: Cluster, key: Path, tmp_path: Path
) -> None:
    random, delimiter = Random(5), "," if form == "csv" else "\t"
    cells = ["a", "b", '"a"', '"b""b"', f'"c{delimiter}c"', "", '""', " d", "é"]
    made = [delimiter.join(("x", "ts", "uid", "host", "note"))]
    for number in range(1_000):
        row = ("x", str(START + 20 * number), random.choice(("7", "8", '"9"', "")),
               random.choice(cells), random.choice(cells))  # fmt: skip
        made.append(delimiter.join(row if random.random() > 0.01 else row[:4]))
    file = tmp_path / f"events.{form}"
    file.write_text("\n".join(made) + "\n", encoding="utf-8")
    asked = ["--key-file", key, "--time", "ts", "--user", "uid", "--attribute", "host", "-z", "2",
             "--window", "1h", "--keep", "note", "--time-format", "s", "--format",
             form]  # fmt: skip
    header, *wanted = native(tmp_path, file, *asked)
    jobs.run(cluster, *asked, "--output", tmp_path / "out", file)
    assert header == delimiter.join(("ts", "uid", "host", "note")).encode()
    assert len(wanted) > 300
    assert sorted(jobs.lines(tmp_path / "out")) == sorted(wanted)
