"""What leaves is what `zveil run` lets out under the same key, byte by byte."""

import gzip
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


# Values of each step, of which many are spelled in several ways; and what no step makes a label of.
ODD = [None, True, 7, -0.0, 1e300, 2**70, "", " ", "x", "\ufeff", 'q"q', "\n", "😀"]
STEPS = {
    "domain": (
        '["domain"]',
        ["www.example.org", "a.EXAMPLE.org.", "example.org:80", "b.example.org", "x.co.uk",
         "y.X.co.uk", "bücher.example", "www.BÜCHER.example", "a.xn--bcher-kva.example", "z.ΑΣ",
         "Z.ας", "ada.github.io", "bob.github.io", "127.0.0.1", "com", "a..b", "a.公司。cn"],
    ),
    "prefix, then a table": (
        '[{ prefix = [24, 16], prefix6 = [48, 32] }, { table = "tree.csv" }]',
        ["192.0.2.7", "192.0.2.8", "::ffff:192.0.2.9", "192.0.77.1", "10.0.0.1", "10.0.0.2",
         "010.0.0.3", "2001:db8::1", "2001:DB8:0:0::2", "2001:db8:1::3", "fe80::1%eth0",
         "fe80::2%eth1", "1.2.3", "::"],
    ),
    "time": (
        '[{ time = ["hour", "day"], format = "s" }]',
        [1767225600, 1767225660, "1767225720", 1767225780.5, "2026-01-01T00:05:00Z",
         "2026-01-01T09:00+09:00", "2026-01-01 00:59", "2026-01-02", 1767312000, -1, 1.7e9,
         "2026-13-01", 99999999999],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_labels_are_the_same(name: str, cluster: Cluster, key: Path, tmp_path: Path) -> None:
    steps, values = STEPS[name]
    random, made = Random(name), []
    for number in range(1_500):
        value = random.choice(values) if random.random() < 0.8 else random.choice(ODD)
        event = {"at": {"ts": START + 10 * number}, "uid": random.randrange(6), "n": number,
                 "page": {"host": value}}  # fmt: skip
        made.append(json.dumps(event, ensure_ascii=random.random() < 0.5).encode())
    file, rule = tmp_path / "events.ndjson", tmp_path / "zveil.toml"
    file.write_bytes(b"".join(line + b"\n" for line in made))
    (tmp_path / "tree.csv").write_text("192.0.0.0/16, docs\n2001:db8::/32,docs\n")
    said = policy("", "", f"hierarchy = {steps}", 'empty = "blank"')
    rule.write_text(said.replace("z = 2", "z = 4").replace('"1h"', '"8m"'), encoding="utf-8")
    asked = ["--policy", rule, "--key-file", key]
    wanted = native(tmp_path, file, *asked)
    jobs.run(cluster, *asked, "--output", tmp_path / "out", file)
    assert sorted(jobs.lines(tmp_path / "out")) == sorted(wanted)
    left = [json.loads(line)["page"]["host"] for line in wanted]
    # Labels that are no value of the file, values, and what is veiled: each often enough.
    assert min(sum(each is None for each in left), sum(each in values for each in left),
               sum(each not in (None, *values, *ODD) for each in left)) > 50  # fmt: skip


def test_values_that_lists_leave_out_are_the_same(
    cluster: Cluster, key: Path, tmp_path: Path
) -> None:
    names = [
        "example.org",
        "a.Example.org.",
        "ads.example.org",
        "é.example.net",
        "b.org:80",
        "no",
        7,
    ]
    random, made, now = Random(6), [], START
    for number in range(1_500):
        now += random.choice((0, 1, 30))
        value = random.choice([*names, *names, *ODD])
        # What does not count is often ahead: by it nothing becomes late.
        ahead = random.choice((0, 5_000)) if value in ("no", "ads.example.org", 7) else 0
        shown = now + ahead - random.choice((0, 0, 0, 100, 5_000))
        event = {"at": {"ts": shown}, "uid": random.choice((*range(5), None)), "n": number,
                 "page": {"host": value}}  # fmt: skip
        made.append(json.dumps(event).encode())
    file, rule = tmp_path / "events.ndjson", tmp_path / "zveil.toml"
    file.write_bytes(b"".join(line + b"\n" for line in made))
    (tmp_path / "only.txt").write_text("rank,name\n1,example.org\n2,*.example.net\n3,b.ORG\n")
    (tmp_path / "except.txt").write_text("ads.example.org\n")
    lists = 'hierarchy = ["domain"]\nonly = "only.txt"\nexcept = "except.txt"'
    rule.write_text(policy("", "", lists, 'empty = "blank"').replace("z = 2", "z = 4"))
    asked = ["--policy", rule, "--key-file", key]
    wanted = native(tmp_path, file, *asked)
    jobs.run(cluster, *asked, "--output", tmp_path / "out", file)
    assert sorted(jobs.lines(tmp_path / "out")) == sorted(wanted)
    left = {json.loads(line)["page"]["host"] for line in wanted}
    assert left == {None, *names[:2], *names[3:5]}


MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize("form", ["ndjson", "csv"])
def test_files_may_begin_with_a_byte_order_mark(
    form: str, cluster: Cluster, key: Path, tmp_path: Path
) -> None:
    # The last line shows a mark elsewhere, the last file two of them.
    rows = [(START + number, number % 5, "a" if number % 3 else "b") for number in range(12)]
    if form == "csv":
        lines = [b"ts,uid,host", *(b"%d,%d,%s" % (*row[:2], row[2].encode()) for row in rows)]
    else:
        lines = [
            json.dumps(dict(zip(("ts", "uid", "host"), row, strict=True))).encode() for row in rows
        ]
    whole = MARK + b"\n".join([*lines, MARK + lines[-1]]) + b"\n"
    names = [f"{number}.{form}" for number in range(3)]
    (tmp_path / names[0]).write_bytes(whole)
    (tmp_path / f"{names[1]}.gz").write_bytes(gzip.compress(whole))
    (tmp_path / names[2]).write_bytes(whole if form == "csv" else MARK + whole)
    files = [tmp_path / names[0], tmp_path / f"{names[1]}.gz", tmp_path / names[2]]
    if form == "ndjson":
        (tmp_path / "empty.ndjson").write_bytes(MARK)
        files.append(tmp_path / "empty.ndjson")
    asked = ["--key-file", key, "--time", "ts", "--user", "uid", "--attribute", "host", "-z", "2",
             "--window", "1h", "--time-format", "s", "--format", form]  # fmt: skip
    wanted = native(tmp_path, *files, *asked)[form == "csv" :]
    jobs.run(cluster, *asked, "--output", tmp_path / "out", *files)
    assert sorted(jobs.lines(tmp_path / "out")) == sorted(wanted)
    assert len(wanted) == (34 if form == "csv" else 33)
