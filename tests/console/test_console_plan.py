"""The page Plan: sliders, curves, traces, and the policy that comes of it."""

import json
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import expect
from service import Service

from zveil.model import Population, averaged, paper
from zveil.policy.file import parse_policy

PERCENT = "of visible users"


def outcome(page: Any) -> Any:
    return page.get_by_label("Outcome")


def curve(page: Any, card: str) -> str:
    """All that is drawn of a chart."""
    return "".join(
        page.get_by_role("img", name=card)
        .locator("path")
        .evaluate_all("(all) => all.map((each) => each.getAttribute('d'))")
    )


def press(page: Any, slider: str, key: str, times: int = 1) -> None:
    knob = page.get_by_role("slider", name=slider, exact=True)
    knob.focus()
    for _ in range(times):
        knob.press(key)


def test_sliders_move_the_curves(tabs: Any, service: Service) -> None:
    page = tabs(service, viewport={"width": 1440, "height": 900}).open("/plan")
    expect(outcome(page)).to_contain_text(PERCENT)
    # The policy that runs is where it begins.
    expect(page.get_by_role("slider", name="z", exact=True)).to_have_attribute(
        "aria-valuetext", "2"
    )
    crowds, left = "Share of visible users who are one of k", "Share of observations released"
    for slider, moved in (
        ("k", (crowds,)),
        ("Horizon", (crowds, left)),
        ("Window", (crowds, left)),
        ("Rotation", (crowds, left)),
    ):
        before = {name: curve(page, name) for name in (crowds, left)}
        press(page, slider, "ArrowLeft" if slider == "Rotation" else "ArrowRight", 12)
        for name in moved:
            page.wait_for_function(
                """([name, before]) => [...document.querySelectorAll(
                    `[role=img][aria-label^="${name}"] path`)].map(
                    (each) => each.getAttribute('d')).join('') !== before""",
                arg=[name, before[name]],
            )


def test_figures_are_those_of_the_model(tabs: Any, service: Service) -> None:
    page = tabs(service).open("/plan")
    press(page, "z", "Home")
    press(page, "z", "ArrowRight", 19)
    found = averaged(Population.power_law(), 20, 2, 24)
    words = f"At z = 20, {100 * found.visible:.1f} % of visible users"
    expect(outcome(page)).to_contain_text(words)
    optimistic = f"{100 * paper(Population.power_law(), 20, 2, 24):.1f} %"
    expect(page.get_by_text("The paper's formula would say")).to_contain_text(optimistic)
    expect(page.get_by_text("too optimistic").first).to_be_visible()
    text = page.locator("#policy").inner_text()
    policy = parse_policy(text)
    assert (policy.attributes[0].z, policy.names, policy.user.field) == (20, ("host",), "uid")


def test_the_ways_to_reach_it(tabs: Any, service: Service) -> None:
    page = tabs(service).open("/plan")
    expect(outcome(page)).to_contain_text(PERCENT)
    for name, value in (("Users", "2000"), ("Values", "50")):
        page.get_by_label(name, exact=True).fill(value)
        page.get_by_label(name, exact=True).press("Tab")
    press(page, "Horizon", "Home")
    press(page, "Horizon", "ArrowRight")
    # A slider tells where it is a moment after it has moved.
    expect(outcome(page)).to_contain_text("2 windows")
    page.get_by_role("button", name="Find them").click()
    row = page.get_by_role("row", name="1 window")
    expect(row).to_be_visible()
    z = row.locator("td").first.inner_text()
    row.get_by_role("button").click()
    expect(page.locator("#policy")).to_contain_text(f"z = {z}\n")
    expect(page.locator("#policy")).to_contain_text('rotate = "1 window"')
    expect(outcome(page)).to_contain_text("as you want")
    expect(row).to_be_visible()
    press(page, "Wanted", "End")
    expect(page.get_by_text("find them anew")).to_be_visible()
    expect(row).not_to_be_visible()


def test_a_mistake_in_the_fields_is_told(tabs: Any, service: Service) -> None:
    page = tabs(service).open("/plan")
    page.get_by_label("Attributes").last.fill("uid")
    page.get_by_label("Attributes").last.press("Tab")
    expect(page.get_by_text("a field has one role")).to_be_visible()


def test_a_trace_is_measured_and_not_kept(
    tabs: Any, service: Service, tmp_path: Path, scratch: Path
) -> None:
    file = tmp_path / "trace.ndjson"
    with file.open("w") as lines:
        for n in range(6_000):
            # Three users show what others do, one has a value of their own.
            user, host = f"person-{n % 4}", f"h{n % 4 if n % 4 == 3 else 0}.example"
            lines.write(json.dumps({"ts": 1767258000 + n, "uid": user, "host": host}) + "\n")
    page = tabs(service).open("/plan")
    page.get_by_role("button", name="A trace").click()
    page.get_by_label("File", exact=True).set_input_files(file)
    expect(page.get_by_text("6,000 observations of 4 users and 2 values")).to_be_visible()
    expect(outcome(page)).to_contain_text("On your trace, by the gate itself")
    # All three visible users have the same set at z = 2; the fourth has nothing.
    expect(outcome(page)).to_contain_text("100 %")
    assert "person-" not in page.content()
    assert list(scratch.iterdir()) == []


def test_the_stream_is_listened_to(tabs: Any, service: Service) -> None:
    page = tabs(service).open("/plan")
    page.get_by_role("button", name="The stream").click()
    page.get_by_role("button", name="Listen", exact=True).click()
    expect(page.get_by_text("nothing was heard yet")).to_be_visible()
    # Somebody else cannot listen at the same time.
    other = tabs(service).open("/plan")
    other.get_by_role("button", name="The stream").click()
    other.get_by_role("button", name="Listen", exact=True).click()
    expect(other.get_by_text("Somebody else listens")).to_be_visible()
    now = time.time()
    lines = [
        json.dumps({"ts": now - 7200 + n, "uid": f"person-{n % 50}", "host": f"h{n % 5}.example"})
        for n in range(0, 7200, 4)
    ]
    service.post("\n".join(lines).encode())
    expect(page.get_by_text("1,800 observations of 25 users")).to_be_visible()
    expect(outcome(page)).to_contain_text("by the gate itself")
    page.get_by_role("button", name="Stop listening").click()
    service.post(lines[0].encode())
    expect(page.get_by_role("button", name="Listen anew")).to_be_visible()
    expect(page.get_by_text("1,800 observations of 25 users")).to_be_visible()
    assert "person-" not in page.content()
