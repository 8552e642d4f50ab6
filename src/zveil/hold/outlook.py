"""The outlook: what share of the visible users will be k alike at the end of the period, by z.

The averaged model (`zveil.model.anonymity`) takes users as alike and independent. What it makes of
the looks is one share, M. What the meter shows is another, m. The two are compared as log odds:

    correction c = log odds(m) - log odds(M),   log odds(s) = log(s / (1 - s)).

For users as the model takes them it is next to 0. For others it is not, and changes over a period,
but much the same way in each: C is its curve in the periods before. So the outlook for the end at
some z is the model's, moved by the correction that ended those periods; and by how far the present
correction lies from where theirs lay at this time, the more the further the period has come:

    log odds(end at z) = log odds(M at z) + C(end) + (time / period) (c now - C(now)).

At the beginning of a period that is the model as it was last found to err, and at its end what the
meter shows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import exp, log

from zveil.hold.looks import Absent
from zveil.model.anonymity import Anonymity, over_sets
from zveil.model.parameters import Floats

_ERROR = 1e-4  # of the model's grid: chance is larger


def log_odds(share: float, users: float) -> float:
    """Give log(share / (1 - share)); a share of 0 or 1 is taken as half a user off it.

    >>> round(log_odds(0.8, 1000), 3), round(log_odds(1.0, 1000), 3)
    (1.386, 7.6)
    """
    least = 0.5 / max(users, 1.0)
    held = min(max(share, least), 1 - least)
    return log(held / (1 - held))


def share_of(odds: float) -> float:
    """Give the share back.

    >>> round(share_of(log_odds(0.8, 1000)), 3)
    0.8
    """
    return 1 / (1 + exp(-odds))


class Outlook:
    """What the model says for the end of a period, moved by what the meter has found.

    Parameters
    ----------
    absent
        What was released, and what may come.
    users
        How many there are.
    k
        Users who must be alike.
    moved
        What is added to the model's log odds.
    """

    def __init__(self, absent: Absent, *, users: float, k: int, moved: float = 0.0) -> None:
        self._absent, self._users, self._k = absent, max(round(users), k), k
        self._moved = moved
        self._model = lru_cache(maxsize=None)(lambda z: self._anonymity(self._absent.at(z)))

    @property
    def now(self) -> float:
        """What the model says of this moment, as it is."""
        return self._anonymity(self._absent.now).visible

    def at(self, z: int) -> float:
        """Give the share at the end, if z users are needed from now on."""
        return share_of(log_odds(self._model(z).visible, self._users) + self._moved)

    def visible(self, z: int) -> float:
        """Give the share of all users who will have something released."""
        return self._model(z).visible_share

    def smallest(self, low: int, high: int, wanted: float) -> int | None:
        """Give the smallest z that reaches a share; None where the largest does not."""
        return smallest(self.at, low, high, wanted)

    def _anonymity(self, absent: Floats) -> Anonymity:
        return over_sets(absent, self._users - 1, self._k - 1, error=_ERROR)


def smallest(at: Callable[[int], float], low: int, high: int, wanted: float) -> int | None:
    """Give the smallest z from ``low`` to ``high`` at which a rising share reaches what is wanted.

    Where the share does not rise throughout, the z found reaches it all the same.

    >>> smallest(lambda z: z / 100, 2, 90, 0.305)
    31
    >>> smallest(lambda z: z / 100, 2, 90, 0.95) is None
    True
    """
    if low > high or at(high) < wanted:
        return None
    while low < high:
        middle = (low + high) // 2
        if at(middle) >= wanted:
            high = middle
        else:
            low = middle + 1
    return high
