"""Sinks: bytes to standard output or a file, at once and whole."""

import contextlib
import errno
import os
import stat
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, Self

from zveil.io.descriptors import enlarge, wait_writable
from zveil.io.formats import Compression, of_path
from zveil.io.sources import Input, reason

STDOUT = "<stdout>"

# A level at which compressing keeps up with a stream.
_GZIP_LEVEL = 4


class SinkError(OSError):
    """An output that cannot be opened or written on: disk full, no permission, an input itself."""


class SameFileError(SinkError):
    """An output that is one of the inputs."""


class SinkClosed(Exception):  # noqa: N818  # no error: the reader has what it wanted
    """Whoever reads the output has closed it, as ``head`` does."""


class ByteSink:
    """Bytes to standard output or a file, compressed if wanted, without a buffer in between.

    Parameters
    ----------
    path
        The file to write, replacing what it held; None or ``-`` for standard output.
    compression
        By the ending of the path by default.
    inputs
        What is being read: a sink that is one of these files is refused, and left as it was.
    kept
        Go on behind so many bytes of what the file holds, a place that `cut` gave; by default it
        begins anew. What is no regular file is only gone on with.

    Raises
    ------
    SinkError
        If it cannot be opened, or is one of the inputs.

    Examples
    --------
    >>> with ByteSink(os.devnull, compression=Compression.GZIP) as sink:
    ...     sink.write(b'{"site":"example.org"}')
    ...     sink.flush()
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        compression: Compression | None = None,
        inputs: Sequence[Input] = (),
        kept: int | None = None,
    ) -> None:
        given = None if path is None or os.fspath(path) == "-" else os.fspath(path)
        self.name = STDOUT if given is None else given
        """What messages call it."""
        self.path = None if given is None else Path(given)
        self.position = kept or 0
        """Bytes written, as stored."""
        self.is_file = False
        """Whether it is a regular file with a name: one that can be cut and gone on with."""
        self.is_begun = False
        """Whether something stands in it already, behind which is written."""
        self._descriptor = 1 if given is None else -1
        self._is_over = False
        self._is_dirty = False
        try:
            if given is not None:
                flags = os.O_WRONLY | getattr(os, "O_BINARY", 0)
                flags |= os.O_CREAT if kept is None else 0
                self._descriptor = os.open(given, flags, 0o666)
            status = os.fstat(self._descriptor)
            if stat.S_ISREG(status.st_mode):
                self._refuse_inputs(status, inputs)
                if given is not None:
                    self.is_file = True
                    os.ftruncate(self._descriptor, self.position)
                    os.lseek(self._descriptor, self.position, os.SEEK_SET)
                self.is_begun = bool(os.fstat(self._descriptor).st_size)
            else:
                enlarge(self._descriptor)
        except OSError as error:
            self._abandon()
            raise worded(self.name, error) from None
        if compression is None:
            compression = of_path(self.name)[1]
        self.compression = compression
        # A file that is gone on with needs no frame before there is something to put in it.
        self._compressor = None if kept else _compressor(compression)

    def write(self, data: bytes | memoryview) -> None:
        """Write all of it.

        Raises
        ------
        SinkClosed
            If nobody reads the output any more.
        SinkError
            If it cannot be written, such as on a full disk.
        """
        with self._whole():
            self._is_dirty = True
            if self._compressor is None:
                self._compressor = _compressor(self.compression)
            self._put(data if self._compressor is None else self._compressor.compress(data))

    def flush(self) -> None:
        """Let a reader see all that was written, decompressed too; raises as `write` does."""
        if self._compressor is not None and self._is_dirty:
            with self._whole():
                self._is_dirty = False
                self._put(self._compressor.flush())

    def cut(self) -> int:
        """End the compressed frame, so that the file can be cut here; gives its length.

        What is written next begins another frame. Raises as `write` does.
        """
        if self._compressor is not None:
            with self._whole():
                self._is_dirty = False
                self._put(self._compressor.finish())
                self._compressor = None
        return self.position

    def overwrite(self, data: bytes, place: int) -> None:
        """Write over what stands at a place of a file; raises as `write` does."""
        with self._whole():
            end, self.position = self.position, place
            os.lseek(self._descriptor, place, os.SEEK_SET)
            self._put(data)
            self.position = os.lseek(self._descriptor, end, os.SEEK_SET)

    @property
    def descriptor(self) -> int:
        """The open file."""
        return self._descriptor

    def close(self) -> None:
        """End the compressed frame and close the file; standard output stays open.

        After an error, or when called again, it does nothing more. Raises as `write` does.
        """
        if self._descriptor < 0:
            return
        try:
            if self._compressor is not None and not self._is_over:
                with self._whole():
                    self._put(self._compressor.finish())
            self._is_over = True
            descriptor, self._descriptor = self._descriptor, -1
            if self.path is not None:
                os.close(descriptor)
        except OSError as error:
            raise worded(self.name, error) from None
        finally:
            self._abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """Write all or end: nobody knows how much of a write that was interrupted went out."""
        if self._is_over:
            raise SinkError(f"{self.name}: closed, or failed before; nothing more can be written")
        self._is_over = True
        try:
            yield
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET):
                raise worded(self.name, error) from None
            self._forget_stdout()
            raise SinkClosed(f"{self.name}: closed by its reader") from None
        self._is_over = False

    def _put(self, data: bytes | memoryview) -> None:
        rest = memoryview(data).cast("B")
        while rest:
            try:
                count = os.write(self._descriptor, rest)
            except BlockingIOError:  # a pipe that someone else made non-blocking
                wait_writable(self._descriptor)
                continue
            self.position += count
            rest = rest[count:]

    def _forget_stdout(self) -> None:
        """Point standard output at nothing, or Python complains about it when it exits."""
        if self.path is None:
            with contextlib.suppress(OSError):
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, self._descriptor)
                os.close(nothing)

    def _refuse_inputs(self, status: os.stat_result, inputs: Sequence[Input]) -> None:
        for source in inputs:
            try:
                other = os.fstat(0) if source.path is None else os.stat(source.path)
            except OSError:
                continue
            if os.path.samestat(status, other):
                self._abandon()
                raise SameFileError(
                    f"{self.name}: is also read, as {source.name}; write to another file"
                )

    def _abandon(self) -> None:
        """Close without a word."""
        self._is_over = True
        descriptor, self._descriptor = self._descriptor, -1
        if self.path is not None and descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def worded(name: str, error: OSError) -> SinkError:
    """Give an error of the system as one that names the output."""
    if isinstance(error, SinkError):
        return error
    worded = SinkError(f"{name}: {reason(error)}")
    worded.errno = error.errno
    return worded


class _Compressor(Protocol):
    def compress(self, data: bytes | memoryview) -> bytes: ...
    def flush(self) -> bytes: ...
    def finish(self) -> bytes: ...


class _Gzip:
    def __init__(self) -> None:
        self._stream = zlib.compressobj(_GZIP_LEVEL, wbits=31)

    def compress(self, data: bytes | memoryview) -> bytes:
        return self._stream.compress(data)

    def flush(self) -> bytes:
        return self._stream.flush(zlib.Z_SYNC_FLUSH)

    def finish(self) -> bytes:
        return self._stream.flush(zlib.Z_FINISH)


def _compressor(compression: Compression) -> _Compressor | None:
    match compression:
        case Compression.GZIP:
            return _Gzip()
        case Compression.ZSTD:
            from zveil.io.zstd import ZstdWriter

            return ZstdWriter()
        case _:
            return None
