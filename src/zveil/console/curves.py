"""The trade-off as curves: what every z is worth in k-anonymity, and what it leaves of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from math import ceil
from typing import Any, TypeAlias

import numpy as np

from zveil.model import Plan, Population, Trace, Unreachable, averaged, paper, plan, utility
from zveil.model.measurement import Meter
from zveil.model.parameters import positive, share, whole

Given: TypeAlias = Mapping[str, Any]
"""Plain values: ``z``, ``k``, ``horizon`` and ``rotate`` in windows (None: ids stay),
``probability``, ``window_s``; and ``users``, ``attributes``, ``rate`` an hour, ``exponent`` where
users are described."""

POINTS = 56
_HOUR_S = 3600
_MOST_ATTRIBUTES = 200_000


def of_parameters(given: Given) -> Population:
    """Make the population that parameters describe; the rate is one an hour.

    >>> of_parameters({"users": 100, "attributes": 3, "rate": 0.6, "exponent": 1, "window_s": 7200})
    Population(users=100, attributes=3)
    """
    return _described(
        whole(given["users"], "users", 2, 10**9),
        whole(given["attributes"], "attributes", 1, _MOST_ATTRIBUTES),
        positive(given["rate"], "rate"),
        positive(given["exponent"], "exponent"),
        positive(given["window_s"], "window"),
    )


@lru_cache(maxsize=8)
def _described(
    users: int, attributes: int, rate: float, exponent: float, window_s: float
) -> Population:
    return Population.power_law(
        users, attributes, rate, exponent=exponent, window=window_s / _HOUR_S
    )


def of_trace(trace: Trace, given: Given) -> Population:
    """Estimate the population of a trace for a window of any length."""
    return _estimated(trace, positive(given["window_s"], "window"))


@lru_cache(maxsize=2)
def _estimated(trace: Trace, window_s: float) -> Population:
    return _cut(trace, window_s).population(whole=True)


def _cut(trace: Trace, window_s: float) -> Trace:
    return replace(trace, window_ns=round(window_s * 1e9))


def linked(given: Given) -> float:
    """Give how many windows an observer can link: as many as an id lasts, and they watch.

    >>> linked({"horizon": 24, "rotate": None}), linked({"horizon": 24, "rotate": 4})
    (24.0, 4.0)
    """
    horizon, rotate = positive(given["horizon"], "horizon"), given.get("rotate")
    return horizon if rotate is None else min(horizon, positive(rotate, "rotate"))


def curves(population: Population, given: Given) -> dict[str, Any]:
    """Give p_k and utility for z from 1 to where hardly anything is released.

    Two estimates of p_k: averaged over the sets that users really hold, among visible users (None
    where not even one is to be expected); and by the paper's formula, which is too optimistic.
    """
    k, windows = whole(given["k"], "k", 2), linked(given)
    zs = grid(largest(population))
    found = [averaged(population, z, k, windows) for z in zs]
    left = [utility(population, z, windows) for z in zs]
    return {
        "z": zs,
        "visible": [
            each.visible if each.visible_share * population.users >= 1 else None for each in found
        ],
        "paper": [paper(population, z, k, windows) for z in zs],
        "released": [each.released for each in left],
        "held": [each.held for each in found],
        "distinct": [each.distinct_attributes for each in left],
        "users": population.users,
        "attributes": population.attributes,
    }


def point(population: Population, given: Given) -> dict[str, Any]:
    """Give the same at one z."""
    z, k, windows = whole(given["z"], "z", 1), whole(given["k"], "k", 2), linked(given)
    found, left = averaged(population, z, k, windows), utility(population, z, windows)
    return {
        "z": z,
        "visible": found.visible,
        "visible_share": found.visible_share,
        "paper": paper(population, z, k, windows),
        "released": left.released,
        "held": found.held,
        "distinct": left.distinct_attributes,
    }


def measured(trace: Trace, given: Given) -> dict[str, Any]:
    """Run the gate over a trace at one z, and give what it comes to."""
    meter = _meter(trace, whole(given["k"], "k", 2), positive(given["window_s"], "window"))
    found = meter.at(whole(given["z"], "z", 1), linked(given))
    return {
        "p_k": found.p_k,
        "low": found.low,
        "high": found.high,
        "released": found.released,
        "visible": found.visible,
        "windows": found.windows,
    }


@lru_cache(maxsize=2)
def _meter(trace: Trace, k: int, window_s: float) -> Meter:
    return Meter(_cut(trace, window_s), k=k, count="visible")


def ways(population: Population, given: Given, watch: Callable[[str], None]) -> dict[str, Any]:
    """Give the ways to reach a wanted probability: z with the period after which ids change."""
    try:
        found: Plan = plan(
            population,
            k=whole(given["k"], "k", 2),
            probability=share(given["probability"], "probability"),
            horizon=positive(given["horizon"], "horizon"),
            progress=lambda done, of: watch(f"{done} of {of} periods are worked out"),
        )
    except Unreachable:
        return {"options": []}
    return {
        "options": [
            {
                "rotate": None if each is found.kept else each.rotate_every,
                "z": each.z,
                "p_k": each.p_k,
                "released": each.released,
            }
            for each in found.options
        ]
    }


def largest(population: Population) -> int:
    """Give a z beyond which next to nothing is released: more than show the commonest value.

    >>> largest(Population.power_law())
    3059
    """
    shown = population.users * float(population.p_x.max())
    return min(max(ceil(1.25 * shown) + 10, 20), population.users)


def grid(most: int) -> list[int]:
    """Give whole numbers from 1 to ``most``, further apart the larger they are.

    >>> grid(10)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    """
    return [int(z) for z in np.unique(np.rint(np.geomspace(1, most, POINTS)).astype(np.int64))]
