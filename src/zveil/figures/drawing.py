"""How a figure is drawn: panels side by side on one scale, the legend below them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zveil.figures.catalogue import Figure, Panel
from zveil.figures.rows import FLAT_DAY, Row
from zveil.style import GRID, INK, LINES, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_PANEL_WIDE, _HIGH = 3.55, 3.75
_ALONE_WIDE = 6.6
_DPI = 110


def draw(figure: Figure, rows: Sequence[Row], paths: Sequence[Path]) -> None:
    """Draw a figure into files, whose endings say how.

    The same rows give the same bytes, with the same Matplotlib.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Drawing

    with mpl.rc_context(STYLE):
        count = len(figure.panels)
        wide = _ALONE_WIDE if count == 1 else _PANEL_WIDE * count
        drawing = Drawing(figsize=(wide, _HIGH), layout="constrained")
        FigureCanvasAgg(drawing)
        _fill(drawing, figure, rows)
        for path in paths:
            drawing.savefig(path, dpi=_DPI, metadata=_metadata(path, figure))


def _fill(drawing: Drawing, figure: Figure, rows: Sequence[Row]) -> None:
    all_axes = drawing.subplots(1, len(figure.panels), sharey=True, squeeze=False)[0]
    for axes, panel in zip(all_axes, figure.panels, strict=True):
        _panel(axes, figure, panel, rows)
    all_axes[0].set_ylabel(figure.y_label)
    drawing.suptitle(figure.title, fontsize=11, fontweight="bold")
    measured = [row for row in rows if row.source == "measured"]
    handles, labels = _legend(figure, rows, measured)
    drawing.legend(handles, labels, loc="outside lower center", ncols=len(handles), frameon=False,
                   handlelength=3.2, columnspacing=1.6)  # fmt: skip
    drawing.supxlabel(_note(figure, measured), fontsize=7.2, color="#4b525a")


def _panel(axes: Axes, figure: Figure, panel: Panel, rows: Sequence[Row]) -> None:
    """Draw the curves of one source, and over them what was measured."""
    for place, value in enumerate(_values(figure, rows)):
        color, dashes, marker = LINES[place]
        mine = [row for row in rows if figure.by_of(row) == value and row.count == panel.count]
        curve = sorted(
            (figure.x_of(row), row.value) for row in mine if row.source == panel.source
        )
        axes.plot(*zip(*curve, strict=True), color=color, linestyle=dashes, linewidth=1.5,
                  zorder=2)  # fmt: skip
        for is_flat in (False, True):
            points = [
                row
                for row in mine
                if row.source == "measured" and (row.population == FLAT_DAY) == is_flat
                # On a logarithmic axis there is no place for nothing.
                and (row.value > 0 or not figure.is_log_y)
            ]
            _points(axes, figure, points, color, marker, is_flat=is_flat)
    axes.set_xlabel(figure.x_label)
    if panel.title:
        axes.set_title(panel.title, fontsize=8.8)
    _scales(axes, figure)


def _points(
    axes: Axes, figure: Figure, points: Sequence[Row], color: str, marker: str, *, is_flat: bool
) -> None:
    if not points:
        return
    xs, ys = [figure.x_of(row) for row in points], [row.value for row in points]
    down = [row.value - (row.low or 0.0) for row in points]
    up = [(row.high or 0.0) - row.value for row in points]
    axes.errorbar(xs, ys, yerr=[down, up], linestyle="none", marker=marker, color=color,
                  markersize=4.2, markerfacecolor="white" if is_flat else color,
                  markeredgewidth=0.9, capsize=2, elinewidth=0.9, zorder=3)  # fmt: skip


def _scales(axes: Axes, figure: Figure) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    thousands = FuncFormatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylim(*figure.y_range)
    if figure.is_log_y:
        axes.set_yscale("log")
        axes.set_ylim(*figure.y_range)
        axes.yaxis.set_major_locator(LogLocator(numticks=12))
    if figure.is_log_x:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(thousands)
    axes.grid(color=GRID, linewidth=0.5)
    axes.set_axisbelow(True)
    if figure.z_per_users is not None:
        per = figure.z_per_users
        above = axes.secondary_xaxis(
            "top", functions=(lambda users: users / per, lambda z: z * per)
        )
        above.set_xlabel("z, in proportion to U")


def _legend(
    figure: Figure, rows: Sequence[Row], measured: Sequence[Row]
) -> tuple[list[Any], list[str]]:
    from matplotlib.lines import Line2D

    handles: list[Any] = []
    labels = []
    for place, value in enumerate(_values(figure, rows)):
        color, dashes, marker = LINES[place]
        handles.append(
            Line2D([], [], color=color, linestyle=dashes, linewidth=1.5, marker=marker,
                   markersize=4.2)
        )  # fmt: skip
        labels.append(f"{figure.by} = {value}")
    if measured:
        empty: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": INK, "markersize": 4.2}
        handles.append(Line2D([], [], **empty))
        labels.append("points: measured")
        if any(row.population == FLAT_DAY for row in measured):
            labels[-1] += ", with day and night"
            handles.append(Line2D([], [], markerfacecolor="white", **empty))
            labels.append("measured, the same at all hours")
    return handles, labels


def _values(figure: Figure, rows: Sequence[Row]) -> list[int]:
    return sorted({figure.by_of(row) for row in rows})


def _note(figure: Figure, measured: Sequence[Row]) -> str:
    """Say what holds for the whole figure, and what the points are."""
    words = figure.fixed
    if measured:
        count = measured[0].streams or 1
        mean = (
            f"mean of {count} simulated streams through the gate after one window of warm-up, "
            "bars from the smallest to the largest"
            if count > 1
            else "one simulated stream through the gate after one window of warm-up"
        )
        words += f"\nPoints: {mean}"
    return words


def _metadata(path: Path, figure: Figure) -> dict[str, str | None]:
    """Say what the picture is, and nothing that differs from run to run."""
    said = {"Title": figure.title, "Description": figure.fixed}
    return said | ({"Date": None} if path.suffix == ".svg" else {"Software": None})
