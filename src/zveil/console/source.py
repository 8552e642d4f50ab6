"""Whose trade-off it is: users who are described, those of an uploaded trace, or of the stream."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from nicegui.element import Element

from zveil.console.choice import Choice
from zveil.console.proposal import Names
from zveil.console.shell import box, button, field, words
from zveil.console.traces import Heard, Sent
from zveil.console.view import View
from zveil.console.worker import Worker


class Panel(Protocol):
    """One kind of users."""

    @property
    def worker(self) -> Worker | None:
        """The process that has them; None if there are none yet."""

    def close(self) -> None:
        """Let them go."""


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
        self._choice, self._changed = choice, changed
        self._shown = "parameters"
        self._panels: dict[str, Panel] = {}
        with box("section", "card"):
            words("h2", "Whose users")
            row = box("div", "row", role="group", **{"aria-label": "Whose users"})
            self._boxes: dict[str, Element] = {}
            with box("div") as self._boxes["parameters"]:
                self._parameters()
            with box("div") as self._boxes["trace"]:
                self._panels["trace"] = Sent(view, names, choice, self._renewed)
            if view.can_listen:
                with box("div") as self._boxes["stream"]:
                    self._panels["stream"] = Heard(view, names, choice, self._renewed)
            titles = {"parameters": "Described", "trace": "A trace", "stream": "The stream"}
            with row:
                self._buttons = {
                    name: button(titles[name], partial(self._show, name)) for name in self._boxes
                }
        self._show("parameters")

    @property
    def worker(self) -> Worker | None:
        """The process that has the users; None if they are described."""
        panel = self._panels.get(self._shown)
        return None if panel is None else panel.worker

    def _parameters(self) -> None:
        words(
            "p",
            "As in the paper: users alike and independent, and values the rarer the lower their "
            "rank.",
            "quiet small",
        )
        choice = self._choice
        with box("div", "fields above"):
            self._number("users", "Users", choice.users, int, min=2, step=1)
            self._number("attributes", "Values", choice.attributes, int, min=1, step=1)
            self._number("rate", "Rate of the first", choice.rate, float, min=0, step="any")
            self._number("exponent", "Exponent", choice.exponent, float, min=0, step="any")
        words(
            "p",
            "The value of rank r is shown by a user rate / r^exponent times an hour.",
            "quiet small above",
        )

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

    def _show(self, name: str) -> None:
        self._shown = name
        for each, element in self._boxes.items():
            element.set_visibility(each == name)
            self._buttons[each].props["aria-pressed"] = "true" if each == name else "false"
            self._buttons[each].update()
        self._renewed()

    def _renewed(self) -> None:
        """Go by the users of the panel that is shown, if it has any."""
        self._choice.source = "parameters" if self.worker is None else "trace"
        self._changed()

    def close(self) -> None:
        """Let go of all that was begun: the page is gone."""
        for panel in self._panels.values():
            panel.close()
