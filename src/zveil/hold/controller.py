"""The controller: chooses z while the stream runs, so that a wanted level of k-anonymity is held.

It is asked between two pieces of the stream, and mostly does nothing. Now and then it looks at the
gates' crowds (`looks`), asks the model what the end of the period will be like, moved by what the
meter has found (`outlook`, `correction`), and sets z:

- *at the start of a period* to the smallest z whose outlook reaches the wanted share and a margin;
  down only once no record of the period before can come any more;
- *at any other time* only up, where the outlook at the present z falls short;
- *to nothing at all* where the share has come down to what is wanted and goes on falling, and no z
  is enough, or the period is too strange to go by the outlook: a share does not change while
  nothing leaves.

Until one window has been seen nothing leaves: the gates know no crowds before.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any, Protocol

from zveil.gate import Gate
from zveil.hold.change import Change, Ended, moment
from zveil.hold.course import Course
from zveil.hold.looks import Look
from zveil.hold.outlook import Outlook
from zveil.hold.prospect import Prospect, compared
from zveil.hold.remedies import VISIBLE, remedies, unreachable
from zveil.hold.standing import Standing
from zveil.policy.hold import Hold

# Looks: two in a window, but no fewer than 12 in a period and no more than 96.
_LOOKS_IN_WINDOW, _FEWEST_LOOKS, _MOST_LOOKS = 2, 12, 96
# Between two of them, a share that falls by this more than expected makes another; not sooner than
# after this part of the time between them.
_FALL, _SOONEST = 0.004, 1 / 128
# A share counts for something with so many visible users, and so many of all.
_FEWEST_VISIBLE, _VISIBLE_PART = 30, 0.1
# Crowds below this part of the z of the period's start are left out of looks.
_NEAR = 4
# Parts of the margin: below which z goes up and to where, and above which it goes down.
_UP_BELOW, _UP_TO, _DOWN_ABOVE = 1 / 3, 2 / 3, 3 / 2
# A raise that soon follows another is by this part at least.
_AGAIN = 1 / 4
# This close to the wanted share nothing more leaves: so many times what it fell by since the last
# step, within bounds.
_STEPS, _GUARD, _MOST_GUARD = 2, 0.004, 0.01


class Shown(Protocol):
    """What a meter shows of the present period, and of the one before."""

    def follow(self, gates: Any, /) -> None:
        """Move its clock on to that of the gates."""

    def counts(self, k: int, /) -> tuple[int, int] | None:
        """Count the visible users, and those who are k alike; None if nothing is measured."""

    def before(self, k: int, /) -> tuple[int, int] | None:
        """Count the same of the period before."""


class Controller:
    """Holds a level of k-anonymity over each period of the pseudonyms.

    Parameters
    ----------
    hold
        The level, and the limits of z.
    gates
        One for each attribute, able to take hold.z_max. They are closed until enough is known.
    least
        The smallest z that each of them may have.
    rotate_ns
        How long a period is.
    lateness_ns
        How late records may come.
    report
        Is told of every change, in words.
    """

    def __init__(
        self,
        hold: Hold,
        gates: Sequence[Gate],
        *,
        least: Sequence[int],
        rotate_ns: int,
        lateness_ns: int,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.hold = hold
        self._gates = list(gates)
        self._least = list(least)
        self._rotate_ns, self._lateness_ns = rotate_ns, lateness_ns
        self._window_ns = max(gate.window_ns for gate in gates)
        every = min(gate.window_ns for gate in gates) / _LOOKS_IN_WINDOW
        self._every_ns = min(max(every, rotate_ns / _MOST_LOOKS), rotate_ns / _FEWEST_LOOKS)
        self._report = report
        self.now = Standing(guard=_GUARD)
        gates[0]._count_users()
        self._apply()

    def step(self, meter: Shown) -> None:
        """Do what is to be done; to be called between two pieces of the stream."""
        clocks = [clock for gate in self._gates if (clock := gate._clock()) is not None]
        if not clocks:
            return
        clock, now = max(clocks), self.now
        number = clock // self._rotate_ns
        meter.follow(self._gates)
        course = now.course
        if course is None:
            course = Course(number, self._rotate_ns, clock - number * self._rotate_ns)
            now.course, now.looked_ns, now.opens_ns = course, clock, clock + self._window_ns
        elif number > course.number:
            is_next = number == course.number + 1
            counts = meter.before(self.hold.k) if is_next else None
            course = self._end(course, number, clock, counts or now.last or (0, 0))
        before = now.share
        now.last = meter.counts(self.hold.k)
        if before is not None and now.share is not None:
            fall = _STEPS * (before - now.share)
            now.guard = min(max(fall, _GUARD), _MOST_GUARD)
        if now.last is None:
            self._stop(clock)
        elif clock >= now.looked_ns + self._every_ns or self._has_fallen(clock, *now.last):
            look = self._seen()
            course.add(look, clock - course.start_ns, now.z)
            if self._counts(now.last[0]):
                self._note(course, *now.last)
            self._choose(course, clock, look, now.last[0])

    def account(self) -> dict[str, Any]:
        """Give what it did and sees, as plain values."""
        now = self.now
        return {
            **self.hold.meaning(),
            "z": now.z,
            "share": now.share,
            "outlook": now.outlook,
            "margin": now.correction.margin,
            "periods": [each.as_dict() for each in now.ended],
            "changes": [each.as_dict() for each in now.changes],
            "tally": dict(now.tally),
        }

    def state(self) -> dict[str, Any]:
        """Give all that decides what it does next, as plain values for JSON."""
        census = self._gates[0]._census() or b""
        return {**self.now.state(), "census": base64.b85encode(census).decode()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`, with gates and a meter as they were then."""
        self.now = Standing.resumed(state, self._rotate_ns)
        self._gates[0]._resume_census(base64.b85decode(state["census"]))
        self._apply()

    def _has_fallen(self, clock: int, visible: int, alike: int) -> bool:
        """Tell whether the share has come down further than it should by the next look."""
        now = self.now
        if now.z is None or not self._counts(visible):
            return False
        share = alike / visible
        if share <= self.hold.p + now.guard and share < now.alarm:
            now.alarm = share - _GUARD / 2
            return True
        chance = 2 * (now.expects * (1 - now.expects) / visible) ** 0.5
        is_low = share < now.expects - max(_FALL, chance)
        return is_low and clock >= now.looked_ns + self._every_ns * _SOONEST

    def _counts(self, visible: int) -> bool:
        return visible >= max(_FEWEST_VISIBLE, _VISIBLE_PART * self.now.users_before)

    @property
    def _users(self) -> float:
        return max(self.now.users_before, self._gates[0]._users() or 0.0)

    def _seen(self) -> Look:
        near = min((z for z in (*self._chosen(), self.now.z) if z is not None), default=0) // _NEAR
        return Look.at(self._gates, [max(least, near) for least in self._least], self._users)

    def _chosen(self) -> list[int]:
        courses = (self.now.course, self.now.example)
        return [each.z for each in courses if each is not None and each.z is not None]

    def _end(self, over: Course, number: int, clock: int, counts: tuple[int, int]) -> Course:
        """Close the account of a period, and begin another."""
        now, look, (visible, alike) = self.now, self._seen(), counts
        over.add(look, self._rotate_ns, now.z)
        share = alike / visible if visible else None
        now.note_end(Ended(start_ns=over.start_ns, visible=visible, share=share, z=now.z))
        # A strange period is no example for the next, unless the one before was strange too.
        is_example = now.example is None or now.example.is_unusual or not over.is_unusual
        if share is not None and self._counts(visible):
            self._note(over, visible, alike)
            if is_example:
                now.correction.learn([(each.place, each.off) for each in over.corrections])
            if over.expected is not None:
                now.correction.miss(over.expected - share)
        counted = self._gates[0]._users() or 0.0
        now.users_before = counted if over.seen_from_ns == 0 else max(now.users_before, counted)
        self._gates[0]._count_users()
        if number != over.number + 1:
            now.example = None
        elif is_example:
            now.example = over
        course = now.course = Course(number, self._rotate_ns)
        now.may_lower_ns = course.start_ns + self._lateness_ns
        now.alarm, now.last = 1.0, (0, 0)
        self._choose(course, clock, look, 0)
        return course

    def _note(self, course: Course, visible: int, alike: int) -> None:
        """Note how far off the model is now."""
        k, users = self.hold.k, self._users
        course.corrections.append(compared(course, users=users, k=k, visible=visible, alike=alike))

    def _choose(self, course: Course, clock: int, look: Look, visible: int) -> None:
        """Set z, if the outlook calls for it."""
        now = self.now
        now.looked_ns = clock
        if clock < now.opens_ns:
            return
        ahead = course.ahead(now.example, look, self._window_ns)
        prospect = Prospect(course, ahead, now.correction, users=self._users, k=self.hold.k)
        is_first = now.may_lower_ns is None and not now.changes
        if is_first or (now.may_lower_ns is not None and clock >= now.may_lower_ns):
            now.may_lower_ns = course.z = None
            self._start(clock, prospect)
        elif now.z is not None:
            self._raise(clock, prospect)
        now.outlook = now.share if now.z is None else prospect.end.at(now.z)
        if visible == 0 or course.z is None:
            course.z = now.z
            course.expected = now.outlook if now.correction.is_known else None
        soon = None if now.z is None else prospect.soon(now.z, self._every_ns)
        now.expects = 0.0 if soon is None or now.share is None else min(now.share, soon)

    def _start(self, clock: int, prospect: Prospect) -> None:
        """Choose the z of a period: up, down or as it is."""
        hold, now, end = self.hold, self.now, prospect.end
        margin = now.correction.margin
        low = max(hold.z_min, min(self._chosen(), default=0) // _NEAR)
        best = end.smallest(low, hold.z_max, hold.p + margin)
        if best is None or end.visible(best) < VISIBLE:
            self._tell_unreachable(clock, prospect)
        z = hold.z_max if best is None else best
        is_fit = now.z is not None and end.at(now.z) <= hold.p + _DOWN_ABOVE * margin
        if now.z is None or z > now.z or not is_fit:
            self._set(clock, z, end)

    def _raise(self, clock: int, prospect: Prospect) -> None:
        """Raise z where the outlook falls short; or let nothing more out."""
        hold, now, end = self.hold, self.now, prospect.end
        margin, z = now.correction.margin, now.z or hold.z_min
        if end.at(z) < hold.p + _UP_BELOW * margin:
            best = end.smallest(z, hold.z_max, hold.p + _UP_TO * margin) or hold.z_max
            last = now.changes[-1]
            if last.kind == "raised" and clock < last.at_ns + self._every_ns:
                best = max(best, ceil(z * (1 + _AGAIN)))
            z = min(best, hold.z_max)
        if self._is_over(prospect, z):
            self._set(clock, None, end)
        elif z > (now.z or 0):
            self._set(clock, z, end)

    def _is_over(self, prospect: Prospect, z: int) -> bool:
        """Tell whether nothing more may leave.

        The share is down to what is wanted and goes on falling; and either no z is enough, or the
        period is not like those before, so that no promise of a better end is to be trusted.
        """
        share, wanted = self.now.share, self.hold.p
        if share is None or share > wanted + self.now.guard:
            return False
        if prospect.is_like and prospect.end.at(z) >= wanted:
            return False
        soon = prospect.soon(z, self._every_ns)
        return soon is not None and soon < share

    def _stop(self, clock: int) -> None:
        """Let nothing out while nothing is measured."""
        if self.now.z is not None:
            self._report(
                f"hold: {moment(clock)}: the meter's memory is full, and what is not measured "
                "cannot be held: give it more, or rotate sooner"
            )
            self._set(clock, None, None)

    def _tell_unreachable(self, clock: int, prospect: Prospect) -> None:
        """Say once that no z is enough, and what could be done."""
        # In the first period too little is known of how many users there are.
        if self.now.is_told or not self.now.users_before:
            return
        self.now.is_told = True
        moved = self.now.correction.at(1.0)
        users, rotate_ns = self._users, self._rotate_ns
        found = remedies(
            prospect.ahead, users=users, hold=self.hold, moved=moved, rotate_ns=rotate_ns
        )
        for words in unreachable(self.hold, prospect.end, found):
            self._report(f"hold: {moment(clock)}: {words}")

    def _set(self, clock: int, z: int | None, outlook: Outlook | None) -> None:
        change = Change.of(clock, self.hold, self.now, z, outlook)
        self.now.note(change)
        self._apply()
        self._report(f"hold: {change}")

    def _apply(self) -> None:
        z = self.now.z
        for gate, least in zip(self._gates, self._least, strict=True):
            if z is None:
                gate.close()
            else:
                gate.z = max(z, least)
