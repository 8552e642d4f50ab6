"""A way that goes on from a saved state writes what an undisturbed one writes, byte for byte."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logs import dnsmasq, visits, zeek

from zveil import Gate
from zveil._native import (
    EventIds,
    Keyring,
    Ladder,
    NameFilter,
    NameList,
    TextWay,
    load_state,
    save_state,
)
from zveil._native import Gate as NativeGate

KEY = bytes(range(32))
START = 1_700_000_000
HOUR = 3_600
NANO = 10**9


@dataclass
class Setting:
    """How a stream is read, decided and written."""

    source: str
    fields: Sequence[str]
    attributes: int
    to: str = "ndjson"
    z: int = 2
    window: int = 300
    noise: int = 0
    ladder: bool = False
    swap: float = 0.0
    blank: bool = False
    keep_rest: bool = False
    keys: str = "none"
    id_field: str | None = None
    most_ids: int = 10_000
    filtered: bool = False
    threads: int = 1
    memory_limit: str | None = None
    max_line: int = 400


def chain_file(folder: Path) -> Path:
    path = folder / "chain"
    if not path.exists():
        path.touch(0o600)
        path.write_text("zveil chain\nkey " + "5a" * 32 + "\n")
    return path


def keyring(said: Setting, folder: Path) -> Keyring | None:
    hour = HOUR * NANO
    match said.keys:
        case "none":
            return None
        case "fixed":
            return Keyring.fixed("base32", KEY)
        case "kept":
            return Keyring.kept("hex", KEY, hour)
    held = Keyring.chain(
        "base32", chain_file(folder), period_ns=hour, lateness_ns=hour, max_future_ns=None
    )
    held.hold()
    return held


def rows(columns: list[tuple[int, bytes, bytes, bytes]]) -> bytes:
    """Give columns row by row: how they are cut into parts is nothing to compare."""
    found = []
    for count, present, ends, data in columns:
        places = [int.from_bytes(ends[at : at + 8], "little") for at in range(0, len(ends), 8)]
        bits = [present[row // 8] >> row % 8 & 1 for row in range(count)]
        found.append([data[places[row] : places[row + 1]] if bits[row] else None
                      for row in range(count)])  # fmt: skip
    return b"".join(repr(row).encode() + b"\n" for row in zip(*found, strict=True))


@dataclass
class Run:
    """A run in one process: what it holds is gone with it."""

    said: Setting
    folder: Path
    gates: list[Any] = field(default_factory=list)
    ids: EventIds | None = None

    def __post_init__(self) -> None:
        said = self.said
        if not self.gates:
            self.gates = [
                Gate(
                    said.z + number,
                    said.window,
                    lateness=said.window,
                    max_future=None,
                    time_unit="ns",
                    noise=said.noise,
                    noise_period=None,
                    threads=said.threads,
                    memory_limit=said.memory_limit,
                    key=bytes([number]) * 32,
                )
                for number in range(said.attributes)
            ]
            self.ids = EventIds(
                key=KEY, window_ns=said.window * NANO, most=said.most_ids, max_future_ns=None
            )
        self.keyring = keyring(said, self.folder)
        lists = NameFilter(None, NameList(b"ads.example\n")) if said.filtered else None
        self.way = TextWay(
            source=said.source,
            source_delimiter=",",
            to=said.to,
            to_delimiter=",",
            fields=said.fields,
            attributes=said.attributes,
            veiled=[None, "*"][: said.attributes],
            ladders=[Ladder([("segments", "/", 2)]) if said.ladder else None, None][
                : said.attributes
            ],
            positions=[None] * said.attributes,
            swaps=[said.swap, said.swap / 2][: said.attributes],
            keep_rest=said.keep_rest,
            blank=said.blank,
            time_format=None,
            step_ns=None,
            max_line=said.max_line,
            stop_at_problem=False,
            keyring=self.keyring,
            threads=said.threads,
            filters=[] if lists is None else [lists] * said.attributes,
            id_field=said.id_field,
        )

    def feed(self, data: bytes, *, last: bool) -> bytes:
        if self.said.to == "columns":
            parts = self.way.feed_columns(self.gates, data, last, ids=self.ids)
            return b"".join(map(rows, parts))
        return b"".join(self.way.feed(self.gates, data, last, ids=self.ids))

    def save(self, position: dict[str, int]) -> None:
        told = b"" if self.keyring is None else self.keyring.state()
        note = {
            "way": self.way.state().hex(),
            "keys": told.hex(),
            "consumed": self.way.consumed,
            **position,
        }
        assert self.ids is not None
        save_state(
            self.folder / "state", KEY, json.dumps(note).encode(), [*self.gates, self.ids]
        ).wait()
        if self.keyring is not None:
            self.keyring.move_on(told)

    def summary(self) -> Any:
        assert self.ids is not None
        counts = [
            {name: count for name, count in gate._counts(True).items() if name != "bytes"}
            for gate in self.gates
        ]
        ids = self.ids.repeated, self.ids.forgotten, len(self.ids)
        return self.way.tally(), counts, ids, self.way.fields, self.way.time_format


def restored(said: Setting, folder: Path) -> tuple[Run, dict[str, Any]]:
    saved, parts = load_state(folder / "state", KEY, threads=said.threads)
    note = json.loads(saved)
    *gates, ids = parts
    assert isinstance(ids, EventIds)
    assert all(isinstance(gate, NativeGate) for gate in gates)
    run = Run(said, folder, gates, ids)
    run.way.resume(bytes.fromhex(note["way"]))
    if run.keyring is not None:
        run.keyring.resume(bytes.fromhex(note["keys"]))
    return run, note


def sizes(random: Random, most: int) -> int:
    return random.choice([1, 7, random.randint(1, 300), random.randint(1, most)])


def undisturbed(said: Setting, files: Sequence[bytes], random: Random, most: int) -> Any:
    with TemporaryDirectory() as folder:
        run = Run(said, Path(folder))
        out = b""
        for number, data in enumerate(files):
            if number:
                run.way.start_file(START * NANO)
            at = 0
            while at < len(data):
                size = sizes(random, most)
                out += run.feed(data[at : at + size], last=False)
                at += size
            out += run.feed(b"", last=True)
        return out, run.summary()


def disturbed(said: Setting, files: Sequence[bytes], random: Random, most: int) -> Any:
    """Save now and then; now and then lose all that was done since, and go on from there."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        run = Run(said, folder)
        out, number, at = b"", 0, 0
        is_saved, crashes = False, 0
        while True:
            fate = random.random()
            if fate < 0.08:
                run.save({"file": number, "written": len(out)})
                is_saved = True
            elif fate < 0.16 and is_saved and crashes < 6:
                crashes += 1
                del run  # and with it the lock on the chain
                run, note = restored(said, folder)
                number, at, out = note["file"], note["consumed"], out[: note["written"]]
                assert run.way.consumed == at
            size = sizes(random, most)
            data = files[number]
            out += run.feed(data[at : at + size], last=False)
            at = min(at + size, len(data))
            if at == len(data):
                out += run.feed(b"", last=True)
                if number + 1 == len(files):
                    return out, run.summary()
                number, at = number + 1, 0
                run.way.start_file(START * NANO)


def record(random: Random, now: float, number: int) -> dict[str, Any]:
    host = random.choice(["a/b/c", "a/b/d", "a/x", "ads.example", "q", 7, None, "ü/é"])
    event: dict[str, Any] = {
        "ts": now,
        "uid": random.choice(["ada", "bob", 3, "3", "cid"]),
        "host": host,
        "agent": random.choice(["x", 'y"', "z,", 1.5, None]),
    }
    if random.random() < 0.9:
        event["id"] = random.choice([number, str(number - 1), number // 2, f"n{number}", None])
    if random.random() < 0.3:
        event["note"] = random.choice(["text", {"a": [1]}, "x" * 500])
    return event


def times(random: Random, count: int) -> list[int]:
    now, made = START, []
    for _ in range(count):
        now += random.choice([0, 0, 1, 5, 200, 4_000]) if random.random() < 0.5 else 0
        made.append(now - random.choice([0, 0, 0, 40, 900]))
    return made


def ndjson(random: Random, count: int) -> bytes:
    lines = [
        json.dumps(record(random, t, n), ensure_ascii=random.random() < 0.5)
        if random.random() < 0.9
        else random.choice(["", "{", "[]", '{"ts":1,"uid":"x","host":"y","id":[1]}', "x" * 900])
        for n, t in enumerate(times(random, count))
    ]
    return "\n".join(lines).encode() + random.choice([b"", b"\n"])


def csv(random: Random, count: int) -> bytes:
    columns = ["ts", "uid", "host", "agent", "id", "note"]
    random.shuffle(columns)
    lines = [",".join(columns)]
    for n, t in enumerate(times(random, count)):
        event = record(random, t, n) | {"note": random.choice(["", "a\nb", 'say "x"'])}
        texts = ["" if event.get(name) is None else str(event[name]) for name in columns]
        quoted = ['"' + text.replace('"', '""') + '"' if set(text) & set('",\n') else text
                  for text in texts]  # fmt: skip
        lines.append(",".join(quoted[: random.choice([6, 6, 6, 6, 3])]))
    return random.choice([b"", b"\xef\xbb\xbf"]) + "\n".join(lines).encode() + b"\n"


@settings(max_examples=30)
@given(st.integers(0, 2**32).map(Random), st.integers(1, 120), st.sampled_from(["ndjson", "csv"]))
def test_text_goes_on_as_if_nothing_had_been(random: Random, length: int, source: str) -> None:
    many = random.choice([1, 2])
    fields = ["ts", "uid", "host", "agent"][: 2 + many]
    if random.random() < 0.3:
        fields += ["id"]
    said = Setting(
        source,
        fields,
        many,
        to=random.choice(["ndjson", "csv", "columns"]),
        z=random.choice([1, 2, 3]),
        noise=random.choice([0, 2]),
        ladder=random.random() < 0.4,
        swap=random.choice([0.0, 0.0, 0.5]),
        blank=random.random() < 0.3,
        keep_rest=random.random() < 0.3 and source == "ndjson" and "id" not in fields,
        keys=random.choice(["none", "fixed", "kept", "chain", "chain"]),
        id_field=random.choice([None, "id", "id"]),
        most_ids=random.choice([3, 10_000]),
        filtered=random.random() < 0.3,
        threads=random.choice([1, 2]),
    )
    if said.keep_rest and said.to != "ndjson":
        said.to = "ndjson"
    make = ndjson if source == "ndjson" else csv
    files = [make(random, length) for _ in range(random.choice([1, 2]))]
    seed = random.random()
    assert disturbed(said, files, Random(seed), 2_000) == undisturbed(said, files, random, 5_000)


@settings(max_examples=12)
@given(st.integers(0, 2**32).map(Random), st.integers(1, 60), st.booleans())
def test_logs_go_on_as_if_nothing_had_been(random: Random, length: int, is_zeek: bool) -> None:
    if is_zeek:
        parts = [zeek(visits(random, length), random.choice(["ssl", "ssl", "http"]))]
        parts += [zeek(visits(random, length)) for _ in range(random.choice([0, 2]))]
        said = Setting("zeek", ["ts", "id.orig_h", "id.resp_h"], 1, keys="chain")
        said.id_field = random.choice([None, "uid"])
        data = "".join(parts)
    else:
        said = Setting("dnsmasq", ["time", "client", "name"], 1, keys="kept")
        data = dnsmasq(visits(random, length))
    files = [data.encode()] * random.choice([1, 2])
    seed = random.random()
    assert disturbed(said, files, Random(seed), 900) == undisturbed(said, files, random, 3_000)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("limit", [None, "8MiB"])
def test_large_blocks_and_a_limit_that_is_reached(threads: int, limit: str | None) -> None:
    random = Random(5)
    lines = [
        b'{"ts":%d,"uid":%d,"host":"h%d","id":"%d"}\n'
        % (START + n // 200, random.randrange(9), random.randrange(n + 1) * n, n - n % 7 % 2)
        for n in range(120_000)
    ]
    said = Setting("ndjson", ["ts", "uid", "host"], 1, threads=threads, memory_limit=limit)
    said.id_field, said.window = "id", 400
    data = b"".join(lines)
    # Blocks that threads are worth, and such as they are not.
    whole = undisturbed(said, [data], Random(1), 2_000_000)
    found = disturbed(said, [data], Random(2), 1_000_000)
    assert found == whole
    _, (tally, counts, *_) = whole
    if limit is not None:
        assert counts[0]["refused"] > 1_000
    assert tally["repeated"] > 10_000


def test_what_was_read_again_is_not_counted_twice() -> None:
    said = Setting("ndjson", ["ts", "uid", "host"], 1, z=1)
    line = b'{"ts":1700000000,"uid":"a","host":"x"}\n'
    with TemporaryDirectory() as folder:
        run = Run(said, Path(folder))
        out = run.feed(line * 2 + line[:9], last=False)
        assert (run.way.consumed, run.way.tally()["records"]) == (2 * len(line), 2)
        run.save({})
        again, _ = restored(said, Path(folder))
        assert again.way.consumed == 2 * len(line)
        out += again.feed(line, last=True)
        assert out == line * 3
        assert again.way.tally()["lines"] == 3


def test_a_line_that_is_too_long_is_dropped_to_its_end() -> None:
    said = Setting("ndjson", ["ts", "uid", "host"], 1, z=1)
    line = b'{"ts":1700000000,"uid":"a","host":"x"}\n'
    with TemporaryDirectory() as folder:
        run = Run(said, Path(folder))
        assert run.feed(b"x" * 1_000, last=False) == b""
        assert run.way.consumed == 1_000
        run.save({})
        again, _ = restored(said, Path(folder))
        assert again.feed(b"xx\n" + line, last=True) == line
        assert again.way.tally()["bad"]["too-long"] == 1


def test_a_state_of_another_way_is_refused() -> None:
    with TemporaryDirectory() as folder:
        one = Run(Setting("ndjson", ["ts", "uid", "host"], 1), Path(folder))
        state = one.way.state()
        for other in (
            Setting("ndjson", ["ts", "uid", "page"], 1),
            Setting("csv", ["ts", "uid", "host"], 1),
            Setting("ndjson", ["ts", "uid", "host"], 1, id_field="id"),
        ):
            with pytest.raises(ValueError, match="state: is of a way for other records"):
                Run(other, Path(folder)).way.resume(state)
        for wrong in (b"", state[:-1], state + b"\0", b"\2" + state[1:], os.urandom(300)):
            with pytest.raises(ValueError, match="state: is"):
                Run(one.said, Path(folder)).way.resume(wrong)
