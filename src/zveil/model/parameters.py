"""What the model is asked with, checked: errors name the parameter, its range and what came."""

import math
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]

Count: TypeAlias = Literal["visible", "all"]
"""Who is counted: users with something released, or everyone."""

MOST_USERS = 2**53  # beyond, not every whole number is a float


def whole(value: Any, name: str, low: int, high: int = MOST_USERS) -> int:
    """Read a whole number from ``low`` to ``high``.

    >>> whole(np.int64(20), "z", 1)
    20
    >>> whole(0, "z", 1)
    Traceback (most recent call last):
    ValueError: z: expected a whole number from 1 to 9,007,199,254,740,992, got 0
    """
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or value != value or not low <= value <= high or int(value) != value:
        raise ValueError(f"{name}: expected a whole number from {low:,} to {high:,}, got {value!r}")
    return int(value)


def positive(value: Any, name: str) -> float:
    """Read a finite number above 0.

    >>> positive(1.5, "horizon")
    1.5
    """
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 < value < math.inf:
        raise ValueError(f"{name}: expected a finite number above 0, got {value!r}")
    return float(value)


def share(value: Any, name: str) -> float:
    """Read a number above 0 and below 1.

    >>> share(0.95, "probability")
    0.95
    """
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 < value < 1:
        raise ValueError(f"{name}: expected a number above 0 and below 1, got {value!r}")
    return float(value)


def column(values: ArrayLike, name: str, high: float) -> Floats:
    """Read a column of numbers from 0 to ``high``, one for each attribute; it cannot be changed.

    >>> column([0.1, 0.2], "p_x", 1.0)
    array([0.1, 0.2])
    """
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected a column of numbers") from None
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name}: expected one number for each attribute, got {array.shape}")
    if not ((array >= 0) & (array <= high) & np.isfinite(array)).all():
        rule = "finite numbers from 0" if math.isinf(high) else f"numbers from 0 to {high:g}"
        raise ValueError(f"{name}: expected {rule}, got {array.min():g} to {array.max():g}")
    array.flags.writeable = False
    return array


def counted(value: str) -> Count:
    """Read who is counted.

    >>> counted("visible")
    'visible'
    """
    if value == "visible":
        return "visible"
    if value == "all":
        return "all"
    raise ValueError(f"count: expected 'visible' or 'all', got {value!r}")
