"""The broker that tests of engines share, and one for a test that does harm to it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from jars import MissingError

if TYPE_CHECKING:
    from broker import Broker

_numbers = itertools.count(1)


def _broker(folder: Path) -> Broker:
    # Not every engine's environment has the client of Kafka.
    from broker import Broker

    try:
        return Broker(folder)
    except MissingError as missing:
        # Never skipped: whoever runs these tests wants them run.
        pytest.exit(f"test-engines: {missing}", returncode=1)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Apache Kafka itself, one for all tests: leave it running."""
    with _broker(tmp_path_factory.mktemp("kafka")) as started:
        yield started


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """Apache Kafka for one test, which may stop it, kill it and start it again."""
    with _broker(tmp_path / "kafka") as started:
        yield started


@pytest.fixture
def topic(broker: Broker) -> Callable[..., str]:
    """Make topics of the test's own on the shared broker: ``topic(partitions=2)`` gives a name."""

    def make(partitions: int = 1, **config: object) -> str:
        return broker.create_topic(f"test-{next(_numbers)}", partitions, **config)

    return make
