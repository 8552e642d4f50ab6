"""Programs between two topics: how fast they go, what comes out, and how late."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import topics
from broker import Broker
from confluent_kafka import Consumer, TopicPartition
from messages import number_of
from numpy.typing import NDArray
from peers import DisagreementError

HERE = Path(__file__).parent
PATIENCE_S = 600
_LOOK_S = 0.02
_numbers = itertools.count(1)

Command = Callable[[str, str, str], Sequence[str | Path]]
"""From the group and the two topics to the program that works between them."""


def cores() -> tuple[set[int], set[int]]:
    """Give the one core of a contestant, and those of the broker and everything else."""
    all_of_them = sorted(os.sched_getaffinity(0))
    return {all_of_them[0]}, set(all_of_them[1:] or all_of_them)


@contextmanager
def working(
    command: Sequence[str | Path], core: set[int] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Let a program work for a while, on one core if one is given; gives its process."""
    held = (lambda: os.sched_setaffinity(0, core)) if core else None
    process = subprocess.Popen(command, preexec_fn=held, stderr=subprocess.PIPE, text=True)
    try:
        yield process
        require_running(process)
        process.terminate()
        said = process.communicate(timeout=60)[1]
        if process.returncode not in (0, -15):
            raise RuntimeError(f"it ended with {process.returncode}:\n{said[-2000:]}")
    finally:
        process.kill()
        process.wait()


def require_running(process: subprocess.Popen[str]) -> None:
    """See that a program has not ended by itself."""
    if process.poll() is not None:
        raise RuntimeError(f"it ended by itself:\n{process.communicate()[1][-2000:]}")


@dataclass(frozen=True)
class Pace:
    """How fast a program went."""

    per_s: float
    """Records a second."""
    core_ns: float
    """Nanoseconds of a core for each record, all threads of the program together."""
    broker_ns: float
    """The same of the broker."""


def rate(broker: Broker, source: str, command: Command, mask: NDArray[np.bool_]) -> Pace:
    """Let a program work through a topic, and see how fast it is.

    The mask says what is released, and nothing else may come out. The first tenth is not timed:
    start, joining the group and the first fetches are in it. Nor is the last one: where nothing
    more comes, the last transaction waits for its time, which is no matter of how fast anything is.
    How far the program is, is told by the end of the other topic.
    """
    sink = broker.create_topic(f"sink-{next(_numbers)}")
    group = f"group-{sink}"
    # The first look is at the start: a short stream may be through before there is another.
    looks = [(time.perf_counter(), 0, 0.0, core_s(broker.pid))]
    watcher = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "watcher"})
    until = time.monotonic() + PATIENCE_S
    with working(command(group, source, sink), cores()[0]) as process:
        for turn in itertools.count():
            end = watcher.get_watermark_offsets(TopicPartition(sink, 0), timeout=10)[1]
            looks.append((time.perf_counter(), end, core_s(process.pid), core_s(broker.pid)))
            quiet = len(looks) > 10 and looks[-10][1] == end > 0
            if quiet and turn % 10 == 0:
                decided = topics.positions(broker.bootstrap, group, source).get(0)
                if decided == len(mask):
                    break
            require_running(process)
            if time.monotonic() > until:
                raise RuntimeError("it does not come to the end")
            time.sleep(_LOOK_S)
    watcher.close()
    last = looks[-1][1]
    came = topics.values(topics.read(broker.bootstrap, sink))
    if len(came) != np.count_nonzero(mask):
        raise DisagreementError(f"{len(came)} records came out, not {np.count_nonzero(mask)}")
    if [number_of(value) for value in came] != np.flatnonzero(mask).tolist():
        raise DisagreementError("other records came out than those that are released")
    at, done = (next(i for i, look in enumerate(looks) if look[1] >= last * p) for p in (0.1, 0.9))
    # What is all there from one look to the next has taken that long at the most.
    begin, end = looks[min(at, done - 1)], looks[done]
    # Ends count the marks of transactions too, a few among thousands of records.
    left = np.cumsum(mask)
    before, behind = (np.searchsorted(left, look[1] * len(came) / last) for look in (begin, end))
    count = int(behind - before)
    core, of_broker = ((end[place] - begin[place]) / count * 1e9 for place in (2, 3))
    return Pace(count / (end[0] - begin[0]), core, of_broker)


def core_s(pid: int) -> float:
    """Give the seconds that a process has had of any core."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def delays_ms(broker: Broker, command: Command, per_s: float, seconds: int) -> NDArray[np.float64]:
    """Send records when they are due; gives how much later each was read, in milliseconds.

    The first half of the time is not counted: programs and broker warm up, and crowds form.
    """
    number = next(_numbers)
    source, sink = (broker.create_topic(f"{name}-{number}") for name in ("due", "read"))
    said = [broker.bootstrap, source, sink, str(per_s), str(seconds)]
    group = f"group-{sink}"
    with working(command(group, source, sink)) as process:
        while topics.shares(broker.bootstrap, group) != [1]:
            require_running(process)
            time.sleep(_LOOK_S)
        done = subprocess.run(
            [sys.executable, HERE / "delay.py", *said], stdout=subprocess.PIPE, check=True
        )
    late = np.frombuffer(done.stdout, dtype=np.float64)
    late = late[len(late) // 2 :]
    # What had not come when nothing came any more is no less late than anything.
    return np.where(np.isnan(late), np.inf, late * 1e3)
