"""What no engine can keep of a policy, since each of its tasks sees a part of the stream."""

from __future__ import annotations

from zveil.policy import Policy, PolicyError
from zveil.policy.hold import IN_PARTS


def check_parts(policy: Policy) -> None:
    """Refuse what needs all of a stream in one place, or a secret that tasks cannot share.

    Whatever looks across attributes does not partition, and belongs here: it is refused before
    anything is read.

    Raises
    ------
    PolicyError
        If the policy says such a thing.
    """
    if policy.hold is not None:
        raise PolicyError(("hold",), IN_PARTS.removeprefix("hold: "))
    if policy.user.rotate is not None and not policy.user.keep_keys:
        raise PolicyError(
            ("user", "rotate"),
            "a one-way chain of keys belongs to one process, and workers must make the same "
            "pseudonyms; say keep_keys too, which makes the key of each period from the key file",
        )
