"""Charts, as options of the library that draws them. Colours are names of the style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

Options: TypeAlias = dict[str, Any]
Line: TypeAlias = Sequence[Sequence[float | None]]

INK, QUIET, LINE, SURFACE = "var(--ink)", "var(--quiet)", "var(--line)", "var(--surface)"
ONE, TWO, THREE, FOUR, GREY = (f"var(--{name})" for name in ("one", "two", "three", "four", "grey"))
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif"


def frame(*, x: Options, y: Options, series: list[Options], unit: str) -> Options:
    """Give a chart with two axes.

    Parameters
    ----------
    x, y
        The axes, as `axis` gives them.
    series
        What is drawn, as `line` and its like give it.
    unit
        How a value is written in the note under the pointer: a function of the page's own script.
    """
    return {
        "animation": False,
        "textStyle": {"color": QUIET, "fontFamily": _FONT},
        "grid": {
            "left": 8,
            "right": 18,
            "top": 12,
            "bottom": 28 if x["name"] else 8,
            "containLabel": True,
        },
        "tooltip": {
            "trigger": "axis",
            "backgroundColor": SURFACE,
            "borderColor": LINE,
            "textStyle": {"color": INK, "fontSize": 13},
            "axisPointer": {"lineStyle": {"color": QUIET}, "label": {"show": False}},
            ":valueFormatter": unit,
            "confine": True,
        },
        "xAxis": x,
        "yAxis": y,
        "series": series,
    }


def axis(kind: str, *, unit: str | None = None, name: str = "", **more: Any) -> Options:
    """Give an axis: ``time``, ``value``, ``log`` or ``category``."""
    label: Options = {"color": QUIET, "hideOverlap": True}
    if unit is not None:
        label[":formatter"] = unit
    is_scale = kind in ("value", "log")
    return {
        "type": kind,
        "name": name,
        "nameLocation": "middle",
        "nameGap": 26,
        "nameTextStyle": {"color": QUIET},
        "axisLabel": label,
        "axisLine": {"show": not is_scale or bool(name), "lineStyle": {"color": LINE}},
        "axisTick": {"lineStyle": {"color": LINE}},
        "minorTick": {"show": False},
        "splitLine": {"show": is_scale and not name, "lineStyle": {"color": LINE}},
        **more,
    }


def line(name: str, colour: str, data: Line = (), *, dashes: str = "solid", **more: Any) -> Options:
    """Give a line; what tells it apart without colour is its dashes."""
    return {
        "name": name,
        "type": "line",
        "data": list(data),
        "symbol": "none",
        "lineStyle": {"color": colour, "width": 2, "type": dashes},
        "itemStyle": {"color": colour},
        "emphasis": {"disabled": True},
        **more,
    }


def area(name: str, colour: str, data: Line = ()) -> Options:
    """Give a line with the space under it filled."""
    return line(name, colour, data, areaStyle={"color": colour, "opacity": 0.16})


def mark(name: str, colour: str) -> Options:
    """Give a point that stands out; its place is set later."""
    return {
        "name": name,
        "type": "scatter",
        "data": [],
        "symbolSize": 14,
        "itemStyle": {"color": colour, "borderColor": SURFACE, "borderWidth": 2.5},
        "emphasis": {"disabled": True},
        "z": 5,
    }


def rule(value: float, words: str) -> Options:
    """Give a level across a chart, to be put into a line as its ``markLine``."""
    return {
        "silent": True,
        "symbol": "none",
        "animation": False,
        "data": [{"yAxis": value}],
        "lineStyle": {"color": QUIET, "type": [3, 4], "width": 1.2},
        "label": {"formatter": words, "color": QUIET, "position": "insideStartTop", "fontSize": 12},
    }


def legend(options: Options) -> list[tuple[str, str, str]]:
    """Give what a chart draws: the name of each, its colour, and how it looks without colour."""
    found = []
    for each in options["series"]:
        kind = each["type"]
        if kind == "line":
            kind = each["lineStyle"]["type"]
        found.append((each["name"], each["itemStyle"]["color"], kind))
    return found


def bars(name: str, colour: str, data: Sequence[float | None], **more: Any) -> Options:
    """Give bars over names."""
    return {
        "name": name,
        "type": "bar",
        "data": list(data),
        "itemStyle": {"color": colour},
        "emphasis": {"disabled": True},
        **more,
    }
