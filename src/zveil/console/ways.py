"""The ways to reach what is wanted: a z for each period after which user ids change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zveil.console.choice import Choice
from zveil.console.shell import box, button, words
from zveil.console.source import Source
from zveil.console.view import View
from zveil.console.wording import percent, plural
from zveil.console.worker import Worker, WorkError


class Ways:
    """The part of the page that finds them, and has one taken.

    Parameters
    ----------
    view
        What all pages look at.
    choice
        What is wanted.
    source
        Whose users they are.
    take
        Is given the z and the rotation that were taken.
    """

    def __init__(
        self,
        view: View,
        choice: Choice,
        source: Source,
        take: Callable[[int, int | None], None],
    ) -> None:
        self._view, self._choice, self._source, self._take = view, choice, source, take
        self._worker: Worker | None = None
        self._asked: object = None
        with box("section", "card"):
            words("h2", "Ways to reach what you want")
            words(
                "p",
                "The smallest z for each rotation. Ids that change sooner allow a smaller z, and "
                "more is released.",
                "quiet small",
            )
            self._seek = button("Find them", self._find, "main")
            self._seeking = words("p", "", "busy", role="status")
            self._seeking.set_visibility(False)
            self._found = box("div")

    async def _find(self) -> None:
        if not self._view.at_work.take():
            self._tell("Others are being worked out just now; try again in a moment.")
            return
        held = self._source.worker
        worker = self._worker = held or Worker()
        asked = self._wanted()
        self._found.clear()
        self._seek.set_visibility(False)
        self._seeking.set_text("working it out; this takes a few seconds")
        self._seeking.set_visibility(True)
        try:
            found = await worker.ask("ways", self._choice.given(), self._seeking.set_text)
            self._asked = asked
            self._show(found["options"])
            self.check()
        except WorkError as error:
            self._tell(str(error))
        finally:
            self._view.at_work.free()
            if held is None:
                worker.close()
            self._seeking.set_visibility(False)
            self._seek.set_visibility(True)

    def check(self) -> None:
        """Take away what was found if something else is wanted by now."""
        if self._asked is not None and self._asked != self._wanted():
            self._asked = None
            self._found.clear()
            with self._found:
                words("p", "What you want has changed since; find them anew.", "quiet small")

    def _wanted(self) -> object:
        return self._choice.wanted(), self._source.worker

    def close(self) -> None:
        """Stop looking for them: the page is gone."""
        if self._worker is not None:
            self._worker.close()

    def _tell(self, text: str) -> None:
        self._found.clear()
        with self._found:
            words("p", text, "problem", role="alert")

    def _show(self, options: list[dict[str, Any]]) -> None:
        self._found.clear()
        with self._found:
            if not options:
                words(
                    "p",
                    "No z reaches it, however often ids change. Want less, or a shorter horizon, "
                    "or take a longer window.",
                    "notice",
                )
                return
            with box("div", "scroll"), box("table"):
                with box("thead"), box("tr"):
                    for name in ("ids change every", "z", f"p_{self._choice.k}", "released", ""):
                        words("th", name, scope="col")
                with box("tbody"):
                    for each in options:
                        self._show_one(each)

    def _show_one(self, option: dict[str, Any]) -> None:
        z, rotate = option["z"], None if option["rotate"] is None else round(option["rotate"])
        with box("tr"):
            words("th", plural(rotate, "window") if rotate else "they stay", scope="row")
            for text in (f"{z:,}", percent(option["p_k"]), percent(option["released"])):
                words("td", text)
            with box("td"):
                label = {"aria-label": f"Take z = {z:,}"}
                button("Take", lambda: self._take(z, rotate), **label)
