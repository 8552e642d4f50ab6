"""Lists of names: which values of an attribute count at all, before any gate is asked."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zveil._native import NameList
from zveil.io import ByteSource, Compression, Format, Input, SourceError

_MOST = 256 << 20


@dataclass(frozen=True)
class Names:
    """A list that was read from a file.

    A list has a name a line, or a rank, a comma and a name, as lists of top sites have it. Empty
    lines and those that begin with ``#`` are passed over. ``example.org`` stands for
    ``www.example.org`` too, in any case of letters.
    """

    file: str
    digest: str
    """Of what the file held: two lists with the same are the same."""
    names: NameList = field(repr=False, compare=False)

    @classmethod
    def read(cls, file: str | Path) -> "Names":
        """Read a list, plain or packed.

        Raises
        ------
        ValueError
            If the file cannot be read, or holds no list; with its name, and the line.
        """
        text = _text(file)
        return cls(str(file), hashlib.sha256(text).hexdigest(), _parsed(file, text))

    def text(self) -> bytes:
        """Give what the file held, for another process, which may not have it.

        Raises
        ------
        ValueError
            If it holds something else by now.
        """
        text = _text(self.file)
        if hashlib.sha256(text).hexdigest() != self.digest:
            raise ValueError(f"{self.file}: has changed since it was read; read the policy again")
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (self.file, self.text())


def _text(file: str | Path) -> bytes:
    parts, size = [], 0
    try:
        given = Input(Path(file), str(file), Format.CSV, Compression.NONE, None)
        with ByteSource(given) as source:
            while size <= _MOST and (data := source.read()):
                parts.append(data)
                size += len(data)
    except SourceError as error:
        raise ValueError(str(error)) from None
    return b"".join(parts)


def _parsed(file: str | Path, text: bytes) -> NameList:
    try:
        return NameList(text)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def _unpacked(file: str, text: bytes) -> Names:
    return Names(file, hashlib.sha256(text).hexdigest(), _parsed(file, text))
