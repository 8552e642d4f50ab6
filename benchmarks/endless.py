"""A stream without an end, at the speed of memory, and the definition beside a sample of it.

Every line has the same width, so that a block of them is an array of letters: numbers are written
into it and read from what comes out digit by digit, in columns.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zveil.reference import Reference

Letters = NDArray[np.uint8]
Numbers = NDArray[np.int64]

BLOCK = 8_192
WINDOW_S = 3_600
START_MS = 1_600_000_000_000
SEED = 20_200_101

_LINE = b'{"ts":0000000000.000,"uid":"u000000","host":"h00000000.example","id":"i000000000000"}\n'
_ZERO = ord("0")
_FOUR = np.frombuffer(b"".join(b"%04d" % number for number in range(10_000)), np.uint8)
_FOUR = _FOUR.reshape(-1, 4)


@dataclass(frozen=True)
class Field:
    """Where the digits of a number are in a line."""

    at: int
    digits: int

    @property
    def place(self) -> slice:
        """The columns of its digits."""
        return slice(self.at, self.at + self.digits)

    def write(self, lines: Letters, numbers: Numbers) -> None:
        """Spell the numbers, one to a line."""
        rest, end = numbers, self.at + self.digits
        while end > self.at:
            start = max(end - 4, self.at)
            rest, four = np.divmod(rest, 10_000)
            lines[:, start:end] = _FOUR[four, 4 - (end - start) :]
            end = start

    def read(self, lines: Letters) -> Numbers:
        """Read the numbers, one of each line."""
        digits = lines[:, self.place].astype(np.int64) - _ZERO
        return digits @ 10 ** np.arange(self.digits - 1, -1, -1, dtype=np.int64)


_SECONDS = Field(_LINE.index(b":") + 1, 10)
_MILLIS = Field(_SECONDS.at + 11, 3)
_USER = Field(_LINE.index(b'"u0') + 2, 6)
_HOST = Field(_LINE.index(b'"h0') + 2, 8)
_KIND = _HOST.at - 1
_ID = Field(_LINE.index(b'"i0') + 2, 12)


@dataclass(frozen=True)
class Events:
    """A block of events as columns."""

    ids: Numbers
    times_ms: Numbers
    users: Numbers
    hosts: Numbers
    is_new: NDArray[np.bool_]
    """Whether the host occurs this once."""


class Stream:
    """Events by their number: any block of them can be made again.

    Hosts are drawn by Zipf's law; one of eight is new and never seen again. Times are in order but
    for a few seconds.
    """

    def __init__(self, *, per_window: int, hosts: int = 20_000, users: int = 20_000) -> None:
        self.per_window, self.users = per_window, users
        self._cumulative = np.cumsum(1.0 / np.arange(1, hosts + 1))

    def events(self, block: int) -> Events:
        """Give a block of events."""
        random = np.random.default_rng((SEED, block))
        ids = np.arange(block * BLOCK, (block + 1) * BLOCK, dtype=np.int64)
        late = random.integers(0, 5_000, BLOCK) * (random.random(BLOCK) < 0.1)
        times = START_MS + ids * (WINDOW_S * 1_000) // self.per_window - late
        drawn = random.random(BLOCK) * self._cumulative[-1]
        hosts = np.minimum(np.searchsorted(self._cumulative, drawn), len(self._cumulative) - 1)
        is_new = random.random(BLOCK) < 0.125
        hosts = np.where(is_new, ids % 10**_HOST.digits, hosts)
        return Events(ids, times, random.integers(0, self.users, BLOCK), hosts, is_new)

    def lines(self, events: Events) -> Letters:
        """Spell a block of events as lines of NDJSON."""
        lines = np.tile(np.frombuffer(_LINE, np.uint8), (BLOCK, 1))
        seconds, millis = np.divmod(events.times_ms, 1_000)
        _SECONDS.write(lines, seconds)
        _MILLIS.write(lines, millis)
        _USER.write(lines, events.users)
        _HOST.write(lines, events.hosts)
        lines[events.is_new, _KIND] = ord("n")
        _ID.write(lines, events.ids)
        return lines


class Judge:
    """The definition on one host of so many, beside what came out.

    Parameters
    ----------
    z
        Of the run.
    memory
        How many events back a sender may begin again.
    one_of, rest
        Hosts whose number leaves this rest: not the most popular ones, of which the definition
        would be too slow.
    """

    def __init__(self, *, z: int, memory: int, one_of: int = 200, rest: int = 157) -> None:
        self._reference = Reference(z, WINDOW_S * 1_000)
        self._one_of, self._rest = one_of, rest
        self._next = 0
        self._due: deque[int] = deque()
        self._came: set[int] = set()
        self._known: set[int] = set()
        self._memory = memory
        self.sampled = self.compared = self.missing = self.early = 0
        self.frontier = -1
        """The last event that came out."""

    def saw(self, events: Events) -> None:
        """Let the definition decide a block, the first time that it is sent."""
        if events.ids[0] < self._next:
            return
        self._next = int(events.ids[-1]) + 1
        chosen = np.flatnonzero((events.hosts % self._one_of == self._rest) & ~events.is_new)
        rows = zip(
            events.ids[chosen].tolist(), events.times_ms[chosen].tolist(),
            events.users[chosen].tolist(), events.hosts[chosen].tolist(), strict=True,
        )  # fmt: skip
        for number, t, user, host in rows:
            self.sampled += 1
            if self._reference.observe(t, user, host):
                self._due.append(number)

    def came(self, lines: Letters) -> None:
        """Take down what came out: events in their order, some of them again after a restart."""
        if not len(lines):
            return
        # Names have another width than users, and stand before: count from the end.
        shift = lines.shape[1] - len(_LINE)
        moved = lines[:, shift:]
        # A host that is new is nobody else's: whatever comes out of it came too early.
        is_new = moved[:, _KIND] == ord("n")
        self.early += int(is_new.sum())
        ids, hosts = _ID.read(moved), _HOST.read(moved)
        self._came.update(ids[(hosts % self._one_of == self._rest) & ~is_new].tolist())
        self.frontier = max(self.frontier, int(ids[-1]))

    def compare(self) -> None:
        """Hold what came out against the definition, as far as all of it must have."""
        due = set()
        while self._due and self._due[0] <= self.frontier:
            due.add(self._due.popleft())
        self.compared += len(due)
        self.missing += len(due - self._came)
        # After a restart events come again, of which the definition said the same before.
        self._known |= due
        self.early += len(self._came - self._known)
        oldest = self.frontier - self._memory
        self._known = {number for number in self._known if number > oldest}
        self._came.clear()


class Lines:
    """Bytes as they come out, as lines of one width; a rest is kept for the next time."""

    def __init__(self) -> None:
        self._rest = b""
        self._width = 0

    def of(self, data: bytes) -> Letters:
        """Give the whole lines."""
        data = self._rest + data
        if not self._width:
            self._width = data.find(b"\n") + 1
        whole = len(data) // self._width * self._width if self._width else 0
        self._rest = data[whole:]
        lines = np.frombuffer(data[:whole], np.uint8).reshape(-1, max(self._width, 1))
        if (lines[:, -1:] != ord("\n")).any():
            raise ValueError("lines of several widths came out")
        return lines

    def forget(self) -> None:
        """Drop the rest: whoever wrote it was killed."""
        self._rest = b""
