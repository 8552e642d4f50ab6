"""What is heard of the running stream: who showed what when, as keyed hashes, and no value."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zveil.act import TextAct
from zveil.io import Format
from zveil.model import Trace
from zveil.policy import Policy
from zveil.run import MAX_LINE

MOST = 4_000_000
"""Observations that are taken; 24 bytes each."""

Ints = NDArray[np.int64]


class Hearing:
    r"""Takes lines of NDJSON as they come and makes a trace of them.

    Users and values are hashed under a key that nobody is told and that ends with this process, so
    that it holds no more of them than a gate does.

    Parameters
    ----------
    time, user, attributes
        Names of fields.

    Examples
    --------
    >>> hearing = Hearing(time="ts", user="uid", attributes=["host"])
    >>> hearing.hear(b'{"ts": 0, "uid": "ada", "host": "a"}\n{"ts": 9, "uid": 7, "host": "a"}\n')
    >>> trace = hearing.trace(window_s=60)
    >>> len(trace), trace.users, trace.attributes
    (2, 2, 1)
    """

    def __init__(self, *, time: str, user: str, attributes: Sequence[str]) -> None:
        policy = Policy.of(
            time=time, user=user, attributes=attributes, z=1, window=0, raw_users=True
        )
        self._act = TextAct(
            policy,
            [],
            Format.NDJSON,
            Format.ARROW,
            keyring=None,
            max_line=MAX_LINE,
            stop_at_problem=False,
        )
        self._key = secrets.token_bytes(32)
        self._fields = len(attributes)
        self._heard: list[list[tuple[Ints, Ints, Ints]]] = [[] for _ in attributes]
        self._users: set[int] = set()
        self._first_ns, self._last_ns = 2**63 - 1, -(2**63)
        self._trace: Trace | None = None
        self.count = 0
        """Observations so far."""

    @property
    def is_full(self) -> bool:
        """Whether no more is taken."""
        return self.count >= MOST

    def hear(self, lines: bytes) -> None:
        """Take whole lines; bad ones are left out."""
        if self.is_full:
            return
        self._act.way.start_file()
        for batch in self._act.batches(lines, last=True):
            times, people, *shown = batch.columns
            for field, column in enumerate(shown):
                self._take(field, times, people, column)
        self._act.way.take_troubles()
        self._trace = None

    def _take(self, field: int, times: pa.Array, people: pa.Array, column: pa.Array) -> None:
        rows = pa.table({"t": times, "u": people, "v": column}).drop_null()
        if not rows.num_rows:
            return
        moments, users = rows["t"].cast(pa.int64()).to_numpy(), self._hashes(rows["u"], b"user")
        # The same word in two fields is two values.
        values = self._hashes(rows["v"], b"field %d" % field)
        self._heard[field].append((moments, users, values))
        self.count += len(moments)
        self._users.update(np.unique(users).tolist())
        self._first_ns = min(self._first_ns, int(moments.min()))
        self._last_ns = max(self._last_ns, int(moments.max()))

    def _hashes(self, column: pa.ChunkedArray, kind: bytes) -> Ints:
        encoded = column.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        words = b"".join(
            hashlib.blake2b(text.encode(), digest_size=8, key=self._key, person=kind).digest()
            for text in encoded.dictionary.to_pylist()
        )
        found: Ints = np.frombuffer(words, np.int64)[encoded.indices.to_numpy()]
        return found

    def told(self) -> dict[str, int | float | bool]:
        """Give how much was heard, and over how long."""
        return {
            "count": self.count,
            "users": len(self._users),
            "span_s": (self._last_ns - self._first_ns) / 1e9 if self.count else 0.0,
            "is_full": self.is_full,
        }

    def trace(self, *, window_s: float) -> Trace:
        """Give all of it as a trace."""
        if not self.count:
            raise ValueError("nothing was heard yet")
        if self._trace is None:
            parts = [part for field in self._heard for part in field]
            lengths = [sum(len(part[0]) for part in field) for field in self._heard]
            times, users, values = (np.concatenate(each) for each in zip(*parts, strict=True))
            self._trace = Trace.of_codes(
                times,
                np.unique(users, return_inverse=True)[1],
                np.unique(values, return_inverse=True)[1],
                window=window_s,
                starts=np.cumsum([0, *lengths[:-1]]).tolist(),
            )
        return self._trace
