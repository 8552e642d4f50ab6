"""`zveil figures`: the figures of the paper, as pictures and as data."""

from __future__ import annotations

import time
from pathlib import Path

import click

from zveil.cli.inputs import FAILED, USAGE, Watch
from zveil.style import require_matplotlib

INTERRUPTED = 130
NAMES = (
    "rank", "a-by-k", "a-by-z", "z-by-k", "u-by-k", "n-by-k", "n-by-z", "day-rank", "day-z",
    "hold-share", "hold-z", "hold-unequal",
)  # fmt: skip


@click.command(short_help="Draw the figures of the paper, beside what really happens.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--only", multiple=True, metavar="NAME",
    help="Only this figure; repeat it, or give several with commas.",
)  # fmt: skip
@click.option(
    "--format", "formats", default="png,svg", show_default=True, metavar="FORMATS",
    help="Of the pictures: png, svg, or csv for the data alone, which are always written.",
)  # fmt: skip
@click.option(
    "--seed", default=1, show_default=True, type=click.IntRange(0, 2**32),
    help="Of the simulated streams; the same one gives the same data.",
)  # fmt: skip
@click.option(
    "--streams", type=click.IntRange(0, 1000), metavar="N",
    help="How many streams each measured point is the mean of: 5; with --quick 1. 0 measures "
    "nothing.",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="Fewer points on curves and fewer measured.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no list of files.")
def figures(
    folder: Path,
    only: tuple[str, ...],
    formats: str,
    seed: int,
    streams: int | None,
    quick: bool,
    quiet: bool,
) -> None:
    """Draw the figures of the paper into DIR, with their data beside them as CSV.

    Each shows the paper's formula, the average over the sets that users really hold, and points
    that were measured: simulated streams, decided by the gate, users with equal sets counted. The
    two of the paper's use case stand on a synthetic day, since its data are not public.

    \b
    rank                what is released, by the rank of the attribute
    a-by-k, a-by-z      k-anonymity by the number of attributes
    z-by-k              k-anonymity by z
    u-by-k              k-anonymity by the number of users, z in proportion
    n-by-k, n-by-z      k-anonymity by how long the observer links
    day-rank, day-z     the same on the synthetic day
    hold-share, hold-z  a z that tunes itself, beside the best that stays
    hold-unequal        users of two classes, the model and the meter

    \b
    zveil figures out
    zveil figures out --only z-by-k --format svg
    zveil figures out --quick

    \b
    Exit codes: 0 done; 1 writing failed; 2 wrong usage; 130 interrupted. Files that were written
    before stay.
    """  # noqa: D301  # click's mark for text that must not be wrapped
    watch = Watch(quiet=quiet)
    began = time.monotonic()
    try:
        names, wanted = _names(only), _words(formats)
        if set(wanted) & {"png", "svg"}:
            require_matplotlib("format")
        from zveil.figures import write

        made = write(
            folder, only=names, formats=wanted, seed=seed, streams=streams, quick=quick,
            watch=watch,
        )  # fmt: skip
        for files in made:
            watch.clear()
            if not quiet:
                click.echo("  ".join(str(path) for path in files))
    except ValueError as error:
        watch.fail(_as_option(str(error)), USAGE)
    except OSError as error:
        watch.fail(f"{error.filename or folder}: {error.strerror}", FAILED)
    except KeyboardInterrupt:
        watch.fail("interrupted", INTERRUPTED)
    if not quiet:
        click.echo(f"{time.monotonic() - began:.0f} s", err=True)


def _names(only: tuple[str, ...]) -> list[str]:
    """Read the names of figures; all where none is given."""
    return [name for each in only for name in _words(each)] or list(NAMES)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def _as_option(words: str) -> str:
    """Name a parameter as it is typed: ``only: ...`` becomes ``--only: ...``."""
    name, colon, rest = words.partition(": ")
    return f"--{name}{colon}{rest}" if name in {"only", "format", "seed", "streams"} else words
