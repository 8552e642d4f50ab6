"""Swapped associations against their definition."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from zveil import Gate
from zveil._native import Swap
from zveil.reference import Reference, attribute_key

PLACES = 64
START = 1_700_000_000
KEY = bytes(range(32))


class Seen(NamedTuple):
    t: int
    user: int
    levels: list[Any]


class Definition:
    """The reference, and beside it values released lately; what is drawn is asked for."""

    def __init__(
        self, reference: Reference, draw: Callable[[Seen], tuple[bool, int, int, int]]
    ) -> None:
        self.reference = reference
        self._draw = draw
        self._places: list[tuple[Hashable, Any]] = []

    def observe(self, seen: Seen, *, is_plain: bool) -> tuple[int | None, Any]:
        """Give the level released, and the value that it leaves under."""
        path = tuple(map(attribute_key, seen.levels))
        if is_plain:
            level = 0 if self.reference.observe(seen.t, seen.user, seen.levels[0]) else None
        else:
            level = self.reference.observe_levels(seen.t, seen.user, seen.levels)
        if level is None:
            return None, None
        own = path[0] if is_plain else path[: level + 1]
        value = seen.levels[level]
        is_swapped, start, step, place = self._draw(seen)
        left = value
        if is_swapped:
            around = [(start + n * step) % PLACES for n in range(PLACES)]
            held = [self._places[n] for n in around if n < len(self._places)]
            others = [(key, value) for key, value in held if key != own]
            left = next((value for key, value in others if self.passes(key, seen.t)), value)
        if len(self._places) < PLACES:
            self._places.append((own, value))
        else:
            self._places[place] = own, value
        return level, left

    def passes(self, key: Hashable, t: int) -> bool:
        crowd = self.reference._crowds.get(key)
        if crowd is None:
            return False
        now = max(crowd.clock, t)
        users = [u for u, seen in crowd.last_seen.items() if seen >= now - self.reference.window]
        more = 0 if self.reference.more is None else self.reference.more(key, now)
        return len(users) >= self.reference.z + more


def stream(random: Random, length: int, *, is_plain: bool) -> list[Seen]:
    """Few users and short windows: values begin to pass and cease to, all the time."""
    now, found = START, []
    for _ in range(length):
        now += random.choice([0, 0, 1, 1, 2, 12 if random.random() < 0.1 else 3])
        t = now - random.choice([0, 0, 0, 0, 1, 3, 9, 30])
        value = f"v{int(random.random() ** 2 * 15)}"
        levels = [value] if is_plain else [f"top{int(value[1:]) % 4}", value]
        found.append(Seen(t, random.randrange(12), levels))
    return found


def cut(random: Random, length: int) -> Iterator[slice]:
    at = 0
    while at < length:
        size = random.choice([1, 2, 7, 100, 1_000])
        yield slice(at, at + size)
        at += size


def left_of(swap: Swap, events: Sequence[Seen], *, is_plain: bool) -> list[tuple[int | None, Any]]:
    """Let native code decide: for each row the level released, and what it leaves under."""
    levels = [list(column) for column in zip(*(seen.levels for seen in events), strict=True)]
    decided, rows, values = swap.observe_arrays(
        pa.array([seen.t for seen in events]),
        pa.array([seen.user for seen in events]),
        [pa.array(column).dictionary_encode() for column in levels],
        is_plain,
        None,
    )
    numbers = [None if byte == 255 else byte for byte in decided]
    left = [
        (number, None if number is None else seen.levels[number])
        for number, seen in zip(numbers, events, strict=True)
    ]
    for row, value in zip(rows, values, strict=True):
        assert left[row][1] not in (None, value)
        left[row] = left[row][0], value
    return left


@pytest.mark.parametrize("noise", [0, 3])
@pytest.mark.parametrize("rule", ["plain", "fall-through", "authors", "fixed"])
def test_it_is_the_definition_on_random_streams(rule: str, noise: int) -> None:
    is_plain = rule == "plain"
    options: dict[str, Any] = {} if is_plain else {"rule": rule}
    if rule == "fixed":
        options["fixed_level"] = 1
    swaps = 0
    for seed, z in enumerate([1, 2, 3, 5]):
        random = Random(f"{rule} {noise} {seed}")
        gate = Gate(
            z, 20, noise=noise, max_future=None, lateness=40, threads=1 + seed % 2, key=KEY,
            **options,
        )  # fmt: skip

        def more(key: Any, clock: float, gate: Gate = gate, z: int = z) -> int:
            if isinstance(key[0], type):
                return gate.threshold(clock, key[1]) - z
            return gate.level_thresholds(clock, [value for _, value in key])[-1] - z

        swap = Swap(gate, 0.3)

        def draw(seen: Seen, swap: Swap = swap) -> tuple[bool, int, int, int]:
            drawn = swap.draw(seen.t, seen.user, seen.levels, is_plain)
            assert drawn is not None
            return drawn

        defined = Definition(
            Reference(z, 20, z_max=z + noise, lateness=40, more=more, **options), draw
        )
        events = stream(random, 2_000, is_plain=is_plain)
        found = []
        for part in cut(random, len(events)):
            found += left_of(swap, events[part], is_plain=is_plain)
        wanted = [defined.observe(seen, is_plain=is_plain) for seen in events]
        assert found == wanted
        assert gate.stats().released == sum(level is not None for level, _ in wanted)
        swaps += swap.swapped
    assert swaps > 200


def test_what_leaves_was_released_before_and_passes_when_it_leaves() -> None:
    gate = Gate(3, 20, max_future=None, key=KEY)
    swap, released = Swap(gate, 0.4), set()
    others = 0
    for seen in stream(Random(5), 3_000, is_plain=True):
        [(level, left)] = left_of(swap, [seen], is_plain=True)
        if level is None:
            continue
        released.add(seen.levels[0])
        assert left in released
        assert gate.passes(seen.t, left)
        others += left != seen.levels[0]
    assert others == swap.swapped > 100


def test_where_memory_is_short_nothing_passes_that_would_not_otherwise() -> None:
    random = Random(6)
    events = []
    for row in range(120_000):
        value = f"v{random.randrange(300)}" if random.random() < 0.3 else f"once{row}"
        t = START + row // 40 - random.choice([0, 0, 0, 5, 300])
        events.append(Seen(t, random.randrange(2_000), [value]))
    gate = Gate(4, 400, lateness=800, max_future=None, memory_limit="4MiB", key=KEY)
    left = left_of(Swap(gate, 0.5), events, is_plain=True)
    assert gate.stats().refused > 1_000
    defined = Definition(Reference(4, 400, lateness=800), lambda _: (False, 0, 1, 0))
    others = 0
    for seen, (level, value) in zip(events, left, strict=True):
        defined.reference.observe(seen.t, seen.user, seen.levels[0])
        if level is not None:
            others += value != seen.levels[0]
            assert defined.passes(attribute_key(value), seen.t)
    assert others > 1_000


def test_asking_whether_a_value_passes_counts_nobody() -> None:
    gate = Gate(2, 10, max_future=None)
    gate.observe(0, "ada", "a")
    assert not gate.passes(0, "a")
    assert not gate.passes(0, "never seen")
    assert not gate.passes(0, None)
    gate.observe(5, "bob", "a")
    assert [gate.passes(t, "a") for t in (0, 5, 10, 11)] == [True, True, True, False]
    assert gate.passes(3, "a")
    assert gate.stats().observed == 2
    gate.observe_levels(5, "ada", ["top", "x"])
    gate.observe_levels(5, "bob", ["top", "y"])
    assert gate.levels_pass(5, ["top", "x"]) == [True, False]
    assert gate.levels_pass(5, [None, "x"]) == [False, False]
