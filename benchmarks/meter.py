"""What the meter costs beside the gate's own time, and what it weighs."""

from __future__ import annotations

import statistics
from time import perf_counter

import peers
from report import Figures, Ratio, Result, at_most
from workloads import Scale, Stream

import zveil

BESIDE_GATE = at_most(0.6)


def beside_gate(stream: Stream, scale: Scale) -> list[Result]:
    """Time ``Meter.add`` batch by batch behind the gate, and one look at the end.

    Gate and meter take turns at every batch, so that a slow spell of the machine falls on both.
    The ratio is of the sums; the fastest round of each counts.
    """
    rounds = [_turns(stream, scale.z) for _ in range(scale.rounds)]
    gate, meter = (min(each[which] for each in rounds) for which in ("gate", "meter"))
    last = rounds[-1]
    case = f"{stream.case} z={scale.z}"
    count = len(stream)
    look = statistics.median(each["look"] for each in rounds)
    return [
        Ratio("meter", case, "the gate", meter / count, gate / count, BESIDE_GATE),
        Figures(
            "bytes of the meter",
            case,
            {
                "a pair": last["bytes"] / last["pairs"],
                "all": last["bytes"],
            },
            "B",
        ),
        Figures("held by the meter", case, {name: last[name] for name in ("pairs", "users")}),
        Figures("a look", case, {"at the end, a user": look / last["users"]}, "ns"),
    ]


def _turns(stream: Stream, z: int) -> dict[str, float]:
    """Take the stream through a gate and a meter; nanoseconds of each, and what it came to."""
    gate, meter = peers.new_gate(z), zveil.Meter(time_unit="ns")
    deciding = measuring = 0.0
    with peers.quiet_collector():
        for batch in stream.batches():
            start = perf_counter()
            mask = gate.observe_many(batch.times, batch.users, batch.attributes)
            decided = perf_counter()
            meter.add(batch.times, batch.users, batch.attributes, mask)
            deciding += decided - start
            measuring += perf_counter() - decided
        start = perf_counter()
        reading = meter.report()
        look = perf_counter() - start
    return {
        "gate": deciding * 1e9,
        "meter": (measuring + look) * 1e9,
        "look": look * 1e9,
        "pairs": reading.pairs,
        "users": reading.users,
        "bytes": meter.bytes,
    }
