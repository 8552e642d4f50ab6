"""`zveil kafka` beside a consumer in Python, and beside its own client loop without a gate."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import messages
import numpy as np
import one_process
import topics
from broker import Broker
from messages import AT_ONCE, THROUGHPUT, Scale
from report import Figures, Ratio, Result, at_least, at_most
from watched import HERE, Command, Pace, cores, delays_ms, rate

ZVEIL = Path(sys.executable).parent / "zveil"
TIMES_PYTHON = at_least(5)
OF_THE_LOOP = at_least(0.6)
WITHIN = at_most(1)
DELAY_MS = {"at-least-once": 20.0, "exactly-once": 200.0}
"""What is asked of each delivery, at a tenth of its rate."""

RATE, DELAY = "Kafka, one worker", "Kafka, delay"
Paces = dict[tuple[str, str, str], Pace]
"""By peer, delivery and pace."""
OURS, LOOP, PYTHON, SINGLE = NAMES = (
    "zveil kafka", "the loop without a gate", "the same in Python",
    "the same in Python, one by one",
)  # fmt: skip


def worker(brokers: str, key: Path, z: int, delivery: str, pace: str) -> Command:
    """The program itself."""
    rule = (*messages.FIELDS, "-z", str(z), "--window", "1h", "--key-file", str(key))
    paced = ("--throughput",) if pace == THROUGHPUT else ()

    def command(group: str, source: str, sink: str) -> Sequence[str | Path]:
        between = ("--group", group, "--from", source, "--to", sink, "--delivery", delivery)
        return [ZVEIL, "kafka", "--brokers", brokers, *between, *rule, *paced, "-q"]

    return command


def loop(brokers: str, delivery: str, pace: str, *rule: str) -> Command:
    """The same client loop in Python, without a gate or with the reference in its place."""

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
            delays = _delays(broker, key, best, scale)
    return [*_beside(best, scale), *delays, *_cost(best, scale)]


def _rates(broker: Broker, key: Path, scale: Scale) -> Paces:
    """Let all go through one topic in turn, and keep the fastest run of each."""
    stream = messages.stream(scale)
    source = broker.create_topic("source")
    sent = ((0, name, value) for name, value in messages.keyed(stream))
    topics.produce(broker.bootstrap, source, sent)
    mask = messages.released(stream, scale.z)
    everything = np.ones(len(mask), dtype=np.bool_)
    best: Paces = {}
    for turn in range(scale.kafka_rounds):
        for delivery, pace in itertools.product(DELAY_MS, scale.paces):
            brokers = broker.bootstrap
            contestants = {
                OURS: (worker(brokers, key, scale.z, delivery, pace), mask),
                LOOP: (loop(brokers, delivery, pace), everything),
            }
            if pace == THROUGHPUT:
                rule = (str(scale.z), "3600")
                contestants[PYTHON] = loop(brokers, delivery, pace, *rule), mask
                contestants[SINGLE] = loop(brokers, delivery, pace, *rule, "single"), mask
            for name, (command, wanted) in contestants.items():
                found = rate(broker, source, command, wanted)
                label = f"{name}, {delivery}, {pace}"
                print(f"  {turn + 1}  {label:52} {found.per_s:9,.0f} a second, "
                      f"{found.core_ns:6,.0f} ns of a core", file=sys.stderr)  # fmt: skip
                place = name, delivery, pace
                if place not in best or found.per_s > best[place].per_s:
                    best[place] = found
    return best


def _beside(best: Paces, scale: Scale) -> list[Result]:
    """Put the rates side by side, as nanoseconds for a record."""
    results: list[Result] = []
    for delivery, pace in itertools.product(DELAY_MS, scale.paces):
        case = f"{delivery}, {pace}; {messages.case(scale)}"
        ours = 1e9 / best[OURS, delivery, pace].per_s
        judged = pace == THROUGHPUT
        bounds = {
            PYTHON: TIMES_PYTHON,
            SINGLE: TIMES_PYTHON,
            LOOP: OF_THE_LOOP if judged else at_least(None),
        }
        for name, wanted in bounds.items():
            if (name, delivery, pace) in best:
                other = 1e9 / best[name, delivery, pace].per_s
                results.append(Ratio(RATE, case, name, ours, other, wanted))
        found = {name: best.get((name, delivery, pace)) for name in NAMES}
        rates = {name: round(one.per_s) for name, one in found.items() if one}
        spent = {name: one.core_ns for name, one in found.items() if one}
        results.append(Figures(f"{RATE}, records a second", case, rates))
        results.append(Figures(f"{RATE}, time of a core", case, spent, "ns"))
    return results


def _cost(best: Paces, scale: Scale) -> list[Result]:
    """Tell how many cores it takes, with those of the broker and without."""
    # As many as for Flink: of a longer stream the start is a smaller part.
    native_ns = one_process.ns(replace(scale, records=scale.flink_records))
    results: list[Result] = []
    for delivery in DELAY_MS:
        found = best[OURS, delivery, THROUGHPUT]
        case = f"{delivery}, {messages.case(scale)}"
        results.append(one_process.cost("Kafka, workers", case, found.core_ns, native_ns))
        both = found.core_ns + found.broker_ns
        results.append(one_process.cost("Kafka, with the broker", case, both, native_ns))
    return results


def _delays(broker: Broker, key: Path, best: Paces, scale: Scale) -> list[Result]:
    """Measure how late records are read, at a tenth of the rate."""
    results: list[Result] = []
    for delivery, limit in DELAY_MS.items():
        per_s = best[OURS, delivery, THROUGHPUT].per_s / 10
        contestants = {OURS: worker(broker.bootstrap, key, scale.z, delivery, AT_ONCE)}
        if scale.judged:
            contestants[LOOP] = loop(broker.bootstrap, delivery, AT_ONCE)
        shown: dict[str, dict[str, float]] = {}
        counted = 0
        for _, (name, command) in itertools.product(range(scale.rounds), contestants.items()):
            late = delays_ms(broker, command, per_s, scale.delay_s)
            counted = len(late)
            # One of them, not what lies between two: some may never have come.
            p99 = float(np.quantile(late, 0.99, method="higher"))
            if name not in shown or p99 < shown[name]["p99"]:
                half = float(np.median(late))
                shown[name] = {"half": half, "p99": p99, "longest": float(late.max())}
        case = f"{delivery}, {per_s:,.0f} a second, {counted:,} counted"
        p99 = shown[OURS]["p99"]
        results.append(Ratio(f"{DELAY}, p99", case, f"{limit:g} ms", p99, limit, WITHIN, "ms"))
        for name, values in shown.items():
            results.append(Figures(DELAY, f"{case}, {name}", values, "ms"))
    return results
