"""Planning: the smallest z for a wanted k, and how it goes with changing user ids.

p_k does not always grow with z. Among visible users it falls in the end: what is released so rarely
that hardly anyone holds it gives its holder away. So the search must not assume it; it goes by how
fast p_k can change.

Let q be the p^N of one attribute and P' the probability of the rest of y. As a function of q alone,
p_k is an average over the rest of

    h(q) = q f(log P'q) + (1 - q) f(log P'(1 - q)),
    h'(q) = g(log P'q) - g(log P'(1 - q)),   g = f + f',  0 <= g <= K = max g.

So |h'| <= K. Every q falls as z grows; hence with S(z) = sum of q, for any two z,

    |p_k(z1) - p_k(z2)| <= K |S(z1) - S(z2)|.

Among visible users p_k is a quotient, a sum without the empty set by the share v of those visible.
Its derivative by q is an average of g(log P'q) - p_k, where the rest of y is empty, and of h'
elsewhere, by v: at most K / v, v the smaller share of the two. The whole numerator and denominator
change by at most K and 1 times the change of S: so (K + 1) / v holds with the larger v too. An
interval of z whose two ends are too low for anything between them to reach the wanted probability
is left out whole; others are halved.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from zveil.model.anonymity import ERROR, Anonymity, averaged, swing
from zveil.model.parameters import Count, counted, positive, share, whole
from zveil.model.population import Population
from zveil.model.tails import at_least
from zveil.model.utility import released

Progress = Callable[[int, int], None]
"""Told how many of how many options are worked out."""

_COARSE = 1e-4
_PERIODS = (1, 2, 3, 4, 6, 8, 12, 16)  # and 24, 32, 48, ...: about a third more each


class Unreachable(ValueError):  # noqa: N818  # what it says
    """No z reaches what is wanted."""


@dataclass(frozen=True)
class Option:
    """One way to reach it: user ids change every so many windows, and a z.

    Attributes
    ----------
    rotate_every
        Windows after which user ids change, so that nobody can link more of them.
    z
        The smallest that reaches the wanted probability over as many windows.
    p_k
        The probability that it reaches.
    released
        Share of observations released.
    """

    rotate_every: float
    z: int
    p_k: float
    released: float


@dataclass(frozen=True)
class Plan:
    """What to choose for a wanted k and probability.

    Attributes
    ----------
    k, probability, horizon, count
        What was wanted.
    kept
        With ids that stay for the whole horizon; None where no z reaches it then.
    options
        Also with ids that change sooner, the most observations released first.
    """

    k: int
    probability: float
    horizon: float
    count: Count
    kept: Option | None
    options: tuple[Option, ...]


def plan(
    population: Population,
    *,
    k: int = 2,
    probability: float = 0.95,
    horizon: float = 24,
    count: Count = "visible",
    progress: Progress | None = None,
) -> Plan:
    """Choose z and the period after which user ids change, together.

    The population may be made from parameters or estimated from a trace (`from_columns`).

    Parameters
    ----------
    population
        Who shows what.
    k
        Users who must share a set, the user among them; from 2 to the number of users.
    probability
        Probability wanted that a user is one of at least k; above 0 and below 1.
    horizon
        Windows that an observer sees; above 0.
    count
        Whether that holds among ``"visible"`` users, or ``"all"``.
    progress
        Called as options are worked out.

    Raises
    ------
    Unreachable
        If no z reaches it, however often ids change.

    Examples
    --------
    >>> found = plan(Population.power_law(users=5_000, attributes=200), horizon=4)
    >>> [(option.rotate_every, option.z) for option in found.options]
    [(1, 13), (2, 14), (3, 15), (4, 17)]
    """
    every = list(periods(positive(horizon, "horizon")))
    options = []
    for done, period in enumerate(every):
        if progress is not None:
            progress(done, len(every))
        try:
            z, found = smallest_z(
                population, k=k, probability=probability, horizon=period, count=count
            )
        except Unreachable:
            continue
        options.append(Option(period, z, found.of(counted(count)), released(population, z)))
    if not options:
        raise Unreachable(_reason(k, probability, horizon, count, ", however often ids change"))
    kept = next((option for option in options if option.rotate_every == every[-1]), None)
    options.sort(key=lambda option: (-option.released, -option.rotate_every))
    return Plan(k, probability, horizon, counted(count), kept, tuple(options))


def smallest_z(
    population: Population,
    *,
    k: int = 2,
    probability: float = 0.95,
    horizon: float = 24,
    count: Count = "visible",
) -> tuple[int, Anonymity]:
    """Find the smallest z that reaches a probability of k-anonymity.

    Guaranteed, whether p_k grows with z or not: the z found reaches it, and no smaller z does, both
    to within the error of `averaged` (1e-6, divided by the share of visible users). Not guaranteed:
    that every larger z reaches it too.

    Parameters
    ----------
    population, k, probability, horizon, count
        As for `plan`.

    Raises
    ------
    Unreachable
        If no z from 1 to the number of users reaches it.

    Examples
    --------
    >>> z, found = smallest_z(Population.power_law(), horizon=1)
    >>> z, round(found.visible, 4)
    (26, 0.9506)
    """
    if whole(k, "k", 2) > population.users:
        raise ValueError(
            f"k: expected at most the number of users, {population.users:,}, got {k:,}; "
            "nobody can be one of more users than there are"
        )
    share(probability, "probability")
    search = _Search(population, k, probability, positive(horizon, "horizon"), counted(count))
    z = search.first(1, population.users)
    if z is None:
        raise Unreachable(_reason(k, probability, horizon, count))
    return z, averaged(population, z, k, horizon)


@dataclass(frozen=True)
class _Point:
    """What is known at one z: p_k and its error, S, and v (1 if all users are counted)."""

    p_k: float
    error: float
    size: float
    share: float


class _Search:
    """A search for the first z, over halves of intervals."""

    def __init__(
        self, population: Population, k: int, wanted: float, horizon: float, count: Count
    ) -> None:
        self._population, self._k, self._horizon = population, k, horizon
        self._wanted, self._count = wanted, count
        self._swing = swing(population.users - 1, k - 1)
        self.at = lru_cache(maxsize=None)(self._at)

    def first(self, low: int, high: int) -> int | None:
        """Give the first z from ``low`` to ``high`` that reaches it."""
        if self.at(low).p_k >= self._wanted:
            return low
        # Intervals still to look at, the leftmost on top; all before them is too low.
        left = [(low, high)]
        while left:
            start, end = left.pop()
            if not self._may_reach(start, end):
                continue
            if end - start > 1:
                middle = (start + end) // 2
                left += [(middle, end), (start, middle)]
            elif self.at(end).p_k >= self._wanted:
                return end
        return None

    def _may_reach(self, start: int, end: int) -> bool:
        """Tell whether some z after ``start`` and up to ``end`` may reach it."""
        one, other = self.at(start), self.at(end)
        if other.p_k >= self._wanted:
            return True
        if self._count == "visible":
            # A visible user's set is no likelier than the attributes in it: at most S.
            others = self._population.users - 1
            if at_least(self._k - 1, others, [min(one.size, 1.0)])[0] < self._wanted:
                return False
        # Between them p_k lies under two lines over S that rise from the ends: where they meet.
        change = one.size - other.size
        down = (self._swing + 1) / one.share
        if other.share == 0:
            return one.p_k + down * change + one.error >= self._wanted
        up = self._swing / other.share
        down = min(down, up)
        most = (up * one.p_k + down * other.p_k + up * down * change) / (up + down)
        return most + max(one.error, other.error) >= self._wanted

    def _at(self, z: int) -> _Point:
        found = averaged(self._population, z, self._k, self._horizon, error=_COARSE)
        if abs(found.of(self._count) - self._wanted) <= self._off(found):
            found = averaged(self._population, z, self._k, self._horizon, error=ERROR)
        if self._count == "all":
            return _Point(found.everyone, found.error, found.held, 1.0)
        # Where nobody is visible, there is nobody to promise anything to.
        p_k = found.visible if found.visible_share else 0.0
        return _Point(p_k, found.visible_error, found.held, found.visible_share)

    def _off(self, found: Anonymity) -> float:
        return found.visible_error if self._count == "visible" else found.error


def periods(horizon: float) -> Iterator[float]:
    """Give periods of id rotation worth comparing, up to the horizon itself."""
    scale = 1
    while scale < horizon:
        for period in _PERIODS if scale == 1 else (24 * scale // 2, 32 * scale // 2):
            if period < horizon:
                yield period
        scale *= 2
    yield int(horizon) if horizon == int(horizon) else horizon


def _reason(k: int, probability: float, horizon: float, count: str, more: str = "") -> str:
    who = "visible users" if count == "visible" else "all users"
    return (
        f"probability: no z reaches {probability:g} for k = {k} among {who} over a horizon of "
        f"{horizon:g}{more}; there are too few users for it. Take a smaller k, probability or "
        "horizon"
    )
