"""The page *Audit*: what an observer of a released file has."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from nicegui import ui

from zveil.console.charts import FOUR, GREY, ONE, THREE, TWO, axis, bars, frame, line
from zveil.console.files import Given
from zveil.console.proposal import Names, namer
from zveil.console.shell import box, button, chart, choice, field, file_field, rich, table, words
from zveil.console.view import View
from zveil.console.wording import percent, size
from zveil.console.worker import Worker, WorkError

_ROTATIONS = {"not at all": None, "every hour": "1h", "every day": "1d", "every week": "7d"}
_KS = {"2": ONE, "3": THREE, "5": TWO, "10": FOUR}
_KNOWN = {
    "set": "values", "week": "+ weeks", "day": "+ days", "hour": "+ hours", "minute": "+ minutes",
}  # fmt: skip


class AuditPage:
    """The page of one browser."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._names = Names.of(view.policy)
        self._rotate: str | None = None
        self._account: dict[str, Any] = {}
        self._name = ""
        ticket = view.inbox.expect(self._look_at)
        self._worker: Worker | None = None
        ui.context.client.on_delete(lambda: self._leave(ticket))
        with box("div", "head"):
            words("h1", "Audit")
            words("p", "What an observer of a released file has.", "quiet")
        with box("div", "grid split"):
            with box("section", "card knobs"):
                self._form(ticket)
            self._result = box("div", "grid rest", **{"aria-live": "polite"})
        self._say_nothing_yet()

    def _form(self, ticket: str) -> None:
        names, named = self._names, namer(self._names, self._rename)
        words("h2", "Fields of the file")
        with box("div", "fields"):
            field("audit-time", "Time", names.time, named("time"))
            field("audit-user", "User", names.user, named("user"))
        field("audit-attributes", "Attributes, with commas between", ", ".join(names.attributes),
              named("attributes"))  # fmt: skip
        choice("audit-rotate", "As if pseudonyms changed", list(_ROTATIONS), "not at all",
               self._set_rotation)  # fmt: skip
        if self._view.shelf is not None:
            words("h2", "A file that is here", style="margin-top: 1.2rem")
            self._shelf()
        words("h2", "A file of yours", style="margin-top: 1.2rem")
        file_field("audit-file", "Released file", ticket, self._view.inbox.largest)
        words("p", "It is looked at and let go: nothing of it is kept, and no user and no value is "
              "shown.", "quiet small")  # fmt: skip

    def _shelf(self) -> None:
        shelf = self._view.shelf
        names = shelf.names() if shelf is not None else []
        if not names:
            words("p", "There is no released file in the folder yet.", "quiet small")
            return
        self._picked = names[0]

        def pick(name: str) -> None:
            self._picked = name

        async def look() -> None:
            if shelf is None:
                return
            try:
                given = shelf.open(self._picked)
            except ValueError as error:
                self._fail(str(error))
                return
            await self._look_at(given)

        choice("audit-pick", "Released file", names, names[0], pick)
        button("Audit it", look, "main")

    def _rename(self, names: Names) -> None:
        self._names = names

    def _set_rotation(self, text: str) -> None:
        self._rotate = _ROTATIONS.get(text)

    def _say_nothing_yet(self) -> None:
        with self._result, box("section", "card empty"):
            words("h2", "Nothing looked at yet")
            words("p", "Choose a released file. You will see how many users share all that was "
                  "released of them, at several resolutions of time; how many a few points single "
                  "out; and what is left of the data.", "quiet")  # fmt: skip

    def _fail(self, text: str) -> None:
        self._result.clear()
        with self._result, box("section", "card"):
            words("h2", "It could not be audited")
            words("p", text, "problem", role="alert")

    async def _look_at(self, given: Given) -> None:
        """Have a file audited by a process of its own, and show what was found."""
        if not self._view.at_work.take():
            given.close()
            self._fail("Others are being worked out just now; try again in a moment.")
            return
        self._result.clear()
        with self._result, box("section", "card"):
            words("h2", given.name)
            doing = words("p", "reading", "busy", role="status")
        worker = self._worker = Worker(file=given.file)
        asked = {
            "name": given.name,
            "time": self._names.time,
            "user": self._names.user,
            "attributes": list(self._names.attributes),
            "rotate": self._rotate,
        }
        try:
            found = await worker.ask("audit", asked, doing.set_text)
        except WorkError as error:
            self._fail(str(error))
            return
        finally:
            self._view.at_work.free()
            worker.close()
            given.close()
        self._account, self._name = found["account"], given.name
        self._show(found, f"{given.name}, {size(given.size)}")

    def _leave(self, ticket: str) -> None:
        """Take nothing more, and stop what is being looked at: the page is gone."""
        self._view.inbox.forget(ticket)
        if self._worker is not None:
            self._worker.close()

    def _show(self, found: dict[str, Any], title: str) -> None:
        account = found["account"]
        self._result.clear()
        with self._result:
            with box("section", "card"):
                words("h2", title)
                rich(summary(account, found["point"]), "lead")
                with box("div", "row"):
                    button("Save the figures as JSON", self._save)
            if account["users_visible"]:
                with box("div", "grid pair"):
                    self._crowds(account)
                    self._points(account, found["point"])
                if account["over_time"] is not None:
                    self._course(account, found["step"])
            for each in found["tables"]:
                with box("section", "card"):
                    rich(table(each["rows"], each["title"]), tag="div")
            for name, sentences in (
                ("Assumptions and remarks", found["notes"]),
                ("What this report does not say", found["limits"]),
            ):
                with box("section", "card"):
                    words("h2", name)
                    with box("ul", "notes"):
                        for sentence in sentences:
                            words("li", sentence)

    def _crowds(self, account: dict[str, Any]) -> None:
        names = [_KNOWN.get(each["resolution"], each["resolution"]) for each in account["k"]]
        series = [
            bars(f"k \N{GREATER-THAN OR EQUAL TO} {k}", colour,
                 [_percent(each["k_share"][k]) for each in account["k"]])
            for k, colour in _KS.items()
        ]  # fmt: skip
        with box("section", "card"):
            words("h2", "Visible users in a crowd of k, by what the observer knows")
            chart(
                frame(
                    x=axis("category", data=names),
                    y=axis("value", unit="zveil.percent", min=0, max=100),
                    series=series,
                    unit="zveil.percent",
                ),
                "Share of visible users who share what an observer knows with others, by k",
                "tall",
            )

    def _points(self, account: dict[str, Any], point: str) -> None:
        shares = [[int(n), _percent(share)] for n, share in account["unicity"].items()]
        with box("section", "card"):
            words("h2", f"Users singled out by a few points, each {point}")
            chart(
                frame(
                    x=axis("value", name="points known", min=1, max=5, interval=1),
                    y=axis("value", unit="zveil.percent", min=0, max=100),
                    series=[line("singled out", TWO, shares, symbol="circle", symbolSize=8)],
                    unit="zveil.percent",
                ),
                "Share of users whom a few random points of theirs single out",
                "tall",
            )

    def _course(self, account: dict[str, Any], step: str | None) -> None:
        over = account["over_time"]
        with box("section", "card"):
            words("h2", f"Released, in steps of {step}")
            chart(
                frame(
                    x=axis("category", data=[each.replace("T", " ") for each in over["start"]]),
                    y=axis("value", unit="zveil.short", min=0),
                    series=[bars("released", GREY, over["released"], barCategoryGap="15%")],
                    unit="zveil.short",
                ),
                "Released observations over time",
            )

    def _save(self) -> None:
        text = json.dumps(self._account, indent=2)
        ui.download.content(text, f"audit-{self._name}.json", "application/json")


def summary(account: dict[str, Any], point: str) -> str:
    """Say in sentences what was found, as HTML."""
    if not account["users_visible"]:
        return "Nothing was released: there is nobody to single out."
    k, by_day = account["k_share"]["2"], account["k_share_by_time"]["day"]["2"]
    sentences = [
        f"<b>{percent(k)}</b> of {account['users_visible']:,} visible users share their whole set "
        "of released values with at least one other.",
        f"To an observer who also knows the day of each value, <b>{percent(by_day)}</b> do.",
    ]
    known = [(n, share) for n, share in account["unicity"].items() if share is not None]
    three = [(n, share) for n, share in known if int(n) <= 3]
    for n, share in three[-1:]:
        points = "a random point" if n == "1" else f"{n} random points"
        sentences.append(
            f"Who knows {points} of a user, each {escape(point)}, singles out "
            f"<b>{percent(share)}</b> of them."
        )
    return " ".join(sentences)


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 3)
