"""The figures there are: what each shows along which axes."""

from dataclasses import dataclass
from typing import Literal

from zveil.figures.rows import Row, Source
from zveil.model.parameters import Count


@dataclass(frozen=True)
class Panel:
    """One of the drawings side by side: a curve from one source, and what was measured for it."""

    title: str
    source: Source
    among: Count


_PY = (Panel("", "model", "all"),)
_PK = (
    Panel("The paper's formula, all users", "paper", "all"),
    Panel("Averaged over the sets users hold, all users", "averaged", "all"),
    Panel("Averaged, visible users only", "averaged", "visible"),
)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What a figure shows.

    Attributes
    ----------
    name
        Of its files, and for `--only`.
    title, x_label, y_label
        Words in the picture.
    x, by
        The columns that go along the axis, and that tell lines apart.
    is_log_x, is_log_y
        Where an axis is logarithmic.
    y_range
        Ends of the axis upwards.
    panels
        The drawings, from left to right.
    z_per_users
        Where z goes with the users: how many there are for one z. It gets an axis of its own.
    is_synthetic
        Whether made-up data stand in for real ones.
    fixed
        What holds for all of it, in words.
    """

    name: str
    title: str
    x: Literal["rank", "attributes", "z", "users", "horizon"]
    x_label: str
    by: Literal["k", "z"]
    fixed: str
    y_label: str = (
        "$p_k$: probability that a user shares\nthe released set with k - 1 others or more"
    )
    is_log_x: bool = False
    is_log_y: bool = False
    y_range: tuple[float, float] = (-0.03, 1.04)
    panels: tuple[Panel, ...] = _PK
    z_per_users: int | None = None
    is_synthetic: bool = False

    def x_of(self, row: Row) -> int:
        """Give where a row is along the axis."""
        found = getattr(row, self.x)
        return int(found)

    def is_on_curve(self, row: Row) -> bool:
        """Tell whether a row is of the curve: a z that had to be rounded would make a kink."""
        return self.z_per_users is None or row.users % self.z_per_users == 0

    def by_of(self, row: Row) -> int:
        """Give which line a row is of."""
        found = getattr(row, self.by)
        return int(found)


_PY_LABEL = "$p^Y$: probability that a user has\nthe attribute released in a window"
_P2_LABEL = "$p_2$: probability that a user shares\nthe released set with at least one other"
_LAW = "rate 0.05/rank per user and window"

FIGURES = (
    Figure(
        name="rank",
        title="Attributes released, by rank",
        x="rank",
        x_label="rank of the attribute (1: the most popular)",
        by="z",
        fixed=f"50,000 users, 5,000 attributes, {_LAW}",
        y_label=_PY_LABEL,
        is_log_x=True,
        is_log_y=True,
        y_range=(3e-8, 0.2),
        panels=_PY,
    ),
    Figure(
        name="a-by-k",
        title="k-anonymity by the number of attributes, for several k",
        x="attributes",
        x_label="A: attributes that exist",
        by="k",
        fixed=f"50,000 users, z = 20, N = 24 windows, {_LAW}",
        is_log_x=True,
    ),
    Figure(
        name="a-by-z",
        title="k-anonymity by the number of attributes, for several z",
        x="attributes",
        x_label="A: attributes that exist",
        by="z",
        fixed=f"50,000 users, k = 2, N = 24 windows, {_LAW}",
        y_label=_P2_LABEL,
        is_log_x=True,
    ),
    Figure(
        name="z-by-k",
        title="k-anonymity by z",
        x="z",
        x_label="z: users who must share a value",
        by="k",
        fixed=f"50,000 users, 5,000 attributes, N = 24 windows, {_LAW}",
    ),
    Figure(
        name="u-by-k",
        title="k-anonymity by the number of users, z in proportion",
        x="users",
        x_label="U: users",
        by="k",
        fixed=f"5,000 attributes, N = 24 windows, z = U / 2,500, {_LAW}",
        z_per_users=2_500,
    ),
    Figure(
        name="n-by-k",
        title="k-anonymity by how long the observer links, for several k",
        x="horizon",
        x_label="N: windows that the observer links",
        by="k",
        fixed=f"50,000 users, 5,000 attributes, z = 20, {_LAW}",
    ),
    Figure(
        name="n-by-z",
        title="k-anonymity by how long the observer links, for several z",
        x="horizon",
        x_label="N: windows that the observer links",
        by="z",
        fixed=f"50,000 users, 5,000 attributes, k = 2, {_LAW}",
        y_label=_P2_LABEL,
    ),
    Figure(
        name="day-rank",
        title="SYNTHETIC day of web visits: sites released, by rank",
        x="rank",
        x_label="rank of the site (1: the most visited)",
        by="z",
        fixed="9,670 users, windows of 1 hour; made up from the published figures of an ISP's day, "
        "no real data",
        y_label="$p^Y$: probability that a user has\nthe site released in an hour",
        is_log_x=True,
        is_log_y=True,
        y_range=(2e-6, 0.7),
        panels=_PY,
        is_synthetic=True,
    ),
    Figure(
        name="day-z",
        title="SYNTHETIC day of web visits: k-anonymity by z",
        x="z",
        x_label="z: users who must share a site",
        by="k",
        fixed="9,670 users, 24 windows of 1 hour; made up from the published figures of an ISP's "
        "day, no real data",
        is_synthetic=True,
    ),
)


@dataclass(frozen=True)
class TuningFigure:
    """A figure about a z that tunes itself, which the paper has not.

    Attributes
    ----------
    name
        Of its files, and for `--only`.
    title, fixed
        Words in the picture.
    high
        In inches.
    """

    name: str
    title: str
    fixed: str
    high: float


_HELD = (
    "k = 2 for 0.8 of the visible users, over 24 windows of 1 hour; the paper's 50,000 users and "
    "5,000 attributes, simulated"
)

TUNING = (
    TuningFigure(
        "hold-share",
        "A level that is held, period by period",
        f"{_HELD}; each period counted from what was released",
        4.6,
    ),
    TuningFigure("hold-z", "The z that it takes", _HELD, 3.3),
    TuningFigure(
        "hold-unequal",
        "Unequal users: a model that takes them as alike, and the meter beside it",
        "0.9 of the users at half the paper's rate and 0.1 at five times of it; 24 windows; "
        "points: one simulated stream",
        3.6,
    ),
)

PAPER = tuple(figure.name for figure in FIGURES)
"""The names of the paper's figures, in its order."""

NAMES = PAPER + tuple(figure.name for figure in TUNING)
"""The names of all figures."""
