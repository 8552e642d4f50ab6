"""Calls that may never come back, made where nobody has to wait for them for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any


class StuckError(Exception):
    """A call has not come back in time."""


class Caller:
    """Makes calls one after the other on a thread of its own, which ends with the program.

    Examples
    --------
    >>> caller = Caller()
    >>> caller.call(lambda: 6 * 7, 60)
    42
    >>> caller.call(threading.Event().wait, 0.01)
    Traceback (most recent call last):
    zveil.engines.kafka.caller.StuckError
    """

    def __init__(self) -> None:
        self._asked: SimpleQueue[Callable[[], Any]] = SimpleQueue()
        self._answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        threading.Thread(target=self._go, daemon=True).start()

    def call(self, call: Callable[[], Any], patience_s: float) -> Any:
        """Make a call and give its answer, or raise what it raises.

        Raises
        ------
        StuckError
            If it takes longer. It is not to be used any more then.
        """
        self._asked.put(call)
        try:
            answer, error = self._answers.get(timeout=patience_s)
        except Empty:
            raise StuckError from None
        if error is not None:
            raise error
        return answer

    def _go(self) -> None:
        while True:
            call = self._asked.get()
            try:
                answer = call()
            except BaseException as error:  # whoever asked is told
                self._answers.put((None, error))
            else:
                self._answers.put((answer, None))
