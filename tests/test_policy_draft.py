"""`zveil policy new`: a policy from a sample, with reasons, and without a value of it."""

import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest
from program import zveil
from test_run import T

from zveil.draft import Sample, guess
from zveil.policy.file import parse_policy

ROWS = 1_500


def records(seed: int = 3) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    return [
        {
            "ts": T + number * 20,
            "clientId": f"planted{draw.randrange(300):03}user",
            "host": f"planted{min(draw.randrange(1, 60), draw.randrange(1, 60))}.example",
            "request": f"planted-{number}-{draw.random()}",
            "method": draw.choice(["PLANTEDGET", "PLANTEDPUT"]),
            "lat": draw.random() * 80,
            "lon": draw.random() * 80,
        }
        for number in range(ROWS)
    ]


def ndjson(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def separated(rows: list[dict[str, Any]], by: str) -> bytes:
    lines = [by.join(rows[0]), *(by.join(map(str, row.values())) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    match path.name.partition(".")[2]:
        case "ndjson":
            path.write_bytes(ndjson(rows))
        case "ndjson.gz":
            path.write_bytes(gzip.compress(ndjson(rows)))
        case "csv":
            path.write_bytes(separated(rows, ","))
        case "tsv":
            path.write_bytes(separated(rows, "\t"))
        case "parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)
        case "arrow":
            pf.write_feather(pa.Table.from_pylist(rows), str(path), compression="uncompressed")
    return path


@pytest.mark.parametrize("ending", ["ndjson", "ndjson.gz", "csv", "tsv", "parquet", "arrow"])
def test_of_each_format_a_policy_that_is_one(ending: str, tmp_path: Path) -> None:
    """The format is in it too, and the run that tries it takes it."""
    path, output = write(tmp_path / f"sample.{ending}", records()), tmp_path / "zveil.toml"
    done = zveil("policy", "new", path, "-o", output)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    text = output.read_text()
    found = parse_policy(text)
    assert (found.input.format, found.time.field, found.user.field) == (
        ending.removesuffix(".gz"), "ts", "clientId",
    )  # fmt: skip
    assert found.time.format == "s"
    assert found.names[0] == "host"
    assert set(found.names) <= {"host", "method"}
    assert "planted" not in text.lower()
    assert str(T)[:5] not in text
    assert '# fields = ["lat", "lon"]' in text
    assert '#   "request": text; 1,500 different values, 100% of all' in text
    done = zveil("run", path, "--policy", output, "--dry-run", "--json")
    assert json.loads(done.stdout)["records"] == ROWS


def test_what_is_commented_out_can_be_chosen(tmp_path: Path) -> None:
    text = zveil("policy", "new", write(tmp_path / "s.ndjson", records())).stdout.decode()
    chosen = re.sub(r"(?m)^# (?=\[\[|[a-z_]+ = )", "", text)
    assert chosen.count("[[attribute]]") > text.count("\n[[attribute]]")
    found = parse_policy(chosen.replace('hierarchy = ["domain"]\n', ""))
    assert found.attributes[-1].fields == ("lat", "lon")


def test_what_is_not_certain_is_marked() -> None:
    sure = zveil("policy", "new", "-", stdin=ndjson(records())).stdout.decode()
    assert "# UNSURE" not in sure.partition("[[attribute]]")[0]
    assert "# UNSURE" not in sure.partition('field = "host"')[0].rpartition("[[")[2]
    few = zveil("policy", "new", "-", stdin=ndjson(records()[:50])).stdout.decode()
    assert "# UNSURE: so few records" in few
    nameless = [{"a": row["ts"], "b": row["clientId"], "c": row["host"]} for row in records()]
    text = zveil("policy", "new", "-", stdin=ndjson(nameless)).stdout.decode()
    found = parse_policy(text)
    assert found.time.field == "a"
    assert {found.user.field, *found.names} == {"b", "c"}
    assert text.count("# UNSURE") >= 2


def test_where_there_is_nothing_to_find_the_names_are_left_to_fill_in() -> None:
    done = zveil("policy", "new", "-", stdin=b'{"a": 1.5}\n{"a": 2.5}\n')
    assert done.returncode == 0
    assert done.stdout.count(b"# UNSURE: no field") == 3
    assert parse_policy(done.stdout.decode()).time.field == "NAME-OF-THE-TIME"


def test_nested_fields_and_odd_names() -> None:
    rows = [
        {"meta": {"time": row["ts"]}, "who": {"user id": row["clientId"]},
         'a "q".\\x\n\x7f': row["host"], "": 1, "s\ud800": row["host"]}
        for row in records()
    ]  # fmt: skip
    text = zveil("policy", "new", "-", stdin=ndjson(rows)).stdout.decode()
    found = parse_policy(text)
    assert (found.time.field, found.user.field) == ("meta.time", "who.user id")
    assert found.names == ('a "q"\\.\\\\x\n\x7f',)
    assert "\ud800" not in text


def test_ids_that_are_names_of_members_are_not_shown() -> None:
    rows = [
        row | {"seen": {row["clientId"]: 1, "10.0.0.7": 2}, "ada@planted.example": 3}
        for row in records()
    ]
    done = zveil("policy", "new", "-", stdin=ndjson(rows))
    assert done.returncode == 0
    text = done.stdout.decode()
    assert "planted" not in text.lower()
    assert "10.0.0.7" not in text
    assert re.search(r"Fields besides whose names are not shown", text)
    small = ndjson([row | {"seen": {row["clientId"]: 1}} for row in records()[:4]])
    assert b"planted" not in zveil("policy", "new", "-", stdin=small).stdout


@pytest.mark.parametrize(
    "data",
    [
        separated(records(), ",").partition(b"\n")[2],
        b"planted-a,planted-b\nplanted-a,planted-c\n",
        b"1767258000,ada\n1767258001,bob\n",
    ],
)
def test_a_table_without_a_header_is_refused(data: bytes) -> None:
    done = zveil("policy", "new", "-", "--format", "csv", stdin=data)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"the first line should name the columns" in done.stderr
    assert b"planted" not in done.stderr


def test_bad_lines_are_passed_over() -> None:
    data = b"{\n[1]\nnull\n\n" + ndjson(records()[:100]) + b"[" * 100_000 + b"\n\xff\n"
    done = zveil("policy", "new", "-", "--format", "ndjson", stdin=data)
    assert done.returncode == 0
    assert parse_policy(done.stdout.decode()).user.field == "clientId"
    rows = separated(records()[:100], ",") + b'1,2\n"' + b"x" * 200_000 + b'",1,1,1,1,1,1\n'
    done = zveil("policy", "new", "-", "--format", "csv", stdin=rows)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", 3, b"no record in it"),
        (b"{\n[\n", 3, b"no record in it, and 2 lines are none"),
    ],
)
def test_where_there_is_no_record(data: bytes, code: int, words: bytes) -> None:
    done = zveil("policy", "new", "-", "--format", "ndjson", stdin=data)
    assert (done.returncode, done.stdout) == (code, b"")
    assert words in done.stderr


def test_a_policy_is_never_overwritten(tmp_path: Path) -> None:
    output = tmp_path / "zveil.toml"
    output.write_text("mine")
    done = zveil("policy", "new", "-", "-o", output, stdin=ndjson(records()))
    assert done.returncode == 2
    assert b"is there already" in done.stderr
    assert output.read_text() == "mine"
    done = zveil("policy", "new", "-", "-o", tmp_path / "a/b", stdin=ndjson(records()))
    assert done.returncode == 1
    assert zveil("policy", "new", tmp_path / "none.csv").returncode == 1
    assert zveil("policy", "new").returncode == 2


def test_the_first_records_are_enough() -> None:
    data = ndjson([{"ts": T + n, "uid": n % 700, "host": n % 40} for n in range(30_000)])
    text = zveil("policy", "new", "-", stdin=data).stdout.decode()
    assert "from 20,000 records" in text
    assert parse_policy(text).attributes[0].z == 20


def test_a_field_inside_another_is_not_taken_with_it() -> None:
    sample = Sample(format=None)  # type: ignore[arg-type]
    for row in records():
        members = {"user": row["clientId"], "user.host": row["host"], "t": row["ts"]}
        sample.add(iter(members.items()))
    sample.end()
    found = guess(sample)
    assert found.user is not None
    assert found.user.found.name == "user"
    assert not found.attributes
