"""Units of time, and single times that are not plain numbers."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Literal, SupportsIndex, TypeAlias

if TYPE_CHECKING:
    import numpy as np

TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]
Instant: TypeAlias = "int | float | datetime | date | np.datetime64 | np.number | None"
"""A number in the gate's time unit, or a date; without a time zone it is UTC."""

UNITS_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def unit_ns(unit: str, name: str = "time_unit") -> int:
    """Give the nanoseconds in one unit of time.

    >>> unit_ns("ms")
    1000000
    """
    try:
        return UNITS_NS[unit]
    except (KeyError, TypeError):
        raise ValueError(f"{name}: expected 's', 'ms', 'us' or 'ns', got {unit!r}") from None


def nanoseconds(instant: object) -> int | float | tuple[int | None]:
    """Read a time that is no plain number.

    The native gate asks for this. A number it scales by its own unit; what is exact already comes
    in a tuple: nanoseconds since 1970, or None where there is no time.

    >>> nanoseconds(datetime(1970, 1, 2))
    (86400000000000,)
    """
    import numpy as np

    if isinstance(instant, np.datetime64):
        return (_from_numpy(instant),)
    if isinstance(instant, datetime):
        if instant != instant:  # pandas' NaT is a datetime that equals nothing
            return (None,)
        utc = instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant
        whole = (utc - _EPOCH) // timedelta(microseconds=1)
        return (int(whole) * 1_000 + int(getattr(instant, "nanosecond", 0)),)
    if isinstance(instant, date):
        return nanoseconds(datetime(instant.year, instant.month, instant.day))
    if isinstance(instant, np.floating):
        return float(instant)
    if isinstance(instant, SupportsIndex) and not isinstance(instant, bool | np.bool_):
        return instant.__index__()
    raise TypeError(
        "time: expected a number, a datetime, a date or a numpy.datetime64, "
        f"got {type(instant).__name__}"
    )


def _from_numpy(instant: np.datetime64) -> int | None:
    import numpy as np

    if np.isnat(instant):
        return None
    unit, count = np.datetime_data(instant.dtype)
    if unit in UNITS_NS:
        return int(instant.astype(np.int64)) * count * UNITS_NS[unit]
    return int(instant.astype("datetime64[s]").astype(np.int64)) * UNITS_NS["s"]
