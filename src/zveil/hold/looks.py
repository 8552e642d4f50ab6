"""Looks at the gates' crowds: how many users show each attribute, at no cost for any event.

A gate knows who showed an attribute within the window, up to z_max of them. So a look now and then
tells what a counter beside it would: for each attribute the users c of the window that ends there.
While a look stands for the stream, a share c / U of the users shows the attribute in a window, and
it is released if c >= z. So over a stretch of w windows nobody has it released with probability

    1 - p^N = (1 - c / U)^w   where c >= z, and 1 elsewhere,

and the stretches of a period multiply. No rate need be guessed, and neither how crowds vary from
hour to hour or by chance: the looks do vary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zveil.gate import Gate
from zveil.model.parameters import Floats

Keys = NDArray[np.uint64]

MOST = 4_096
"""Attributes of a look; beyond, those with the fewest users are left out."""

_NEARLY_ALL = 0.999  # of the users: a share of 1 would leave nobody who has not shown it


@dataclass(frozen=True, eq=False)
class Look:
    """How many users showed each attribute in the window that ended at a moment.

    Attributes
    ----------
    attribute
        What tells it apart, under the secret of its gate.
    users
        How many there were: whole numbers.
    window_ns
        The window that they were counted in.
    """

    attribute: Keys
    users: Floats
    window_ns: Floats

    @classmethod
    def at(cls, gates: Sequence[Gate], least: Sequence[int], users: float) -> Look:
        """Look at gates now: at the attributes with at least so many users, for each gate.

        Parameters
        ----------
        gates, least
            The gates, and of each the fewest users that matter.
        users
            How many there are in all, for crowds larger than what a gate remembers.
        """
        parts = [_crowds(gate, fewest, users) for gate, fewest in zip(gates, least, strict=True)]
        keys, counts, windows = (np.concatenate(each) for each in zip(*parts, strict=True))
        # By their keys where they are equal, so that the same stream gives the same look.
        order = np.lexsort((keys, -counts))[:MOST]
        return cls(keys[order], counts[order], windows[order])

    def merged(self, other: Look) -> Look:
        """Give the larger crowd of each attribute."""
        both = np.concatenate([self.attribute, other.attribute])
        keys, place = np.unique(both, return_inverse=True)
        counts, windows = np.zeros(len(keys)), np.zeros(len(keys))
        np.maximum.at(counts, place, np.concatenate([self.users, other.users]))
        windows[place] = np.concatenate([self.window_ns, other.window_ns])
        return Look(keys, counts, windows)


def _crowds(gate: Gate, least: int, users: float) -> tuple[Keys, Floats, Floats]:
    keys, counts, spans = (np.frombuffer(each, np.int64) for each in gate._crowds(least))
    window = float(gate.window_ns)
    found = counts.astype(np.float64)
    is_part = spans < window
    if is_part.any():
        # More than are remembered: as many as show it at the pace of those who are.
        still = np.maximum(1 - found[is_part] / max(users, 1.0), 1 - _NEARLY_ALL)
        more = users * -np.expm1(np.log(still) * (window / np.maximum(spans[is_part], 1)))
        found[is_part] = np.maximum(found[is_part], np.rint(more))
    return keys.view(np.uint64), found, np.full(len(keys), window)


@dataclass(frozen=True)
class Stretch:
    """A piece of the stream that a look stands for.

    Attributes
    ----------
    look
        What was seen at its end.
    length_ns
        How long it is.
    z
        Users that were needed in it; None where nothing was released, or it is yet to come.
    """

    look: Look
    length_ns: float
    z: int | None = None


def first(stretches: Sequence[Stretch], length_ns: float) -> list[Stretch]:
    """Give the beginning of some stretches, so long."""
    found: list[Stretch] = []
    for each in stretches:
        if length_ns <= 0:
            break
        found.append(Stretch(each.look, min(each.length_ns, length_ns), each.z))
        length_ns -= each.length_ns
    return found


class Absent:
    """log(1 - p^N) of each attribute: for what was released, and what a z would release ahead.

    Parameters
    ----------
    past
        Stretches with the z of each.
    ahead
        Stretches that are yet to come.
    users
        U, how many there are.
    """

    def __init__(self, past: Sequence[Stretch], ahead: Sequence[Stretch], users: float) -> None:
        stretches = [*past, *ahead]
        looks = [each.look for each in stretches]
        counts = [len(look.users) for look in looks]
        keys = np.concatenate([np.empty(0, np.uint64), *(look.attribute for look in looks)])
        known, self._place = np.unique(keys, return_inverse=True)
        self._attributes = len(known)
        self._users = np.concatenate([np.empty(0), *(look.users for look in looks)])
        lengths = np.repeat([each.length_ns for each in stretches], counts)
        windows = np.concatenate([np.empty(0), *(look.window_ns for look in looks)])
        shown = np.minimum(self._users / max(users, 1.0), _NEARLY_ALL)
        self._weight = np.log1p(-shown) * (lengths / np.maximum(windows, 1.0))
        over = slice(0, sum(counts[: len(past)]))
        self._rest = slice(over.stop, None)
        needed = np.repeat([_needed(each) for each in past], counts[: len(past)])
        self.now: Floats = self._sum(over, needed)
        """For what was released so far."""

    def at(self, z: int) -> Floats:
        """Give it for the end, if z users are needed from now on."""
        return self.now + self._sum(self._rest, z)

    def _sum(self, part: slice, needed: Floats | int) -> Floats:
        weight = np.where(self._users[part] >= needed, self._weight[part], 0.0)
        found: Floats = np.bincount(self._place[part], weight, self._attributes)  # type: ignore[assignment]
        return found


def _needed(stretch: Stretch) -> float:
    return np.inf if stretch.z is None else float(stretch.z)
