"""The probability p_k that a user shares the released set with at least k - 1 others.

The paper treats "v equals u" as U - 1 independent trials with one average chance p^Q:

    paper:     p_k = P[Bin(U - 1, p^Q) >= k - 1].

But whether others equal u depends on what u holds. The few who hold a likely set have many equals
and raise p^Q; most hold an unlikely one and have none. Averaged over the set y that u holds:

    averaged:  p_k = sum over y of P(y) f(log P(y)),   f(l) = P[Bin(U - 1, e^l) >= k - 1].

Users with nothing released are all alike, so counting them flatters. Among the *visible* users, the
empty set is taken out of the sum, and the rest divided by its weight 1 - P(empty).

With n = U - 1 and m = k - 1, the derivatives of f that bound the errors are

    f'  = m b,                        b = P[Bin(n, p) = m],  p = e^l
    f'' = m b (m - n p) / (1 - p),    largest where (m - n p)^2 = (n - m) p

and f + f' is largest where f' + f'' = 0, at p = (m + 1) / (n + 1).
"""

from dataclasses import dataclass
from math import exp, lgamma, log, log1p, sqrt

import numpy as np

from zveil.model.parameters import Count, Floats, counted, positive, whole
from zveil.model.population import Population
from zveil.model.quantities import log_absent, log_p_q
from zveil.model.spread import spread
from zveil.model.tails import at_least

ERROR = 1e-6
_NOISE = 1e-9  # of the transforms, and of what is left out of series
_SKIPPED = 1e-18  # a p^O below this counts as 0
_RARE = 1e-6  # unless hardly anything is released
_SUMMED = 16  # up to this many terms, a binomial tail is summed


@dataclass(frozen=True)
class Anonymity:
    """p_k averaged over what users hold, and how far off it may be.

    Attributes
    ----------
    everyone
        Probability that a user shares the released set with at least k - 1 others.
    visible
        The same among users with something released; 1 where there are none.
    error, visible_error
        Neither is further from its exact value than this.
    visible_share
        Expected share of users with something released.
    held
        Expected number of attributes that a user has released: the sum of p^N.
    """

    everyone: float
    visible: float
    error: float
    visible_error: float
    visible_share: float
    held: float

    def of(self, count: Count) -> float:
        """Give p_k among those counted."""
        return self.visible if count == "visible" else self.everyone


def paper(population: Population, z: int, k: int, horizon: float) -> float:
    """Give p_k by the formula that the paper prints, to compare with its figures.

    It is far too optimistic: see `averaged`.

    Examples
    --------
    >>> round(paper(Population.power_law(), z=20, k=2, horizon=24), 5)
    0.86921
    """
    alike = exp(log_p_q(population, z, horizon))
    return float(at_least(whole(k, "k", 1) - 1, population.users - 1, np.array([alike]))[0])


def averaged(
    population: Population, z: int, k: int, horizon: float, *, error: float = ERROR
) -> Anonymity:
    """Give p_k averaged over the sets that users really hold: what advice goes by.

    Nothing is sampled. Besides rounding, three things add to the error, and the result states their
    sum: the grid (`zveil.model.spread`), at most ``error`` unless that would take more than 2^18
    points; sets so unlikely that they are left out, a tenth of it; and attributes whose p^O is
    below 1e-18. Among visible users, it is divided by their share.

    Parameters
    ----------
    population
        Who shows what.
    z, k
        From 1.
    horizon
        N, how many windows an observer can link; any number above 0.
    error
        Largest error wanted from the grid; from 1e-9.

    Examples
    --------
    >>> found = averaged(Population.power_law(), z=20, k=2, horizon=24)
    >>> round(found.everyone, 4), round(found.visible, 4), found.error < 2e-6
    (0.1257, 0.1244, True)
    """
    others, wanted = population.users - 1, whole(k, "k", 1) - 1
    absent = log_absent(population, z, horizon, _SKIPPED)
    skipped = _SKIPPED * horizon * population.p_x.sum()
    if -np.expm1(absent.sum()) < _RARE:
        absent, skipped = log_absent(population, z, horizon), 0.0
    return over_sets(absent, others, wanted, error=max(positive(error, "error"), 1e-9), add=skipped)


def over_sets(
    absent: Floats, others: int, wanted: int, *, error: float = ERROR, add: float = 0.0
) -> Anonymity:
    """Average P[at least ``wanted`` of the ``others`` hold y] over y, from log(1 - p^N)."""
    log_empty = float(absent.sum())
    share, held = float(-np.expm1(log_empty)), float(-np.expm1(absent).sum())
    if wanted == 0 or wanted > others or share == 0:
        sure = float(wanted <= others)
        return Anonymity(sure, sure if share else 1.0, 0.0, 0.0, share, held)
    bend = _bend(others, wanted)
    left_out = error / 10
    found = spread(absent, lowest=_lowest(others, wanted, left_out), bend=bend, error=error)
    alike = _shared(found.levels, others, wanted)
    rest = float(found.masses @ alike)
    likeliest = exp(found.top) * float(alike[0])
    # The empty set is the likeliest one unless some attribute is likelier present than absent.
    # Then it is one of the grid, but many are visible, and the difference keeps its digits.
    if found.top == log_empty:
        visible = rest
    else:
        empty = exp(log_empty) * float(_shared(np.array([log_empty]), others, wanted)[0])
        visible = likeliest + rest - empty
    # What is not the likeliest set is all that can be off.
    off = found.error(bend) + (left_out + _NOISE) * -np.expm1(found.top) + 3 * add
    return Anonymity(
        everyone=min(max(likeliest + rest, 0.0), 1.0),
        visible=min(max(visible / share, 0.0), 1.0),
        error=min(float(off), 1.0),
        visible_error=min(float(off / share), 1.0),
        visible_share=share,
        held=held,
    )


def _shared(levels: Floats, others: int, wanted: int) -> Floats:
    """Give f(l) = P[Bin(others, e^l) >= wanted] for each l, to 1e-14."""
    chances = np.exp(np.minimum(levels, 0.0))
    if wanted > _SUMMED:
        return at_least(wanted, others, chances, 1e-15)
    sure = chances > 1 - 1e-15
    chances = np.where(sure, 0.5, chances)
    term = np.exp(others * np.log1p(-chances))
    fewer, odds = term.copy(), chances / (1 - chances)
    for count in range(1, wanted):
        term *= odds * ((others - count + 1) / count)
        fewer += term
    return np.where(sure, 1.0, np.maximum(1 - fewer, 0.0))


def _lowest(others: int, wanted: int, left_out: float) -> float:
    """Give the l below which f(l) <= (n e^l)^m / m! is at most ``left_out``."""
    return (log(left_out) + lgamma(wanted + 1)) / wanted - log(others)


def swing(others: int, wanted: int) -> float:
    """Give the largest f(l) + f'(l), which bounds how fast p_k changes with any p^N.

    >>> round(swing(10**6, 1), 4)
    1.1353
    """
    p = (wanted + 1) / (others + 1)
    return float(at_least(wanted, others, np.array([p]))[0]) + wanted * _exactly(others, wanted, p)


def _bend(others: int, wanted: int) -> float:
    """Give the largest |f''(l)|: at one of two roots, or in the limit at l = 0."""
    n, m = others, wanted
    if n == m:
        return float(m * m)
    middle = 2 * m * n + n - m
    root = sqrt(float(middle * middle - 4 * n * n * m * m))
    high = (middle + root) / (2 * n * n)
    # The product of both roots is (m / n)^2: no difference of near equals.
    bends = [
        m * _exactly(n, m, p) * abs(m - n * p) / (1 - p)
        for p in (high, (m / n) ** 2 / high)
        if 0 < p < 1
    ]
    return max(*bends, float(m * n) if n == m + 1 else 0.0)


def _exactly(trials: int, count: int, p: float) -> float:
    if p >= 1:
        return float(count == trials)
    ways = lgamma(trials + 1) - lgamma(count + 1) - lgamma(trials - count + 1)
    return exp(ways + count * log(p) + (trials - count) * log1p(-p))


def p_k(
    population: Population,
    z: int,
    k: int,
    horizon: float,
    *,
    estimator: str = "averaged",
    count: Count = "all",
) -> float:
    """Give p_k: the probability that a user shares the released set with at least k - 1 others.

    Parameters
    ----------
    population, z, k, horizon
        As for `averaged`.
    estimator
        ``"averaged"``, or ``"paper"`` for the formula as printed, which knows only all users.
    count
        ``"all"`` users, or the ``"visible"`` ones.

    Examples
    --------
    >>> round(p_k(Population.power_law(), z=200, k=2, horizon=24, count="visible"), 3)
    0.982
    """
    if estimator == "averaged":
        return averaged(population, z, k, horizon).of(counted(count))
    if estimator != "paper":
        raise ValueError(f"estimator: expected 'averaged' or 'paper', got {estimator!r}")
    if counted(count) == "visible":
        raise ValueError("count: the paper's formula knows only 'all' users, got 'visible'")
    return paper(population, z, k, horizon)
