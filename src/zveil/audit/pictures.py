"""The pictures of the page: drawings in the text of the page, readable without colour."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from zveil.audit.crowds import GROUPS, Crowds
from zveil.audit.measure import Rotation
from zveil.audit.tables import group, percent
from zveil.audit.unicity import Unicity
from zveil.audit.utility import Course
from zveil.meter import KS
from zveil.style import FILLS, GRID, INK, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDE, _HIGH = 7.2, 2.9
_MOST_MARKERS = 100
# Hatches tell the fills apart where grey does not.
_HATCHES = ("", "//", "..", "\\\\", "xx", "")
_LINES = ((2, "o", "-", FILLS[0]), (5, "s", "--", FILLS[1]), (10, "^", ":", "#57606a"))


def crowds_picture(found: Sequence[Crowds]) -> str:
    """Draw the shares of users in crowds of at least k, for each thing an observer may know."""

    def draw(axes: Axes) -> None:
        width = 0.8 / len(KS)
        for place, k in enumerate(KS):
            at = np.arange(len(found)) + (place - (len(KS) - 1) / 2) * width
            shares = [each.shares[k] or 0.0 for each in found]
            axes.bar(at, shares, width * 0.92, color=FILLS[place], hatch=_HATCHES[place],
                     edgecolor=INK, linewidth=0.6, label=f"k ≥ {k}")  # fmt: skip
            for x, part in zip(at.tolist(), shares, strict=True):
                axes.text(x, part, percent(part), ha="center", va="bottom", fontsize=6)
        axes.set_xticks(range(len(found)), [_wrapped(each.resolution.knowledge) for each in found])
        axes.set_ylabel("share of visible users")
        _shares(axes, max(each.shares[KS[0]] or 0.0 for each in found))
        axes.legend(ncols=len(KS), loc="upper right")

    first = percent(found[0].shares[2])
    return picture(
        draw,
        f"Bars: the share of visible users who share what the observer knows with at least k - 1 "
        f"others. For all values without times {first} for k = 2; less for finer times.",
    )


def groups_picture(found: Sequence[Crowds]) -> str:
    """Draw how users are spread over crowds of different sizes."""

    def draw(axes: Axes) -> None:
        left = np.zeros(len(found))
        rows = np.arange(len(found))[::-1]
        for place, (low, high) in enumerate(GROUPS):
            parts = np.array([each.groups[place] / max(each.users, 1) for each in found])
            axes.barh(rows, parts, 0.62, left=left, color=FILLS[place], hatch=_HATCHES[place],
                      edgecolor=INK, linewidth=0.6, label=f"k = {group(low, high)}")  # fmt: skip
            left += parts
        axes.set_yticks(rows, [each.resolution.knowledge for each in found])
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(_percents)
        axes.set_xlabel("share of visible users")
        axes.legend(frameon=False, ncols=len(GROUPS), loc="lower center",
                    bbox_to_anchor=(0.4, 1.0), columnspacing=1.2)  # fmt: skip

    return picture(draw, "Bars: visible users by the number of users who look like them.")


def unicity_picture(found: Sequence[Unicity]) -> str:
    """Draw how many users a few points single out."""

    def draw(axes: Axes) -> None:
        shown = [each for each in found if each.share is not None]
        xs = [each.points for each in shown]
        ys = [each.share or 0.0 for each in shown]
        ends = [each.interval or (0.0, 0.0) for each in shown]
        errors = [
            [y - low for y, (low, _) in zip(ys, ends, strict=True)],
            [high - y for y, (_, high) in zip(ys, ends, strict=True)],
        ]
        axes.errorbar(xs, ys, yerr=np.maximum(errors, 0), color=FILLS[0], marker="o",
                      markersize=5, capsize=4, linewidth=1.4)  # fmt: skip
        for x, y in zip(xs, ys, strict=True):
            is_high = y > 0.85
            axes.annotate(percent(y), (x, y), xytext=(0, -15 if is_high else 9),
                          textcoords="offset points", ha="center", fontsize=7.5)  # fmt: skip
        axes.set_xticks([each.points for each in found])
        axes.set_xlim(found[0].points - 0.4, found[-1].points + 0.4)
        axes.set_xlabel("points of a user that the observer knows")
        axes.set_ylabel("users singled out")
        _shares(axes, 1.0)

    return picture(draw, "A line: the share of users tried whom so many of their points fit alone.")


def course_picture(course: Course) -> str:
    """Draw what was released, and veiled where that is known, over time."""

    def draw(axes: Axes) -> None:
        days = [datetime.fromtimestamp(start / 1e9, UTC) for start in course.starts_ns.tolist()]
        width = course.step_ns / 86_400e9 * 0.9
        options: dict[str, Any] = {"align": "edge", "edgecolor": INK, "linewidth": 0.4}
        axes.bar(days, course.released, width, color=FILLS[0], label="released", **options)  # type: ignore[arg-type]
        if course.observed is not None:
            rest = np.maximum(course.observed - course.released, 0)
            axes.bar(days, rest, width, bottom=course.released, color=FILLS[4],  # type: ignore[arg-type]
                     hatch=_HATCHES[1], label="veiled", **options)  # fmt: skip
            axes.legend(frameon=False, loc="upper left", ncols=2)
        axes.set_ylabel("observations")
        axes.yaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")
        _dates(axes)

    return picture(draw, "Bars: observations released and veiled, over time.")


def rotation_picture(rotation: Rotation) -> str:
    """Draw the share of users in crowds, period by period."""

    def draw(axes: Axes) -> None:
        days = [datetime.fromtimestamp(each.start_ns / 1e9, UTC) for each in rotation.periods]
        highest = 0.0
        size = 3.5 if len(days) <= _MOST_MARKERS else 0
        for k, marker, line, color in _LINES:
            shares = [each.at_least[k] / each.users_visible for each in rotation.periods]
            highest = max([highest, *shares])
            axes.plot(days, shares, line, marker=marker, markersize=size, linewidth=1.2,  # type: ignore[arg-type]
                      color=color, label=f"k ≥ {k}")  # fmt: skip
        axes.set_ylabel("share of visible users")
        _shares(axes, highest)
        axes.legend(ncols=3, loc="upper right")
        _dates(axes)

    return picture(draw, "Lines: the share of visible users of each period in crowds of k.")


def picture(draw: Callable[[Axes], None], words: str) -> str:
    """Make a drawing that needs nothing from outside.

    Parameters
    ----------
    draw
        Draws it.
    words
        Says what is to be seen, for those who do not see it.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(_WIDE, _HIGH), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.add_subplot())
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return _inline(text.getvalue(), words)


def _inline(svg: str, words: str) -> str:
    """Take away what a drawing within a page does not need: head, names of standards, metadata."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", svg)
    svg = svg.replace("xlink:href=", "href=")
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg))
    kept = {name for pair in used for name in pair}
    svg = re.sub(r' id="([^"]+)"', lambda m: m[0] if m[1] in kept else "", svg)
    head, _, rest = svg.partition(">")
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    return f'{head} role="img" aria-label="{escape(words)}">{rest}'


def _shares(axes: Axes, highest: float) -> None:
    """Set an axis of shares that begins at nothing and has room for words above."""
    axes.set_ylim(0, min(max(highest * 1.25, 0.02), 1.0) if highest < 0.8 else 1.06)
    axes.yaxis.set_major_formatter(_percents)
    axes.grid(axis="y", color=GRID, linewidth=0.5)
    axes.set_axisbelow(True)


def _percents(part: float, _: float) -> str:
    return f"{part * 100:.3g}%"


def _dates(axes: Axes) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(maxticks=9)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _wrapped(words: str) -> str:
    return re.sub(r"(, | and )", lambda match: match[0].rstrip() + "\n", words)
