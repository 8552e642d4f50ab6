"""Settings of the client library, as they are typed or written down."""

from __future__ import annotations

from collections.abc import Sequence

from zveil.engines.kafka.client import ClientError


def read_settings(path: str) -> dict[str, str]:
    """Read settings from a file: ``name=value`` on each line, ``#`` before a comment.

    Raises
    ------
    ClientError
        If a line is something else; it is not shown.
    OSError
        If it cannot be read.
    """
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#"):
            name, equals, value = text.partition("=")
            if not equals or not name.strip():
                raise ClientError(f"{path}:{number}: expected name=value")
            found[name.strip()] = value.strip()
    return found


def parse_settings(said: Sequence[str]) -> dict[str, str]:
    """Read settings that were typed: each ``name=value``.

    >>> parse_settings(["security.protocol=SSL", "producer.linger.ms=5"])
    {'security.protocol': 'SSL', 'producer.linger.ms': '5'}
    """
    found = {}
    for one in said:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise ClientError("--set: expected name=value, such as security.protocol=SSL")
        found[name] = value
    return found
