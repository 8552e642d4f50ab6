"""The data of a figure: one row for each value, saying what it is a value of and where from."""

import csv
import io
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from zveil.model.parameters import Count

Source: TypeAlias = Literal["model", "paper", "averaged", "measured"]
"""The model's p^Y; the two estimates of p_k; what simulated streams show behind a real gate."""

PAPER_USERS = "the paper's power law"
DAY = "SYNTHETIC day, made up from published figures"
FLAT_DAY = "SYNTHETIC day, made up from published figures, the same at all hours"


class Row(NamedTuple):
    """A value of a figure."""

    figure: str
    population: str
    """Who the users are; says so where they stand in for real ones."""
    quantity: Literal["p_y", "p_k"]
    source: Source
    among: Count
    """All users, or the visible ones."""
    users: int
    attributes: int
    horizon: int
    """Windows; for p_y those that it was measured in, or 1."""
    z: int
    value: float
    k: int | None = None
    """For p_k only."""
    rank: int | None = None
    """For p_y only: the attribute that it is of."""
    low: float | None = None
    high: float | None = None
    """For measured values: the smallest and the largest of the streams; `value` is the mean."""
    streams: int | None = None
    """For measured values: how many streams were simulated."""


COLUMNS = (
    "figure", "population", "quantity", "source", "among", "users", "attributes", "horizon", "z",
    "k", "rank", "value", "low", "high", "streams",
)  # fmt: skip


class TuningRow(NamedTuple):
    """A value of a figure about a z that tunes itself."""

    figure: str
    stream: str
    source: str
    """``held``: z tunes itself; ``fixed``: the smallest z that stays and reaches the level in
    every period after the first; ``model``, ``classes``: the averaged model, users taken as alike,
    or in their classes; ``meter``; ``measured`` at the gate; ``end`` of the stream."""
    hours: float
    """Windows since the start of the stream; within a period since its start."""
    z: int | None
    """None where nothing is released."""
    period: int | None = None
    """From 1."""
    visible: int | None = None
    share: float | None = None
    """Of the visible users, those who are k alike."""
    released: float | None = None
    """Share of the observations."""


def as_csv(rows: Iterable[Row | TuningRow]) -> str:
    """Lay rows out as CSV; numbers have six digits, what does not apply is empty.

    >>> row = Row("z-by-k", "a few", "p_k", "paper", "all", 9, 5, 24, 20, value=1 / 3, k=2)
    >>> print(as_csv([row]).splitlines()[1])
    z-by-k,a few,p_k,paper,all,9,5,24,20,2,,0.333333,,,
    """
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    found = list(rows)
    columns = found[0]._fields if found and not isinstance(found[0], Row) else COLUMNS
    table.writerow(columns)
    for row in found:
        table.writerow([_cell(getattr(row, name)) for name in columns])
    return text.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
