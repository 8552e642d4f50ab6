"""The gap in a stream that cannot be rewound: how long nobody listened."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from zveil.gate import Gate

# So many pieces are looked at one by one for the first event; behind that nothing is told.
_MOST_PIECES = 64


class Gap:
    """How long a stream was not listened to, by the clock and by the times of its events.

    Parameters
    ----------
    saved_at
        When the state was saved that is gone on with, in seconds since 1970.
    gates
        As they were then.
    report
        Is told about it: at once, and when the first event has come.
    can_repeat
        Whether events have an id, so that the sender may repeat some.
    """

    def __init__(
        self,
        saved_at: float,
        gates: Sequence[Gate],
        report: Callable[[str], None],
        *,
        can_repeat: bool,
    ) -> None:
        self.seconds = max(time.time() - saved_at, 0.0)
        """By the clock, since the state was saved."""
        self.event_seconds: float | None = None
        """By the times of the events, from the newest one before to the first one after; None
        before that one has come, and 0 if it is older."""
        self._gates = list(gates)
        self._clock = _clock(self._gates)
        self._pieces = 0
        self._report = report
        moment = datetime.fromtimestamp(saved_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        what = "decides once what the sender repeats" if can_repeat else "would let it be repeated"
        report(
            f"the state is of {moment}: what was sent in the {_spoken(self.seconds)} since then is "
            f"not in it, and a pipe cannot be rewound; --id {what}"
        )

    @property
    def is_open(self) -> bool:
        """Whether the first event has yet to come."""
        return self.event_seconds is None and self._pieces < _MOST_PIECES

    def look(self, *, has_event: bool) -> None:
        """See where the clock of the gates stands, after a piece of the stream with few events."""
        self._pieces += 1
        now = _clock(self._gates)
        if not has_event or now is None or not self.is_open:
            return
        self.event_seconds = 0.0 if self._clock is None else max(now - self._clock, 0) / 1e9
        if self.event_seconds:
            self._report(
                f"the first event is {_spoken(self.event_seconds)} past the newest one before"
            )
        else:
            self._report("the first event is no later than the newest one before: no gap by time")


def _clock(gates: Sequence[Gate]) -> int | None:
    clocks = [clock for gate in gates if (clock := gate.stats(entries=False).clock_ns) is not None]
    return max(clocks, default=None)


def _spoken(seconds: float) -> str:
    """Give a duration to a tenth of a second, or in full seconds.

    >>> _spoken(0.04), _spoken(3.27), _spoken(4000)
    ('0.0 s', '3.3 s', '1 h 6 min 40 s')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count)
