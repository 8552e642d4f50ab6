"""Tails of binomial sums: exact, fast where they are plainly 0 or 1, in logarithms where small."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import fft
from scipy.special import betainc, gammaln, xlog1py, xlogy

from zveil.model.parameters import Floats

_CERTAIN = 1e-17  # less than half of what lies between 1 and the next smaller float
_CHUNK = 1 << 20  # numbers held at a time


def at_least(count: int, trials: int, p: ArrayLike, floor: float = 0.0) -> Floats:
    """Give P[Bin(trials, p) >= count] for each p.

    It is the regularized incomplete beta function I_p(count, trials - count + 1). Chernoff's bound,
    P <= exp(-trials KL(count / trials || p)), finds out beforehand where that is 0 or 1 to the last
    digit, which in a long tail of attributes is nearly everywhere.

    Parameters
    ----------
    count
        Successes wanted.
    trials
        Independent trials, from 0.
    p
        Chances of success, from 0 to 1.
    floor
        Give 0 where the probability is certainly below this.

    Examples
    --------
    >>> at_least(2, 3, [0.0, 0.5, 1.0])
    array([0. , 0.5, 1. ])
    """
    chances = np.asarray(p, dtype=np.float64)
    if count <= 0:
        return np.ones_like(chances)
    if count > trials:
        return np.zeros_like(chances)
    mean = trials * chances
    low = (mean < count) & (_divergence(count, trials, chances) < np.log(max(floor, 5e-324)))
    high = (mean > count) & (_divergence(count - 1, trials, chances) < np.log(_CERTAIN))
    found = np.where(high, 1.0, 0.0)
    rest = ~(low | high)
    found[rest] = betainc(count, trials - count + 1.0, chances[rest])
    return found


def _divergence(count: int, trials: int, p: Floats) -> Floats:
    """Give Chernoff's exponent, -trials KL(count / trials || p)."""
    share = count / trials
    with np.errstate(divide="ignore"):
        # 0 log 0 is 0; a p of 0 or 1 that rules the count out gives -infinity.
        even = xlogy(share, share) + xlog1py(1 - share, -share)
        return np.asarray(trials * (xlogy(share, p) + xlog1py(1 - share, -p) - even))


def log_at_least(count: int, trials: int, p: ArrayLike) -> Floats:
    """Give log P[Bin(trials, p) >= count], also where the probability itself is below 1e-308.

    There the terms of the sum fall at least geometrically, so it is its first term, in logarithms,
    times a short series.

    Examples
    --------
    >>> log_at_least(100, 1000, [1e-9]).round(3)
    array([-1750.413])
    >>> log_at_least(1, 1000, [0.0])
    array([-inf])
    """
    chances = np.asarray(p, dtype=np.float64)
    plain = at_least(count, trials, chances)
    with np.errstate(divide="ignore"):
        found = np.log(plain)
    deep = (plain < 1e-290) & (chances > 0) & (count <= trials)
    if deep.any():
        odds = chances[deep] / (1 - chances[deep])
        term, total = np.ones_like(odds), np.ones_like(odds)
        for more in range(count, trials):
            term = term * (odds * ((trials - more) / (more + 1)))
            total += term
            if term.max() < 1e-17:
                break
        found[deep] = _log_pmf(np.float64(count), trials, chances[deep]) + np.log(total)
    return found


def _log_pmf(count: Floats | np.float64, trials: int, p: Floats) -> Floats:
    ways = gammaln(trials + 1.0) - gammaln(count + 1.0) - gammaln(trials - count + 1.0)
    return np.asarray(ways + xlogy(count, p) + xlog1py(trials - count, -p))


def sum_at_least(count: int, groups: list[tuple[int, Floats]]) -> Floats:
    """Give P[Bin(n_1, p_1) + Bin(n_2, p_2) + ... >= count] for groups (n, p), to 1e-13.

    The chances of fewer are convolved and summed; only rows whose answer Chernoff's bound (with the
    mean of p, which it holds for too) leaves open.

    Examples
    --------
    >>> sum_at_least(2, [(1, np.array([0.5])), (2, np.array([0.5]))])
    array([0.5])
    """
    trials = sum(n for n, _ in groups)
    rows = groups[0][1].shape[0]
    if count <= 0 or count > trials:
        return np.full(rows, float(count <= 0))
    mean = np.clip(sum((n * p for n, p in groups), np.zeros(rows)) / trials, 0, 1)
    expected = mean * trials
    low = (expected < count) & (_divergence(count, trials, mean) < np.log(1e-18))
    high = (expected > count) & (_divergence(count - 1, trials, mean) < np.log(_CERTAIN))
    found = np.where(high, 1.0, 0.0)
    (open_rows,) = np.nonzero(~(low | high))
    length = fft.next_fast_len(2 * count, real=True)
    for some in np.array_split(open_rows, max(1, open_rows.size * length // _CHUNK)):
        fewer = np.zeros((some.size, count))
        fewer[:, 0] = 1.0
        for n, p in groups:
            fewer = _convolved(fewer, _first(count, n, p[some]), length)
        found[some] = np.clip(1 - fewer.sum(axis=1), 0, 1)
    return found


def _first(count: int, trials: int, p: Floats) -> Floats:
    """Give P[Bin(trials, p) = i] for i below ``count``, a row for each p."""
    successes = np.arange(float(min(count, trials + 1)))
    found = np.zeros((p.size, count))
    found[:, : successes.size] = np.exp(_log_pmf(successes, trials, p[:, None]))
    return found


def _convolved(left: Floats, right: Floats, length: int) -> Floats:
    count = left.shape[1]
    if count < 32:  # few terms: directly, without the noise of a transform
        found = np.zeros_like(left)
        for shift in range(count):
            found[:, shift:] += right[:, shift : shift + 1] * left[:, : count - shift]
        return found
    product = fft.rfft(left, length, axis=1) * fft.rfft(right, length, axis=1)
    return np.asarray(fft.irfft(product, length, axis=1)[:, :count])
