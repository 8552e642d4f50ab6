"""`zveil serve` over the loopback: beside a pipe, one event at a time, and what it weighs."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import files
import numpy as np
import peers
import pipeline
import text
from report import Figures, Ratio, Result, at_most
from workloads import START_NS, Scale, Stream, for_text, short

TIMES_PIPE = at_most(5)
WITHIN = at_most(1)
SINGLE_MS = 10.0
MEMORY_BYTES = 64e6
CONNECTIONS, A_SECOND = 50, 500

CONNECTED = "NDJSON over one connection"
WEIGHED = "memory, a connection"
SINGLE = "single events"
_BLOCK = 1 << 20
# The service without its pages, on any port, saying nothing but where it is.
_ALONE = ("--port", "0", "--no-console", "-q", "--max-body", "1TiB")


class Service:
    """The program while it serves."""

    def __init__(self, z: int) -> None:
        fields = ("--time", "ts", "--user", "uid", "--attribute", "host")
        rule = ("-z", str(z), "--window", "1h", "--max-future", "any")
        self._process = subprocess.Popen(
            [text.ZVEIL, "serve", *fields, *rule, *_ALONE],
            stderr=subprocess.PIPE,
            text=True,
        )
        if self._process.stderr is None:
            raise RuntimeError("there is no pipe")
        url = json.loads(self._process.stderr.readline())["url"]
        self.address = ("127.0.0.1", int(url.rpartition(":")[2]))

    def end(self) -> None:
        """End it, in order."""
        self._process.terminate()
        self._process.communicate()

    def resident_bytes(self) -> int:
        """Give the memory that it has now."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def state_bytes(self) -> int:
        """Give what the gates have of that."""
        with socket.create_connection(self.address) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            lines = client.makefile().read().splitlines()
        (found,) = [line for line in lines if line.startswith("zveil_state_bytes{")]
        return int(float(found.split()[-1]))

    def post(self, file: Path) -> float:
        """Send a file over one connection while the answer is read; gives seconds."""
        size = file.stat().st_size
        head = (
            "POST /v1/observations HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Content-Type: application/x-ndjson\r\nContent-Length: {size}\r\n\r\n"
        )
        with socket.create_connection(self.address) as client, file.open("rb") as events:
            ends: list[bytes] = []
            reader = threading.Thread(target=_read, args=(client, ends))
            start = time.perf_counter()
            reader.start()
            client.sendall(head.encode())
            client.sendfile(events)
            reader.join()
            seconds = time.perf_counter() - start
        if ends != [b"0\r\n\r\n"]:
            raise RuntimeError("the answer is not whole")
        return seconds


def _read(client: socket.socket, ends: list[bytes]) -> None:
    end = b""
    while data := client.recv(_BLOCK):
        end = (end + data)[-5:]
    ends.append(end)


@contextmanager
def served(z: int) -> Iterator[Service]:
    """Serve for a while."""
    service = Service(z)
    try:
        yield service
    finally:
        service.end()


def runs(scale: Scale) -> list[Result]:
    """Time and weigh the service."""
    for needed in ("starlette", "uvicorn", "httptools"):
        if note := peers.missing(needed):
            return [Figures(what, "", {}, note=note) for what in (CONNECTED, WEIGHED, SINGLE)]
    stream = for_text(scale)
    case = f"{stream.case} z={scale.z}, {short(len(stream))} events"
    with tempfile.TemporaryDirectory() as folder:
        return [*_beside_a_pipe(Path(folder), stream, scale, case), *_singles(scale)]


def _beside_a_pipe(folder: Path, stream: Stream, scale: Scale, case: str) -> list[Result]:
    file, empty, first = (folder / f"{name}.ndjson" for name in ("events", "empty", "first"))
    files.write_ndjson(stream, file)
    files.write_ndjson(stream.prefix(min(scale.per_window, len(stream) // 2)), first)
    empty.touch()
    run = text.zveil(scale.z, "--format", "ndjson")
    weights: list[float] = []

    def connected() -> peers.Outcome:
        with served(scale.z) as service:
            service.post(first)
            before = service.resident_bytes() - service.state_bytes()
            seconds = service.post(file)
            weights.append(service.resident_bytes() - service.state_bytes() - before)
        return peers.Outcome(seconds, len(stream))

    def piped(path: Path, count: int) -> peers.Outcome:
        passage = pipeline.flow(["cat", path], run, ["cat"], watched=1)
        return peers.Outcome(passage.seconds, count)

    best = peers.best_of(
        scale.text_rounds,
        {
            "pipe": partial(piped, file, len(stream)),
            "empty": partial(piped, empty, 1),
            "connection": connected,
        },
    )
    net = max(best["pipe"].seconds - best["empty"].seconds, 1e-9) / len(stream) * 1e9
    ours = best["connection"]
    allowed = f"{MEMORY_BYTES / 1e6:g} MB"
    return [
        Ratio(CONNECTED, case, text.PIPED, ours.ns, best["pipe"].ns, TIMES_PIPE),
        Ratio(CONNECTED, case, text.PIPED_NET, ours.ns, net, TIMES_PIPE),
        Figures(CONNECTED, case, {"events a second": len(stream) / ours.seconds}),
        Ratio(WEIGHED, case, allowed, max(weights), MEMORY_BYTES, WITHIN, "B"),
    ]


def _singles(scale: Scale) -> list[Result]:
    """Time single events, sent when they are due over many connections, answered or not."""
    seconds = scale.idle_lines / A_SECOND
    best: dict[str, float] | None = None
    for _ in range(scale.rounds):
        with served(scale.z) as service:
            waits = np.array(asyncio.run(_exchange(service.address, scale))) * 1e3
        shown = {
            "half": float(np.median(waits)),
            "p99": float(np.quantile(waits, 0.99)),
            "longest": float(waits.max()),
        }
        if best is None or shown["p99"] < best["p99"]:
            best = shown
    case = f"{A_SECOND} a second over {CONNECTIONS} connections, {seconds:g} s"
    if best is None:
        raise RuntimeError("nothing was measured")
    limit = f"{SINGLE_MS:g} ms"
    return [
        Ratio(f"{SINGLE}, p99", case, limit, best["p99"], SINGLE_MS, WITHIN, "ms"),
        Figures(SINGLE, case, best, "ms"),
    ]


async def _exchange(address: tuple[str, int], scale: Scale) -> list[float]:
    """Send each event when it is due; gives the seconds from then to the end of its answer."""
    opened = [await asyncio.open_connection(*address) for _ in range(CONNECTIONS)]
    turns = [asyncio.Lock() for _ in opened]
    waits: list[float] = []
    began = time.perf_counter() + 0.1
    warm = A_SECOND // 2

    async def one(number: int) -> None:
        due = began + number / A_SECOND
        await asyncio.sleep(due - time.perf_counter())
        reader, writer = opened[number % CONNECTIONS]
        body = b'{"ts":%d,"uid":"u%d","host":"site%d.example"}' % (
            START_NS // 10**9 + number // A_SECOND, number % 997, number % 13,
        )  # fmt: skip
        async with turns[number % CONNECTIONS]:
            writer.write(
                b"POST /v1/observations HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                % (len(body), body)
            )
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError("an event was not decided")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
        if number >= warm:
            waits.append(time.perf_counter() - due)

    await asyncio.gather(*(one(number) for number in range(warm + scale.idle_lines)))
    for _, writer in opened:
        writer.close()
    return waits
