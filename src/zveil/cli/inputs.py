"""What commands that read events share: the options of fields and formats, reading, and its end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from zveil.io import WRITABLE, Input, SourceError, UnknownFormatError
from zveil.policy import Attribute, TimeFormat

if TYPE_CHECKING:
    import pyarrow as pa

    from zveil.audit import Observations
    from zveil.events import Events

FAILED, USAGE, BAD_INPUT = 1, 2, 3
"""Exit codes: reading or writing failed; wrong usage; the input is bad."""

FORMATS = click.Choice([form.value for form in WRITABLE])

_EVERY_S = 0.2

Command = TypeVar("Command", bound=Callable[..., Any])


def field_options(
    attribute_help: str, *, required: bool = True, more: str = ""
) -> Callable[[Command], Command]:
    """Add the options that name the fields: ``--time``, ``--user``, ``--attribute``.

    Parameters
    ----------
    attribute_help
        What the command does with an attribute.
    required
        Whether there is nothing to do without them.
    more
        What is said at the end of each one's help.
    """

    def add(command: Command) -> Command:
        for option in reversed(
            (
                click.option(
                    "--time", "time_field", required=required, metavar="FIELD",
                    help=f"Field of the time.{more}",
                ),
                click.option(
                    "--user", "user_field", required=required, metavar="FIELD",
                    help=f"Field of the user.{more}",
                ),
                click.option(
                    "--attribute", "attribute_fields", required=required, multiple=True,
                    metavar="FIELD", help=attribute_help + more,
                ),
            )
        ):  # fmt: skip
            command = option(command)
        return command

    return add


def format_option(words: str, choices: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Add ``--format``, which states what cannot be found out; logs only where they are named."""
    names = click.Choice(choices) if choices else FORMATS
    return click.option("--format", "stated", type=names, help=words)


def time_format_option(more: str = "") -> Callable[[Command], Command]:
    """Add ``--time-format``, with more to be said of a wrong one."""
    return click.option(
        "--time-format", type=click.Choice(["s", "ms", "us", "ns", "iso"]),
        help="What times are: Unix seconds, milli-, micro-, nanoseconds, or ISO 8601; found out "
        f"from the first records by default.{more}",
    )  # fmt: skip


def duration(text: str) -> str | int:
    """Take a plain number for seconds, as the library does."""
    return int(text) if text.isdecimal() else text


@dataclass(frozen=True, kw_only=True)
class Fields:
    """Which fields are read, and how."""

    time: str
    user: str
    attributes: tuple[str, ...]
    time_format: TimeFormat | None
    positions: tuple[Attribute, ...] = ()
    """Attributes that are made of several fields, where these are read."""

    def events(self, inputs: Sequence[Input]) -> Events:
        """Give the events of some files."""
        from zveil.events import Events

        return Events(
            inputs,
            time=self.time,
            user=self.user,
            attributes=self.attributes,
            time_format=self.time_format,
            positions={each.field: each for each in self.positions},
        )


class NothingReadError(Exception):
    """Not one event could be read."""


class Watch:
    """A line on standard error, if that is a terminal: what is being done, and how far it is."""

    def __init__(self, *, quiet: bool) -> None:
        self._is_shown = not quiet and sys.stderr.isatty()
        self._next = 0.0
        self._is_dirty = False

    def __call__(self, words: str) -> None:
        """Say what is being done."""
        if self._is_shown:
            self._is_dirty = True
            click.echo("\r\x1b[2K" + words, err=True, nl=False)

    def batches(self, events: Events, what: str) -> Iterator[pa.RecordBatch]:
        """Pass batches on, and say how far they are, a few times a second."""
        rows = 0
        for batch in events:
            rows += batch.num_rows
            now = time.monotonic()
            if now >= self._next:
                self._next = now + _EVERY_S
                size = events.size
                part = f" ({min(events.position / size, 1):.0%})" if size else ""
                self(f"reading {what}{part}: {rows:,} events")
            yield batch

    def clear(self) -> None:
        """Take the line away, so that something else can be printed."""
        if self._is_dirty:
            click.echo("\r\x1b[2K", err=True, nl=False)
            self._is_dirty = False

    def fail(self, words: str, code: int) -> NoReturn:
        """Say what is wrong, and end."""
        self.clear()
        click.echo(f"Error: {words}", err=True)
        raise SystemExit(code)


@contextmanager
def told(watch: Watch, as_option: Callable[[str], str]) -> Iterator[None]:
    """End with the words and the exit code of what goes wrong.

    Parameters
    ----------
    watch
        Says it.
    as_option
        Names a parameter as it is typed: ``rotate: ...`` becomes ``--rotate: ...``.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except UnknownFormatError as error:
        watch.fail(str(error), USAGE)
    except (SourceError, OSError, MemoryError) as error:
        watch.fail(str(error), FAILED)
    except NothingReadError as error:
        watch.fail(str(error), BAD_INPUT)
    except (ValueError, TypeError) as error:
        watch.fail(as_option(str(error)), USAGE)


def read(
    inputs: Sequence[Input], fields: Fields, watch: Watch, what: str
) -> tuple[Observations, int]:
    """Read the observations of some files, undecided, and count the lines that are bad."""
    import pyarrow as pa

    from zveil import audit

    events = fields.events(inputs)
    batches = watch.batches(events, what)
    try:
        observations = audit.read(batches, user=fields.user, attributes=fields.attributes)
    except pa.ArrowException:
        # The words of the library may quote the data.
        raise NothingReadError(
            f"{inputs[0].name}: a column holds what cannot be read as times, users or values"
        ) from None
    if events.bad and not len(observations.users):
        raise NothingReadError(
            f"{inputs[0].name}: no event could be read, and {events.bad:,} lines are bad; check "
            "--time, --user, --attribute and --time-format"
        )
    return observations, events.bad
