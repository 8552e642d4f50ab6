"""`zveil audit`: what an observer of a released stream has."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

import click

from zveil.durations import duration_ns
from zveil.io import Format, Input, SourceError, UnknownFormatError, find
from zveil.policy import TimeFormat

if TYPE_CHECKING:
    import pyarrow as pa

    from zveil.audit import Audit, Observations, Options
    from zveil.events import Events

FAILED, USAGE, BAD_INPUT = 1, 2, 3

_FORMATS = click.Choice([form.value for form in Format])
_EVERY_S = 0.2
_TIMES = ("none", "week", "day", "hour", "minute")


@click.command(short_help="Measure what an observer of a released stream has.")
@click.argument("released", nargs=-1, type=click.Path(), metavar="[RELEASED]...")
@click.option("--time", "time_field", required=True, metavar="FIELD", help="Field of the time.")
@click.option("--user", "user_field", required=True, metavar="FIELD", help="Field of the user.")
@click.option(
    "--attribute", "attributes", required=True, multiple=True, metavar="FIELD",
    help="Field of a value that was released or veiled; repeat it for several.",
)  # fmt: skip
@click.option(
    "--original", multiple=True, type=click.Path(), metavar="FILE",
    help="What the stream was made from, to count what was veiled; repeat it for several files.",
)  # fmt: skip
@click.option(
    "--rotate", metavar="DURATION",
    help="Measure also as if pseudonyms changed every 24h, 7d, ..., counted from the Unix epoch.",
)  # fmt: skip
@click.option(
    "--points", type=click.Choice(_TIMES), default="hour", show_default=True,
    help="The time of the points that are tried for singling users out.",
)  # fmt: skip
@click.option(
    "--sample", type=click.IntRange(1), default=10_000, show_default=True, metavar="N",
    help="Most users that are tried.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, metavar="N",
    help="Draws the users and points that are tried.",
)  # fmt: skip
@click.option(
    "--show-values", type=click.IntRange(2), metavar="USERS",
    help="Name the top values that at least so many users released; none by default.",
)  # fmt: skip
@click.option(
    "--report", metavar="FILE", type=click.Path(dir_okay=False),
    help="Write a page with tables and pictures to FILE, such as report.html.",
)  # fmt: skip
@click.option(
    "--format", "stated", type=_FORMATS,
    help="Format of the files, if their names and content do not tell.",
)  # fmt: skip
@click.option(
    "--time-format", type=click.Choice(["s", "ms", "us", "ns", "iso"]),
    help="What times are: Unix seconds, milli-, micro-, nanoseconds, or ISO 8601; found out from "
    "the first records by default.",
)  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option("--json", "as_json", is_flag=True, help="The figures as one JSON object.")
def audit(
    released: tuple[str, ...],
    time_field: str,
    user_field: str,
    attributes: tuple[str, ...],
    original: tuple[str, ...],
    rotate: str | None,
    points: str,
    sample: int,
    seed: int,
    show_values: int | None,
    report: str | None,
    stated: str | None,
    time_format: TimeFormat | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Measure how many users of a released stream look alike, and what is left of the data.

    RELEASED are files as `zveil run` writes them; without any, standard input is read. For each
    visible user, one with something released, k is the number of visible users with exactly the
    same released data, at several resolutions of time. No user and no value is ever printed, unless
    --show-values asks for values that many share.

    \b
    zveil audit released.ndjson --time ts --user uid --attribute host
    zveil audit released.ndjson --original events.ndjson \\
        --time ts --user uid --attribute host --rotate 24h --report report.html

    \b
    Exit codes:
      0    done, or the reader closed the pipe
      1    reading or writing failed
      2    wrong usage
      3    no event could be read
    """  # noqa: D301  # click's mark for text that must not be wrapped
    watch = _Watch(quiet=quiet or as_json)
    form = Format(stated) if stated else None
    try:
        asked = _options(rotate, points, sample, seed, show_values)
        sources = find(released, form)
        originals = find(original, form) if original else []
        if None in [each.path for each in sources] and None in [each.path for each in originals]:
            raise SourceError("-: standard input can be read only once")
        _check_report(report, [*sources, *originals])
    except (SourceError, ValueError) as error:
        raise click.UsageError(_as_option(str(error))) from None
    fields = _Fields(time_field, user_field, attributes, time_format)
    try:
        found = _measure(sources, originals, fields, asked, watch)
        watch.clear()
        _tell(found, as_json=as_json, report=report, names=[each.name for each in sources])
    except BrokenPipeError:
        raise
    except UnknownFormatError as error:
        watch.fail(str(error), USAGE)
    except (SourceError, OSError, MemoryError) as error:
        watch.fail(str(error), FAILED)
    except _NothingReadError as error:
        watch.fail(str(error), BAD_INPUT)
    except (ValueError, TypeError) as error:
        watch.fail(_as_option(str(error)), USAGE)


class _NothingReadError(Exception):
    """Not one event could be read."""


class _Fields:
    """Which fields are read, and how."""

    def __init__(
        self, time: str, user: str, attributes: tuple[str, ...], time_format: TimeFormat | None
    ) -> None:
        self.time, self.user, self.attributes, self.time_format = (
            time,
            user,
            attributes,
            time_format,
        )

    def events(self, inputs: Sequence[Input]) -> Events:
        from zveil.events import Events

        return Events(
            inputs,
            time=self.time,
            user=self.user,
            attributes=self.attributes,
            time_format=self.time_format,
        )


class _Watch:
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


def _options(
    rotate: str | None, points: str, sample: int, seed: int, show_values: int | None
) -> Options:
    from zveil.audit import Options
    from zveil.audit.points import Resolution

    label = "set" if points == "none" else points
    return Options(
        rotate_ns=None if rotate is None else duration_ns(_duration(rotate), "rotate"),
        resolution=next(each for each in Resolution if each.label == label),
        sample=sample,
        seed=seed,
        show_values=show_values,
    )


def _measure(
    sources: Sequence[Input],
    originals: Sequence[Input],
    fields: _Fields,
    asked: Options,
    watch: _Watch,
) -> Audit:
    from zveil.audit import audit as measure

    observations, bad = _read(sources, fields, watch, "what was released")
    original = None
    if originals:
        original, more = _read(originals, fields, watch, "the original")
        bad += more
    return measure(observations, original, asked, bad=bad, watch=watch)


def _read(
    inputs: Sequence[Input], fields: _Fields, watch: _Watch, what: str
) -> tuple[Observations, int]:
    import pyarrow as pa

    from zveil.audit import read

    events = fields.events(inputs)
    batches = watch.batches(events, what)
    try:
        observations = read(batches, user=fields.user, attributes=fields.attributes)
    except pa.ArrowException:
        # The words of the library may quote the data.
        raise _NothingReadError(
            f"{inputs[0].name}: a column holds what cannot be read as times, users or values"
        ) from None
    if events.bad and not len(observations.users):
        raise _NothingReadError(
            f"{inputs[0].name}: no event could be read, and {events.bad:,} lines are bad; check "
            "--time, --user, --attribute and --time-format"
        )
    return observations, events.bad


def _check_report(report: str | None, inputs: Sequence[Input]) -> None:
    """Find out now, not after all is measured, that the page cannot be made."""
    if report is None:
        return
    if any(each.path is not None and os.path.exists(report)
           and os.path.samefile(report, each.path) for each in inputs):  # fmt: skip
        raise ValueError(f"report: {report} is an input; write to another file")
    folder = os.path.dirname(report) or "."
    if not os.path.isdir(folder):
        raise ValueError(f"report: there is no directory {folder}")
    # Its words about fonts and folders are not for those who ask for a page.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError(
            "report: the pictures need Matplotlib; install it with: pip install 'zveil[report]'"
        ) from None


def _tell(found: Audit, *, as_json: bool, report: str | None, names: Sequence[str]) -> None:
    from zveil.audit.account import as_dict
    from zveil.audit.text import as_text

    if report is not None:
        from zveil.audit.report import page

        with open(report, "w", encoding="utf-8") as file:
            names = [os.path.basename(name) for name in names]
            file.write(page(found, names, f"{datetime.now(UTC):%Y-%m-%d}"))
    click.echo(json.dumps(as_dict(found)) if as_json else as_text(found))


def _duration(text: str) -> str | int:
    """Take a plain number for seconds, as the library does."""
    return int(text) if text.isdecimal() else text


def _as_option(words: str) -> str:
    """Name a parameter as it is typed: ``rotate: ...`` becomes ``--rotate: ...``."""
    name, colon, rest = words.partition(": ")
    known = {"time", "user", "attribute", "rotate", "report", "time-format"}
    return f"--{name}{colon}{rest}" if name in known else words
