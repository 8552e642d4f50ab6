"""What the pages look at, the same for all browsers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from zveil.console.ear import Listen
from zveil.console.files import Inbox, Shelf
from zveil.console.worker import Worker
from zveil.policy import Policy
from zveil.serve.monitor import Figures, Monitor

_FRESH_S = 0.5
_MOST_AT_WORK = 2
_MOST_TRACES = 4


@dataclass
class Places:
    """So many places, of which some are taken; nobody waits for one.

    >>> places = Places(1)
    >>> places.take(), places.take()
    (True, False)
    >>> places.free()
    >>> places.take()
    True
    """

    left: int

    def take(self) -> bool:
        """Take a place, if there is one."""
        if self.left == 0:
            return False
        self.left -= 1
        return True

    def free(self) -> None:
        """Give a place back."""
        self.left += 1


@dataclass(kw_only=True)
class View:
    """What there is to see.

    Parameters
    ----------
    monitor
        Figures of the stream; None if there is no stream.
    policy
        What decides about it.
    needs_token
        Whether events are sent with a token.
    inbox
        Takes files from browsers.
    shelf
        Released files to pick from, if the operator named a folder.
    listen
        Has a listener told what comes in; None if that cannot be had.
    """

    monitor: Monitor | None
    policy: Policy | None
    needs_token: bool
    inbox: Inbox
    shelf: Shelf | None
    listen: Listen | None = None
    curves: Worker = field(default_factory=Worker)
    """Works curves out, for all pages."""
    at_work: Places = field(default_factory=lambda: Places(_MOST_AT_WORK))
    """How many processes may look at files, or at many plans, at a time."""
    traces: Places = field(default_factory=lambda: Places(_MOST_TRACES))
    """How many processes may hold a trace at a time."""
    ears: Places = field(default_factory=lambda: Places(1))
    """Who may listen to the stream: one at a time, because it costs the service time."""
    history: Sequence[Figures] = ()
    """The past as it was last asked for."""
    _asked: float = -1.0
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def can_listen(self) -> bool:
        """Whether the stream can be listened to: a value that is made of several fields cannot."""
        if self.listen is None or self.policy is None:
            return False
        return not any(each.fields for each in self.policy.attributes)

    async def fresh(self) -> Sequence[Figures]:
        """Give the past of the stream, asked for once for all browsers."""
        async with self._asking:
            now = time.monotonic()
            if self.monitor is not None and now - self._asked > _FRESH_S:
                # Off the loop: the figures may have to wait for a decision.
                self.history = await asyncio.to_thread(self.monitor.history)
                self._asked = now
        return self.history

    async def close(self) -> None:
        """End what was begun for it."""
        self.curves.close()
        await self.curves.over()
