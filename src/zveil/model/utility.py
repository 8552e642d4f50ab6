"""What is left to use: how much of a stream is released, and of how many attributes."""

from dataclasses import dataclass

import numpy as np

from zveil.model.parameters import positive, whole
from zveil.model.population import Population
from zveil.model.quantities import p_n, p_o
from zveil.model.tails import at_least


@dataclass(frozen=True)
class Utility:
    """What a z leaves to use, as the model expects it.

    Attributes
    ----------
    released
        Share of observations released, from 0 to 1.
    attributes_per_user
        Distinct attributes that a user has released in the horizon.
    distinct_attributes
        Attributes that are released at least once in the horizon, whoever it is for.
    """

    released: float
    attributes_per_user: float
    distinct_attributes: float


def utility(population: Population, z: int, horizon: float) -> Utility:
    """Give what a z leaves to use over a horizon.

    An attribute appears in a window if at least z of all U users show it there: the z-th is then
    released. Windows are taken side by side, so somewhat more appear in a stream whose window
    slides.

    Parameters
    ----------
    population
        Who shows what.
    z
        Users who must share a value; from 1.
    horizon
        Number of windows; above 0.

    Examples
    --------
    >>> left = utility(Population.power_law(), z=20, horizon=24)
    >>> f"{left.released:.1%}, {left.attributes_per_user:.1f}, {left.distinct_attributes:.0f}"
    '60.3%, 5.7, 206'
    """
    crowd = at_least(whole(z, "z", 1), population.users, population.p_x)
    with np.errstate(divide="ignore"):
        appear = -np.expm1(positive(horizon, "horizon") * np.log1p(-crowd))
    return Utility(
        released(population, z), float(p_n(population, z, horizon).sum()), float(appear.sum())
    )


def released(population: Population, z: int) -> float:
    """Give the share of observations released: p^O, weighted by how often attributes are shown.

    >>> f"{released(Population.power_law(), z=100):.1%}"
    '41.9%'
    """
    shown = population.rates.sum()
    # Rounding may carry a weighted mean of ones past 1.
    return float(min(population.rates @ p_o(population, z) / shown, 1.0)) if shown else 0.0
