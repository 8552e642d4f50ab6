"""Streams that a run with a state goes through: in every format, with everything that it keeps."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import logs
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import zstandard

START = 1_700_000_000
KEY = "4b" * 32
EVERY = "1ms"
# Elsewhere than the output: what is synced for the one is not for the other.
STATE = "kept/state"

USERS = [f"user{number}" for number in range(9)]
HOSTS = ["a.example.org", "b.example.org", "c.example.net", "d.example.net", 'é, "x"', "once"]
FIELDS = ("--time", "ts", "--user", "uid", "--attribute", "host")
RULE = ("-z", "3", "--window", "90s")

Event = dict[str, Any]


def events(random: Random, count: int) -> list[Event]:
    """Make up events that are close to being released, some late, each with a number."""
    now, made = START, []
    for number in range(count):
        now += random.choice([0, 1, 2, 5, 9])
        host = random.choice(HOSTS)
        made.append({
            "ts": now - random.choice([0, 0, 0, 4, 40, 200]), "uid": random.choice(USERS),
            "host": f"only{number}" if host == "once" else host,
            "ref": random.choice(["x", "y", "z"]), "n": number,
        })  # fmt: skip
    return made


def ndjson(made: Sequence[Event]) -> bytes:
    return "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in made).encode()


def with_bad_lines(made: Sequence[Event]) -> bytes:
    """Let one line of twelve be bad, and lines break in two ways."""
    lines = ndjson(made).splitlines()
    lines[::12] = [b"{bad" for _ in lines[::12]]
    return b"".join(line + (b"\r\n" if n % 3 else b"\n") for n, line in enumerate(lines))


def comma(made: Sequence[Event]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(made[0]))
    writer.writeheader()
    writer.writerows(made)
    return text.getvalue().encode()


def dnsmasq(made: Sequence[Event]) -> bytes:
    """A log without years, so that the year is part of what goes on."""
    lines = [
        logs.Visit(event["ts"], f"192.0.2.{event['uid'][4:]}", f"{event['host'][:1]}.example.org")
        for event in made
    ]
    return logs.WRITERS["dnsmasq"](lines).encode()


def parquet(made: Sequence[Event]) -> bytes:
    target = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(list(made)), target, row_group_size=16)
    return target.getvalue().to_pybytes()


def arrow(made: Sequence[Event]) -> bytes:
    target = pa.BufferOutputStream()
    table = pa.Table.from_pylist(list(made))
    with ipc.new_stream(target, table.schema) as writer:
        writer.write_table(table, max_chunksize=16)
    return target.getvalue().to_pybytes()


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def unzstd(data: bytes) -> bytes:
    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        return reader.read()


def parquet_records(data: bytes) -> list[Event]:
    return pq.read_table(pa.BufferReader(data)).to_pylist()


def arrow_records(data: bytes) -> list[Event]:
    opened = ipc.open_file if data.startswith(b"ARROW1") else ipc.open_stream
    return opened(pa.BufferReader(data)).read_all().to_pylist()


POLICY = """
time = { field = "ts" }
user = { field = "uid" }
record = { keep = ["n"] }

[[attribute]]
field = "host"
z = 3
window = "90s"
hierarchy = ["domain"]

[[attribute]]
field = "ref"
z = 5
window = "30s"
veiled = { text = "[veiled]" }
"""


@dataclass(frozen=True)
class Scene:
    """A run: what it reads, what it is told, how its output is compared."""

    name: str
    ending: str
    write: Callable[[Sequence[Event]], bytes]
    output: str
    told: tuple[str, ...] = (*FIELDS, *RULE, "--keep", "n")
    read: Callable[[bytes], Any] = bytes
    files: int = 8
    per_file: int = 40
    key: str | None = "key"
    """Of the key file; None if the state has its own."""
    policy: str | None = None
    chain: bool = False
    """Pseudonyms rotate under a chain of keys: that of a file, or the state's own."""

    @property
    def is_slow(self) -> bool:
        """Whether it takes long to start: columns need a large library."""
        return "parquet" in self.name or "arrow" in self.name

    def begin(self, folder: Path) -> None:
        """Make the folder ready; with a chain's first key, so that runs make the same names."""
        (folder / STATE).parent.mkdir()
        if not self.chain:
            return
        place = folder if self.key is not None else folder / STATE
        place.mkdir(mode=0o700, exist_ok=True)
        (place / "chain").write_text(f"zveil chain\nkey {KEY}\n")
        (place / "chain").chmod(0o600)

    def inputs(self, place: Path, files: int | None = None) -> list[Path]:
        """Write what it reads; the same for the same scene."""
        count = self.files if files is None else files
        made = events(Random(self.name), count * self.per_file)
        paths = []
        for number in range(count):
            path = place / f"in{number:03}.{self.ending}"
            path.write_bytes(
                self.write(made[number * self.per_file : (number + 1) * self.per_file])
            )
            paths.append(path)
        return paths

    def arguments(self, folder: Path, place: Path, inputs: Sequence[Path]) -> list[str | Path]:
        """Give the run without its state, and write what it needs to the place."""
        told: list[str | Path] = [*inputs, *self.told, "-o", folder / self.output]
        if self.policy is not None:
            file = place / "zveil.toml"
            file.write_text(self.policy)
            told += ["--policy", file]
        if self.chain:
            if self.key is not None:
                told += ["--key-file", folder / "chain"]
        elif self.key is not None:
            key = place / "key"
            key.write_text(KEY + "\n")
            key.chmod(0o600)
            told += ["--key-file", key]
        return told

    def content(self, folder: Path) -> Any:
        """Give the output for comparison."""
        return self.read((folder / self.output).read_bytes())


def stated(folder: Path, every: str = EVERY) -> list[str | Path]:
    """The options of the state."""
    return ["--state", folder / STATE, "--state-every", every]


_BLANK = (*FIELDS, *RULE, "--keep", "*", "--veiled", "blank")
_DRAWN = (*FIELDS, *RULE, "--noise", "2", "--swap", "20%", "--keep", "n")
_ROTATING = (*FIELDS, *RULE, "--rotate", "5m", "--keep", "n")
_KEPT = (*FIELDS, *RULE, "--rotate", "10m", "--keep-keys")

SCENES = [
    Scene("ndjson", "ndjson", ndjson, "out.ndjson"),
    Scene("bad lines", "ndjson", with_bad_lines, "out.ndjson", told=(*_BLANK, "--max-bad", "20%")),
    Scene("one large file", "ndjson", ndjson, "out.ndjson", files=1, per_file=48_000),
    Scene("two threads", "ndjson", ndjson, "out.ndjson", told=(*FIELDS, *RULE, "--threads", "2")),
    Scene("csv", "csv", comma, "out.csv"),
    Scene("csv to ndjson", "csv", comma, "out.ndjson", told=_DRAWN),
    Scene("log", "log", dnsmasq, "out.csv",
          told=("--format", "dnsmasq", "--year", "2023", *RULE, "--to", "csv")),
    Scene("policy", "ndjson", ndjson, "out.ndjson", told=(), policy=POLICY),
    Scene("noise and swaps", "ndjson", ndjson, "out.ndjson", told=_DRAWN),
    Scene("kept keys", "ndjson", ndjson, "out.ndjson", told=_KEPT),
    Scene("chain in a file", "ndjson", ndjson, "out.ndjson", told=_ROTATING, chain=True),
    Scene("chain of its own", "ndjson", ndjson, "out.ndjson", told=_ROTATING, chain=True, key=None),
    Scene("gzip", "ndjson.gz", lambda made: gzip.compress(ndjson(made)), "out.ndjson.gz",
          read=gzip.decompress),
    Scene("zstd", "csv.zst", lambda made: zstd(comma(made)), "out.csv.zst", read=unzstd),
    Scene("parquet", "parquet", parquet, "out.parquet", read=parquet_records, files=6),
    Scene("parquet with swaps", "parquet", parquet, "out.parquet", told=_DRAWN,
          read=parquet_records, files=6),
    Scene("arrow", "arrows", arrow, "out.arrows", read=arrow_records, files=2, per_file=120),
    Scene("text to parquet", "ndjson", ndjson, "out.parquet", read=parquet_records),
    Scene("parquet to text", "parquet", parquet, "out.csv.gz", read=gzip.decompress,
          files=6),
]  # fmt: skip

SMALL = Scene("small", "ndjson", ndjson, "out.ndjson", files=2, per_file=60, key=None)
"""From nothing at all: the state makes its own key."""


def unnamed(data: bytes) -> list[Event]:
    """Give records with users numbered as they come, for runs that make keys of their own."""
    numbers: dict[str, int] = {}
    records = [json.loads(line) for line in data.splitlines()]
    for record in records:
        record["uid"] = numbers.setdefault(record["uid"], len(numbers))
    return records
