"""The audit: everything measured about one released stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from zveil.audit.crowds import Crowds, class_sizes, crowds
from zveil.audit.levels import FieldLevels, field_levels
from zveil.audit.linkage import Linkage, linkage
from zveil.audit.observations import Observations
from zveil.audit.points import Points, Resolution
from zveil.audit.unicity import Unicity, unicity
from zveil.audit.utility import Utility, utility
from zveil.hierarchy import Hierarchy
from zveil.meter import KS

SAMPLE = 10_000
SEED = 1
SHORTEST_PERIOD_NS = 60_000_000_000
# A case of likeness is held against every user of a period.
_MOST_LINKED = 1_000
_MOST_VALUES = 20


@dataclass(frozen=True, kw_only=True)
class Options:
    """What an audit is asked for.

    Parameters
    ----------
    rotate_ns
        How often pseudonyms change, from a minute up; None: never.
    resolution
        The time of the points of unicity.
    sample, seed
        Most users tried for unicity, from 1, and what draws them.
    show_values
        Name the values that at least so many users released, from 2; None: name none.
    hierarchies
        For each field its hierarchy, if it has one, to tell the levels that were released.
    policy
        Fingerprint of the policy that the stream was released by, to be told.

    Raises
    ------
    ValueError
        If one is out of range.

    Examples
    --------
    >>> Options(rotate_ns=1)
    Traceback (most recent call last):
    ValueError: rotate: expected a duration of at least 1m
    """

    rotate_ns: int | None = None
    resolution: Resolution = Resolution.HOUR
    sample: int = SAMPLE
    seed: int = SEED
    show_values: int | None = None
    hierarchies: tuple[Hierarchy | None, ...] = ()
    policy: str | None = None

    def __post_init__(self) -> None:
        if self.rotate_ns is not None and self.rotate_ns < SHORTEST_PERIOD_NS:
            raise ValueError("rotate: expected a duration of at least 1m")
        if self.sample < 1:
            raise ValueError(f"sample: expected at least 1, got {self.sample}")
        if self.seed < 0:
            raise ValueError(f"seed: expected at least 0, got {self.seed}")
        if self.show_values is not None and self.show_values < 2:
            raise ValueError(f"show_values: expected at least 2 users, got {self.show_values}")


@dataclass(frozen=True, kw_only=True)
class Period:
    """The visible users of one period, and how many of them share their set of values."""

    start_ns: int
    users_visible: int
    at_least: dict[int, int]


@dataclass(frozen=True, kw_only=True)
class Rotation:
    """What an observer has who sees each period's pseudonyms by themselves."""

    length_ns: int
    crowds: tuple[Crowds, ...]
    """For each resolution, over the visible users of all periods."""
    periods: tuple[Period, ...]
    linkage: Linkage | None
    """None if ids in the stream changed themselves: then it cannot be known."""


@dataclass(frozen=True, kw_only=True)
class Value:
    """A value that many users released."""

    field: str
    value: str
    users: int


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What was found. It holds counts and shares, and no user and no value unless asked for."""

    options: Options
    utility: Utility
    crowds: tuple[Crowds, ...]
    """For each resolution, over the whole stream."""
    unicity: tuple[Unicity, ...]
    rotation: Rotation | None
    values: tuple[Value, ...]
    incomplete: int
    """Released values without a time or a user, left out."""
    bad: int = 0
    """Lines that could not be read, left out."""
    levels: tuple[FieldLevels, ...] = ()
    """What was released at each level, of the fields of which it can be known."""

    def crowds_at(self, resolution: Resolution) -> Crowds:
        """Give the distribution of k at one resolution."""
        return next(found for found in self.crowds if found.resolution is resolution)


def audit(
    released: Observations,
    original: Observations | None = None,
    options: Options | None = None,
    *,
    bad: int = 0,
    watch: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Measure a released stream.

    Takes about 120 bytes of memory for each observation at the peak, 160 with a rotation.

    Parameters
    ----------
    released
        What an observer sees.
    original
        What it was made from: for what was veiled, and for users with nothing released.
    options
        What is asked for.
    bad
        Lines that could not be read, to be told.
    watch
        Is told what is being done.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from zveil.audit import read
    >>> stamps = pa.array([0, 0, 0, 0], pa.timestamp("ns", tz="UTC"))
    >>> table = {"t": stamps, "who": ["ada", "bob", "cyd", "cyd"], "site": ["a", "a", "a", "b"]}
    >>> found = audit(read([pa.record_batch(table)], user="who", attributes=["site"]))
    >>> found.crowds_at(Resolution.SET).at_least[2], found.utility.users_visible
    (2, 3)
    """
    asked = options or Options()
    watch("sorting")
    points = Points.of(released)
    found = []
    for resolution in Resolution:
        watch(f"comparing users: {resolution.knowledge}")
        found.append(crowds(class_sizes(points, points.traces(resolution)), resolution))
    watch("trying points of users")
    tried = unicity(points.traces(asked.resolution), sample=asked.sample, seed=asked.seed)
    rotation = None
    if asked.rotate_ns is not None:
        watch("comparing users of each period")
        rotation = _rotation(points, asked.rotate_ns, asked)
    watch("counting")
    return Audit(
        options=asked,
        utility=utility(released, points, original),
        crowds=tuple(found),
        unicity=tuple(tried),
        rotation=rotation,
        values=_values(released, points, asked.show_values),
        incomplete=released.incomplete,
        bad=bad,
        levels=field_levels(released, original, asked.hierarchies),
    )


def _rotation(points: Points, length_ns: int, asked: Options) -> Rotation:
    rotated = points.rotated(length_ns)
    sizes = {each: class_sizes(rotated, rotated.traces(each)) for each in Resolution}
    periods, places, users = np.unique(rotated.period, return_inverse=True, return_counts=True)
    at_least = {
        k: np.bincount(places, sizes[Resolution.SET] >= k, minlength=len(periods)) for k in KS
    }
    return Rotation(
        length_ns=length_ns,
        crowds=tuple(crowds(k, resolution, users[places]) for resolution, k in sizes.items()),
        periods=tuple(
            Period(
                start_ns=period * length_ns,
                users_visible=count,
                at_least={k: int(counts[number]) for k, counts in at_least.items()},
            )
            for number, (period, count) in enumerate(
                zip(periods.tolist(), users.tolist(), strict=True)
            )
        ),
        linkage=linkage(rotated, sample=min(asked.sample, _MOST_LINKED), seed=asked.seed),
    )


def _values(released: Observations, points: Points, least: int | None) -> tuple[Value, ...]:
    if least is None:
        return ()
    users = np.bincount(points.traces(Resolution.SET).value)
    shown = np.argsort(-users, kind="stable")[:_MOST_VALUES]
    fields = np.searchsorted(released.firsts, shown, side="right") - 1
    return tuple(
        Value(
            field=released.fields[field],
            value=released.values[field].words([code - int(released.firsts[field])])[0],
            users=int(users[code]),
        )
        for code, field in zip(shown.tolist(), fields.tolist(), strict=True)
        if users[code] >= least
    )
