"""How the figures about a z that tunes itself are drawn: a panel for each stream."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zveil.figures.catalogue import TuningFigure
from zveil.figures.rows import TuningRow
from zveil.figures.tuning import STREAMS
from zveil.style import GRID, LINES, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_DPI = 110
_NAMES = {
    "held": "z tunes itself",
    "fixed": "the best z that stays",
    "model": "the model, users taken as alike",
    "classes": "the model with the two classes",
    "meter": "the meter",
    "measured": "measured at the gate",
}
_LOOKS = {
    "held": LINES[0],
    "fixed": LINES[1],
    "model": LINES[1],
    "classes": LINES[2],
    "meter": LINES[0],
    "measured": LINES[0],
}


def draw(figure: TuningFigure, rows: Sequence[TuningRow], paths: Sequence[Path]) -> None:
    """Draw a figure into files, whose endings say how."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Drawing

    with mpl.rc_context(STYLE):
        drawing = Drawing(figsize=(10.4, figure.high))
        FigureCanvasAgg(drawing)
        {"hold-share": _shares, "hold-z": _zs, "hold-unequal": _unequal}[figure.name](drawing, rows)
        drawing.text(0.5, 1 - 0.1 / figure.high, figure.title, fontsize=11, fontweight="bold",
                     ha="center", va="top")  # fmt: skip
        drawing.text(0.5, 0.09 / figure.high, figure.fixed, fontsize=7, color="#4b525a",
                     ha="center", va="bottom", linespacing=1.35)  # fmt: skip
        for path in paths:
            said: dict[str, str | None] = {"Title": figure.title, "Description": figure.fixed}
            said |= {"Date": None} if path.suffix == ".svg" else {"Software": None}
            drawing.savefig(path, dpi=_DPI, metadata=said)


def _shares(drawing: Drawing, rows: Sequence[TuningRow]) -> None:
    """Above the share of visible users who are k alike, below the share released."""
    wide, high = drawing.get_size_inches()
    grid = drawing.subplots(2, len(STREAMS), sharex=True, sharey="row", squeeze=False)
    drawing.subplots_adjust(
        left=0.75 / wide, right=1 - 0.15 / wide, bottom=1.12 / high, top=1 - 0.62 / high,
        wspace=0.08, hspace=0.12,
    )  # fmt: skip
    for stream, above, below in zip(STREAMS, *grid, strict=True):
        above.set_title(stream, fontsize=8.8)
        mine = [row for row in rows if row.stream == stream]
        for axes, column in ((above, "share"), (below, "released")):
            for source in ("fixed", "held"):
                points = [
                    (row.period, getattr(row, column))
                    for row in mine
                    if row.source == source and getattr(row, column) is not None
                ]
                _line(axes, source, points, marked=True)
            _grid(axes)
        _wanted(above)
        below.set_xlabel("period")
    grid[0][0].set_ylabel("share of visible users\nwho are 2 alike")
    grid[1][0].set_ylabel("share of the\nobservations released")
    grid[0][0].set_ylim(0.7, 1.01)
    grid[1][0].set_ylim(0, None)
    _legend(drawing, ("held", "fixed"), marked=True, wanted=True)


def _zs(drawing: Drawing, rows: Sequence[TuningRow]) -> None:
    """Draw z over time; dark where nothing is released."""
    wide, high = drawing.get_size_inches()
    panels = drawing.subplots(1, len(STREAMS), sharex=True, sharey=True, squeeze=False)[0]
    drawing.subplots_adjust(
        left=0.6 / wide, right=1 - 0.15 / wide, bottom=1.12 / high, top=1 - 0.62 / high, wspace=0.08
    )
    ends = [row.hours for row in rows if row.source == "end"]
    for stream, axes in zip(STREAMS, panels, strict=True):
        axes.set_title(stream, fontsize=8.8)
        mine = [row for row in rows if row.stream == stream]
        (stays,) = (row.z for row in mine if row.source == "fixed")
        end = max(ends)
        steps = [(0.0, None), *((row.hours, row.z) for row in mine if row.source == "held")]
        for (start, z), stop in zip(steps, [*(at for at, _ in steps[1:]), end], strict=True):
            if z is None:
                axes.axvspan(start, stop, color="#8a8f98", alpha=0.45, linewidth=0)
        xs = [at for at, _ in steps] + [end]
        ys = [float("nan") if z is None else float(z) for _, z in steps]
        color, dashes, _ = _LOOKS["held"]
        axes.step(xs, [*ys, ys[-1]], where="post", color=color, linestyle=dashes, linewidth=1.3)
        color, dashes, _ = _LOOKS["fixed"]
        axes.axhline(float(stays or 0), color=color, linestyle=dashes, linewidth=1.3)
        axes.set_xlabel("windows")
        _grid(axes)
    panels[0].set_yscale("log")
    panels[0].set_yticks([100, 200, 500, 1_000])
    panels[0].yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panels[0].yaxis.set_minor_formatter(lambda *_: "")
    panels[0].set_ylabel("z")
    _legend(drawing, ("held", "fixed"), shaded=True)


def _unequal(drawing: Drawing, rows: Sequence[TuningRow]) -> None:
    """On the left by z, on the right over a period."""
    wide, high = drawing.get_size_inches()
    left, right = drawing.subplots(1, 2, squeeze=False)[0]
    drawing.subplots_adjust(
        left=0.75 / wide, right=1 - 0.15 / wide, bottom=1.12 / high, top=1 - 0.62 / high, wspace=0.2
    )
    by_z = [row for row in rows if row.z is not None]
    for source in ("model", "classes"):
        points = [(row.z, row.share) for row in by_z if row.source == source]
        _line(left, source, points)
    color, _, marker = _LOOKS["measured"]
    measured = [(row.z, row.share) for row in by_z if row.source == "measured"]
    left.plot(*zip(*measured, strict=True), linestyle="none", marker=marker, color=color,
              markersize=4.2)  # fmt: skip
    for source in ("model", "meter"):
        over = [(row.hours, row.share) for row in rows if row.z is None and row.source == source]
        _line(right, source, over)
    left.set_title("over a period, by z that stays", fontsize=8.8)
    right.set_title("within a period, z tuned", fontsize=8.8)
    left.set_xlabel("z")
    right.set_xlabel("windows since the pseudonyms changed")
    left.set_ylabel("share of visible users\nwho are 2 alike")
    for axes in (left, right):
        _grid(axes)
        _wanted(axes)
    _legend(drawing, ("model", "classes", "meter"), measured=True, wanted=True)


def _line(
    axes: Axes, source: str, points: Sequence[tuple[Any, Any]], *,
    marked: bool = False,
) -> None:  # fmt: skip
    if not points:
        return
    color, dashes, marker = _LOOKS[source]
    axes.plot(*zip(*points, strict=True), color=color, linestyle=dashes, linewidth=1.5,
              marker=marker if marked else None, markersize=3.6)  # fmt: skip


def _wanted(axes: Axes) -> None:
    axes.axhline(0.8, color="#4b525a", linewidth=0.9, zorder=1)


def _grid(axes: Axes) -> None:
    axes.grid(color=GRID, linewidth=0.5)
    axes.set_axisbelow(True)


def _legend(
    drawing: Drawing, sources: Sequence[str], *, marked: bool = False, wanted: bool = False,
    shaded: bool = False, measured: bool = False,
) -> None:  # fmt: skip
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Line2D | Patch] = []
    for source in sources:
        color, dashes, marker = _LOOKS[source]
        handles.append(
            Line2D([], [], color=color, linestyle=dashes, linewidth=1.5, markersize=3.6,
                   marker=marker if marked else None, label=_NAMES[source])
        )  # fmt: skip
    if measured:
        color, _, marker = _LOOKS["measured"]
        handles.append(
            Line2D([], [], color=color, linestyle="none", marker=marker, markersize=4.2,
                   label=_NAMES["measured"])
        )  # fmt: skip
    if wanted:
        handles.append(Line2D([], [], color="#4b525a", linewidth=0.9, label="wanted"))
    if shaded:
        handles.append(Patch(color="#8a8f98", alpha=0.45, linewidth=0, label="nothing leaves"))
    high = drawing.get_size_inches()[1]
    drawing.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 0.3 / high),
                   ncols=len(handles), frameon=False, handlelength=3.2)  # fmt: skip
