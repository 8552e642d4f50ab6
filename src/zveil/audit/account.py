"""The account of an audit as plain values, for JSON."""

from __future__ import annotations

from dataclasses import asdict

from zveil.audit.crowds import GROUPS, Crowds
from zveil.audit.measure import Audit, Rotation
from zveil.audit.notes import notes
from zveil.audit.points import Resolution
from zveil.audit.tables import moment
from zveil.audit.unicity import Unicity, resolution_words
from zveil.audit.utility import Course

_BY_TIME = (Resolution.WEEK, Resolution.DAY, Resolution.HOUR)


def as_dict(audit: Audit) -> dict[str, object]:
    """Give an audit as plain values.

    Shares are numbers from 0 to 1, null where there is nothing to take a share of.
    """
    use = audit.utility
    return {
        "users": use.users,
        "users_visible": use.users_visible,
        "users_silent": use.users_silent,
        "released": use.released,
        "observed": use.observed,
        "veiled": use.veiled,
        "ids_match": use.ids_match,
        "k_share": _k_share(audit.crowds_at(Resolution.SET)),
        "k_share_by_time": {each.label: _k_share(audit.crowds_at(each)) for each in _BY_TIME},
        "unicity": {str(each.points): each.share for each in audit.unicity},
        "k": [_crowds(each) for each in audit.crowds],
        "unicity_points": {
            "point": resolution_words(audit.options.resolution),
            "sample": audit.options.sample,
            "seed": audit.options.seed,
            "by_number": [_unicity(each) for each in audit.unicity],
        },
        "rotation": None if audit.rotation is None else _rotation(audit.rotation),
        "fields": [asdict(each) for each in use.fields],
        "levels": [asdict(each) for each in audit.levels],
        "over_time": None if use.course is None else _course(use.course),
        "released_per_user": {f"p{percent}": count for percent, count in use.per_user.items()},
        "first": None if use.first_ns is None else moment(use.first_ns),
        "last": None if use.last_ns is None else moment(use.last_ns),
        "values": [asdict(each) for each in audit.values],
        "incomplete": audit.incomplete,
        "bad": audit.bad,
        "policy": audit.options.policy,
        "notes": notes(audit),
    }


def _k_share(found: Crowds) -> dict[str, float | None]:
    return {str(k): part for k, part in found.shares.items()}


def _crowds(found: Crowds) -> dict[str, object]:
    return {
        "resolution": found.resolution.label,
        "observer_knows": found.resolution.knowledge,
        "users": found.users,
        "k_share": _k_share(found),
        "alone": found.alone,
        "users_by_k": [
            {"from": low, "to": high, "users": count}
            for (low, high), count in zip(GROUPS, found.groups, strict=True)
        ],
        "classes": found.classes,
        "entropy_bits": round(found.entropy_bits, 6),
        "entropy_most_bits": round(found.most_bits, 6),
    }


def _unicity(found: Unicity) -> dict[str, object]:
    return asdict(found) | {"share": found.share, "interval": found.interval}


def _rotation(rotation: Rotation) -> dict[str, object]:
    linked = rotation.linkage
    return {
        "period_s": rotation.length_ns / 1e9,
        "k": [_crowds(each) for each in rotation.crowds],
        "periods": [
            {
                "start": moment(each.start_ns),
                "users_visible": each.users_visible,
                "k_share": {str(k): n / each.users_visible for k, n in each.at_least.items()},
            }
            for each in rotation.periods
        ],
        "linkage": None
        if linked is None
        else asdict(linked)
        | {
            "same_set_share": linked.same_set_share,
            "alike_share": linked.alike_share,
            "alike_interval": linked.alike_interval,
        },
    }


def _course(course: Course) -> dict[str, object]:
    return {
        "step_s": course.step_ns // 1_000_000_000,
        "start": [moment(start) for start in course.starts_ns.tolist()],
        "released": course.released.tolist(),
        "observed": None if course.observed is None else course.observed.tolist(),
    }
