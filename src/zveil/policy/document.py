"""A TOML document, with the place of every key and value in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from zveil._native import read_toml

Place: TypeAlias = tuple[int, int]
"""Line and column, both from 1."""

Kind = Literal["text", "integer", "number", "boolean", "date", "list", "table"]


class DocumentError(ValueError):
    """Text that is no TOML; `place` says where."""

    def __init__(self, words: str, place: Place) -> None:
        super().__init__(words)
        self.place = place


@dataclass(frozen=True)
class Value:
    """A value, and where it stands.

    `held` is what Python has for it: of a list the values in it, of a table its entries by key.
    """

    kind: Kind
    place: Place
    held: Any

    def __str__(self) -> str:
        """Give it as it is written; of what has parts only what it is."""
        if self.kind == "text":
            return repr(self.held)
        if self.kind == "boolean":
            return str(self.held).lower()
        return f"a {self.kind}" if self.kind in ("list", "table", "date") else str(self.held)


@dataclass(frozen=True)
class Entry:
    """A key and its value."""

    key: str
    place: Place
    value: Value


def read_document(text: str) -> dict[str, Entry]:
    """Read a document: its entries by key, in their order.

    >>> [entry] = read_document("[time]" + chr(10) + "field = 'ts'")["time"].value.held.values()
    >>> entry.key, entry.value.held, entry.value.place
    ('field', 'ts', (2, 9))
    """
    try:
        return _entries(read_toml(text))
    except ValueError as error:
        words, place = error.args
        raise DocumentError(words, place) from None


def _entries(members: list[Any]) -> dict[str, Entry]:
    return {key: Entry(key, place, _value(node)) for key, place, node in members}


def _value(node: Any) -> Value:
    kind, place, held = node
    if kind == "list":
        held = [_value(item) for item in held]
    elif kind == "table":
        held = _entries(held)
    return Value(kind, place, held)
