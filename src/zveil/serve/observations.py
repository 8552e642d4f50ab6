"""`POST /v1/observations`: events in; out what is released of them, as it is decided."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator

from zveil._native import problem_sentence
from zveil.serve.answers import (
    REPLAYED,
    counts,
    finish,
    passed,
    remember,
    replayed,
    settle,
    whole_again,
)
from zveil.serve.engine import Decided, Engine
from zveil.serve.lines import Lines
from zveil.serve.media import ARROW, JSON, KINDS, NDJSON
from zveil.serve.problem import MEDIA_TYPE as PROBLEM
from zveil.serve.problem import Problem, ProblemError, refuse
from zveil.serve.replay import Record, Replays
from zveil.serve.settings import Limits
from zveil.serve.tokens import Token, Tokens
from zveil.serve.visit import Visit

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
        self._running: Counter[str] = Counter()

    async def __call__(self, visit: Visit) -> None:
        """Answer a request."""
        token = visit.authorize(self._tokens, "write")
        kind = _kind(visit)
        if self._tokens is not None and self._running[token.name] >= self._most_of_one:
            raise refuse("busy", "So many requests with this token are not taken at a time.")
        self._running[token.name] += 1
        try:
            await self._take(visit, token, kind)
        finally:
            self._running[token.name] -= 1

    @property
    def _most_of_one(self) -> int:
        """How many requests of one token may run: some are left for others."""
        return max(self._limits.max_requests * 3 // 4, 1)

    async def _take(self, visit: Visit, token: Token, kind: str) -> None:
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
        remember(record, body, status, JSON, answer)
        if not may_read:
            await settle(visit, self._limits.tick_s)
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
        await self._take(lines.end(), b"")
        await self._end()

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
        if self._record is not None:
            # Before any of it is sent: sending may fail.
            for piece in found.pieces:
                self._record.say(piece)
        for piece in found.pieces:
            await self._write(piece)

    async def _write(self, piece: bytes) -> None:
        if not self._visit.status:
            await self._visit.start(200, [(b"content-type", NDJSON.encode())])
        await self._visit.write(piece)

    async def _end(self) -> None:
        visit, found = self._visit, self._decided
        if found.bad and not found.accepted and not visit.status:
            problem = _bad_lines(found)
            finish(self._record, problem.status, PROBLEM, problem.body)
            if not self._may_read:
                await settle(visit, self._tick_s)
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
        await settle(visit, self._tick_s)
        await visit.answer(202, JSON, answer)

    async def _again(self, body: AsyncIterator[bytes], record: Record) -> bytes:
        """Go through what was decided before, and answer it as then; gives the bytes behind it."""
        rest = await passed(body, record)
        if record.status:
            await whole_again(self._visit, body, record, rest)
            return b""
        self._decided = record.decided
        if record.answer:
            await self._visit.start(200, [(b"content-type", NDJSON.encode()), REPLAYED])
            await self._visit.write(bytes(record.answer))
        return rest


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
