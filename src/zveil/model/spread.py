"""How the probability of a user's set is spread: the distribution of log P(y), y drawn from it.

Attributes are independent, so log P(y) is a sum of two-valued terms. Write m for the probability of
an attribute's less likely value and o = m / (1 - m) for its odds. The likeliest y has the largest
log-probability, top = sum log(1 - m); each attribute that differs from it takes away
d = log((1 - m) / m) = -log o, and does so with probability m. So top - log P(y) has the generating
function

    prod over attributes of (1 - m) (1 + o w^d).

It is worked out on a grid of d's. A d between two points is split over both such that its mean
stays, which makes the error of second order: for an f whose second derivative is at most `bend`,
each attribute adds at most m * step^2 / 8 * bend to the error of E f(log P(y)), together

    flips * step^2 / 8 * bend,    flips = sum of m.

The likeliest y itself is kept apart and exact. Points below `lowest`, where f is next to 0, are
dropped; what is moved beyond never comes back, since every d is positive.

Attributes whose odds are above 1/16 are multiplied in one by one, a shift and an add each. Nearly
all of a long tail has smaller odds. Those are multiplied at once, as the exponential of the sum of
their logarithms, log(1 + o w^d) = o w^d - (o w^d)^2 / 2 + ..., between two Fourier transforms. The
grid is given twice its length and w a factor below 1, so that what would come around from beyond
the end is below 1e-12.
"""

from dataclasses import dataclass
from math import comb

import numpy as np
from scipy import fft

from zveil.model.parameters import Floats

_CHAINED_ODDS = 1 / 16
_CHAINED_AT_LEAST = 64  # so few are faster, and exact to the last digit, one by one
_TERMS = 8  # of the logarithm's series: what follows is below 16^-9 / 9 each
_AROUND = 1e-12
MOST_POINTS = 1 << 18
LARGEST_STEP = 0.05


@dataclass(frozen=True, eq=False)
class Spread:
    """A distribution of log P(y): the likeliest y, and a grid for all others.

    Attributes
    ----------
    top
        Log-probability of the likeliest y; it is drawn with probability exp(top).
    step
        Distance of the grid's points.
    masses
        How probable it is that any other y is drawn with log P(y) = top - step * index.
    flips
        Expected number of attributes in which y differs from the likeliest one.
    chained
        How many attributes were multiplied in one by one.
    """

    top: float
    step: float
    masses: Floats
    flips: float
    chained: int

    @property
    def levels(self) -> Floats:
        """The log-probability at each point of the grid."""
        return self.top - self.step * np.arange(self.masses.size, dtype=np.float64)

    def error(self, bend: float) -> float:
        """Bound the error of E f(log P(y)) on the grid, for an f with at most this second slope."""
        return self.flips * self.step**2 / 8 * bend


def spread(log_absent: Floats, *, lowest: float, bend: float, error: float) -> Spread:
    """Work out how log P(y) is spread.

    Parameters
    ----------
    log_absent
        log(1 - p^N) for each attribute; from -infinity to 0.
    lowest
        The smallest log P(y) that matters.
    bend, error
        The grid is as fine as it takes for an f with this second derivative to have an expectation
        that is right to this error.

    Examples
    --------
    >>> two = spread(np.log([0.9, 0.6]), lowest=-9.0, bend=1.0, error=1e-6)
    >>> round(float(np.exp(two.top)), 2), round(float(two.masses.sum()), 2)
    (0.54, 0.46)
    """
    likely, rare = _values(log_absent)
    top = float(likely.sum())
    size = top - lowest
    falls = likely - rare
    matters = falls < max(size, 0.0)
    flips = float(np.exp(rare[matters]).sum())
    step = np.sqrt(8 * error / max(flips * bend, 1e-300))
    step = float(np.clip(step, max(size, 0.0) / MOST_POINTS, LARGEST_STEP))
    points = int(max(size, 0.0) / step) + 1
    falls = np.sort(falls[matters])
    chained = max(int(np.searchsorted(falls, -np.log(_CHAINED_ODDS))), _CHAINED_AT_LEAST)
    first, tail = falls[:chained], falls[chained:]
    # The factors (1 - m) of all attributes, but those of `first`, which the chain brings in.
    start = float(np.exp(top + np.log1p(np.exp(-first)).sum()))
    masses = start * _tail(tail, step, points) if tail.size else np.zeros(points)
    _chain(masses, start, first, step)
    return Spread(top, step, masses, flips, int(first.size))


def _values(log_absent: Floats) -> tuple[Floats, Floats]:
    """Give the log-probabilities of each attribute's likelier and rarer value."""
    with np.errstate(divide="ignore"):
        # Two forms of log(1 - exp(x)): each keeps its digits where the other loses them.
        log_present = np.where(
            log_absent > -np.log(2),
            np.log(-np.expm1(np.maximum(log_absent, -1.0))),
            np.log1p(-np.exp(np.minimum(log_absent, -0.5))),
        )
    return np.maximum(log_absent, log_present), np.minimum(log_absent, log_present)


def _split(falls: Floats, step: float) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Floats]:
    """Give for each fall the point below it, and the share that goes to the point above."""
    places = falls / step
    points = places.astype(np.int64)
    return points, places - points


def _chain(masses: Floats, likeliest: float, falls: Floats, step: float) -> None:
    """Multiply attributes in, one by one, in place: a shift and an add each."""
    size = masses.size
    for point, above, odds in zip(*_split(falls, step), np.exp(-falls), strict=True):
        rare = odds / (1 + odds)
        moved = rare * masses
        masses *= 1 - rare
        for at, part in ((point, 1 - above), (point + 1, above)):
            if at < size:
                masses[at:] += part * moved[: size - at]
                masses[at] += part * rare * likeliest
        likeliest *= 1 - rare


def _tail(falls: Floats, step: float, points: int) -> Floats:
    """Multiply (1 + o w^d) over many attributes of small odds, less the leading 1."""
    length = fft.next_fast_len(2 * points + 2 * _TERMS, real=True)
    below, above = _split(falls, step)
    odds = np.exp(-falls)
    series = np.zeros(length)
    for power in range(1, _TERMS + 1):
        count = int(np.searchsorted(below * power, points))
        if not count:
            break
        weight = -((-odds[:count]) ** power) / power
        part = above[:count]
        for more in range(power + 1):
            share = comb(power, more) * (1 - part) ** (power - more) * part**more
            at = below[:count] * power + more
            series += np.bincount(at, weight * share, minlength=length)
    lean = np.log(_AROUND) / length * np.arange(length)
    series *= np.exp(lean)
    # exp(...) - 1: what is small stays exact, however small, beside the 1 of the likeliest.
    product = fft.irfft(np.expm1(fft.rfft(series)), length)[:points]
    return np.asarray(np.maximum(product * np.exp(-lean[:points]), 0.0))
