"""The policy that a choice of z, window and rotation comes to, as a file to copy."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zveil.policy import Policy
from zveil.policy.file import parse_policy

_MORE = "# Hierarchies, kept fields and limits of the running policy: carry them over.\n"


@dataclass(frozen=True, kw_only=True)
class Names:
    """The fields of a stream."""

    time: str
    user: str
    attributes: tuple[str, ...]

    @classmethod
    def of(cls, policy: Policy | None) -> Names:
        """Give those of a policy; names to begin with where there is none."""
        if policy is None:
            return cls(time="ts", user="uid", attributes=("host",))
        return cls(time=policy.time.field, user=policy.user.field, attributes=policy.names)


def proposal(names: Names, *, z: int, window: str, rotate: int | None, running: bool) -> str:
    """Write the policy file; it is one that `zveil run --policy` and `zveil serve` take.

    Parameters
    ----------
    names
        The fields.
    z, window, rotate
        What was chosen; the rotation in windows, None for ids that stay.
    running
        Whether the names are those of a running policy, which may say more than these lines.

    Raises
    ------
    zveil.policy.PolicyError
        If it would be no policy: a field has two roles, for example.

    Examples
    --------
    >>> names = Names(time="ts", user="uid", attributes=("host",))
    >>> print(proposal(names, z=60, window="1h", rotate=4, running=False).splitlines()[6])
    rotate = "4 windows"
    """
    lines = ["[time]", f"field = {_text(names.time)}"]
    lines += ['round = "hour"', "", "[user]", f"field = {_text(names.user)}"]
    if rotate is not None:
        windows = "1 window" if rotate == 1 else f"{rotate} windows"
        lines.append(f"rotate = {_text(windows)}")
    for name in names.attributes:
        lines += ["", "[[attribute]]", f"field = {_text(name)}", f"z = {z}"]
        lines.append(f"window = {_text(window)}")
    text = "\n".join(lines) + "\n"
    parse_policy(text)
    return _MORE + text if running else text


def namer(names: Names, named: Callable[[Names], None]) -> Callable[[str], Callable[[str], None]]:
    """Give what takes the names of fields one by one, as they are typed.

    Parameters
    ----------
    names
        Those to begin with.
    named
        Is given all of them when one was typed.
    """
    typed = {"time": names.time, "user": names.user, "attributes": ", ".join(names.attributes)}

    def of(which: str) -> Callable[[str], None]:
        def set_(value: str) -> None:
            typed[which] = value
            named(typed_names(**typed))

        return set_

    return of


def typed_names(time: str, user: str, attributes: str) -> Names:
    """Take names as they are typed, the attributes with commas between them.

    >>> typed_names(" ts", "uid", "host, page.path,").attributes
    ('host', 'page.path')
    """
    return Names(time=time.strip(), user=user.strip(), attributes=tuple(_split(attributes)))


def _split(text: str) -> Sequence[str]:
    return [name for name in (part.strip() for part in text.split(",")) if name]


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
