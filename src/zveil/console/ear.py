"""An ear at the running stream: passes on what comes in to a process that makes a trace of it."""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from nicegui import background_tasks

from zveil.console.proposal import Names
from zveil.console.worker import Worker, WorkError

Listen: TypeAlias = Callable[[Callable[[bytes], None]], Callable[[], None]]
"""Has a listener told every block of lines from now on; gives what ends that."""

Told: TypeAlias = Callable[[dict[str, Any]], None]

_MOST_WAITING = 16 << 20
_PIECE = 1 << 20


class Ear:
    """Listens to the stream from now on, until it is closed or has heard enough.

    If more comes than the process takes in, it stops listening and says so: a trace with holes
    would make values look rarer than they are.

    Parameters
    ----------
    listen
        Has it told what comes in.
    names
        Fields of the stream.
    told
        Is told how much was heard, and why it ended: ``count``, ``users``, ``span_s``, ``ended``.
    """

    def __init__(
        self, listen: Listen, names: Names, told: Callable[[dict[str, Any]], None]
    ) -> None:
        self.worker = Worker()
        self._names, self._told = names, told
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._is_passing = False
        self._end: Callable[[], None] | None = listen(self._hear)

    @property
    def is_open(self) -> bool:
        """Whether it still listens."""
        return self._end is not None

    def _hear(self, lines: bytes) -> None:
        # On whatever thread decides: nothing but a note is made here.
        self._loop.call_soon_threadsafe(self._note, lines)

    def _note(self, lines: bytes) -> None:
        if not self.is_open:
            return
        self._waiting.append(lines)
        self._bytes += len(lines)
        if self._bytes > _MOST_WAITING:
            self.stop()
            self._told({"ended": "More came than could be listened to. Take a trace instead: "
                        "a file of events, or zveil plan where it is."})  # fmt: skip
        elif not self._is_passing:
            self._is_passing = True
            background_tasks.create(self._pass_on())

    async def _pass_on(self) -> None:
        try:
            while self._waiting and self.is_open:
                piece = b""
                while self._waiting and len(piece) < _PIECE:
                    piece += self._waiting.popleft().removesuffix(b"\n") + b"\n"
                self._bytes -= min(len(piece), self._bytes)
                found = await self.worker.ask("hear", self._asked(piece))
                if found["is_full"]:
                    self.stop()
                    found["ended"] = "That is enough, and no more is taken."
                self._told(found)
        except WorkError as error:
            self.close()
            self._told({"ended": str(error)})
        finally:
            self._is_passing = False

    def _asked(self, piece: bytes) -> dict[str, Any]:
        return {
            "lines": base64.b64encode(piece).decode(),
            "time": self._names.time,
            "user": self._names.user,
            "attributes": list(self._names.attributes),
        }

    def stop(self) -> None:
        """Listen no more; what was heard stays to be worked with."""
        end, self._end = self._end, None
        if end is not None:
            end()
        self._waiting.clear()
        self._bytes = 0

    def close(self) -> None:
        """Listen no more, and forget what was heard."""
        self.stop()
        self.worker.close()
