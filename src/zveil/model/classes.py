"""Classes of users with different rates: p_k for each class, and overall.

A user of class c shows attribute a with its class's p^X. It is released if at least z - 1 others,
of whatever class, showed it too: a sum of one binomial for each class. A user with the set y is
hidden by others of every class, who hold it with their own probability P_d(y):

    p_k of class c = average over y drawn from c of P[sum over d of Bin(n_d, P_d(y)) >= k - 1],

n_d the users of class d besides this one. That depends on several P_d(y) at once, so it is averaged
over sets drawn at random, from a fixed seed. What `averaged` gives exactly, for a crowd that is all
of class c, is worked out on the same sets; the part of its chance error that the two share is taken
off.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from zveil.model.anonymity import over_sets
from zveil.model.parameters import Floats, column, positive, share, whole
from zveil.model.population import Population
from zveil.model.tails import at_least, sum_at_least

SETS = 32_768
_SEED = 1
_DRAWN_AT_ONCE = 2_048
_NEVER_DRAWN = 1e-7  # attributes that together are held more rarely are taken as never held
_IMPOSSIBLE = -1e4  # stands for log 0, and can be multiplied by 0


@dataclass(frozen=True, eq=False)
class Classes:
    """Users in classes; within a class they are alike, and all are independent.

    Parameters
    ----------
    users
        Number of users in all; from 1.
    shares
        Share of the users in each class; above 0, together 1.
    rates
        For each class the rates of the same attributes, in the same order.
    window
        Length of the window in the unit of time of the rates; above 0.

    Examples
    --------
    >>> Classes(1_000, shares=[0.9, 0.1], rates=[[0.1, 0.2], [0.3, 0.0]]).members
    (900, 100)
    """

    populations: tuple[Population, ...]

    def __init__(
        self,
        users: int,
        shares: Sequence[float],
        rates: Sequence[ArrayLike],
        *,
        window: float = 1.0,
    ) -> None:
        total = whole(users, "users", 1)
        length = positive(window, "window")
        parts = column(shares, "shares", 1.0)
        if parts.size > 1:
            for part in parts:
                share(part, "shares")
        if abs(parts.sum() - 1) > 1e-9:
            raise ValueError(f"shares: expected numbers that add up to 1, got {parts.sum():g}")
        if len(rates) != parts.size:
            raise ValueError(
                f"rates: expected one column for each of {parts.size} classes, got {len(rates)}"
            )
        # Whole users: what rounding down leaves goes to the classes that lost most by it.
        members = np.floor(parts * total).astype(int)
        members[np.argsort(members - parts * total)[: total - members.sum()]] += 1
        if (members == 0).any():
            raise ValueError(f"shares: expected at least one of {total:,} users in each class")
        found = tuple(
            Population.from_rates(int(count), each, window=length)
            for count, each in zip(members, rates, strict=True)
        )
        if len({population.attributes for population in found}) > 1:
            raise ValueError("rates: expected the same attributes in each class")
        object.__setattr__(self, "populations", found)

    @property
    def members(self) -> tuple[int, ...]:
        """How many users each class has."""
        return tuple(population.users for population in self.populations)

    @property
    def users(self) -> int:
        """How many users there are."""
        return sum(self.members)


@dataclass(frozen=True)
class ClassAnonymity:
    """p_k in classes of users.

    Attributes
    ----------
    everyone, visible
        p_k overall: of all users, and among those with something released.
    class_everyone, class_visible
        The same within each class.
    error
        Two standard errors of ``everyone``.
    """

    everyone: float
    visible: float
    class_everyone: tuple[float, ...]
    class_visible: tuple[float, ...]
    error: float


def class_p_o(classes: Classes, z: int) -> tuple[Floats, ...]:
    """Give p^O for each class: the probability that what its user shows is released.

    >>> two = Classes(1_000, shares=[0.9, 0.1], rates=[[0.02], [0.05]])
    >>> [chances.round(4) for chances in class_p_o(two, z=20)]
    [array([0.8114]), array([0.8097])]
    """
    wanted = whole(z, "z", 1) - 1
    return tuple(
        sum_at_least(
            wanted,
            [
                (n, each.p_x)
                for n, each in zip(_others(classes, own), classes.populations, strict=True)
            ],
        )
        for own in range(len(classes.populations))
    )


def class_p_k(
    classes: Classes, z: int, k: int, horizon: float, *, sets: int = SETS
) -> ClassAnonymity:
    """Give p_k of users in classes, each class by itself and all together.

    Parameters
    ----------
    classes
        Who shows what.
    z, k, horizon
        As for `averaged`.
    sets
        How many sets are drawn for each class; from 100. The error falls with its square root.

    Examples
    --------
    >>> two = Classes(2_000, shares=[0.8, 0.2], rates=[[0.1, 0.01, 0.01], [0.1, 0.5, 0.9]])
    >>> found = class_p_k(two, z=20, k=2, horizon=4)
    >>> found.everyone > 0.99
    True
    """
    wanted, draws = whole(k, "k", 1) - 1, whole(sets, "sets", 100, 10**8)
    with np.errstate(divide="ignore"):
        absent = [
            positive(horizon, "horizon") * np.log1p(-each.p_x * chances)
            for each, chances in zip(classes.populations, class_p_o(classes, z), strict=True)
        ]
    shares = np.array(classes.members) / classes.users
    found = [_one_class(classes, absent, own, wanted, draws) for own in range(len(absent))]
    everyone, visible, visible_share, errors = (np.array(each) for each in zip(*found, strict=True))
    seen = float(shares @ visible_share)
    return ClassAnonymity(
        everyone=float(shares @ everyone),
        visible=float((shares * visible_share) @ visible / seen) if seen else 1.0,
        class_everyone=tuple(everyone.tolist()),
        class_visible=tuple(visible.tolist()),
        error=float(np.sqrt((shares**2) @ errors**2)),
    )


def _others(classes: Classes, own: int) -> list[int]:
    """Give how many users of each class there are besides one of class ``own``."""
    return [count - (at == own) for at, count in enumerate(classes.members)]


def _one_class(
    classes: Classes, absent: list[Floats], own: int, wanted: int, draws: int
) -> tuple[float, float, float, float]:
    """Give p_k of a class, among its visible users, their share, and two standard errors."""
    exact = over_sets(absent[own], classes.users - 1, wanted)
    if wanted == 0 or exact.visible_share == 0:
        return exact.everyone, exact.visible, exact.visible_share, 0.0
    present = -np.expm1(absent[own])
    order = np.argsort(present)
    drawn = np.sort(order[np.searchsorted(np.cumsum(present[order]), _NEVER_DRAWN) :])
    log_absent = [np.maximum(each, _IMPOSSIBLE) for each in absent]
    base = np.array([each.sum() for each in log_absent])
    gain = np.stack([_log_present(each[drawn]) - each[drawn] for each in log_absent], axis=1)

    random = np.random.default_rng([_SEED, own])
    alike, alone, is_empty = np.empty(draws), np.empty(draws), np.empty(draws, dtype=bool)
    for start in range(0, draws, _DRAWN_AT_ONCE):
        part = slice(start, min(start + _DRAWN_AT_ONCE, draws))
        held = random.random((part.stop - start, drawn.size)) < present[drawn]
        chances = np.exp(np.minimum(base + held @ gain, 0.0))
        groups = [(n, chances[:, at]) for at, n in enumerate(_others(classes, own))]
        alike[part] = sum_at_least(wanted, groups)
        alone[part] = at_least(wanted, classes.users - 1, chances[:, own], 1e-15)
        is_empty[part] = ~held.any(axis=1)
    everyone, error = _corrected(alike, alone, exact.everyone)
    visible, _ = _corrected(
        np.where(is_empty, 0, alike),
        np.where(is_empty, 0, alone),
        exact.visible * exact.visible_share,
    )
    visible = min(max(visible / exact.visible_share, 0.0), 1.0)
    return everyone, visible, exact.visible_share, error


def _log_present(log_absent: Floats) -> Floats:
    """Give log p^N from log(1 - p^N), or what stands for log 0."""
    return np.log(np.maximum(-np.expm1(log_absent), 5e-324))


def _corrected(values: Floats, known: Floats, mean: float) -> tuple[float, float]:
    """Average values, less what the chance error of a known mean explains; and two errors."""
    spread = known - known.mean()
    weight = float(spread @ spread)
    slope = float(spread @ values) / weight if weight else 0.0
    left = values - slope * spread
    error = 2 * float(left.std()) / values.size**0.5
    found = float(values.mean()) + slope * (mean - float(known.mean()))
    return min(max(found, 0.0), 1.0), error
