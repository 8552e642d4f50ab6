"""What the meter adds to the gate's time, what it takes of the processor, and what it weighs."""

from __future__ import annotations

import statistics
from time import perf_counter, process_time

import peers
from report import Figures, Ratio, Result, at_most
from workloads import Scale, Stream

import zveil

BESIDE_GATE = at_most(0.6)


def beside_gate(stream: Stream, scale: Scale) -> list[Result]:
    """Time the gate with a meter behind it, one look at the end included, and the gate alone.

    In turns, so that a slow spell of the machine falls on both; the fastest round of each counts.
    Judged is what the meter adds to the time that passes. It works on a core of its own: what it
    takes of the processor, on all cores together, is shown beside.
    """
    # What is imported with the first call is nobody's time.
    _run(stream.prefix(1_000), scale.z, zveil.Meter(time_unit="ns"))
    alone, both = [], []
    for _ in range(scale.meter_rounds):
        alone.append(_run(stream, scale.z, None))
        both.append(_run(stream, scale.z, zveil.Meter(time_unit="ns")))

    def added(which: str) -> float:
        return min(each[which] for each in both) - min(each[which] for each in alone)

    last = both[-1]
    case = f"{stream.case} z={scale.z}"
    count = len(stream)
    gate = min(each["passed"] for each in alone)
    look = statistics.median(each["look"] for each in both)
    return [
        Ratio("meter", case, "the gate", added("passed") / count, gate / count, BESIDE_GATE),
        Figures(
            "processor, for the meter",
            case,
            {"an observation, all threads": added("processor") / count},
            "ns",
        ),
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


def _run(stream: Stream, z: int, meter: zveil.Meter | None) -> dict[str, float]:
    """Take the stream through a gate, and a meter if there is one; nanoseconds, what it holds."""
    gate = peers.new_gate(z)
    held: dict[str, float] = {}
    with peers.undisturbed(len(stream)):
        start, busy = perf_counter(), process_time()
        for batch in stream.batches():
            mask = gate.observe_many(batch.times, batch.users, batch.attributes)
            if meter is not None:
                meter.add(batch.times, batch.users, batch.attributes, mask)
        if meter is not None:
            # Waits until all is taken in, which is no part of a look.
            _ = meter.bytes
            looks = perf_counter()
            reading = meter.report()
            held["look"] = (perf_counter() - looks) * 1e9
        passed, worked = perf_counter() - start, process_time() - busy
    if meter is not None:
        held |= {"pairs": reading.pairs, "users": reading.users, "bytes": meter.bytes}
    return {"passed": passed * 1e9, "processor": worked * 1e9} | held
