"""The page Live in a real browser, on the real service."""

import json
import subprocess
import time
from typing import Any

from playwright.sync_api import expect
from service import Service


def events(users: int, host: str = "example.org") -> bytes:
    now = time.time()
    lines = [json.dumps({"ts": now, "uid": f"u{n}", "host": host}) for n in range(users)]
    return "\n".join(lines).encode()


def figure(page: Any, name: str) -> Any:
    return page.get_by_role("region", name=name, exact=True).locator(".figure")


def more(page: Any, name: str) -> Any:
    return page.get_by_role("region", name=name, exact=True).locator(".more")


def test_from_the_first_event_to_a_server_that_is_gone(tabs: Any) -> None:
    with Service(console=True) as service:
        tab = tabs(service)
        page = tab.open()
        expect(page.get_by_text("No events yet")).to_be_visible()
        expect(page.get_by_text("waiting for the first event")).to_be_visible()
        assert not page.get_by_role("region", name="Share released").is_visible()

        # What the page says is what works.
        command = page.locator("#first-event").inner_text()
        assert service.url in command
        subprocess.run(["/bin/sh", "-c", command], check=True, capture_output=True)
        expect(more(page, "In, a second")).to_have_text("1 in all")
        expect(page.get_by_text("No events yet")).not_to_be_visible()

        # Two users are enough here: of 40 that come, 39 are released, the one before counts too.
        service.post(events(40))
        expect(more(page, "In, a second")).to_have_text("41 in all")
        expect(more(page, "Released, a second")).to_have_text("40 in all")
        expect(page.get_by_text("events are coming in")).to_be_visible()
        expect(figure(page, "In, a second")).not_to_have_text("0")
        service.post(b'{"bad\n' + events(3, "rare.example")[:0])
        expect(figure(page, "Bad input")).to_have_text("1")
        expect(page.get_by_role("row", name="too few users")).to_contain_text("1")
        page.get_by_role("button", name="24 hours").click()
        expect(page.get_by_role("button", name="24 hours")).to_have_attribute(
            "aria-pressed", "true"
        )
        expect(page.locator("svg path").first).to_be_attached()
        assert "example.org" not in page.inner_text("body")
        assert "u17" not in page.content()

        tab.check()
        assert service.end() == 0
        expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
        expect(page.locator(".page")).not_to_have_css("opacity", "1")
        # The browser goes on trying, and saying so, for as long as the page is open.
        tab.close()
        tab.said.clear()


def test_it_is_seen_by_two_at_once(tabs: Any, service: Service) -> None:
    pages = [tabs(service).open() for _ in range(2)]
    service.post(events(7, "two.example"))
    for page in pages:
        expect(figure(page, "Share released")).to_contain_text("%")
    assert pages[0].title() == "Live · zveil"


def test_the_meter_is_shown_where_there_is_one(tabs: Any, service: Service) -> None:
    page = tabs(service).open()
    service.post(events(3, "none.example"))
    expect(more(page, "In, a second")).to_contain_text("in all")
    assert not page.get_by_role("region", name="Users in a crowd of 2").is_visible()
    with Service("--meter", console=True) as measured:
        page = tabs(measured).open()
        measured.post(events(5))
        # Of five, four have it released, who look the same.
        expect(figure(page, "Users in a crowd of 2")).to_have_text("100 %")
        expect(more(page, "Users in a crowd of 2")).to_have_text("of 4 visible users")
