"""What a controller knows and has done: all that decides what it does next, to and from JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_args

from zveil.hold.change import Change, Ended, Kind
from zveil.hold.correction import Correction
from zveil.hold.course import Course

_REMEMBERED = 1_000

_PLAIN = (
    "z", "outlook", "opens_ns", "may_lower_ns", "looked_ns", "users_before", "expects", "guard",
    "alarm", "is_told",
)  # fmt: skip


@dataclass
class Standing:
    """How things stand.

    Attributes
    ----------
    z
        What is needed now; None while nothing is released.
    outlook
        The share that the period is expected to end with, as of the last look.
    last
        What the meter showed when it was last asked: visible users, those k alike; None where
        nothing is measured.
    course, example
        The present period, and one before that says what the rest of it may be like.
    correction
        What the meter has found about the model.
    opens_ns
        When something may leave for the first time.
    may_lower_ns
        When z may go down; None where that was decided for this period.
    looked_ns
        When the crowds were last looked at.
    users_before
        How many users the period before had.
    expects
        The share below which the crowds are looked at before the time.
    guard
        How close to the wanted share nothing more may leave.
    alarm
        The share below which that is looked into again.
    is_told
        Whether it was said that no z is enough.
    changes, ended
        What was done, and the periods that are over: the last thousand.
    tally
        How often z was set, by the kind of change.
    """

    z: int | None = None
    outlook: float | None = None
    last: tuple[int, int] | None = (0, 0)
    course: Course | None = None
    example: Course | None = None
    correction: Correction = field(default_factory=Correction)
    opens_ns: int = 0
    may_lower_ns: int | None = None
    looked_ns: int = 0
    users_before: float = 0.0
    expects: float = 0.0
    guard: float = 0.0
    alarm: float = 1.0
    is_told: bool = False
    changes: list[Change] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    tally: dict[str, int] = field(default_factory=lambda: dict.fromkeys(get_args(Kind), 0))

    @property
    def share(self) -> float | None:
        """What the meter showed when it was last asked; None where nobody was visible."""
        visible, alike = self.last or (0, 0)
        return alike / visible if visible else None

    def note(self, change: Change) -> None:
        """Remember a change."""
        self.z = change.z
        self.tally[change.kind] += 1
        self.changes = [*self.changes, change][-_REMEMBERED:]

    def note_end(self, ended: Ended) -> None:
        """Remember a period."""
        self.ended = [*self.ended, ended][-_REMEMBERED:]

    def state(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "last": None if self.last is None else list(self.last),
            "course": None if self.course is None else self.course.state(),
            "example": None if self.example is None else self.example.state(),
            "correction": self.correction.state(),
            "changes": [each.as_dict() for each in self.changes],
            "ended": [each.as_dict() for each in self.ended],
            "tally": dict(self.tally),
        }

    @classmethod
    def resumed(cls, state: dict[str, Any], rotate_ns: int) -> Standing:
        """Make the standing that `state` was of."""
        last = state["last"]
        course, example = (
            None if saved is None else Course.resumed(saved, rotate_ns)
            for saved in (state["course"], state["example"])
        )
        found = cls(
            **{name: state[name] for name in _PLAIN},
            course=course,
            example=example,
            last=None if last is None else (int(last[0]), int(last[1])),
            changes=[Change(**each) for each in state["changes"]],
            ended=[Ended(**each) for each in state["ended"]],
            tally=dict(state["tally"]),
        )
        found.correction.resume(state["correction"])
        return found
