"""The keys of a policy file: which there are, and what each takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from zveil.durations import duration_ns, size_bytes
from zveil.gate import Rule
from zveil.io.presets import NAMES
from zveil.names import Names
from zveil.policy.document import Value
from zveil.policy.hold import Hold
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

if TYPE_CHECKING:
    from zveil.hierarchy import Hierarchy

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


def truth(value: Value, _: Path) -> bool:
    """Take true or false."""
    if value.kind != "boolean":
        raise ValueError(f"expected true or false, got {value}")
    return bool(value.held)


def whole_from(least: int) -> Reader:
    """Take a whole number that is not less."""

    def read(value: Value, folder: Path) -> int:
        number = whole(value, folder)
        if number < least:
            raise ValueError(f"expected a whole number from {least}, got {number}")
        return number

    return read


def share(value: Value, _: Path) -> int | float:
    """Take a share of one."""
    if value.kind not in ("integer", "number"):
        raise ValueError(f"expected a share such as 0.05, got {value}")
    held: int | float = value.held
    return held


def duration(value: Value, _: Path) -> str | int | float:
    """Take a duration; a number is one of seconds."""
    if value.kind in ("text", "integer", "number"):
        held: str | int | float = value.held
        # Here, and not only with its part: all mistakes of a part are to be told at once.
        _checked(duration_ns, held)
        return held
    raise ValueError(f"expected a duration such as '1h', '90s' or '1h30m', got {value}")


def rotation(value: Value, folder: Path) -> str | int | float:
    """Take a duration, or so many windows as ``"4 windows"``, which its part reads."""
    is_windows = value.kind == "text" and "window" in value.held
    return str(value.held) if is_windows else duration(value, folder)


def duration_or_any(value: Value, folder: Path) -> str | int | float | None:
    """Take a duration, or ``"any"`` for no bound."""
    return None if value.held == "any" else duration(value, folder)


def size(value: Value, _: Path) -> str | int:
    """Take a size in bytes."""
    if value.kind in ("text", "integer"):
        held: str | int = value.held
        _checked(size_bytes, held)
        return held
    raise ValueError(f"expected a size such as '512MiB' or '2GB', or bytes, got {value}")


def _checked(read: Callable[[Any, str], int], held: str | int | float) -> None:
    try:
        read(held, "")
    except ValueError as error:
        raise ValueError(str(error).removeprefix(": ")) from None


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


def hierarchy(value: Value, folder: Path) -> Hierarchy:
    """Take the steps of a hierarchy."""
    from zveil.hierarchy import parse

    return parse(_plain(value), folder)


def _plain(value: Value) -> Any:
    if value.kind == "list":
        return [_plain(item) for item in value.held]
    if value.kind == "table":
        return {name: _plain(entry.value) for name, entry in value.held.items()}
    return value.held


def names(value: Value, folder: Path) -> Names:
    """Take the file of a list of names."""
    return Names.read(folder / text(value, folder))


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
    is_optional: bool = False
    """May be left out, whatever keys it needs."""
    instead: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Keys that may stand instead of others."""

    @property
    def required(self) -> list[str]:
        """The keys that must be there."""
        fields = dataclasses.fields(self.part)
        return [each.name for each in fields if _has_no_default(each)]


def _has_no_default(part: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return part.default is missing and part.default_factory is missing


SCHEMA: dict[str, Section] = {
    "input": Section(Input, {"format": one_of(*NAMES), "id": text}),
    "time": Section(
        Time,
        {
            "field": text,
            "format": one_of(*get_args(TimeFormat)),
            "round": one_of(*get_args(Rounding)),
            "year": whole,
        },
    ),
    "user": Section(
        User,
        {
            "field": text,
            "pseudonym": one_of(*get_args(Pseudonym)),
            "rotate": rotation,
            "keep_keys": truth,
        },
    ),
    "attribute": Section(
        Attribute,
        {
            "field": text,
            "z": whole_from(1),
            "window": duration,
            "z_max": whole_from(1),
            "veiled": veiled,
            "noise": whole_from(0),
            "noise_period": duration,
            "swap": share,
            "hierarchy": hierarchy,
            "rule": one_of(*get_args(Rule)),
            "level": whole,
            "fields": texts,
            "only": names,
            "except": names,
            "name": text,
        },
        is_repeated=True,
        # What is made of several fields has a name of its own.
        instead={"name": "field"},
    ),
    "record": Section(Record, {"keep": texts, "empty": one_of(*get_args(Empty))}),
    "limits": Section(
        Limits,
        {
            "lateness": duration,
            "max_future": duration_or_any,
            "memory": size,
            "attributes": whole_from(1),
        },
    ),
    "hold": Section(
        Hold,
        {"p": share, "k": whole, "z_min": whole, "z_max": whole},
        is_optional=True,
    ),
}
