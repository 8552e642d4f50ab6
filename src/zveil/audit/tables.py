"""The tables of an audit, as rows of words: for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from zveil.audit.crowds import GROUPS, Crowds
from zveil.audit.levels import FieldLevels
from zveil.audit.linkage import Linkage
from zveil.audit.measure import Value
from zveil.audit.unicity import Unicity
from zveil.audit.utility import Utility
from zveil.meter import KS

Rows: TypeAlias = list[tuple[str, ...]]
"""The first one is the head."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(time_ns: int) -> str:
    """Write a time to the minute.

    >>> moment(86_400_000_000_000)
    '1970-01-02T00:00Z'
    """
    return (_EPOCH + timedelta(microseconds=time_ns // 1_000)).strftime("%Y-%m-%dT%H:%MZ")


def number(count: int | None) -> str:
    """Write a count.

    >>> number(62639), number(None)
    ('62,639', 'unknown')
    """
    return "unknown" if count is None else f"{count:,}"


def percent(part: float | None) -> str:
    """Write a share so that a little is never nothing, and nearly all never all.

    >>> percent(0.153), percent(0.00001), percent(0.9999), percent(1.0), percent(None)
    ('15.3%', '<0.1%', '>99.9%', '100%', '-')
    """
    if part is None:
        return "-"
    if part in (0, 1):
        return f"{part:.0%}"
    if part < 0.001:
        return "<0.1%"
    return ">99.9%" if part > 0.999 else f"{part:.1%}"


def between(interval: tuple[float, float] | None) -> str:
    """Write an interval of shares.

    >>> between((0.0, 0.123))
    '0% to 12.3%'
    """
    return "-" if interval is None else f"{percent(interval[0])} to {percent(interval[1])}"


def group(low: int, high: int | None) -> str:
    """Write a group of k.

    >>> group(1, 1), group(3, 4), group(20, None)
    ('1', '3-4', '20+')
    """
    if high is None:
        return f"{low}+"
    return str(low) if low == high else f"{low}-{high}"


def use_rows(use: Utility) -> Rows:
    """Give what was observed and released, and the users of both."""
    counts = [
        ("observed", use.observed, None),
        ("released", use.released, use.observed),
        ("veiled", use.veiled, use.observed),
        ("users", use.users, None),
        ("visible users: something released", use.users_visible, use.users),
        ("silent users: nothing released", use.users_silent, use.users),
    ]
    return [
        ("", "number", "share"),
        *((word, number(n), _of(n, whole)) for word, n, whole in counts),
    ]


def field_rows(use: Utility) -> Rows:
    """Give what is left of each field."""
    rows: Rows = [
        ("field", "released", "of observed", "share", "values left", "of observed", "share")
    ]
    rows += [
        (
            each.field,
            number(each.released),
            number(each.observed),
            _of(each.released, each.observed),
            number(each.values_released),
            number(each.values_observed),
            _of(each.values_released, each.values_observed),
        )
        for each in use.fields
    ]
    return rows


def level_rows(found: Sequence[FieldLevels]) -> Rows:
    """Give what was released of each field at each level."""
    rows: Rows = [("field", "level", "released", "share")]
    for field in found:
        whole = sum(each.released for each in field.levels)
        rows += [
            (field.field, each.name, number(each.released), _of(each.released, whole))
            for each in field.levels
        ]
    return rows


def per_user_rows(use: Utility) -> Rows:
    """Give how much visible users released."""
    head = ("of the visible users", *(f"{part}%" for part in use.per_user))
    counts = (f"{count:,.0f}" for count in use.per_user.values())
    return [head, ("released observations, at most", *counts)]


def crowd_rows(found: Sequence[Crowds]) -> Rows:
    """Give the shares of users by k, for each thing that an observer may know."""
    rows: Rows = [("the observer knows", *(f"k >= {k}" for k in KS), "alone", "entropy, bits")]
    rows += [
        (
            each.resolution.knowledge,
            *(percent(each.shares[k]) for k in KS),
            number(each.alone),
            f"{each.entropy_bits:.2f} of {each.most_bits:.2f}",
        )
        for each in found
    ]
    return rows


def group_rows(found: Sequence[Crowds]) -> Rows:
    """Give the numbers of users by k."""
    rows: Rows = [("users with k =", *(group(low, high) for low, high in GROUPS))]
    rows += [
        (each.resolution.knowledge, *(number(count) for count in each.groups)) for each in found
    ]
    return rows


def unicity_rows(found: Sequence[Unicity]) -> Rows:
    """Give how many users a few points single out."""
    rows: Rows = [
        ("points known", "singled out", "95% interval", "users tried", "with fewer points")
    ]
    rows += [
        (
            str(each.points),
            percent(each.share),
            between(each.interval),
            number(each.tried),
            number(each.too_few),
        )
        for each in found
    ]
    return rows


def linkage_rows(found: Linkage) -> Rows:
    """Give how many users were found again."""
    return [
        ("", "number", "share", "95% interval"),
        ("visible in a period and in the next: cases", number(found.both), "", ""),
        ("matched by equal sets", number(found.same_set), percent(found.same_set_share), ""),
        ("  wrong matches by equal sets", number(found.same_set_wrong), "", ""),
        ("cases tried by likeness", number(found.tried), "", ""),
        (
            "matched by likeness",
            number(found.alike),
            percent(found.alike_share),
            between(found.alike_interval),
        ),
        ("  a blind guess would match", "", percent(found.by_chance), ""),
    ]


def value_rows(found: Sequence[Value]) -> Rows:
    """Give the values that many users share."""
    rows: Rows = [("field", "value", "users")]
    rows += [(each.field, printable(each.value), number(each.users)) for each in found]
    return rows


def printable(value: str) -> str:
    """Write a value so that it cannot steer a terminal.

    >>> printable("a" + chr(27) + "[2J")
    'a?[2J'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in value)


def _of(part: int | None, whole: int | None) -> str:
    return percent(part / whole) if part is not None and whole else ""
