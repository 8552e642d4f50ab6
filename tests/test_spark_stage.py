"""The stages of a back-fill by themselves: over shards and batches, compared with one act.

Spark itself is put to the test by `make test-spark`.
"""

import pickle
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from zveil.act.columns import ColumnsAct
from zveil.engines.spark.fitness import check, check_frame
from zveil.engines.spark.layout import SORTED, laid_out
from zveil.engines.spark.stage import Keying, Secret, Stage
from zveil.keys import open_keyring
from zveil.policy import Policy, PolicyError
from zveil.policy.file import parse_policy

KEY = bytes(range(32))
POLICY = """
[time]
field = "when.exactly"
format = "iso"
round = "hour"
[user]
field = "who"
rotate = "4 windows"
keep_keys = true
[record]
keep = ["*"]
empty = "EMPTY"
[[attribute]]
field = "host"
z = 3
window = "10m"
noise = 2
veiled = { text = "(few)" }
only = "hosts.txt"
[[attribute]]
field = "path"
z = 2
window = "20m"
hierarchy = [{ segments = "/", levels = 2 }]
[[attribute]]
fields = ["lat", "lon"]
name = "cell"
z = 2
window = "1h"
hierarchy = [{ cells = [7, 4] }]
"""


def policy(folder: Path, text: str = POLICY, empty: str = "drop") -> Policy:
    (folder / "hosts.txt").write_text("".join(f"h{number}\n" for number in range(50)))
    return parse_policy(text.replace("EMPTY", empty), folder=folder)


def events(seed: int, count: int = 1_500) -> pa.Table:
    draw = Random(seed)
    rows = []
    for number in range(count):
        minute = draw.randrange(300)
        rows.append({
            "when.exactly": f"2024-01-01T{minute // 60:02}:{minute % 60:02}:00Z",
            "who": draw.choice([None, *"abcdefghijklmnop"]),
            "host": draw.choice([None, f"h{int(draw.paretovariate(0.4)) % 70}"]),
            "path": f"/{draw.choice('ab')}/{draw.randrange(4)}/{draw.randrange(40)}",
            "lat": 45 + draw.random() / 10, "lon": draw.choice([None, 7 + draw.random() / 10]),
            "n": number, "Host": "kept",
        })  # fmt: skip
    rows[7]["when.exactly"] = "some day"
    return pa.Table.from_pylist(rows)


def split(table: pa.Table, homes: list[Any], shards: int) -> Iterator[pa.Table]:
    numbers = [hash(home) % shards for home in homes]
    for shard in range(shards):
        yield table.filter(pa.array([number == shard for number in numbers]))


def passed(table: pa.Table, stated: Policy, ties: list[str], shards: int, rows: int) -> pa.Table:
    """Do what Spark does, in one process."""
    layout = laid_out(stated, table.schema, ties)
    frame = pa.table({name: table.column(place) for name, place in layout.read.items()})
    places = range(len(stated.attributes))
    labelled = tuple(place for place in places if stated.attributes[place].hierarchy is not None)
    keying = pickle.loads(pickle.dumps(Keying(layout, True, labelled)))  # noqa: S301  # our own
    frame = pa.Table.from_batches(keying.key(frame.to_batches(max_chunksize=rows)))
    for place in places:
        home = f"h{place}" if place in labelled else f"a{place}"
        stage = pickle.loads(pickle.dumps(Stage(layout, place, Secret(KEY))))  # noqa: S301
        parts = []
        for part in split(frame, frame[home].to_pylist(), shards):
            order = [(SORTED, "ascending"), *((name, "ascending") for name in layout.ties)]
            shard = part.sort_by(order).combine_chunks()
            if place == places[-1]:
                shard = shard.drop([name for name in shard.column_names if name[0] in "hos"])
            parts += stage.decide(shard.to_batches(max_chunksize=rows))
            assert all(one.schema == stage.schema(shard.schema) for one in parts)
        frame = pa.Table.from_batches(parts)
    return frame.rename_columns(list(layout.leaving))


def at_once(table: pa.Table, stated: Policy, ties: list[str]) -> pa.Table:
    """Let one act decide all rows in the order of their times, ties by other columns."""
    names = ["when.exactly", *ties, "who"]
    ordered = table.sort_by([(name, "ascending") for name in names]).combine_chunks()
    user = stated.user
    keyring = open_keyring(user.pseudonym, own=KEY, rotate_ns=stated.rotate_ns,
                           keep_keys=user.keep_keys)  # fmt: skip
    act = ColumnsAct(stated, stated.gates(key=KEY), ordered.schema, keyring=keyring)
    return pa.Table.from_batches([act.act(batch) for batch in ordered.to_batches()])


def told(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


@pytest.mark.parametrize("empty", ["drop", "blank"])
@pytest.mark.parametrize("shards", [1, 3])
def test_shards_and_batches_change_nothing(shards: int, empty: str, tmp_path: Path) -> None:
    stated = policy(tmp_path, empty=empty)
    for seed in range(3):
        table = events(seed)
        for ties in ([], ["n"]):
            found = passed(table, stated, ties, shards, rows=100)
            wanted = at_once(table, stated, ties)
            assert found.column_names == wanted.column_names
            assert told(found) == told(wanted)
            assert found.num_rows > 0


def test_a_single_attribute_takes_one_stage(tmp_path: Path) -> None:
    stated = policy(tmp_path, POLICY[: POLICY.index('[[attribute]]\nfield = "path"')])
    assert len(stated.attributes) == 1
    found = passed(events(1), stated, ["n"], 2, rows=64)
    assert told(found) == told(at_once(events(1), stated, ["n"]))


def test_a_list_of_names_that_has_changed_is_not_sent(tmp_path: Path) -> None:
    stated = policy(tmp_path)
    (tmp_path / "hosts.txt").write_text("other\n")
    with pytest.raises(ValueError, match="has changed"):
        pickle.dumps(stated)


def test_a_secret_does_not_show() -> None:
    assert KEY.hex() not in repr(Secret(KEY))
    assert repr(Secret(KEY)) == "Secret(...)"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("noise = 2", "swap = 0.5", "attribute.swap"),
        ("keep_keys = true", "", "user.rotate"),
        ("[record]", '[input]\nid = "n"\n[record]', "dropDuplicates"),
    ],
)
def test_what_does_not_partition_is_refused(old: str, new: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=words):
        check(policy(tmp_path, POLICY.replace(old, new)))


def test_times_must_be_said_what_they_are(tmp_path: Path) -> None:
    stated = policy(tmp_path, POLICY.replace('format = "iso"', ""))
    with pytest.raises(PolicyError, match=r"time\.format: the column 'when.exactly' holds text"):
        laid_out(stated, events(1).schema, [])


def test_without_pyspark_the_command_that_adds_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyspark.sql", None)
    with pytest.raises(ImportError, match=r"pip install 'zveil\[spark\]'"):
        check_frame(object())
