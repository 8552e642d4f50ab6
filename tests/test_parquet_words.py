"""Dictionaries of plain Parquet: the same leaves with and without, and no word beside it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from string import ascii_letters, digits
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from events import KEY
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from program import ran
from test_parquet_way import both, rows, ways  # noqa: F401  # a fixture
from test_run import policy

from zveil._native import Keyring
from zveil.policy import Policy

START = datetime(2024, 5, 1, tzinfo=UTC)
TEXTS = ("uid", "host", "note")


def word(random: Random) -> str:
    """A text that nothing packs."""
    return "".join(random.choices(ascii_letters + digits, k=24))


def table(random: Random, count: int) -> pa.Table:
    """Rows with few or many words in each column, and in each perhaps rows without a value."""
    columns: dict[str, Any] = {}
    for name in TEXTS:
        words = [f"{name}-{number}" for number in range(random.choice([1, 3, 40, 4_000]))]
        missing = random.choice([0, 0, 0.1, 0.9, 1])
        columns[name] = [
            None if random.random() < missing else random.choice(words) for _ in range(count)
        ]
    columns["ts"] = [
        START + timedelta(seconds=n // 4 - random.choice([0, 0, 3])) for n in range(count)
    ]
    schema = [(name, pa.timestamp("ms", "UTC") if name == "ts" else pa.string())
              for name in columns]  # fmt: skip
    if random.random() < 0.3:
        schema[2] = ("note", pa.binary())
    return pa.table(columns, schema=pa.schema(schema))


def written(random: Random, path: Path, made: pa.Table) -> None:
    """Write it as programs do: with words, without, or with words up to some page of a chunk."""
    options: dict[str, Any] = random.choice([
        {"use_dictionary": True},
        {"use_dictionary": False},
        {"use_dictionary": ["host"]},
        {"dictionary_pagesize_limit": 300, "data_page_size": 200, "write_batch_size": 50},
    ])  # fmt: skip
    options |= {
        "row_group_size": random.choice([7, 400, 10_000]),
        "compression": random.choice(["snappy", "none"]),
        "data_page_version": random.choice(["1.0", "2.0"]),
    }
    pq.write_table(made, path, **options)


def any_policy(random: Random) -> Policy:
    rule = policy(
        z=random.choice([1, 2, 5, 100_000]),
        window=random.choice([1, 30, 3_600]),
        attributes=random.choice([("host",), ("host",), ("host", "note")]),
        empty=random.choice(["drop", "drop", "blank"]),
        raw_users=random.random() < 0.3,
    )
    if len(rule.attributes) == 1:
        rule = replace(rule, record=replace(rule.record, keep=random.choice([(), ("note",)])))
        if random.random() < 0.3:
            marked = tuple(replace(each, veiled="(veiled)") for each in rule.attributes)
            rule = replace(rule, attributes=marked)
    return rule


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.integers(0, 2**32).map(Random), st.sampled_from([1, 100, 3_000]))
def test_words_come_out_as_in_the_way_of_columns(
    tmp_path: Path,
    ways: list[str],  # noqa: F811
    random: Random,
    count: int,
) -> None:
    ways.clear()
    paths = [tmp_path / "1.parquet", tmp_path / "2.parquet"][: random.choice([1, 2])]
    for path in paths:
        made = table(Random(random.random()), count)
        if path is not paths[0]:
            made = made.cast(pq.read_schema(paths[0]))
        written(random, path, made)
    rule = any_policy(random)
    options: dict[str, Any] = {}
    if rule.user.pseudonym != "raw":
        rotates = random.random() < 0.5
        options["keyring"] = (
            Keyring.kept("base32", KEY, 60 * 10**9) if rotates else Keyring.fixed("hex", KEY)
        )
    both(rule, paths, tmp_path, **options)
    assert ways == ["plain", "columns"]


def dictionaries(path: Path, name: str) -> list[list[Any]]:
    """The words of a column that is written by words throughout, one list for each row group."""
    file = pq.ParquetFile(path, read_dictionary=[name])
    found = []
    for group in range(file.num_row_groups):
        chunks = file.read_row_group(group, columns=[name]).column(0).chunks
        assert all(pa.types.is_dictionary(chunk.type) for chunk in chunks)
        found.append(chunks[0].dictionary.to_pylist())
    return found


@pytest.mark.parametrize("with_words", [True, False])
@pytest.mark.parametrize("blank", [True, False])
def test_no_word_is_in_the_file_that_does_not_leave(
    tmp_path: Path, with_words: bool, blank: bool
) -> None:
    """Neither a value that was veiled nor a user's id, in any byte of it."""
    random = Random(5)
    users, shared = ([word(random) for _ in range(count)] for count in (50, 20))
    count = 4_000
    hosts = [random.choice(shared) if n % 3 else word(random) for n in range(count)]
    path, output = tmp_path / "in.parquet", tmp_path / "out.parquet"
    given = {
        "ts": [START + timedelta(seconds=n) for n in range(count)],
        "uid": [random.choice(users) for _ in range(count)],
        "host": hosts,
    }
    pq.write_table(
        pa.table(given), path, use_dictionary=with_words, row_group_size=1_500, compression="none"
    )
    rule = policy(window="1h", z=3, empty="blank" if blank else "drop")
    ran(rule, [path], output, keyring=Keyring.fixed("base32", KEY))
    found = pq.read_table(output)
    released = set(found["host"].to_pylist()) - {None}
    assert released == set(shared)
    group = pq.ParquetFile(output).metadata.row_group(0)
    chunks = [group.column(at) for at in range(group.num_columns)]
    texts = [chunk for chunk in chunks if chunk.path_in_schema != "ts"]
    assert [chunk.compression for chunk in texts] == ["UNCOMPRESSED"] * 2, "else nothing is seen"
    assert [chunk.statistics for chunk in texts] == [None] * 2
    data = output.read_bytes()
    assert all(host.encode() in data for host in released)
    assert not [host for host in set(hosts) - released if host.encode() in data]
    assert not [user for user in users if user.encode() in data]
    for name in ("uid", "host"):
        (words,) = dictionaries(output, name)
        assert sorted(words) == sorted(set(found[name].to_pylist()) - {None})
    times = found["ts"].to_pylist()
    told = next(chunk for chunk in chunks if chunk.path_in_schema == "ts").statistics
    assert (told.min, told.max) == (min(times), max(times))


def test_a_row_group_has_no_words_of_another(tmp_path: Path) -> None:
    """They end where those end that are read, if they are large enough."""
    count, groups = 270_000, 3
    path, output = tmp_path / "in.parquet", tmp_path / "out.parquet"
    numbers = pa.array(range(groups * count))
    groups_of = [f"{n // count}-{n % 70}" for n in range(groups * count)]
    made = {"ts": numbers.cast(pa.timestamp("ms", "UTC")), "uid": groups_of, "host": groups_of}
    pq.write_table(pa.table(made), path, row_group_size=count)
    ran(policy(z=1), [path], output, keyring=Keyring.fixed("base32", KEY))
    found = pq.read_table(output)
    assert found["host"].to_pylist() == groups_of
    assert found["ts"].equals(pq.read_table(path)["ts"])
    pseudonyms = found["uid"].to_pylist()
    assert len(set(pseudonyms)) == len(set(zip(pseudonyms, groups_of, strict=True))) == 70 * groups
    for name in ("uid", "host"):
        words = dictionaries(output, name)
        assert [len(group) for group in words] == [70] * groups
        assert len({each for group in words for each in group}) == 70 * groups


def test_words_that_do_not_repeat_are_written_one_by_one(tmp_path: Path) -> None:
    """From the middle of a chunk on, when the dictionary is full; nulls among them."""
    random, count = Random(6), 90_000
    notes = [None if n % 7 == 0 else word(random) * 4 for n in range(count)]
    path = tmp_path / "in.parquet"
    made = {"ts": pa.array(range(count)).cast(pa.timestamp("ms", "UTC")),
            "uid": [f"u{n % 9}" for n in range(count)], "host": ["a"] * count,
            "note": notes}  # fmt: skip
    pq.write_table(pa.table(made), path)
    found, _, _ = both(policy(z=1, keep=("note",)), [path], tmp_path)
    assert found["note"].to_pylist() == notes
    group = pq.ParquetFile(tmp_path / "plain.parquet").metadata.row_group(0)
    encodings = {group.column(at).path_in_schema: group.column(at).encodings for at in range(4)}
    assert {"PLAIN", "RLE_DICTIONARY"} <= set(encodings["note"])


def test_what_was_written_can_be_read_again(tmp_path: Path, ways: list[str]) -> None:  # noqa: F811
    """Its own output is plain, too."""
    path, again = tmp_path / "in.parquet", tmp_path / "again.parquet"
    pq.write_table(pa.table(rows()), path)
    ran(policy(window=30, keep=("*",)), [path], again, keyring=Keyring.fixed("hex", KEY))
    found, _, _ = both(policy(window=30, keep=("*",)), [again], tmp_path)
    assert ways == ["plain", "plain", "columns"]
    assert found.num_rows > 100
