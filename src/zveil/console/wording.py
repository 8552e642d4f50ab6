"""Figures as people read them."""

from __future__ import annotations

NONE = "\N{EN DASH}"
"""What stands where there is no figure."""

_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def percent(share: float | None) -> str:
    """Write a share so that a little is never nothing, and nearly all never all.

    >>> percent(0.1244), percent(0.00001), percent(0.99999), percent(0.0)
    ('12.4 %', 'under 0.1 %', 'over 99.9 %', '0 %')
    """
    if share is None:
        return NONE
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    if share < 0.001:
        return "under 0.1 %"
    return "over 99.9 %" if share > 0.999 else f"{100 * share:.1f} %"


def rate(value: float) -> str:
    """Write a rate.

    >>> rate(0), rate(3.25), rate(41234.5)
    ('0', '3.2', '41,234')
    """
    return f"{value:,.0f}" if value == 0 or value >= 10 else f"{value:.1f}"


def duration(milliseconds: float | None) -> str:
    """Write how long a decision takes.

    >>> duration(0.0421), duration(0.5), duration(3.14), duration(1234.5)
    ('42 µs', '0.50 ms', '3.1 ms', '1.2 s')
    """
    if milliseconds is None:
        return NONE
    if milliseconds < 0.1:
        return f"{1000 * milliseconds:.0f} \N{MICRO SIGN}s"
    if milliseconds < 1:
        return f"{milliseconds:.2f} ms"
    if milliseconds < 1000:
        return f"{milliseconds:.1f} ms" if milliseconds < 100 else f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.1f} s"


def age(seconds: float) -> str:
    """Write how long ago something was, in its two largest units.

    >>> age(4.2), age(3600), age(90061)
    ('4 s', '1 h', '1 d 1 h')
    """
    left, found = round(seconds), []
    for unit, size in _UNITS:
        if left >= size:
            found.append(f"{left // size} {unit[0]}")
            left %= size
    return " ".join(found[:2]) or "0 s"


def span(seconds: float) -> str:
    """Write a span of time in the largest unit that it is so many of.

    >>> span(3600), span(86_400), span(100_800), span(7)
    ('1 hour', '1 day', '28 hours', '7 seconds')
    """
    whole = round(seconds)
    fitting = [each for each in _UNITS if whole and whole % each[1] == 0]
    unit, length = fitting[0] if fitting else _UNITS[-1]
    return plural(whole // length, unit)


def plural(count: int, noun: str) -> str:
    """Write a number of things.

    >>> plural(1, "window"), plural(1200, "window")
    ('1 window', '1,200 windows')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def size(count: float) -> str:
    """Write a size.

    >>> size(0), size(2_100_000), size(256 << 20)
    ('0 B', '2.0 MiB', '256 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.1f} {unit}" if unit != "B" and count < 10 else f"{count:.0f} {unit}"
