"""`zveil kafka` tells what the definition tells, however the topic is split."""

from pathlib import Path

import kafka_worker
import pytest
from broker import Address
from cases import exact, spread
from suite import CASES, IN_TIME, LATE


@pytest.mark.parametrize("name", IN_TIME)
def test_in_time_it_tells_what_one_gate_tells(name: str, broker: Address, tmp_path: Path) -> None:
    case = CASES[name]
    told = kafka_worker.told(case, tmp_path, broker, partitions=3)
    assert exact(told) == exact(case.told())


@pytest.mark.parametrize("name", LATE)
def test_late_or_not_it_tells_what_a_gate_for_each_partition_tells(
    name: str, broker: Address, tmp_path: Path
) -> None:
    case = CASES[name]
    told = kafka_worker.told(case, tmp_path, broker, partitions=3)
    assert exact(told) == exact(case.told(spread(3)))


@pytest.mark.parametrize("name", ["late by the window", "vectors: z 2, window 10"])
def test_one_partition_is_one_gate(name: str, broker: Address, tmp_path: Path) -> None:
    case = CASES[name]
    told = kafka_worker.told(case, tmp_path, broker, partitions=1)
    assert exact(told) == exact(case.told())


AT_LEAST_ONCE = ["ties", "late by a short lateness", "paths fall-through", "a long stream"]


@pytest.mark.parametrize("name", AT_LEAST_ONCE)
def test_at_least_once_undisturbed_is_once(name: str, broker: Address, tmp_path: Path) -> None:
    case = CASES[name]
    told = kafka_worker.told(case, tmp_path, broker, partitions=3, delivery="at-least-once")
    assert exact(told) == exact(case.told(spread(3)))


@pytest.mark.parametrize("name", ["disorder within the lateness", "a long stream"])
def test_partitions_that_change_hands_change_nothing(
    name: str, broker: Address, tmp_path: Path
) -> None:
    case = CASES[name]
    told = kafka_worker.told(case, tmp_path, broker, partitions=4, workers=2)
    assert exact(told) == exact(case.told())
