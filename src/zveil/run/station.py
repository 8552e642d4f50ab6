"""What the ways of text and of columns share: what they were told, and what they came to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from zveil._native import Keyring
from zveil.fields import FieldError, wrong_columns
from zveil.gate import Gate
from zveil.io import Input
from zveil.policy import Policy
from zveil.run.ending import Stop
from zveil.run.outlet import Outlet


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


@contextmanager
def named(source: Input, *, is_text: bool) -> Iterator[None]:
    """Say which file lacks a column."""
    try:
        yield
    except LookupError as error:
        raise FieldError(f"{source.name}: {wrong_columns(error, is_text=is_text)}") from None
