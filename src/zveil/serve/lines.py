"""The bytes of one request, as blocks of whole lines."""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"


class Lines:
    r"""Cuts what arrives into whole lines, and holds back the beginning of the next.

    Parameters
    ----------
    max_line
        Of a longer line only so much is given that it is still too long, then a line break.

    Examples
    --------
    >>> lines = Lines(100)
    >>> lines.take(b"one\ntw"), lines.take(b"o\n"), lines.take(b"three"), lines.end()
    (b'one\n', b'two\n', b'', b'three\n')
    """

    def __init__(self, max_line: int) -> None:
        self._max_line = max_line
        self._rest = bytearray()
        self._is_skipping = False
        self._is_first = True

    def take(self, data: bytes) -> bytes:
        """Give the lines that are whole by now."""
        if self._is_skipping:
            end = data.find(b"\n")
            if end < 0:
                return b""
            self._is_skipping = False
            data = data[end + 1 :]
        end = data.rfind(b"\n") + 1
        if not end:
            whole = b""
            self._rest += data
        elif self._rest:
            self._rest += data[:end]
            whole = bytes(self._rest)
            self._rest = bytearray(data[end:])
        else:
            whole = data if end == len(data) else data[:end]
            self._rest += data[end:]
        if len(self._rest) > self._max_line:
            whole += bytes(self._rest[: self._max_line + 1]) + b"\n"
            self._rest.clear()
            self._is_skipping = True
        return self._begun(whole)

    def end(self) -> bytes:
        """Give the last line, if it has no end."""
        whole = bytes(self._rest) + b"\n" if self._rest else b""
        self._rest.clear()
        return self._begun(whole)

    def _begun(self, whole: bytes) -> bytes:
        """Leave out the mark that some put before the first line."""
        if whole and self._is_first:
            self._is_first = False
            return whole.removeprefix(_BOM)
        return whole
