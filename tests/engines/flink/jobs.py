"""`zveil flink` as an engine: jobs, started as a user would, and what they let out."""

import itertools
import subprocess
from collections.abc import Sequence
from pathlib import Path

from broker import Broker
from cases import Case, Told
from cluster import Cluster
from kafka_worker import keyed
from native import PROGRAM, policy_file
from topics import produce, read, values

PATIENCE_S = 300
_numbers = itertools.count(1)


def run(cluster: Cluster, *arguments: str | Path, parallelism: int = 2) -> str:
    """Run a job to its end, and give what the program said."""
    done = start(cluster, *arguments, parallelism=parallelism)
    said = done.communicate(timeout=PATIENCE_S)[0]
    assert done.returncode == 0, f"{said}\n{cluster.said()}"
    return said


def start(
    cluster: Cluster, *arguments: str | Path, parallelism: int = 2
) -> "subprocess.Popen[str]":
    """Start a job."""
    kept = cluster.folder / f"checkpoints-{next(_numbers)}"
    return subprocess.Popen(
        [PROGRAM, "flink", *arguments, "--cluster", cluster.address, "-p", str(parallelism),
         "--checkpoints", kept],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def lines(folder: Path) -> list[bytes]:
    """Read what is finished of a folder that a job wrote into."""
    parts = [part for part in sorted(folder.glob("part*")) if "inprogress" not in part.name]
    return [line for part in parts for line in part.read_bytes().splitlines()]


def in_files(case: Case, folder: Path, cluster: Cluster, parts: int = 3) -> Told:
    """Put the records into files, and read what comes out of them."""
    written = case.lines()
    length = -(-len(written) // parts)
    names: Sequence[Path] = [folder / f"events-{number}.ndjson" for number in range(parts)]
    for number, name in enumerate(names):
        part = written[number * length : (number + 1) * length]
        name.write_bytes(b"".join(line + b"\n" for line in part))
    out = folder / "out"
    run(cluster, "--policy", policy_file(case, folder), "--output", out, *names)
    return case.read(lines(out))


def in_topics(case: Case, folder: Path, cluster: Cluster, broker: Broker, partitions: int) -> Told:
    """Put the records into a topic, split by attribute if there is one, and read the other."""
    name = f"flink-{next(_numbers)}"
    source, sink = f"{name}-in", f"{name}-out"
    if len(case.attributes) == 1:
        messages = keyed(case, partitions)
    else:
        partitions, messages = 1, [(0, b"", line) for line in case.lines()]
    for topic in (source, sink):
        broker.create_topic(topic, partitions)
    produce(broker.bootstrap, source, messages)
    run(cluster, "--policy", policy_file(case, folder), "--brokers", broker.bootstrap, "--from",
        source, "--to", sink, "--once", "--group", name)  # fmt: skip
    return case.read(values(read(broker.bootstrap, sink)))
