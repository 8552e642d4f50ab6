"""What could be done where no z within the limits reaches the wanted level, with figures.

The figures are the model's for the users that were seen, moved by what the meter has found; they
are for a whole period as the last ones were. Rounding times is not among them: it does not change
what an observer of the set of values has, though much of what one of the times has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from zveil.hold.looks import Absent, Look, Stretch
from zveil.hold.outlook import Outlook
from zveil.policy.hold import Hold
from zveil.policy.wording import span

_SOONER = (2, 3, 4, 6, 8, 12, 24)
_LONGER = (2, 4, 8, 24)
_COARSER = (2, 5, 10, 20, 50)

VISIBLE = 0.01
"""Where fewer of the users would have anything released, a level is not called reached."""


@dataclass(frozen=True)
class Remedy:
    """Something to do instead, and what it would come to.

    Attributes
    ----------
    what
        In words.
    z
        What would then be needed.
    share
        What a period would end with.
    visible
        The share of all users with something released in it.
    """

    what: str
    z: int
    share: float
    visible: float

    def __str__(self) -> str:
        return (
            f"{self.what}: z = {self.z:,} would end with {self.share:.1%}, and {self.visible:.0%} "
            "of the users visible"
        )


def remedies(
    period: Sequence[Stretch], *, users: float, hold: Hold, moved: float, rotate_ns: int
) -> list[Remedy]:
    """Find what could be done.

    Parameters
    ----------
    period
        What a whole period is like.
    users
        How many there are.
    hold
        What is wanted.
    moved
        What is added to the model's log odds for the end of a period.
    rotate_ns
        How long a period is.
    """

    def best(
        what: str, change: Callable[[Stretch], Stretch] = lambda each: each, z_max: int = hold.z_max
    ) -> Remedy | None:
        changed = [change(each) for each in period]
        outlook = Outlook(Absent([], changed, users), users=users, k=hold.k, moved=moved)
        z = outlook.smallest(hold.z_min, z_max, hold.p)
        if z is None or outlook.visible(z) < VISIBLE:
            return None
        return Remedy(what, z, outlook.at(z), outlook.visible(z))

    def tried() -> Iterator[Iterator[Remedy | None]]:
        yield (
            best(
                f"--rotate every {span(rotate_ns // parts)}",
                lambda each, parts=parts: replace(each, length_ns=each.length_ns / parts),  # type: ignore[misc]
            )
            for parts in _SOONER
        )
        largest = int(max((each.look.users.max(initial=0) for each in period), default=0))
        yield (best(f"--z-max {most:,}", z_max=most) for most in _doubled(hold.z_max, largest))
        yield (
            best(
                f"a --window {times} times as long",
                lambda each, times=times: replace(each, look=_longer(each.look, times, users)),  # type: ignore[misc]
            )
            for times in _LONGER
        )
        count = max((len(each.look.users) for each in period), default=0)
        yield (
            best(
                f"coarser values, each for about {values} of now",
                lambda each, labels=count // values: replace(  # type: ignore[misc]
                    each, look=_coarser(each.look, labels, users)
                ),
            )
            for values in _COARSER
            if count >= 2 * values
        )

    # Of each kind the mildest that does.
    found = (next((each for each in kind if each is not None), None) for kind in tried())
    return [each for each in found if each is not None]


def unreachable(hold: Hold, outlook: Outlook, found: Sequence[Remedy]) -> Iterator[str]:
    """Say that no z within the limits is enough, what happens then, and what could be done."""
    most = hold.z_max
    yield (
        f"no z from {hold.z_min:,} to {most:,} is expected to hold k = {hold.k} for {hold.p:.1%} "
        f"of the visible users: at {most:,} the period would end with {outlook.at(most):.1%}, and "
        f"{outlook.visible(most):.0%} of the users visible"
    )
    yield "nothing more leaves in a period once its share has come down to what is wanted"
    for each in found:
        yield f"what could be: {each}"
    if not found:
        yield "what could be: a smaller k or p; nothing else was found to do"


def _doubled(z_max: int, largest: int) -> Iterator[int]:
    most = z_max * 2
    while most <= largest:
        yield most
        most *= 2


def _longer(look: Look, times: int, users: float) -> Look:
    """Give the crowds of a window so many times as long."""
    shown = np.minimum(look.users / max(users, 1.0), 1.0)
    more = np.rint(users * (1 - (1 - shown) ** times))
    return Look(look.attribute, more, look.window_ns * times)


def _coarser(look: Look, labels: int, users: float) -> Look:
    """Give the crowds of so many labels, each for values by chance: what tells them apart is."""
    label = (look.attribute / 2.0**64 * labels).astype(np.int64)
    shown = np.minimum(look.users / max(users, 1.0), 0.999)
    known, place = np.unique(label, return_inverse=True)
    crowds = users * -np.expm1(np.bincount(place, np.log1p(-shown), len(known)))
    windows = np.zeros(len(known))
    windows[place] = look.window_ns
    return Look(known.astype(np.uint64), np.rint(crowds), windows)
