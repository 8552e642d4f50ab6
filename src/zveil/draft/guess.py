"""Which field of a sample is the time, which the user, and which are to be decided about."""

from __future__ import annotations

import re
from dataclasses import dataclass

from zveil._native import field_path
from zveil.draft.profile import Profile, looks_like_a_value, profile, shared
from zveil.draft.sample import Sample, is_nameable

MOST_ATTRIBUTES = 3
"""So many are proposed at once; others are there to be chosen."""

_TIME = re.compile(r"(^|_)(@?timestamp|ts|time|datetime|date|t|when|at|created|epoch)(_|$)")
_USER = re.compile(
    r"(^|_)(uid|user|userid|username|login|account|customer|client|member|visitor|subscriber"
    r"|msisdn|imsi|imei|email|mail|person|patient|passenger|card|orig_h)(_|$)"
)
_PERHAPS_USER = re.compile(
    r"(^|_)(ip|addr|address|src|source|session|device|mac|phone|who|id)(_|$)"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_COMMON, _RARE, _FEW = 0.9, 0.1, 3
_UNIQUE = 0.95
_SHARED = 0.2
_MANY = 50


@dataclass(frozen=True)
class Role:
    """A field, what it is taken for, and why."""

    found: Profile
    is_sure: bool
    reasons: tuple[str, ...]
    shared: float = 0.0
    """Share of the records whose value another user showed too."""


@dataclass(frozen=True)
class Guess:
    """The roles of the fields of a sample."""

    records: int
    time: Role | None
    user: Role | None
    attributes: tuple[Role, ...]
    """Those proposed."""
    others: tuple[Role, ...]
    """Those that could be decided about too."""
    rest: tuple[Role, ...]
    """Those that could hardly be."""
    unnamed: int
    """Fields whose names cannot be shown: in few records, or rather values than names."""


def guess(sample: Sample) -> Guess:
    """Guess the role of each field.

    Names that look like values, and fields that few records have, are only counted: what is written
    from this must not hold anything of the sample.
    """
    every = [profile(name, column) for name, column in sample.fields.items()]
    words = _texts(sample)
    named = [each for each in every if _is_shown(each, sample.records, words)]
    time = _time(named)
    taken = [time] if time else []
    user = _user([each for each in named if _is_apart(each, taken)], sample.records)
    taken += [user] if user else []
    open_ = [each for each in named if _is_apart(each, taken)]
    roles = [_attribute(each, sample, user) for each in open_]
    likely = sorted(
        (role for role in roles if role.is_sure or role.shared >= _SHARED),
        key=lambda role: (role.is_sure, role.found.distinct),
        reverse=True,
    )
    likely = [role for role in likely if _can_be_decided(role.found)]
    if not likely:
        decided = [role for role in roles if _can_be_decided(role.found)]
        likely = sorted(decided, key=lambda role: role.shared, reverse=True)[:1]
    chosen: list[Role] = []
    for role in likely:
        if len(chosen) < MOST_ATTRIBUTES and _is_apart(role.found, [*taken, *chosen]):
            chosen.append(role)
    return Guess(
        records=sample.records,
        time=time,
        user=user,
        attributes=tuple(chosen),
        others=tuple(role for role in likely if role not in chosen),
        rest=tuple(role for role in roles if role not in likely),
        unnamed=len(every) - len(named),
    )


def _is_shown(found: Profile, records: int, words: set[str]) -> bool:
    if not is_nameable(found.name) or looks_like_a_value(found.name):
        return False
    if found.present >= _COMMON:
        return True
    # What is not in all records may be a member by somebody's id.
    is_word = not words.isdisjoint((found.name, *field_path(found.name)))
    return not is_word and found.present >= _RARE and found.present * records >= _FEW


def _texts(sample: Sample) -> set[str]:
    columns = sample.fields.values()
    return {value for column in columns for value in column if isinstance(value, str)}


def _is_apart(found: Profile, taken: list[Role]) -> bool:
    """Whether a field is none of these, nor inside one or around one."""
    path = field_path(found.name)
    for role in taken:
        other = field_path(role.found.name)
        short = min(len(path), len(other))
        if path[:short] == other[:short]:
            return False
    return True


def _can_be_decided(found: Profile) -> bool:
    return found.kind in ("text", "whole numbers", "true or false") and found.distinct > 1


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9@]+", "_", _CAMEL.sub("_", name).lower())


def _time(named: list[Profile]) -> Role | None:
    candidates = [each for each in named if each.times >= _UNIQUE and each.present >= 0.5]
    if not candidates:
        return None

    def score(each: Profile) -> tuple[bool, bool, float]:
        return bool(_TIME.search(_plain(each.name))), each.in_order >= 0.9, each.unique

    best = max(candidates, key=score)
    reasons = [f"{best.times:.0%} of its values can be read as times"]
    if _TIME.search(_plain(best.name)):
        reasons.append("its name says so")
    reasons.append(f"{best.in_order:.0%} of them are no earlier than the one before")
    rivals = sum(score(each)[:2] == score(best)[:2] for each in candidates) - 1
    if rivals:
        reasons.append(_others(rivals, "could be it"))
    is_sure = score(best)[0] and not rivals
    return Role(best, is_sure, tuple(reasons))


def _user(open_: list[Profile], records: int) -> Role | None:
    fit = [
        each
        for each in open_
        if each.kind in ("text", "whole numbers") and each.distinct > 1 and each.present >= 0.5
    ]
    if not fit:
        return None

    def score(each: Profile) -> float:
        name = _plain(each.name)
        points = 4.0 if _USER.search(name) else 2.0 if _PERHAPS_USER.search(name) else 0.0
        if records >= _MANY:
            # An id of its own in each record is one of records; a handful is no crowd.
            points -= 3.0 if each.unique > _UNIQUE or each.distinct < 5 else 0.0
        return points + min(each.unique, 0.9)

    best = max(fit, key=score)
    is_named = bool(_USER.search(_plain(best.name)))
    rivals = sum(bool(_USER.search(_plain(each.name))) for each in fit) - is_named
    reasons = ["its name says so"] if is_named else ["none has the name of a user for certain"]
    reasons.append(_counts(best))
    if rivals:
        reasons.append(_others(rivals, "could be by the name"))
    repeats = best.unique <= _UNIQUE or records < _MANY
    if not repeats:
        reasons.append("it hardly ever repeats, as ids of users do")
    return Role(best, is_named and repeats and not rivals, tuple(reasons))


def _attribute(found: Profile, sample: Sample, user: Role | None) -> Role:
    share = 0.0
    if user is not None:
        share = shared(sample.fields[found.name], sample.fields[user.found.name])
    reasons = [found.kind, _counts(found)]
    if user is not None:
        reasons.append(f"{share:.0%} of the records show a value that another user showed too")
    is_sure = found.kind == "text" and share >= 0.5 and found.distinct >= 5
    return Role(found, is_sure, tuple(reasons), share)


def _others(count: int, words: str) -> str:
    return f"{'another field' if count == 1 else f'{count} other fields'} {words}"


def _counts(found: Profile) -> str:
    if found.distinct == 1:
        return "always the same"
    times = 1 / found.unique if found.unique else 0.0
    return (
        f"{found.distinct:,} different values, {found.unique:.0%} of all; each {times:.1f} times "
        "on average"
    )
