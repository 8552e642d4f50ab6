"""Steering: the controller is asked at the same places of a stream, however the stream arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from zveil.gate import Gate
from zveil.hold.controller import Controller
from zveil.meter import Meter
from zveil.policy import Policy

# How much of text, and of columns, there is between two questions.
STEERED_BYTES, STEERED_ROWS = 16 << 10, 512


def steered(
    policy: Policy,
    gates: Sequence[Gate],
    meter: Meter | None,
    report: Callable[[str], None] = lambda _: None,
) -> Controller:
    """Make what tunes the z of gates, as a policy says.

    Raises
    ------
    ValueError
        If there is no level to hold, or nothing to go by.
    """
    if policy.hold is None or policy.rotate_ns is None or meter is None:
        raise ValueError("hold: expected with a meter, and pseudonyms that change")
    return Controller(
        policy.hold,
        gates,
        least=[each.z for each in policy.attributes],
        rotate_ns=policy.rotate_ns,
        lateness_ns=policy.lateness_ns,
        report=report,
    )


class Steering:
    """A controller and its meter beside a stream.

    z may change between any two pieces of a stream. So that the same stream gives the same output
    in whatever blocks it comes, the pieces end at places that are counted from its start.

    Parameters
    ----------
    controller, meter
        What chooses z, and what it goes by.
    """

    def __init__(self, controller: Controller, meter: Meter) -> None:
        self.controller = controller
        self.meter = meter
        self._passed = 0

    def pieces(self, size: int, most: int) -> Iterator[slice]:
        """Cut what has arrived, bytes or rows; the controller is asked behind each whole piece.

        Parameters
        ----------
        size
            How much has arrived.
        most
            How much there is between two questions.
        """
        start = 0
        while start < size:
            stop = min(start + most - self._passed, size)
            yield slice(start, stop)
            self._passed += stop - start
            start = stop
            if self._passed == most:
                self._passed = 0
                self.controller.step(self.meter)

    def pieces_of_text(self, size: int) -> Iterator[slice]:
        """Cut so many bytes, as `pieces` does."""
        return self.pieces(size, STEERED_BYTES)

    def pieces_of_columns(self, rows: int) -> Iterator[slice]:
        """Cut so many rows, as `pieces` does."""
        return self.pieces(rows, STEERED_ROWS)

    def state(self, unread: int = 0) -> dict[str, Any]:
        """Give all that decides what happens next, as plain values for JSON.

        Parameters
        ----------
        unread
            Bytes or rows at the end of what has arrived that will come again after a restart: the
            beginning of a line.
        """
        return {"passed": self._passed - unread, "controller": self.controller.state()}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`, with gates and a meter as they were then."""
        # Before 0 if a line had begun in the piece before: then this one is longer by as much.
        self._passed = int(state["passed"])
        self.controller.resume(state["controller"])
