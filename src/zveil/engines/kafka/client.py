"""The clients of Kafka: their settings, and who makes them."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from zveil import _native
from zveil._native import KafkaClient

Delivery = Literal["exactly-once", "at-least-once"]
Report = Callable[[str], None]

MISSING = "Kafka needs a package that is not installed; add it with: pip install 'zveil[kafka]'"

SESSION_S = 10.0
"""How long a worker may be silent before its partitions go to others."""
PARTITIONER = "murmur2_random"
"""How the partition of a record is chosen, unless someone says otherwise."""
TRANSACTION_S = 10.0
"""How long a transaction may stay open once its worker is gone."""

# What decides whether records are lost or seen twice is not for anyone to set by the way.
_OURS = {
    "group.id": "--group",
    "enable.auto.commit": None,
    "enable.auto.offset.store": None,
    "enable.partition.eof": None,
    "auto.offset.reset": "--start",
    "isolation.level": None,
    "transactional.id": "--instance",
    "enable.idempotence": None,
    "acks": None,
    "request.required.acks": None,
    "delivery.report.only.error": None,
}
_ROLES = ("consumer.", "producer.")
# Partitions that stay with their worker could go on through a rebalance. But a transaction that is
# committed in the middle of one fails, and what it had decided has to be seen again: so each worker
# commits and lets go first, and what comes back to it goes on from where it was.
_STRATEGIES: dict[Delivery, str] = {
    "exactly-once": "range",
    "at-least-once": "cooperative-sticky",
}
# Seconds between two commits: for little delay, and for much.
_EVERY_S: dict[Delivery, tuple[float, float]] = {
    "exactly-once": (0.02, 0.2),
    "at-least-once": (1.0, 5.0),
}
_PLUGINS = "plugin.library.paths"
_INSTEAD = "install it as it is published: pip install --force-reinstall 'zveil[kafka]'"
# Messages decided in one go. With more, what was decided first has left the cache by the time it is
# sent; with fewer, each go takes its own time.
_MOST = 1_500


class KafkaFailure(Exception):  # noqa: N818  # a failure of theirs, told in our words
    """Kafka cannot go on; the words say what to do."""


class ClientError(ValueError):
    """Settings for the clients that cannot be used."""


class Made(NamedTuple):
    """A client: by the library of Python, which steers it, and natively, where messages pass."""

    steered: Any
    native: KafkaClient


@dataclass(frozen=True, kw_only=True)
class Clients:
    """How the clients of one worker are made.

    Parameters
    ----------
    brokers
        Where to begin: ``host:port``, several with commas.
    group
        The consumer group that shares the work.
    delivery
        What readers see of a failure.
    instance
        A name of the worker that stays over restarts; random by default.
    said
        Settings of the client library, of both clients or with ``consumer.`` or ``producer.``
        before them of one.
    at_once
        Records go on as they come, and not in larger batches.
    """

    brokers: str | None
    group: str
    delivery: Delivery = "exactly-once"
    instance: str | None = None
    said: Mapping[str, str] = field(default_factory=dict)
    at_once: bool = True
    drawn: str = field(default_factory=lambda: uuid.uuid4().hex, init=False)

    def __post_init__(self) -> None:
        for name in self.said:
            bare = name
            for role in _ROLES:
                bare = bare.removeprefix(role)
            if bare in _OURS:
                instead = _OURS[bare]
                where = "zveil sets it" if instead is None else f"use {instead}"
                raise ClientError(f"{name}: {where}; leave it out")
        if self.brokers is None and "bootstrap.servers" not in self.said:
            raise ClientError("--brokers: say where Kafka is, such as localhost:9092")

    def consumer_settings(self) -> dict[str, Any]:
        """Give all settings of the consumer."""
        session_ms = int(1000 * SESSION_S)
        found: dict[str, Any] = {
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": session_ms // 5,
            "partition.assignment.strategy": _STRATEGIES[self.delivery],
            # What is there is handed over at once; in larger pieces where much is there.
            "fetch.min.bytes": 1,
            "socket.nagle.disable": True,
            "fetch.wait.max.ms": 100 if self.at_once else 500,
            "fetch.error.backoff.ms": 50,
            # Of each partition no more waits than stays in the cache until its turn; where enough
            # has come for now, it is looked soon whether more is needed.
            "queued.min.messages": 10_000,
            "fetch.queue.backoff.ms": 5,
        }
        found |= self._said("consumer.")
        return found | {
            "group.id": self.group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
        }

    def producer_settings(self) -> dict[str, Any]:
        """Give all settings of the producer."""
        found: dict[str, Any] = {
            "socket.nagle.disable": True,
            "linger.ms": 1 if self.at_once else 5,
            "queue.buffering.max.messages": 200_000,
            # As Java's clients do it: a value is on the same partition, whoever writes it.
            "partitioner": PARTITIONER,
        }
        if self.delivery == "exactly-once":
            found["transaction.timeout.ms"] = int(1000 * TRANSACTION_S)
        found |= self._said("producer.")
        found |= {"enable.idempotence": True, "acks": "all", "delivery.report.only.error": True}
        if self.delivery == "exactly-once":
            found["transactional.id"] = f"{self.group}-{self.instance or self.drawn}"
        return found

    @property
    def every_s(self) -> float:
        """The shortest time between two commits, unless someone says otherwise."""
        return _EVERY_S[self.delivery][not self.at_once]

    @property
    def most(self) -> int:
        """Messages that are decided in one go at the most."""
        return _MOST

    @property
    def is_cooperative(self) -> bool:
        """Whether a rebalance takes and gives single partitions, and not all of them."""
        strategy = str(self.consumer_settings()["partition.assignment.strategy"])
        return strategy.startswith("cooperative")

    def _said(self, role: str) -> dict[str, Any]:
        found: dict[str, Any] = {} if self.brokers is None else {"bootstrap.servers": self.brokers}
        others = tuple(other for other in _ROLES if other != role)
        for name, value in self.said.items():
            if not name.startswith(others):
                found[name.removeprefix(role)] = value
        return found

    def consumer(self, report: Report, **more: Any) -> Made:
        """Make the consumer."""
        import confluent_kafka

        return _made(confluent_kafka.Consumer, self.consumer_settings() | more, report)

    def producer(self, report: Report) -> Made:
        """Make the producer."""
        import confluent_kafka

        return _made(confluent_kafka.Producer, self.producer_settings(), report)


def _made(make: Callable[..., Any], settings: dict[str, Any], report: Report) -> Made:
    import confluent_kafka

    logger = logging.Logger("zveil.kafka", logging.WARNING)
    logger.addHandler(_Words(report))
    # The native module is a plugin of the library that Python's is made of: it is told of clients.
    plugins = [settings.get(_PLUGINS), _native.__file__]
    settings = settings | {_PLUGINS: ";".join(filter(None, plugins))}
    try:
        KafkaClient.load(confluent_kafka.cimpl.__file__)
    except RuntimeError as error:
        raise KafkaFailure(f"{error}; {_INSTEAD}") from None
    try:
        client = make(settings | {"error_cb": _errors(report)}, logger=logger)
    except confluent_kafka.KafkaException as error:
        # The library tells which setting it is, and its value: that may be a secret.
        words = str(error.args[0].str())
        named = [name for name in settings if f'"{name}"' in words or f"`{name}`" in words]
        where = f"--set {named[0]}" if named else "--set, --client-config"
        raise ClientError(f"{where}: the client of Kafka does not take it") from None
    native = KafkaClient.made()
    if native is None:
        raise KafkaFailure(f"the client of Kafka does not take plugins; {_INSTEAD}")
    return Made(client, native)


class _Words(logging.Handler):
    """Passes on what the client library has to say; not that one client's settings are two's."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self._report = report
        self._last = ""

    def emit(self, record: logging.LogRecord) -> None:
        words = record.getMessage()
        if "CONFWARN" not in words and words != self._last:
            self._last = words
            self._report(f"kafka: {words}")


def _errors(report: Report) -> Callable[[Any], None]:
    last: list[Any] = [None]

    def tell(error: Any) -> None:
        if error.code() != last[0]:
            last[0] = error.code()
            report(f"kafka: {error.str()}")

    return tell
