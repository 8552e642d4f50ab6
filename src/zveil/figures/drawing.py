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
    from matplotlib.lines import Line2D

# In inches: the picture is laid out by hand, so that title, legend and note never meet.
_PANEL_WIDE, _PANEL_HIGH = 3.25, 2.45
_ALONE_WIDE, _ALONE_HIGH = 5.6, 3.0
_LEFT, _RIGHT, _BOTTOM, _TOP, _BETWEEN = 0.85, 0.2, 1.2, 0.4, 0.18
_PANEL_TITLE, _AXIS_ABOVE = 0.22, 0.42
_LEGEND_AT, _LEGEND_ROW, _NOTE_AT = 0.42, 0.22, 0.09
_WIDE = 8.0
_DPI = 110
_MARKER = 4.2


def draw(figure: Figure, rows: Sequence[Row], paths: Sequence[Path]) -> None:
    """Draw a figure into files, whose endings say how.

    The same rows give the same bytes, with the same Matplotlib.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Drawing

    with mpl.rc_context(STYLE):
        count = len(figure.panels)
        one_wide, one_high = (_PANEL_WIDE, _PANEL_HIGH) if count > 1 else (_ALONE_WIDE, _ALONE_HIGH)
        top = _TOP + (_PANEL_TITLE if count > 1 else 0.0)
        top += _AXIS_ABOVE if figure.z_per_users is not None else 0.0
        wide = _LEFT + count * one_wide + (count - 1) * _BETWEEN + _RIGHT
        bottom = _BOTTOM + (_LEGEND_ROW if count == 1 and figure.is_synthetic else 0.0)
        high = bottom + one_high + top
        drawing = Drawing(figsize=(wide, high))
        drawing.subplots_adjust(
            left=_LEFT / wide, right=1 - _RIGHT / wide, bottom=bottom / high, top=1 - top / high,
            wspace=_BETWEEN / one_wide,
        )  # fmt: skip
        FigureCanvasAgg(drawing)
        _fill(drawing, figure, rows)
        for path in paths:
            drawing.savefig(path, dpi=_DPI, metadata=_metadata(path, figure))


def _fill(drawing: Drawing, figure: Figure, rows: Sequence[Row]) -> None:
    all_axes = drawing.subplots(1, len(figure.panels), sharey=True, squeeze=False)[0]
    for axes, panel in zip(all_axes, figure.panels, strict=True):
        _panel(axes, figure, panel, rows)
    all_axes[0].set_ylabel(figure.y_label)
    wide, high = drawing.get_size_inches()
    drawing.text(0.5, 1 - 0.1 / high, figure.title, fontsize=11, fontweight="bold", ha="center",
                 va="top")  # fmt: skip
    measured = [row for row in rows if row.source == "measured"]
    lines, points = _legend_lines(figure, rows), _legend_points(measured)
    # Side by side where there is room, else one above the other.
    entries = [lines + points] if wide > _WIDE or len(points) < 2 else [points, lines]
    for row, handles in enumerate(entries):
        at = (0.5, (_LEGEND_AT + row * _LEGEND_ROW) / high)
        drawing.legend(handles=handles, loc="lower center", bbox_to_anchor=at, ncols=len(handles),
                       frameon=False, handlelength=3.2, columnspacing=1.4)  # fmt: skip
    drawing.text(0.5, _NOTE_AT / high, _note(figure, measured), fontsize=7,
                 color="#4b525a", ha="center", va="bottom", linespacing=1.35)  # fmt: skip


def _panel(axes: Axes, figure: Figure, panel: Panel, rows: Sequence[Row]) -> None:
    """Draw the curves of one source, and over them what was measured."""
    for place, value in enumerate(_values(figure, rows)):
        color, dashes, marker = LINES[place]
        mine = [row for row in rows if figure.by_of(row) == value and row.among == panel.among]
        curve = sorted(
            (figure.x_of(row), row.value)
            for row in mine
            if row.source == panel.source and figure.is_on_curve(row)
        )
        axes.plot(*zip(*curve, strict=True), color=color, linestyle=dashes, linewidth=1.5,
                  zorder=2)  # fmt: skip
        for is_flat in (False, True):
            points = [
                row
                for row in mine
                if row.source == "measured"
                and (row.population == FLAT_DAY) == is_flat
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
                  markersize=_MARKER, markerfacecolor="white" if is_flat else color,
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
    if figure.x == "users":
        axes.set_xticks(range(25_000, 100_001, 25_000))
    axes.grid(color=GRID, linewidth=0.5)
    axes.set_axisbelow(True)
    if figure.z_per_users is not None:
        per = figure.z_per_users
        both: Any = (lambda users: users / per, lambda z: z * per)
        above = axes.secondary_xaxis("top", functions=both)
        above.set_xlabel(f"z = U / {per:,}")


def _legend_lines(figure: Figure, rows: Sequence[Row]) -> list[Line2D]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=color, linestyle=dashes, linewidth=1.5, marker=marker,
               markersize=_MARKER, label=f"{figure.by} = {value}")
        for value, (color, dashes, marker) in zip(_values(figure, rows), LINES, strict=False)
    ]  # fmt: skip


def _legend_points(measured: Sequence[Row]) -> list[Line2D]:
    from matplotlib.lines import Line2D

    if not measured:
        return []
    has_flat = any(row.population == FLAT_DAY for row in measured)
    words = [("measured at the gate" + (", with day and night" if has_flat else ""), INK)]
    words += [("measured, without day and night", "white")] if has_flat else []
    return [
        Line2D([], [], linestyle="none", marker="o", color=INK, markersize=_MARKER,
               markerfacecolor=fill, label=label)
        for label, fill in words
    ]  # fmt: skip


def _values(figure: Figure, rows: Sequence[Row]) -> list[int]:
    return sorted({figure.by_of(row) for row in rows})


def _note(figure: Figure, measured: Sequence[Row]) -> str:
    """Say what holds for the whole figure, and what the points are."""
    words = figure.fixed
    if measured:
        count = measured[0].streams or 1
        how = "through the gate, after one window of warm-up"
        mean = (
            f"mean of {count} simulated streams {how}; bars: smallest and largest"
            if count > 1
            else f"one simulated stream {how}"
        )
        words += f"\nPoints: {mean}"
    return words


def _metadata(path: Path, figure: Figure) -> dict[str, str | None]:
    """Say what the picture is, and nothing that differs from run to run."""
    said = {"Title": figure.title, "Description": figure.fixed}
    return said | ({"Date": None} if path.suffix == ".svg" else {"Software": None})
