"""Files that are looked at: sent by a browser and never kept, or picked from a folder."""

from __future__ import annotations

import asyncio
import os
import secrets
import stat
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from zveil.console.wording import size
from zveil.durations import size_bytes
from zveil.io import of_path
from zveil.io.inputs import natural

LARGEST = "256MiB"
"""How large a file may be that a browser sends, by default."""

_AT_ONCE = 4
_QUIET_S = 30.0
_MOST_LISTED = 500
_LONGEST_NAME = 200


@dataclass(frozen=True)
class Given:
    """A file to look at: open, and without a name on the disk unless it was picked."""

    file: IO[bytes]
    name: str
    size: int

    def close(self) -> None:
        """Let it go; what a browser sent is gone with it."""
        self.file.close()


Taker: TypeAlias = Callable[[Given], Awaitable[None]]
"""Is given a file that arrived, and closes it."""


class Inbox:
    """Takes files that browsers send, each under a ticket that a page has.

    What arrives goes to a file that never has a name: it is gone when the page that asked for it
    closes it, and when the process ends, however that comes.

    Parameters
    ----------
    largest
        How large a file may be: ``"256MiB"``, or bytes.
    """

    def __init__(self, largest: str | int = LARGEST) -> None:
        self.largest = size_bytes(largest, "upload")
        self._takers: dict[str, Taker] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)

    def expect(self, taker: Taker) -> str:
        """Give a ticket under which a file may come."""
        ticket = secrets.token_urlsafe(16)
        self._takers[ticket] = taker
        return ticket

    def forget(self, ticket: str) -> None:
        """Take nothing more under a ticket."""
        self._takers.pop(ticket, None)

    async def answer(self, request: Request) -> Response:
        """Answer a browser that sends a file: ``POST /console/files/TICKET?name=NAME``."""
        taker = self._takers.get(request.path_params["ticket"])
        if taker is None:
            return _refused("The page that asked for it is gone; load it again.", 404)
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > self.largest:
            return _refused(self._too_large(), 413)
        if self._places.locked():
            return _refused("Others are sending files just now; try again in a moment.", 503)
        async with self._places:
            # No name, no copy: it goes to the process that reads it as it is.
            file = tempfile.TemporaryFile(prefix="zveil-")  # noqa: SIM115
            try:
                count = await self._receive(request, file)
            except (TimeoutError, ClientDisconnect):
                file.close()
                return _refused("The file did not arrive.", 408)
            except OSError:
                file.close()
                return _refused("There is no room for it on the server.", 507)
        if count > self.largest:
            file.close()
            return _refused(self._too_large(), 413)
        await taker(Given(file, shown_name(request.query_params.get("name", "")), count))
        return Response(status_code=204)

    async def _receive(self, request: Request, file: IO[bytes]) -> int:
        """Write what comes, up to one byte more than allowed; give how much that is."""
        count = 0
        pieces = request.stream().__aiter__()
        while True:
            try:
                piece = await asyncio.wait_for(pieces.__anext__(), _QUIET_S)
            except StopAsyncIteration:
                break
            count += len(piece)
            if count > self.largest:
                break
            await asyncio.to_thread(file.write, piece)
        await asyncio.to_thread(file.flush)
        return count

    def _too_large(self) -> str:
        return (
            f"The file is larger than {size(self.largest)}. Start the service with a larger "
            "--upload, or use zveil audit where the file is."
        )


@dataclass(frozen=True)
class Shelf:
    """A folder of released files to pick from: those right in it, with an ending that is known."""

    folder: Path

    def names(self) -> list[str]:
        """List them, in the order that people count."""
        try:
            with os.scandir(self.folder) as entries:
                found = [each.name for each in entries if self._is_offered(each)]
        except OSError:
            return []
        return sorted(found, key=natural)[:_MOST_LISTED]

    def open(self, name: str) -> Given:
        """Open one of them.

        Raises
        ------
        ValueError
            If it is none of them.
        """
        if name not in self.names():
            raise ValueError("this file is no longer in the folder")
        try:
            # A link in the folder may lead anywhere, and is not followed.
            number = os.open(self.folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise ValueError(f"{name}: {(error.strerror or 'cannot be read').lower()}") from None
        held = os.fstat(number)
        file = os.fdopen(number, "rb")
        if not stat.S_ISREG(held.st_mode):
            file.close()
            raise ValueError("this is no file")
        return Given(file, name, held.st_size)

    @staticmethod
    def _is_offered(entry: os.DirEntry[str]) -> bool:
        is_known = of_path(entry.name)[0] is not None and not entry.name.startswith(".")
        return is_known and entry.is_file(follow_symlinks=False)


def shown_name(name: str) -> str:
    r"""Give the name of a file as it is shown: no folder, nothing that cannot be printed.

    >>> shown_name("C:\\data\\day 1.csv"), shown_name("../../etc/passwd"), shown_name("")
    ('day 1.csv', 'passwd', 'file')
    """
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    kept = "".join(letter for letter in last if letter.isprintable())
    return kept[-_LONGEST_NAME:].lstrip(".- ") or "file"


def _refused(words: str, status: int) -> Response:
    return PlainTextResponse(words, status)
