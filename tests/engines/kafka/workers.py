"""Workers as a user starts them, streams for them, and what they must come to."""

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from topics import read, values

from zveil.engines.kafka.hashes import murmur2
from zveil.reference import Reference

# On a busy machine everything takes long; nothing is waited for that does not come.
PATIENCE_S = 240
START = 1_700_000_000
Z, WINDOW_S = 3, 60
RULE = (
    "--time", "ts", "--user", "uid", "--attribute", "host", "-z", str(Z),
    "--window", f"{WINDOW_S}s", "--raw-users", "--keep", "n", "--time-format", "s",
)  # fmt: skip


@dataclass
class Stream:
    """Random events whose decisions depend on what was long before: (time, user, value)."""

    events: list[tuple[int, str, str]]
    partitions: int

    @classmethod
    def drawn(cls, seed: int, count: int, partitions: int, *, disorder_s: int = 20) -> "Stream":
        rng = random.Random(seed)
        # A window holds some hundred events: with these users and hosts about half is released.
        times = [START + number // 5 - rng.randrange(disorder_s) for number in range(count)]
        return cls(
            [
                (t, f"u{rng.randrange(40)}", f"h{int(rng.paretovariate(0.5)) % 400}.example")
                for t in times
            ],
            partitions,
        )

    def partition(self, host: str) -> int:
        return (murmur2(host.encode()) & 0x7FFFFFFF) % self.partitions

    def messages(self) -> list[tuple[int, bytes | None, bytes | None]]:
        return [
            (
                self.partition(host),
                host.encode(),
                json.dumps({"ts": t, "uid": user, "host": host, "secret": "x", "n": n}).encode(),
            )
            for n, (t, user, host) in enumerate(self.events)
        ]

    def places(self) -> list[tuple[int, int]]:
        """Give partition and offset of each event, if they are all that the topic holds."""
        seen: Counter[int] = Counter()
        found = []
        for _, _, host in self.events:
            number = self.partition(host)
            found.append((number, seen[number]))
            seen[number] += 1
        return found

    def released(self, first: int = 0) -> list[bytes]:
        """Decide it by the definition, a partition at a time, as if nothing ever happened.

        All events are seen; told is what is released from one on.
        """
        gates = [Reference(Z, WINDOW_S) for _ in range(self.partitions)]
        return [
            b'{"ts":%d,"uid":"%s","host":"%s","n":%d}' % (t, user.encode(), host.encode(), n)
            for n, (t, user, host) in enumerate(self.events)
            if gates[self.partition(host)].observe(t, user, host) and n >= first
        ]


@dataclass
class Group:
    """Workers of one group, between two topics."""

    bootstrap: str
    source: str
    to: str
    folder: Path
    options: Sequence[str] = RULE
    command: Sequence[str] = ("kafka",)
    telling: Sequence[str] = ("--json",)
    running: list["Worker"] = field(default_factory=list)
    _left: list[AdminClient] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"group-{self.source}"

    def start(self, *more: str) -> "Worker":
        """Start a worker, which is quick to find others gone."""
        program = Path(sys.executable).parent / "zveil"
        log = self.folder / f"worker-{self.source}-{len(self.running)}.log"
        with log.open("wb") as said:
            process = subprocess.Popen(
                [
                    program, *self.command, "--brokers", self.bootstrap, "--from", self.source,
                    "--to", self.to, "--group", self.name, *self.telling, *self.options,
                    "--set", "consumer.session.timeout.ms=3000",
                    "--set", "consumer.heartbeat.interval.ms=300", *more,
                ],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            )  # fmt: skip
        worker = Worker(process, log)
        self.running.append(worker)
        return worker

    @cached_property
    def _asking(self) -> Consumer:
        # It never joins the group: it only asks how far that is.
        return Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": self.name, "log_level": 0}
        )

    def positions(self) -> dict[int, int]:
        """Give the offsets that are committed."""
        try:
            known = self._asking.list_topics(self.source, timeout=10).topics[self.source]
            asked = [TopicPartition(self.source, number) for number in known.partitions]
            found = self._asking.committed(asked, timeout=10)
        except KafkaException:
            return {}  # the broker is away, or has just come back
        return {each.partition: each.offset for each in found if each.offset >= 0}

    def wait(self) -> None:
        """Wait until the group has decided all that is there."""
        wanted = {}
        known = self._asking.list_topics(self.source, timeout=PATIENCE_S).topics[self.source]
        for number in known.partitions:
            _, end = self._asking.get_watermark_offsets(TopicPartition(self.source, number))
            if end:
                wanted[number] = end
        self.until(lambda: self.positions() == wanted)

    def until(self, is_so: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not is_so():
            said = [each.said() for each in self.running]
            assert time.monotonic() < until, said
            time.sleep(0.05)

    def decided(self) -> int:
        return sum(self.positions().values())

    def output(self) -> list[bytes]:
        """Read what is committed; nothing may be open any more, which would hold readers back."""
        self.until(lambda: not self.is_open())
        return values(read(self.bootstrap, self.to))

    def is_open(self) -> bool:
        """Whether a transaction is, that has something in the output."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self._ends(IsolationLevel.READ_COMMITTED) != self._ends()
            except KafkaException:
                # A broker that came back has other epochs than this client knows.
                if time.monotonic() > until:
                    raise
                self._left.append(self.__dict__.pop("_admin"))
                time.sleep(0.5)

    def _ends(self, level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED) -> dict[int, int]:
        known = self._asking.list_topics(self.to, timeout=10).topics[self.to]
        asked = {TopicPartition(self.to, each): OffsetSpec.latest() for each in known.partitions}
        found = self._admin.list_offsets(asked, isolation_level=level, request_timeout=10)
        return {part.partition: future.result().offset for part, future in found.items()}

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def close(self) -> None:
        for each in self.running:
            if each.process.poll() is None:
                each.process.send_signal(signal.SIGCONT)
                each.kill()
        self._asking.close()


@dataclass
class Worker:
    """A worker that was started."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> dict[str, Any]:
        """Tell it to end, and give its account."""
        self.process.terminate()
        return self.ended()

    def ended(self, code: int = 0) -> dict[str, Any]:
        """Wait until it ends by itself, and give its account if it has one."""
        assert self.process.wait(PATIENCE_S) == code, self.said()
        return self.account() if self.said().endswith("}\n") else {}

    def account(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.said().splitlines()[-1])
        return found

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")


class Feeder(threading.Thread):
    """Sends a stream little by little, as it would come, up to where it is allowed to."""

    def __init__(self, bootstrap: str, topic: str, stream: Stream, allowed: int = 0) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._topic = topic
        self._messages = stream.messages()
        self._allowed = allowed or len(self._messages)
        self.start()

    def allow(self, count: int | None = None) -> None:
        """Let it send so many messages in all; all of them by default."""
        self._allowed = len(self._messages) if count is None else count

    def finish(self) -> None:
        """Let it send the rest, and wait for that."""
        self.allow()
        self.join(PATIENCE_S)
        assert not self.is_alive()

    def run(self) -> None:
        at = 0
        while at < len(self._messages):
            end = min(at + 100, self._allowed)
            for partition, key, value in self._messages[at:end]:
                self._producer.produce(self._topic, value, key, partition)
            at = max(at, end)
            self._producer.poll(0)
            time.sleep(0.05)
        assert self._producer.flush(PATIENCE_S) == 0


def require_same(found: Sequence[bytes], stream: Stream, first: int = 0) -> None:
    """See that these are the records that are released from one on, each once, in any order."""
    released = stream.released(first)
    came, wanted = Counter(map(_number, found)), Counter(map(_number, released))
    told = {
        "missing": _shown(stream, wanted - came),
        "not released": _shown(stream, came.keys() - wanted.keys()),
        "more than once": _shown(stream, {n for n, count in came.items() if count > 1}),
    }
    assert not any(told.values()), told
    assert Counter(found) == Counter(released)


def _number(record: bytes) -> int:
    """Tell which event of the stream a record was made of."""
    return int(record[record.rindex(b":") + 1 : -1])


def _shown(stream: Stream, numbers: Iterable[int]) -> str:
    """Say how many these are, and where the first and the last of them are."""
    places = stream.places()
    at = sorted(places[number] for number in numbers)
    return f"{len(at)}: partition and offset {at[:5]} to {at[-5:]}" if at else ""
