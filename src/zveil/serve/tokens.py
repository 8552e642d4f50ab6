"""Bearer tokens: who may do what. The file holds hashes only."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

RIGHTS = ("write", "read", "admin")
"""What a token may do: hand events in; see what is released, and figures; change the service."""

PREFIX = "zveil_"
"""What every token begins with, so that scanners for lost secrets can find it."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LINE = re.compile(r"(?P<name>\S+)\s+(?P<rights>\S+)\s+sha256:(?P<hash>[0-9a-f]{64})")
_LONGEST = 256
_HEADER = """\
# Tokens of zveil serve: name, rights, SHA-256 of the token. Made by: zveil token new
"""


class TokensError(ValueError):
    """A file of tokens that cannot be used."""


@dataclass(frozen=True)
class Token:
    """What is known of a token."""

    name: str
    """For people and logs; it is no secret."""
    rights: frozenset[str]
    hash: bytes

    def may(self, right: str) -> bool:
        """Say whether it has a right."""
        return right in self.rights


ANYONE = Token("", frozenset(RIGHTS), b"")
"""Who comes without a token where none are asked for."""


class Tokens:
    """The tokens of a file.

    Parameters
    ----------
    path
        Lines of a name, rights with commas between them, and ``sha256:`` with 64 digits.

    Raises
    ------
    TokensError
        If others may read or change the file, or a line is none of a token.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._known = read_tokens(self.path)

    def reload(self) -> None:
        """Read the file again; if that fails, what was read before holds on."""
        self._known = read_tokens(self.path)

    def __len__(self) -> int:
        return len(self._known)

    def knows(self, token: Token) -> bool:
        """Say whether a token that was found before is still one of them."""
        return token in self._known

    def find(self, secret: str | bytes) -> Token | None:
        """Give the token that is this secret.

        All are compared, each in constant time: how long it takes tells nothing.
        """
        given = secret.encode("utf-8", "replace") if isinstance(secret, str) else secret
        hashed = _hash(given[:_LONGEST])
        found = None
        for token in self._known:
            if hmac.compare_digest(hashed, token.hash):
                found = token
        return found if len(given) <= _LONGEST else None


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Read a file of tokens."""
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            lines = file.read(1 << 20).splitlines()
    except FileNotFoundError:
        raise TokensError(
            f"{path} is not there; make a token with: zveil token new NAME --file {path}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        words = getattr(error, "strerror", None) or "not text"
        raise TokensError(f"{path}: {words.lower()}") from None
    if os.name == "posix" and mode & 0o077:
        raise TokensError(
            f"{path}: others can read this file; take that away with: chmod 600 {path}"
        )
    found: list[Token] = []
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            found.append(_read(line.strip(), f"{path}:{number}"))
    if not found:
        raise TokensError(
            f"{path}: no token in it; make one with: zveil token new NAME --file {path}"
        )
    names = [token.name for token in found]
    for name in names:
        if names.count(name) > 1:
            raise TokensError(f"{path}: two tokens are named {name!r}")
    return tuple(found)


def _read(line: str, place: str) -> Token:
    match = _LINE.fullmatch(line)
    if match is None:
        raise TokensError(f"{place}: expected a name, rights, and sha256: with 64 digits")
    return Token(
        checked_name(match["name"], place),
        checked_rights(match["rights"].split(","), place),
        bytes.fromhex(match["hash"]),
    )


def checked_name(name: str, place: str) -> str:
    """Give a name, if it is one."""
    if not _NAME.fullmatch(name):
        raise TokensError(f"{place}: expected a name of letters, digits, dots, dashes, 64 at most")
    return name


def checked_rights(rights: Iterable[str], place: str) -> frozenset[str]:
    """Give rights, if they are."""
    found = frozenset(rights)
    if not found or found - set(RIGHTS):
        raise TokensError(f"{place}: expected rights of {', '.join(RIGHTS)}, with commas between")
    return found


def add_token(path: str | os.PathLike[str], name: str, rights: Sequence[str]) -> str:
    """Make a token, and add its hash to a file, which only its owner can read.

    The token is given back, and nowhere else.

    Raises
    ------
    TokensError
        If the file cannot be used, or has a token of this name.
    """
    file = Path(path)
    place = "name"
    token = Token(checked_name(name, place), checked_rights(rights, "rights"), b"")
    if (
        file.exists()
        and file.stat().st_size
        and any(each.name == name for each in read_tokens(file))
    ):
        raise TokensError(f"{file}: has a token named {name!r} already")
    secret = PREFIX + secrets.token_urlsafe(32)
    ordered = ",".join(right for right in RIGHTS if right in token.rights)
    line = f"{name} {ordered} sha256:{_hash(secret.encode()).hex()}\n"
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as opened:
            if not opened.tell():
                line = _HEADER + line
            elif not file.read_bytes().endswith(b"\n"):
                line = "\n" + line
            opened.write(line)
    except OSError as error:
        raise TokensError(f"{file}: {(error.strerror or '').lower()}") from None
    return secret


def bearer(authorization: bytes | None) -> bytes | None:
    """Take the token out of an ``Authorization`` header."""
    if authorization is None:
        return None
    scheme, _, secret = authorization.partition(b" ")
    return secret.strip() if scheme.lower() == b"bearer" and secret.strip() else None


def _hash(secret: bytes) -> bytes:
    # A plain hash is enough: a token has 256 random bits, which nobody can try.
    return hashlib.sha256(b"zveil token\n" + secret).digest()
