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


def as_csv(rows: Iterable[Row]) -> str:
    """Lay rows out as CSV; numbers have six digits, what does not apply is empty.

    >>> row = Row("z-by-k", "a few", "p_k", "paper", "all", 9, 5, 24, 20, value=1 / 3, k=2)
    >>> print(as_csv([row]).splitlines()[1])
    z-by-k,a few,p_k,paper,all,9,5,24,20,2,,0.333333,,,
    """
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for row in rows:
        table.writerow([_cell(getattr(row, name)) for name in COLUMNS])
    return text.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
