"""Groups of workers that tests start, and that end with them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from broker import Address
from kafka.workers import Group


@pytest.fixture
def group(
    broker: Address, topic: Callable[..., str], tmp_path: Path
) -> Iterator[Callable[..., Group]]:
    """Make groups between topics of their own: ``group(2)`` for topics of two partitions."""
    made: list[Group] = []

    def make(partitions: int = 1, **more: Any) -> Group:
        found = Group(broker.bootstrap, topic(partitions), topic(partitions), tmp_path, **more)
        made.append(found)
        return found

    yield make
    for each in made:
        each.close()
