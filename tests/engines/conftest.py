"""The broker that tests of engines share, and one for a test that does harm to it."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jars import MissingError

if TYPE_CHECKING:
    from broker import Address, Broker

_numbers = itertools.count(1)
# Where tests run side by side, one broker serves all; it is that of the process that shares them.
_shared = pytest.StashKey["tuple[tempfile.TemporaryDirectory[str], Broker]"]()


def _broker(folder: Path) -> Broker:
    # Not every engine's environment has the client of Kafka.
    from broker import Broker

    try:
        return Broker(folder)
    except MissingError as missing:
        # Never skipped: whoever runs these tests wants them run.
        pytest.exit(f"test-engines: {missing}", returncode=1)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process beside this one where the broker is."""
    stash = node.config.stash
    if _shared not in stash:
        folder = tempfile.TemporaryDirectory()
        stash[_shared] = folder, _broker(Path(folder.name))
        stash[_shared][1].start()
    broker = stash[_shared][1]
    node.workerinput["broker"] = broker.bootstrap, broker.sasl_bootstrap


def pytest_unconfigure(config: pytest.Config) -> None:
    """End it with the last of them."""
    if _shared in config.stash:
        folder, broker = config.stash[_shared]
        broker.kill()
        folder.cleanup()


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Address]:
    """Apache Kafka itself, one for all tests: leave it running."""
    from broker import Address

    if hasattr(request.config, "workerinput"):
        yield Address(*request.config.workerinput["broker"])
    else:
        with _broker(tmp_path_factory.mktemp("kafka")) as started:
            yield started


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """Apache Kafka for one test, which may stop it, kill it and start it again."""
    with _broker(tmp_path / "kafka") as started:
        yield started


@pytest.fixture
def topic(broker: Address) -> Callable[..., str]:
    """Make topics of the test's own on the shared broker: ``topic(partitions=2)`` gives a name."""

    def make(partitions: int = 1, **config: object) -> str:
        return broker.create_topic(f"test-{os.getpid()}-{next(_numbers)}", partitions, **config)

    return make
