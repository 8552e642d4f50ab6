"""What a meter shows: visible users, by how many of them look the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

KS = (2, 3, 5, 10)
"""The k whose shares are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The visible users of one period, by k: how many of them, they included, have the same set.

    The observer is one who sees the *set of values* of each pseudonym, and no times. A user is
    visible with at least one value released.
    """

    start_ns: int | None
    """When the period began, in nanoseconds since 1970; None if pseudonyms never change."""
    users: int
    """Visible users."""
    classes: int
    """Different sets: each stands for a class of users who look the same."""
    sizes: dict[int, int]
    """For each k that occurs the number of users who have it, in the order of k."""
    pairs: int
    """Values that users have, summed over the users."""
    late: int
    """Releases that came when the period was over, and are not counted."""
    is_over: bool
    """No more can come: what is shown stays."""
    is_stopped: bool
    """The limit on memory ended the measuring of this period, or it was not seen from its start:
    nothing is known, all counts are 0."""

    def at_least(self, k: int) -> int:
        """Count the users whose k is at least this."""
        return sum(users for size, users in self.sizes.items() if size >= k)

    def share(self, k: int) -> float | None:
        """Give the share of visible users whose k is at least this; None if there are none.

        None also if measuring was stopped: nobody may take that for a good answer.
        """
        return self.at_least(k) / self.users if self.users else None

    @property
    def shares(self) -> dict[int, float | None]:
        """The shares of visible users whose k is at least 2, 3, 5, 10."""
        return {k: self.share(k) for k in KS}

    def brief(self) -> Reading:
        """Give the same, with the distribution no finer than the k whose shares are told."""
        sizes = dict.fromkeys((1, *KS), 0)
        for k, users in self.sizes.items():
            sizes[max(size for size in sizes if size <= k)] += users
        return replace(self, sizes={k: users for k, users in sizes.items() if users})

    def as_dict(self) -> dict[str, Any]:
        """Give it as plain values, for JSON; without the distribution."""
        return {
            "start_ns": self.start_ns,
            "users": self.users,
            "classes": self.classes,
            "pairs": self.pairs,
            "at_least": {str(k): self.at_least(k) for k in KS},
            "shares": {str(k): share for k, share in self.shares.items()},
            "late": self.late,
            "is_over": self.is_over,
            "is_stopped": self.is_stopped,
        }
