"""Who is logged in, and how often somebody may try: kept in memory, gone with the process."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

SESSION_S = 12 * 3600
"""How long a login lasts, whatever is done meanwhile."""

_MOST_SESSIONS = 1_000
_MOST_ADDRESSES = 1_000
_EVERYONE = ""

Clock = Callable[[], float]


@dataclass(eq=False)
class Session:
    """One login."""

    ends_at: float
    holds: Callable[[], bool]
    """Whether the token that it was begun with is still known."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it is over before its time."""


class Sessions:
    """The logins that hold now.

    A browser has a random id of 256 bits. What is kept is a hash of it, so that looking one up says
    nothing about the others by the time that it takes.

    Parameters
    ----------
    length_s
        How long a login lasts.
    clock
        Seconds that never go back.

    Examples
    --------
    >>> sessions = Sessions()
    >>> name = sessions.begin()
    >>> sessions.find(name) is not None, sessions.find("guessed") is None
    (True, True)
    >>> sessions.end(name)
    >>> sessions.find(name) is None
    True
    """

    def __init__(self, *, length_s: float = SESSION_S, clock: Clock = time.monotonic) -> None:
        self._length_s, self._clock = length_s, clock
        self._held: dict[bytes, Session] = {}

    def __len__(self) -> int:
        return len(self._held)

    def begin(self, holds: Callable[[], bool] = lambda: True) -> str:
        """Make a session and give its id, which nobody else can know.

        Parameters
        ----------
        holds
            Whether it may go on; asked each time that it is used.
        """
        self._forget()
        while len(self._held) >= _MOST_SESSIONS:
            # In the order they were made: the oldest is the first to end anyway.
            self._held.pop(next(iter(self._held))).ended.set()
        name = secrets.token_urlsafe(32)
        self._held[_hash(name)] = Session(self._clock() + self._length_s, holds)
        return name

    def find(self, name: str | None) -> Session | None:
        """Give the session of an id, if it holds."""
        session = None if name is None else self._held.get(_hash(name))
        return session if session is not None and self.left_s(session) > 0 else None

    def left_s(self, session: Session) -> float:
        """Give for how long it still holds."""
        if session.ended.is_set() or not session.holds():
            return 0.0
        return session.ends_at - self._clock()

    def end(self, name: str | None) -> None:
        """End a session, and with it all that is open under it."""
        session = None if name is None else self._held.pop(_hash(name), None)
        if session is not None:
            session.ended.set()

    def _forget(self) -> None:
        for name in [each for each, session in self._held.items() if self.left_s(session) <= 0]:
            self._held.pop(name).ended.set()


class Attempts:
    """How many wrong tokens may be tried: few from one address, and not many from all together.

    Examples
    --------
    >>> attempts = Attempts(most=2, span_s=60, clock=lambda: 0.0)
    >>> attempts.failed("192.0.2.1"), attempts.failed("192.0.2.1")
    (None, None)
    >>> attempts.wait_s("192.0.2.1"), attempts.wait_s("192.0.2.2")
    (60.0, 0.0)
    """

    def __init__(
        self,
        *,
        most: int = 10,
        most_of_all: int = 200,
        span_s: float = 300.0,
        clock: Clock = time.monotonic,
    ) -> None:
        self._most, self._most_of_all, self._span_s = most, most_of_all, span_s
        self._clock = clock
        self._failures: dict[str, deque[float]] = {}

    def wait_s(self, address: str) -> float:
        """Give how long to wait before the next try from an address; 0 if there is no need to."""
        return max(self._wait_s(address, self._most), self._wait_s(_EVERYONE, self._most_of_all))

    def failed(self, address: str) -> None:
        """Note a wrong token."""
        if address not in self._failures and len(self._failures) >= _MOST_ADDRESSES:
            # Who has many addresses runs into the bound for all of them together.
            self._failures.pop(next(name for name in self._failures if name != _EVERYONE))
        for name, most in ((address, self._most), (_EVERYONE, self._most_of_all)):
            self._failures.setdefault(name, deque(maxlen=most)).append(self._clock())

    def succeeded(self, address: str) -> None:
        """Note a right one."""
        self._failures.pop(address, None)

    def _wait_s(self, name: str, most: int) -> float:
        failures = self._failures.get(name)
        if failures is None or len(failures) < most:
            return 0.0
        return max(failures[0] + self._span_s - self._clock(), 0.0)


def _hash(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()
