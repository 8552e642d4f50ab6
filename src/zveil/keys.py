"""Secret keys in files."""

import os
import re
import secrets
from pathlib import Path

LENGTH = 32

_HEX = re.compile(rb"\s*([0-9A-Fa-f]{64})\s*")


def read_key(path: str | os.PathLike[str]) -> bytes:
    """Read a key of 32 bytes from a file that holds 64 hexadecimal digits, or the bytes themselves.

    Raises
    ------
    ValueError
        If there is no key in the file, or others may read it.
    OSError
        If it cannot be read.
    """
    file = Path(path)
    with file.open("rb") as opened:
        held = opened.read(1024)
        mode = os.fstat(opened.fileno()).st_mode
    if os.name == "posix" and mode & 0o077:
        raise ValueError(f"{file}: others can read this key; take that away with: chmod 600 {file}")
    if len(held) == LENGTH:
        return held
    if match := _HEX.fullmatch(held):
        return bytes.fromhex(match[1].decode())
    raise ValueError(
        f"{file}: expected 64 hexadecimal digits or 32 bytes; make a key with: zveil key {file}"
    )


def write_key(path: str | os.PathLike[str]) -> None:
    """Write a new random key to a new file that only its owner can read.

    Raises
    ------
    FileExistsError
        If the file is there already: nobody overwrites a key by accident.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(LENGTH) + "\n")
