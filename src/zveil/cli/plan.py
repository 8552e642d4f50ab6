"""`zveil plan`: the z, and the period of changing user ids, for a wanted k."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from zveil.cli.advice import Reading, as_dict, measured_dict, report, trace_report
from zveil.cli.inputs import (
    Fields,
    NothingReadError,
    Watch,
    duration,
    field_options,
    format_option,
    read,
    time_format_option,
    told,
)
from zveil.cli.population import as_options, described, population_options, power_law
from zveil.durations import duration_ns
from zveil.io import Format, Input, SourceError, find
from zveil.policy import TimeFormat

if TYPE_CHECKING:
    from zveil.model import Plan, Population
    from zveil.model.parameters import Count

_DAY_NS = 86_400 * 10**9
_OF_POPULATIONS = ("users", "attributes", "rate", "exponent")
_OF_EVENTS = ("files", "time_field", "user_field", "attribute_fields", "stated", "time_format")


@click.command(short_help="Choose z, and when user ids change, for a wanted k-anonymity.")
@click.argument("files", nargs=-1, type=click.Path())
@click.option(
    "-k", default=2, show_default=True, type=click.IntRange(2),
    help="Users who must share a set of values.",
)  # fmt: skip
@click.option(
    "--probability", default=0.95, show_default=True, metavar="NUMBER", type=float,
    help="Probability wanted that a user is one of at least k.",
)  # fmt: skip
@click.option(
    "--horizon", default=24.0, show_default=True, metavar="NUMBER", type=float,
    help="Windows that an observer sees.",
)  # fmt: skip
@click.option(
    "--count", type=click.Choice(["visible", "all"]), default="visible", show_default=True,
    help="Whose probability: of users with something released, or of all.",
)  # fmt: skip
@click.option(
    "--window", metavar="LENGTH",
    help="Length of the window: of events a duration such as 90s, 1h or 7d, by default 1h; "
    "without them a number, in units of time, by default 1.",
)  # fmt: skip
@field_options(
    "Of events: field of a value that is to be released or veiled; repeat it for several.",
    required=False,
)
@format_option("Format of the events, if their names and content do not tell.")
@time_format_option()
@population_options
@click.option("-q", "--quiet", is_flag=True, help="No progress, and no word of what is left out.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def plan(
    context: click.Context,
    files: tuple[str, ...],
    k: int,
    probability: float,
    horizon: float,
    count: Count,
    window: str | None,
    time_field: str | None,
    user_field: str | None,
    attribute_fields: tuple[str, ...],
    stated: str | None,
    time_format: TimeFormat | None,
    users: int,
    attributes: int,
    rate: float,
    exponent: float,
    quiet: bool,
    as_json: bool,
) -> None:
    """Find the smallest z for which a user is one of at least K with the wanted probability.

    Beside it stands what changing user ids sooner would allow: an observer then links fewer
    windows, so a smaller z does, and more is released.

    With FILES of events, or with --time, --user and --attribute for standard input, it is a plan
    for the users in them, and checked: the gate runs over them at each z, and model and measurement
    stand side by side. Where the measurement falls short, what measures up is recommended. FILES
    are as for `zveil run`. Without events, the users are those that --users, --attributes, --rate
    and --exponent describe, by default the paper's.

    \b
    zveil plan -k 2 --probability 0.95 --horizon 24
    zveil plan -k 5 --users 200000 --horizon 168 --json
    zveil plan events.ndjson --time ts --user uid --attribute host \\
        --window 1h -k 2 --probability 0.95 --horizon 24

    \b
    Exit codes:
      0    done, or the reader closed the pipe
      1    reading failed
      2    wrong usage, or nothing reaches what is wanted
      3    no event could be read
    """  # noqa: D301  # click's mark for text that must not be wrapped
    watch = Watch(quiet=quiet or as_json)
    if not _are_given(context, _OF_EVENTS):
        try:
            length = _number(window)
            population = power_law(users, attributes, rate, exponent, length)
            found = planned(population, k, probability, horizon, count, watch)
        except ValueError as error:
            watch.clear()
            raise click.UsageError(as_options(str(error))) from None
        watch.clear()
        if as_json:
            click.echo(json.dumps(as_dict(found)))
            return
        click.echo(f"{described(population)}, shown at {rate:g} / rank^{exponent:g}")
        click.echo(report(found))
        return

    sources = _sources(context, files, stated)
    fields = _fields(time_field, user_field, attribute_fields, time_format)
    if not files and not quiet and sys.stdin.isatty():
        click.echo("reading standard input; end it with Ctrl-D", err=True)
    with told(watch, _as_option):
        from zveil.model import plan_trace
        from zveil.model.parameters import positive, share

        # Before all is read, not after.
        share(probability, "probability")
        positive(horizon, "horizon")
        reading = _read(sources, fields, "1h" if window is None else window, watch)
        checked = plan_trace(
            reading.trace,
            k=k,
            probability=probability,
            horizon=horizon,
            count=count,
            watch=watch,
        )
        watch.clear()
        if not quiet:
            for words in reading.left_out():
                click.echo(words, err=True)
        if as_json:
            figures = as_dict(checked) | {"measured": measured_dict(checked, reading)}
            click.echo(json.dumps(figures))
        else:
            click.echo(trace_report(checked, reading))


def planned(
    population: Population, k: int, probability: float, horizon: float, count: Count, watch: Watch
) -> Plan:
    """Plan for any population, with a line of progress for a person who watches."""
    from zveil.model import plan as make

    return make(
        population,
        k=k,
        probability=probability,
        horizon=horizon,
        count=count,
        progress=lambda done, of: watch(f"planning: {done} of {of} periods"),
    )


def _read(sources: list[Input], fields: Fields, window: str, watch: Watch) -> Reading:
    """Read a trace; what lies ahead of the clock is left out, as a gate would veil it."""
    from zveil.model import Trace

    length = duration(window)
    if duration_ns(length, "window") == 0:
        raise ValueError(f"window: expected a duration above 0, got {window!r}")
    observations, bad = read(sources, fields, watch, "events")
    is_past = observations.time_ns <= time.time_ns() + _DAY_NS
    future = len(observations) - int(is_past.sum())
    if future == len(observations):
        more = f", and {future:,} are from more than a day ahead" if future else ""
        raise NothingReadError(
            f"{sources[0].name}: no event has a time, a user and a value{more}; check --time, "
            "--user, --attribute and --time-format"
        )
    field = observations.field[is_past]
    trace = Trace.of_codes(
        observations.time_ns[is_past],
        observations.user[is_past],
        observations.value[is_past],
        window=length,
        starts=field.searchsorted(range(len(fields.attributes))).tolist(),
    )
    return Reading(
        trace=trace,
        window=f"{window}s" if window.isdecimal() else window,
        bad=bad,
        incomplete=observations.incomplete,
        future=future,
    )


def _are_given(context: click.Context, names: tuple[str, ...]) -> bool:
    return any(_is_given(context, name) for name in names)


def _is_given(context: click.Context, name: str) -> bool:
    # An argument of which there may be none is given as none.
    is_typed = context.get_parameter_source(name) is not ParameterSource.DEFAULT
    return is_typed and bool(context.params[name])


def _sources(context: click.Context, files: tuple[str, ...], stated: str | None) -> list[Input]:
    """Find the files, and refuse what describes users who are read from them."""
    for name in _OF_POPULATIONS:
        if _is_given(context, name):
            raise click.UsageError(
                f"--{name}: describes users without events, and these are read from events; "
                "leave out the one or the other"
            )
    try:
        return find(files, Format(stated) if stated else None)
    except SourceError as error:
        raise click.UsageError(str(error)) from None


def _fields(
    time_field: str | None,
    user_field: str | None,
    attributes: tuple[str, ...],
    time_format: TimeFormat | None,
) -> Fields:
    for name, value in (("time", time_field), ("user", user_field), ("attribute", attributes)):
        if not value:
            raise click.UsageError(f"Missing option '--{name}'; events are read by their fields.")
    return Fields(
        time=time_field or "",
        user=user_field or "",
        attributes=attributes,
        time_format=time_format,
    )


def _number(window: str | None) -> float:
    """Read the length of a window of users who are described, not read."""
    try:
        return 1.0 if window is None else float(window)
    except ValueError:
        raise ValueError(
            f"window: expected a number of units of time, got {window!r}; a duration is for "
            "events, which need FILES, --time, --user and --attribute"
        ) from None


def _as_option(words: str) -> str:
    """Name a parameter as it is typed: ``window: ...`` becomes ``--window: ...``."""
    name, colon, rest = words.partition(": ")
    known = {"time", "user", "attribute", "time-format", "window", "probability", "horizon"}
    dash = "-" if name == "k" else "--"
    return f"{dash}{name}{colon}{rest}" if name in {"k", *known} else words
