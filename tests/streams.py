"""Random streams of operations on a gate: short ones from Hypothesis, long ones from a seed.

Few users, few attributes and short windows, so that ties, re-exposures, users pushed out and back,
late and too late observations are all frequent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple, Protocol

import numpy as np
from hypothesis import strategies as st

from zveil import Gate
from zveil.reference import Reference

FIRST, LAST = -(2**63) + 1, 2**63 - 1  # the times that 64 bits hold, in nanoseconds


class Observe(NamedTuple):
    """One observation, of one attribute or, if `levels` is a list, of several levels."""

    t: int | None
    user: Any
    attribute: Any = None
    levels: list[Any] | None = None


class SetZ(NamedTuple):
    z: int


class Forget(NamedTuple):
    user: Any


class Cut(NamedTuple):
    """Here one batch ends and the next begins."""


class Snapshot(NamedTuple):
    """Here the gate is written to a file and another goes on from it."""


Operation = Observe | SetZ | Forget | Cut | Snapshot


@dataclass(frozen=True)
class Settings:
    """The settings of a gate, durations in nanoseconds."""

    z: int
    window: int
    z_max: int
    lateness: int | None = None
    rule: str = "fall-through"
    fixed_level: int | None = None
    noise: int = 0
    noise_period: int | None = None


@dataclass(frozen=True)
class Stream:
    settings: Settings
    operations: list[Operation]


@dataclass(frozen=True)
class Names:
    """What users, attributes and levels of a stream are called."""

    users: list[Any]
    attributes: list[Any]
    levels: list[list[Any]]  # the labels to choose from, coarsest level first
    ragged: bool = False  # whether observations may have fewer levels than the others


# One person under several spellings, values alike but for their type: what no column can hold.
# A name that stands several times is drawn more often.
MIXED = Names(
    users=[1, "1", b"1", 1.0, 2, "2", 3, "u", "v", "w", *"uvwuvwuvw", None, 0.5],
    attributes=[*"aaaaaaabbb", 1, "1", True, 1.0, None, float("nan")],
    levels=[[*"xxxxx", 1, None], [*"xxxxy", "1", None], [*"aaaaabbb", 1, None]],
    ragged=True,
)
TEXTS = Names(
    users=[*"uvwxyuvwxyuvwxy", None],
    attributes=[*"aaaaabbc", None],
    levels=[[*"xxxxxy", None], [*"xxxxyy", None], [*"aaaaabbc", None]],
)
INTEGERS = Names(
    users=[-1, 0, 1, 2, 3],
    attributes=[0, 0, 0, 1, -1],
    levels=[[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1, 2]],
)
# One attribute for all: the order inside its crowd shows, which decides what forgetting leaves.
CROWDED = Names(
    users=[*"uvwxyz"],
    attributes=["a"],
    levels=[["x"], ["x"], [*"aaab"]],
)

# How far the stream's time moves on from one observation to the next, and how far behind it one is.
AHEAD = [0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 9]
BEHIND = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 5, 12]

# Whatever is random is one choice from a sequence: Hypothesis can make it, or a seeded generator.
Choose = Callable[[Sequence[Any]], Any]


def _settings(choose: Choose, in_time: bool) -> Settings:
    z = choose(range(1, 5))
    noise = choose([0, 0, 1, 3])
    rule = choose(["fall-through", "fixed", "authors"])
    return Settings(
        z=z,
        window=choose([0, 1, 2, 4, 8, 8, 30, 30]),
        z_max=z + noise + choose(range(3)),
        lateness=10**6 if in_time else choose([None, None, 0, 1, 4, 10, 10**6]),
        rule=rule,
        fixed_level=choose(range(3)) if rule == "fixed" else None,
        noise=noise,
        noise_period=choose([None, 1, 3, 7, 10**6]) if noise else None,
    )


def _stream(
    choose: Choose,
    length: int,
    *,
    names: Names = MIXED,
    kinds: tuple[str, ...] = ("attribute", "levels"),
    changes: bool = True,
    snapshots: bool = False,
    in_time: bool = False,
) -> Stream:
    """Choose settings and operations: observations of these kinds, and between them the others.

    `changes` lets z be set and users be forgotten; with `in_time`, nothing is late. Time
    goes on from a start that may lie near either end of what 64 bits hold.
    """
    settings = _settings(choose, in_time)
    choices = [*kinds * (20 // len(kinds)), "cut"]
    choices += ["set z", "forget", "forget"] if changes else []
    choices += ["snapshot"] if snapshots else []
    now = choose([0, 0, 1_700_000_000_000_000_000, FIRST, LAST - 100, LAST])
    operations: list[Operation] = []
    for _ in range(length):
        kind = choose(choices)
        if kind == "cut":
            operations.append(Cut())
        elif kind == "snapshot":
            operations.append(Snapshot())
        elif kind == "set z":
            operations.append(SetZ(choose(range(1, settings.z_max - settings.noise + 1))))
        elif kind == "forget":
            operations.append(Forget(choose([u for u in names.users if u not in (None, 0.5)])))
        else:
            now = min(now + choose(AHEAD), LAST)
            t = max(now - choose(BEHIND), FIRST)
            user = choose(names.users)
            if kind == "attribute":
                operations.append(Observe(t, user, choose(names.attributes)))
            else:
                depth = choose([1, 2, 3, 3, 3]) if names.ragged else len(names.levels)
                levels = [choose(labels) for labels in names.levels[:depth]]
                operations.append(Observe(t, user, levels=levels))
    return Stream(settings, operations)


@st.composite
def streams(draw: st.DrawFn, **options: object) -> Stream:
    """Draw a short stream, which Hypothesis makes shorter still if a test fails on it."""

    def choose(options: Sequence[Any]) -> object:
        return draw(st.sampled_from(options))

    return _stream(choose, choose(range(1, 61)), **options)


def long_stream(seed: int, length: int = 400, **options: object) -> Stream:
    """Make the stream of a seed: long enough for crowds to form, thin out and form again."""
    return _stream(Random(seed).choice, length, **options)


def reference_of(settings: Settings) -> Reference:
    """Make the definition; where there is noise, it is told what a gate of the same key draws."""
    chosen = dict(vars(settings))
    noise, _ = chosen.pop("noise"), chosen.pop("noise_period")
    if not noise:
        return Reference(**chosen)
    gate = gate_of(settings)

    def more(attribute: Any, clock: float) -> int:
        if not isinstance(attribute[0], type):
            levels = [None if label is None else label[1] for label in attribute]
            return gate.level_thresholds(int(clock), levels)[-1] - settings.z
        return gate.threshold(int(clock), attribute[1]) - settings.z

    return Reference(**chosen, more=more)


def gate_of(settings: Settings, **options: object) -> Gate:
    """Make a gate that takes nanoseconds and never asks what time it is."""
    chosen = dict(vars(settings))
    for name in ("window", "lateness", "noise_period"):
        if chosen[name] is not None:
            chosen[name] = f"{chosen[name]}ns"
    if settings.noise:
        options = {"key": bytes(32)} | options
    return Gate(**chosen, time_unit="ns", max_future=None, **options)


class Changeable(Protocol):
    z: int

    def forget(self, user: object) -> object: ...


def observed(gate: Gate | Reference, operation: Observe) -> bool | int | None:
    """Give one observation to a gate or a reference, and its answer."""
    t, user, attribute, levels = operation
    if levels is None:
        return gate.observe(t, user, attribute)
    return gate.observe_levels(t, user, levels)


def changed(gate: Changeable, operation: Operation) -> None:
    """Set z or forget a user; whatever else is no change."""
    if isinstance(operation, SetZ):
        gate.z = operation.z
    elif isinstance(operation, Forget):
        gate.forget(operation.user)


def answers(gate: Gate | Reference, operations: list[Operation]) -> list[bool | int | None]:
    """Run the operations one at a time; give the answers to the observations."""
    decided = []
    for operation in operations:
        if isinstance(operation, Observe):
            decided.append(observed(gate, operation))
        else:
            changed(gate, operation)
    return decided


def batches(operations: list[Operation]) -> list[list[Observe] | Operation]:
    """Join neighbouring observations of one kind into batches, which end at any other operation."""
    joined: list[list[Observe] | Operation] = []
    for operation in operations:
        last = joined[-1] if joined else None
        if not isinstance(operation, Observe):
            joined.append(operation)
        elif isinstance(last, list) and (last[0].levels is None) == (operation.levels is None):
            last.append(operation)
        else:
            joined.append([operation])
    return joined


def column(values: Sequence[Any]) -> np.ndarray:
    """Make a column of 64-bit integers, or of texts some of which may be missing."""
    if all(type(value) is int for value in values):
        return np.array(values, dtype=np.int64)
    assert all(value is None or type(value) is str for value in values)
    return np.array(values, dtype=object)


def decided_at_once(gate: Gate, batch: list[Observe]) -> list[bool | int | None]:
    """Give one batch of `batches` to a gate in a single call, and its answers."""
    times, users, attributes, levels = zip(*batch, strict=True)
    if levels[0] is None:
        return gate.observe_many(column(times), column(users), column(attributes)).tolist()
    columns = [column(labels) for labels in zip(*levels, strict=True)]
    found = gate.observe_levels_many(column(times), column(users), columns).tolist()
    return [None if level < 0 else level for level in found]


def disordered(seed: int, rows: int, users: int, attributes: int, jitter: int) -> list[Observe]:
    """Make a long stream with a few busy attributes, times up to `jitter` out of order."""
    random = np.random.default_rng(seed)
    times = np.arange(rows) // 2 + random.integers(0, jitter + 1, rows)
    # The square crowds small numbers together: some attributes busy, many nearly idle.
    values = (random.random(rows) ** 2 * attributes).astype(np.int64)
    people = random.integers(0, users, rows)
    rowwise = zip(times.tolist(), people.tolist(), values.tolist(), strict=True)
    return [Observe(t, user, attribute) for t, user, attribute in rowwise]
