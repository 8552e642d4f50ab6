"""One way to time the gate and everything it is measured against.

Every function here takes a stream through one contestant, built afresh, and times nothing but
the decisions: construction, conversion to Python objects and reading of results stay outside.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from workloads import START_NS, WINDOW_NS, Integers, Stream

import zveil
import zveil.reference

Mask = NDArray[np.bool_]

# Peers that are not part of zveil, by the modules they are in. One that is not installed is left
# out, and the report says so.
OURS_IN_RUST, ZANON, ORJSON = "zveil_peers", "zanonymity.zanon", "orjson"

# Bytes of memory that each run finds at hand: more than any contestant but Algorithm 1 takes.
_AT_HAND, _AT_HAND_EACH, _MOST_AT_HAND = 64 << 20, 64, 1 << 30

SEVERAL_CORES = (os.cpu_count() or 1) > 1
ONE_CORE = "not measured: one core"


class DisagreementError(Exception):
    """Two contestants decided the same stream differently: no figure means anything then."""


@dataclass(frozen=True)
class Outcome:
    """One run of one contestant."""

    seconds: float
    observations: int
    released: Mask = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    facts: Mapping[str, float] = field(default_factory=dict)

    @property
    def ns(self) -> float:
        """Nanoseconds for each observation."""
        return self.seconds / self.observations * 1e9

    @property
    def percent(self) -> float:
        """Released observations of a hundred."""
        return self.facts["released"] / self.observations * 100


Contestant = Callable[[], Outcome]


def best_of(rounds: int, contestants: Mapping[str, Contestant]) -> dict[str, Outcome]:
    """Let the contestants run in turn, round after round, and keep the fastest run of each.

    In turn, so that a slow spell of the machine falls on all of them; the fastest, because noise
    only ever adds time.
    """
    best: dict[str, Outcome] = {}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            outcome = contestant()
            if name not in best or outcome.seconds < best[name].seconds:
                best[name] = outcome
    return best


def require_agreement(outcomes: Mapping[str, Outcome], *names: str) -> None:
    """Raise DisagreementError unless the named contestants released the same observations."""
    first, *others = names
    expected = outcomes[first].released
    for other in others:
        got = outcomes[other].released
        if not np.array_equal(expected, got):
            count = int(np.count_nonzero(expected != got))
            raise DisagreementError(
                f"{first} and {other} differ on {count} of {len(expected)} observations"
            )


def missing(peer: str) -> str:
    """Say why a peer cannot take part, for the report; nothing if it can."""
    # zanon imports a plotting library, which must not look for a screen.
    os.environ.setdefault("MPLBACKEND", "Agg")
    try:
        importlib.import_module(peer)
    except ImportError:
        return f"not measured: {peer.partition('.')[0]} is not installed"
    return ""


def new_gate(z: int, *, threads: int = 1, lateness: str | None = None) -> zveil.Gate:
    """Make a gate over the workloads' window, for times in nanoseconds."""
    return zveil.Gate(z, "1h", time_unit="ns", threads=threads, lateness=lateness)


def gate(stream: Stream, z: int, *, threads: int = 1, lateness: str | None = None) -> Outcome:
    """Run ``Gate.observe_many`` batch by batch, on integers or strings as the stream has them."""
    contestant = new_gate(z, threads=threads, lateness=lateness)
    batches = list(stream.batches())
    with undisturbed(len(stream)):
        start = perf_counter()
        masks = [contestant.observe_many(b.times, b.users, b.attributes) for b in batches]
        seconds = perf_counter() - start
    released = np.concatenate(masks)
    facts = {"bytes": contestant.stats().bytes, "released": int(released.sum())}
    return Outcome(seconds, len(stream), released, facts)


def two_gates(stream: Stream, z: int) -> Outcome:
    """Run two gates at once that know nothing of each other, half of the batches each.

    No way to share the work between two threads can be faster: it tells what the machine gives.
    """
    contestants = [new_gate(z), new_gate(z)]
    batches = list(stream.batches())

    def half(number: int) -> None:
        for b in batches[number::2]:
            contestants[number].observe_many(b.times, b.users, b.attributes)

    with undisturbed(len(stream)), ThreadPoolExecutor(2) as threads:
        start = perf_counter()
        list(threads.map(half, range(2)))
        seconds = perf_counter() - start
    return Outcome(seconds, len(stream))


def gate_turning_away(stream: Stream, z: int) -> Outcome:
    """Run ``Gate.observe_many`` where every observation is too late: nothing is counted.

    What is left are the hashes, the clock, and memory fetched ahead for nothing.
    """
    contestant = new_gate(z)
    contestant.observe(int(stream.times[-1]) + 10 * WINDOW_NS, 0, 0)
    batches = list(stream.batches())
    with undisturbed(len(stream)):
        start = perf_counter()
        masks = [contestant.observe_many(b.times, b.users, b.attributes) for b in batches]
        seconds = perf_counter() - start
    if contestant.stats().late != len(stream):
        raise DisagreementError("an observation that is too late was counted")
    return Outcome(seconds, len(stream), np.concatenate(masks))


def gate_levels(stream: Stream, z: int, levels: list[Integers]) -> Outcome:
    """Run ``Gate.observe_levels_many`` batch by batch, levels from the coarsest to the finest.

    The finest level sees every observation, so that what it releases is what a gate without
    levels releases: that is the mask of this outcome.
    """
    contestant = new_gate(z)
    starts = range(0, len(stream), stream.per_window)
    batches = [
        (batch, [level[at : at + stream.per_window] for level in levels])
        for at, batch in zip(starts, stream.batches(), strict=True)
    ]
    with undisturbed(len(stream)):
        start = perf_counter()
        answers = [contestant.observe_levels_many(b.times, b.users, own) for b, own in batches]
        seconds = perf_counter() - start
    finest = np.concatenate(answers) == len(levels) - 1
    return Outcome(seconds, len(stream), finest)


def gate_single(stream: Stream, z: int) -> Outcome:
    """Run ``Gate.observe`` from a Python loop, one observation after another."""
    return _one_by_one(new_gate(z).observe, stream)


def reference(stream: Stream, z: int) -> Outcome:
    """Run ``Reference.observe`` from a Python loop, one observation after another."""
    return _one_by_one(zveil.reference.Reference(z, WINDOW_NS).observe, stream)


def algorithm1(stream: Stream, z: int) -> Outcome:
    """Run Algorithm 1 in plain Rust batch by batch; its memory at the end is among the facts."""
    import zveil_peers

    before = zveil_peers.allocated_bytes()
    contestant = zveil_peers.Algorithm1(z, WINDOW_NS)
    released = np.zeros(len(stream), dtype=np.bool_)
    answers = released.view(np.uint8)
    starts = range(0, len(stream), stream.per_window)
    batches = [
        (batch, answers[at : at + stream.per_window])
        for at, batch in zip(starts, stream.batches(), strict=True)
    ]
    with undisturbed(len(stream)):
        start = perf_counter()
        for batch, answer in batches:
            contestant.observe_many(batch.times, batch.users, batch.attributes, answer)
        seconds = perf_counter() - start
    facts = {
        "bytes": zveil_peers.allocated_bytes() - before,
        "live_pairs": contestant.live_pairs(int(stream.times[-1])),
    }
    return Outcome(seconds, len(stream), released, facts)


def limit(stream: Stream, *, prefetch: bool) -> Outcome:
    """Run the limit batch by batch: hash the attribute, touch one counter."""
    import zveil_peers

    contestant = zveil_peers.Limit(stream.attribute_count, prefetch)
    batches = list(stream.batches())
    with undisturbed(len(stream)):
        start = perf_counter()
        for batch in batches:
            contestant.touch_many(batch.attributes)
        seconds = perf_counter() - start
    if contestant.total != len(stream):
        raise DisagreementError(f"the limit touched {contestant.total} of {len(stream)} counters")
    return Outcome(seconds, len(stream))


def zanon(stream: Stream, z: int) -> Outcome:
    """Run the authors' program on a stream shorter than half a window.

    It wants seconds and text, writes what it releases to a file in the current directory, and
    chooses z by itself from time to time. Its z is set before the first observation; on so short
    a stream it does not choose another, and the z at the end is among the facts.
    """
    from zanonymity import zanon as module  # type: ignore[import-untyped]

    seconds_of = (stream.times - START_NS) / 1e9
    text = stream.with_strings()
    rows = list(
        zip(seconds_of.tolist(), text.users.to_pylist(), text.attributes.to_pylist(), strict=True)
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        contestant = module.zanon(WINDOW_NS // 10**9, 0.8, 2)
        contestant.z = z
        with undisturbed(len(stream)):
            start = perf_counter()
            for row in rows:
                contestant.anonymize(row)
            seconds = perf_counter() - start
        contestant.endFiles()
        with Path("output.txt").open(encoding="utf-8") as output:
            released = sum(1 for _ in output)
        z_after = contestant.z
    return Outcome(seconds, len(stream), facts={"released": released, "z": z_after})


def _one_by_one(observe: Callable[[Any, Any, Any], bool], stream: Stream) -> Outcome:
    times = stream.times.tolist()
    users, attributes = stream.users.tolist(), stream.attributes.tolist()
    released = []
    with undisturbed(len(stream)):
        start = perf_counter()
        for t, user, attribute in zip(times, users, attributes, strict=True):
            released.append(observe(t, user, attribute))
        seconds = perf_counter() - start
    return Outcome(seconds, len(stream), np.array(released, dtype=np.bool_))


@contextlib.contextmanager
def undisturbed(observations: int) -> Iterator[None]:
    """Keep what is nobody's time from the clock.

    Python's cyclic collector rests, as with timeit. And memory is at hand: a virtual machine that
    has given memory back to its host gets it again many times slower than it takes to fill it.
    """
    gc.collect()
    gc.disable()
    _use_memory(min(_MOST_AT_HAND, _AT_HAND + _AT_HAND_EACH * observations))
    try:
        yield
    finally:
        gc.enable()


def _use_memory(size: int) -> None:
    """Use memory once, and let it go."""
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        for place in range(0, size, mmap.PAGESIZE):
            memory[place] = 1
