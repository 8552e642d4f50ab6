"""What is to be expected of a period from one look on: its end at any z, and the next look."""

from __future__ import annotations

from collections.abc import Sequence

from zveil.hold.correction import Correction
from zveil.hold.course import Compared, Course
from zveil.hold.looks import Absent, Stretch, first
from zveil.hold.outlook import Outlook, log_odds

# With a correction so far below that of the periods before, a period is not like them.
_LIKE = 0.15


def compared(course: Course, *, users: float, k: int, visible: int, alike: int) -> Compared:
    """Hold the model against what the meter shows of the same moment.

    Parameters
    ----------
    course
        The period so far.
    users, k
        How many there are, and how many must be alike.
    visible, alike
        What the meter shows.
    """
    model = Outlook(Absent(course.stretches, [], users), users=users, k=k).now
    share = alike / visible
    off = log_odds(share, visible) - log_odds(model, visible)
    return Compared(course.seen_ns / course.length_ns, off, model, share)


class Prospect:
    """What is to be expected, by the model and by what the meter has found about it.

    Parameters
    ----------
    course, ahead
        The period so far, and what the rest of it may be like.
    correction
        What was found in the periods before.
    users, k
        As for `compared`.
    """

    def __init__(
        self,
        course: Course,
        ahead: Sequence[Stretch],
        correction: Correction,
        *,
        users: float,
        k: int,
    ) -> None:
        self._course, self.ahead, self._correction = course, ahead, correction
        self._users, self._k = users, k
        last = self._last
        moved = correction.at(1.0)
        if last is not None:
            moved += last.place * (last.off - correction.at(last.place))
        self.end = self._outlook(ahead, moved)
        """Of the end of the period."""

    @property
    def _last(self) -> Compared | None:
        return self._course.corrections[-1] if self._course.corrections else None

    @property
    def is_like(self) -> bool:
        """Whether the period is like those before, so that a promise of a better end counts."""
        last, correction = self._last, self._correction
        if last is None or not correction.is_known:
            return False
        return last.off >= correction.at(last.place) - _LIKE

    def soon(self, z: int, length_ns: float) -> float | None:
        """Give the share expected after so long at a z; None while too little was seen."""
        last, correction = self._last, self._correction
        if last is None:
            return None
        place = min(last.place + length_ns / self._course.length_ns, 1.0)
        moved = last.off + correction.at(place) - correction.at(last.place)
        return self._outlook(first(self.ahead, length_ns), moved).at(z)

    def _outlook(self, ahead: Sequence[Stretch], moved: float) -> Outlook:
        absent = Absent(self._course.stretches, ahead, self._users)
        return Outlook(absent, users=self._users, k=self._k, moved=moved)
