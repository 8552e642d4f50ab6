"""`zveil run --meter`: what it shows is what `zveil audit` finds in the output."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from events import TEXTS, csv_lines, ndjson, story
from program import FIELDS, ran, zveil

from zveil import Meter
from zveil.audit import audit, read
from zveil.audit.crowds import class_sizes
from zveil.audit.measure import Options
from zveil.audit.points import Points, Resolution
from zveil.events import Events
from zveil.io import find
from zveil.keys import open_keyring
from zveil.meter import Reading
from zveil.policy import Policy
from zveil.policy.file import read_policy

MINUTE_NS = 60 * 10**9
VALUES = [value for value in TEXTS if value is not None]
USERS = ["u", "v", "w", "x", "y", "ü", "7", "07", "u v", "z"]


def meter_of(policy: Policy) -> Meter:
    length = policy.rotate_ns
    rotate = None if length is None else f"{length}ns"
    return Meter(rotate=rotate, lateness=f"{policy.lateness_ns}ns", time_unit="ns")


def keys_of(policy: Policy) -> Any:
    if policy.user.pseudonym == "raw":
        return None
    return open_keyring(
        policy.user.pseudonym,
        rotate_ns=policy.rotate_ns,
        keep_keys=policy.user.keep_keys,
        lateness_ns=policy.lateness_ns,
        max_future_ns=None,
    )


def measured(policy: Policy, source: Path, output: Path, **options: Any) -> list[Reading]:
    """Run within this process with a meter, and give what it shows at the end."""
    meter = meter_of(policy)
    summary, _ = ran(policy, [source], output, keyring=keys_of(policy), meter=meter, **options)
    assert summary.meter is not None
    assert summary.meter.periods == meter.periods()
    assert summary.meter.present == meter.report()
    return meter.periods()


def audited(policy: Policy, output: Path) -> list[tuple[int | None, dict[int, int]]]:
    """Audit the output: for each period its start, and the users by k, pseudonym for pseudonym."""
    events = Events(
        find([str(output)]), time="ts", user="uid", attributes=list(policy.names),
        time_format=policy.time.format,
    )  # fmt: skip
    seen = read(events, user="uid", attributes=list(policy.names))
    assert not events.bad
    points, length = Points.of(seen), policy.rotate_ns
    if length is not None:
        points = points.rotated(length)
    sizes = class_sizes(points, points.traces(Resolution.SET))
    found: dict[int, Counter[int]] = {}
    for period, k in zip(points.period.tolist(), sizes.tolist(), strict=True):
        found.setdefault(period, Counter())[k] += 1
    if length is not None and len(seen):
        rotation = audit(seen, None, Options(rotate_ns=length)).rotation
        assert rotation is not None
        told = {period.start_ns: period.at_least for period in rotation.periods}
        for period, by_k in found.items():
            at_least = {k: sum(n for size, n in by_k.items() if size >= k) for k in (2, 3, 5, 10)}
            assert told[period * length] == at_least
    return [
        (None if length is None else period * length, dict(sorted(by_k.items())))
        for period, by_k in sorted(found.items())
    ]


def require_equal(readings: list[Reading], wanted: list[tuple[int | None, dict[int, int]]]) -> None:
    assert [(each.start_ns, each.sizes) for each in readings] == wanted
    for each in readings:
        assert each.users == sum(each.sizes.values())
        assert each.classes == sum(users // size for size, users in each.sizes.items())
        assert not each.late
        assert not each.is_stopped


def told_of(random: Random, length: int) -> Any:
    told = story(random, length, values=VALUES)
    events = [replace(event, user=random.choice(USERS)) for event in told.events]
    return replace(told, events=events, z=random.choice([1, 2, 2, 3]))


def options_of(random: Random) -> dict[str, Any]:
    """Draw what a policy says besides."""
    options: dict[str, Any] = {"max_future": None, "time_format": "s"}
    if random.random() < 0.7:
        options["rotate"] = random.choice(["1m", "2m", "5m"])
        options["keep_keys"] = random.random() < 0.3
    elif random.random() < 0.5:
        options["raw_users"] = True
    if random.random() < 0.3:
        options["swap"] = 0.3
    if random.random() < 0.3:
        options["empty"] = "blank"
    if random.random() < 0.3:
        options["round"] = "minute"
    return options


@pytest.mark.parametrize("seed", range(12))
def test_lines_show_what_the_audit_finds(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    told = told_of(random, 500)
    options = options_of(random)
    if options.get("keep_keys"):
        # With several fields the clock of one may be far behind: that is another test.
        told = replace(told, lateness=10_000)
    policy = told.policy(**options)
    source = tmp_path / random.choice(["in.ndjson", "in.csv", "in.tsv"])
    delimiter = "\t" if source.suffix == ".tsv" else ","
    make = ndjson if source.suffix == ".ndjson" else csv_lines
    lines = make(random, told) if make is ndjson else csv_lines(random, told, delimiter)
    source.write_bytes(b"".join(lines))
    for name in ("out.ndjson", "out.csv", "out.tsv", "out.parquet"):
        output = tmp_path / name
        readings = measured(policy, source, output, threads=random.choice([1, 2]))
        require_equal(readings, audited(policy, output))


@pytest.mark.parametrize("seed", range(8))
def test_columns_show_what_the_audit_finds(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    told = told_of(random, 500)
    options = options_of(random)
    if options.get("keep_keys"):
        told = replace(told, lateness=10_000)
    policy = told.policy(**options)
    columns: dict[str, Any] = {
        "ts": pa.array([event.t for event in told.events]),
        "uid": pa.array([event.user for event in told.events]),
    }
    for number, name in enumerate(told.attributes):
        values = [event.values[number] for event in told.events]
        if number == 1:
            values = [None if value == "" else len(value) for value in values]
        columns[name] = pa.array(values)
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table(columns), source, row_group_size=random.choice([7, 100, 1000]))
    for name in ("out.parquet", "out.ndjson", "out.csv"):
        output = tmp_path / name
        require_equal(measured(policy, source, output), audited(policy, output))


def test_levels_are_measured_as_they_leave(tmp_path: Path) -> None:
    random = Random(5)
    (tmp_path / "kinds.csv").write_text(
        "".join(f"site{n}.example,kind{n % 3}\n" for n in range(9)), encoding="utf-8"
    )
    (tmp_path / "policy.toml").write_text(
        """
        [time]
        field = "ts"
        format = "s"
        [user]
        field = "uid"
        rotate = "5m"
        [[attribute]]
        field = "host"
        z = 3
        window = "20s"
        hierarchy = ["domain", { table = "kinds.csv" }]
        [[attribute]]
        field = "ref"
        z = 2
        window = "30s"
        hierarchy = [{ segments = "/", levels = 1 }]
        swap = 0.2
        [limits]
        max_future = "any"
        """,
        encoding="utf-8",
    )
    policy = read_policy(str(tmp_path / "policy.toml"))
    rows = [
        {
            "ts": 1_700_000_000 + n // 3 - random.choice([0, 0, 5]),
            "uid": f"u{random.randrange(40)}",
            "host": f"{random.choice(['www', 'mail', 'a.b'])}.site{int(random.random() ** 2 * 9)}"
            ".example",
            "ref": f"{random.choice('ab')}/{random.randrange(4)}",
        }
        for n in range(4_000)
    ]
    lines, batches = tmp_path / "in.ndjson", tmp_path / "in.parquet"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(rows), batches)
    for source in (lines, batches):
        for name in ("out.ndjson", "out.csv", "out.parquet"):
            readings = measured(policy, source, tmp_path / name)
            require_equal(readings, audited(policy, tmp_path / name))
            assert len(readings) > 3
            assert max(reading.classes for reading in readings) > 10


def test_an_observer_of_json_tells_types_apart(tmp_path: Path) -> None:
    values = [1, "1", True, "true", 1.5, "1.5", 2**70, None]
    rows = [{"ts": n, "uid": f"u{n}", "host": value} for n, value in enumerate(values)]
    source = tmp_path / "in.ndjson"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    policy = Policy.of(
        time="ts", user="uid", attributes=["host"], z=1, window="1h", time_format="s",
        max_future=None,
    )  # fmt: skip
    (readings,) = measured(policy, source, tmp_path / "out.ndjson")
    assert readings.sizes == {1: 7}
    (readings,) = measured(policy, source, tmp_path / "out.csv")
    assert readings.sizes == {1: 1, 2: 6}


def test_a_record_without_a_user_adds_nothing(tmp_path: Path) -> None:
    # The second field is behind by an hour: a chain has no key for its period any more.
    rows = [{"ts": 7_200, "uid": "u", "host": "a"}, {"ts": 3_000, "uid": "v", "ref": "b"}]
    source = tmp_path / "in.ndjson"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def policy(*, keep_keys: bool) -> Policy:
        return Policy.of(
            time="ts", user="uid", attributes=["host", "ref"], z=1, window="1m", rotate="1h",
            time_format="s", max_future=None, keep_keys=keep_keys,
        )  # fmt: skip

    readings = measured(policy(keep_keys=False), source, tmp_path / "out.ndjson")
    require_equal(readings, audited(policy(keep_keys=False), tmp_path / "out.ndjson"))
    assert [reading.start_ns for reading in readings] == [7_200 * 10**9]
    kept = measured(policy(keep_keys=True), source, tmp_path / "out.ndjson")
    assert [(reading.users, reading.late) for reading in kept] == [(0, 1), (1, 0)]


def test_the_program_and_its_audit(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows = 12_000
    times = 1_700_000_000 + np.sort(random.integers(0, 10_800, rows))
    users, sites = random.integers(0, 600, rows), random.zipf(1.5, rows) % 200
    late = random.random(rows) < 0.1
    times = np.where(late, times - random.integers(0, 1_000, rows), times)
    source = tmp_path / "in.csv"
    source.write_text(
        "ts,uid,host\n"
        + "".join(f"{t},u{u},s{s}\n" for t, u, s in zip(times, users, sites, strict=True)),
        encoding="utf-8",
    )
    out = tmp_path / "out.csv"
    done = zveil(
        "run", source, *FIELDS, "-z", "20", "--window", "30m", "--rotate", "1h", "--meter",
        "--json", "--time-format", "s", "-o", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stderr)["meter"]
    assert told["observer"] == "set of values"
    assert told["bytes"] > 0
    found = zveil("audit", out, *FIELDS, "--time-format", "s", "--rotate", "1h", "--json")
    assert found.returncode == 0, found.stderr
    periods = json.loads(found.stdout)["rotation"]["periods"]
    assert len(periods) == len(told["periods"]) >= 3
    for one, other in zip(told["periods"], periods, strict=True):
        start = datetime.fromtimestamp(one["start_ns"] / 10**9, UTC)
        assert datetime.fromisoformat(other["start"]) == start
        assert one["users"] == other["users_visible"]
        assert one["shares"] == other["k_share"]
        assert not one["is_stopped"]
    shown = zveil(
        "run", source, *FIELDS, "-z", "20", "--window", "30m", "--rotate", "1h", "--meter",
        "--time-format", "s", "-o", out,
    )  # fmt: skip
    words = shown.stderr.decode()
    assert "share the set of their released values" in words
    assert f"{periods[-1]['users_visible']:,}" in words


def test_at_its_limit_the_program_says_so(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text(
        "ts,uid,host\n" + "".join(f"{n},u{n},s{n % 7}\n" for n in range(30_000)), encoding="utf-8"
    )
    command = ("run", source, *FIELDS, "-z", "1", "--window", "1h", "--time-format", "s",
               "-o", tmp_path / "out.csv", "--meter", "--meter-memory", "256KiB")  # fmt: skip
    done = zveil(*command)
    assert done.returncode == 0
    assert b"the meter was at its limit, see --meter-memory" in done.stderr
    told = json.loads(zveil(*command, "--json").stderr)["meter"]
    assert [period["is_stopped"] for period in told["periods"]] == [True]
    assert told["periods"][0]["shares"] == {"2": None, "3": None, "5": None, "10": None}
    assert (tmp_path / "out.csv").read_bytes().count(b"\n") == 30_001


def test_wrong_usage_is_told() -> None:
    for more, words in [
        (["--dry-run"], b"--meter: with --dry-run nothing leaves that could be measured"),
        (["--meter-memory", "much"], b"--meter-memory: expected bytes, or a size"),
    ]:
        done = zveil("run", *FIELDS, "-z", "2", "--window", "1h", "--meter", *more)
        assert (done.returncode, words in done.stderr) == (2, True), done.stderr
