"""The one shape of all errors: problem details (RFC 9457), with no word of the data in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

MEDIA_TYPE = "application/problem+json"

KINDS = {
    "not-found": (404, "There is nothing at this address."),
    "method": (405, "This address does not take that method."),
    "token-needed": (401, "A bearer token is needed, and none that is known was given."),
    "forbidden": (403, "This token does not have the right to do that."),
    "host": (403, "Without tokens only requests for this machine's own names are taken."),
    "media-type": (415, "The body is of no kind that is taken here."),
    "encoding": (415, "Packed bodies are not taken; send the body as it is."),
    "too-large": (413, "The body is larger than a request may be."),
    "head-too-large": (431, "The head of the request is too large."),
    "bad-request": (400, "This is no request of HTTP/1.1 that can be read."),
    "bad-record": (422, "The record cannot be decided."),
    "bad-lines": (422, "No line of the body could be decided."),
    "bad-columns": (422, "The columns cannot be decided."),
    "bad-key": (422, "The Idempotency-Key is not 1 to 128 visible ASCII characters."),
    "key-reused": (422, "The Idempotency-Key came with another body before."),
    "key-running": (409, "A request with this Idempotency-Key is still running."),
    "answer-gone": (409, "The request was decided, and its answer was too large to keep."),
    "bad-parameters": (422, "The body is not what is expected here."),
    "no-state": (409, "The service was started without --state."),
    "slow": (408, "The body came too slowly, or took too long."),
    "busy": (503, "Too many requests are running."),
    "connections": (503, "Too many connections are open."),
    "ending": (503, "The service is ending."),
    "broken": (503, "The service stopped deciding after an internal error; start it again."),
    "failed": (500, "The service failed; its log says more."),
}  # fmt: skip
"""Every kind of problem: its status, and what it says."""


@dataclass(frozen=True)
class Problem:
    """What went wrong with a request.

    Parameters
    ----------
    kind
        One of `KINDS`.
    detail
        What to do about it; never any of what was sent.
    more
        Other members, such as where in the body it is.

    Examples
    --------
    >>> Problem("busy", headers={"retry-after": "1"}).body[:57]
    b'{"type": "urn:zveil:problem:busy", "title": "Too many req'
    """

    kind: str
    detail: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """The status of the answer."""
        return KINDS[self.kind][0]

    @property
    def body(self) -> bytes:
        """The answer."""
        said: dict[str, Any] = {
            "type": f"urn:zveil:problem:{self.kind}",
            "title": KINDS[self.kind][1],
            "status": self.status,
        }
        if self.detail is not None:
            said["detail"] = self.detail
        return json.dumps({**said, **self.more}).encode() + b"\n"

    def head(self) -> list[tuple[bytes, bytes]]:
        """Give the headers of the answer."""
        found = {"content-type": MEDIA_TYPE, "content-length": str(len(self.body))}
        if self.status == HTTPStatus.UNAUTHORIZED:
            found["www-authenticate"] = "Bearer"
        if self.status == HTTPStatus.SERVICE_UNAVAILABLE:
            found["retry-after"] = "1"
        return [
            (name.encode(), value.encode()) for name, value in {**found, **self.headers}.items()
        ]

    def raw(self) -> bytes:
        """Give the whole answer as bytes of HTTP/1.1, after which the connection is closed."""
        lines = [b"HTTP/1.1 %d %s" % (self.status, HTTPStatus(self.status).phrase.encode())]
        lines += [name + b": " + value for name, value in self.head()]
        return b"\r\n".join([*lines, b"connection: close", b"", self.body])


class ProblemError(Exception):
    """A request cannot be answered."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.kind)
        self.problem = problem


def refuse(kind: str, detail: str | None = None, /, **more: Any) -> ProblemError:
    """Make the exception for a problem."""
    return ProblemError(Problem(kind, detail, more))
