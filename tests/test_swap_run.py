"""Swapped associations through `zveil run`: the same bytes by every way; what a policy says."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from program import run, zveil

from zveil import Gate
from zveil._native import Swap
from zveil.act import TextAct
from zveil.act.columns import ColumnsAct
from zveil.io import Format
from zveil.io.lines import to_ndjson
from zveil.policy import Attribute, Policy, PolicyError, Record, Time, User
from zveil.policy.file import PolicyFileError, parse_policy

START = 1_700_000_000
KEY = bytes(range(32))


def policy(*, swap: float, veiled: str | None = None, empty: str = "drop") -> Policy:
    host = Attribute("host", z=3, window=20, swap=swap, veiled=veiled)
    return Policy(
        time=Time("ts", format="s"),
        user=User("uid", pseudonym="raw"),
        attributes=(host, Attribute("agent", z=2, window=20)),
        record=Record(empty="blank" if empty == "blank" else "drop"),
    )


HOSTS = ["www.example.org", 'q"q,', "ü.example", "tab\there", "plain"]


def records(length: int = 12_000, hosts: Sequence[Any] = HOSTS) -> list[dict[str, Any]]:
    random = Random(3)
    return [
        {
            "ts": START + row // 4,
            "uid": random.randrange(30),
            "host": random.choice(hosts),
            "agent": f"a{random.randrange(5)}",
        }
        for row in range(length)
    ]


def gates(threads: int = 1) -> list[Gate]:
    keys = KEY, bytes(32)
    return [
        Gate(z, 20, max_future=None, lateness=20, time_unit="ns", threads=threads, key=key)
        for z, key in zip((3, 2), keys, strict=True)
    ]


def lines(events: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def through_text(
    rule: Policy, data: bytes, *, parts: Sequence[slice] = (), threads: int = 1,
    source: Format = Format.NDJSON, to: Format = Format.NDJSON,
) -> tuple[bytes, TextAct]:  # fmt: skip
    act = TextAct(
        rule, gates(threads), source, to, keyring=None, max_line=1 << 20, stop_at_problem=False,
        threads=threads,
    )  # fmt: skip
    out = [act.lines(data[part], last=False) for part in parts or [slice(None)]]
    return b"".join(piece for pieces in [*out, act.lines(b"", last=True)] for piece in pieces), act


@pytest.mark.parametrize("empty", ["drop", "blank"])
def test_every_cut_and_number_of_threads_and_columns_write_the_same(empty: str) -> None:
    rule = policy(swap=0.2, empty=empty)
    events = records()
    data = lines(events)
    whole, act = through_text(rule, data)
    random = Random(1)
    ends = sorted(random.sample(range(len(data)), 200))
    parts = [slice(a, b) for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]
    assert through_text(rule, data, parts=parts)[0] == whole
    assert through_text(rule, data, threads=2)[0] == whole
    table = pa.Table.from_pylist(events)
    for size, words in [(1_000, False), (12_000, True)]:
        if words:
            table = table.set_column(2, "host", table.column("host").dictionary_encode())
        columns = ColumnsAct(rule, gates(), table.schema, keyring=None)
        batches = table.to_batches(max_chunksize=size)
        assert b"".join(to_ndjson(columns.act(batch)) for batch in batches) == whole
        assert columns.swapped == act.way.tally()["swapped"]
    swapped, none = act.way.tally()["swapped"]
    released = act._gates[0].stats().released
    assert none == 0
    assert 0.17 < swapped / released < 0.23


def test_only_the_value_of_a_swapped_attribute_differs() -> None:
    data = lines(records(2_000))
    plain, _ = through_text(policy(swap=0.0), data)
    swapped, act = through_text(policy(swap=0.3), data)
    before, after = [[json.loads(line) for line in out.splitlines()] for out in (plain, swapped)]
    assert len(before) == len(after)
    differing = 0
    for old, new in zip(before, after, strict=True):
        assert {**old, "host": 0} == {**new, "host": 0}
        assert (old["host"] is None) == (new["host"] is None)
        differing += old["host"] != new["host"]
    assert [differing, 0] == act.way.tally()["swapped"]
    assert differing > 200


def test_a_value_of_each_type_leaves_in_one_spelling() -> None:
    spelled = {
        '"a\\"b"': '"a\\"b"', '"\\u0041"': '"A"', "7": "7", "-0": "0", "1.50": "1.5",
        "1e2": "100.0", "true": "true", "18446744073709551615": "18446744073709551615",
        "123456789012345678901234": "123456789012345678901234",
    }  # fmt: skip
    random = Random(2)
    data = b"".join(
        b'{"ts":%d,"uid":%d,"host":%s,"agent":"x"}\n'
        % (START, random.randrange(30), random.choice(list(spelled)).encode())
        for _ in range(2_000)
    )
    out, act = through_text(policy(swap=0.5), data)
    found = [line.split(b'"host":')[1].split(b',"agent"')[0].decode() for line in out.splitlines()]
    assert {*found} - {"null"} == {*spelled.values()}
    assert act.way.tally()["swapped"][0] > 500
    csv, _ = through_text(policy(swap=0.5), data, to=Format.CSV)
    rows = csv.decode().splitlines()
    assert '"a""b"' in {row.split(",")[2] for row in rows}
    assert len(rows) == len(found) + 1


def test_csv_is_quoted_where_it_must_be() -> None:
    import csv
    import io

    events = records(2_000)
    text = io.StringIO()
    writer = csv.DictWriter(text, ["ts", "uid", "host", "agent"])
    writer.writeheader()
    writer.writerows(events)
    rule = policy(swap=0.3)
    wanted, _ = through_text(rule, lines(events))
    out, _ = through_text(rule, text.getvalue().encode(), source=Format.CSV, to=Format.CSV)
    found = list(csv.DictReader(io.StringIO(out.decode())))
    assert [row["host"] or None for row in found] == [
        json.loads(line)["host"] for line in wanted.splitlines()
    ]
    again, _ = through_text(rule, text.getvalue().encode(), source=Format.CSV)
    assert [json.loads(line)["host"] for line in again.splitlines()] == [
        json.loads(line)["host"] for line in wanted.splitlines()
    ]


@pytest.mark.parametrize(
    "kind",
    [pa.int64(), pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_(), pa.string(),
     pa.large_string(), pa.string_view(), pa.binary(), pa.binary(3),
     pa.dictionary(pa.int8(), pa.string())],
    ids=str,
)  # fmt: skip
def test_columns_of_every_type_can_be_swapped(kind: pa.DataType) -> None:
    made: dict[str, list[Any]] = {
        "float": [0.5, 1.25, -3.0],
        "bool": [True, False],
        "binary": [b"abc", b"d\xff\x00"],
    }
    values = next(
        (values for name, values in made.items() if name in str(kind) or "double" in str(kind)),
        ["x", "y", "z"] if "string" in str(kind) else [1, 2, 100],
    )
    events = records(2_000, values)
    host = pa.array([event["host"] for event in events], kind)
    table = pa.Table.from_pylist(events).set_column(2, "host", host)
    act = ColumnsAct(policy(swap=0.4), gates(), table.schema, keyring=None)
    left = pa.Table.from_batches([act.act(batch) for batch in table.to_batches()])
    assert {*left.column("host").to_pylist()} - {None} == {*values}
    assert act.swapped[0] > 200


def test_labels_of_hierarchies_are_swapped_alike_in_text_and_columns() -> None:
    rule = parse_policy("""
time = { field = "ts", format = "s" }
user = { field = "uid", pseudonym = "raw" }
[[attribute]]
field = "host"
z = 3
window = 20
swap = 0.3
hierarchy = [{ segments = "/", levels = 2 }]
""")
    names = [f"{top}/{middle}/{low}" for top in "ab" for middle in "cd" for low in range(9)]
    events = records(8_000, names)
    gate = {"max_future": None, "lateness": 20, "time_unit": "ns", "key": KEY}
    options: dict[str, Any] = {"keyring": None, "max_line": 1 << 20, "stop_at_problem": False}
    text = TextAct(rule, [Gate(3, 20, **gate)], Format.NDJSON, Format.NDJSON, **options)
    whole = b"".join(text.lines(lines(events), last=True))
    table = pa.Table.from_pylist(events).select(["ts", "uid", "host"])
    columns = ColumnsAct(rule, [Gate(3, 20, **gate)], table.schema, keyring=None)
    batches = table.to_batches(max_chunksize=700)
    assert b"".join(to_ndjson(columns.act(batch)) for batch in batches) == whole
    tally = text.way.tally()
    assert columns.swapped == tally["swapped"]
    assert columns.levels == tally["levels"]
    assert tally["swapped"][0] > 0.25 * sum(tally["levels"][0])
    assert len({line.count(b"/") for line in whole.splitlines()}) > 1


def test_the_program_swaps_and_counts(tmp_path: Path) -> None:
    events = [{"ts": START + row, "uid": row % 50, "host": f"h{row % 7}"} for row in range(4_000)]
    (tmp_path / "in.ndjson").write_bytes(lines(events))
    done = run(tmp_path / "in.ndjson", "--swap", "20%", "--json", "--raw-users")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stderr)
    [outcome] = summary["outcomes"]
    left = [json.loads(line) for line in done.stdout.splitlines()]
    true = {(event["ts"], event["host"]) for event in events}
    false = [event for event in left if (event["ts"], event["host"]) not in true]
    assert len(false) == outcome["swapped"]
    assert 0.16 < len(false) / outcome["released"] < 0.24
    told = run(tmp_path / "in.ndjson", "--swap", "0.2").stderr.decode()
    assert "  under another value" in told
    trial = run(tmp_path / "in.ndjson", "--swap", "0.2", "--dry-run", "--json")
    assert trial.returncode == 0
    assert b"swapped" not in trial.stdout
    plain = run(tmp_path / "in.ndjson", "--json")
    assert b"swapped" not in plain.stderr


def test_a_rerun_under_the_same_key_makes_the_same_swaps(tmp_path: Path) -> None:
    data = lines([{"ts": START + n, "uid": n % 50, "host": f"h{n % 7}"} for n in range(2_000)])
    key, other = tmp_path / "key", tmp_path / "other"
    assert {zveil("key", path).returncode for path in (key, other)} == {0}
    options = ("-q", "--swap", "0.2", "--raw-users", "--key-file")
    first = run(*options, key, stdin=data).stdout
    assert first
    assert run(*options, key, "--threads", "2", stdin=data).stdout == first
    assert run(*options, other, stdin=data).stdout != first


def test_the_policy_says_it(tmp_path: Path) -> None:
    text = """
time = { field = "ts" }
user = { field = "uid" }
attribute = [{ field = "host", z = 2, window = "1h", swap = SHARE }]
"""
    made = parse_policy(text.replace("SHARE", "0.05"))
    options = {"time": "ts", "user": "uid", "attributes": ["host"], "z": 2, "window": "1h"}
    assert made.fingerprint == Policy.of(**options, swap=0.05).fingerprint
    without = Policy.of(**options)
    assert made.fingerprint != without.fingerprint
    assert parse_policy(text.replace("SHARE", "0")).fingerprint == without.fingerprint
    with pytest.raises(PolicyFileError, match=r"4:\d+: attribute.swap: expected a share from 0"):
        parse_policy(text.replace("SHARE", "1"))
    with pytest.raises(PolicyFileError, match=r"attribute.swap: expected a share such as"):
        parse_policy(text.replace("SHARE", "'5%'"))
    with pytest.raises(PolicyError, match=r"swap: expected a share .*, got -0.1"):
        Policy.of(**options, swap=-0.1)
    with pytest.raises(ValueError, match=r"swap: expected a share from 0 to less than 1, got 1"):
        Swap(Gate(2, 10), 1.0)
    refused = run("--swap", "1", stdin=b"")
    assert refused.returncode == 2
    assert b"--swap: expected a share from 0 to less than 1" in refused.stderr
    (tmp_path / "p.toml").write_text(text.replace("SHARE", "0.05"))
    twice = zveil("run", "--policy", tmp_path / "p.toml", "--swap", "0.1")
    assert twice.returncode == 2
    assert b"--swap and --policy" in twice.stderr
