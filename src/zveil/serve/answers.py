"""Answers: given again to a request that comes again; counts for those who may not read."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator

from zveil.serve.engine import Decided
from zveil.serve.problem import refuse
from zveil.serve.replay import Record
from zveil.serve.visit import Visit

REPLAYED = (b"idempotency-replayed", b"true")
"""The header of an answer that was given before."""


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


async def whole_again(
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
        [(b"content-type", record.media_type.encode()), REPLAYED],
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
    await whole_again(visit, given, record, await passed(given, record))
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


async def settle(visit: Visit, tick_s: float) -> None:
    """Wait for the next tick since the body was there."""
    took = time.monotonic() - visit.read_at
    await asyncio.sleep((int(took / tick_s) + 1) * tick_s - took)
