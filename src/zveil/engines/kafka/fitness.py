"""Which policies can be kept by workers that share a topic."""

from __future__ import annotations

from zveil.engines.fitness import check_parts
from zveil.io import Format, format_of
from zveil.policy import Policy, PolicyError

_FORMATS = (Format.NDJSON, Format.CSV, Format.TSV)


def check(policy: Policy) -> None:
    """Refuse what needs all of a stream in one place, or what workers cannot share.

    Raises
    ------
    PolicyError
        If the policy says such a thing.
    """
    form = format_of(policy.input.format)
    if form is not None and form not in _FORMATS:
        raise PolicyError(
            ("input", "format"), "messages are records of JSON (ndjson), CSV (csv) or TSV (tsv)"
        )
    check_parts(policy)


def needs_key(policy: Policy) -> bool:
    """Tell whether workers must share a key: for pseudonyms, and for what is drawn under it."""
    draws = any(each.noise or each.swap for each in policy.attributes)
    return policy.user.pseudonym != "raw" or draws
