"""Sources: the bytes of files and pipes as they arrive."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from zveil.io.decompression import DecompressionError, Decompressor, decompressor
from zveil.io.descriptors import enlarge, is_readable, wait_readable
from zveil.io.formats import Compression, Format, is_short, may_be_wrapped, sniff
from zveil.io.presets import NAMES

_FORMATS = ", ".join(NAMES)
_MOST = 1 << 20
_HEAD = 1 << 12
_PACKED = 1 << 18


class SourceError(ValueError):
    """An input that is not there or cannot be read on; what came before was delivered."""


class UnknownFormatError(SourceError):
    """An input whose format neither its name nor its content tells."""


@dataclass(frozen=True, slots=True)
class Input:
    """A file, pipe or standard input that is to be read."""

    path: Path | None
    """Where it is; None for standard input."""
    name: str
    """What messages call it: the path as given, or ``<stdin>``."""
    format: Format | None
    """None where only the content can tell: a pipe for which none was stated."""
    compression: Compression
    size: int | None
    """Bytes as stored; None for what is no regular file."""


def reason(error: OSError) -> str:
    """Give the system's own words for an error, to stand behind a name."""
    return (os.strerror(error.errno) if error.errno else "input or output error").lower()


class ByteSource:
    """The bytes of an input as they arrive, decompressed.

    A read gives what is there now: it waits only while nothing is, and never to fill a buffer.
    Compression is undone if the input says so or if the first bytes show it. Everything before a
    damage is given first, then a `SourceError` names the input.

    Parameters
    ----------
    source
        What to open; standard input is descriptor 0.

    Raises
    ------
    SourceError
        If it cannot be opened.

    Examples
    --------
    >>> from zveil.io import find
    >>> with ByteSource(find([os.devnull])[0]) as source:
    ...     while data := source.read():
    ...         print(len(data), "bytes, of", source.position, "stored")
    """

    def __init__(self, source: Input) -> None:
        self.input = source
        self.position = 0
        """Bytes consumed of the input as stored."""
        self.given = 0
        """Bytes given so far, and passed over: the place in the input as it is unpacked."""
        self._descriptor = 0
        self._held: list[bytes] = []
        self._head: bytes | None = None
        self._decompressor: Decompressor | None = None
        self._compression = source.compression
        self._format = source.format
        self._is_told = False
        self._is_over = False
        self._failure: SourceError | None = None
        try:
            if source.path is not None:
                self._descriptor = os.open(source.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            mode = os.fstat(self._descriptor).st_mode
        except OSError as error:
            raise SourceError(f"{source.name}: {reason(error)}") from None
        if stat.S_ISDIR(mode):
            self.close()
            raise SourceError(f"{source.name}: is a directory; name the files in it")
        self._is_file = stat.S_ISREG(mode)
        if not self._is_file:
            enlarge(self._descriptor)
        if source.compression is Compression.NONE:
            self._head = b""
        else:
            self._decompressor = decompressor(source.compression)

    @property
    def compression(self) -> Compression:
        """What the bytes are wrapped in; waits for the first of them if only they can tell."""
        while self._head is not None and not self._is_over:
            self._step(_HEAD, wait=True)
        return self._compression

    @property
    def format(self) -> Format:
        """The input's format, or what its first bytes tell; an empty input counts as NDJSON.

        Zeek writes its logs as tables or as JSON: only the bytes tell.

        Raises
        ------
        SourceError
            If they do not tell.
        """
        while self._format is Format.ZEEK and not self._is_told:
            head = b"".join(self._held)
            self._is_told = self._is_over or len(head) >= _MOST or not is_short(head)
            if self._is_told and sniff(head)[0] is Format.NDJSON:
                self._format = Format.ZEEK_JSON
            elif not self._is_told:
                self._step(_HEAD, wait=True)
        while self._format is None:
            head = b"".join(self._held)
            self._format, _ = sniff(head)
            if self._format is not None:
                break
            if self._is_over and self._failure is not None:
                raise self._failure
            if self._is_over and not head.strip():
                self._format = Format.NDJSON
            elif self._is_over or len(head) >= _MOST or not is_short(head):
                raise UnknownFormatError(
                    f"{self.input.name}: its format cannot be told by ending or content; say it "
                    f"with --format ({_FORMATS})"
                )
            else:
                self._step(_HEAD, wait=True)
        return self._format

    def read(self, most: int = _MOST) -> bytes:
        """Give what has arrived, at most so many bytes; wait only if nothing has.

        Returns
        -------
        Bytes; none at the end.

        Raises
        ------
        SourceError
            If reading fails, or the compressed data is damaged or ends early.
        """
        while not self._held and not self._is_over:
            self._step(most, wait=True)
        while (more := most - sum(map(len, self._held))) > 0 and self._step(more, wait=False):
            pass
        if self._held:
            data = self._cut(most)
            self.given += len(data)
            return data
        if self._failure is not None:
            raise self._failure
        return b""

    def pending(self, most: int = _MOST) -> bool:
        """Whether a read of so much would return at once: with bytes, the end, or an error."""
        while not self._held and self._step(most, wait=False):
            pass
        return bool(self._held) or self._is_over

    def wait(self, seconds: float) -> bool:
        """Wait until a read would return at once, for so long at the most; whether it would."""
        return self.pending() or wait_readable(self._descriptor, seconds)

    def skip(self, count: int) -> None:
        """Pass over so many bytes, unpacked, before anything was read.

        Raises
        ------
        SourceError
            If there are not so many.
        """
        if self._is_file and self.compression is Compression.NONE:
            os.lseek(self._descriptor, count, os.SEEK_SET)
            self._held, self._is_over = [], False
            self.position = self.given = count
            return
        while self.given < count:
            if not self.read(min(count - self.given, _MOST)):
                raise SourceError(f"{self.input.name}: ends before where it was read to")

    def before(self, place: int, count: int) -> bytes:
        """Give the last bytes before a place of a file, as stored; not for a pipe."""
        start = max(place - count, 0)
        if hasattr(os, "pread"):
            return os.pread(self._descriptor, place - start, start)
        here = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        try:
            os.lseek(self._descriptor, start, os.SEEK_SET)
            return os.read(self._descriptor, place - start)
        finally:
            os.lseek(self._descriptor, here, os.SEEK_SET)

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self.input.path is not None and self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _cut(self, most: int) -> bytes:
        """Take bytes off what is held; the common case, one piece, is not copied."""
        held = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        self._held = [held[most:]] if len(held) > most else []
        return held[:most]

    def _step(self, most: int, *, wait: bool) -> bool:
        """Go one step on; False if that would have to wait, or if the input is over."""
        if self._is_over:
            return False
        try:
            # What was taken in is kept in the object: a signal in between loses nothing.
            if self._decompressor is not None and (plain := self._decompressor.take()):
                self._held.append(plain)
                return True
            if not wait and not self._is_file and not is_readable(self._descriptor):
                return False
            if wait and not self._is_file:
                wait_readable(self._descriptor)
            data = self._arrived(most if self._decompressor is None else _PACKED)
            self.position += len(data)
            self._unwrap(data)
        except DecompressionError as error:
            self._fail(f"{error}; what came before was used")
        except OSError as error:
            self._fail(reason(error))
        return not self._is_over

    def _arrived(self, most: int) -> bytes:
        while True:
            try:
                return os.read(self._descriptor, most)
            except BlockingIOError:  # a pipe that someone else made non-blocking
                is_readable(self._descriptor, None)

    def _unwrap(self, data: bytes) -> None:
        """Hold what came, or hand it to the decompressor; no data is the end."""
        self._is_over = not data
        if self._head is not None:
            data = self._head + data
            if not self._is_over and may_be_wrapped(data):
                self._head = data
                return
            self._head = None
            _, self._compression = sniff(data)
            self._decompressor = decompressor(self._compression)
        elif self._is_over and self._decompressor is not None:
            self._decompressor.finish()
        if self._decompressor is not None:
            self._decompressor.feed(data)
        elif data:
            self._held.append(data)

    def _fail(self, why: str) -> None:
        self._is_over = True
        self._failure = SourceError(f"{self.input.name}: {why}")
