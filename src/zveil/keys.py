"""Secret keys: in files, in the environment, and as keyrings that pseudonyms are made with."""

import base64
import binascii
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import MutableMapping
from pathlib import Path

from zveil._native import Keyring

LENGTH = 32
VARIABLE = "ZVEIL_KEY"
"""The variable of the environment that may hold a key."""

_CHAIN = "zveil chain"
_HEX = re.compile(rb"\s*([0-9A-Fa-f]{64})\s*")
_BASE64 = re.compile(rb"\s*([0-9A-Za-z+/_-]{43}=?)\s*")


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
    if held.startswith(_CHAIN.encode()):
        raise ValueError(
            f"{file}: holds a chain of keys, which is for pseudonyms that rotate; state rotate, "
            "without keep_keys, or make another key with: zveil key FILE"
        )
    raise ValueError(
        f"{file}: expected 64 hexadecimal digits or 32 bytes; make a key with: zveil key {file}"
    )


def derive_key(key: bytes, label: str) -> bytes:
    """Derive a key of 32 bytes for one use: HKDF with SHA-256 (RFC 5869), without a salt.

    Neither the key nor what is derived for another label can be found from it.

    Parameters
    ----------
    key
        32 secret bytes.
    label
        The use.

    Examples
    --------
    >>> derive_key(bytes(32), "gate a").hex()[:16]
    'ab32cdee6fa16679'
    """
    drawn = hmac.digest(bytes(hashlib.sha256().digest_size), key, "sha256")
    return hmac.digest(drawn, b"zveil " + label.encode() + b"\x01", "sha256")


def write_key(path: str | os.PathLike[str], *, chain: bool = False) -> None:
    """Write a new random key to a new file that only its owner can read.

    Parameters
    ----------
    path
        The file.
    chain
        A key that a chain begins with, for pseudonyms that rotate.

    Raises
    ------
    FileExistsError
        If the file is there already: nobody overwrites a key by accident.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    digits = secrets.token_hex(LENGTH)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{_CHAIN}\nkey {digits}\n" if chain else f"{digits}\n")


def take_key(environment: MutableMapping[str, str]) -> bytes | None:
    """Take the key out of an environment, so that no program started later inherits it.

    Raises
    ------
    ValueError
        If what is there is no key: 32 bytes as 64 hexadecimal digits or as base64.
    """
    held = environment.pop(VARIABLE, None)
    if not held:
        return None
    spelled = held.encode("utf-8", "surrogateescape")
    if match := _HEX.fullmatch(spelled):
        return bytes.fromhex(match[1].decode())
    if match := _BASE64.fullmatch(spelled):
        plain = match[1].translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=") + b"="
        try:
            return base64.b64decode(plain, validate=True)
        except binascii.Error:
            pass
    raise ValueError(
        f"{VARIABLE}: expected 32 bytes, as 64 hexadecimal digits or as base64; what it holds is "
        "not shown here"
    )


def open_keyring(
    pseudonym: str,
    *,
    file: str | os.PathLike[str] | None = None,
    environment: MutableMapping[str, str] | None = None,
    own: bytes | None = None,
    rotate_ns: int | None = None,
    keep_keys: bool = False,
    lateness_ns: int = 0,
    max_future_ns: int | None = None,
) -> Keyring:
    """Open the keys that user ids leave under.

    Parameters
    ----------
    pseudonym
        ``"base32"``, ``"hex"``, ``"uuid"`` or ``"crypto-pan"``.
    file
        Of the key; a new key that nobody keeps by default.
    environment
        Where `VARIABLE` may hold a key instead. It is taken out.
    own
        The key where neither has one, instead of a new one that nobody keeps.
    rotate_ns
        How long a period is; one key for all time by default.
    keep_keys
        The keys of all periods are made from the one key, at any time. By default they form a
        chain: each is made from the one before, which goes.
    lateness_ns, max_future_ns
        Of the gates: which periods an event may be in.

    Raises
    ------
    ValueError
        If there is no such key, others may read it, or it is of the wrong kind.
    """
    given = None if environment is None else take_key(environment)
    if given is not None and file is not None:
        raise ValueError(f"key-file: {VARIABLE} is set too; give the key in one of these places")
    if rotate_ns is not None and not keep_keys:
        if given is not None:
            raise ValueError(
                f"{VARIABLE}: a key in the environment cannot move on, and old keys would not be "
                "gone; take a file made with zveil key --chain, or say that keys are kept"
            )
        if file is not None and max_future_ns is None:
            raise ValueError(
                "max-future: one wrong time could move the chain of keys on for ever; state a limit"
            )
        return _chain(pseudonym, file, rotate_ns, lateness_ns, max_future_ns)
    key = given
    if key is None:
        key = (own or secrets.token_bytes(LENGTH)) if file is None else key_of(file)
    if rotate_ns is None:
        return Keyring.fixed(pseudonym, key)
    return Keyring.kept(pseudonym, key, rotate_ns)


def _chain(
    pseudonym: str,
    file: str | os.PathLike[str] | None,
    rotate_ns: int,
    lateness_ns: int,
    max_future_ns: int | None,
) -> Keyring:
    try:
        return Keyring.chain(
            pseudonym,
            file,
            period_ns=rotate_ns,
            lateness_ns=lateness_ns,
            max_future_ns=max_future_ns,
        )
    except OSError as error:
        raise ValueError(str(error)) from None


def key_of(file: str | os.PathLike[str]) -> bytes:
    """Read the key that ``--key-file`` names; ValueError with that name if it cannot be."""
    try:
        return read_key(file)
    except FileNotFoundError:
        raise ValueError(
            f"key-file: {file} is not there; make one with: zveil key {file}"
        ) from None
    except OSError as error:
        raise ValueError(f"key-file: {file}: {(error.strerror or '').lower()}") from None
