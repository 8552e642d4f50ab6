"""The gate against the reference, on random streams and however they are handed over."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from streams import (
    CROWDED,
    INTEGERS,
    MIXED,
    TEXTS,
    Names,
    Observe,
    Operation,
    Settings,
    Snapshot,
    Stream,
    answers,
    batches,
    changed,
    decided_at_once,
    disordered,
    gate_of,
    long_stream,
    observed,
    reference_of,
    streams,
)

from zveil import Gate
from zveil.reference import Reference

KINDS = [("attribute",), ("levels",), ("attribute", "levels")]
columns = st.sampled_from([TEXTS, INTEGERS, CROWDED]).flatmap
threads = st.integers(1, 4)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("snapshots")


def assert_counts(gate: Gate, reference: Reference) -> None:
    stats = gate.stats()
    for name in ("observed", "released", "veiled", "late", "invalid"):
        assert getattr(stats, name) == getattr(reference, name), name
    assert stats.future == stats.refused == 0


def assert_equal_one_by_one(stream: Stream) -> None:
    gate, reference = gate_of(stream.settings), reference_of(stream.settings)
    for number, operation in enumerate(stream.operations):
        if isinstance(operation, Observe):
            expected = observed(reference, operation)
            assert observed(gate, operation) == expected, (number, operation)
        else:
            changed(gate, operation)
            changed(reference, operation)
    assert_counts(gate, reference)


def assert_equal_in_batches(stream: Stream, threads: int) -> None:
    gate, reference = gate_of(stream.settings, threads=threads), reference_of(stream.settings)
    for batch in batches(stream.operations):
        if isinstance(batch, list):
            expected = [observed(reference, operation) for operation in batch]
            assert decided_at_once(gate, batch) == expected, batch
        else:
            changed(gate, batch)
            changed(reference, batch)
    assert_counts(gate, reference)


@given(streams(names=MIXED))
@settings(max_examples=150)
def test_one_by_one(stream: Stream) -> None:
    assert_equal_one_by_one(stream)


@given(streams(names=CROWDED))
@settings(max_examples=150)
def test_one_by_one_in_one_crowd(stream: Stream) -> None:
    assert_equal_one_by_one(stream)


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("names", [MIXED, CROWDED], ids=["mixed", "crowded"])
def test_one_by_one_at_length(names: Names, kinds: tuple[str, ...]) -> None:
    for seed in range(100):
        assert_equal_one_by_one(long_stream(seed, names=names, kinds=kinds))


@given(columns(lambda names: streams(names=names)), threads)
@settings(max_examples=150)
def test_any_cut_into_batches(stream: Stream, threads: int) -> None:
    assert_equal_in_batches(stream, threads)


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize(
    "names", [TEXTS, INTEGERS, CROWDED], ids=["texts", "integers", "one crowd"]
)
def test_any_cut_into_batches_at_length(names: Names, kinds: tuple[str, ...]) -> None:
    for seed in range(50):
        assert_equal_in_batches(long_stream(seed, names=names, kinds=kinds), threads=1 + seed % 4)


def assert_equal_with_snapshots(stream: Stream, folder: Path, *, at_once: bool) -> None:
    """Go on from a snapshot, on another number of threads, wherever the stream says so."""
    gate, reference = gate_of(stream.settings), reference_of(stream.settings)
    for number, batch in enumerate(batches(stream.operations)):
        if isinstance(batch, list):
            expected = [observed(reference, operation) for operation in batch]
            found = decided_at_once(gate, batch) if at_once else answers(gate, list(batch))
            assert found == expected, (number, batch)
        elif isinstance(batch, Snapshot):
            gate.snapshot(folder / "gate")
            gate = Gate.restore(folder / "gate", gate.key, threads=1 + number % 4)
            assert gate.z == reference.z
        else:
            changed(gate, batch)
            changed(reference, batch)
    assert_counts(gate, reference)


@given(stream=streams(names=MIXED, snapshots=True))
@settings(max_examples=75)
def test_snapshots_one_by_one(stream: Stream, folder: Path) -> None:
    assert_equal_with_snapshots(stream, folder, at_once=False)


@given(stream=columns(lambda names: streams(names=names, snapshots=True)))
@settings(max_examples=75)
def test_snapshots_between_batches(stream: Stream, folder: Path) -> None:
    assert_equal_with_snapshots(stream, folder, at_once=True)


@pytest.mark.parametrize("at_once", [False, True])
def test_snapshots_at_length(folder: Path, *, at_once: bool) -> None:
    for seed in range(30):
        stream = long_stream(seed, names=CROWDED if seed % 2 else TEXTS, snapshots=True)
        assert_equal_with_snapshots(stream, folder, at_once=at_once)


def assert_equal_in_parts(stream: Stream, parts: int) -> None:
    """Split a stream by attribute, or by the coarsest level, over several gates."""
    expected = answers(reference_of(stream.settings), stream.operations)
    gates = [gate_of(stream.settings) for _ in range(parts)]
    homes: dict[object, Gate] = {}
    found = []
    for operation in stream.operations:
        if isinstance(operation, Observe):
            levels = operation.levels
            home = operation.attribute if levels is None else ("level", *levels[:1])
            # Types tell attributes apart, which dictionaries do not.
            gate = homes.setdefault(repr(home), gates[len(homes) % parts])
            found.append(observed(gate, operation))
        else:
            for gate in gates:
                changed(gate, operation)
    assert found == expected
    stats = [gate.stats() for gate in gates]
    assert sum(part.released for part in stats) == len(expected) - sum(
        answer is None or answer is False for answer in expected
    )
    assert sum(part.late for part in stats) == 0


@given(streams(in_time=True), st.integers(1, 4))
@settings(max_examples=100)
def test_any_split_by_attribute(stream: Stream, parts: int) -> None:
    assert_equal_in_parts(stream, parts)


@pytest.mark.parametrize("parts", [2, 3])
def test_any_split_by_attribute_at_length(parts: int) -> None:
    for seed in range(50):
        assert_equal_in_parts(long_stream(seed, in_time=True), parts)


def assert_equal_at_once(
    chosen: Settings, observations: list[Observe], cuts: list[int], threads: int
) -> None:
    """Hand over a long stream in the few batches that the cuts make of it."""
    gate, reference = gate_of(chosen, threads=threads), reference_of(chosen)
    operations: list[Operation] = list(observations)
    expected = answers(reference, operations)
    edges = [0, *sorted(cuts), len(observations)]
    found = []
    for start, end in pairwise(edges):
        if start < end:
            found += decided_at_once(gate, observations[start:end])
    assert found == expected
    assert_counts(gate, reference)
    # A stream without late rows, or with nothing to tell apart, would show little.
    assert 0 < reference.late < reference.observed // 2
    assert reference.released > 0
    assert reference.released < reference.observed - reference.late


def levelled(observations: list[Observe]) -> list[Observe]:
    """Put each attribute under two coarser ones."""
    return [
        Observe(t, user, levels=[attribute % 3, attribute % 40, attribute])
        for t, user, attribute, _ in observations
    ]


def texts(observations: list[Observe]) -> list[Observe]:
    """Write users and attributes as texts."""
    return [
        Observe(t, f"user {user}", f"host{attribute}.example.org")
        for t, user, attribute, _ in observations
    ]


ROWS = 20_000  # enough for a gate to use its threads


@given(
    seed=st.integers(0, 2**32),
    z=st.integers(2, 30),
    lateness=st.integers(20, 35),
    cuts=st.lists(st.integers(0, ROWS), max_size=2),
    threads=threads,
)
# Without shrinking: fewer seeds of as many rows would not be easier to read.
@settings(max_examples=15, phases=[Phase.reuse, Phase.generate])
def test_large_batches(seed: int, z: int, lateness: int, cuts: list[int], threads: int) -> None:
    chosen = Settings(z=z, z_max=z, window=500, lateness=lateness)
    observations = disordered(seed, ROWS, users=60, attributes=300, jitter=40)
    assert_equal_at_once(chosen, observations, cuts, threads)


@pytest.mark.parametrize("rule", ["fall-through", "fixed", "authors"])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_large_batches_of_levels(rule: str, threads: int) -> None:
    fixed_level = 1 if rule == "fixed" else None
    chosen = Settings(z=8, z_max=9, window=300, lateness=30, rule=rule, fixed_level=fixed_level)
    observations = levelled(disordered(threads, ROWS, users=60, attributes=300, jitter=40))
    assert_equal_at_once(chosen, observations, [1000], threads)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_large_batches_of_texts(threads: int) -> None:
    chosen = Settings(z=5, z_max=5, window=500, lateness=30)
    observations = texts(disordered(threads, ROWS, users=60, attributes=300, jitter=40))
    assert_equal_at_once(chosen, observations, [], threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_state_that_grows_and_is_reclaimed(threads: int) -> None:
    # Many more attributes than any cache holds, most of them idle for longer than the window.
    chosen = Settings(z=3, z_max=4, window=20_000, lateness=900)
    observations = disordered(threads, 300_000, users=5_000, attributes=80_000, jitter=1_000)
    assert_equal_at_once(chosen, observations, [7, 150_000], threads)


def test_one_by_one_while_the_state_is_reclaimed() -> None:
    chosen = Settings(z=2, z_max=2, window=2_000, lateness=90)
    observations = disordered(0, 60_000, users=500, attributes=20_000, jitter=100)
    gate, reference = gate_of(chosen), reference_of(chosen)
    operations: list[Operation] = list(observations)
    assert answers(gate, operations) == answers(reference, operations)
    assert_counts(gate, reference)
    assert gate.stats().attributes < len({o.attribute for o in observations}) / 2
