"""What the values of a field look like, in numbers and without any of the values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal

from zveil.policy.parts import TimeFormat

Kind = Literal["text", "whole numbers", "numbers", "times", "true or false", "lists", "nothing"]

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}.*)?")
# Numbers from 2001 to 2096 are times of these units.
_UNITS: tuple[tuple[TimeFormat, int], ...] = (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9))
_FIRST_S, _LAST_S = 1_000_000_000, 4_000_000_000
_SAMPLE_VALUE = re.compile(
    r"""[+-]?[0-9][0-9.,:+\-TZ ]*          # a number, a date, an IPv4 address
    | [0-9A-Fa-f]*(:[0-9A-Fa-f]*){2,}      # an IPv6 address
    | [^@\s]+@[^@\s]+\.[^@\s]+             # an e-mail address
    | [0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}
    | [0-9A-Fa-f]{16,}
    | [a-z]+://.*
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Profile:
    """A field of a sample."""

    name: str
    kind: Kind
    present: float
    """Share of the records that have it."""
    distinct: int
    """Values that differ."""
    unique: float
    """How many differ, as a share of those there are."""
    times: float
    """Share of the values that can be read as times."""
    time_format: TimeFormat | None
    """What most of those are; None for a column of times."""
    in_order: float
    """Share of the times that are no earlier than the one before."""
    span_s: float
    """From the first to the last time, in seconds."""


def profile(name: str, column: Sequence[Any]) -> Profile:
    """Look at the values of a field.

    >>> found = profile("ts", [1767258000, 1767258600, None, 1767258300])
    >>> found.kind, found.distinct, found.time_format, round(found.in_order, 1), found.span_s
    ('whole numbers', 3, 's', 0.5, 600.0)
    """
    values = [value for value in column if value is not None]
    count = len(values)
    distinct = len({_hashable(value) for value in values})
    kinds = Counter(map(_kind, values)).most_common(1)
    moments = [moment for moment in map(_moment, values) if moment is not None]
    forms = Counter(form for form, _ in moments).most_common(1)
    form = forms[0][0] if forms else None
    seconds = [at for each, at in moments if each == form]
    pairs = list(pairwise(seconds))
    return Profile(
        name=name,
        kind=kinds[0][0] if kinds else "nothing",
        present=count / len(column) if column else 0.0,
        distinct=distinct,
        unique=distinct / count if count else 0.0,
        times=len(seconds) / count if count else 0.0,
        time_format=form,
        in_order=sum(a <= b for a, b in pairs) / len(pairs) if pairs else 1.0,
        span_s=max(seconds) - min(seconds) if seconds else 0.0,
    )


def shared(values: Iterable[Any], users: Iterable[Any]) -> float:
    """Give the share of the records whose value another user showed too.

    >>> shared(["a", "a", "b"], ["ada", "bob", "ada"]) == 2 / 3
    True
    """
    pairs = [
        (_hashable(value), _hashable(user))
        for value, user in zip(values, users, strict=True)
        if value is not None and user is not None
    ]
    crowds = Counter(value for value, _ in set(pairs))
    return sum(crowds[value] > 1 for value, _ in pairs) / len(pairs) if pairs else 0.0


def looks_like_a_value(name: str) -> bool:
    """Whether a name is rather a value: of a table without a header, or of an object by ids.

    >>> [looks_like_a_value(name) for name in ("host", "id.orig_h", "10.0.0.7", "ada@example.org")]
    [False, False, True, True]
    """
    return any(_SAMPLE_VALUE.fullmatch(part) for part in (name, *name.split(".")))


def _kind(value: Any) -> Kind:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, datetime | date):
        return "times"
    if isinstance(value, int):
        return "whole numbers"
    if isinstance(value, float | Decimal):
        return "numbers"
    if not isinstance(value, str):
        return "text" if isinstance(value, bytes) else "lists"
    if _WHOLE.fullmatch(value):
        return "whole numbers"
    if _NUMBER.fullmatch(value):
        return "numbers"
    return "true or false" if value.lower() in ("true", "false") else "text"


def _moment(value: Any) -> tuple[TimeFormat | None, float] | None:
    """Read a value as a time, if it can be one: what it is, and seconds."""
    if isinstance(value, bool):
        return None
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return None, aware.timestamp()
    if isinstance(value, str):
        return _written(value.strip())
    if isinstance(value, int | float | Decimal):
        return _counted(float(value))
    return None


def _written(text: str) -> tuple[TimeFormat, float] | None:
    if _NUMBER.fullmatch(text) and len(text) < 40:
        return _counted(float(text))
    if not _DATE.fullmatch(text):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return "iso", (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()


def _counted(number: float) -> tuple[TimeFormat, float] | None:
    for form, scale in _UNITS:
        if _FIRST_S <= number / scale < _LAST_S:
            return form, number / scale
    return None


def _hashable(value: Any) -> Any:
    # 1, "1" and true are three values.
    return (type(value), repr(value) if isinstance(value, list | dict | set) else value)
