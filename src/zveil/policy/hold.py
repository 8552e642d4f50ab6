"""The part of a policy that lets z go by what the output is measured to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zveil.policy.error import PolicyError

Z_MIN, Z_MAX = 2, 1_000

IN_PARTS = (
    "hold: who looks like whom is not known to one part of a stream, so that no level can be held "
    "there; let one process see all of it, or state a z that stays"
)
"""Why workers that each see some of the values cannot hold a level: what they say of a policy."""

_RULE = "expected k and p such as 'k=2 p=0.95'"


@dataclass(frozen=True, kw_only=True)
class Hold:
    """A level of k-anonymity to hold, by a z that is chosen while the stream runs.

    Over each period of the pseudonyms, at least a share p of the users with something released are
    to have the same set of values released as k - 1 others or more.

    Parameters
    ----------
    p
        The share; above 0 and below 1.
    k
        From 2 to 64.
    z_min, z_max
        The smallest and the largest z that may be chosen, for every attribute; z_min from 1. Memory
        grows with z_max.

    Examples
    --------
    >>> Hold.of("k=3 p=0.9")
    Hold(p=0.9, k=3, z_min=2, z_max=1000)
    """

    p: float
    k: int = 2
    z_min: int = Z_MIN
    z_max: int = Z_MAX

    def __post_init__(self) -> None:
        is_number = isinstance(self.p, int | float) and not isinstance(self.p, bool)
        if not is_number or not 0 < self.p < 1:
            raise PolicyError(("p",), f"expected a share above 0 and below 1, got {self.p!r}")
        _check_whole(self.k, "k", 2, 64)
        _check_whole(self.z_min, "z_min", 1)
        _check_whole(self.z_max, "z_max", 1)
        if self.z_max < self.z_min:
            raise PolicyError(
                ("z_max",), f"expected at least z_min, which is {self.z_min}, got {self.z_max}"
            )

    @classmethod
    def of(cls, text: str, **limits: int) -> Hold:
        """Read ``"k=2 p=0.95"``; k may be left out."""
        said: dict[str, Any] = {}
        for word in text.replace(",", " ").split():
            name, _, value = word.partition("=")
            if name not in ("k", "p") or name in said:
                raise PolicyError((), f"{_RULE}, got {text!r}")
            try:
                said[name] = int(value) if name == "k" else float(value)
            except ValueError:
                raise PolicyError((), f"{_RULE}, got {text!r}") from None
        if "p" not in said:
            raise PolicyError((), f"{_RULE}, got {text!r}")
        return cls(**said, **limits)

    def meaning(self) -> dict[str, Any]:
        """Give what it says in one form."""
        return {"k": self.k, "p": float(self.p), "z_min": self.z_min, "z_max": self.z_max}


def _check_whole(value: int, key: str, least: int, most: int | None = None) -> None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):
        to = "" if most is None else f" to {most}"
        raise PolicyError((key,), f"expected a whole number from {least}{to}, got {value!r}")
