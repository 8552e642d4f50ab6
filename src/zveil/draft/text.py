"""A policy file to begin with, written from what a sample looks like."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from zveil.draft.guess import Guess, Role

_WIDTH = 88
_UNSURE = "UNSURE"
_DAY_S, _WEEK_S, _MINUTE_S = 86_400, 7 * 86_400, 60
_HOST = re.compile(r"(host|domain|sni|server|query|site|fqdn)", re.IGNORECASE)
_LATITUDE = re.compile(r"(^|[._-])lat(itude)?$", re.IGNORECASE)
_LONGITUDE = re.compile(r"(^|[._-])(lon|lng|long|longitude)$", re.IGNORECASE)
_MISSING = {"time": "NAME-OF-THE-TIME", "user": "NAME-OF-THE-USER", "value": "NAME-OF-A-VALUE"}


def draft(guess: Guess, *, form: str) -> str:
    """Write a policy file with a comment for each choice.

    It has names of fields and figures about them, and no value of the sample.

    Parameters
    ----------
    guess
        The roles of the fields.
    form
        The format of the sample.
    """
    z, window = _z(guess), _window(guess)
    parts = [
        "\n".join(_head(guess)),
        f"[input]\nformat = {_text(form)}",
        "\n".join(_time(guess.time)),
        "\n".join(_user(guess.user)),
        *("\n".join(_attribute(role, z, window)) for role in guess.attributes),
    ]
    if not guess.attributes:
        parts.append("\n".join(_no_attribute(z, window)))
    parts += ["\n".join(_off(role, z, window)) for role in guess.others]
    parts += ["\n".join(_position(guess, z, window)), "\n".join(_record(guess)), _LIMITS]
    return "\n\n".join(part for part in parts if part) + "\n"


_LIMITS = """\
[limits]
# How far behind the newest time a record may lie; the longest window by default.
# lateness = "1h"
# What is remembered may take so much memory; when it is full, new values are veiled.
memory = "2GB\""""


def _head(guess: Guess) -> Iterator[str]:
    yield from _comment(
        f"A policy drafted from {guess.records:,} records. It is a beginning and no advice: read "
        f"each comment, look for {_UNSURE}, then"
    )
    yield "#   zveil policy check FILE                     what it means, in sentences"
    yield "#   zveil run SAMPLE --policy FILE --dry-run    what each z would release"
    yield "#   zveil plan SAMPLE --time ... --user ...     the z for a wanted k-anonymity"
    if guess.records < 1_000:
        yield from _comment(f"{_UNSURE}: so few records say little; draft it from more of them.")


def _time(role: Role | None) -> Iterator[str]:
    yield "[time]"
    if role is None:
        yield from _comment(f"{_UNSURE}: no field has values that can be read as times.")
        yield f"field = {_text(_MISSING['time'])}"
    else:
        yield from _because(role)
        yield f"field = {_text(role.found.name)}"
        if role.found.time_format is not None:
            yield from _comment("What its values are; a wrong one can release too much.")
            yield f"format = {_text(role.found.time_format)}"
    yield from _comment(
        "What times that leave are rounded down to: none, minute, hour or day. Exact times are "
        "what people are found by; decisions go by the exact time all the same."
    )
    yield 'round = "minute"'


def _user(role: Role | None) -> Iterator[str]:
    yield "[user]"
    if role is None:
        yield from _comment(f"{_UNSURE}: no field has values that repeat as ids of users do.")
        yield f"field = {_text(_MISSING['user'])}"
    else:
        yield from _because(role)
        yield f"field = {_text(role.found.name)}"
    yield from _comment(
        "It must stay the same for a person at least as long as the longest window, or one counts "
        "for several. What leaves is a pseudonym."
    )
    yield 'pseudonym = "base32"'


def _attribute(role: Role, z: int, window: str) -> Iterator[str]:
    yield "[[attribute]]"
    yield from _because(role)
    yield f"field = {_text(role.found.name)}"
    yield from _threshold(z, window)
    if role.found.kind == "text" and _HOST.search(role.found.name):
        yield from _comment(
            "If it holds host names, the registered domain can leave where the name itself may "
            "not (needs the extra zveil[domains]):"
        )
        yield '# hierarchy = ["domain"]'


def _no_attribute(z: int, window: str) -> Iterator[str]:
    yield "[[attribute]]"
    yield from _comment(f"{_UNSURE}: no field has values that several users share.")
    yield f"field = {_text(_MISSING['value'])}"
    yield from _threshold(z, window)


def _threshold(z: int, window: str) -> Iterator[str]:
    yield from _comment(
        "A value leaves if so many users showed it within the window. A guess: try others with "
        "--dry-run, and see what zveil plan says."
    )
    yield f"z = {z}"
    yield f'window = "{window}"'


def _off(role: Role, z: int, window: str) -> Iterator[str]:
    """Write an attribute that is to be chosen by taking the marks away."""
    yield from _comment(f"This field could be decided about too: {'; '.join(role.reasons)}.")
    yield "# [[attribute]]"
    yield f"# field = {_text(role.found.name)}"
    yield f"# z = {z}"
    yield f'# window = "{window}"'


def _position(guess: Guess, z: int, window: str) -> Iterator[str]:
    names = [role.found.name for role in (*guess.rest, *guess.others, *guess.attributes)]
    latitude = next((name for name in names if _LATITUDE.search(name)), None)
    longitude = next((name for name in names if _LONGITUDE.search(name)), None)
    if latitude is None or longitude is None:
        return
    yield from _comment("These two look like a position, which can leave as a cell of a map:")
    yield "# [[attribute]]"
    yield f"# fields = [{_text(latitude)}, {_text(longitude)}]"
    yield '# name = "cell"'
    yield f"# z = {z}"
    yield f'# window = "{window}"'
    yield "# hierarchy = [{ cells = [9, 7, 5] }]"


def _record(guess: Guess) -> Iterator[str]:
    yield "[record]"
    yield from _comment(
        "Other fields leave only if they are named here, and then as they are: whatever stands in "
        "them is seen, shared by others or not."
    )
    yield "keep = []"
    if guess.rest:
        yield "# Fields that stay out, and are hard to decide about:"
    for role in guess.rest:
        yield f"#   {_text(role.found.name)}: {'; '.join(role.reasons)}"
    if guess.unnamed:
        yield from _comment(
            f"Fields besides whose names are not shown, because few records have them or the "
            f"names could be values: {guess.unnamed}."
        )
    yield from _comment(
        'A record with nothing released: "drop", or "blank", which shows that its user was active.'
    )
    yield 'empty = "drop"'


def _because(role: Role) -> Iterator[str]:
    words = f"{'; '.join(role.reasons)}."
    yield from _comment(words[0].upper() + words[1:] if role.is_sure else f"{_UNSURE}: {words}")


def _comment(words: str) -> list[str]:
    return textwrap.wrap(
        words, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )


def _text(words: str) -> str:
    """Write a text as TOML has it."""
    shown = words.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in shown) + '"'


def _z(guess: Guess) -> int:
    """Propose 20 as the paper does; less where there are not the users for it."""
    users = guess.user.found.distinct if guess.user is not None else 0
    return 20 if users >= 200 or not users else max(3, users // 10)


def _window(guess: Guess) -> str:
    seconds = guess.time.found.span_s if guess.time is not None else 0.0
    if seconds >= _WEEK_S:
        return "1d"
    return "10m" if 0 < seconds <= 30 * _MINUTE_S else "1h"
