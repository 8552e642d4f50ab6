"""`zveil flink` tells what the definition tells, whichever task decides."""

from pathlib import Path
from random import Random

import jobs
import pytest
from broker import Broker
from cases import NANO, START, Attribute, Case, Record, exact, spread
from cluster import Cluster
from suite import AHEAD, CASES


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


STREAMS = 300


def many_streams(seed: int) -> Case:
    """Make many short streams that run side by side, each of values of its own, close in all."""
    random, now, records = Random(seed), START, []
    habits = [random.choice([(0,), (0, 0, 0, 1, 5), (0, 0, 3, 9, 14), (0, 0, 1, 40)])
              for _ in range(STREAMS)]  # fmt: skip
    for _ in range(100 * STREAMS):
        now += random.choice(AHEAD) * NANO // STREAMS
        number = random.randrange(STREAMS)
        # Whole seconds, so that there are ties, and times at the edges of windows.
        t = now // NANO * NANO - random.choice(habits[number]) * NANO
        user, item = random.choice("abcdef"[: 2 + number % 5]), random.choice("xxxxyyz")
        records.append(Record(t, user, {"item": f"{number} {item}"}))
    one = Attribute("item", random.choice([2, 3, 4]), random.choice([4, 8, 30]) * NANO)
    return Case("many streams", (one,), tuple(records), lateness=random.choice([10, 20]) * NANO)


@pytest.mark.parametrize("seed", range(3))
def test_many_random_streams(seed: int, cluster: Cluster, tmp_path: Path) -> None:
    case = many_streams(seed)
    told = case.told()
    assert 1_000 < len(told) < len(case.records) - 1_000
    assert exact(jobs.in_files(case, tmp_path, cluster)) == exact(told)
