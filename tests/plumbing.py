"""Ends of pipes for tests, and a limit to how long a call may take."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from zveil.io import Compression, Format, Input

Given = TypeVar("Given")
PATIENCE_S = 20


def within(call: Callable[[], Given]) -> Given:
    """Make a call that must return: a test of what must not wait would wait for ever itself."""
    results: list[Given] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive(), "it waits for something that does not come"
    if failures:
        raise failures[0]
    return results[0]


class Pipe:
    """A pipe whose two ends are closed at the end of a test, if not before."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.is_open = {self.reader: True, self.writer: True}

    def send(self, data: bytes) -> None:
        assert os.write(self.writer, data) == len(data)

    def close(self, *ends: int) -> None:
        for end in ends or list(self.is_open):
            if self.is_open[end]:
                os.close(end)
                self.is_open[end] = False

    def input(
        self, form: Format | None = Format.NDJSON, compression: Compression = Compression.NONE
    ) -> Input:
        """The reading end, as an input of its own."""
        return Input(Path(f"/dev/fd/{self.reader}"), "pipe", form, compression, None)


@contextmanager
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    try:
        yield made
    finally:
        made.close()
