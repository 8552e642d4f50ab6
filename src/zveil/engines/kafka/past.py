"""Where a replay begins: what is remembered of the past, and what is committed of that."""

from __future__ import annotations

from collections import deque

_MARK = "zveil1"
# The past is remembered in so many pieces: a replay begins at most one of them too early.
_PIECES = 256


class Past:
    """Where a replay has to begin, so that it sees all that still matters.

    It remembers how late it was, by the largest time so far, at which offset. What was read before
    the clock stood a whole span behind where it stands now can matter no more.

    Parameters
    ----------
    span_ns
        How far back anything matters.
    begin
        The first offset.

    Examples
    --------
    >>> past = Past(100, 0)
    >>> for offset, clock in [(10, 50), (20, 90), (30, 120), (40, 151)]:
    ...     past.note(offset, clock)
    >>> past.begin, past.mark
    (10, 'zveil1 10')
    """

    def __init__(self, span_ns: int, begin: int) -> None:
        self._span_ns = span_ns
        self._step_ns = max(span_ns // _PIECES, 1)
        # Of each piece: its first offset, and the clock at its first and last moment.
        self._pieces: deque[list[int]] = deque()
        self._next = begin

    @property
    def begin(self) -> int:
        """The offset to begin at."""
        return self._pieces[0][0] if self._pieces else self._next

    @property
    def mark(self) -> str:
        """What goes with a committed offset: where a replay up to it begins."""
        return f"{_MARK} {self.begin}"

    def note(self, behind: int, clock_ns: int | None) -> None:
        """Take note of messages up to the offset `behind`, and of the clock after them."""
        first, self._next = self._next, behind
        pieces = self._pieces
        if clock_ns is None:
            return
        if pieces and clock_ns - pieces[-1][1] < self._step_ns:
            pieces[-1][2] = clock_ns
        else:
            pieces.append([first, clock_ns, clock_ns])
        while len(pieces) > 1 and pieces[0][2] < clock_ns - self._span_ns:
            pieces.popleft()


def begin_of(mark: str | None, decided: int) -> int | None:
    """Give where a replay begins, by what goes with a committed offset; None if it does not tell.

    >>> begin_of("zveil1 17", 40), begin_of("", 40), begin_of("zveil1 50", 40)
    (17, None, None)
    """
    name, _, number = (mark or "").partition(" ")
    if name != _MARK or not number.isdecimal() or int(number) > decided:
        return None
    return int(number)
