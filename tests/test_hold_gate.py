"""What a gate tells whoever tunes it: crowds, users; and that it can be closed."""

from collections import defaultdict
from random import Random

import numpy as np
import pytest

from zveil import Gate
from zveil.hold.looks import Look
from zveil.reference import Reference

Observations = list[tuple[int, int, str]]


def observations(seed: int, count: int = 3_000, users: int = 60) -> Observations:
    """Make a stream in order of time, of values that differ in how many show them."""
    random = Random(seed)
    clock, found = 0, []
    for _ in range(count):
        clock += random.randrange(3)
        value = min(int(random.expovariate(0.4)), 12)
        found.append((clock, random.randrange(users), f"value-{value}"))
    return found


def crowds(gate: Gate, least: int) -> list[tuple[int, int]]:
    """Give the sizes and spans of crowds, without what tells them apart."""
    _, users, spans = (np.frombuffer(each, np.int64) for each in gate._crowds(least))
    return sorted(zip(users.tolist(), spans.tolist(), strict=True))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_crowds_are_the_users_of_the_window(seed: int, threads: int) -> None:
    window = 200
    gate = Gate(3, window, z_max=1_000, max_future=None, threads=threads)
    seen: dict[str, dict[int, int]] = defaultdict(dict)
    for number, (t, user, value) in enumerate(observations(seed)):
        gate.observe(t, user, value)
        seen[value][user] = t
        if number % 500 == 499:
            sizes = [sum(at >= t - window for at in users.values()) for users in seen.values()]
            for least in (1, 2, 10):
                expected = sorted((size, window * 10**9) for size in sizes if size >= least)
                assert crowds(gate, least) == expected


def test_of_a_crowd_larger_than_remembered_the_time_is_told_that_it_took() -> None:
    gate = Gate(2, 100, z_max=5, max_future=None)
    for t in range(50):
        gate.observe(t, t, "popular")
    assert crowds(gate, 2) == [(5, 4 * 10**9)]
    # At their pace a hundred seconds bring 125 of very many users, and fewer of few.
    assert Look.at([gate], [2], 1e9).users.tolist() == [125]
    assert 60 < Look.at([gate], [2], 100).users[0] < 100


def test_a_closed_gate_counts_and_releases_nothing() -> None:
    gate, reference = Gate(3, 200, z_max=20, max_future=None), Reference(z=3, window=200, z_max=20)
    random, is_closed = Random(5), False
    for t, user, value in observations(5):
        if random.random() < 0.02:
            is_closed = not is_closed
            if is_closed:
                gate.close()
            else:
                gate.z = reference.z = random.choice([1, 2, 3, 7, 20])
        assert gate.is_closed == is_closed
        decided = reference.observe(t, user, value)
        assert gate.observe(t, user, value) == (decided and not is_closed)


def test_a_closed_gate_passes_nothing_and_a_batch_is_veiled() -> None:
    gate = Gate(2, 100, max_future=None)
    gate.close()
    assert not gate.observe_many([0, 1, 2], ["a", "b", "c"], ["x"] * 3).any()
    assert not gate.passes(2, "x")
    gate.z = 2
    assert gate.passes(2, "x")
    assert gate.observe(3, "a", "x")


@pytest.mark.parametrize("threads", [1, 2])
def test_users_are_counted_about(threads: int) -> None:
    gate = Gate(2, 100, max_future=None, threads=threads)
    assert gate._users() is None
    gate._count_users()
    assert gate._users() == 0
    users = np.arange(40_000) % 20_000
    gate.observe_many(np.zeros(40_000), users, users % 7)
    # A user without a value counts too, one without an id does not.
    gate.observe(0, "another", None)
    gate.observe(0, None, "value")
    assert gate._users() == pytest.approx(20_001, rel=0.06)
    saved = gate._census()
    assert saved is not None
    other = Gate(2, 100, max_future=None, key=gate.key)
    other._resume_census(saved)
    assert other._users() == gate._users()
    gate._count_users()
    assert gate._users() == 0
    with pytest.raises(ValueError, match="registers"):
        gate._resume_census(b"short")


def test_text_and_numbers_of_one_user_are_one() -> None:
    gate = Gate(2, 100, max_future=None)
    gate._count_users()
    for user in (7, "7", b"7", 7.0):
        gate.observe(0, user, "x")
    assert gate._users() == pytest.approx(1, abs=0.01)
