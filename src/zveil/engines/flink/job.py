"""A job: described, handed to Flink, and watched until it ends."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zveil.engines.flink.installation import MAIN, Installation
from zveil.engines.flink.properties import Properties, listed, written

# A job that fails again and again ends, and says so, instead of being restarted for ever.
_RESTARTS = {
    "restart-strategy.type": "failure-rate",
    "restart-strategy.failure-rate.max-failures-per-interval": "10",
    "restart-strategy.failure-rate.failure-rate-interval": "10 min",
    "restart-strategy.failure-rate.delay": "1 s",
}
_ID = re.compile(r"JobID ([0-9a-f]{32})")


class JobFailure(Exception):  # noqa: N818  # a failure of Flink's, told in our words
    """Flink did not take the job, or it failed."""


@dataclass(frozen=True, kw_only=True)
class Topics:
    """Topics of Kafka, as source or sink.

    Parameters
    ----------
    brokers, group
        Where Kafka is; the group that offsets are told to, and transactions are named after.
    settings
        Of the clients, by their role (``consumer``, ``producer``).
    """

    brokers: str
    group: str
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def source(self, topic: str, *, start: str, once: bool) -> dict[str, Any]:
        """Describe a topic that is read."""
        said = {"kind": "kafka", "brokers": self.brokers, "topic": topic, "group": self.group}
        said |= {"start": start, "once": str(once).lower()}
        return said | self._settings("consumer")

    def sink(self, topic: str, *, delivery: str, key: str) -> dict[str, Any]:
        """Describe a topic that is written."""
        said = {"kind": "kafka", "brokers": self.brokers, "topic": topic, "group": self.group}
        return said | {"delivery": delivery, "key": key} | self._settings("producer")

    def _settings(self, role: str) -> dict[str, Any]:
        said = self.settings.get(role, {})
        return listed(role, [f"{name}={value}" for name, value in said.items()])


def files(names: Sequence[str], *, header: bool) -> dict[str, Any]:
    """Describe files that are read, one behind the other."""
    said = {"kind": "files", "header": str(header).lower()}
    return said | listed("file", [address(name) for name in names])


def folder(name: str) -> dict[str, Any]:
    """Describe a folder that is written to."""
    return {"kind": "files", "folder": address(name)}


def address(name: str) -> str:
    """Give the address of a file or folder as Flink takes it.

    >>> address("s3://bucket/events"), address("/data/a b")
    ('s3://bucket/events', 'file:///data/a%20b')
    """
    return name if "://" in name else Path(name).absolute().as_uri()


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is handed to Flink.

    Parameters
    ----------
    policy
        What `description.described` says of the policy.
    source, sink
        Where records come from and go to.
    checkpoints
        Where checkpoints are kept; by default nowhere that outlasts the job.
    checkpoint_ms
        How often one is made; what is exactly once leaves then.
    at_once
        Nothing waits for a buffer to fill.
    """

    policy: Properties
    source: Mapping[str, Any]
    sink: Mapping[str, Any]
    checkpoints: str | None
    checkpoint_ms: int
    at_once: bool = True
    name: str = "zveil"

    def properties(self) -> Properties:
        """Give all that the operator is told."""
        said: dict[str, Any] = dict(self.policy)
        said |= {f"source.{key}": value for key, value in self.source.items()}
        said |= {f"sink.{key}": value for key, value in self.sink.items()}
        said |= {"checkpoint_ms": self.checkpoint_ms, "buffer_ms": 0 if self.at_once else 100}
        said["name"] = self.name
        return {key: str(value) for key, value in said.items()}

    def settings(self, folder: Path) -> dict[str, str]:
        """Give the settings of Flink that the job is run with; the folder is gone after it."""
        kept = str(folder / "checkpoints") if self.checkpoints is None else self.checkpoints
        found = _RESTARTS | {
            "execution.checkpointing.storage": "filesystem",
            "execution.checkpointing.dir": address(kept),
        }
        if self.checkpoints is not None:
            # What was told to end can be gone on with.
            found["execution.checkpointing.externalized-checkpoint-retention"] = (
                "RETAIN_ON_CANCELLATION"
            )
        return found


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How a job is started.

    Parameters
    ----------
    cluster
        The address of a cluster, ``host:port``; by default the job runs in a process of its own.
    parallelism
        Tasks that decide side by side.
    detached
        Do not wait for its end.
    resume
        A checkpoint or savepoint to go on from.
    settings
        More settings of Flink.
    """

    cluster: str | None = None
    parallelism: int = 1
    detached: bool = False
    resume: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def arguments(self, job: Job, jar: Path, described: Path) -> list[str]:
        """Give what Flink's own command is told."""
        where = ["-t", "local"] if self.cluster is None else ["-m", self.cluster]
        found = ["run", *where, "-p", str(self.parallelism)]
        found += ["-d"] if self.detached else []
        found += [] if self.resume is None else ["-s", address(self.resume)]
        for name, value in {**job.settings(described.parent), **self.settings}.items():
            found.append(f"-D{name}={value}")
        return [*found, "-c", MAIN, str(jar), str(described)]

    def go(self, job: Job, installation: Installation, jar: Path) -> str:
        """Start it, wait for its end unless it is detached, and give its id.

        Raises
        ------
        JobFailure
            If Flink does not take it, or it fails.
        """
        with _described(job) as (described, logs):
            command = [*installation.program, *self.arguments(job, jar, described)]
            environment = os.environ | {"FLINK_LOG_DIR": str(logs)}
            if self.cluster is not None:
                # It hands the job over and waits: there is nothing to compile for.
                environment.setdefault("JVM_ARGS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            started = subprocess.Popen(  # noqa: S603  # Flink's own command
                command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace",
            )  # fmt: skip
            with started, _passed_on(started):
                said = started.communicate()[0]
            found = _ID.findall(said)
            if started.returncode:
                raise JobFailure(_reason(said))
            return found[-1] if found else ""


@contextlib.contextmanager
def _described(job: Job) -> Iterator[tuple[Path, Path]]:
    """Write down what the operator is told, for its owner's eyes: there are keys in it."""
    with tempfile.TemporaryDirectory(prefix="zveil-") as name:
        described = Path(name) / "job.properties"
        with open(os.open(described, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as to:
            to.write(written(job.properties()))
        yield described, Path(name)


@contextlib.contextmanager
def _passed_on(started: subprocess.Popen[str]) -> Iterator[None]:
    """Let signals that would end this process end the one that was started."""

    def pass_on(number: int, _: Any) -> None:
        started.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _reason(said: str) -> str:
    """Find what went wrong in what Flink says, which is mostly where in its own code."""
    causes = [line.strip() for line in said.splitlines() if line.startswith("Caused by: ")]
    words = causes[-1].removeprefix("Caused by: ") if causes else said.strip()[-1000:]
    return f"Flink: {words}"
