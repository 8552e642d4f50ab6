"""Reference against the conformance vectors, and against the definition taken word by word."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from streams import (
    CROWDED,
    MIXED,
    Forget,
    Names,
    Observe,
    Settings,
    SetZ,
    Stream,
    answers,
    changed,
    long_stream,
    observed,
    reference_of,
    streams,
)
from vectors import every_vector, value

from zveil.reference import Reference, attribute_key, user_text


@every_vector
def test_vector(vector: dict[str, Any]) -> None:
    reference = Reference(**vector["settings"])
    for step in vector["steps"]:
        before = reference.late, reference.invalid
        if "set_z" in step:
            reference.z = step["set_z"]
        elif "forget" in step:
            reference.forget(value(step["forget"]))
        elif "observe" in step:
            assert reference.observe(*value(step["observe"])) is step["expect"], step
        else:
            assert reference.observe_levels(*value(step["observe_levels"])) == step["expect"], step
        counted = step.get("counted")
        after = before[0] + (counted == "late"), before[1] + (counted == "invalid")
        assert (reference.late, reference.invalid) == after, step


class Definition:
    """The definition without an algorithm: all that was ever observed, counted anew each time.

    An observation whose user was erased stays in the history with nobody in it: it still says how
    far the clocks are.
    """

    def __init__(self, chosen: Settings) -> None:
        self.chosen = chosen
        self.z = chosen.z
        self.accepted: list[int] = []  # the time of every observation that was not refused
        self.history: list[tuple[int, str | None, str]] = []  # time, user, attribute or level

    def decide(self, operation: Observe) -> bool | int | None:
        t, user, attribute, levels = operation
        nothing = None if levels is not None else False
        labels = [attribute] if levels is None else levels
        present = [n for n, label in enumerate(labels) if label is not None and label == label]
        if user is None or user == 0.5 or not present:
            return nothing
        lateness = self.chosen.window if self.chosen.lateness is None else self.chosen.lateness
        if self.accepted and t < max(self.accepted) - lateness:
            return nothing
        self.accepted.append(t)
        name = self.name(user)
        if levels is None:
            return self.passes(t, name, f"attribute {attribute!r}")
        paths = {n: f"level {['nan' if p != p else p for p in levels[: n + 1]]!r}" for n in present}
        if self.chosen.rule == "fixed":
            n = self.chosen.fixed_level
            return n if n in present and self.passes(t, name, paths[n]) else None
        if self.chosen.rule == "authors":
            passing = [n for n in present if self.passes(t, name, paths[n])]
            return max(passing, default=None)
        for n in reversed(present):
            if self.passes(t, name, paths[n]):
                return n
        return None

    @staticmethod
    def name(user: object) -> str:
        """Spell a user of streams.MIXED."""
        return user.decode() if isinstance(user, bytes) else str(user).removesuffix(".0")

    def passes(self, t: int, user: str, thing: str) -> bool:
        """Add an observation of one thing and say whether it has z users at its clock."""
        self.history.append((t, user, thing))
        start = max(time for time, _, what in self.history if what == thing) - self.chosen.window
        within = {u for time, u, what in self.history if what == thing and time >= start}
        return t >= start and len(within - {None}) >= self.z

    def forget(self, user: object) -> None:
        for thing in {what for _, _, what in self.history}:
            last_seen: dict[str, tuple[int, int]] = {}
            for number, (time, u, what) in enumerate(self.history):
                if what == thing and u is not None:
                    last_seen[u] = max(last_seen.get(u, (time, number)), (time, number))
            kept = sorted(last_seen, key=lambda u: last_seen[u])[-self.chosen.z_max :]
            self.history = [
                (time, u if what != thing or (u in kept and u != self.name(user)) else None, what)
                for time, u, what in self.history
            ]


def assert_equal(stream: Stream) -> None:
    # Noise is drawn by a gate: what a threshold of its own does is shown there.
    chosen = replace(stream.settings, noise=0, noise_period=None)
    reference, definition = reference_of(chosen), Definition(chosen)
    for operation in stream.operations:
        if isinstance(operation, Observe):
            assert observed(reference, operation) == definition.decide(operation), operation
        elif isinstance(operation, SetZ | Forget):
            changed(reference, operation)
            changed(definition, operation)


@given(streams())
@settings(max_examples=100)
def test_equals_the_definition(stream: Stream) -> None:
    assert_equal(stream)


@given(streams(kinds=("attribute",)))
@settings(max_examples=100)
def test_equals_the_definition_on_attributes(stream: Stream) -> None:
    assert_equal(stream)


@given(streams(names=CROWDED, kinds=("attribute",)))
@settings(max_examples=100)
def test_equals_the_definition_in_one_crowd(stream: Stream) -> None:
    assert_equal(stream)


@given(streams(names=CROWDED, kinds=("levels",)))
@settings(max_examples=100)
def test_equals_the_definition_on_levels(stream: Stream) -> None:
    assert_equal(stream)


@pytest.mark.parametrize("kinds", [("attribute",), ("levels",), ("attribute", "levels")])
@pytest.mark.parametrize("names", [MIXED, CROWDED], ids=["mixed", "crowded"])
def test_equals_the_definition_at_length(names: Names, kinds: tuple[str, ...]) -> None:
    for seed in range(100):
        assert_equal(long_stream(seed, 200, names=names, kinds=kinds))


@given(streams())
@settings(max_examples=50)
def test_counts(stream: Stream) -> None:
    reference = reference_of(stream.settings)
    decided = answers(reference, stream.operations)
    assert reference.observed == len(decided)
    veils = sum(answer is None or answer is False for answer in decided)
    assert reference.released == len(decided) - veils
    assert reference.veiled == reference.observed - reference.released
    assert reference.late + reference.invalid <= reference.veiled


def test_forget_says_from_how_many_crowds() -> None:
    reference = Reference(z=2, window=10)
    for user in ("u", "v", "w"):
        reference.observe(0, user, "a")
    reference.observe(0, "u", "b")
    reference.observe_levels(0, "u", ["x", "y"])
    assert reference.forget("u") == 3  # b and two levels; in a it stood behind two others
    assert reference.forget("u") == 0
    assert reference.forget(None) == 0


def test_fractions_of_a_unit() -> None:
    reference = Reference(z=2, window=0.5)
    assert [reference.observe(t, u, "a") for t, u in [(0.25, "u"), (0.75, "v"), (1.5, "w")]] == [
        False,
        True,
        False,
    ]


def test_user_text() -> None:
    assert user_text(2**70) == str(2**70)
    assert user_text(b"\xff") == user_text(b"\xff") != user_text(b"\xfe")
    assert user_text("") == ""
    for nobody in (None, 0.5, float("nan"), float("inf"), 2.0**53 + 2):
        assert user_text(nobody) is None
    for wrong in (True, ["u"]):
        with pytest.raises(TypeError, match="user: expected text"):
            user_text(wrong)


def test_attribute_key() -> None:
    assert len({attribute_key(one) for one in (1, "1", b"1", 1.0, True)}) == 5
    assert attribute_key(0.0) == attribute_key(-0.0)
    assert attribute_key(None) is attribute_key(float("nan")) is None


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"z": 0}, "z:"),
        ({"z": 3, "z_max": 2}, "z:"),
        ({"window": -1}, "window"),
        ({"window": float("nan")}, "window"),
        ({"lateness": -1}, "lateness"),
        ({"rule": "finest"}, "rule:"),
        ({"rule": "fixed"}, "fixed_level:"),
        ({"rule": "fixed", "fixed_level": -1}, "fixed_level:"),
        ({"fixed_level": 0}, "fixed_level:"),
    ],
)
def test_settings_out_of_range(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Reference(**{"z": 2, "window": 10, **wrong})


def test_z_out_of_range() -> None:
    reference = Reference(z=2, window=10, z_max=3)
    for z in (0, 4):
        with pytest.raises(ValueError, match="z: expected 1 to z_max"):
            reference.z = z
    assert reference.z == 2
