"""`zveil demo`: a small stream in, and what comes out of it."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from zveil.gate import Gate
from zveil.io import ByteSink, Format, SinkClosed, SinkError, of_path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

START = 1_767_225_600  # 2026-01-01T00:00:00Z
Z = 20
WINDOW_S = 3600


def visits(count: int, seed: int = 1) -> tuple[NDArray[np.int64], list[str], list[str]]:
    """Make up a day of web visits: 5,000 users, 2,000 sites of which few are popular."""
    import numpy as np

    random = np.random.default_rng(seed)
    times = START + np.sort(random.integers(0, 24 * 3600, count))
    users = [f"user-{number:04}" for number in random.integers(0, 5_000, count)]
    weights = 1 / np.arange(1, 2_001)
    ranks = random.choice(2_000, count, p=weights / weights.sum()) + 1
    return times, users, [f"site-{rank:04}.example" for rank in ranks]


@click.command(short_help="Anonymize a small made-up stream and show what happens.")
@click.option(
    "--events", default=200_000, show_default=True, type=click.IntRange(1_000, 5_000_000),
    metavar="N", help="Visits to make up, from 1,000 to 5,000,000.",
)  # fmt: skip
@click.option(
    "--save", metavar="FILE", type=click.Path(dir_okay=False),
    help="Write the stream to this file (.csv or .ndjson) and do nothing else.",
)  # fmt: skip
def demo(events: int, save: str | None) -> None:
    """Anonymize a small made-up stream and show what happens.

    A day of visits to 2,000 sites by 5,000 users: a visit is released if at least 20 users went to
    its site within the past hour.
    """
    import pyarrow as pa

    times, users, sites = visits(events)
    if save is not None:
        _save(save, times, users, sites)
        click.echo(f"{events:,} visits are in {save}. Next:\n  {_next(save)}", err=save == "-")
        return
    gate = Gate(z=Z, window=WINDOW_S)
    # As a stream reader would hand them over: the rate is that of the gate, not of Python's lists.
    columns = pa.array(times), pa.array(users), pa.array(sites)
    began = time.perf_counter()
    released = gate.observe_many(*columns)
    seconds = time.perf_counter() - began

    click.echo(
        f"A made-up day of {events:,} visits. Rule: a visit leaves at once if at least {Z} users\n"
        "went to its site within the past hour, its own user among them; otherwise it is veiled.\n"
    )
    click.echo("  time      user       site                  what comes out")
    middle = _both_kinds(released)
    for row in range(middle, middle + 8):
        clock = datetime.fromtimestamp(int(times[row]), UTC).strftime("%H:%M:%S")
        event = f"{clock}  {users[row]}  {sites[row]:<20}"
        if released[row]:
            outcome = click.style("released", fg="green")
        else:
            outcome = click.style("(veiled: fewer than 20 users)", fg="yellow")
        click.echo(f"  {event}  {outcome}")

    stats = gate.stats()
    gone = len(set(sites)) - len({site for site, out in zip(sites, released, strict=True) if out})
    click.echo(
        f"\n  released  {stats.released:>9,}  {stats.released / events:6.1%}\n"
        f"  veiled    {stats.veiled:>9,}  {stats.veiled / events:6.1%}\n"
        f"  sites that never appear in the output: {gone:,} of {len(set(sites)):,}\n"
        f"  rate      {events / seconds:>9,.0f} events/s on one core "
        f"({seconds / events * 1e9:.0f} ns each, from Arrow columns of text)\n"
        f"  memory    {stats.bytes / 2**20:>9.1f} MiB for {stats.attributes:,} sites remembered, "
        "as keyed hashes\n"
    )
    click.echo(
        "Next, the same day as a file, and what zveil lets out of it:\n"
        f"  {_program()} demo --save demo.csv\n"
        f"  {_next('demo.csv')}"
    )


def _save(file: str, times: NDArray[np.int64], users: list[str], sites: list[str]) -> None:
    import pyarrow as pa

    from zveil.io.lines import to_csv, to_ndjson

    moments = pa.array(times).cast(pa.timestamp("s", tz="UTC"))
    batch = pa.record_batch({"time": moments, "user": users, "site": sites})
    written = to_ndjson(batch) if of_path(file)[0] is Format.NDJSON else to_csv(batch)
    try:
        with contextlib.suppress(SinkClosed), ByteSink(file) as sink:
            sink.write(written)
    except SinkError as error:
        raise click.UsageError(str(error)) from None


def _next(file: str) -> str:
    fields = "--time time --user user --attribute site"
    return f"{_program()} run {file} {fields} -z {Z} --window 1h -o released.csv"


def _program() -> str:
    """Give what to type for zveil: its path as it was called, where the shell would not find it."""
    return "zveil" if shutil.which("zveil") else sys.argv[0]


def _both_kinds(released: NDArray[np.bool_]) -> int:
    """Find eight events in a row, in the middle of the day, of which some leave and some do not."""
    import numpy as np

    start = len(released) // 2
    sums = np.convolve(released[start:], np.ones(8, int), "valid")
    return start + int(np.argmax(sums == 4))
