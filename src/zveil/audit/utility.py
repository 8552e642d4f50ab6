"""Utility: what of the original is left in the released stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zveil.audit.observations import Ints, Observations
from zveil.audit.points import Points

_DAY_NS = 86_400_000_000_000
_STEPS_NS = tuple(
    step * 1_000_000_000
    for step in (60, 600, 3_600, 6 * 3_600, 86_400, 7 * 86_400, 28 * 86_400, 364 * 86_400)
)
_MOST_BARS = 60
QUANTILES = (25, 50, 75, 90)


@dataclass(frozen=True, kw_only=True)
class FieldUse:
    """What became of one attribute field."""

    field: str
    released: int
    values_released: int
    """Different values that appear."""
    observed: int | None
    values_observed: int | None


@dataclass(frozen=True, kw_only=True)
class Course:
    """Counts over time, in steps cut from the Unix epoch."""

    step_ns: int
    starts_ns: Ints
    released: Ints
    observed: Ints | None


@dataclass(frozen=True, kw_only=True)
class Utility:
    """What is left, and of how many users."""

    released: int
    users_visible: int
    """Users, or pseudonyms, with something released."""
    users: int
    """Of the original, if it is there; otherwise all users of the released stream."""
    observed: int | None
    """Observations of the original; None without it."""
    ids_match: bool | None
    """Whether the ids of the released stream are those of the original; None without it."""
    fields: tuple[FieldUse, ...]
    course: Course | None
    """None if nothing was released."""
    per_user: dict[int, float]
    """Released observations of a visible user: quantiles, by percent."""
    first_ns: int | None
    last_ns: int | None

    @property
    def veiled(self) -> int | None:
        """Observations of the original that were not released; None if that cannot be known."""
        if self.observed is None or self.observed < self.released:
            return None
        return self.observed - self.released

    @property
    def users_silent(self) -> int | None:
        """Users with nothing released; None if that cannot be known."""
        if self.observed is None or self.users < self.users_visible:
            return None
        return self.users - self.users_visible


def utility(released: Observations, points: Points, original: Observations | None) -> Utility:
    """Hold the released stream against the original, as far as that is there.

    Parameters
    ----------
    released, points
        The released stream, and the same sorted.
    original
        What it was made from, with the same fields in the same order.
    """
    counts = np.diff(points.starts, append=len(points.user))
    quantiles = np.percentile(counts, QUANTILES) if len(counts) else np.zeros(len(QUANTILES))
    return Utility(
        released=len(released),
        users_visible=points.users,
        users=len(released.users if original is None else original.users),
        observed=None if original is None else len(original),
        ids_match=None if original is None else original.users.holds_all(released.users),
        fields=tuple(_field(released, original, number) for number in range(len(released.fields))),
        course=_course(released.time_ns, None if original is None else original.time_ns),
        per_user=dict(zip(QUANTILES, quantiles.tolist(), strict=True)) if len(counts) else {},
        first_ns=int(released.time_ns.min()) if len(released) else None,
        last_ns=int(released.time_ns.max()) if len(released) else None,
    )


def _field(released: Observations, original: Observations | None, number: int) -> FieldUse:
    count, values = _counts(released, number)
    observed = (None, None) if original is None else _counts(original, number)
    return FieldUse(
        field=released.fields[number],
        released=count,
        values_released=values,
        observed=observed[0],
        values_observed=observed[1],
    )


def _counts(stream: Observations, number: int) -> tuple[int, int]:
    first, last = stream.firsts[number : number + 2].tolist()
    uses = np.bincount(stream.value, minlength=last)[first:last]
    return int(uses.sum()), int(np.count_nonzero(uses))


def _course(released: Ints, original: Ints | None) -> Course | None:
    times = released if original is None or not len(original) else original
    if not len(times) or not len(released):
        return None
    low, high = int(min(times.min(), released.min())), int(max(times.max(), released.max()))
    fitting = (step for step in _STEPS_NS if high // step - low // step < _MOST_BARS)
    step = next(fitting, _STEPS_NS[-1])
    first, count = low // step, high // step - low // step + 1

    def per_step(moments: Ints) -> Ints:
        return np.bincount(moments // step - first, minlength=count)

    return Course(
        step_ns=step,
        starts_ns=(first + np.arange(count)) * step,
        released=per_step(released),
        observed=None if original is None else per_step(original),
    )
