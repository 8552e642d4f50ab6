"""`zveil kafka` beside a consumer in Python, and beside its own client loop without a gate."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import messages
import numpy as np
import topics
from broker import Broker
from messages import AT_ONCE, THROUGHPUT, Scale
from report import Figures, Ratio, Result, at_least, at_most
from watched import HERE, Command, cores, delays_ms, rate

ZVEIL = Path(sys.executable).parent / "zveil"
TIMES_PYTHON = at_least(5)
OF_THE_LOOP = at_least(0.6)
WITHIN = at_most(1)
DELAY_MS = {"at-least-once": 20.0, "exactly-once": 200.0}
"""What is asked of each delivery, at a tenth of its rate."""

RATE, DELAY = "Kafka, one worker", "Kafka, delay"
OURS, LOOP, PYTHON = "zveil kafka", "the loop without a gate", "the same in Python"


def worker(brokers: str, key: Path, z: int, delivery: str, pace: str) -> Command:
    """The program itself."""
    rule = (*messages.FIELDS, "-z", str(z), "--window", "1h", "--key-file", str(key))
    paced = ("--throughput",) if pace == THROUGHPUT else ()

    def command(group: str, source: str, sink: str) -> Sequence[str | Path]:
        between = ("--group", group, "--from", source, "--to", sink, "--delivery", delivery)
        return [ZVEIL, "kafka", "--brokers", brokers, *between, *rule, *paced, "-q"]

    return command


def loop(brokers: str, z: int | None, delivery: str, pace: str) -> Command:
    """The same client loop in Python, without a gate or with the reference in its place."""
    rule = () if z is None else (str(z), "3600")

    def command(group: str, source: str, sink: str) -> Sequence[str | Path]:
        said = (brokers, group, source, sink, delivery, pace)
        return [sys.executable, HERE / "loop.py", *said, *rule]

    return command


def runs(scale: Scale) -> list[Result]:
    """Measure rates and delays, on a broker of their own."""
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        subprocess.run([ZVEIL, "key", key], check=True, stdout=subprocess.DEVNULL)
        with Broker(Path(folder) / "rates", heap="1g", compiled=True, cores=cores()[1]) as broker:
            best = _rates(broker, key, scale)
        # Nothing is held to a core where it is about delay.
        with Broker(Path(folder) / "delays", heap="1g", compiled=True) as broker:
            return [*_beside(best, scale), *_delays(broker, key, best, scale)]


def _rates(broker: Broker, key: Path, scale: Scale) -> dict[tuple[str, str, str], float]:
    """Let all go through one topic in turn; gives the best rate by peer, delivery and pace."""
    stream = messages.stream(scale)
    source = broker.create_topic("source")
    sent = ((0, name, value) for name, value in messages.keyed(stream))
    topics.produce(broker.bootstrap, source, sent)
    mask = messages.released(stream, scale.z)
    everything = np.ones(len(mask), dtype=np.bool_)
    best: dict[tuple[str, str, str], float] = {}
    for turn in range(scale.rounds):
        for delivery, pace in itertools.product(DELAY_MS, scale.paces):
            brokers = broker.bootstrap
            contestants = {
                OURS: (worker(brokers, key, scale.z, delivery, pace), mask),
                LOOP: (loop(brokers, None, delivery, pace), everything),
                PYTHON: (loop(brokers, scale.z, delivery, pace), mask),
            }
            for name, (command, wanted) in contestants.items():
                if name == PYTHON and pace == AT_ONCE:
                    continue
                found = rate(broker, source, command, wanted)
                label = f"{name}, {delivery}, {pace}"
                print(f"  {turn + 1}  {label:52} {found:9,.0f} a second", file=sys.stderr)
                best[name, delivery, pace] = max(best.get((name, delivery, pace), 0.0), found)
    return best


def _beside(best: dict[tuple[str, str, str], float], scale: Scale) -> list[Result]:
    """Put the rates side by side, as nanoseconds for a record."""
    results: list[Result] = []
    for delivery, pace in itertools.product(DELAY_MS, scale.paces):
        case = f"{delivery}, {pace}; {messages.case(scale)}"
        ours = 1e9 / best[OURS, delivery, pace]
        judged = pace == THROUGHPUT
        bounds = {PYTHON: TIMES_PYTHON, LOOP: OF_THE_LOOP if judged else at_least(None)}
        for name, wanted in bounds.items():
            if (name, delivery, pace) in best:
                other = 1e9 / best[name, delivery, pace]
                results.append(Ratio(RATE, case, name, ours, other, wanted))
        rates = {f"{name} a second": best[name, delivery, pace] for name in (OURS, LOOP)}
        results.append(Figures(RATE, case, rates))
    return results


def _delays(
    broker: Broker, key: Path, best: dict[tuple[str, str, str], float], scale: Scale
) -> list[Result]:
    """Measure how late records are read, at a tenth of the rate."""
    results: list[Result] = []
    for delivery, limit in DELAY_MS.items():
        per_s = best[OURS, delivery, THROUGHPUT] / 10
        contestants = {OURS: worker(broker.bootstrap, key, scale.z, delivery, AT_ONCE)}
        if scale.judged:
            contestants[LOOP] = loop(broker.bootstrap, None, delivery, AT_ONCE)
        shown: dict[str, dict[str, float]] = {}
        for _, (name, command) in itertools.product(range(scale.rounds), contestants.items()):
            late = delays_ms(broker, command, per_s, scale.delay_s)
            p99 = float(np.quantile(late, 0.99))
            if name not in shown or p99 < shown[name]["p99"]:
                half = float(np.median(late))
                shown[name] = {"half": half, "p99": p99, "longest": float(late.max())}
        case = f"{delivery}, {per_s:,.0f} a second"
        p99 = shown[OURS]["p99"]
        results.append(Ratio(f"{DELAY}, p99", case, f"{limit:g} ms", p99, limit, WITHIN, "ms"))
        for name, values in shown.items():
            results.append(Figures(DELAY, f"{case}, {name}", values, "ms"))
    return results
