"""The cluster that the tests of Spark share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster import Cluster, session
from jars import MissingError


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers."""
    try:
        with Cluster(tmp_path_factory.mktemp("spark")) as started:
            yield started
    except MissingError as missing:
        # Never skipped: whoever runs these tests wants them run.
        pytest.exit(f"test-engines: {missing}", returncode=1)


@pytest.fixture(scope="session")
def event_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Spark writes what it did."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def spark(cluster: Cluster, event_log: Path) -> Iterator[Any]:
    """A session on the cluster."""
    started = session(
        cluster,
        spark_eventLog_enabled="true",
        spark_eventLog_compress="false",  # so that a test can read it
        spark_eventLog_dir=event_log.as_uri(),
    )
    yield started
    started.stop()
