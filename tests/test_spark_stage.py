"""The stages of a back-fill by themselves: over shards and batches, compared with one act.

Spark itself is put to the test by `make test-spark`.
"""

import pickle
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from zveil.act.columns import ColumnsAct
from zveil.engines.spark import merge, parcels
from zveil.engines.spark.fitness import check, check_frame
from zveil.engines.spark.keying import Keying
from zveil.engines.spark.layout import Layout, laid_out
from zveil.engines.spark.merge import Merge
from zveil.engines.spark.parcels import PARCELS, content, labels
from zveil.engines.spark.parts import Parts
from zveil.engines.spark.stage import Secret, Stage
from zveil.engines.spark.stream import Keeping
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


def laid(table: pa.Table, stated: Policy, ties: list[str], shards: int) -> tuple[Layout, Keying]:
    layout = laid_out(stated, table.schema, ties)
    schema = pa.schema([table.schema.field(n).with_name(name) for name, n in layout.read.items()])
    for place, each in enumerate(stated.attributes):
        if each.hierarchy is None:
            schema = schema.append(pa.field(f"h{place}", pa.int64()))
    return layout, sent(Keying(layout, schema, shards))


def sent(what: Any) -> Any:
    """Let something go to a task."""
    return pickle.loads(pickle.dumps(what))  # noqa: S301  # our own


def hashed(table: pa.Table, layout: Layout) -> pa.Table:
    """Take the columns, and hash those that Spark hashes."""
    frame = pa.table({name: table.column(n) for name, n in layout.read.items()})
    for place, each in enumerate(layout.policy.attributes):
        if each.hierarchy is None:
            values = frame[f"a{place}"].to_pylist()
            hashes = [None if value is None else hash(value) for value in values]
            frame = frame.append_column(f"h{place}", pa.array(hashes, pa.int64()))
    return frame


def stages(layout: Layout, keying: Keying, **options: Any) -> Iterator[Stage]:
    schema = content(keying.keyed, 0)
    options.setdefault("merge", Merge(layout.ties, limit=None))
    for place in range(len(layout.policy.attributes)):
        stage = Stage(layout, place, Secret(KEY), schema, keying.named, **options)
        yield sent(stage)
        schema = None if stage.is_last else stage.parcels


def shuffled(packed: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Bring the parcels of a shard together, as Spark does."""
    for shard in packed["shard"].unique().to_pylist():
        yield shard, packed.filter(pc.equal(packed["shard"], shard))


def passed(
    table: pa.Table, stated: Policy, ties: list[str], shards: int, rows: int, **options: Any
) -> pa.Table:
    """Do what Spark does, in one process."""
    layout, keying = laid(table, stated, ties, shards)
    frame = hashed(table, layout)
    packed = pa.Table.from_batches(keying.pack(frame.to_batches(max_chunksize=rows)))
    for stage in stages(layout, keying, **options):
        parts: list[pa.RecordBatch] = []
        for _, part in shuffled(packed):
            parts += stage.decide(part.sort_by("first").to_batches(max_chunksize=3))
        packed = pa.Table.from_batches(parts, stage.leaves if stage.is_last else PARCELS)
    return packed.rename_columns(list(layout.leaving))


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


def test_what_does_not_fit_waits_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path / 'none'},{tmp_path}")
    monkeypatch.setattr(parcels, "_HELD_ROWS", 60)
    monkeypatch.setattr(parcels, "_PARCEL_ROWS", 11)
    monkeypatch.setattr(merge, "_SHORT_ROWS", 7)
    on_disk = merge._on_disk
    monkeypatch.setattr(merge, "_on_disk", lambda rows: files.append(rows) or on_disk(rows))
    stated = policy(tmp_path)
    for seed in range(3):
        table = events(seed)
        small = Merge(laid_out(stated, table.schema, []).ties, limit=3_000, enough=1_000)
        assert told(passed(table, stated, [], 2, 50, merge=small)) == told(
            at_once(table, stated, [])
        )
    assert len(files) > 20


def test_memory_is_bounded_by_what_overlaps() -> None:
    schema = pa.schema([("s", pa.int64()), ("u", pa.string())])
    held = [0]

    def parcels_of(count: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        for first in range(count):
            held[0] += 100
            times = range(first * 60, first * 60 + 100)
            yield first * 60, pa.record_batch([list(times), ["x"] * 100], schema=schema)

    most = 0
    came = []
    for batch in Merge(("u",), limit=None, enough=2_000).rows(parcels_of(500)):
        most = max(most, held[0])
        held[0] -= batch.num_rows
        came += batch.column("s").to_pylist()
    assert came == sorted(first * 60 + time for first in range(500) for time in range(100))
    assert most < 1_000


@pytest.mark.parametrize("shards", [1, 2, 7, 200, 1_000])
def test_each_shard_has_a_name_of_its_own(shards: int) -> None:
    assert len(set(labels(shards).tolist())) == shards


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


class Group:
    """What Spark gives a shard to keep its state in."""

    def __init__(self) -> None:
        self.held: Any = None

    @property
    def exists(self) -> bool:
        return self.held is not None

    @property
    def get(self) -> Any:
        return self.held

    def update(self, state: Any) -> None:
        self.held = state


def streamed(tables: list[pa.Table], stated: Policy, shards: int, states: Any) -> pa.Table:
    """Do what Spark does with micro-batches, in one process."""
    layout, keying = laid(tables[0], stated, ["n"], shards)
    parts = sent(Parts(keying))
    keeping = sent(Keeping(tuple(
        Stage(layout, place, Secret(KEY), parts.content(place), named,
              Merge(layout.ties, limit=None), is_sorted=False, veiled=parts.veiled(place))
        for place, named in enumerate(parts.named)
    )))  # fmt: skip
    assert len({repr(stage.leaves) for stage in keeping.stages}) == 1
    left = []
    for table in tables:
        packed = pa.Table.from_batches(parts.pack(hashed(table, layout).to_batches()))
        decided = []
        for shard, part in shuffled(packed):
            frames = [each.to_pandas() for each in part.to_batches(max_chunksize=2)]
            group = states.setdefault(shard, Group())
            decided += keeping.decide((shard,), iter(frames[::-1]), group)
        rows = [row for frame in decided for row in frame.to_dict("records")]
        left += keeping.unpack(pa.Table.from_pylist(rows, PARCELS).to_batches())
    return pa.Table.from_batches(left, keeping.leaves).rename_columns(list(layout.leaving))


def in_order(tables: list[pa.Table], stated: Policy) -> pa.Table:
    """Let one act decide the parts of each attribute, micro-batch by micro-batch in its order."""
    read = [each.reads for each in stated.attributes]
    user = stated.user
    left = []
    for place, mine in enumerate(read):
        keyring = open_keyring(user.pseudonym, own=KEY, rotate_ns=stated.rotate_ns,
                               keep_keys=user.keep_keys)  # fmt: skip
        act = ColumnsAct(stated, stated.gates(key=KEY), tables[0].schema, keyring=keyring)
        for table in tables:
            rows = []
            for row in table.to_pylist():
                has = [all(row[name] is not None for name in names) for names in read]
                if has[place] or (place == 0 and not any(has)):
                    others = {name for names in read for name in names} - {*mine}
                    rows.append(row | dict.fromkeys(others))
            rows.sort(key=lambda row: (row["when.exactly"], row["n"]))
            left += map(act.act, pa.Table.from_pylist(rows, table.schema).to_batches())
    return pa.Table.from_batches(left)


def micro_batches(seed: int) -> list[pa.Table]:
    table = events(seed)
    return [table.slice(start, 400) for start in range(0, table.num_rows, 400)]


@pytest.mark.parametrize("empty", ["drop", "blank"])
@pytest.mark.parametrize("shards", [1, 3])
def test_micro_batches_go_on_from_the_state_before(shards: int, empty: str, tmp_path: Path) -> None:
    lateness = POLICY + '[limits]\nlateness = "6h"\n'
    stated = policy(tmp_path, lateness, empty)
    for seed in range(3):
        tables = micro_batches(seed)
        found = streamed(tables, stated, shards, {})
        assert told(found) == told(in_order(tables, stated))
        assert found.num_rows > 0


def test_parts_of_a_stream_release_what_whole_rows_do(tmp_path: Path) -> None:
    stated = policy(tmp_path, POLICY + '[limits]\nlateness = "6h"\n')
    table = events(4)
    parts, rows = streamed([table], stated, 3, {}), passed(table, stated, ["n"], 3, rows=100)
    for name, veiled in (("host", "(few)"), ("path", None), ("cell", None)):
        found, wanted = (
            sorted((row["n"], row[name]) for row in each.to_pylist() if row[name] != veiled)
            for each in (parts, rows)
        )
        assert found == wanted
        assert found


def test_a_row_without_any_value_is_one_part(tmp_path: Path) -> None:
    stated = policy(tmp_path, empty="blank")
    nothing = dict.fromkeys(("host", "path", "lat", "lon"))
    rows = [row | nothing for row in events(4, 20).to_pylist()]
    table = pa.Table.from_pylist(rows, events(4, 20).schema)
    left = streamed([table], stated, 3, {})
    # One has no time.
    assert sorted(left["n"].to_pylist()) == [n for n in range(20) if n != 7]
    assert {*left["host"].to_pylist(), *left["path"].to_pylist()} == {"(few)", None}


def test_the_state_of_an_attribute_is_of_no_use_for_another(tmp_path: Path) -> None:
    same = POLICY.replace("z = 3", "z = 2").replace("10m", "20m").replace("noise = 2\n", "")
    same = same[: same.index("[[attribute]]\nfields")].replace('only = "hosts.txt"\n', "")
    same = same[: same.index("hierarchy")]
    stated = policy(tmp_path, same)
    states: dict[Any, Any] = {}
    first, second, *_ = micro_batches(3)
    streamed([first], stated, 1, states)
    assert len(states) == 2
    one, two = states.values()
    one.held, two.held = two.held, one.held
    with pytest.raises(RuntimeError, match=r"the state in this checkpoint: .*key"):
        streamed([second], stated, 1, states)


def test_a_micro_batch_that_is_decided_once_more_comes_to_the_same(tmp_path: Path) -> None:
    stated = policy(tmp_path)
    *before, last = micro_batches(5)
    states: dict[Any, Any] = {}
    streamed(before, stated, 1, states)
    kept = {place: group.held for place, group in states.items()}
    once = streamed([last], stated, 1, states)
    for place, group in states.items():
        group.held = kept[place]
    assert told(streamed([last], stated, 1, states)) == told(once)
    assert told(streamed([last], stated, 1, {})) != told(once)


def test_another_number_of_shards_policy_or_key_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = policy(tmp_path)
    first, second, *_ = micro_batches(2)
    states: dict[Any, Any] = {}
    streamed([first], stated, 1, states)
    # Whichever label a shard had.
    states |= dict.fromkeys(labels(2 * 3).tolist(), next(iter(states.values())))
    with pytest.raises(RuntimeError, match="shards: this checkpoint was begun with 1"):
        streamed([second], stated, 2, states)
    with pytest.raises(RuntimeError, match="policy: this checkpoint was begun under another"):
        streamed([second], policy(tmp_path, POLICY.replace("z = 3", "z = 4")), 1, states)
    monkeypatch.setitem(globals(), "KEY", bytes(32))
    with pytest.raises(RuntimeError, match=r"the state in this checkpoint: .*key"):
        streamed([second], stated, 1, states)
