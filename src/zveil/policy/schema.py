"""The keys of a policy file: which there are, and what each takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, get_args

from zveil.io.formats import Format
from zveil.policy.document import Value
from zveil.policy.parts import (
    Attribute,
    Empty,
    Input,
    Limits,
    Pseudonym,
    Record,
    Rounding,
    Time,
    TimeFormat,
    User,
)

Reader: TypeAlias = Callable[[Value, Path], Any]
"""Makes of a value what the policy holds; files are looked for in the folder. Raises ValueError
with what is wrong and what to do."""


def text(value: Value, _: Path) -> str:
    """Take a text."""
    if value.kind != "text":
        raise ValueError(f"expected a text in quotes, got {value}")
    return str(value.held)


def whole(value: Value, _: Path) -> int:
    """Take a whole number."""
    if value.kind != "integer":
        raise ValueError(f"expected a whole number, got {value}")
    return int(value.held)


def duration(value: Value, _: Path) -> str | int | float:
    """Take a duration; a number is one of seconds."""
    if value.kind in ("text", "integer", "number"):
        held: str | int | float = value.held
        return held
    raise ValueError(f"expected a duration such as '1h', '90s' or '1h30m', got {value}")


def duration_or_any(value: Value, folder: Path) -> str | int | float | None:
    """Take a duration, or ``"any"`` for no bound."""
    return None if value.held == "any" else duration(value, folder)


def size(value: Value, _: Path) -> str | int:
    """Take a size in bytes."""
    if value.kind in ("text", "integer"):
        held: str | int = value.held
        return held
    raise ValueError(f"expected a size such as '512MiB' or '2GB', or bytes, got {value}")


def texts(value: Value, folder: Path) -> tuple[str, ...]:
    """Take a list of texts."""
    if value.kind != "list":
        raise ValueError(f'expected a list such as ["method"], got {value}')
    return tuple(text(item, folder) for item in value.held)


def veiled(value: Value, _: Path) -> str | None:
    """Take ``"null"``, or a table with a text of one's own."""
    if value.held == "null":
        return None
    if value.kind == "table" and list(value.held) == ["text"]:
        held = value.held["text"].value
        if held.kind == "text":
            return str(held.held)
    raise ValueError(f'expected "null", or a text of your own as {{ text = "*" }}, got {value}')


def one_of(*choices: str) -> Reader:
    """Take one of these words."""
    words = ", ".join(map(repr, choices[:-1])) + f" or {choices[-1]!r}"

    def read(value: Value, _: Path) -> str:
        if value.held not in choices:
            raise ValueError(f"expected {words}, got {value}")
        return str(value.held)

    return read


@dataclass(frozen=True)
class Section:
    """A section of the file: the part of the policy that it makes, and its keys."""

    part: type[Any]
    keys: Mapping[str, Reader]
    is_repeated: bool = False
    """Written with two brackets, as often as needed."""

    @property
    def required(self) -> list[str]:
        """The keys that must be there."""
        fields = dataclasses.fields(self.part)
        return [each.name for each in fields if _has_no_default(each)]


def _has_no_default(part: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return part.default is missing and part.default_factory is missing


SCHEMA: dict[str, Section] = {
    "input": Section(Input, {"format": one_of(*(form.value for form in Format))}),
    "time": Section(
        Time,
        {
            "field": text,
            "format": one_of(*get_args(TimeFormat)),
            "round": one_of(*get_args(Rounding)),
        },
    ),
    "user": Section(User, {"field": text, "pseudonym": one_of(*get_args(Pseudonym))}),
    "attribute": Section(
        Attribute,
        {"field": text, "z": whole, "window": duration, "z_max": whole, "veiled": veiled},
        is_repeated=True,
    ),
    "record": Section(Record, {"keep": texts, "empty": one_of(*get_args(Empty))}),
    "limits": Section(
        Limits, {"lateness": duration, "max_future": duration_or_any, "memory": size}
    ),
}
