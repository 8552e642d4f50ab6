"""What is chosen on the page *Plan*: the values there are, and what they come to in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, TypeVar

from zveil.console.wording import percent, plural, span
from zveil.durations import duration_ns
from zveil.policy import Policy

Value = TypeVar("Value")

WINDOWS = tuple(
    (text, duration_ns(text, "window") / 1e9)
    for text in (
        "1m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "12h", "1d", "2d", "7d",
    )
)  # fmt: skip
HORIZONS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 72, 96, 168, 336, 720)
ROTATIONS: tuple[int | None, ...] = (*HORIZONS, None)
KS = (2, 3, 4, 5, 6, 8, 10, 15, 20)
PROBABILITIES = (50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.9)


def _spread(most: int) -> tuple[int, ...]:
    """Give whole numbers up to ``most``, a twentieth apart from where that is more than 1."""
    found = [1]
    while found[-1] < most:
        found.append(min(max(found[-1] + 1, round(found[-1] * 1.05)), most))
    return tuple(found)


Z_VALUES = _spread(20_000)


@dataclass
class Choice:
    """All that can be set; the paper's values to begin with."""

    z: int = 20
    window: str = "1h"
    rotate: int | None = None
    horizon: int = 24
    k: int = 2
    probability: float = 95.0
    users: int = 50_000
    attributes: int = 5_000
    rate: float = 0.05
    exponent: float = 1.0
    source: str = "parameters"

    @classmethod
    def of(cls, policy: Policy | None) -> Choice:
        """Begin with what a policy has, as far as the sliders have it too."""
        if policy is None:
            return cls()
        window_ns = max(each.window_ns for each in policy.attributes)
        window = nearest(window_ns / 1e9, [seconds for _, seconds in WINDOWS])
        found = cls(window=next(text for text, seconds in WINDOWS if seconds == window))
        found.z = min(each.z for each in policy.attributes)
        if policy.rotate_ns is not None and window_ns:
            found.rotate = nearest(max(round(policy.rotate_ns / window_ns), 1), HORIZONS)
        return found

    @property
    def window_s(self) -> float:
        """The length of the window."""
        return dict(WINDOWS)[self.window]

    @property
    def linked(self) -> int:
        """Windows that an observer can link."""
        return self.horizon if self.rotate is None else min(self.horizon, self.rotate)

    def given(self) -> dict[str, Any]:
        """Give it as a task takes it."""
        return {
            "from": self.source,
            "z": self.z,
            "k": self.k,
            "horizon": self.horizon,
            "rotate": self.rotate,
            "probability": self.probability / 100,
            "window_s": self.window_s,
            "users": self.users,
            "attributes": self.attributes,
            "rate": self.rate,
            "exponent": self.exponent,
        }

    def wanted(self) -> dict[str, Any]:
        """Give all that the ways to reach it depend on: everything but what they would choose."""
        return {name: value for name, value in self.given().items() if name not in {"z", "rotate"}}

    def shape(self) -> tuple[Any, ...]:
        """Give all that curves depend on: everything but the point on them."""
        without = {"z", "horizon", "rotate", "probability"}
        kept = (value for name, value in self.given().items() if name not in without)
        return (*kept, self.linked)


def lead(found: Mapping[str, Any], choice: Choice) -> str:
    """Say what a choice comes to, as HTML."""
    others = "one other" if choice.k == 2 else f"{choice.k - 1} others"
    share, linked = found["visible"], choice.linked
    windows, length = plural(linked, "window"), span(linked * choice.window_s)
    is_enough = share >= choice.probability / 100
    verdict = "as you want" if is_enough else f"less than the {choice.probability:.3g} % you want"
    if not found["visible_share"] or found["released"] < 1e-9:
        first = f"At <b>z = {choice.z:,}</b> nothing leaves: no value is shown by so many users."
    else:
        first = (
            f"At <b>z = {choice.z:,}</b>, <b>{percent(share)}</b> of visible users share all that "
            f"an observer can link of them, {windows} ({length}), with at least "
            f"{others}: {verdict}. <b>{percent(found['released'])}</b> of observations leave."
        )
    measured = found.get("measured")
    return f"{first} {_measured(measured)}" if measured else first


def beside(found: Mapping[str, Any]) -> str:
    """Say what the paper's formula gives, and why not to go by it."""
    return (
        f"The paper's formula would say {percent(found['paper'])}. It takes every two users for "
        "equally alike, which they are not, so it is too optimistic: do not choose by it."
    )


def _measured(found: Mapping[str, Any]) -> str:
    if found["p_k"] is None:
        return "On your trace the gate releases nothing at this z."
    over = plural(round(found["windows"]), "window")
    return (
        f"On your trace, by the gate itself, over {over}: <b>{percent(found['p_k'])}</b> "
        f"({percent(found['low'])} to {percent(found['high'])}), and "
        f"<b>{percent(found['released'])}</b> of observations leave."
    )


def nearest(value: Value, among: Sequence[Value]) -> Value:
    """Give the value of a list that is nearest, by its ratio; None is only near None.

    >>> nearest(163, [1, 100, 150, 200]), nearest(None, [4, None]), nearest(5, [4, None])
    (150, None, 4)
    """
    if value is None or value in among:
        return value
    numbers: list[Any] = [each for each in among if each is not None]
    wanted: Any = value
    found: Value = min(numbers, key=lambda each: abs(log(each / max(wanted, 1e-9))))
    return found
