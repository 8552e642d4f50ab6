"""What the gate keeps: bytes for each live pair, an endless tail, and what reclaiming costs."""

from __future__ import annotations

from functools import partial

import peers
from report import Figures, Ratio, Result, at_most
from workloads import Scale, Stream, once_seen

PER_PAIR = at_most(0.5)
PER_PAIR_AT_FIRST = at_most(None)
FLAT = at_most(1.05)
RECLAIMING = at_most(None)


def live_pairs(stream: Stream, scale: Scale) -> list[Result]:
    """Weigh each pair (attribute, user) of the last window, beside Algorithm 1 in Rust.

    Judged at the end of the stream. After one window alone nothing can have been reclaimed yet
    by either; that figure stands beside it.
    """
    if stream.attribute_count != max(scale.attribute_counts):
        return []
    if no_rust := peers.missing(peers.OURS_IN_RUST):
        return [Figures("bytes per live pair", f"{stream.case} z={scale.z}", {}, note=no_rust)]
    results: list[Result] = []
    for length, wanted in ((scale.observations, PER_PAIR), (scale.per_window, PER_PAIR_AT_FIRST)):
        part = stream.prefix(length)
        pairs = part.live_pairs()
        rust = peers.algorithm1(part, scale.z)
        if rust.facts["live_pairs"] != pairs:
            raise peers.DisagreementError(f"algorithm 1 holds other than the {pairs} live pairs")
        gate = peers.new_gate(scale.z)
        for batch in part.batches():
            gate.observe_many(batch.times, batch.users, batch.attributes)
        windows = length // scale.per_window
        after = "a window" if windows == 1 else f"{windows} windows"
        case = f"{stream.case} z={scale.z}, after {after}"
        results.append(
            Ratio(
                "bytes per live pair",
                case,
                "algorithm 1 in Rust",
                gate.stats().bytes / pairs,
                rust.facts["bytes"] / pairs,
                wanted,
                "B",
            )
        )
        results.append(Figures("live pairs", case, {"exactly": pairs}))
    return results


def endless_tail(scale: Scale) -> list[Result]:
    """Weigh the gate while every attribute is new: its most in the later half beside the first."""
    stream = once_seen(scale.observations, scale.per_window, user_count=scale.user_counts[-1])
    gate = peers.new_gate(scale.z)
    after = []
    for batch in stream.batches():
        gate.observe_many(batch.times, batch.users, batch.attributes)
        after.append(gate.stats().bytes)
    half = len(after) // 2
    case = f"z={scale.z}, every attribute once"
    results: list[Result] = [
        Ratio(
            "flat over a tail",
            case,
            "windows before half",
            max(after[half:]),
            max(after[:half]),
            FLAT,
            "B",
        )
    ]
    shown = {f"{windows} windows": after[windows - 1] for windows in (2, half, len(after))}
    best = peers.best_of(scale.rounds, {"an observation": partial(peers.gate, stream, scale.z)})
    times = {name: outcome.ns for name, outcome in best.items()}
    return [
        *results,
        Figures("bytes over a tail", case, shown, "B"),
        Figures("time over a tail", case, times, "ns"),
    ]


def reclaiming(stream: Stream, scale: Scale) -> list[Result]:
    """Time a gate that reclaims, beside one whose lateness is so long that it never may."""
    if stream.user_count != max(scale.user_counts):
        return []
    windows = len(stream) // scale.per_window
    best = peers.best_of(
        scale.rounds,
        {
            "reclaiming": partial(peers.gate, stream, scale.z),
            "keeping": partial(peers.gate, stream, scale.z, lateness=f"{2 * windows}h"),
        },
    )
    peers.require_agreement(best, "reclaiming", "keeping")
    with_it, without = best["reclaiming"], best["keeping"]
    case = f"{stream.case} z={scale.z}"
    return [
        Ratio("reclaiming, time", case, "keeping all", with_it.ns, without.ns, RECLAIMING),
        Ratio(
            "reclaiming, bytes",
            case,
            "keeping all",
            with_it.facts["bytes"],
            without.facts["bytes"],
            RECLAIMING,
            "B",
        ),
    ]
