"""A population: so many users, alike and independent, and how often each attribute is shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from zveil.model.parameters import Floats, column, positive, whole

_LARGEST_RATE = 36.7  # 1 - exp(-rate) is 1 to the last digit from here on


@dataclass(frozen=True, eq=False)
class Population:
    """Users who are alike and independent, and the attributes that they show.

    Parameters
    ----------
    users
        U, how many there are; from 1.
    p_x
        p^X, for each attribute the probability that a user shows it within a window; 0 to 1.
    rates
        For each attribute, how often a user shows it in a window, on average; from 0. It weighs the
        share of observations released. By default what a Poisson stream with these p^X has.

    Examples
    --------
    >>> Population(users=1_000, p_x=[0.5, 0.25, 0.125])
    Population(users=1000, attributes=3)
    >>> Population.power_law().p_x[:2].round(6)
    array([0.048771, 0.02469 ])
    """

    users: int
    p_x: Floats
    rates: Floats

    def __init__(self, users: int, p_x: ArrayLike, rates: ArrayLike | None = None) -> None:
        object.__setattr__(self, "users", whole(users, "users", 1))
        object.__setattr__(self, "p_x", column(p_x, "p_x", 1.0))
        if rates is None:
            # A p^X of 1 has no finite rate; one that gives 1 to the last digit stands for it.
            rates = -np.log1p(-np.minimum(self.p_x, -np.expm1(-_LARGEST_RATE)))
        object.__setattr__(self, "rates", column(rates, "rates", np.inf))
        if self.rates.shape != self.p_x.shape:
            raise ValueError(
                f"rates: expected one for each of {self.p_x.size:,} attributes, "
                f"got {self.rates.size:,}"
            )

    @classmethod
    def power_law(
        cls,
        users: int = 50_000,
        attributes: int = 5_000,
        rate: float = 0.05,
        *,
        exponent: float = 1.0,
        window: float = 1.0,
    ) -> Population:
        """Make the paper's population: the attribute of rank r is shown at ``rate / r**exponent``.

        Parameters
        ----------
        users, attributes
            U and A; from 1.
        rate
            How often a user shows the attribute of rank 1 in a unit of time; above 0.
        exponent
            How steeply the rates fall; above 0.
        window
            Length of the window in the same unit of time; above 0.

        Examples
        --------
        >>> Population.power_law(users=100, attributes=3, rate=0.6).rates
        array([0.6, 0.3, 0.2])
        """
        count = whole(attributes, "attributes", 1, 10**8)
        ranks = np.arange(1.0, count + 1)
        steep = positive(exponent, "exponent")
        return cls.from_rates(users, positive(rate, "rate") * ranks**-steep, window=window)

    @classmethod
    def from_rates(cls, users: int, rates: ArrayLike, *, window: float = 1.0) -> Population:
        """Make a population whose users show attributes at these rates, as Poisson streams.

        p^X = 1 - exp(-rate * window), the chance of at least one in a window.

        Examples
        --------
        >>> Population.from_rates(100, [0.1, 0.2], window=2).p_x.round(4)
        array([0.1813, 0.3297])
        """
        shown = column(rates, "rates", np.inf) * positive(window, "window")
        return cls(users, -np.expm1(-shown), shown)

    @property
    def attributes(self) -> int:
        """A, how many attributes there are."""
        return int(self.p_x.size)

    def __repr__(self) -> str:
        return f"Population(users={self.users}, attributes={self.attributes})"
