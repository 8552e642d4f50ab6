"""`zveil simulate`: a made-up stream out."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from zveil.io import WRITABLE, ByteSink, Format, SinkClosed, SinkError, of_path

if TYPE_CHECKING:
    from types import FrameType

    from zveil.io.batch_sinks import BatchSink
    from zveil.simulate import Scenario

FAILED = 1
_EVERY_S = 0.2


@click.command(short_help="Make up a stream of events, to try things out on.")
@click.option(
    "--preset", type=click.Choice(["paper", "isp-day"]), default="paper", show_default=True,
    help="What the other options change: the paper's model, or a synthetic stand-in for its day "
    "of web visits at an ISP, made up from the published figures.",
)  # fmt: skip
@click.option("--users", type=int, metavar="N", help="Users: 50,000; isp-day 9,670.")
@click.option("--attributes", type=int, metavar="N", help="Attributes: 5,000; not for isp-day.")
@click.option(
    "--rate", type=float, metavar="RATE",
    help="Times that a user exposes the first attribute in a window: 0.05; not for isp-day.",
)  # fmt: skip
@click.option(
    "--exponent", type=float, metavar="X",
    help="The attribute of rank r has rate / r^X: 1; not for isp-day.",
)  # fmt: skip
@click.option("--window", metavar="DURATION", help="The window that rates are for: 1h.")
@click.option("--windows", type=int, metavar="N", help="How many of them to make: 25; isp-day 24.")
@click.option(
    "--start", metavar="TIME", help="When it starts, Unix seconds or ISO 8601: 2020-01-01 (UTC)."
)
@click.option("--seed", type=int, metavar="N", help="Another makes another stream: 1; isp-day 6.")
@click.option(
    "--class", "classes", multiple=True, metavar="SHARE:FACTOR",
    help="A share of the users whose rates are so many times as high; repeat it until the shares "
    "make 1. The events change by the mean of the factors.",
)  # fmt: skip
@click.option(
    "--diurnal", type=float, is_flag=False, flag_value=1.0, metavar="[DEPTH]",
    help="Day and night (UTC): from 0, none, to 1, full. Days have as many events as without. "
    "isp-day has 1.",
)  # fmt: skip
@click.option(
    "--flash", "flashes", multiple=True, metavar="AT:DURATION:FACTOR[:RANK]",
    help="A flash crowd so long after the start, such as 6h:30m:20:3: rates of all attributes, or "
    "of one, are multiplied. Adds FACTOR - 1 times the events there are meanwhile.",
)  # fmt: skip
@click.option(
    "--late", metavar="SHARE:MEAN[:MOST]",
    help="Events that arrive late, such as 5%:30s: held back for an exponential time, at most "
    "MOST, ten means by default. Changes their order, not their number nor times.",
)  # fmt: skip
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False),
    help="Write there instead of to standard output.",
)  # fmt: skip
@click.option(
    "--to", type=click.Choice([form.value for form in WRITABLE]),
    help="Format, by default by the ending of FILE (.gz and .zst too), else ndjson.",
)  # fmt: skip
@click.option(
    "--fields", default="ts,user,site", show_default=True, metavar="NAMES",
    help="Names of time, user and attribute.",
)  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary.")
def simulate(output: str | None, to: str | None, fields: str, quiet: bool, **given: Any) -> None:
    """Make up a stream of events: users who expose attributes at random.

    Everything is synthetic: users are user-00001 and so on, attributes site-00001.example and so
    on, the most popular first. In each window a user exposes the attribute of rank r as a Poisson
    process, so at least once with the probability 1 - exp(-rate / r^exponent). Events are in the
    order of their times, unless some are to be late. The same seed gives the same events, in any
    format.

    \b
    zveil simulate > stream.ndjson
    zveil simulate --users 2000 --windows 3 | zveil run --time ts --user user \\
        --attribute site -z 20 --window 1h
    zveil simulate --preset isp-day -o day.parquet
    zveil simulate --class 0.9:0.5 --class 0.1:5 --diurnal --flash 6h:30m:20:3 \\
        --late 5%:30s -o stream.csv.gz

    \b
    Exit codes: 0 done, or the reader closed the pipe; 1 writing failed; 2 wrong usage; 130 and 143
    interrupted or told to end. Whatever ends it, what was written is whole.
    """  # noqa: D301  # click's mark for text that must not be wrapped
    try:
        names = _names(fields)
        scenario = _scenario(**given)
    except ValueError as error:
        raise click.UsageError(f"--{error}") from None
    form = Format(to) if to else of_path(output or "-")[0] or Format.NDJSON
    raise SystemExit(_Simulation(scenario, form, output, names, quiet=quiet).go())


class _Simulation:
    """A stream on its way out."""

    def __init__(
        self, scenario: Scenario, form: Format, output: str | None, names: list[str], *, quiet: bool
    ) -> None:
        self._scenario = scenario
        self._form = form
        self._output = output
        self._names = names
        self._quiet = quiet
        self._shows = not quiet and sys.stderr.isatty()
        self._next = 0.0
        self._count = self._bytes = 0
        self._signals: list[int] = []
        self._began = time.monotonic()

    def go(self) -> int:
        """Write it, say how it ended, and give the exit code."""
        code, ended = 0, ""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        try:
            (self._text if self._form.is_text else self._columns)()
        except SinkClosed:
            ended = "closed pipe"
        except SinkError as error:
            self._clear()
            click.echo(f"Error: {error}", err=True)
            return FAILED
        if self._signals:
            code, ended = 128 + self._signals[0], "signal"
        self._clear()
        if not self._quiet:
            with suppress(BrokenPipeError):
                click.echo(self._summary(ended), err=True)
        return code

    def _text(self) -> None:
        from zveil.simulate.text import Lines

        lines = Lines(self._scenario, self._form, self._names)
        with ByteSink(self._output) as sink:
            sink.write(lines.header)
            for events in self._scenario.columns():
                sink.write(lines.text(events).data)
                if self._is_over(events.size, sink):
                    return
        self._bytes = sink.position

    def _columns(self) -> None:
        from zveil.io.batch_sinks import BatchSink
        from zveil.simulate.table import Table

        table = Table(self._scenario, self._names)
        with BatchSink(self._output, table.schema, format=self._form) as sink:
            for events in self._scenario.columns():
                sink.write(table.batch(events))
                if self._is_over(events.size, sink):
                    return
        self._bytes = sink.position

    def _is_over(self, count: int, sink: ByteSink | BatchSink) -> bool:
        """Count a block, show it, and tell whether someone asked to stop."""
        self._count += count
        self._bytes = sink.position
        now = time.monotonic()
        if self._shows and now >= self._next:
            self._next = now + _EVERY_S
            share = min(self._count / self._scenario.expected_events(), 1)
            click.echo(f"\r\x1b[2K{self._count:,} events ({share:.0%})", err=True, nl=False)
        return bool(self._signals)

    def _summary(self, ended: str) -> str:
        seconds = time.monotonic() - self._began
        words = (
            f"{self._count:,} synthetic events: {self._scenario.title}\n"
            f"{seconds:.1f} s, {self._count / max(seconds, 1e-9):,.0f} events/s, "
            f"{self._bytes / 1e6:,.1f} MB out"
        )
        return words + (f"\nended early: {ended}" if ended else "")

    def _clear(self) -> None:
        if self._shows and self._next:
            click.echo("\r\x1b[2K", err=True, nl=False)

    def _stop(self, number: int, _: FrameType | None) -> None:
        if self._signals:  # asked twice: at once
            raise SystemExit(128 + number)
        self._signals.append(number)


def _scenario(
    preset: str, classes: tuple[str, ...], flashes: tuple[str, ...], late: str | None, **given: Any
) -> Scenario:
    from zveil.simulate import Flash, Late, UserClass
    from zveil.simulate import preset as named

    changes = {name: value for name, value in given.items() if value is not None}
    if preset == "isp-day":
        for name in ("attributes", "rate", "exponent"):
            if name in changes:
                raise ValueError(f"{name}: isp-day has its own, leave it out")
    if "start" in changes:
        changes["start"] = _unix_s(changes["start"])
    if classes:
        changes["classes"] = tuple(UserClass.of(text) for text in classes)
    if flashes:
        changes["flashes"] = tuple(Flash.of(text) for text in flashes)
    if late is not None:
        changes["late"] = Late.of(late)
    return named(preset, **changes)


def _names(fields: str) -> list[str]:
    names = [name.strip() for name in fields.split(",")]
    if len(names) != 3 or len(set(names)) != 3 or not all(names):
        raise ValueError(f"fields: expected three names such as ts,user,site, got {fields!r}")
    return names


def _unix_s(text: str) -> int:
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        if not utc.microsecond:
            return int(utc.timestamp())
    raise ValueError(
        f"start: expected whole Unix seconds, or a time such as 2020-01-01T06:00, got {text!r}"
    )
