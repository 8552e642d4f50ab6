"""Hierarchies through `zveil run`: which level leaves, what of it, and what never does."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import ladders
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from events import fed, objects, spelled, table
from program import ran, zveil

from zveil.io import Format
from zveil.policy import Policy, PolicyError
from zveil.policy.file import parse_policy
from zveil.reference import Reference

START = 1_700_000_000
HOSTS = ["www.example.org", "clinic.example.org", "WWW.example.org", "a.co.uk", "x.a.co.uk",
         "co.uk", "b.example.org.", "192.0.2.1", "mail.other.com", "other.com", 'q"q,',
         "ü.other.com"]  # fmt: skip
TREE = "domain,category\nexample.org,news\na.co.uk,news\nother.com,health\n"
HOST = 'hierarchy = ["domain", { table = "tree.csv" }]'


class Seen(NamedTuple):
    t: int
    user: str
    value: Any


def stream(random: Random, length: int, values: Sequence[Any] = HOSTS) -> list[Seen]:
    now, seen = START, []
    for _ in range(length):
        now += random.choice([0, 0, 1, 1, 2, 5])
        t = now - random.choice([0, 0, 0, 0, 1, 3, 9])
        value = random.choice([*values, None]) if random.random() < 0.7 else values[0]
        seen.append(Seen(t, f"u{random.randrange(9)}", value))
    return seen


def policy(
    folder: Path, levels: str, *, z: int = 3, window: int = 20, more: str = "", keep: str = ""
) -> Policy:
    (folder / "tree.csv").write_text(TREE)
    text = f"""
time = {{ field = "ts", format = "s" }}
user = {{ field = "uid", pseudonym = "raw" }}
record = {{ keep = [{keep}] }}
[[attribute]]
{"" if "fields" in levels else 'field = "host"'}
z = {z}
window = {window}
{levels}
{more}
"""
    (folder / "zveil.toml").write_text(text)
    return parse_policy(text, folder=folder)


def host_labels(value: str | None) -> ladders.Labels:
    """Give domain and category in plain Python."""
    if value is None:
        return [None, None]
    try:
        domain = ladders.domain(value)[0]
    except UnicodeError:
        domain = None
    if '"' in value:
        domain = None
    domain = None if domain is None else domain.encode("idna").decode()
    tree = dict(line.split(",") for line in TREE.split())
    return [domain, tree.get(domain or "")]


def decided(
    seen: Sequence[Seen],
    climb: Callable[[Any], ladders.Labels],
    *,
    z: int = 3,
    window: int = 20,
    rule: str = "fall-through",
    level: int | None = None,
) -> list[tuple[Any, int | None]]:
    """Ask the definition: what each event leaves as, and at which level from the finest."""
    gate = Reference(z, window, rule=rule, fixed_level=level)
    found: list[tuple[Any, int | None]] = []
    for event in seen:
        levels = [event.value, *climb(event.value)][::-1]
        released = gate.observe_levels(event.t, event.user, levels)
        if released is None:
            found.append((None, None))
        else:
            found.append((levels[released], len(levels) - 1 - released))
    return found


def as_ndjson(random: Random, seen: Sequence[Seen]) -> bytes:
    records = [{"ts": one.t, "uid": one.user, "host": one.value} for one in seen]
    return b"".join(spelled(random, record).encode() + b"\n" for record in records)


RULES = [
    ("", {}),
    ('rule = "authors"', {"rule": "authors"}),
    ('rule = "fixed"\nlevel = 0', {"rule": "fixed", "level": 2}),
    ('rule = "fixed"\nlevel = 1', {"rule": "fixed", "level": 1}),
    ('rule = "fixed"\nlevel = 2', {"rule": "fixed", "level": 0}),
]


@pytest.mark.parametrize(("more", "options"), RULES)
@pytest.mark.parametrize("seed", range(3))
def test_levels_are_decided_as_the_definition_says(
    tmp_path: Path, seed: int, more: str, options: dict[str, Any]
) -> None:
    random = Random(seed)
    seen = stream(random, 600)
    rule = policy(tmp_path, HOST, more=more)
    wanted = decided(seen, host_labels, **options)
    left = [(one.t, one.user, label) for one, (label, _) in zip(seen, wanted, strict=True)
            if label is not None]  # fmt: skip
    data = as_ndjson(random, seen)
    out, act = fed(rule, [data[at : at + 777] for at in range(0, len(data), 777)])
    assert [(r["ts"], r["uid"], r["host"]) for r in objects(out)] == left
    counts = Counter(level for _, level in wanted if level is not None)
    assert act.way.tally()["levels"] == [[counts[level] for level in (2, 1, 0)]]
    out, _ = fed(rule, [data], to=Format.CSV)
    assert [(int(r["ts"]), r["uid"], r["host"]) for r in table(out)] == left


def test_the_program_decides_levels_alike_in_every_format(tmp_path: Path) -> None:
    random = Random(5)
    seen = [one for one in stream(random, 3_000) if one.value != 'q"q,']
    policy(tmp_path, HOST)
    wanted = decided(seen, host_labels)
    left = [(one.t, one.user, label) for one, (label, _) in zip(seen, wanted, strict=True)
            if label is not None]  # fmt: skip
    (tmp_path / "in.ndjson").write_bytes(as_ndjson(random, seen))
    text = "".join(f"{one.t},{one.user},{one.value or ''}\n" for one in seen)
    (tmp_path / "in.csv").write_text("ts,uid,host\n" + text)
    columns = {"ts": [one.t for one in seen], "uid": [one.user for one in seen],
               "host": [one.value for one in seen]}  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    said = []
    for name in ("in.ndjson", "in.csv", "in.parquet"):
        done = zveil("run", tmp_path / name, "--policy", tmp_path / "zveil.toml", "--to", "ndjson",
                     "--json", "--threads", "2")  # fmt: skip
        assert done.returncode == 0, done.stderr
        records = objects(done.stdout)
        assert [(int(r["ts"]), r["uid"], r["host"]) for r in records] == left, name
        said.append(json.loads(done.stderr)["outcomes"][0])
    counts = Counter(level for _, level in wanted)
    for outcome in said:
        levels = outcome["levels"]
        assert [level["released"] for level in levels] == [counts[n] for n in range(3)]
        assert [level["name"] for level in levels] == ["the value itself", "domain", "tree"]
        assert levels[1]["share"] == pytest.approx(counts[1] / len(seen))
        assert sum(level["released"] for level in levels) == outcome["released"]
    for name in ("in.ndjson", "in.csv"):
        output = tmp_path / "out.parquet"
        done = zveil("run", tmp_path / name, "--policy", tmp_path / "zveil.toml", "-o", output)
        assert b"as domain" in done.stderr
        assert pq.read_table(output)["host"].to_pylist() == [label for _, _, label in left]


@pytest.mark.parametrize("seed", range(4))
def test_a_coarse_label_has_z_users_who_fell_through_to_it(tmp_path: Path, seed: int) -> None:
    """Told from what came in and what left alone: no gate is asked."""
    random = Random(seed)
    z, window = 3, 15
    values = [f"/{a}/{b}/{c}" for a in "ab" for b in "cde" for c in "fghij"]
    seen = sorted(stream(random, 2_000, values), key=lambda one: one.t)
    levels = 'hierarchy = [{ segments = "/", levels = 2 }]'
    rule = policy(tmp_path, levels, z=z, window=window, more='veiled = { text = "*" }')
    blank = Policy(
        time=rule.time, user=rule.user, attributes=rule.attributes,
        record=type(rule.record)(empty="blank"), limits=rule.limits,
    )  # fmt: skip
    out, _ = fed(blank, [as_ndjson(random, seen)])
    shown = [record["host"] for record in objects(out)]
    assert len(shown) == len(seen)
    depth = [label.count("/") if label != "*" else 0 for label in shown]
    assert len(set(depth)) == 4
    for place, (one, label) in enumerate(zip(seen, shown, strict=True)):
        if label == "*":
            continue
        fell = {
            seen[other].user
            for other in range(place + 1)
            if seen[other].t >= one.t - window
            and seen[other].value is not None
            and f"{seen[other].value}/".startswith(f"{label}/")
            # Whoever left finer did not fall through to here.
            and depth[other] <= depth[place]
        }
        assert len(fell) >= z


@pytest.mark.parametrize(
    ("to", "keeps_all"), [(Format.NDJSON, False), (Format.NDJSON, True), (Format.CSV, False)]
)
def test_a_veiled_value_is_nowhere_in_the_output(
    tmp_path: Path, to: Format, keeps_all: bool
) -> None:
    random = Random(9)
    (tmp_path / "zveil.toml").touch()
    rule = policy(
        tmp_path, 'hierarchy = [{ segments = "*", levels = 2 }]', keep='"*"' if keeps_all else ""
    )
    lines, values = [], []
    for number in range(1_500):
        secret = f"secret{number}" if random.random() < 0.5 else f"s{random.randrange(4)}"
        value = f"top{random.randrange(2)}*mid{random.randrange(3)}*{secret}"
        values.append(value)
        record: dict[str, Any] = {"ts": START + number, "uid": f"u{random.randrange(9)}"}
        record |= {"host": value}
        if not keeps_all:
            # Whatever the record holds: the same words under other names.
            others: list[Any] = [value, {"host": value}, [value, {"uid": value}], {value: value}]
            for name in random.sample(["Host", "note", "host ", "hosts", "h\\u006fst2", "ho"], 3):
                record[name] = random.choice(others)
        keys = list(record)
        random.shuffle(keys)
        lines.append(spelled(random, {key: record[key] for key in keys}).encode() + b"\n")
    out, _ = fed(rule, [b"".join(lines)], to=to)
    records = objects(out) if to is Format.NDJSON else table(out)
    assert 0 < len(records) < len(lines)
    shown = {record["host"] for record in records}
    assert any(label.count("*") < 2 for label in shown)
    for value in set(values) - shown:
        assert value.encode() not in out
    assert b"secret" not in out
    if not keeps_all:
        assert {name for record in records for name in record} == {"ts", "uid", "host"}


CELLS = 'fields = ["pos.lat", "pos.lon"]\nname = "cell"\nhierarchy = [{ cells = [9, 6] }]'


def test_a_position_leaves_as_its_cell_alone(tmp_path: Path) -> None:
    random = Random(3)
    rule = policy(tmp_path, CELLS, keep='"*"')
    places = [(round(random.uniform(47, 47.2), 6), round(random.uniform(8, 8.2), 6))
              for _ in range(12)]  # fmt: skip
    places += [(91.0, 8.0), (47.0, 999.5)]
    seen = [(START + number, f"u{random.randrange(9)}", random.choice(places))
            for number in range(800)]  # fmt: skip
    lines = b""
    for t, user, (lat, lon) in seen:
        position: dict[str, Any] = {"lat": lat, "lon": random.choice([lon, str(lon)])}
        record = {"ts": t, "uid": user, "pos": position, "cell": "raw-cell", "n": 1}
        keys = list(record)
        random.shuffle(keys)
        lines += json.dumps({key: record[key] for key in keys}).encode() + b"\n"
    out, act = fed(rule, [lines])
    records = objects(out)
    ladder = rule.attributes[0].hierarchy
    assert ladder is not None
    columns = [pa.array([place[side] for place in places]) for side in (0, 1)]
    made = [[*pa.array(cells).to_pylist()] for cells in _cells(ladder, columns)]
    labels = {place: [made[0][n], made[1][n]] for n, place in enumerate(places)}
    gate = Reference(3, 20)
    wanted = []
    for t, user, place in seen:
        released = gate.observe_levels(t, user, labels[place])
        if released is not None:
            wanted.append((t, user, labels[place][released]))
    assert [(r["ts"], r["uid"], r["cell"]) for r in records] == wanted
    assert len(wanted) > 100
    assert {tuple(sorted(record)) for record in records} == {("cell", "n", "ts", "uid")}
    for lat, lon in places:
        assert str(lat).encode() not in out.replace(b"91.0", b"")
        assert str(lon).encode() not in out
    assert b"raw-cell" not in out
    assert sum(act.way.tally()["levels"][0]) == len(wanted)


def _cells(ladder: Any, columns: list[pa.Array]) -> list[pa.Array]:
    from zveil.act.levels import Levels

    return Levels(ladder).of(columns)


def test_positions_of_columns_leave_as_those_of_text(tmp_path: Path) -> None:
    random = Random(4)
    levels = CELLS.replace("pos.", "")
    policy(tmp_path, levels, keep='"n"')
    rows = [
        {"n": n, "lon": round(random.uniform(8, 8.1), 2), "ts": START + n,
         "uid": f"u{random.randrange(9)}", "lat": round(random.uniform(47, 47.1), 2)}
        for n in range(500)
    ]  # fmt: skip
    (tmp_path / "in.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    header = ",".join(rows[0])
    lines = [",".join(map(str, row.values())) for row in rows]
    (tmp_path / "in.csv").write_text("\n".join([header, *lines]) + "\n")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    outputs = []
    for name in ("in.ndjson", "in.csv", "in.parquet"):
        done = zveil("run", tmp_path / name, "--policy", tmp_path / "zveil.toml", "--to", "csv")
        assert done.returncode == 0, done.stderr
        outputs.append(table(done.stdout))
    assert len(outputs[0]) > 100
    assert list(outputs[0][0]) == ["ts", "uid", "cell", "n"]
    assert outputs[0] == outputs[1] == outputs[2]


def test_numbers_of_columns_leave_as_text(tmp_path: Path) -> None:
    rule = policy(tmp_path, "hierarchy = [{ bins = [10] }]", z=2)
    rows = {"ts": [START + n for n in range(6)], "uid": list("abcdef"),
            "host": [7, 7, 3, 4, 55, None]}  # fmt: skip
    pq.write_table(pa.table(rows), tmp_path / "in.parquet")
    summary, _ = ran(rule, [tmp_path / "in.parquet"], tmp_path / "out.parquet")
    left = pq.read_table(tmp_path / "out.parquet")
    assert left["host"].to_pylist() == ["7", "[0,10)", "[0,10)"]
    assert [level.released for level in summary.outcomes[0].levels] == [1, 2]


def test_dates_of_columns_leave_as_text(tmp_path: Path) -> None:
    rule = policy(tmp_path, 'hierarchy = [{ time = ["day"] }]', z=2)
    days = [datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (1, 1, 2, 3)]
    rows = {"ts": [START + n for n in range(4)], "uid": list("abcd"), "host": days}
    pq.write_table(pa.table(rows), tmp_path / "in.parquet")
    ran(rule, [tmp_path / "in.parquet"], tmp_path / "out.parquet")
    left = pq.read_table(tmp_path / "out.parquet")
    assert left["host"].to_pylist() == ["2026-01-01 01:00:00.000000", "2026-01-01", "2026-01-01"]


def test_any_number_of_threads_writes_the_same(tmp_path: Path) -> None:
    rule = policy(tmp_path, HOST, keep='"*"')
    random = Random(8)
    data = as_ndjson(random, stream(random, 9_000))
    assert len(data) > 1 << 18
    one, two, three = (fed(rule, [data], threads=threads) for threads in (1, 2, 3))
    assert one[0] == two[0] == three[0]
    assert one[1].way.tally() == two[1].way.tally() == three[1].way.tally()


def test_state_is_bounded_by_z_for_each_level(tmp_path: Path) -> None:
    rule = policy(tmp_path, 'hierarchy = [{ segments = "/", levels = 2 }]', window=10**6)
    sizes = []
    for users in (2_000, 20_000):
        lines = [b'{"ts":%d,"uid":"u%d","host":"a/b/%d"}\n' % (START + n, n, n % 50)
                 for n in range(users)]  # fmt: skip
        (tmp_path / "in.ndjson").write_bytes(b"".join(lines))
        summary, _ = ran(rule, [tmp_path / "in.ndjson"], tmp_path / "out.ndjson")
        sizes.append(summary.state_bytes)
    assert sizes[1] <= sizes[0]


@pytest.mark.parametrize(
    ("levels", "more", "words"),
    [
        ("", 'rule = "authors"', "rule: expected with a hierarchy only"),
        (HOST, "level = 1", "level: expected with rule = 'fixed', and only there"),
        (HOST, 'rule = "fixed"', "level: expected with rule = 'fixed', and only there"),
        (HOST, 'rule = "fixed"\nlevel = 3', "level: expected 0 to 2, where 0 is the value itself"),
        (HOST, 'rule = "best"', "rule: expected 'fall-through', 'fixed' or 'authors'"),
        ("hierarchy = [{ cells = [5] }]", "", "hierarchy: cells are of a position; say of which"),
        ('fields = ["a", "b"]\nname = "c"', "", "fields: expected for cells only"),
        ('hierarchy = ["suffix"]', "", "hierarchy: step 1: expected domain, table, segments"),
        (CELLS, 'field = "host"', "either"),
        (CELLS.replace("name", "# name"), "", "expected the key 'field'"),
        (CELLS.replace("pos.lat", "ts"), "", "a field has one role"),
    ],
)  # fmt: skip
def test_what_a_policy_cannot_mean_is_told_with_its_key(
    tmp_path: Path, levels: str, more: str, words: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        policy(tmp_path, levels, more=more)
    assert words in str(caught.value)


def test_half_of_a_position_cannot_be_kept(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"'pos.lat' is part of 'cell', and would tell the exact"):
        policy(tmp_path, CELLS, keep='"pos.lat"')
    with pytest.raises(PolicyError, match=r"'pos' holds 'pos.lat' inside"):
        policy(tmp_path, CELLS, keep='"pos"')
