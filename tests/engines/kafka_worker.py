"""`zveil kafka` as an engine: workers of a group, started, watched and ended as a user would."""

import itertools
import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from broker import Address
from cases import Case, Told, coarsest, spread
from native import PROGRAM, policy_file
from topics import behind, positions, produce, read, shares, values

PATIENCE_S = 240
_numbers = itertools.count(1)


class Worker:
    """One process of `zveil kafka`."""

    def __init__(self, folder: Path, *arguments: str | Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.errors = folder / f"worker-{next(_numbers)}.log"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [PROGRAM, "kafka", *arguments], stdin=subprocess.DEVNULL, stdout=errors,
                stderr=errors,
            )  # fmt: skip

    def require_running(self) -> None:
        """See that it has not ended by itself."""
        assert self.process.poll() is None, self.said()

    def end(self) -> None:
        """End it in order."""
        self.process.terminate()
        self.ended()

    def ended(self) -> None:
        """Wait until it ends by itself."""
        assert self.process.wait(PATIENCE_S) == 0, self.said()

    def said(self) -> str:
        """Give what it told."""
        return self.errors.read_text(encoding="utf-8", errors="replace")[-4000:]

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def until_decided(broker: Address, group: str, topic: str, workers: Sequence[Worker]) -> None:
    """Wait until a group has committed all that a topic holds."""
    wanted = behind(read(broker.bootstrap, topic))
    until = time.monotonic() + PATIENCE_S
    while not wanted.items() <= positions(broker.bootstrap, group, topic).items():
        for worker in workers:
            worker.require_running()
        assert time.monotonic() < until, "".join(worker.said() for worker in workers)
        time.sleep(0.1)


def until_joined(broker: Address, group: str, workers: Sequence[Worker]) -> None:
    """Wait until each worker is a member of the group and has its partitions."""
    until = time.monotonic() + PATIENCE_S
    while [bool(share) for share in shares(broker.bootstrap, group)] != [True] * len(workers):
        for worker in workers:
            worker.require_running()
        assert time.monotonic() < until, "".join(worker.said() for worker in workers)
        time.sleep(0.1)


def told(
    case: Case,
    folder: Path,
    broker: Address,
    *,
    partitions: int,
    delivery: str = "exactly-once",
    workers: int = 1,
) -> Told:
    """Put the records into a topic that is split by attribute, and read what comes out.

    As many parts of the stream as there are workers: with each part one more joins the group, so
    that partitions change hands on the way. A record with several attributes belongs to several
    partitions: it comes from another topic, and `zveil kafka rekey` splits it.
    """
    name = f"conformance-{os.getpid()}-{next(_numbers)}"
    source, sink = f"{name}-in", f"{name}-out"
    for topic in (source, sink):
        broker.create_topic(topic, partitions)
    asked = ("--policy", policy_file(case, folder), "--brokers", broker.bootstrap)
    between = (*asked, "--group", name, "--from", source, "--to", sink, "--delivery", delivery)
    if len(case.attributes) > 1:
        raw = broker.create_topic(f"{name}-raw")
        produce(broker.bootstrap, raw, [(0, None, line) for line in case.lines()])
        apart = (*asked, "--group", f"{name}-rekey", "--from", raw, "--to", source)
        with Worker(folder, "rekey", *apart, "--once") as splitting:
            splitting.ended()
        parts: list[list[tuple[int, bytes, bytes]]] = [[]]
    else:
        messages = keyed(case, partitions)
        length = -(-len(messages) // workers)
        parts = [messages[at : at + length] for at in range(0, len(messages), length)]
    if workers == 1:
        produce(broker.bootstrap, source, parts[0])
        with Worker(folder, *between, "--once") as worker:
            worker.ended()
        return case.read(values(read(broker.bootstrap, sink)))
    with ExitStack() as stack:
        started: list[Worker] = []
        for part in parts:
            started.append(stack.enter_context(Worker(folder, *between)))
            until_joined(broker, name, started)
            produce(broker.bootstrap, source, part)
            until_decided(broker, name, source, started)
        for worker in started:
            worker.end()
    return case.read(values(read(broker.bootstrap, sink)))


def keyed(case: Case, partitions: int) -> list[tuple[int, bytes, bytes]]:
    """Give partition, key and value of each record, keyed by the coarsest label of its value."""
    (one,) = case.attributes
    shard, messages = spread(partitions), []
    for line, record in zip(case.lines(), case.records, strict=True):
        key = coarsest(one, record.values[one.field])
        messages.append((shard(one.field, key), key.encode(), line))
    return messages
