"""The streams as files: the same events as NDJSON, CSV and Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from workloads import CHUNK, Integers, Stream

_MS = 10**6
_SCHEMA = pa.schema(
    [("ts", pa.timestamp("ms", "UTC")), ("uid", pa.string()), ("host", pa.string())]
)


def write_ndjson(stream: Stream, path: Path) -> None:
    """Write lines ``{"ts":1700000000.123,"uid":"u12345","host":"www.site1234.example"}``."""
    with path.open("wb") as file:
        for part in _parts(stream):
            file.write(
                _joined('{"ts":', _seconds(part.times), ',"uid":"', part.users, '","host":"',
                        part.attributes, '"}\n')
            )  # fmt: skip


def write_addresses(stream: Stream, path: Path) -> None:
    """Write the same lines with an IPv4 address for each user."""
    with path.open("wb") as file:
        for start in range(0, len(stream), CHUNK):
            part = stream.part(start, start + CHUNK)
            bytes_of = [
                pa.array(part.users >> shift & 255).cast(pa.string()) for shift in (16, 8, 0)
            ]
            hosts = part.with_strings().attributes
            file.write(
                _joined('{"ts":', _seconds(part.times), ',"uid":"10.', bytes_of[0], ".",
                        bytes_of[1], ".", bytes_of[2], '","host":"', hosts, '"}\n')
            )  # fmt: skip


def write_csv(stream: Stream, path: Path) -> None:
    """Write a header and records ``1700000000.123,u12345,www.site1234.example``."""
    with path.open("wb") as file:
        file.write(b"ts,uid,host\n")
        for part in _parts(stream):
            file.write(_joined(_seconds(part.times), ",", part.users, ",", part.attributes, "\n"))


def write_parquet(stream: Stream, path: Path) -> None:
    """Write columns with pyarrow's own settings; times are timestamps in milliseconds."""
    with pq.ParquetWriter(path, _SCHEMA) as writer:
        for part in _parts(stream):
            times = pa.array(part.times // _MS, _SCHEMA.field("ts").type)
            writer.write_batch(
                pa.record_batch([times, part.users, part.attributes], schema=_SCHEMA)
            )


def write_categories(stream: Stream, path: Path, categories: int = 40) -> None:
    """Write the domain of each host, ``site1234.example,category7``; some domains have none."""
    hosts: set[str] = set()
    for part in _parts(stream):
        hosts.update(pc.unique(part.attributes).to_pylist())
    domains = sorted(host.removeprefix("www.") for host in hosts)
    lines = [
        f"{domain},category{number % categories}\n" for number, domain in enumerate(domains)
        if number % 10
    ]  # fmt: skip
    path.write_text("".join(["domain,category\n", *lines]), encoding="utf-8")


def _parts(stream: Stream) -> Iterator[Stream]:
    """Cut the stream where its text fits memory, with users and attributes as strings."""
    for start in range(0, len(stream), CHUNK):
        yield stream.part(start, start + CHUNK).with_strings()


def _seconds(times: Integers) -> pa.Array:
    """Spell times in nanoseconds as seconds with three decimals, cut off."""
    seconds, ms = np.divmod(times // _MS, 1_000)
    decimals = pc.utf8_lpad(pc.cast(pa.array(ms), pa.string()), 3, "0")
    return pc.binary_join_element_wise(pc.cast(pa.array(seconds), pa.string()), decimals, ".")


def _joined(*pieces: pa.Array | str) -> pa.Buffer:
    """Join columns and what stands between them, row by row: all rows as one piece of text."""
    whole = pc.binary_join_element_wise(*pieces, "")
    return whole.buffers()[2]
