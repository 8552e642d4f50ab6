"""Bodies of Arrow: batches in, out what is released of them, batch by batch."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa

from zveil.serve.answers import counts, finish, replayed, settle
from zveil.serve.engine import Decided, Engine
from zveil.serve.ipc import Message, Messages, StreamError
from zveil.serve.media import ARROW, JSON
from zveil.serve.problem import ProblemError, refuse
from zveil.serve.replay import Record
from zveil.serve.visit import Visit

MOST_ROWS = 1 << 20
"""A batch may have so many rows."""

_ROWS = 32_768
_KEPT = 16 << 20
_UNFIT = (pa.ArrowException, ValueError, TypeError, OverflowError)
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class Batches:
    """An Arrow stream on its way: each batch is answered before the next is looked at.

    Parameters
    ----------
    engine
        Decides.
    visit
        The request.
    record
        Of a request with a key: its body is then taken whole, and its answer kept.
    may_read
        Whether what is released is told.
    tick_s
        As for `zveil.serve.settings.Limits`.
    """

    def __init__(
        self, engine: Engine, visit: Visit, record: Record | None, may_read: bool, tick_s: float
    ) -> None:
        self._engine, self._visit = engine, visit
        self._record, self._may_read = record, may_read
        self._tick_s = tick_s
        self._head = b""
        self._act: Any = None
        self._answer: _Answer | None = None
        self._options: Any = None
        self._decided = Decided()

    async def go(self) -> None:
        """Answer the request."""
        visit, record = self._visit, self._record
        if record is not None:
            body = await visit.whole(_KEPT)
            if await replayed(visit, record, body):
                return
            record.take(body, 0)
            await self._take(Messages(), body, is_last=True)
        else:
            messages = Messages()
            async for data in visit.body():
                await self._take(messages, data, is_last=visit.is_read)
        if self._answer is None:
            raise _wrong("the stream has no columns")
        if self._may_read:
            await self._say(self._answer.end())
            finish(record, 200, ARROW)
            await visit.write(b"", more=False)
            return
        answer = counts(self._decided)
        finish(record, 202, JSON, answer)
        await settle(visit, self._tick_s)
        await visit.answer(202, JSON, answer)

    async def _take(self, messages: Messages, data: bytes, *, is_last: bool) -> None:
        loop = asyncio.get_running_loop()
        try:
            for message in messages.take(data):
                for piece in await loop.run_in_executor(None, self._decide, message):
                    await self._say(piece)
        except StreamError as error:
            raise _wrong(str(error)) from None
        if is_last and not messages.is_whole:
            raise _wrong("the stream ends in the middle of a message")

    async def _say(self, piece: bytes) -> None:
        if not piece or not self._may_read:
            return
        if self._record is not None:
            self._record.say(piece)
        if not self._visit.status:
            await self._visit.start(200, [(b"content-type", ARROW.encode())])
        await self._visit.write(piece)

    def _decide(self, message: Message) -> list[bytes]:
        """Decide a message of the stream; what leaves."""
        try:
            if message.is_schema:
                return [self._begin(message)]
            if self._act is None or self._answer is None:
                raise _wrong("a stream begins with its columns")
            if not message.is_batch:
                self._head += message.data
                if len(self._head) > _KEPT:
                    raise _wrong(f"the dictionaries are larger than {_KEPT:,} bytes")
                return []
            batches = self._read(message)
            return [
                self._one(batch.slice(start, _ROWS), self._answer)
                for batch in batches
                for start in range(0, batch.num_rows, _ROWS)
            ]
        except LookupError as error:
            # Of the names that there are none is said: they are the client's, and may be data.
            raise _wrong(f"there has to be one column {error.args[0]!r}") from None
        except _UNFIT:
            # Their own words may quote data.
            raise _wrong("a column holds what cannot be read as times, users or values") from None

    def _begin(self, message: Message) -> bytes:
        if self._act is not None:
            raise _wrong("the stream names its columns twice")
        self._head = message.data
        try:
            schema = pa.ipc.open_stream(message.data + _END).schema
        except (OSError, *_UNFIT):
            raise _wrong("the columns cannot be read") from None
        self._act = self._engine.columns(schema)
        reads = [schema.get_field_index(name) for name in self._act.reads]
        self._options = pa.ipc.IpcReadOptions(included_fields=reads, use_threads=False)
        self._answer = _Answer(self._act.schema)
        return self._answer.take()

    def _read(self, message: Message) -> list[pa.RecordBatch]:
        try:
            data = self._head + message.data + _END
            batches = list(pa.ipc.open_stream(data, options=self._options))
            if any(batch.num_rows > MOST_ROWS for batch in batches):
                raise _wrong(f"a batch has more than {MOST_ROWS:,} rows")
            for batch in batches:
                batch.validate(full=True)
        except (OSError, *_UNFIT):
            raise _wrong("a batch cannot be read") from None
        return batches

    def _one(self, batch: pa.RecordBatch, answer: _Answer) -> bytes:
        act, before = self._act, self._act.moments.bad
        leaving = self._engine.decide_batch(act, batch)
        bad = act.moments.bad - before
        found = Decided(lines=batch.num_rows, records=batch.num_rows - bad)
        if bad:
            found.bad = {"time": bad}
        self._decided.add(found)
        self._visit.lines, self._visit.bad = self._decided.lines, sum(self._decided.bad.values())
        if not leaving.num_rows:
            return b""
        answer.write(leaving)
        return answer.take()


class _Answer:
    """A stream that is written piece by piece."""

    def __init__(self, schema: pa.Schema) -> None:
        self._held = bytearray()
        self._writer = pa.ipc.new_stream(pa.PythonFile(_Target(self._held), mode="w"), schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def take(self) -> bytes:
        found = bytes(self._held)
        self._held.clear()
        return found

    def end(self) -> bytes:
        self._writer.close()
        return self.take()


class _Target:
    closed = False

    def __init__(self, held: bytearray) -> None:
        self._held = held

    def write(self, data: Any) -> int:
        self._held += memoryview(data).cast("B")
        return memoryview(data).nbytes

    def flush(self) -> None:
        """Do nothing: all is held."""

    def close(self) -> None:
        """Leave it as it is."""


def _wrong(words: str) -> ProblemError:
    return refuse("bad-columns", words[0].upper() + words[1:] + ".")
