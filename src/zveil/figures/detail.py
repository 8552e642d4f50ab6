"""How finely figures are worked out: where curves have points, and where the gate is measured."""

from dataclasses import dataclass

import numpy as np

from zveil.figures.tuning import FULL as TUNED
from zveil.figures.tuning import QUICK as TUNED_QUICKLY
from zveil.figures.tuning import Trial

KS = (2, 3, 4)
RANK_ZS = (1, 10, 20, 40)
ATTRIBUTE_ZS = (1, 10, 20, 40, 120)
HORIZON_ZS = (1, 20, 60, 120, 200)
DAY_RANK_ZS = (1, 10, 50, 200)


@dataclass(frozen=True, kw_only=True)
class Detail:
    """Where curves have points, and what is measured.

    Attributes
    ----------
    streams
        How many streams each measured value is the mean of.
    ranks, attributes, zs, users, horizons, long_horizons, day_ranks, day_zs
        Where the curves of the figures have points.
    measured_...
        Where the gate is measured.
    rank_windows
        Windows that p^Y is measured in.
    tuning
        The streams on which z tunes itself.
    """

    streams: int
    ranks: tuple[int, ...]
    attributes: tuple[int, ...]
    zs: tuple[int, ...]
    users: tuple[int, ...]
    horizons: tuple[int, ...]
    long_horizons: tuple[int, ...]
    day_ranks: tuple[int, ...]
    day_zs: tuple[int, ...]
    measured_ranks: tuple[int, ...]
    measured_attributes: tuple[int, ...]
    measured_zs: tuple[int, ...]
    measured_users: tuple[int, ...]
    measured_horizons: tuple[int, ...]
    measured_long_horizons: tuple[int, ...]
    measured_day_zs: tuple[int, ...]
    rank_windows: int
    tuning: Trial


def spaced(last: int, count: int, *also: int) -> tuple[int, ...]:
    """Give whole numbers from 1 to ``last`` at about equal ratios, and some more.

    >>> spaced(100, 5, 20)
    (1, 3, 10, 20, 32, 100)
    """
    found = np.geomspace(1, last, count).round().astype(int).tolist()
    return tuple(sorted({*found, *also}))


# Where the gate is measured there is also a point of the curve.
_RANKS = (1, 2, 4, 8, 16, 30, 50, 80, 120, 160, 200, 250, 300, 500, 1_000, 2_000, 5_000)
_ATTRIBUTES = (1, 3, 10, 30, 100, 200, 500, 1_500, 5_000)

FULL = Detail(
    streams=5,
    ranks=spaced(5_000, 60, *_RANKS),
    attributes=spaced(5_000, 60, *_ATTRIBUTES),
    zs=(*range(1, 60), *range(60, 245, 5)),
    users=(*range(2_500, 102_500, 2_500), 22_000),
    horizons=tuple(range(1, 61)),
    long_horizons=(*range(1, 30), *range(30, 100, 5), *range(100, 410, 10)),
    day_ranks=spaced(27_000, 90, *_RANKS),
    day_zs=(1, *range(10, 500, 10), *range(500, 1_025, 25)),
    measured_ranks=_RANKS,
    measured_attributes=_ATTRIBUTES,
    measured_zs=(1, 5, 10, 20, 35, 60, 80, 100, 120, 160, 200, 240),
    measured_users=(5_000, 10_000, 22_000, 35_000, 50_000, 75_000, 100_000),
    measured_horizons=(1, 2, 4, 8, 12, 16, 22, 30, 37, 45, 60),
    measured_long_horizons=(1, 3, 10, 24, 45, 70, 100, 150, 200, 300, 400),
    measured_day_zs=(100, 200, 250, 300, 350, 380, 450, 550, 700, 850, 1_000),
    rank_windows=240,
    tuning=TUNED,
)

QUICK = Detail(
    streams=1,
    ranks=spaced(5_000, 15, 10, 100, 300),
    attributes=spaced(5_000, 9, 10, 100),
    zs=(1, 5, 10, 20, 35, 60, 120, 200),
    users=(2_500, 22_000, 50_000, 100_000),
    horizons=(1, 4, 10, 22, 45),
    long_horizons=(1, 3, 10, 24, 70, 150, 400),
    day_ranks=spaced(27_000, 15, 10, 100, 200, 300),
    day_zs=(1, 100, 200, 300, 350, 380, 500),
    measured_ranks=(1, 10, 100, 300),
    measured_attributes=(10, 5_000),
    measured_zs=(20, 120),
    measured_users=(22_000,),
    measured_horizons=(4, 22),
    measured_long_horizons=(3, 24),
    measured_day_zs=(350,),
    rank_windows=12,
    tuning=TUNED_QUICKLY,
)
