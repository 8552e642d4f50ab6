"""A folder with the figures: pictures, and the data beside them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from zveil.figures.catalogue import FIGURES, NAMES
from zveil.figures.contents import CONTENTS, Work
from zveil.figures.detail import FULL, QUICK
from zveil.figures.drawing import draw
from zveil.figures.rows import as_csv
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
        How many streams each measured value is the mean of, from 0: then nothing is measured.
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
    seed = whole(seed, "seed", 0, 2**32)
    return _written(Path(folder), only, formats, Work(detail, seed, watch))


def _written(
    folder: Path, only: Sequence[str], formats: Sequence[str], work: Work
) -> Iterator[list[Path]]:
    folder.mkdir(parents=True, exist_ok=True)
    for figure in FIGURES:
        if figure.name not in only:
            continue

        def said(words: str, name: str = figure.name) -> None:
            work.watch(f"{name}: {words}")

        said("working out the curves")
        rows = list(CONTENTS[figure.name](dataclasses.replace(work, watch=said)))
        files = [folder / f"{figure.name}.csv"]
        files[0].write_text(as_csv(rows), encoding="utf-8")
        pictures = [folder / f"{figure.name}.{each}" for each in ("png", "svg") if each in formats]
        if pictures:
            said("drawing")
            draw(figure, rows, pictures)
        yield files + pictures
