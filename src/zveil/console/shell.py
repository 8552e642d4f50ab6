"""What all pages share: the frame around them, words, fields, sliders and tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement
from starlette.requests import Request

from zveil.console.charts import Options, legend
from zveil.console.wording import size

PAGES = (("/", "Live"), ("/plan", "Plan"), ("/audit", "Audit"))

_LOOKS = {"light": ("Light", False), "dark": ("Dark", True), "auto": ("Auto", None)}
_HEAD = """
<link rel="stylesheet" href="/console/console.css">
<script defer src="/console/console.js"></script>
"""
_GONE = """
<div id="gone" role="alert"><b>The server does not answer.</b> What you see below is what it last
said. This page goes on by itself when it is back.</div>
"""


@contextmanager
def frame(request: Request, path: str, title: str, *, may_leave: bool) -> Iterator[None]:
    """Put the frame around a page; the page's own parts are made inside of the ``with``.

    Parameters
    ----------
    request
        Of the browser; a cookie says whether it likes light or dark.
    path, title
        Which page it is.
    may_leave
        Whether there is a login to log out from.
    """
    look = request.cookies.get("zveil-look", "auto")
    name, is_dark = _LOOKS.get(look, _LOOKS["auto"])
    ui.page_title(f"{title} \N{MIDDLE DOT} zveil")
    ui.add_head_html(_HEAD)
    ui.add_body_html(_GONE)
    ui.dark_mode(is_dark)
    # The library's own layout has a `main` for the content: what goes before it is put there.
    layout = ui.context.client.layout
    with layout, box("header", "bar") as bar:
        words("a", "Skip to the content", "skip", href="#main")
        words("a", "zveil", "mark", href="/")
        with box("nav", **{"aria-label": "Pages"}):
            for address, page in PAGES:
                current = {"aria-current": "page"} if address == path else {}
                words("a", page, href=address, **current)
        with box("div", "tools"):
            hint = {"aria-label": "Light or dark", "title": "Light, dark, or as the system has it"}
            known = look if look in _LOOKS else "auto"
            words("button", name, type="button", **{"data-look": known}, **hint)
            if may_leave:
                with box("form", method="post", action="/logout"):
                    words("button", "Log out", type="submit")
    bar.move(layout, 0)
    with box("div", "page", id="main", tabindex="-1"):
        yield


def box(tag: str, classes: str = "", /, **attributes: Any) -> Element:
    """Make an element to put others in."""
    element = Element(tag).classes(classes)
    element.props.update(attributes)
    return element


def words(tag: str, text: str = "", classes: str = "", /, **attributes: Any) -> TextElement:
    """Make an element with words in it, which can be set anew."""
    element = TextElement(tag=tag, text=text).classes(classes)
    element.props.update(attributes)
    return element


def rich(html: str, classes: str = "", tag: str = "p") -> ui.html:
    """Make an element of HTML that is ours; whatever comes from outside is escaped in it."""
    return ui.html(html, sanitize=False, tag=tag).classes(classes)


def button(
    text: str, action: Callable[[], Any], classes: str = "", **attributes: Any
) -> TextElement:
    """Make a button that does something on the server."""
    return words("button", text, classes, type="button", **attributes).on("click", action, args=[])


def chart(options: Options, label: str, classes: str = "") -> ui.echart:
    """Draw a chart with its legend; the label says in words what it shows."""
    with box("ul", "legend"):
        for name, colour, kind in legend(options):
            with box("li"):
                box("span", f"swatch {kind}", style=f"--swatch: {colour}")
                words("span", name)
    drawn = ui.echart(options, renderer="svg").classes(f"chart {classes}")
    drawn.props.update({"role": "img", "aria-label": label})
    return drawn


def field(
    name: str, label: str, value: str, changed: Callable[[str], Any], **attributes: Any
) -> None:
    """Make a field to type in; ``changed`` is told what was typed."""
    with box("div"):
        words("label", label, **{"for": name})
        # As an attribute: a property would be set anew with each change of the page.
        box("input", id=name, **{"^value": value}, **attributes).on(
            "change", lambda event: changed(str(event.args)), js_handler=_VALUE
        )


def choice(
    name: str, label: str, options: Sequence[str], chosen: str, changed: Callable[[str], Any]
) -> None:
    """Make a list to choose one from."""
    with box("div"):
        words("label", label, **{"for": name})
        with box("select", id=name).on(
            "change", lambda event: changed(str(event.args)), js_handler=_VALUE
        ):
            for each in options:
                marked = {"selected": True} if each == chosen else {}
                words("option", each, value=each, **marked)


def file_field(name: str, label: str, ticket: str, largest: int) -> None:
    """Make a field for a file, which the browser sends as soon as one is chosen.

    It asks over the socket first: what was chosen before on the page has come that way too, and is
    known by then.

    Parameters
    ----------
    name, label
        Its id, and what it is called.
    ticket
        Under which the file is sent.
    largest
        How large it may be, in bytes.
    """
    with box("div", "above"):
        words("label", label, **{"for": name})
        attributes = {
            "data-ticket": ticket,
            "data-largest": largest,
            "data-told": f"{name}-problem",
            "aria-describedby": f"{name}-hint",
        }
        box("input", id=name, type="file", **attributes).on(
            "change", lambda: ui.run_javascript(f"zveil.send({json.dumps(name)})"), args=[]
        )
        hint = f"NDJSON, CSV, TSV, Parquet or Arrow, plain or packed; up to {size(largest)}."
        words("p", hint, "quiet small", id=f"{name}-hint")
        words("p", "", "problem", id=f"{name}-problem", role="alert", hidden=True)


_VALUE = "(event) => emit(event.target.value)"


@dataclass(frozen=True, kw_only=True)
class Slider:
    """A slider over a few values; the words of each are shown while it moves.

    Parameters
    ----------
    name, label
        Its id, and what it is called.
    values, texts
        What it can be set to, and how each is written.
    hint
        What it means, in a line.
    """

    name: str
    label: str
    values: Sequence[Any]
    texts: Sequence[str]
    hint: str = ""

    def show(self, value: Any, changed: Callable[[Any], Any], text: str | None = None) -> None:
        """Put it on the page; written otherwise, if its values only come near."""
        at = self.values.index(value)
        shown = text or self.texts[at]

        def moved(event: Any) -> None:
            place = int(event.args)
            if 0 <= place < len(self.values):
                changed(self.values[place])

        with box("div", "knob"):
            words("label", self.label, **{"for": self.name})
            words("output", shown, id=f"{self.name}-is", **{"for": self.name})
            box(
                "input", id=self.name, type="range", min=0, max=len(self.values) - 1, step=1,
                **{"^value": at, "data-texts": json.dumps(self.texts),
                   "aria-valuetext": shown},
            ).on("input", moved, js_handler=_VALUE, throttle=0.08)  # fmt: skip
            if self.hint:
                words("p", self.hint, "quiet small")

    def move(self, value: Any, text: str | None = None) -> None:
        """Set it from here; to be written otherwise, if its values only come near."""
        given = [self.name, self.values.index(value), text]
        ui.run_javascript(f"zveil.move(...{json.dumps(given)})")


def table(rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """Write a table as HTML: the first row is the head, the first cell of each its name.

    >>> table([("k", "users"), ("2", "7")])[:58]
    '<div class="scroll" tabindex="0"><table><thead><tr><th sco'
    """
    head = "".join(f'<th scope="col">{_cell(cell)}</th>' for cell in rows[0])
    body = "".join(
        f'<tr><th scope="row">{_cell(first)}</th>'
        + "".join(f"<td>{_cell(cell)}</td>" for cell in others)
        + "</tr>"
        for first, *others in rows[1:]
    )
    named = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll" tabindex="0"><table>{named}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(text: str) -> str:
    return escape(text).replace("&gt;= ", "\N{GREATER-THAN OR EQUAL TO}\N{NO-BREAK SPACE}")
