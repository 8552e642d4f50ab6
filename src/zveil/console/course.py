"""The past of a stream as lines to draw: rates, shares and levels, from figures that only grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from zveil.serve.monitor import Figures

SPANS: dict[str, tuple[float, float]] = {"10 minutes": (600.0, 5.0), "24 hours": (86_400.0, 300.0)}
"""How far back, and in what steps, in seconds."""

_LATELY_S = 10.0


@dataclass(frozen=True, kw_only=True)
class Course:
    """Lines over time: each is a list of [milliseconds since 1970, number or None]."""

    observed: list[list[float | None]] = field(default_factory=list)
    """Observations a second that came."""
    released: list[list[float | None]] = field(default_factory=list)
    """Those a second that were released."""
    share: list[list[float | None]] = field(default_factory=list)
    """Percent released; None where nothing came."""
    median_ms: list[list[float | None]] = field(default_factory=list)
    high_ms: list[list[float | None]] = field(default_factory=list)
    state: list[list[float | None]] = field(default_factory=list)
    """Bytes."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How fast it goes just now, over the last seconds."""

    observed: float = 0.0
    released: float = 0.0
    share: float | None = None
    """Of what came within the last minute; None if nothing did."""
    is_idle: bool = True


def course(history: Sequence[Figures], span: str) -> Course:
    """Draw the past.

    Parameters
    ----------
    history
        Figures, oldest first.
    span
        One of `SPANS`.
    """
    span_s, step_s = SPANS[span]
    if not history:
        return Course()
    lines = Course()
    before: Figures | None = None
    for each in _thinned(history, history[-1].at - span_s, step_s):
        at = round(each.at * 1000)
        if before is not None:
            came, left = _between(before, each)
            passed = max(each.at - before.at, 1e-3)
            lines.observed.append([at, round(came / passed, 2)])
            lines.released.append([at, round(left / passed, 2)])
            lines.share.append([at, round(100 * left / came, 2) if came else None])
        lines.median_ms.append([at, _rounded(each.latency_ms.get(0.5))])
        lines.high_ms.append([at, _rounded(each.latency_ms.get(0.99))])
        lines.state.append([at, each.state_bytes])
        before = each
    return lines


def pace(history: Sequence[Figures]) -> Pace:
    """Give how fast it goes just now."""
    if len(history) < 2:
        return Pace()
    last = history[-1]
    lately = next(each for each in history if last.at - each.at <= _LATELY_S or each is last)
    minute = next(each for each in history if last.at - each.at <= 60 or each is last)
    came, left = _between(lately, last)
    all_came, all_left = _between(minute, last)
    passed = max(last.at - lately.at, 1.0)
    return Pace(
        observed=came / passed,
        released=left / passed,
        share=all_left / all_came if all_came else None,
        is_idle=not came,
    )


def _between(one: Figures, two: Figures) -> tuple[int, int]:
    """Give what came and what was released between two moments; nothing where a count fell back."""
    return max(two.observed - one.observed, 0), max(two.released - one.released, 0)


def _thinned(history: Sequence[Figures], since: float, step_s: float) -> list[Figures]:
    """Take the last figures of each step; steps are cut from 1970, so that lines do not jitter."""
    found: dict[int, Figures] = {}
    for each in history:
        if each.at >= since:
            found[int(each.at // step_s)] = each
    return list(found.values())


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
