"""Inputs: the files that arguments mean, in their order."""

import glob
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from zveil.io.formats import Compression, Format, of_path
from zveil.io.sources import ByteSource, Input, SourceError, reason

STDIN = "<stdin>"

_GLOB = re.compile(r"[*?[]")


def find(arguments: Sequence[str], stated: Format | None = None) -> list[Input]:
    """Find the inputs that arguments mean, in their order.

    Parameters
    ----------
    arguments
        Files; ``-`` for standard input, which no argument at all means too; directories, for every
        file in and below them with a known ending, hidden ones left out; patterns such as
        ``logs/**/*.csv.gz``. Files of a directory or pattern come in natural order: part-2 before
        part-10.
    stated
        The format of files whose name or content does not tell it, or tells it wrongly. Of a
        directory, only files of that format are taken.

    Raises
    ------
    SourceError
        If an argument means nothing that can be read.
    """
    found: list[Input] = []
    for argument in arguments or ["-"]:
        if argument != "-":
            found.extend(_meant(argument, stated))
        elif any(each.path is None for each in found):
            raise SourceError("-: standard input can be read only once")
        else:
            size = _size(os.fstat(0)) if _is_open(0) else None
            found.append(Input(None, STDIN, stated, Compression.NONE, size))
    return found


def _meant(argument: str, stated: Format | None) -> Iterator[Input]:
    if os.path.isdir(argument):
        names = [name for name in _below(argument) if _is_wanted(name, stated)]
        if not names:
            kind = "file with a known ending" if stated is None else f"{stated} file"
            raise SourceError(f"{argument}: no {kind} in this directory; name the files themselves")
    elif os.path.lexists(argument):
        names = [argument]
    elif _GLOB.search(argument):
        names = [name for name in glob.iglob(argument, recursive=True) if os.path.isfile(name)]
        if not names:
            raise SourceError(f"{argument}: no file matches; check the pattern and the directory")
    elif "://" in argument:
        raise SourceError(f"{argument}: only files are read; fetch it, or pipe it into zveil run -")
    else:
        raise SourceError(f"{argument}: no such file; check the path, or use - for standard input")
    return (_input(name, stated) for name in sorted(names, key=natural))


def _below(directory: str) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        raise SourceError(f"{error.filename}: {reason(error)}")

    for folder, folders, files in os.walk(directory, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            path = os.path.join(folder, name)
            if not name.startswith(".") and os.path.isfile(path):
                yield path


def _is_wanted(name: str, stated: Format | None) -> bool:
    form, _ = of_path(name)
    # A log may have any ending; most have the one of its own kind.
    is_log = stated is not None and stated.is_log and ".log" in os.path.basename(name)
    return is_log or (form is not None and stated in (None, form))


def _input(name: str, stated: Format | None) -> Input:
    form, compression = of_path(name)
    try:
        size = _size(os.stat(name))
    except OSError as error:
        raise SourceError(f"{name}: {reason(error)}") from None
    given = Input(Path(name), name, stated or form, compression, size)
    if size is None:
        return given
    with ByteSource(given) as opened:
        return Input(given.path, name, opened.format, opened.compression, size)


def natural(name: str) -> tuple[list[list[str | int]], str]:
    """Give a key that sorts names as people count: part-2 before part-10, folder by folder.

    >>> sorted(["part-10.csv", "part-2.csv", "Part-1.csv"], key=natural)
    ['Part-1.csv', 'part-2.csv', 'part-10.csv']
    """
    parts = [re.split(r"([0-9]+)", part.casefold()) for part in name.split(os.sep)]
    return [[int(p) if at % 2 else p for at, p in enumerate(part)] for part in parts], name


def _size(status: os.stat_result) -> int | None:
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
