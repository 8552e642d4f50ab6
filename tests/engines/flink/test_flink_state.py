"""What the operator remembers: no more than can still count."""

from pathlib import Path

import jobs
import pytest
from cluster import Cluster

VALUES = 400_000
RULE = ("--time", "ts", "--user", "uid", "--attribute", "host", "-z", "2", "--time-format", "s",
        "--raw-users")  # fmt: skip


@pytest.mark.parametrize(("window", "is_small"), [("1s", True), ("100d", False)])
def test_values_that_can_count_no_more_are_forgotten(
    window: str, is_small: bool, cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "events.ndjson"
    with file.open("wb") as written:
        for number in range(VALUES):
            event = b'{"ts":%d,"uid":"u%d","host":"%d.example"}\n'
            written.write(event % (1_700_000_000 + number // 10, number % 7, number))
    before = {job["jid"] for job in cluster.jobs()}
    jobs.run(cluster, *RULE, "--window", window, "--checkpoint-every", "200ms", "--output",
             tmp_path / "out", file)  # fmt: skip
    assert not jobs.lines(tmp_path / "out")
    (job,) = (job["jid"] for job in cluster.jobs() if job["jid"] not in before)
    sizes = [each["state_size"] for each in cluster.get(f"/jobs/{job}/checkpoints")["history"]]
    # A user, a time and a clock for each value, and its own hash: more than 40 bytes.
    assert (max(sizes) < 40 * VALUES / 4) == is_small
