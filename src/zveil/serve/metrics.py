"""The figures as Prometheus reads them: its text format, version 0.0.4.

Labels are names of the policy, kinds of problems, routes and statuses: never a value of the data.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from zveil import __version__
from zveil.meter import KS
from zveil.serve.monitor import BOUNDS_S, Figures, Flow, Part
from zveil.serve.traffic import Traffic

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[Mapping[str, str], float]


@dataclass(frozen=True)
class Metric:
    """A metric: what it is called, of which kind it is, and what it means."""

    name: str
    kind: str
    help: str


METRICS = {
    each.name: each
    for each in (
        Metric("zveil_info", "gauge", "Version and fingerprint of the policy; always 1."),
        Metric("zveil_lines_total", "counter", "Lines of text that came in."),
        Metric("zveil_records_total", "counter", "Good records: each was decided."),
        Metric("zveil_records_left_total", "counter", "Records that left."),
        Metric("zveil_observations_total", "counter", "Observations decided."),
        Metric("zveil_released_total", "counter", "Observations released."),
        Metric("zveil_veiled_total", "counter", "Observations veiled, by reason."),
        Metric("zveil_late_total", "counter", "Observations veiled because they came too late."),
        Metric("zveil_refused_total", "counter", "Observations that met the memory limit."),
        Metric("zveil_bad_lines_total", "counter", "Lines that are no records, by kind."),
        Metric("zveil_repeated_total", "counter", "Events left out: their id had been seen."),
        Metric("zveil_attributes", "gauge", "Values remembered now."),
        Metric("zveil_state_bytes", "gauge", "Memory of the state."),
        Metric("zveil_z", "gauge", "Users who must share a value."),
        Metric("zveil_window_seconds", "gauge", "How far back they count."),
        Metric(
            "zveil_visible_users",
            "gauge",
            "Users with something released since pseudonyms last changed.",
        ),
        Metric("zveil_visible_classes", "gauge", "Different sets of values that they have."),
        Metric(
            "zveil_alike_users",
            "gauge",
            "Visible users whose set of values is that of at least k users, them included.",
        ),
        Metric("zveil_meter_bytes", "gauge", "Memory of what is measured."),
        Metric("zveil_meter_stopped", "gauge", "1 while this period is not measured, else 0."),
        Metric("zveil_hold_wanted", "gauge", "Share of visible users to be k alike."),
        Metric("zveil_hold_outlook", "gauge", "Share that the period is expected to end with."),
        Metric("zveil_hold_closed", "gauge", "1 while nothing is released to hold it, else 0."),
        Metric(
            "zveil_hold_changes_total", "counter", "Times that z was set, by what became of it."
        ),
        Metric(
            "zveil_decision_seconds",
            "histogram",
            "Time from the arrival of a block of events to its decision.",
        ),
        Metric("zveil_snapshot_age_seconds", "gauge", "Time since the state was saved."),
        Metric("zveil_snapshot_failures_total", "counter", "Times that saving it failed."),
        Metric("zveil_http_requests_total", "counter", "Requests, by route and status."),
        Metric("zveil_http_refused_total", "counter", "Requests turned away, by problem."),
        Metric("zveil_http_bytes_in_total", "counter", "Bytes of bodies that came in."),
        Metric("zveil_http_bytes_out_total", "counter", "Bytes of answers."),
        Metric("zveil_http_running", "gauge", "Requests now running."),
        Metric("zveil_http_connections", "gauge", "Connections now open."),
        Metric("zveil_kafka_lag", "gauge", "Messages that are not decided yet, by partition."),
        Metric("zveil_kafka_replaying", "gauge", "Partitions that rebuild what they had seen."),
        Metric("zveil_kafka_replayed_total", "counter", "Messages seen again for that."),
        Metric("zveil_kafka_moves_total", "counter", "Times that partitions came or went."),
        Metric("zveil_kafka_commits_total", "counter", "Commits of offsets."),
        Metric("zveil_kafka_aborts_total", "counter", "Transactions that were aborted."),
        Metric(
            "zveil_kafka_split_total",
            "counter",
            "Times that a value came on another partition than before.",
        ),
        Metric("process_resident_memory_bytes", "gauge", "Memory of the process."),
        Metric("process_cpu_seconds_total", "counter", "Processor time of the process."),
        Metric("process_start_time_seconds", "gauge", "When the process began."),
    )
}
"""All metrics there are, by name."""

_BEGAN = time.time()


def exposition(found: Figures, traffic: Traffic | None = None) -> bytes:
    """Write the figures out.

    Parameters
    ----------
    found
        Of the stream.
    traffic
        What goes over the wire; None beside a pipe.
    """
    lines: list[str] = []
    for name, samples in _all(found, traffic):
        metric = METRICS[name]
        lines.append(f"# HELP {name} {metric.help}")
        lines.append(f"# TYPE {name} {metric.kind}")
        if metric.kind == "histogram":
            lines += _histogram(name, found)
        lines += [_line(name, labels, value) for labels, value in samples]
    return ("\n".join(lines) + "\n").encode()


def _all(found: Figures, traffic: Traffic | None) -> Iterator[tuple[str, Iterable[Sample]]]:
    yield "zveil_info", [({"version": __version__, "policy": found.policy}, 1)]
    yield "zveil_lines_total", _one(found.lines)
    yield "zveil_records_total", _one(found.records)
    yield "zveil_records_left_total", _one(found.left)
    parts = found.parts
    yield "zveil_observations_total", [(_of(part), part.observed) for part in parts]
    yield "zveil_released_total", [(_of(part), part.released) for part in parts]
    yield (
        "zveil_veiled_total",
        [
            ({**_of(part), "reason": reason}, count)
            for part in parts
            for reason, count in part.veiled.items()
        ],
    )
    yield "zveil_late_total", [(_of(part), part.veiled["late"]) for part in parts]
    yield "zveil_refused_total", [(_of(part), part.refused) for part in parts]
    yield "zveil_bad_lines_total", [({"kind": kind}, count) for kind, count in found.bad.items()]
    yield "zveil_repeated_total", _one(found.repeated)
    yield "zveil_attributes", [(_of(part), part.attributes) for part in parts]
    yield "zveil_state_bytes", [(_of(part), part.state_bytes) for part in parts]
    yield "zveil_z", [(_of(part), part.z) for part in parts]
    yield "zveil_window_seconds", [(_of(part), part.window_ns / 1e9) for part in parts]
    yield from _measured(found)
    yield "zveil_decision_seconds", []
    if found.snapshot_age is not None:
        yield "zveil_snapshot_age_seconds", _one(found.snapshot_age)
    yield "zveil_snapshot_failures_total", _one(found.snapshot_failures)
    if traffic is not None:
        yield (
            "zveil_http_requests_total",
            [
                ({"route": route, "status": str(status)}, count)
                for (route, status), count in sorted(traffic.requests.items())
            ],
        )
        refused = sorted(traffic.refused.items())
        yield "zveil_http_refused_total", [({"problem": kind}, count) for kind, count in refused]
        yield "zveil_http_bytes_in_total", _one(traffic.bytes_in)
        yield "zveil_http_bytes_out_total", _one(traffic.bytes_out)
        yield "zveil_http_running", _one(traffic.running)
        yield "zveil_http_connections", _one(traffic.connections)
    if found.flow is not None:
        yield from _of_kafka(found.flow)
    resident = resident_bytes()
    if resident is not None:
        yield "process_resident_memory_bytes", _one(resident)
    times = os.times()
    yield "process_cpu_seconds_total", _one(times.user + times.system)
    yield "process_start_time_seconds", _one(_BEGAN)


def _of_kafka(flow: Flow) -> Iterator[tuple[str, Iterable[Sample]]]:
    lags = sorted(flow.lags.items())
    yield "zveil_kafka_lag", [({"partition": str(number)}, lag) for number, lag in lags]
    yield "zveil_kafka_replaying", _one(flow.replaying)
    yield "zveil_kafka_replayed_total", _one(flow.replayed)
    yield "zveil_kafka_moves_total", _one(flow.moves)
    yield "zveil_kafka_commits_total", _one(flow.commits)
    yield "zveil_kafka_aborts_total", _one(flow.aborts)
    split = [({"attribute": name}, count) for name, count in flow.split.items()]
    yield "zveil_kafka_split_total", split


def _measured(found: Figures) -> Iterator[tuple[str, Iterable[Sample]]]:
    meter, hold = found.meter, found.hold
    if meter is not None:
        if not meter.is_stopped:
            yield "zveil_visible_users", _one(meter.users)
            yield "zveil_visible_classes", _one(meter.classes)
            yield "zveil_alike_users", [({"k": str(k)}, meter.at_least(k)) for k in KS]
        yield "zveil_meter_bytes", _one(found.meter_bytes)
        yield "zveil_meter_stopped", _one(meter.is_stopped)
    if hold is not None:
        yield "zveil_hold_wanted", [({"k": str(hold.k)}, hold.wanted)]
        if hold.outlook is not None:
            yield "zveil_hold_outlook", [({"k": str(hold.k)}, hold.outlook)]
        yield "zveil_hold_closed", _one(hold.z is None)
        yield (
            "zveil_hold_changes_total",
            [({"kind": kind}, count) for kind, count in hold.changes.items()],
        )


def resident_bytes() -> int | None:
    """Give the memory of this process; None where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def _histogram(name: str, found: Figures) -> Iterator[str]:
    below = 0
    for bound, count in zip((*BOUNDS_S, float("inf")), found.latency.counts, strict=True):
        below += count
        label = "+Inf" if bound == float("inf") else repr(bound)
        yield _line(f"{name}_bucket", {"le": label}, below)
    yield _line(f"{name}_sum", {}, found.latency.sum_s)
    yield _line(f"{name}_count", {}, found.latency.count)


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    said = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    number = str(int(value)) if float(value).is_integer() else repr(float(value))
    return f"{name}{{{said}}} {number}" if said else f"{name} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _one(value: float) -> list[Sample]:
    return [({}, value)]


def _of(part: Part) -> dict[str, str]:
    return {"attribute": part.attribute}
