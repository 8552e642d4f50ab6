"""Rates of attributes over their ranks, of users over a day, and the p^X that they make."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

# Made up, hour by hour from midnight: quiet before dawn, busiest in the evening. The mean is 1.
DAY = (
    0.80, 0.55, 0.40, 0.25, 0.20, 0.25, 0.45, 0.70, 0.90, 1.00, 1.05, 1.10,
    1.15, 1.20, 1.15, 1.15, 1.20, 1.30, 1.40, 1.50, 1.65, 1.75, 1.65, 1.25,
)  # fmt: skip


class Profile:
    """How busy users are in the course of a day.

    Activity is time that runs faster in busy hours and slower in quiet ones. A day has as much
    of one as of the other, so a profile moves events about and leaves the total of whole days.

    Parameters
    ----------
    depth
        0 for the same rate at all hours, 1 for the rates of `DAY`, in between for in between.

    Examples
    --------
    >>> Profile(1.0).activity([0, 6 * HOUR_MS, DAY_MS]) / HOUR_MS
    array([ 0.  ,  2.45, 24.  ])
    """

    def __init__(self, depth: float) -> None:
        self.depth = depth
        self._times: Floats = np.arange(25, dtype=np.float64) * HOUR_MS
        hours: Floats = 1 + depth * (np.array(DAY) - 1)
        self._activities: Floats = np.concatenate([[0.0], np.cumsum(hours * HOUR_MS)])
        self._activities[-1] = DAY_MS

    def activity(self, times_ms: Sequence[float] | Floats) -> Floats:
        """Give the activity from a midnight to these times after it."""
        times = np.asarray(times_ms, np.float64)
        return self._mapped(times, self._times, self._activities)

    def times_ms(self, activities: Sequence[float] | Floats) -> Floats:
        """Give the times, since a midnight, at which so much activity has been."""
        return self._mapped(np.asarray(activities, np.float64), self._activities, self._times)

    def _mapped(self, values: Floats, given: Floats, wanted: Floats) -> Floats:
        if not self.depth:
            return values
        days: Floats = np.floor(values / DAY_MS) * DAY_MS
        days += np.interp(values - days, given, wanted)
        return days


def power_law(rate: float, exponent: float, attributes: int) -> Floats:
    """Give the rate of each rank r: ``rate / r ** exponent``.

    >>> power_law(0.05, 1.0, 3).round(4)
    array([0.05  , 0.025 , 0.0167])
    """
    ranks: Floats = np.arange(1, attributes + 1, dtype=np.float64)
    return rate * ranks**-exponent


def curve(points: Sequence[tuple[float, float]], attributes: int) -> Floats:
    """Give the p^X of each rank on a line through points (rank, p^X), straight on log-log scales.

    >>> curve([(1, 0.4), (4, 0.1)], 4).round(3)
    array([0.4  , 0.2  , 0.133, 0.1  ])
    """
    ranks, values = np.log(np.array(points, np.float64).T)
    found: Floats = np.exp(np.interp(np.log(np.arange(1, attributes + 1)), ranks, values))
    return found


def exposed(rates: Floats, exposures: Floats, weights: Floats) -> Floats:
    """Give the mean probability of at least one event: that of ``1 - exp(-rate * exposure)``.

    Parameters
    ----------
    rates
        By rank, for a user of factor 1 in a window of activity 1.
    exposures
        What rates are multiplied by, in each kind of window and class of users.
    weights
        The share of each kind; they make 1.

    Examples
    --------
    >>> exposed(np.array([0.05]), np.array([1.0]), np.array([1.0])).round(6)
    array([0.048771])
    """
    total = np.zeros_like(rates)
    for exposure, weight in zip(exposures, weights, strict=True):
        total -= weight * np.expm1(-rates * exposure)
    return total


def calibrated(px: Floats, exposures: Floats, weights: Floats) -> Floats:
    """Give the rates for which `exposed` gives this p^X.

    Newton's method from below: the function is concave, so it never steps too far.

    >>> calibrated(np.array([0.34]), np.array([0.5, 1.5]), np.array([0.5, 0.5])).round(6)
    array([0.439465])
    """
    rates: Floats = px / np.dot(exposures, weights)
    open_rows = np.arange(len(px))
    while len(open_rows):
        guess = rates[open_rows]
        slope = np.zeros_like(guess)
        for exposure, weight in zip(exposures, weights, strict=True):
            slope += weight * exposure * np.exp(-guess * exposure)
        step = (px[open_rows] - exposed(guess, exposures, weights)) / slope
        rates[open_rows] += step
        open_rows = open_rows[step > 1e-12 * guess]
    return rates
