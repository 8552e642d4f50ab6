"""What the ways of text and of columns share: what they were told, and what they came to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zveil._native import EventIds, Keyring
from zveil.fields import FieldError, wrong_columns
from zveil.gate import Gate
from zveil.io import Input
from zveil.meter import Meter
from zveil.policy import Policy
from zveil.run.ending import Stop
from zveil.run.gap import Gap
from zveil.run.outlet import Outlet

if TYPE_CHECKING:
    from zveil.hold.steering import Steering


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a way is told before it begins; as for `Run`."""

    policy: Policy
    gates: Sequence[Gate]
    keyring: Keyring | None
    threads: int
    stop_at_problem: bool
    max_bad: float
    max_line: int
    report: Callable[[str], None]
    outlet: Outlet
    stop: Stop
    ids: EventIds | None = None
    meter: Meter | None = None
    steering: Steering | None = None
    gap: Gap | None = None
    """What is to be told about the first event."""


def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, kw_only=True)
class Pauses:
    """What is done where a way pauses, between two blocks."""

    between: Callable[[], None] = _nothing
    """After each block: all that was read is decided and written, but for the rest of a line."""
    idle: Callable[[], None] = _nothing
    """Before a wait; it may take as long as nothing arrives."""
    rest: Callable[[], None] = _nothing
    """At the end of an input, before a last line is decided that has no end."""


@dataclass(kw_only=True)
class Counts:
    """What a way came to so far; of the lists see `_Tally` in the native module."""

    lines: int = 0
    records: int = 0
    passed: int = 0
    bad: dict[str, int] = field(default_factory=dict)
    leaving: Sequence[int] = ()
    levels: Sequence[Sequence[int]] = ()
    swapped: Sequence[int] = ()
    filtered: Sequence[int] = ()
    time_format: str | None = None
    repeated: int = 0


@contextmanager
def named(source: Input, *, is_text: bool) -> Iterator[None]:
    """Say which file lacks a column."""
    try:
        yield
    except LookupError as error:
        raise FieldError(f"{source.name}: {wrong_columns(error, is_text=is_text)}") from None
