"""The gate where it is slowest: its worst case, and the longest wait while its table grows."""

from __future__ import annotations

import gc
from functools import partial
from time import perf_counter

import numpy as np
import peers
from report import Figures, Result
from workloads import Scale, cycling_users, once_seen, short


def worst_case(scale: Scale) -> list[Result]:
    """Time one attribute with exactly z-1 users coming round: every look finds one too few."""
    z = max(scale.z_values)
    observations = scale.worst_case_observations
    stream = cycling_users(z - 1, observations, scale.per_window)
    contestants: dict[str, peers.Contestant] = {"gate": partial(peers.gate, stream, z)}
    no_rust = peers.missing(peers.OURS_IN_RUST)
    if not no_rust:
        contestants["algorithm 1"] = partial(peers.algorithm1, stream, z)
    best = peers.best_of(scale.rounds, contestants)
    peers.require_agreement(best, *contestants)
    case = f"z={z}, {z - 1} users cycling"
    times = Figures("worst case", case, {name: run.ns for name, run in best.items()}, "ns")
    return [times, *([Figures("worst case", case, {}, note=no_rust)] if no_rust else [])]


def stalls(scale: Scale) -> list[Result]:
    """Time each small batch while new attributes fill the table, all within one window."""
    attributes, size = scale.growth_attributes, scale.growth_batch
    stream = once_seen(attributes, attributes, user_count=scale.user_counts[-1])
    rounds = []
    for _ in range(scale.rounds):
        gate = peers.new_gate(scale.z)
        seconds = []
        gc.collect()
        gc.disable()
        for start in range(0, attributes, size):
            batch = stream.part(start, start + size)
            begin = perf_counter()
            gate.observe_many(batch.times, batch.users, batch.attributes)
            seconds.append(perf_counter() - begin)
        gc.enable()
        rounds.append(np.array(seconds) * 1e3)
    # The round with the least noise; never a mixture of rounds, in which a stall could vanish.
    calls = min(rounds, key=lambda milliseconds: float(milliseconds.max()))
    case = f"{short(attributes)} new attributes, {size} a call"
    waits = {
        "longest call": float(calls.max()),
        "99.9 % of calls": float(np.quantile(calls, 0.999)),
        "half of the calls": float(np.median(calls)),
    }
    return [
        Figures("stall while growing", case, waits, "ms"),
        Figures(
            "time while growing", case, {"an observation": calls.sum() * 1e6 / attributes}, "ns"
        ),
    ]
