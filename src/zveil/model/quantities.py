"""The quantities of the paper, by their names: p_x, p_o, p_y, p_n, p_q.

A user u shows attribute a within a window with probability p^X. It is released if at least z - 1
of the other U - 1 users showed it too, p^O = P[Bin(U - 1, p^X) >= z - 1]. Both together give
p^Y = p^X p^O for one window and p^N = 1 - (1 - p^Y)^N for an observer who links N of them. Two
users look alike in a if both or neither have it: p^Q = prod over a of (p^N)^2 + (1 - p^N)^2.
"""

import numpy as np

from zveil.model.parameters import Floats, positive, whole
from zveil.model.population import Population
from zveil.model.tails import at_least, log_at_least


def p_x(population: Population) -> Floats:
    """Give p^X: for each attribute, the probability that a user shows it within a window.

    >>> p_x(Population(users=100, p_x=[0.5]))
    array([0.5])
    """
    return population.p_x


def p_o(population: Population, z: int) -> Floats:
    """Give p^O: for each attribute, the probability that it is released when a user shows it.

    >>> p_o(Population.power_law(), z=20)[[0, 299]].round(6)
    array([1.      , 0.001036])
    """
    return release(population, z)


def release(population: Population, z: int, floor: float = 0.0) -> Floats:
    """Give p^O, and 0 where it is certainly below ``floor``: that saves most of the work."""
    wanted = whole(z, "z", 1) - 1
    return at_least(wanted, population.users - 1, population.p_x, floor)


def p_y(population: Population, z: int) -> Floats:
    """Give p^Y: for each attribute, the probability that a user has it released within a window.

    >>> f"{p_y(Population.power_law(), z=20)[299]:.2e}"
    '1.73e-07'
    """
    return population.p_x * release(population, z)


def log_p_y(population: Population, z: int) -> Floats:
    """Give the natural logarithm of p^Y, also where p^Y itself is too small for a float.

    >>> log_p_y(Population(users=10**6, p_x=[1e-300]), z=100).round(1)
    array([-68069.])
    """
    with np.errstate(divide="ignore"):
        shown = np.log(population.p_x)
    return shown + log_at_least(whole(z, "z", 1) - 1, population.users - 1, population.p_x)


def p_n(population: Population, z: int, horizon: float) -> Floats:
    """Give p^N: for each attribute, the probability that a user has it released in the horizon.

    Parameters
    ----------
    population
        Who shows what.
    z
        Users who must share a value; from 1.
    horizon
        N, how many windows an observer can link; any number above 0.

    Examples
    --------
    >>> p_n(Population.power_law(), z=20, horizon=24)[:2].round(4)
    array([0.6988, 0.4512])
    """
    return -np.expm1(log_absent(population, z, horizon))


def log_absent(population: Population, z: int, horizon: float, floor: float = 0.0) -> Floats:
    """Give log(1 - p^N) = N log(1 - p^Y), from which p^N follows without loss near 0 and near 1."""
    with np.errstate(divide="ignore"):
        absent = np.log1p(-population.p_x * release(population, z, floor))
    return positive(horizon, "horizon") * absent


def p_q(population: Population, z: int, horizon: float) -> float:
    """Give p^Q: the probability that two users have the same set released.

    >>> f"{p_q(Population.power_law(), z=20, horizon=24):.5e}"
    '4.06832e-05'
    """
    return float(np.exp(log_p_q(population, z, horizon)))


def log_p_q(population: Population, z: int, horizon: float) -> float:
    """Give the natural logarithm of p^Q, also where p^Q itself is too small for a float.

    >>> round(log_p_q(Population.power_law(rate=50), z=1, horizon=24), 2)
    -2487.0
    """
    present = p_n(population, z, horizon)
    # q^2 + (1 - q)^2 = 1 - 2 q (1 - q), which keeps what a small q adds.
    return float(np.log1p(-2 * present * (1 - present)).sum())
