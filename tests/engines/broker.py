"""A real broker for tests: Apache Kafka in KRaft mode, one node, on free ports of the loopback.

As a program it runs until it is interrupted, its data in a temporary folder:

    .venv-engines/bin/python tests/engines/broker.py [--port PORT]
"""

import argparse
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from jars import jars, java

HOST = "127.0.0.1"
PATIENCE_S = 240
SASL_USER, SASL_PASSWORD = "tester", "secret"

# One node has one replica of everything. Little memory and few threads; groups and transactions
# that lose a member are tidied up within seconds, so that no test waits for the minutes of
# production; nothing is deleted for its age, since events of tests are old.
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT"
    ),
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'user_{SASL_USER}="{SASL_PASSWORD}";'
    ),
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 4,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.min.heartbeat.interval.ms": 200,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
    "log.retention.ms": -1,
    "log.cleaner.dedupe.buffer.size": 2 << 20,
    "num.network.threads": 2,
    "num.io.threads": 2,
    "background.threads": 2,
    "num.recovery.threads.per.data.dir": 1,
}


def free_ports(count: int) -> list[int]:
    """Find ports that nobody listens at, nor gets by chance while their broker is away."""
    # The system gives connections that begin here those from 32,768 on.
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(16_000, 32_000)
        with suppress(OSError), socket.create_server((HOST, port)):
            if port not in found:
                found.append(port)
    return found


class BrokerError(Exception):
    """The broker did not do what was asked; the message has the end of its log."""


class Address:
    """Where a broker is."""

    def __init__(self, bootstrap: str, sasl_bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.sasl_bootstrap = sasl_bootstrap

    def admin(self) -> AdminClient:
        """Make a client that administers it."""
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create_topic(self, name: str, partitions: int = 1, **config: Any) -> str:
        """Make a topic and wait for its partitions to have a leader; options with _ for dots."""
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        admin = self.admin()
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        admin.create_topics([topic])[name].result(PATIENCE_S)
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            found = admin.list_topics(name, timeout=PATIENCE_S).topics[name].partitions
            if len(found) == partitions and all(part.leader == 1 for part in found.values()):
                return name
            time.sleep(0.05)
        raise BrokerError(f"topic {name} has no leader")


class Broker(Address):
    """One Apache Kafka, its data and its ports, which stay the same when it is started again."""

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        heap: str = "256m",
        compiled: bool = False,
        cores: set[int] | None = None,
        **settings: Any,
    ) -> None:
        """Choose ports and settings; `start` makes it answer.

        `compiled` lets Java compile fully, and have all of its heap from the beginning, as Kafka's
        own script does: slower to start, and as fast as it gets. `cores` are all that it may run
        on. Other settings are the broker's own, with _ for each dot.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._cores = cores
        self.log = folder / "broker.log"
        own, controller, sasl = free_ports(3)
        super().__init__(f"{HOST}:{port or own}", f"{HOST}:{sasl}")
        shown = f"PLAINTEXT://{self.bootstrap},SASL://{self.sasl_bootstrap}"
        self._settings = SETTINGS | {
            "listeners": f"{shown},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": shown,
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "log.dirs": folder / "data",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        speed = [f"-Xms{heap}"] if compiled else ["-Xms64m", "-XX:TieredStopAtLevel=1"]
        self._java = [
            java(), *speed, f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:-UsePerfData",
            "-Djava.awt.headless=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-Dorg.slf4j.simpleLogger.showDateTime=true", "-cp", f"{jars()}/*",
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process, while there is one."""
        return self._running().pid

    def start(self) -> None:
        """Start it, on the data it had before if there are any, and wait until it answers."""
        if self._process is not None:
            raise BrokerError("the broker runs already")
        properties = self.folder / "server.properties"
        if not properties.exists():
            lines = [f"{name}={value}\n" for name, value in self._settings.items()]
            properties.write_text("".join(lines), encoding="utf-8")
            self._format(properties)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", properties],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=self._begun,
            )  # fmt: skip
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """End it in order."""
        process = self._running()
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        finally:
            process.kill()
            process.wait()
            self._process = None

    def kill(self) -> None:
        """End it as a loss of power would, but for what the system still writes: kill -9."""
        process = self._running()
        process.kill()
        process.wait()
        self._process = None

    def restart(self) -> None:
        """Start it again on the same data, after a stop in order if it still runs."""
        if self._process is not None:
            self.stop()
        self.start()

    def _format(self, properties: Path) -> None:
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # An id that begins with a dash would be taken for an option.
        asked = ["format", f"--cluster-id={cluster}", "--config", properties]
        done = subprocess.run([*self._java, "kafka.tools.StorageTool", *asked],
                              capture_output=True, text=True)  # fmt: skip
        if done.returncode:
            raise BrokerError(f"the storage could not be made:\n{done.stdout}{done.stderr}")

    def _wait_until_it_answers(self) -> None:
        admin = self.admin()
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if self._running().poll() is not None:
                raise BrokerError(f"the broker ended at its start:\n{self._said()}")
            try:
                if admin.list_topics(timeout=1).brokers:
                    return
            except KafkaException:
                time.sleep(0.05)
        raise BrokerError(f"the broker does not answer:\n{self._said()}")

    def _begun(self) -> None:
        if sys.platform == "linux":
            # The system ends it with the process that started it, however that one ends.
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
            if self._cores:
                os.sched_setaffinity(0, self._cores)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise BrokerError("the broker does not run")
        return self._process

    def _said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-4000:]

    def __enter__(self) -> "Broker":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a broker until it is interrupted."""
    parser = argparse.ArgumentParser(description="Run a broker for tests until it is interrupted.")
    parser.add_argument("--port", type=int, help="where it listens; any free port by default")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder), port=options.port) as broker:
        print(broker.bootstrap, flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            broker.stop()


if __name__ == "__main__":
    main()
