"""A folder with the figures: pictures, and the data beside them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from zveil.figures.catalogue import FIGURES, NAMES, PAPER, TUNING, TuningFigure
from zveil.figures.contents import CONTENTS, Work
from zveil.figures.detail import FULL, QUICK
from zveil.figures.drawing import draw
from zveil.figures.rows import as_csv
from zveil.figures.tuning_drawing import draw as draw_tuning
from zveil.model.parameters import whole

FORMATS = ("csv", "png", "svg")


def write(
    folder: str | Path,
    *,
    only: Sequence[str] = NAMES,
    formats: Sequence[str] = FORMATS,
    seed: int = 1,
    streams: int | None = None,
    quick: bool = False,
    watch: Callable[[str], None] = lambda _: None,
) -> Iterator[list[Path]]:
    """Write figures of the paper into a folder, and give the files of each as it is done.

    Parameters
    ----------
    folder
        Where to; it is made where it is missing.
    only
        Names of figures, of `NAMES`; all by default.
    formats
        ``"png"``, ``"svg"``, or ``"csv"`` for no picture; the data are always there.
    seed
        Of the simulated streams, from 0. The same gives the same data.
    streams
        How many streams each measured value of the paper's figures is the mean of, from 0: then
        nothing is measured, and those of a z that tunes itself are left out.
    quick
        Fewer points and one stream, to see what there will be.
    watch
        Is told in words what is being done.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = list(write(folder, only=["rank"], formats=["csv"], streams=0, quick=True))
    >>> [path.name for path in found[0]]
    ['rank.csv']
    """
    for name in only:
        if name not in NAMES:
            raise ValueError(f"only: expected {', '.join(NAMES)}, got {name!r}")
    for each in formats:
        if each not in FORMATS:
            raise ValueError(f"format: expected some of {', '.join(FORMATS)}, got {each!r}")
    if Path(folder).exists() and not Path(folder).is_dir():
        raise ValueError(f"DIR: expected a folder, and {folder} is a file")
    detail = QUICK if quick else FULL
    if streams is not None:
        detail = dataclasses.replace(detail, streams=whole(streams, "streams", 0, 1_000))
    if detail.streams == 0:
        only = _unmeasured(only)
    seed = whole(seed, "seed", 0, 2**32)
    return _written(Path(folder), only, formats, Work(detail, seed, watch))


def _unmeasured(only: Sequence[str]) -> Sequence[str]:
    """Leave out what is measured throughout, unless it was asked for by name."""
    measured = [name for name in only if name not in PAPER]
    if measured and len(set(only)) < len(NAMES):
        raise ValueError(f"streams: expected at least 1 for {measured[0]}, which is all measured")
    return [name for name in only if name in PAPER]


def _written(
    folder: Path, only: Sequence[str], formats: Sequence[str], work: Work
) -> Iterator[list[Path]]:
    folder.mkdir(parents=True, exist_ok=True)
    for figure in (*FIGURES, *TUNING):
        if figure.name not in only:
            continue

        def said(words: str, name: str = figure.name) -> None:
            work.watch(f"{name}: {words}")

        said("working out the curves")
        rows: list[Any] = list(CONTENTS[figure.name](dataclasses.replace(work, watch=said)))
        files = [folder / f"{figure.name}.csv"]
        files[0].write_text(as_csv(rows), encoding="utf-8")
        pictures = [folder / f"{figure.name}.{each}" for each in ("png", "svg") if each in formats]
        if pictures:
            said("drawing")
            if isinstance(figure, TuningFigure):
                draw_tuning(figure, rows, pictures)
            else:
                draw(figure, rows, pictures)
        yield files + pictures
