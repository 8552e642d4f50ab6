"""`POST /v1/observations`: events in; out what is released of them, as it is decided."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator

from zveil._native import problem_sentence
from zveil.serve.engine import Decided, Engine
from zveil.serve.problem import MEDIA_TYPE as PROBLEM
from zveil.serve.problem import Problem, ProblemError, refuse
from zveil.serve.replay import Record, Replays
from zveil.serve.settings import Limits
from zveil.serve.tokens import Tokens
from zveil.serve.visit import Gone, Visit

NDJSON = "application/x-ndjson"
JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"

KINDS = {
    NDJSON: NDJSON,
    "application/ndjson": NDJSON,
    "application/jsonl": NDJSON,
    JSON: JSON,
    ARROW: ARROW,
}
"""What a body may be called, and what it then is."""

_ARROW_AT_A_TIME = 16


class Observations:
    """Takes events, and answers with what is released: to those who may read.

    Others get counts of what arrived and of what is no record, which say nothing about anybody
    else. How much was released, or was late, would: with one observation that is the decision.

    Parameters
    ----------
    engine
        Decides.
    tokens
        Who may write, and read; None if anyone may.
    limits
        What a request may take up.
    replays
        Remembers requests with a key.
    """

    def __init__(
        self, engine: Engine, tokens: Tokens | None, limits: Limits, replays: Replays
    ) -> None:
        self._engine = engine
        self._tokens = tokens
        self._limits = limits
        self._replays = replays
        self._arrow_running = 0

    async def __call__(self, visit: Visit) -> None:
        """Answer a request."""
        token = visit.authorize(self._tokens, "write")
        kind = _kind(visit)
        key = visit.header(b"idempotency-key")
        record = None if key is None else self._replays.begin(token, key)
        try:
            may_read = token.may("read")
            if kind == NDJSON:
                await _Lines(self._engine, visit, record, may_read, self._limits.tick_s).go()
            elif kind == JSON:
                await self._one(visit, record, may_read)
            else:
                await self._batches(visit, record, may_read)
        finally:
            if record is not None:
                self._replays.end(record)

    async def _batches(self, visit: Visit, record: Record | None, may_read: bool) -> None:
        """Decide a stream of Arrow; not too many at a time, for each may hold whole batches."""
        from zveil.serve.batches import Batches

        if self._arrow_running >= _ARROW_AT_A_TIME:
            raise refuse("busy", "So many bodies of Arrow are not taken at a time.")
        self._arrow_running += 1
        try:
            await Batches(self._engine, visit, record, may_read, self._limits.tick_s).go()
        finally:
            self._arrow_running -= 1

    async def _one(self, visit: Visit, record: Record | None, may_read: bool) -> None:
        """Decide a single observation."""
        most = self._engine.max_line
        body = await visit.whole(most)
        arrived = time.monotonic()
        if record is not None and await replayed(visit, record, body):
            return
        found = await self._engine.decide(_as_line(body) + b"\n")
        visit.lines, visit.bad = found.lines, sum(found.bad.values())
        if not found.accepted:
            problem = _bad_record(found)
            remember(record, body, problem.status, PROBLEM, problem.body)
            raise ProblemError(problem)
        if may_read:
            line = b"".join(found.pieces).strip()
            is_released = b"true" if found.left else b"false"
            answer = b'{"released":%s,"record":%s}\n' % (is_released, line or b"null")
            status = 200
        else:
            answer, status = counts(found), 202
            await settle(arrived, self._limits.tick_s)
        remember(record, body, status, JSON, answer)
        await visit.answer(status, JSON, answer)


class _Lines:
    """A body of lines on its way: each block is answered before the next is looked at."""

    def __init__(
        self, engine: Engine, visit: Visit, record: Record | None, may_read: bool, tick_s: float
    ) -> None:
        self._engine, self._visit = engine, visit
        self._record, self._may_read = record, may_read
        self._tick_s = tick_s
        self._decided = Decided()

    async def go(self) -> None:
        from zveil.serve.lines import Lines

        lines, visit, record = Lines(self._engine.max_line), self._visit, self._record
        body = visit.body()
        data = b""
        if record is not None and record.is_begun:
            data = await self._again(body, record)
            if record.status:
                return
        while True:
            await self._take(lines.take(data), data)
            if visit.is_read:
                break
            data = await anext(body)
        arrived = time.monotonic()
        await self._take(lines.end(), b"")
        await self._end(arrived)

    async def _take(self, block: bytes, data: bytes) -> None:
        found = Decided()
        if block:
            found = await self._engine.decide(block)
            self._decided.add(found)
            self._visit.lines, self._visit.bad = (
                self._decided.lines,
                sum(self._decided.bad.values()),
            )
        if self._record is not None:
            self._record.take(data, data.rfind(b"\n") + 1)
            self._record.decided = self._decided
        if not self._may_read:
            return
        for piece in found.pieces:
            if self._record is not None:
                self._record.say(piece)
            await self._write(piece)

    async def _write(self, piece: bytes) -> None:
        if not self._visit.status:
            await self._visit.start(200, [(b"content-type", NDJSON.encode())])
        await self._visit.write(piece)

    async def _end(self, arrived: float) -> None:
        visit, found = self._visit, self._decided
        if found.bad and not found.accepted and not visit.status:
            problem = _bad_lines(found)
            finish(self._record, problem.status, PROBLEM, problem.body)
            if not self._may_read:
                await settle(arrived, self._tick_s)
            raise ProblemError(problem)
        if self._may_read:
            finish(self._record, 200, NDJSON)
            if not visit.status:
                await visit.answer(200, NDJSON, b"")
            else:
                await visit.write(b"", more=False)
            return
        answer = counts(found)
        finish(self._record, 202, JSON, answer)
        await settle(arrived, self._tick_s)
        await visit.answer(202, JSON, answer)

    async def _again(self, body: AsyncIterator[bytes], record: Record) -> bytes:
        """Go through what was decided before, and answer it as then; gives the bytes behind it."""
        rest = await passed(body, record)
        if record.status:
            await _whole_again(self._visit, body, record, rest)
            return b""
        self._decided = record.decided
        if record.answer:
            await self._visit.start(200, [(b"content-type", NDJSON.encode()), _REPLAYED])
            await self._visit.write(bytes(record.answer))
        return rest


_REPLAYED = (b"idempotency-replayed", b"true")


async def passed(body: AsyncIterator[bytes], record: Record) -> bytes:
    """Read what was decided before, and check that it is the same; gives the bytes behind it."""
    seen, length = hashlib.blake2b(digest_size=32), 0
    async for data in body:
        part = data[: record.length - length]
        seen.update(part)
        length += len(part)
        if length == record.length:
            record.check(seen)
            record.go_on(seen)
            return data[len(part) :]
    raise refuse("key-reused", "The body is shorter than it was; take a new key for a new body.")


async def _whole_again(
    visit: Visit, body: AsyncIterator[bytes], record: Record, rest: bytes
) -> None:
    """Give the same answer to the same body."""
    while not visit.is_read and not rest:
        rest = await anext(body)
    if rest:
        raise refuse("key-reused", "The body is longer than it was; take a new key for a new body.")
    answer = bytes(record.answer or b"")
    await visit.start(
        record.status,
        [(b"content-type", record.media_type.encode()), _REPLAYED],
        length=len(answer),
    )
    await visit.write(answer, more=False)


async def replayed(visit: Visit, record: Record, body: bytes) -> bool:
    """Answer a body as before, if it was answered; raises the problem of another body."""
    if not record.status:
        return False

    async def once() -> AsyncIterator[bytes]:
        yield body

    given = once()
    await _whole_again(visit, given, record, await passed(given, record))
    return True


def remember(
    record: Record | None, body: bytes, status: int, media_type: str, answer: bytes
) -> None:
    """Note a whole body and its whole answer."""
    if record is not None:
        record.take(body, len(body))
        finish(record, status, media_type, answer)


def finish(record: Record | None, status: int, media_type: str, answer: bytes = b"") -> None:
    """Note the end of an answer."""
    if record is not None:
        record.say(answer)
        record.finish(status, media_type)


def counts(found: Decided) -> bytes:
    """Say what arrived, to someone who may not know what became of it."""
    return json.dumps({"accepted": found.accepted, "bad": found.bad}).encode() + b"\n"


async def settle(arrived: float, tick_s: float) -> None:
    """Wait for the next tick since something arrived."""
    took = time.monotonic() - arrived
    await asyncio.sleep((int(took / tick_s) + 1) * tick_s - took)


def _kind(visit: Visit) -> str:
    encoding = visit.header(b"content-encoding")
    if encoding is not None and encoding.strip().lower() not in (b"", b"identity"):
        raise refuse("encoding")
    stated = (visit.header(b"content-type") or b"").decode("latin-1")
    kind = KINDS.get(stated.partition(";")[0].strip().lower())
    if kind is None:
        raise refuse("media-type", f"Send {NDJSON}, {JSON} or {ARROW}.")
    return kind


def _as_line(body: bytes) -> bytes:
    """Give a JSON text as one line; raises the problem of one that is none."""
    if b"\n" not in body:
        return body
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        raise refuse("bad-record", "The body is not one JSON object.", kind="syntax") from None
    # In JSON a line break can only stand between two tokens.
    return body.replace(b"\n", b" ")


def _bad_record(found: Decided) -> Problem:
    _, kind, column = found.first_bad or (1, "not-an-object", 1)
    return Problem("bad-record", _sentence(kind), {"kind": kind, "column": column})


def _bad_lines(found: Decided) -> Problem:
    line, kind, column = found.first_bad or (1, "syntax", 1)
    more = {"kinds": found.bad, "line": line, "kind": kind, "column": column}
    return Problem("bad-lines", _sentence(kind), more)


def _sentence(kind: str) -> str | None:
    found = problem_sentence(kind)
    return None if found is None else found[0].upper() + found[1:] + "."


__all__ = ["ARROW", "JSON", "KINDS", "NDJSON", "Gone", "Observations"]
