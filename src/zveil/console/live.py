"""The page *Live*: what comes in, what leaves, how long it takes, and what is held."""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import dataclass
from functools import partial
from math import ceil, log2
from typing import Any

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from zveil.console.charts import ONE, THREE, TWO, area, axis, frame, line
from zveil.console.course import SPANS, Course, Pace, course, pace
from zveil.console.proposal import Names
from zveil.console.shell import box, button, chart, rich, table, words
from zveil.console.view import View
from zveil.console.wording import NONE, age, duration, percent, plural, rate, size
from zveil.policy import Policy
from zveil.serve.monitor import Figures

_EVERY_S = 1.0
_OLD_SNAPSHOT_S = 120.0
_REASONS = {
    "few_users": "too few users",
    "late": "too late",
    "future": "from the future",
    "empty": "incomplete",
    "filtered": "left out by lists of names",
}


@dataclass
class _Tile:
    """One figure, with a line of more about it."""

    card: Element
    figure: TextElement
    more: TextElement

    @classmethod
    def make(cls, name: str) -> _Tile:
        with box("section", "card tile", **{"aria-label": name}) as card:
            words("span", name, "name")
            return cls(card, words("span", NONE, "figure"), words("span", "", "more"))

    def set(self, figure: str, more: str = "", *, is_warning: bool = False) -> None:
        self.figure.set_text(figure)
        self.more.set_text(more)
        if is_warning:
            self.card.classes(add="warn")
        else:
            self.card.classes(remove="warn")


class Live:
    """The page of one browser, brought up to date every second."""

    def __init__(self, view: View, address: str) -> None:
        self._view, self._span = view, next(iter(SPANS))
        with box("div", "head"):
            words("h1", "Live")
            self._state = words("span", "", "state idle", role="status")
        with box("section", "card empty") as self._empty:
            _first_event(view.policy, address, needs_token=view.needs_token)
        with box("div") as self._full:
            self._tiles()
            self._charts()
            with box("div", "grid pair"):
                with box("section", "card"):
                    words("h2", "Veiled, and why")
                    self._veiled = rich("", tag="div")
                with box("section", "card"):
                    words("h2", "What decides")
                    self._parts = rich("", tag="div")
                    self._policy = words("p", "", "quiet small mono")
        self._full.set_visibility(False)
        ui.timer(_EVERY_S, self._refresh)

    def _tiles(self) -> None:
        with box("div", "grid tiles"):
            self._in = _Tile.make("In, a second")
            self._out = _Tile.make("Released, a second")
            self._share = _Tile.make("Share released")
            self._latency = _Tile.make("Latency, 99 of 100")
            self._memory = _Tile.make("Memory of the state")
            self._late = _Tile.make("Late")
            self._bad = _Tile.make("Bad input")
            self._saved = _Tile.make("Snapshot")
            self._meter = _Tile.make("Users in a crowd of 2")
        self._meter.card.set_visibility(False)

    def _charts(self) -> None:
        with box("div", "row", role="group", **{"aria-label": "How far back"}):
            self._spans = {span: button(span, partial(self._show, span)) for span in SPANS}
        self._mark_span()
        moments = axis("time")
        with box("div", "grid pair", style="margin-top: .9rem"):
            with box("section", "card"):
                words("h2", "Observations a second")
                series = [area("came in", THREE), area("released", ONE)]
                y = axis("value", unit="zveil.short", min=0)
                self._rates = chart(
                    frame(x=moments, y=y, series=series, unit="zveil.short"),
                    "Observations a second that came in and that were released, over time",
                )
            with box("section", "card"):
                words("h2", "Share released")
                y = axis("value", unit="zveil.percent", min=0, max=100)
                self._shares = chart(
                    frame(x=moments, y=y, series=[area("released", ONE)], unit="zveil.percent"),
                    "Percent of observations released, over time",
                )
            with box("section", "card"):
                words("h2", "Latency of decisions")
                series = [line("median", ONE), line("99 of 100 are faster", TWO, dashes="dashed")]
                y = axis("value", unit="zveil.ms", min=0)
                self._times = chart(
                    frame(x=moments, y=y, series=series, unit="zveil.ms"),
                    "Latency of decisions in milliseconds, over time",
                )
            with box("section", "card"):
                words("h2", "Memory of the state")
                y = axis("value", unit="zveil.bytes", min=0)
                self._held = chart(
                    frame(x=moments, y=y, series=[area("state", ONE)], unit="zveil.bytes"),
                    "Memory of the state in bytes, over time",
                )

    def _show(self, span: str) -> None:
        self._span = span
        self._mark_span()
        self._draw(course(self._view.history, span))

    def _mark_span(self) -> None:
        for span, each in self._spans.items():
            each.props["aria-pressed"] = "true" if span == self._span else "false"
            each.update()

    async def _refresh(self) -> None:
        history = await self._view.fresh()
        if not history:
            return
        now = history[-1]
        has_events = bool(now.observed or now.lines or sum(now.bad.values()))
        if self._empty.visible == has_events:
            self._empty.set_visibility(not has_events)
            self._full.set_visibility(has_events)
        speed = pace(history)
        self._say(now, speed)
        if has_events:
            self._fill(now, speed)
            self._draw(course(history, self._span))

    def _say(self, now: Figures, speed: Pace) -> None:
        if not now.observed:
            self._state.set_text("waiting for the first event")
        elif speed.is_idle:
            self._state.set_text("nothing came in the last seconds")
        else:
            self._state.set_text("events are coming in")
        if speed.is_idle:
            self._state.classes(add="idle")
        else:
            self._state.classes(remove="idle")

    def _fill(self, now: Figures, speed: Pace) -> None:
        self._in.set(rate(speed.observed), f"{now.observed:,} in all")
        self._out.set(rate(speed.released), f"{now.released:,} in all")
        self._share.set(
            percent(speed.share),
            f"last minute; {percent(now.released / now.observed)} in all" if now.observed else "",
        )
        median, high = now.latency_ms.get(0.5), now.latency_ms.get(0.99)
        self._latency.set(duration(high), f"half take up to {duration(median)}" if median else "")
        self._memory.set(size(now.state_bytes), f"{plural(now.attributes, 'value')} remembered")
        late = now.late / now.observed if now.observed else 0.0
        self._late.set(f"{now.late:,}", f"{percent(late)} of all", is_warning=late > 0.05)
        bad = sum(now.bad.values())
        kinds = ", ".join(f"{count:,} {_kind(name)}" for name, count in now.bad.items() if count)
        more = [kinds] * bool(kinds) + [f"{now.repeated:,} repeated"] * bool(now.repeated)
        self._bad.set(f"{bad:,}", ", ".join(more) or "lines", is_warning=bad > 0)
        self._save(now)
        self._measure(now)
        reasons = [(_REASONS.get(name, name), count) for name, count in now.veiled.items() if count]
        rows = [(name, f"{count:,}", percent(count / now.observed)) for name, count in reasons]
        empty = [("nothing so far", "", "")]
        self._veiled.set_content(table([("reason", "number", "share"), *(rows or empty)]))
        self._parts.set_content(table(_part_rows(now)))
        self._policy.set_text(f"policy {now.policy}")

    def _save(self, now: Figures) -> None:
        failures = now.snapshot_failures
        if now.snapshot_age is None:
            words_ = f"{failures:,} failed" if failures else "nothing was saved yet"
            self._saved.set("none", words_, is_warning=failures > 0)
            return
        is_old = now.snapshot_age > _OLD_SNAPSHOT_S
        more = f"{failures:,} failed" if failures else "since the state was saved"
        self._saved.set(age(now.snapshot_age), more, is_warning=is_old or failures > 0)

    def _measure(self, now: Figures) -> None:
        """Show what the meter of k-anonymity says, where there is one."""
        found = now.meter
        if found is None:
            return
        self._meter.card.set_visibility(True)
        more = f"of {plural(found.users, 'visible user')}"
        if found.is_stopped:
            more = "not measured: the limit on memory"
        self._meter.set(percent(found.share(2)), more, is_warning=found.is_stopped)

    def _draw(self, lines: Course) -> None:
        for drawn, every in (
            (self._rates, (lines.observed, lines.released)),
            (self._shares, (lines.share,)),
            (self._times, (lines.median_ms, lines.high_ms)),
            (self._held, (lines.state,)),
        ):
            for place, data in enumerate(every):
                drawn.options["series"][place]["data"] = data
            if drawn is self._held:
                between, most = scale([each[1] or 0 for each in lines.state])
                drawn.options["yAxis"] |= {"interval": between, "max": most}
            drawn.update()


def scale(sizes: list[float]) -> tuple[int, int]:
    """Give how far apart the lines of a scale of sizes are, a power of two, and where it ends.

    >>> scale([3_000_000]), scale([])
    ((1048576, 3145728), (1, 1))
    """
    most = max(sizes, default=0)
    between = 1 << max(ceil(log2(most / 4)), 0) if most > 4 else 1
    return between, max(ceil(most / between), 1) * between


def _first_event(policy: Policy | None, address: str, *, needs_token: bool) -> None:
    """Show how to send the first event."""
    words("h2", "No events yet")
    words("p", "Send the first one, and this page comes to life by itself:", "quiet")
    with box("pre", tabindex=0):
        words("code", first_event(policy, address, needs_token=needs_token), id="first-event")
    with box("div", "row", style="justify-content: center"):
        words("button", "Copy", type="button", **{"data-copies": "first-event"})


def first_event(policy: Policy | None, address: str, *, needs_token: bool) -> str:
    """Write the command that sends a first event."""
    names = Names.of(policy)
    record: dict[str, Any] = {names.time: int(time.time()), names.user: "ada"}
    record |= dict.fromkeys(names.attributes, "example.org")
    lines = [f"curl {address}/v1/observations"]
    if needs_token:
        lines.append('-H "Authorization: Bearer $TOKEN"')
    lines.append("-H 'Content-Type: application/x-ndjson'")
    lines.append(f"--data-binary {shlex.quote(json.dumps(record))}")
    return " \\\n  ".join(lines)


def _part_rows(now: Figures) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("attribute", "z", "window", "released", "remembered")]
    for each in now.parts:
        share = percent(each.released / each.observed if each.observed else None)
        window = age(each.window_ns / 1e9)
        rows.append((each.attribute, f"{each.z:,}", window, share, f"{each.attributes:,}"))
    return rows


def _kind(name: str) -> str:
    return name.replace("_", " ")
