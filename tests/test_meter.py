"""The meter: what it shows is what the definition says, however it is fed."""

import json
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from zveil import Gate, Meter, SnapshotError
from zveil.meter import Definition

FIELDS = ("host", "ref")
USERS = [1, 2, 3, "1", "2", b"3", "u", "v", "", None]
VALUES = ["a", "a", "a", "b", "b", "c", "", None]


def shown(meter: Meter | Definition) -> list[Any]:
    return [meter.report(), *meter.periods()]


def drawn(random: Random, length: int) -> list[tuple[int, Any, Any, str]]:
    """Make up releases that go on, stand still and fall behind."""
    now, made = 1_000, []
    for _ in range(length):
        now += random.choice([0, 0, 0, 1, 2, 15])
        t = now - random.choice([0, 0, 0, 1, 3, 9])
        made.append((t, random.choice(USERS), random.choice(VALUES), random.choice(FIELDS)))
    return made


@pytest.mark.parametrize("seed", range(20))
def test_random_releases_are_shown_as_the_definition_has_it(seed: int) -> None:
    random = Random(seed)
    length = random.choice([None, 10, 25, 100])
    lateness = random.choice([0, 3, 30])
    definition = Definition(length=length, lateness=lateness)
    meter = Meter(
        rotate=None if length is None else f"{length}ns", lateness=f"{lateness}ns", time_unit="ns"
    )
    made = drawn(random, 150)
    while made:
        count = random.choice([1, 2, 7, 50])
        part, made = made[:count], made[count:]
        for t, user, value, field in part:
            definition.add(t, user, value, field=field)
            users = pa.array([None if user is None else user_as_bytes(user)], pa.binary())
            meter.add([t], users, [value], field=field)
        assert shown(meter) == shown(definition)
    if random.random() < 0.5:
        later = int(definition.clock) + random.choice([0, 5, 1_000])
        definition.advance(later)
        meter.advance(later)
        assert shown(meter) == shown(definition)


def user_as_bytes(user: Any) -> bytes:
    return user if isinstance(user, bytes) else str(user).encode()


@pytest.mark.parametrize("seed", range(10))
def test_any_cut_into_batches_shows_the_same(seed: int) -> None:
    random = Random(seed)
    made = [(t, u, v) for t, u, v, _ in drawn(random, 400)]
    times, users, values = (
        np.array([row[0] for row in made]),
        pa.array([None if row[1] is None else user_as_bytes(row[1]) for row in made], pa.binary()),
        pa.array([row[2] for row in made]).dictionary_encode(),
    )
    released = np.array([random.random() < 0.8 for _ in made])
    definition = Definition(length=20, lateness=9)
    for (t, user, value), leaves in zip(made, released, strict=True):
        if leaves:
            definition.add(t, user, value)
    for pieces in (1, 3, 40):
        meter = Meter(rotate="20ns", lateness="9ns", time_unit="ns")
        places = sorted(random.randrange(len(made) + 1) for _ in range(pieces - 1))
        for start, stop in zip([0, *places], [*places, len(made)], strict=True):
            part = slice(start, stop)
            meter.add(times[part], users[part], values[part], released[part])
        assert shown(meter) == shown(definition)


def test_columns_of_every_kind_are_taken() -> None:
    wanted = Definition()
    for user, value in [(1, 5), (2, 5), (2, 6), (3, 5)]:
        wanted.add(0, user, value)
    users = [1, 2, 2, 3]
    columns = [
        (users, [5, 5, 6, 5]),
        (np.array(users), np.array([5, 5, 6, 5])),
        (pa.array(list(map(str, users))), pa.array([5, 5, 6, 5], pa.int16())),
        (pa.chunked_array([[1, 2], [2, 3]]), pa.chunked_array([[5], [5, 6, 5]])),
        (np.array([1.0, 2.0, 2.0, 3.0]), pa.array([5, 5, 6, 5]).dictionary_encode()),
    ]
    for who, what in columns:
        meter = Meter()
        meter.add([0, 0, 0, 0], who, what)
        assert meter.report() == wanted.report()
        assert (meter.counts(2), meter.counts(3)) == ((3, 2), (3, 0))


def test_types_and_fields_are_told_apart() -> None:
    meter = Meter()
    for user, value in enumerate([1, "1", 1.0, True, b"1"]):
        meter.add([0], [user], [value])
    meter.add([0], [5], [1], field="other")
    assert meter.report().classes == 6
    meter.add([0], [6], [-0.0])
    meter.add([0], [7], [0.0])
    assert meter.report().sizes == {1: 6, 2: 2}


def test_many_users_and_a_gate() -> None:
    random = np.random.default_rng(3)
    rows = 60_000
    times = np.sort(random.integers(0, 20_000, rows))
    users, values = random.integers(0, 4_000, rows), random.zipf(1.6, rows) % 300
    gate, meter = Gate(z=30, window=600), Meter(rotate=3_600, lateness=600)
    definition = Definition(length=3_600, lateness=600)
    mask = gate.observe_many(times, users, values)
    meter.add(times, users, values, mask)
    rows_of = zip(times[mask].tolist(), users[mask].tolist(), values[mask].tolist(), strict=True)
    for t, user, value in rows_of:
        definition.add(t, user, value)
    found, wanted = meter.periods(), definition.periods()
    assert [reading.sizes for reading in found] == [reading.sizes for reading in wanted]
    assert [reading.pairs for reading in found] == [reading.pairs for reading in wanted]
    assert len(found) == 6
    assert found[0].start_ns == 0
    assert found[1].start_ns == 3_600 * 10**9


def test_looking_now_and_then_shows_what_looking_always_does() -> None:
    random = np.random.default_rng(4)
    users, values = random.integers(0, 100_000, 300_000), random.zipf(2.0, 300_000) % 5
    often, once = Meter(), Meter()
    for start in range(0, len(users), 20_000):
        part = slice(start, start + 20_000)
        for meter in (often, once):
            meter.add(np.zeros(20_000), users[part], values[part])
        often.counts(2)
    assert often.report() == once.report()
    pairs = {(user, value) for user, value in zip(users.tolist(), values.tolist(), strict=True)}
    assert once.report().pairs == len(pairs)


def test_time_passes_where_nothing_is_released() -> None:
    gate, meter = Gate(z=9, window=60), Meter(rotate=60)
    meter.add([0], ["u"], ["a"])
    gate.observe(130, "v", "b")
    meter.follow([gate])
    assert (meter.period, meter.report().users) == (2, 0)
    assert meter.before(1) == (0, 0)
    assert [reading.is_over for reading in meter.periods()] == [True]
    assert meter.bytes == 0


def test_at_its_limit_it_stops_for_the_period() -> None:
    meter = Meter(rotate=60, memory_limit="1MiB")
    many = np.arange(50_000)
    meter.add(np.zeros(50_000), many, many)
    now = meter.report()
    assert now.is_stopped
    assert (now.users, now.share(2), meter.counts(2)) == (0, None, None)
    assert meter.bytes == 0
    meter.add([70, 71], [1, 2], ["a", "a"])
    assert [(each.is_stopped, each.share(2)) for each in meter.periods()] == [
        (True, None), (False, 1.0)
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_what_was_saved_goes_on(seed: int) -> None:
    random = Random(seed)
    key = random.randbytes(32)
    one = Meter(rotate="40ns", lateness="9ns", time_unit="ns", key=key)
    for t, user, value, field in drawn(random, 150):
        if random.random() < 0.1:
            one = Meter.restore(one.save(), key, time_unit="ns")
        whole = Meter.restore(one.save(), key, time_unit="ns")
        for meter in (one, whole):
            name = None if user is None else user_as_bytes(user)
            meter.add([t], pa.array([name], pa.binary()), [value], field=field)
        assert shown(one) == shown(whole)
    saved = one.save()
    assert len(saved) < 100_000
    for wrong in (saved[:-1], saved + b"\0", b"", saved[::-1]):
        with pytest.raises(SnapshotError):
            Meter.restore(wrong, key)
    with pytest.raises(SnapshotError, match="another key"):
        Meter.restore(saved, bytes(32))


def test_mistakes_are_told() -> None:
    with pytest.raises(ValueError, match=r"^rotate: expected a duration"):
        Meter(rotate="soon")
    with pytest.raises(ValueError, match=r"^rotate: expected at least a 100,000th of the lateness"):
        Meter(rotate="1ns", lateness="1h")
    with pytest.raises(ValueError, match=r"^key: expected 32 bytes"):
        Meter(key=b"short")
    meter = Meter()
    with pytest.raises(ValueError, match="columns of one length"):
        meter.add([0], [1, 2], ["a"])
    with pytest.raises(ValueError, match=r"^released: expected one for each row, got 2 of 1"):
        meter.add([0], [1], ["a"], [True, False])
    with pytest.raises(TypeError, match="holds a secret"):
        meter.__reduce__()
    assert meter.report().users == 0


def test_a_reading_is_told_in_json() -> None:
    meter = Meter(rotate="1h")
    meter.add([0, 1, 2], [1, 2, 3], ["a", "a", "b"])
    told = json.loads(json.dumps(meter.report().as_dict()))
    assert told["at_least"] == {"2": 2, "3": 0, "5": 0, "10": 0}
    assert told["shares"]["2"] == pytest.approx(2 / 3)
    assert (told["start_ns"], told["users"], told["classes"], told["pairs"]) == (0, 3, 2, 3)
