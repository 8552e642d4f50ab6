"""The cluster that tests of Flink share, and one for a test that does harm to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Flink itself, two TaskManagers, one for all tests: leave it running."""
    with Cluster(tmp_path_factory.mktemp("flink")) as started:
        yield started


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Flink for a test that kills a TaskManager: a job of two tasks needs both of them."""
    with Cluster(tmp_path / "flink", slots=1) as started:
        yield started
