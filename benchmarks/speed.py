"""How long a decision takes, beside the peers and beside the gate's other ways in."""

from __future__ import annotations

from dataclasses import replace
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
    no_rust = peers.missing(peers.OURS_IN_RUST)
    if not no_rust:
        contestants["algorithm 1"] = partial(peers.algorithm1, stream, scale.z)
        contestants["limit"] = partial(peers.limit, stream, prefetch=False)
        contestants["limit, prefetching"] = partial(peers.limit, stream, prefetch=True)
    if peers.SEVERAL_CORES:
        contestants["two threads"] = partial(peers.gate, stream, scale.z, threads=2)
        contestants["two gates"] = partial(peers.two_gates, stream, scale.z)
    best = peers.best_of(scale.rounds, contestants)

    one = f"z={scale.z}"
    peers.require_agreement(best, one, *best.keys() & {"algorithm 1", "two threads"})
    case = f"{stream.case} z={scale.z}"
    rank = scale.attribute_counts.index(stream.attribute_count)
    gate = best[one].ns
    low, high = (f"z={z}" for z in (scale.z_values[0], scale.z_values[-1]))
    results: list[Result] = []
    if no_rust:
        results.append(Figures("algorithm 1 and limit", case, {}, note=no_rust))
    else:
        rust = best["algorithm 1"].ns
        limit = min(best["limit"].ns, best["limit, prefetching"].ns)
        results += [
            Ratio("integer batch", case, "algorithm 1 in Rust", gate, rust, TIMES_ALGORITHM1[rank]),
            Ratio("integer batch", case, "the limit", gate, limit, TIMES_LIMIT[rank]),
        ]
    growing = f"{stream.case} {high}"
    results.append(Ratio("growth with z", growing, low, best[high].ns, best[low].ns, GROWTH_WITH_Z))
    if peers.SEVERAL_CORES:
        two, apart = best["two threads"].ns, best["two gates"].ns
        results += [
            Ratio("two threads", case, "one thread", two, gate, TWO_THREADS),
            Ratio("two gates, half the stream each", case, "one", apart, gate, at_least(None)),
        ]
    else:
        results.append(Figures("two threads", case, {}, note=peers.ONE_CORE))
    gates = {name: outcome for name, outcome in best.items() if name.startswith("z=")}
    results += [
        Figures("integer batch", stream.case, {z: gate.ns for z, gate in gates.items()}, "ns"),
        Figures("released", stream.case, {z: gate.percent for z, gate in gates.items()}, "%"),
    ]
    return results


def where_the_time_goes(stream: Stream, scale: Scale) -> list[Result]:
    """Time the gate without counting, and without cache misses, beside the whole of it."""
    if stream.user_count != max(scale.user_counts):
        return []
    few = replace(stream, attributes=stream.attributes % 64)
    best = peers.best_of(
        scale.rounds,
        {
            "hashes, clock, fetching": partial(peers.gate_turning_away, stream, scale.z),
            "and counting, 64 attributes": partial(peers.gate, few, scale.z),
            "the whole": partial(peers.gate, stream, scale.z),
        },
    )
    figures = {name: outcome.ns for name, outcome in best.items()}
    return [Figures("where the time goes", f"{stream.case} z={scale.z}", figures, "ns")]


def slow_peers(stream: Stream, scale: Scale) -> list[Result]:
    """Time the reference and the authors' program on a prefix each, the gate on the same."""
    prefix = stream.prefix(scale.reference_prefix)
    results: list[Result] = [
        _side_by_side(
            "integer batch",
            _first(prefix, scale),
            "the reference",
            partial(peers.gate, prefix, scale.z),
            partial(peers.reference, prefix, scale.z),
            scale.slow_rounds,
            TIMES_REFERENCE,
        )
    ]
    if no_zanon := peers.missing(peers.ZANON):
        return [*results, Figures("zanon", stream.case, {}, note=no_zanon)]

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
    gate, zanon = best["gate"].ns, best["zanon"].ns
    return [
        *results,
        Ratio("integer batch", _first(prefix, scale), "zanon", gate, zanon, TIMES_ZANON),
        Figures("zanon", f"{stream.case}, first {short(len(prefix))}", counts),
    ]


def string_columns(stream: Stream, scale: Scale) -> list[Result]:
    """Time Arrow strings beside integers, on the same stream."""
    if stream.user_count != max(scale.user_counts):
        return []
    text = stream.with_strings()
    return [
        _side_by_side(
            "Arrow strings",
            f"{stream.case} z={scale.z}",
            "the integer batch",
            partial(peers.gate, text, scale.z),
            partial(peers.gate, stream, scale.z),
            scale.rounds,
            STRINGS,
        )
    ]


def three_levels(stream: Stream, scale: Scale) -> list[Result]:
    """Time three levels of each attribute in one call, beside the attribute alone."""
    if stream.user_count != max(scale.user_counts):
        return []
    levels = [stream.attributes // 100, stream.attributes // 10, stream.attributes]
    return [
        _side_by_side(
            "three levels",
            f"{stream.case} z={scale.z}",
            "one level",
            partial(peers.gate_levels, stream, scale.z, levels),
            partial(peers.gate, stream, scale.z),
            scale.rounds,
            THREE_LEVELS,
        )
    ]


def one_at_a_time(stream: Stream, scale: Scale) -> list[Result]:
    """Time ``observe`` on strings from a Python loop, beside the reference on the same."""
    if stream.user_count != max(scale.user_counts):
        return []
    prefix = stream.prefix(scale.single_prefix).with_strings()
    return [
        _side_by_side(
            "observe() on strings",
            _first(prefix, scale),
            "the reference",
            partial(peers.gate_single, prefix, scale.z),
            partial(peers.reference, prefix, scale.z),
            scale.rounds,
            SINGLE,
        )
    ]


def _side_by_side(
    what: str,
    case: str,
    beside: str,
    gate: peers.Contestant,
    other: peers.Contestant,
    rounds: int,
    wanted: Wanted,
) -> Ratio:
    """Time two that must release the same."""
    best = peers.best_of(rounds, {what: gate, beside: other})
    peers.require_agreement(best, what, beside)
    return Ratio(what, case, beside, best[what].ns, best[beside].ns, wanted)


def _first(prefix: Stream, scale: Scale) -> str:
    return f"{prefix.case} z={scale.z}, first {short(len(prefix))}"
