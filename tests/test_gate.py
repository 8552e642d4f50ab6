"""The gate as Python meets it: options, one observation at a time, extremes, errors."""

import asyncio
import pickle
import threading
import time
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest

from zveil import Gate, SnapshotError, Stats


def exact(z: int, window: int, **options: object) -> Gate:
    """A gate on whole nanoseconds that knows no wall clock."""
    return Gate(z, f"{window}ns", time_unit="ns", max_future=None, **options)  # type: ignore[arg-type]


def test_an_observation_is_released_by_the_zth_user() -> None:
    gate = Gate(z=3, window="1h")
    assert [gate.observe(t, user, "a") for t, user in enumerate("xyxzx")] == [
        False, False, False, True, True,
    ]  # fmt: skip


def test_z_1_releases_everything_that_is_not_too_late() -> None:
    gate = exact(1, 10)
    assert gate.observe(100, "x", "a")
    assert gate.observe(90, "x", "a")
    assert not gate.observe(89, "x", "a")
    assert gate.stats().late == 1


def test_counts_add_up() -> None:
    gate = Gate(z=2, window=10, lateness=5, time_unit="s")
    now = int(time.time())
    for t, user, attribute in [
        (now, "x", "a"),  # veiled: alone
        (now, "y", "a"),  # released
        (now - 6, "z", "a"),  # late
        (now + 90_000, "z", "a"),  # future
        (float("nan"), "z", "a"),  # invalid
        (now, None, "a"),  # invalid
        (now, "z", None),  # invalid
    ]:
        gate.observe(t, user, attribute)
    stats = gate.stats()
    assert isinstance(stats, Stats)
    assert (stats.observed, stats.released, stats.veiled) == (7, 1, 6)
    assert (stats.late, stats.future, stats.invalid, stats.refused) == (1, 1, 3, 0)
    assert (stats.attributes, stats.entries) == (1, 2)
    assert stats.clock_ns == now * 10**9


def test_milliseconds_taken_for_seconds_are_found_out() -> None:
    gate = Gate(z=1, window="1h")
    now_ms = time.time_ns() // 10**6
    assert not gate.observe(now_ms, "x", "a")
    assert not gate.observe_many(np.array([now_ms]), ["x"], ["a"]).any()
    assert gate.stats().future == 2
    assert Gate(z=1, window="1h", time_unit="ms").observe(now_ms, "x", "a")


def test_a_future_time_does_not_make_others_late() -> None:
    gate = Gate(z=1, window="1h")
    now = time.time()
    assert not gate.observe(now + 2 * 86_400, "x", "a")
    assert gate.observe(now, "x", "a")
    assert Gate(z=1, window="1h", max_future="3d").observe(now + 2 * 86_400, "x", "a")
    assert Gate(z=1, window="1h", max_future=None).observe(now + 10**8, "x", "a")


@pytest.mark.parametrize("t", [float("nan"), float("inf"), -float("inf"), None, -(10**30), -1e300])
def test_what_is_no_time_is_veiled(t: float | None) -> None:
    gate = Gate(z=1, window="1h")
    assert not gate.observe(t, "x", "a")
    assert gate.stats().invalid == 1


def test_the_limits_of_64_bits() -> None:
    most, least = 2**63 - 1, -(2**63)
    gate = exact(2, most)
    assert not gate.observe(least + 1, "x", "a")
    assert gate.observe(0, "y", "a")  # exactly a window apart: closed
    assert gate.observe(most, "z", "a")
    assert not gate.observe(least, "x", "a")  # the smallest number is no time
    assert gate.stats().invalid == 1
    narrow = exact(2, 1, lateness=0)
    assert not narrow.observe(least + 1, "x", "a")
    assert narrow.observe(least + 2, "y", "a")
    assert not narrow.observe(most - 1, "x", "a")
    assert narrow.observe(most, "y", "a")
    assert not Gate(z=1, window=1, max_future=None).observe(2**62, "x", "a")  # seconds: year 1e11


def test_a_window_of_0_counts_one_moment() -> None:
    gate = exact(2, 0)
    assert [gate.observe(t, u, "a") for t, u in [(5, "x"), (5, "y"), (6, "x"), (6, "y")]] == [
        False, True, False, True,
    ]  # fmt: skip


def test_z_larger_than_the_population_releases_nothing() -> None:
    gate = exact(10_000_000, 10**6)
    users = np.arange(50_000) % 5_000
    assert not gate.observe_many(np.arange(50_000), users, np.zeros(50_000, int)).any()
    assert gate.stats().bytes < 8 * 2**20


def test_a_raised_z_holds_at_once_on_every_attribute() -> None:
    gate = exact(2, 1000, z_max=4)
    for attribute in range(100):
        assert not gate.observe(1, "x", attribute)
        assert gate.observe(2, "y", attribute)
    gate.z = 3
    for attribute in range(100):
        assert not gate.observe(3, "x", attribute)
        assert gate.observe(4, "z", attribute)
    gate.z = 2
    assert gate.observe(5, "x", 7)
    assert gate.z == 2


@pytest.mark.parametrize(
    "same", [7, "7", b"7", np.int64(7), np.uint8(7), np.str_("7"), 7.0, np.float64(7)]
)
def test_one_user_counts_once_whatever_the_form(same: object) -> None:
    gate = Gate(z=2, window="1h")
    gate.observe(0, 7, "a")
    assert not gate.observe(1, same, "a")  # type: ignore[arg-type]
    assert gate.observe(1, "07", "a")


def test_values_of_an_attribute_keep_their_type() -> None:
    gate = Gate(z=2, window="1h")
    values = [1, "1", b"1", 1.0, True, 2**64, str(2**64), -1, 2**63]
    assert not any(gate.observe(0, "x", value) for value in values)
    assert all(gate.observe(0, "y", value) for value in values)
    assert gate.stats().attributes == len(values)


def test_long_and_foreign_texts() -> None:
    gate = Gate(z=2, window="1h")
    texts = ["", " ", "é", "日本", "a" * 10**6, "a" * (10**6 - 1) + "b", "\0", "\0\0"]
    assert not any(gate.observe(0, text + "x", text) for text in texts)
    assert all(gate.observe(0, text + "y", text) for text in texts)


def test_times_may_be_dates() -> None:
    gate = Gate(z=2, window="1h")
    noon = datetime(2026, 3, 1, 12)
    same = [
        noon,
        noon.replace(tzinfo=UTC),
        datetime(2026, 3, 1, 13, tzinfo=timezone(timedelta(hours=1))),
        np.datetime64(noon),
        np.datetime64("2026-03-01T12", "h"),
        pd.Timestamp(noon),
        pd.Timestamp(noon, tz="UTC"),
        1772366400,
        1772366400.0,
        np.int64(1772366400),
        np.float64(1772366400),
    ]
    for t in same:
        gate.observe(t, "x", "a")
        assert gate.stats().clock_ns == 1772366400 * 10**9
    gate.observe(pd.Timestamp(noon) + pd.Timedelta(7, "ns"), "x", "a")
    assert gate.stats().clock_ns == 1772366400 * 10**9 + 7
    gate.observe(date(2026, 3, 2), "x", "a")
    assert gate.stats().clock_ns == 1772409600 * 10**9
    for missing in [pd.NaT, np.datetime64("NaT")]:
        gate.observe(missing, "x", "a")  # type: ignore[arg-type]
    assert gate.stats().invalid == 2


def test_floats_are_taken_to_the_microsecond() -> None:
    gate = Gate(z=2, window=0.2)
    assert not gate.observe(1700000000.1, "x", "a")
    assert gate.observe(1700000000.3, "y", "a")
    gate = Gate(z=2, window="5ns", time_unit="ns", max_future=None)
    assert not gate.observe(1.0, "x", "a")
    assert gate.observe(6.0, "y", "a")
    assert not gate.observe(7.0, "y", "a")


def test_filter_passes_on_what_is_released_as_it_comes() -> None:
    drawn = []

    def events() -> object:
        for event in [(0, "x", "a"), (1, "y", "a"), (2, "y", "b"), (3, "x", "a")]:
            drawn.append(event)
            yield event

    released = Gate(z=2, window="1h").filter(events())  # type: ignore[call-overload]
    assert next(released) == (1, "y", "a")
    assert len(drawn) == 2
    assert list(released) == [(3, "x", "a")]


def test_filter_is_for_async_loops_too() -> None:
    async def events() -> AsyncIterator[dict[str, object]]:
        for t, user in enumerate("xyx"):
            yield {"t": t, "user": user, "page": "a"}

    async def run() -> list[object]:
        gate = Gate(z=2, window="1h")
        kept = gate.filter(events(), time="t", user="user", attribute="page")
        return [event["t"] async for event in kept]

    assert asyncio.run(run()) == [1, 2]


def test_threads_may_share_a_gate() -> None:
    gate = Gate(z=4, window="1h", threads=2)
    times, attributes = np.zeros(50_000, int), np.arange(50_000) % 1_000

    def work(user: int) -> None:
        gate.observe_many(times, np.full(50_000, user), attributes)
        for attribute in range(1_000):
            gate.observe(0, user, attribute)

    workers = [threading.Thread(target=work, args=(user,)) for user in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    stats = gate.stats()
    assert (stats.observed, stats.released) == (153_000, 0)
    assert all(gate.observe(0, "fourth", attribute) for attribute in range(1_000))


def test_forget_takes_a_person_out_of_every_attribute() -> None:
    gate = Gate(z=2, window="1h")
    for attribute in range(10):
        gate.observe(0, "x", attribute)
    assert gate.forget("x") == 10
    assert gate.forget("x") == 0
    assert not any(gate.observe(1, "y", attribute) for attribute in range(10))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"z": 0}, "z: expected a whole number from 1, got 0"),
        ({"z": -3}, "z: expected a whole number from 1, got -3"),
        ({"z": 2**80}, "z: expected a whole number from 1"),
        ({"z": 20_000_000}, "z_max: expected at least z and at most 13421772, got 20000000"),
        ({"z_max": 1}, "z_max: expected at least z and at most"),
        ({"window": "1 hour ago"}, "window: expected a duration such as '1h'"),
        ({"window": -1}, "window: expected a duration"),
        ({"window": float("nan")}, "window: expected a duration"),
        ({"window": float("inf")}, "window: expected a duration"),
        ({"window": "300000d"}, "from 0 to 292 years"),
        ({"window": True}, "window: expected a duration"),
        ({"lateness": "soon"}, "lateness: expected a duration"),
        ({"max_future": -1}, "max_future: expected a duration"),
        ({"time_unit": "h"}, "time_unit: expected 's', 'ms', 'us' or 'ns', got 'h'"),
        ({"rule": "mine"}, "rule: expected 'fall-through', 'fixed' or 'authors', got 'mine'"),
        ({"rule": "fixed"}, "fixed_level: expected with rule='fixed'"),
        ({"fixed_level": 1}, "fixed_level: expected with rule='fixed'"),
        ({"rule": "fixed", "fixed_level": 99}, "fixed_level: expected from 0 to 31, got 99"),
        ({"threads": 0}, "threads: expected a whole number from 1, got 0"),
        ({"threads": 65}, "threads: expected from 1 to 64, got 65"),
        ({"memory_limit": "1MB"}, "memory_limit: expected at least 4194304 bytes"),
        ({"memory_limit": "lots"}, "memory_limit: expected bytes, or a size such as '512MiB'"),
        ({"key": b"short"}, "key: expected 32 bytes"),
    ],
)
def test_a_wrong_option_is_named_with_its_rule(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=r"\w+: ") as caught:
        Gate(**{"z": 2, "window": "1h", **options})  # type: ignore[arg-type]
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("observation", "words"),
    [
        (("noon", "x", "a"), "time: expected a number"),
        ((True, "x", "a"), "time: expected a number"),
        ((0, ["x"], "a"), "user: expected text, bytes, an integer or None, got list"),
        ((0, True, "a"), "user: expected text, bytes, an integer or None, got bool"),
        ((0, "x", {"secret": 1}), "attribute: expected text, bytes, an integer"),
        ((0, "x", "\ud800secret"), "attribute: the text has a lone surrogate"),
    ],
)
def test_a_wrong_type_is_named_without_the_data(
    observation: tuple[object, ...], words: str
) -> None:
    gate = Gate(z=1, window="1h")
    with pytest.raises((TypeError, ValueError)) as caught:
        gate.observe(*observation)  # type: ignore[arg-type]
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)
    assert gate.stats().observed == 0


def test_a_float_that_is_no_id_is_veiled() -> None:
    gate = Gate(z=1, window="1h")
    assert not gate.observe(0, 1.5, "a")
    assert not gate.observe(0, float("nan"), "a")
    assert not gate.observe(0, "x", float("nan"))
    assert gate.stats().invalid == 3


def test_a_z_that_cannot_be_is_refused() -> None:
    gate = Gate(z=2, window="1h", z_max=5)
    for wrong in (0, -1, 6, 2**70):
        with pytest.raises(ValueError, match=r"z: expected"):
            gate.z = wrong
    for wrong_type in (True, 1.5, "3"):
        with pytest.raises(TypeError, match="z: expected a whole number"):
            gate.z = wrong_type  # type: ignore[assignment]
    assert gate.z == 2


def test_filter_says_where_it_looks() -> None:
    with pytest.raises(ValueError, match="say where they are"):
        list(Gate(z=2, window="1h").filter([{"ts": 0, "uid": 1, "host": "a"}]))


def test_levels_are_checked() -> None:
    gate = Gate(z=2, window="1h")
    for levels in ([], ["a"] * 33):
        with pytest.raises(ValueError, match="levels: expected 1 to 32 levels"):
            gate.observe_levels(0, "x", levels)
    with pytest.raises(TypeError, match="levels: expected a list of levels"):
        gate.observe_levels(0, "x", "abc")  # type: ignore[arg-type]
    assert gate.observe_levels(0, "x", [None, None]) is None
    assert gate.stats().invalid == 1


def test_a_gate_is_not_pickled_and_shows_no_secret() -> None:
    gate = Gate(z=2, window="1h", key=b"k" * 32)
    with pytest.raises(TypeError, match="snapshot"):
        pickle.dumps(gate)
    assert repr(gate) == "Gate(z=2, window_ns=3600000000000, z_max=2, lateness_ns=3600000000000)"
    assert gate.key == b"k" * 32
    assert Gate(z=2, window="1h").key != Gate(z=2, window="1h").key


def test_a_gate_goes_on_from_its_bytes() -> None:
    key = b"k" * 32
    gate, twin = (Gate(z=3, window="1h", time_unit="ms", key=key) for _ in range(2))
    visits = [(number * 40_000, f"u{number % 5}", f"a{number % 3}") for number in range(200)]
    for visit in visits:
        assert gate.observe(*visit) == twin.observe(*visit)
        gate = Gate.from_bytes(gate.to_bytes(), key)
    assert gate.stats(entries=False) == twin.stats(entries=False)


def test_bytes_of_another_key_or_altered_are_refused() -> None:
    gate = Gate(z=3, window="1h", key=b"k" * 32)
    gate.observe(0, "ada", "example.org")
    state = gate.to_bytes()
    assert b"example" not in state
    for changed in (state[:-1], state[:60] + bytes([state[60] ^ 1]) + state[61:], b"", b"x" * 100):
        with pytest.raises(SnapshotError):
            Gate.from_bytes(changed, gate.key)
    with pytest.raises(SnapshotError, match="key"):
        Gate.from_bytes(state, b"o" * 32)
    with pytest.raises(ValueError, match="key: expected the 32 bytes"):
        Gate.from_bytes(state, None)  # type: ignore[arg-type]
