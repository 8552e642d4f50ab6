"""Which policies can be kept by workers that share a topic."""

from __future__ import annotations

from zveil.io import Format, format_of
from zveil.policy import Policy, PolicyError
from zveil.policy.hold import IN_PARTS

_FORMATS = (Format.NDJSON, Format.CSV, Format.TSV)


def check(policy: Policy) -> None:
    """Refuse what needs all of a stream in one place, or what workers cannot share.

    Whatever looks across attributes does not partition, and belongs here: it is refused before
    anything is read.

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
    if policy.hold is not None:
        raise PolicyError(("hold",), IN_PARTS.removeprefix("hold: "))
    if policy.user.rotate is not None and not policy.user.keep_keys:
        raise PolicyError(
            ("user", "rotate"),
            "a one-way chain of keys belongs to one process, and workers must make the same "
            "pseudonyms; say keep_keys too, which makes the key of each period from the key file",
        )


def needs_key(policy: Policy) -> bool:
    """Tell whether workers must share a key: for pseudonyms, and for what is drawn under it."""
    draws = any(each.noise or each.swap for each in policy.attributes)
    return policy.user.pseudonym != "raw" or draws
