"""Users of a real stream to plan for: of a file that is sent, or heard from now on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from zveil.console.choice import Choice
from zveil.console.ear import Ear
from zveil.console.files import Given
from zveil.console.proposal import Names, namer
from zveil.console.shell import box, button, field, file_field, words
from zveil.console.view import View
from zveil.console.wording import age, plural, size, span
from zveil.console.worker import Worker, WorkError

_RENEWED_S = 3.0


class Sent:
    """The users of a file that a browser sends. A process holds its trace while the page is open.

    Parameters
    ----------
    view
        What all pages look at.
    names
        Fields of the file, to begin with.
    choice
        What is chosen on the page.
    renewed
        Is called when there are users, or none any more.
    """

    def __init__(
        self, view: View, names: Names, choice: Choice, renewed: Callable[[], None]
    ) -> None:
        self._view, self._names = view, names
        self._choice, self._renewed = choice, renewed
        self.worker: Worker | None = None
        self._ticket = view.inbox.expect(self._take)
        words(
            "p",
            "A file of events as they came. The gate runs over it too, so that beside the model "
            "stands what really happens.",
            "quiet small",
        )
        named = namer(names, self._rename)
        with box("div", "fields above"):
            field("trace-time", "Time", names.time, named("time"))
            field("trace-user", "User", names.user, named("user"))
            every = ", ".join(names.attributes)
            field("trace-attributes", "Attributes", every, named("attributes"))
        file_field("trace-file", "File", self._ticket, view.inbox.largest)
        self._busy = words("p", "", "busy above")
        self._told = words("p", "", "notice small above")
        self._problem = words("p", "", "problem above", role="alert")
        self._tell()

    def _rename(self, names: Names) -> None:
        self._names = names

    def _tell(self, *, busy: str = "", told: str = "", problem: str = "") -> None:
        for element, text in ((self._busy, busy), (self._told, told), (self._problem, problem)):
            element.set_text(text)
            element.set_visibility(bool(text))

    async def _take(self, given: Given) -> None:
        self._let_go()
        if not self._view.traces.take():
            given.close()
            self._tell(problem="Others have traces open just now; try again in a moment.")
            return
        worker = self.worker = Worker(file=given.file)
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
            self._let_go()
            self._tell(problem=str(error))
            return
        finally:
            given.close()
        left_out = f"; {found['left_out']:,} left out" if found["left_out"] else ""
        self._tell(
            told=f"{given.name}, {size(given.size)}: {plural(found['observations'], 'observation')}"
            f" of {plural(found['users'], 'user')} and {plural(found['attributes'], 'value')} over "
            f"{span(found['span_s'])}{left_out}. The file itself is not kept."
        )
        self._renewed()

    def _let_go(self) -> None:
        held, self.worker = self.worker, None
        if held is not None:
            held.close()
            self._view.traces.free()

    def close(self) -> None:
        """Take nothing more, and let go of what there is."""
        self._view.inbox.forget(self._ticket)
        self._let_go()


class Heard:
    """The users of the running stream, listened to from now on.

    Parameters
    ----------
    view, names, choice, renewed
        As for `Sent`; the names are those of the stream.
    """

    def __init__(
        self, view: View, names: Names, choice: Choice, renewed: Callable[[], None]
    ) -> None:
        self._view, self._names = view, names
        self._choice, self._renewed = choice, renewed
        self._ear: Ear | None = None
        self._users = 0
        self._at = 0.0
        words(
            "p",
            "Listens to what comes in as NDJSON from now on, in a process of its own. That keeps "
            "keyed hashes and no value, for as long as this page is open. It should hear a few "
            "windows.",
            "quiet small",
        )
        with box("div", "row above"):
            self._button = button("Listen", self._turn, "main")
        self._told = words("p", "", "notice small above", role="status")
        self._told.set_visibility(False)

    @property
    def worker(self) -> Worker | None:
        """The process that has heard; None if it has not heard anyone yet."""
        return self._ear.worker if self._ear is not None and self._users else None

    def _turn(self) -> None:
        if self._ear is not None and self._ear.is_open:
            self._ear.stop()
            self._view.ears.free()
            self._button.set_text("Listen anew")
            return
        self._let_go()
        if self._view.listen is None or not self._view.ears.take():
            self._say("Somebody else listens just now; try again later.")
            return
        self._ear = Ear(self._view.listen, self._names, self._hear)
        self._button.set_text("Stop listening")
        self._say("listening; nothing was heard yet")

    def _hear(self, found: dict[str, Any]) -> None:
        ended = found.get("ended", "")
        if "count" in found:
            self._users = found["users"]
            windows = found["span_s"] / self._choice.window_s
            self._say(
                f"{plural(found['count'], 'observation')} of {plural(found['users'], 'user')} over "
                f"{age(found['span_s'])} of their time: {windows:.1f} windows. {ended}"
            )
        else:
            self._say(ended)
        if ended:
            self._view.ears.free()
            self._button.set_text("Listen anew")
        now = time.monotonic()
        if ended or now - self._at > _RENEWED_S:
            self._at = now
            self._renewed()

    def _say(self, text: str) -> None:
        self._told.set_text(text)
        self._told.set_visibility(bool(text))

    def _let_go(self) -> None:
        ear, self._ear, self._users = self._ear, None, 0
        if ear is not None:
            if ear.is_open:
                self._view.ears.free()
            ear.close()

    def close(self) -> None:
        """Listen no more, and forget what was heard."""
        self._let_go()
