"""What the meter has found about the model: how far off it is in a period, and how steadily."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zveil.model.parameters import Floats

_PLACES = np.arange(1, 49) / 48
_NEWEST = 0.7  # weight of the last period; of the one before 0.21, and so on

_REMEMBERED, _FEW = 8, 2  # periods
_LEAST, _UNKNOWN, _MOST = 0.015, 0.03, 0.04


class Correction:
    """How the model's log odds were off over the periods before, and by how much ends were missed.

    >>> found = Correction()
    >>> found.learn([(0.5, -0.4), (1.0, -0.2)])
    >>> found.at(0.5), found.at(1.0), round(found.at(0.75), 3)
    (-0.4, -0.2, -0.3)
    """

    def __init__(self) -> None:
        self._curve: Floats | None = None
        self._missed: list[float] = []

    @property
    def is_known(self) -> bool:
        """Whether there was a period to learn from."""
        return self._curve is not None

    def at(self, place: float) -> float:
        """Give the correction at a place of the period, from 0 to 1; 0 while nothing is known."""
        if self._curve is None:
            return 0.0
        return float(np.interp(place, _PLACES, self._curve))

    def learn(self, found: Sequence[tuple[float, float]]) -> None:
        """Take in the corrections of a period: place and value, in the order of places."""
        if not found:
            return
        places, values = zip(*found, strict=True)
        curve = np.interp(_PLACES, places, values)
        if self._curve is not None:
            curve = (1 - _NEWEST) * self._curve + _NEWEST * curve
        self._curve = curve

    def miss(self, shortfall: float) -> None:
        """Take in by how much a period ended below what was expected at its beginning."""
        self._missed = [*self._missed, shortfall][-_REMEMBERED:]

    @property
    def margin(self) -> float:
        """How far above the wanted share to aim.

        The second largest shortfall of the last eight periods, so that a single strange one does
        not count; at least 0.015, which chance alone calls for, and at most 0.04.

        >>> found = Correction()
        >>> found.margin
        0.03
        >>> for shortfall in (0.1, -0.01, 0.02):
        ...     found.miss(shortfall)
        >>> found.margin
        0.02
        """
        if len(self._missed) < _FEW:
            return _UNKNOWN
        return min(max(sorted(self._missed)[-2], _LEAST), _MOST)

    def state(self) -> dict[str, Any]:
        """Give it as plain values."""
        curve = None if self._curve is None else self._curve.tolist()
        return {"curve": curve, "missed": list(self._missed)}

    def resume(self, state: dict[str, Any]) -> None:
        """Take `state` back."""
        curve = state["curve"]
        self._curve = None if curve is None else np.array(curve, np.float64)
        self._missed = [float(each) for each in state["missed"]]
