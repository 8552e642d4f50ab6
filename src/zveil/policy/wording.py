"""Numbers, durations and lists as sentences have them."""

from collections.abc import Sequence

_UNITS = (
    (7 * 86_400 * 10**9, "week"),
    (86_400 * 10**9, "day"),
    (3_600 * 10**9, "hour"),
    (60 * 10**9, "minute"),
    (10**9, "second"),
    (10**6, "millisecond"),
    (10**3, "microsecond"),
    (1, "nanosecond"),
)
_SIZES = ((2**30, "GiB"), (10**9, "GB"), (2**20, "MiB"), (10**6, "MB"), (1, "bytes"))


def span(ns: int) -> str:
    """Give a duration in the largest units that tell it exactly.

    >>> span(3600 * 10**9), span(5400 * 10**9), span(0), span(14 * 86400 * 10**9)
    ('1 hour', '1 hour 30 minutes', 'no time', '2 weeks')
    """
    parts = []
    for unit, name in _UNITS:
        count, rest = divmod(ns, unit)
        # Ten days are not a week and three days.
        if count and not (name == "week" and rest):
            parts.append(f"{count:,} {name}{'' if count == 1 else 's'}")
            ns = rest
    return " ".join(parts) or "no time"


def every(ns: int) -> str:
    """Say how often something comes that comes after each such duration.

    >>> every(86400 * 10**9), every(30 * 86400 * 10**9)
    ('every day', 'every 30 days')
    """
    words = span(ns)
    return f"every {words[2:] if words.startswith('1 ') and words.count(' ') == 1 else words}"


def users(count: int) -> str:
    """Give a number of users.

    >>> users(1), users(2000)
    ('1 user', '2,000 users')
    """
    return "1 user" if count == 1 else f"{count:,} users"


def bound(size: int | None) -> str:
    """Give a bound on memory.

    >>> bound(2 * 10**9), bound(64 << 20), bound(1001), bound(None)
    ('2 GB', '64 MiB', '1,001 bytes', 'no limit')
    """
    if size is None:
        return "no limit"
    unit, name = next((unit, name) for unit, name in _SIZES if size % unit == 0)
    return f"{size // unit:,} {name}"


def listed(names: Sequence[str]) -> str:
    """Give names in quotes, the last behind an ``and``.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ("'a'", "'a', 'b' and 'c'")
    """
    shown = [quoted(name) for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def quoted(name: str) -> str:
    """Give a name in quotes, on one line whatever it holds.

    >>> quoted("page.host")
    "'page.host'"
    """
    shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
    return f"'{''.join(shown)}'"
