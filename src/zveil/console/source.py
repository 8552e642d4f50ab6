"""Whose trade-off it is: users who are described, those of an uploaded trace, or of the stream."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui.element import Element

from zveil.console.choice import Choice
from zveil.console.files import Given
from zveil.console.proposal import Names, typed_names
from zveil.console.shell import box, button, field, words
from zveil.console.view import View
from zveil.console.wording import size, span
from zveil.console.worker import Worker, WorkError

_SOURCES = {"parameters": "Described", "trace": "A trace"}


class Source:
    """The part of the page that says whose users they are.

    Parameters
    ----------
    view
        What all pages look at.
    names
        Fields of a trace, to begin with.
    choice
        What is chosen; its population is set here.
    changed
        Is called when it was.
    """

    def __init__(
        self, view: View, names: Names, choice: Choice, changed: Callable[[], None]
    ) -> None:
        self._view, self._choice, self._changed = view, choice, changed
        self._names = names
        self.worker: Worker | None = None
        """The process that holds the trace, if there is one."""
        self._held: Worker | None = None
        self._ticket = view.inbox.expect(self._take)
        with box("section", "card"):
            words("h2", "Whose users")
            with box("div", "row", role="group", **{"aria-label": "Whose users"}):
                self._buttons: dict[str, Element] = {
                    name: button(text, partial(self._choose, name))
                    for name, text in _SOURCES.items()
                }
            with box("div") as self._described:
                self._parameters()
            with box("div") as self._traced:
                self._upload()
        self._mark()

    def _parameters(self) -> None:
        words(
            "p",
            "As in the paper: users alike and independent, and values the rarer the lower their "
            "rank.",
            "quiet small",
        )
        choice = self._choice
        with box("div", "fields", style="margin-top: .6rem"):
            self._number("users", "Users", choice.users, int, min=2, step=1)
            self._number("attributes", "Values", choice.attributes, int, min=1, step=1)
            self._number("rate", "Rate of the first", choice.rate, float, min=0, step="any")
            self._number("exponent", "Exponent", choice.exponent, float, min=0, step="any")
        words("p", "The value of rank r is shown by a user rate / r^exponent times an hour.",
              "quiet small")  # fmt: skip

    def _number(
        self, name: str, label: str, value: float, kind: Callable[[str], Any], **more: Any
    ) -> None:
        def set_(typed: str) -> None:
            try:
                setattr(self._choice, name, kind(typed))
            except ValueError:
                return
            self._changed()

        shown = f"{value:g}" if isinstance(value, float) else str(value)
        field(name, label, shown, set_, type="number", inputmode="decimal", **more)

    def _upload(self) -> None:
        words(
            "p",
            "A file of events as they came. The gate runs over it too, so that beside the model "
            "stands what really happens.",
            "quiet small",
        )
        names = self._names
        with box("div", "fields", style="margin-top: .6rem"):
            field("trace-time", "Time", names.time, self._namer("time"))
            field("trace-user", "User", names.user, self._namer("user"))
            field("trace-attributes", "Attributes", ", ".join(names.attributes),
                  self._namer("attributes"))  # fmt: skip
        file_field("trace-file", "File", self._ticket, self._view.inbox.largest)
        self._busy = words("p", "", "busy")
        self._told = words("p", "", "notice small")
        self._problem = words("p", "", "problem", role="alert")
        self._tell()

    def _namer(self, name: str) -> Callable[[str], None]:
        def set_(value: str) -> None:
            typed = {
                "time": self._names.time,
                "user": self._names.user,
                "attributes": ", ".join(self._names.attributes),
            } | {name: value}
            self._names = typed_names(**typed)

        return set_

    def _choose(self, name: str) -> None:
        self._choice.source = name if name == "parameters" or self._held else "parameters"
        self.worker = self._held if self._choice.source == "trace" else None
        self._mark(name)
        self._changed()

    def _mark(self, shown: str | None = None) -> None:
        shown = shown or self._choice.source
        for name, each in self._buttons.items():
            each.props["aria-pressed"] = "true" if name == shown else "false"
            each.update()
        self._described.set_visibility(shown == "parameters")
        self._traced.set_visibility(shown == "trace")

    def _tell(self, *, busy: str = "", told: str = "", problem: str = "") -> None:
        for element, text in ((self._busy, busy), (self._told, told), (self._problem, problem)):
            element.set_text(text)
            element.set_visibility(bool(text))

    async def _take(self, given: Given) -> None:
        """Have a trace read by a process of its own, which keeps it as long as the page is open."""
        if self._view.traces.locked():
            given.close()
            self._tell(problem="Others have traces open just now; try again in a moment.")
            return
        self.close()
        await self._view.traces.acquire()
        worker = self._held = Worker(file=given.file)
        self._tell(busy="reading")
        asked = {
            "name": given.name,
            "time": self._names.time,
            "user": self._names.user,
            "attributes": list(self._names.attributes),
            "window_s": self._choice.window_s,
        }
        try:
            found = await worker.ask("trace", asked, lambda doing: self._tell(busy=doing))
        except WorkError as error:
            self.close()
            self._tell(problem=str(error))
            return
        finally:
            given.close()
        left_out = f"; {found['left_out']:,} left out" if found["left_out"] else ""
        self._tell(
            told=f"{given.name}, {size(given.size)}: {found['observations']:,} observations "
            f"of {found['users']:,} users and {found['attributes']:,} values over "
            f"{span(found['span_s'])}{left_out}. The file itself is not kept."
        )
        self._choice.source, self.worker = "trace", worker
        self._mark()
        self._changed()

    def close(self) -> None:
        """Let the trace go."""
        held, self._held, self.worker = self._held, None, None
        if held is not None:
            held.close()
            self._view.traces.release()
            self._choice.source = "parameters"

    def leave(self) -> None:
        """Take nothing more: the page is gone."""
        self._view.inbox.forget(self._ticket)
        self.close()


def file_field(name: str, label: str, ticket: str, largest: int) -> None:
    """Make a field for a file, which the browser sends as soon as one is chosen."""
    with box("div", style="margin-top: .6rem"):
        words("label", label, **{"for": name})
        attributes = {
            "data-ticket": ticket,
            "data-largest": largest,
            "data-told": f"{name}-problem",
            "aria-describedby": f"{name}-hint",
        }
        box("input", id=name, type="file", **attributes)
        words("p", f"NDJSON, CSV, TSV, Parquet or Arrow, plain or packed; up to "
              f"{size(largest)}.", "quiet small", id=f"{name}-hint")  # fmt: skip
        words("p", "", "problem", id=f"{name}-problem", role="alert", hidden=True)
