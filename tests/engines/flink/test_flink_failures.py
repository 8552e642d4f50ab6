"""A TaskManager is killed in mid-job: what comes out is what would have come."""

import subprocess
import urllib.request
from pathlib import Path
from random import Random

import jobs
import pytest
from broker import Broker
from cluster import Cluster
from native import PROGRAM
from topics import produce, read, values

RECORDS = 600_000
RULE = ("--time", "ts", "--user", "uid", "--attribute", "host", "-z", "20", "--window", "1h",
        "--time-format", "s", "--keep", "n")  # fmt: skip


def events(count: int) -> list[bytes]:
    random, made = Random(7), []
    for number in range(count):
        user, host = random.randrange(3_000), int(300 * random.random() ** 3)
        made.append(b'{"n":%d,"ts":%d,"uid":"person-%d","host":"secret%d.example"}' % (
            number, 1_700_000_000 + number // 100, user, host))  # fmt: skip
    return made


@pytest.fixture
def key(tmp_path: Path) -> Path:
    subprocess.run([PROGRAM, "key", tmp_path / "key"], check=True)
    return tmp_path / "key"


def native(lines: list[bytes], key: Path) -> list[bytes]:
    done = subprocess.run(
        [PROGRAM, "run", *RULE, "--key-file", key, "--format", "ndjson", "-q"],
        input=b"\n".join(lines) + b"\n", capture_output=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


def killed_on_the_way(cluster: Cluster, started: "subprocess.Popen[str]") -> str:
    """Kill a TaskManager once some checkpoints are made, let another come; gives the job's id."""

    def checkpoints() -> int:
        assert started.poll() is None, started.communicate()[0]
        try:
            (job,) = cluster.jobs()
            return int(cluster.get(f"/jobs/{job['jid']}/checkpoints")["counts"]["completed"])
        except (OSError, ValueError):
            return 0

    cluster.until(lambda: checkpoints() >= 2, "no checkpoint is made")
    (job,) = cluster.jobs()
    assert job["state"] == "RUNNING"
    # What is kept holds nobody's id and no value.
    for kept in cluster.folder.glob("checkpoints-*/*/*/*"):
        try:
            held = kept.read_bytes()
        except OSError:  # another has taken its place
            continue
        assert b"person-" not in held
        assert b"secret" not in held
    cluster.managers[0].kill()
    cluster.managers[0].wait()
    cluster.add()
    return str(job["jid"])


def finished(cluster: Cluster, started: "subprocess.Popen[str]", job: str) -> None:
    said = started.communicate(timeout=jobs.PATIENCE_S)[0]
    assert started.returncode == 0, f"{said}\n{cluster.said()}"
    restarts = cluster.get(f"/jobs/{job}/exceptions")["exceptionHistory"]["entries"]
    assert restarts, "the job did not notice"
    assert "person-" not in cluster.logged()


def test_a_killed_task_manager_changes_no_files(
    own_cluster: Cluster, key: Path, tmp_path: Path
) -> None:
    lines, file = events(RECORDS), tmp_path / "events.ndjson"
    file.write_bytes(b"\n".join(lines) + b"\n")
    started = jobs.start(own_cluster, *RULE, "--key-file", key, "--checkpoint-every", "200ms",
                         "--output", tmp_path / "out", file)  # fmt: skip
    finished(own_cluster, started, killed_on_the_way(own_cluster, started))
    assert sorted(jobs.lines(tmp_path / "out")) == sorted(native(lines, key))


def test_a_killed_task_manager_changes_no_topic(
    own_cluster: Cluster, broker: Broker, key: Path
) -> None:
    lines = events(RECORDS // 2)
    source = broker.create_topic("killed-in", 2)
    sink = broker.create_topic("killed-out", 2)
    homes = [hash(line.rpartition(b"secret")[2]) % 2 for line in lines]
    produce(broker.bootstrap, source, zip(homes, [None] * len(lines), lines, strict=True))
    started = jobs.start(own_cluster, *RULE, "--key-file", key, "--checkpoint-every", "200ms",
                         "--brokers", broker.bootstrap, "--from", source, "--to", sink, "--once",
                         "--group", "killed")  # fmt: skip
    finished(own_cluster, started, killed_on_the_way(own_cluster, started))
    assert sorted(values(read(broker.bootstrap, sink))) == sorted(native(lines, key))


def test_a_job_that_was_cancelled_is_gone_on_with_by_other_tasks(
    cluster: Cluster, broker: Broker, key: Path, tmp_path: Path
) -> None:
    lines, kept = events(40_000), tmp_path / "kept"
    half = len(lines) // 2
    source, sink = broker.create_topic("resumed-in"), broker.create_topic("resumed-out")
    asked = [PROGRAM, "flink", *RULE, "--key-file", key, "--checkpoint-every", "300ms", "--brokers",
             broker.bootstrap, "--from", source, "--to", sink, "--group", "resumed", "--cluster",
             cluster.address, "--checkpoints", kept]  # fmt: skip
    produce(broker.bootstrap, source, [(0, None, line) for line in lines[:half]])
    until_decided(cluster, broker, [*asked, "-p", "2"], sink, native(lines[:half], key))
    # Another may have been begun when the job was cancelled: only a whole one has this file.
    whole = [each.parent for each in kept.glob("*/chk-*/_metadata")]
    checkpoint = max(whole, key=lambda each: int(each.name.removeprefix("chk-")))
    produce(broker.bootstrap, source, [(0, None, line) for line in lines[half:]])
    again = [*asked, "-p", "1", "--resume", checkpoint]
    until_decided(cluster, broker, again, sink, native(lines, key))


def until_decided(
    cluster: Cluster, broker: Broker, asked: list[str | Path], sink: str, wanted: list[bytes]
) -> None:
    """Let a job run until a topic holds what is wanted, and cancel it."""
    handed = subprocess.run(
        [*asked, "--detached"], capture_output=True, text=True, timeout=jobs.PATIENCE_S
    )
    assert handed.returncode == 0, handed.stderr
    job = handed.stderr.split()[1].rstrip(":")
    cluster.until(
        lambda: sorted(values(read(broker.bootstrap, sink))) == sorted(wanted), "it is not decided"
    )
    cancelled = urllib.request.Request(f"http://{cluster.address}/jobs/{job}", method="PATCH")
    urllib.request.urlopen(cancelled, timeout=10).close()  # noqa: S310  # the loopback's
    cluster.until(lambda: cluster.get(f"/jobs/{job}")["state"] == "CANCELED", "it does not end")
