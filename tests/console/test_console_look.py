"""How the pages look and are used: dark, on a phone, by the keyboard."""

import time
from typing import Any

import pytest
from playwright.sync_api import expect
from service import Service

PAGES = ("/", "/plan", "/audit")


LIGHT, DARK = (221, 255), (0, 39)


def expect_ground(page: Any, lightness: tuple[int, int]) -> None:
    """Wait until the page is so light, from 0 to 255; it may take a moment to change."""
    page.wait_for_function(
        """([least, most]) => {
            const parts = getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g)
            const mean = parts.slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3
            return least <= mean && mean <= most
        }""",
        arg=lightness,
    )


@pytest.mark.parametrize("path", PAGES)
def test_no_page_is_wider_than_a_phone(tabs: Any, service: Service, path: str) -> None:
    service.post(f'{{"ts": {time.time()}, "uid": "a", "host": "b"}}'.encode())
    page = tabs(service, viewport={"width": 360, "height": 740}, has_touch=True).open(path)
    page.wait_for_selector("h1")
    if path == "/":
        expect(page.locator(".tiles")).to_be_visible()
    if path == "/plan":
        expect(page.get_by_label("Outcome")).to_contain_text("of visible users")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_light_dark_and_as_the_system_has_it(tabs: Any, service: Service) -> None:
    dark = tabs(service, color_scheme="dark").open("/plan")
    dark.wait_for_selector("h1")
    expect_ground(dark, DARK)
    light = tabs(service, color_scheme="light").open("/plan")
    light.wait_for_selector("h1")
    expect_ground(light, LIGHT)
    # The button goes round: light, dark, and back to the system's.
    button = dark.get_by_role("button", name="Light or dark")
    button.click()
    expect(button).to_have_text("Light")
    expect_ground(dark, LIGHT)
    dark.reload()
    expect(button).to_have_text("Light")
    expect(dark.locator("body")).to_have_class("desktop no-touch body--light")
    expect_ground(dark, LIGHT)


@pytest.mark.parametrize("path", PAGES)
def test_the_keyboard_reaches_everything_and_it_has_a_name(
    tabs: Any, service: Service, path: str
) -> None:
    page = tabs(service).open(path)
    page.wait_for_selector("h1")
    page.wait_for_timeout(300)
    every = page.evaluate(
        """() => [...document.querySelectorAll('a, button, input, select, summary')]
            .filter((each) => each.checkVisibility() && !each.disabled)
            .map((each, place) => { each.dataset.place = place; return place })"""
    )
    assert len(every) > 4
    reached = set()
    for _ in range(len(every) + 12):
        page.keyboard.press("Tab")
        place = page.evaluate("document.activeElement?.dataset?.place ?? null")
        if place is not None:
            reached.add(int(place))
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none"
    assert reached == set(every)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('input, select, button, a')]
            .filter((each) => !(each.labels?.length || each.textContent.trim()
                                || each.getAttribute('aria-label')))
            .map((each) => each.outerHTML)"""
    )
    assert nameless == []
    assert page.evaluate("document.documentElement.lang").startswith("en")
    assert page.locator("main").count() == page.locator("h1").count() == 1
