"""How a run ends before its input does: bad input, or someone who asks for it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class BadInputError(ValueError):
    """Too much of the input is bad, or any where that was to end it."""


class Stopped(Exception):  # noqa: N818  # no error: someone asked for it
    """The run was asked to stop, and has."""


class Stop:
    """Whether someone asked a run to stop; it does between two blocks, or where it only waits."""

    def __init__(self) -> None:
        self._is_asked = False
        self._is_waiting = False
        self.resumed = time.perf_counter()
        """When the last wait was over, by the clock that measures."""

    def ask(self) -> None:
        """Ask for it; from a signal handler too, where it raises `Stopped` if the run waits."""
        self._is_asked = True
        if self._is_waiting:
            raise Stopped

    def check(self) -> None:
        """Raise `Stopped` if someone has asked."""
        if self._is_asked:
            raise Stopped

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let whoever asks end what is done inside, which is nothing but a wait."""
        self.check()
        self._is_waiting = True
        try:
            yield
        finally:
            self._is_waiting = False
            self.resumed = time.perf_counter()
