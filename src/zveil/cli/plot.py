"""A plot in plain text."""

from collections.abc import Sequence

HEIGHT = 11
_AXIS = 6


def plot(columns: Sequence[int], curves: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Draw curves of shares from 0 to 1, one column a point.

    Parameters
    ----------
    columns
        What each point is for; some of them are written below.
    curves
        For each curve a mark of one letter, and its value at each point. A later curve is drawn
        over an earlier one.

    Examples
    --------
    >>> print(plot([1, 2, 3], [("o", [0.0, 0.5, 1.0])]))
     1.0 |  o
     0.9 |
     0.8 |
     0.7 |
     0.6 |
     0.5 | o
     0.4 |
     0.3 |
     0.2 |
     0.1 |
     0.0 |o
         +---
          1
    """
    rows = [[" "] * len(columns) for _ in range(HEIGHT)]
    for mark, values in curves:
        for at, value in enumerate(values):
            rows[HEIGHT - 1 - round(value * (HEIGHT - 1))][at] = mark
    lines = [
        f"{(HEIGHT - 1 - number) / (HEIGHT - 1):4.1f} |{''.join(row)}".rstrip()
        for number, row in enumerate(rows)
    ]
    return "\n".join([*lines, "     +" + "-" * len(columns), _labels(columns)])


def _labels(columns: Sequence[int]) -> str:
    line = " " * _AXIS
    for at in range(0, len(columns), 10):
        line = line.ljust(_AXIS + at) + f"{columns[at]:,}"
    return line
