"""Idempotency keys: a request that comes again is answered as before, and nothing decided twice.

A client that lost its connection does not know what was decided. It sends the same body under the
same key. What was decided the first time is answered from memory; where the first request broke off
in the middle, deciding goes on behind the last line that was decided.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

from zveil.serve.engine import Decided
from zveil.serve.problem import refuse
from zveil.serve.tokens import Token

_KEY = re.compile(rb"[\x21-\x7e]{1,128}")


class Record:
    """What is known of one request with a key."""

    def __init__(self, name: bytes, most: int) -> None:
        self.name = name
        self._most = most
        self._behind = 0
        self._hash = hashlib.blake2b(digest_size=32)
        self._digest = b""
        self.length = 0
        """Bytes of the body that were decided: to the end of a line, or of the body."""
        self.answer: bytearray | None = bytearray()
        """What was answered to them; None if that was too much to keep."""
        self.decided = Decided()
        self.status = 0
        """Of the whole answer; 0 while there is none."""
        self.media_type = ""
        self.until = 0.0
        """When it is forgotten."""

    @property
    def is_begun(self) -> bool:
        """Whether anything was decided, or answered."""
        return self.length > 0 or self.status > 0

    def take(self, data: bytes, cut: int) -> None:
        """Note the next bytes of the body, of which `cut` are decided with all before them."""
        if cut:
            self._hash.update(data[:cut])
            self._digest = self._hash.digest()
            self.length += cut + self._behind
            self._behind = 0
        self._hash.update(data[cut:])
        self._behind += len(data) - cut

    def say(self, piece: bytes) -> None:
        """Note what is answered."""
        if self.answer is not None:
            self.answer += piece
            if len(self.answer) > self._most:
                self.answer = None

    def finish(self, status: int, media_type: str) -> None:
        """Note the end of the answer: all of the body is decided."""
        self.length += self._behind
        self._behind = 0
        self._digest = self._hash.digest()
        self.status, self.media_type = status, media_type

    def check(self, seen: hashlib.blake2b) -> None:
        """Raise the problem of another body under the same key."""
        if not secrets.compare_digest(seen.digest(), self._digest):
            raise refuse("key-reused", "Take a new key for a new body.")

    def go_on(self, seen: hashlib.blake2b) -> None:
        """Go on behind what was decided before."""
        self._hash = seen.copy()
        self._behind = 0


class Replays:
    """Remembers the requests of the last minutes that had a key.

    Parameters
    ----------
    keep_s
        How long one is remembered after its end.
    most
        How many at the most; the oldest go first.
    most_bytes
        Of all answers together.
    most_answer
        Of one answer: of a longer one only that it was given is remembered.
    """

    def __init__(
        self,
        *,
        keep_s: float = 600.0,
        most: int = 10_000,
        most_bytes: int = 64 << 20,
        most_answer: int = 1 << 20,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keep_s = keep_s
        self._most, self._most_bytes, self._most_answer = most, most_bytes, most_answer
        self._clock = clock
        self._running: dict[bytes, Record] = {}
        # In the order in which they ended.
        self._records: OrderedDict[bytes, Record] = OrderedDict()
        self._bytes = 0
        # A key may hold an id: only a hash of it is kept, under a secret that is kept nowhere.
        self._secret = secrets.token_bytes(32)

    def __len__(self) -> int:
        return len(self._records) + len(self._running)

    def begin(self, token: Token, key: bytes) -> Record:
        """Give what is known of a request, or a new record; to be handed to `end`.

        Raises the problem of a key that is none, or whose first request is still running.
        """
        if not _KEY.fullmatch(key):
            raise refuse("bad-key")
        said = token.name.encode() + b"\n" + key
        name = hashlib.blake2b(said, digest_size=16, key=self._secret).digest()
        if name in self._running:
            raise refuse("key-running", "Ask again when it has ended.")
        self._forget()
        record = self._records.get(name)
        if record is not None and record.answer is None:
            raise refuse("answer-gone", "Send smaller bodies, each under a key of its own.")
        if record is not None:
            self._drop(name)
        if record is None or not record.is_begun:
            record = Record(name, self._most_answer)
        self._running[name] = record
        return record

    def end(self, record: Record) -> None:
        """Keep a record for later, and let go of the oldest where there are too many."""
        del self._running[record.name]
        record.until = self._clock() + self._keep_s
        self._records[record.name] = record
        self._bytes += len(record.answer or b"")
        self._forget()

    def clear(self) -> None:
        """Forget all answers: somebody is to be erased, and may be in one of them."""
        self._records.clear()
        self._bytes = 0

    def _forget(self) -> None:
        while self._records:
            name, oldest = next(iter(self._records.items()))
            is_over = len(self._records) > self._most or self._bytes > self._most_bytes
            if not is_over and oldest.until >= self._clock():
                return
            self._drop(name)

    def _drop(self, name: bytes) -> None:
        self._bytes -= len(self._records.pop(name).answer or b"")
