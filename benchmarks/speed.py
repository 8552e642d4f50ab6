"""How long a decision takes, beside the peers and beside the gate's other ways in."""

from __future__ import annotations

import os
from functools import partial

import peers
from report import Figures, Ratio, Result, Wanted, at_least, at_most
from workloads import Scale, Stream, short

TIMES_ALGORITHM1 = (at_least(3), at_least(5), at_least(5))
TIMES_LIMIT = (at_most(10), at_most(12), at_most(7))
TIMES_REFERENCE = at_least(55)
GROWTH_WITH_Z = at_most(1.5)
TWO_THREADS = at_least(1.4)
STRINGS = at_most(1.8)
THREE_LEVELS = at_most(3.5)
SINGLE = at_least(10)
TIMES_ZANON = at_least(None)


def integer_batch(stream: Stream, scale: Scale) -> list[Result]:
    """Time all values of z, one and two threads, Algorithm 1 in Rust, and the limit."""
    contestants: dict[str, peers.Contestant] = {
        f"z={z}": partial(peers.gate, stream, z) for z in scale.z_values
    }
    contestants["algorithm 1"] = partial(peers.algorithm1, stream, scale.z)
    contestants["limit"] = partial(peers.limit, stream, prefetch=False)
    contestants["limit, prefetching"] = partial(peers.limit, stream, prefetch=True)
    threaded = (os.cpu_count() or 1) > 1
    if threaded:
        contestants["two threads"] = partial(peers.gate, stream, scale.z, threads=2)
    best = peers.best_of(scale.rounds, contestants)

    one = f"z={scale.z}"
    peers.require_agreement(best, one, "algorithm 1", *(["two threads"] if threaded else []))
    case = f"{stream.case} z={scale.z}"
    rank = scale.attribute_counts.index(stream.attribute_count)
    gate, rust = best[one].ns, best["algorithm 1"].ns
    limit = min(best["limit"].ns, best["limit, prefetching"].ns)
    low, high = scale.z_values[0], scale.z_values[-1]
    growth = best[f"z={low}"].ns, best[f"z={high}"].ns
    results: list[Result] = [
        Ratio("integer batch", case, "algorithm 1 in Rust", gate, rust, TIMES_ALGORITHM1[rank]),
        Ratio("integer batch", case, "the limit", gate, limit, TIMES_LIMIT[rank]),
        Ratio(
            "growth with z",
            f"{stream.case} z={high}",
            f"z={low}",
            growth[1],
            growth[0],
            GROWTH_WITH_Z,
        ),
    ]
    if threaded:
        two = best["two threads"].ns
        results.append(Ratio("two threads", case, "one thread", two, gate, TWO_THREADS))
    else:
        results.append(Figures("two threads", case, {}, note="not measured: one core"))
    gates = {name: outcome for name, outcome in best.items() if name.startswith("z=")}
    results += [
        Figures("integer batch", stream.case, {z: gate.ns for z, gate in gates.items()}, "ns"),
        Figures("released", stream.case, {z: gate.percent for z, gate in gates.items()}, "%"),
    ]
    return results


def slow_peers(stream: Stream, scale: Scale) -> list[Result]:
    """Time the reference and the authors' program on a prefix each, the gate on the same."""
    prefix = stream.prefix(scale.reference_prefix)
    best = peers.best_of(
        scale.slow_rounds,
        {
            "gate": partial(peers.gate, prefix, scale.z),
            "the reference": partial(peers.reference, prefix, scale.z),
        },
    )
    peers.require_agreement(best, "gate", "the reference")
    results: list[Result] = [_against(best, "the reference", prefix, scale, TIMES_REFERENCE)]
    if not peers.zanon_installed():
        return [*results, Figures("zanon", stream.case, {}, note="not installed")]

    prefix = stream.prefix(scale.zanon_prefix)
    best = peers.best_of(
        scale.slow_rounds,
        {
            "gate": partial(peers.gate, prefix, scale.z),
            "zanon": partial(peers.zanon, prefix, scale.z),
        },
    )
    # No need for the two to agree: it is not ours, and where it draws its bounds is its own affair.
    counts = {
        "z at its end": best["zanon"].facts["z"],
        "released": best["zanon"].facts["released"],
        "by the gate": best["gate"].facts["released"],
    }
    results += [
        _against(best, "zanon", prefix, scale, TIMES_ZANON),
        Figures("zanon", f"{stream.case}, first {short(len(prefix))}", counts),
    ]
    return results


def string_columns(stream: Stream, scale: Scale) -> list[Result]:
    """Time Arrow strings beside integers, on the same stream."""
    if stream.user_count != max(scale.user_counts):
        return []
    text = stream.with_strings()
    best = peers.best_of(
        scale.rounds,
        {
            "integers": partial(peers.gate, stream, scale.z),
            "strings": partial(peers.gate, text, scale.z),
        },
    )
    peers.require_agreement(best, "integers", "strings")
    case = f"{stream.case} z={scale.z}"
    strings, integers = best["strings"].ns, best["integers"].ns
    return [Ratio("Arrow strings", case, "the integer batch", strings, integers, STRINGS)]


def three_levels(stream: Stream, scale: Scale) -> list[Result]:
    """Time three levels of each attribute in one call, beside the attribute alone."""
    if stream.user_count != max(scale.user_counts):
        return []
    levels = [stream.attributes // 100, stream.attributes // 10, stream.attributes]
    best = peers.best_of(
        scale.rounds,
        {
            "one": partial(peers.gate, stream, scale.z),
            "three": partial(peers.gate_levels, stream, scale.z, levels),
        },
    )
    peers.require_agreement(best, "one", "three")
    case = f"{stream.case} z={scale.z}"
    return [
        Ratio("three levels", case, "one level", best["three"].ns, best["one"].ns, THREE_LEVELS)
    ]


def one_at_a_time(stream: Stream, scale: Scale) -> list[Result]:
    """Time ``observe`` on strings from a Python loop, beside the reference on the same."""
    if stream.user_count != max(scale.user_counts):
        return []
    prefix = stream.prefix(scale.single_prefix).with_strings()
    best = peers.best_of(
        scale.rounds,
        {
            "gate": partial(peers.gate_single, prefix, scale.z),
            "reference": partial(peers.reference, prefix, scale.z),
        },
    )
    peers.require_agreement(best, "gate", "reference")
    case = f"{stream.case} z={scale.z}, first {short(len(prefix))}"
    gate, reference = best["gate"].ns, best["reference"].ns
    return [Ratio("observe() on strings", case, "the reference", gate, reference, SINGLE)]


def _against(
    best: dict[str, peers.Outcome], peer: str, prefix: Stream, scale: Scale, wanted: Wanted
) -> Ratio:
    case = f"{prefix.case} z={scale.z}, first {short(len(prefix))}"
    return Ratio("integer batch", case, peer, best["gate"].ns, best[peer].ns, wanted)
