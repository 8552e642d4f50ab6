"""`zveil audit`: what an observer of a released stream has."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from zveil.cli.inputs import (
    Fields,
    Watch,
    duration,
    field_options,
    format_option,
    read,
    time_format_option,
    told,
)
from zveil.durations import duration_ns
from zveil.io import Format, Input, SourceError, find
from zveil.policy import Policy, TimeFormat
from zveil.style import require_matplotlib

if TYPE_CHECKING:
    from zveil.audit import Audit, Options

_TIMES = ("none", "week", "day", "hour", "minute")


@click.command(short_help="Measure what an observer of a released stream has.")
@click.argument("released", nargs=-1, type=click.Path(), metavar="[RELEASED]...")
@click.option(
    "--policy", "policy_file", metavar="FILE", type=click.Path(dir_okay=False),
    help="Take the fields from the policy file of the run instead, and with --original tell what "
    "was released at each level of its hierarchies.",
)  # fmt: skip
@field_options(
    "Field of a value that was released or veiled; repeat it for several.",
    required=False,
    more="  [required]",
)
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
@format_option("Format of the files, if their names and content do not tell.")
@time_format_option()
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option("--json", "as_json", is_flag=True, help="The figures as one JSON object.")
def audit(
    released: tuple[str, ...],
    policy_file: str | None,
    time_field: str | None,
    user_field: str | None,
    attribute_fields: tuple[str, ...],
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
    watch = Watch(quiet=quiet or as_json)
    form = Format(stated) if stated else None
    try:
        policy = _policy(policy_file)
        fields = _fields(policy, time_field, user_field, attribute_fields, time_format)
        parts = () if policy is None else policy.attributes
        asked = _options(rotate, points, sample, seed, show_values)
        asked = replace(
            asked,
            hierarchies=tuple(part.hierarchy for part in parts),
            policy=None if policy is None else policy.fingerprint,
        )
        sources = find(released, form)
        originals = find(original, form) if original else []
        if None in [each.path for each in sources] and None in [each.path for each in originals]:
            raise SourceError("-: standard input can be read only once")
        _check_report(report, [*sources, *originals])
    except (SourceError, ValueError) as error:
        raise click.UsageError(_as_option(str(error))) from None
    whole = replace(fields, positions=tuple(part for part in parts if part.fields))
    with told(watch, _as_option):
        found = _measure(sources, originals, (fields, whole), asked, watch)
        watch.clear()
        _tell(found, as_json=as_json, report=report, names=[each.name for each in sources])


def _policy(file: str | None) -> Policy | None:
    if file is None:
        return None
    from zveil.policy import read_policy

    try:
        return read_policy(file)
    except OSError as error:
        raise ValueError(f"policy: {file}: {(error.strerror or '').lower()}") from None


def _fields(
    policy: Policy | None,
    time: str | None,
    user: str | None,
    attributes: tuple[str, ...],
    time_format: TimeFormat | None,
) -> Fields:
    """Give the fields of the released stream: as the policy names them, if there is one."""
    given = {"time": time, "user": user, "attribute": attributes}
    if policy is None:
        for name, value in given.items():
            if not value:
                raise ValueError(f"{name}: say which field, or name a --policy that does")
        return Fields(
            time=time or "", user=user or "", attributes=attributes, time_format=time_format
        )
    for name, value in (given | {"time-format": time_format}).items():
        if value:
            raise ValueError(f"{name}: the policy file says that; leave one of the two out")
    return Fields(
        time=policy.time.field,
        user=policy.user.field,
        attributes=policy.names,
        time_format=policy.time.format,
    )


def _options(
    rotate: str | None, points: str, sample: int, seed: int, show_values: int | None
) -> Options:
    from zveil.audit import Options
    from zveil.audit.points import Resolution

    label = "set" if points == "none" else points
    return Options(
        rotate_ns=None if rotate is None else duration_ns(duration(rotate), "rotate"),
        resolution=next(each for each in Resolution if each.label == label),
        sample=sample,
        seed=seed,
        show_values=show_values,
    )


def _measure(
    sources: Sequence[Input],
    originals: Sequence[Input],
    fields: tuple[Fields, Fields],
    asked: Options,
    watch: Watch,
) -> Audit:
    from zveil.audit import audit as measure

    left, whole = fields
    observations, bad = read(sources, left, watch, "what was released")
    original = None
    if originals:
        original, more = read(originals, whole, watch, "the original")
        bad += more
    return measure(observations, original, asked, bad=bad, watch=watch)


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
    require_matplotlib("report")


def _tell(found: Audit, *, as_json: bool, report: str | None, names: Sequence[str]) -> None:
    from zveil.audit.account import as_dict
    from zveil.audit.text import as_text

    if report is not None:
        from zveil.audit.report import page

        with open(report, "w", encoding="utf-8") as file:
            names = [os.path.basename(name) for name in names]
            file.write(page(found, names, f"{datetime.now(UTC):%Y-%m-%d}"))
    click.echo(json.dumps(as_dict(found)) if as_json else as_text(found))


def _as_option(words: str) -> str:
    """Name a parameter as it is typed: ``rotate: ...`` becomes ``--rotate: ...``."""
    name, colon, rest = words.partition(": ")
    known = {"policy", "time", "user", "attribute", "rotate", "report", "time-format"}
    return f"--{name}{colon}{rest}" if name in known else words
