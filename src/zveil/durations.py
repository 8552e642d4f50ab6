"""Durations and sizes as people write them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fractions import Fraction

Duration: TypeAlias = str | timedelta | int | float
"""``"1h"``, ``"1h30m"``, ``"500ms"``, a timedelta, or a number of seconds."""

Size: TypeAlias = str | int
"""``"512MiB"``, ``"2GB"``, or a number of bytes."""

LONGEST_NS = 2**63 - 1

_UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
    "w": 604_800_000_000_000,
}
_BYTES = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BYTES |= {"KB": 10**3, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}

_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|min|s|m|h|d|w)")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)")


def duration_ns(value: Duration, name: str) -> int:
    """Give a duration in nanoseconds.

    Parameters
    ----------
    value
        Text such as ``"1h"``, ``"90s"``, ``"1h30m"`` or ``"1.5d"`` (units ns, us, ms, s, m, h, d,
        w), a timedelta, or a number of seconds; from 0 to 292 years.
    name
        The parameter it is for, named in errors.

    Examples
    --------
    >>> duration_ns("1h30m", "window")
    5400000000000
    >>> duration_ns(0.25, "window")
    250000000
    """
    found = _parse(value)
    if found is None or not 0 <= found <= LONGEST_NS:
        raise ValueError(
            f"{name}: expected a duration such as '1h', '90s' or '1h30m', a timedelta, or seconds, "
            f"from 0 to 292 years, got {value!r}"
        )
    return found


def _parse(value: Duration) -> int | None:
    if isinstance(value, str):
        text = value.replace(" ", "")
        parts = _PART.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            return None
        return round(sum(_exact(number) * _UNITS_NS[unit] for number, unit in parts))
    if isinstance(value, timedelta):
        # pandas counts nanoseconds besides.
        return value // timedelta(microseconds=1) * 1_000 + int(getattr(value, "nanoseconds", 0))
    if isinstance(value, bool):
        return None
    try:
        return round(_exact(value) * 1_000_000_000)
    except (TypeError, ValueError, OverflowError):
        return None


def _exact(number: str | float) -> int | Fraction:
    """Give a number as it is written; most are whole."""
    if isinstance(number, str) and number.isdecimal():
        return int(number)
    from fractions import Fraction

    return Fraction(number)


def size_bytes(value: Size, name: str) -> int:
    """Give a size in bytes.

    Examples
    --------
    >>> size_bytes("64MiB", "memory_limit")
    67108864
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or match[2] not in _BYTES:
        raise ValueError(
            f"{name}: expected bytes, or a size such as '512MiB' or '2GB', got {value!r}"
        )
    return int(_exact(match[1]) * _BYTES[match[2]])
