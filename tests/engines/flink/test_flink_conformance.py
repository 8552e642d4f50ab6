"""`zveil flink` tells what the definition tells, whichever task decides."""

from pathlib import Path
from random import Random

import jobs
import pytest
from broker import Broker
from cases import NANO, Attribute, Case, exact, spread
from cluster import Cluster
from suite import CASES, stream


@pytest.mark.parametrize("name", CASES)
def test_of_files_it_tells_what_one_gate_tells(name: str, cluster: Cluster, tmp_path: Path) -> None:
    # Files are one partition with one clock: even what is late is the same.
    case = CASES[name]
    assert exact(jobs.in_files(case, tmp_path, cluster)) == exact(case.told())


IN_TOPICS = ["several attributes", "late by the window", "late by a short lateness",
             "paths fall-through", "users and values of several types",
             "a long stream"]  # fmt: skip


@pytest.mark.parametrize("name", IN_TOPICS)
def test_of_a_topic_it_tells_what_a_gate_for_each_partition_tells(
    name: str, cluster: Cluster, broker: Broker, tmp_path: Path
) -> None:
    case = CASES[name]
    told = jobs.in_topics(case, tmp_path, cluster, broker, partitions=3)
    shards = spread(3) if len(case.attributes) == 1 else None
    assert exact(told) == exact(case.told(shards))


def many_streams(seed: int) -> Case:
    """Make many short streams at once, each of values of its own, close in every way."""
    random, records = Random(seed), []
    for number in range(300):
        values = [f"{number} {letter}" for letter in "xxxxyyz"]
        users = [f"{number} {letter}" for letter in "abcdef"[: random.randint(2, 6)]]
        behind = random.choice([(0,), (0, 0, 0, 1, 5), (0, 0, 3, 9, 14), (0, 0, 1, 40)])
        records += stream(seed * 1_000 + number, 100, {"item": values}, users=users, behind=behind)
    # By time as it goes on in each, so that they run side by side.
    order = sorted(range(len(records)), key=lambda at: (at % 100, at // 100))
    one = Attribute("item", random.choice([2, 3, 4]), random.choice([4, 8, 30]) * NANO)
    lateness = random.choice([10, 20]) * NANO
    return Case("many streams", (one,), tuple(records[at] for at in order), lateness=lateness)


@pytest.mark.parametrize("seed", range(3))
def test_many_random_streams(seed: int, cluster: Cluster, tmp_path: Path) -> None:
    case = many_streams(seed)
    told = case.told()
    assert 1_000 < len(told) < len(case.records) - 1_000
    assert exact(jobs.in_files(case, tmp_path, cluster)) == exact(told)
