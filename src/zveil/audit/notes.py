"""What an audit assumes and what it does not say, in sentences."""

from __future__ import annotations

from zveil.audit.measure import Audit

_UNITS_NS = (
    ("week", 604_800_000_000_000),
    ("day", 86_400_000_000_000),
    ("hour", 3_600_000_000_000),
    ("minute", 60_000_000_000),
)


def period_words(length_ns: int) -> str:
    """Write the length of a period in words.

    >>> period_words(86_400_000_000_000), period_words(5_400_000_000_000)
    ('1 day', '90 minutes')
    """
    for unit, size in _UNITS_NS:
        if length_ns % size == 0:
            count = length_ns // size
            return f"{count:,} {unit}" + ("" if count == 1 else "s")
    return f"{length_ns / 1e9:,} seconds"


def notes(audit: Audit) -> list[str]:
    """Say what was assumed of this stream, and what could not be known."""
    use = audit.utility
    found = [
        "A visible user is an id under which something was released. An id that changed counts "
        "as another user each time.",
        "Weeks, days, hours and minutes are cut from the Unix epoch, in UTC.",
    ]
    if use.observed is None:
        found.append(
            "Without the original, what was veiled and how many users are silent is unknown."
        )
    elif use.observed < use.released:
        found.append(
            "More was released than the original holds: these are not the files it was made "
            "from, and what was veiled is unknown."
        )
    if audit.levels:
        found.append(
            "A released value is counted at the finest level at which the original has it; cells "
            "are counted by their resolution."
        )
    elif any(audit.options.hierarchies):
        found.append("Without the original it is unknown of which level a released value is.")
    if use.ids_match is False:
        found.append(
            "The released stream has other ids than the original. Visible users are counted "
            "in the released stream, all users in the original; silent users are the difference, "
            "which is right if every user had one pseudonym throughout."
        )
    if use.users_visible == 0:
        found.append("Nothing was released: there is nobody to single out.")
    found += _rotation_notes(audit)
    if audit.incomplete:
        found.append(
            f"{audit.incomplete:,} values without a time or a user were left out of the count."
        )
    if audit.bad:
        found.append(f"{audit.bad:,} lines or times could not be read and were left out.")
    found.append(
        "The figures hold for an observer who knows what is named beside them and nothing else. "
        "Who knows more, or sees another release of the same events, finds more."
    )
    return found


def _rotation_notes(audit: Audit) -> list[str]:
    if audit.rotation is None:
        return []
    found = ["Periods are cut from the Unix epoch too; users are compared within their period."]
    if audit.rotation.linkage is None:
        found.append(
            "No id is seen in two periods: pseudonyms really changed, or there is one period. "
            "Whether users can be matched across periods cannot be known from this stream; audit "
            "one with stable ids (zveil run --raw-users), which stays with you."
        )
    else:
        found.append(
            "The stream has stable ids; the change of pseudonyms is simulated. The match by "
            "likeness is one simple method: others may match more."
        )
    return found


LIMITS = (
    "It does not say that nobody can be identified. It measures three things an observer may try, "
    "under the assumptions named; it is no proof about others.",
    "k counts users with exactly the same released data. It says nothing about inference: all who "
    "share a set share every value in it, and an observer who knows that someone is among "
    "them knows those values of that person, without singling anyone out.",
    "A value that is released says that enough users showed it within the window. The first "
    "release of a rare value tells when that came to be.",
    "Who can make up users can push a value over the threshold: that does not show in these "
    "figures.",
    "Fields that left the program besides time, user and the attributes named here were not "
    "looked at.",
)
"""What no audit says."""

CRITERIA = (
    (
        "Singling out",
        "Can one user be told apart from all others? Measured by k, the number of visible users "
        "with the same released data, and by how often a few known points fit one user only.",
    ),
    (
        "Linkability",
        "Can records of one user be joined, within the stream or across a change of pseudonyms? "
        "Within the stream they are joined by the id. Across a change it is measured if a "
        "period was named.",
    ),
    (
        "Inference",
        "Can something be concluded about a person? Not measured: every released value of a user "
        "who is found is known, and so is what all users of a class share.",
    ),
)
"""The three questions of the Article 29 Working Party's opinion 05/2014."""
