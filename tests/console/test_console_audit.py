"""The page Audit: files picked and sent, and what is said of them."""

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import expect
from service import Service


def write(file: Path, users: int, *, each: int = 3) -> None:
    """Write a released stream in which users come in pairs that are alike."""
    with file.open("w") as lines:
        for user in range(users):
            for n in range(each):
                host = f"site-{user // 2}-{n}.example"
                record = {"ts": 1767258000 + n, "uid": f"person-{user}", "host": host}
                lines.write(json.dumps(record) + "\n")


def test_a_file_that_is_picked(tabs: Any, service: Service, shelf: Path) -> None:
    write(shelf / "day-2.ndjson", 41)
    write(shelf / "day-10.ndjson", 4)
    (shelf / "secret.key").write_text("no released file")
    (shelf / "link.ndjson").symlink_to("/etc/passwd")
    page = tabs(service).open("/audit")
    expect(page.get_by_text("Nothing looked at yet")).to_be_visible()
    pick = page.get_by_label("Released file").first
    assert pick.locator("option").all_inner_texts() == ["day-2.ndjson", "day-10.ndjson"]
    page.get_by_role("button", name="Audit it").click()
    # 40 of 41 have one other who is just like them.
    expect(page.get_by_text("97.6 % of 41 visible users share")).to_be_visible()
    alone = page.get_by_role("row", name="all values, no times").first
    expect(alone).to_contain_text("97.6%")
    expect(page.get_by_role("img", name="Share of visible users who share")).to_be_visible()
    expect(page.get_by_text("What this report does not say")).to_be_visible()
    assert "person-" not in page.content()
    assert "site-" not in page.content()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the figures").click()
    account = json.loads(Path(saved.value.path()).read_text())
    assert account["users_visible"] == 41


def test_a_file_that_is_sent_is_not_kept(
    tabs: Any, service: Service, tmp_path: Path, scratch: Path
) -> None:
    write(tmp_path / "mine.ndjson", 10)
    page = tabs(service).open("/audit")
    page.get_by_label("As if pseudonyms changed").select_option("every day")
    page.locator("#audit-file").set_input_files(tmp_path / "mine.ndjson")
    expect(page.get_by_text("100 % of 10 visible users")).to_be_visible()
    expect(page.get_by_text("With pseudonyms that change every 1 day").first).to_be_visible()
    assert list(scratch.iterdir()) == []


def test_what_cannot_be_read_is_told_without_its_values(
    tabs: Any, service: Service, tmp_path: Path
) -> None:
    page = tabs(service).open("/audit")
    (tmp_path / "other.csv").write_text("when,who,what\n2026-01-01T00:00,ada,clinic\n")
    page.locator("#audit-file").set_input_files(tmp_path / "other.csv")
    expect(page.get_by_text("It could not be audited")).to_be_visible()
    expect(page.get_by_role("alert").last).to_contain_text("there is no field 'ts'")
    assert "clinic" not in page.content()
    (tmp_path / "noise.ndjson").write_bytes(b"\x00\xff secret-value \n" * 50)
    page.locator("#audit-file").set_input_files(tmp_path / "noise.ndjson")
    expect(page.get_by_text("no event could be read")).to_be_visible()
    assert "secret-value" not in page.content()


def test_a_file_that_is_too_large(tabs: Any, service: Service, tmp_path: Path) -> None:
    (tmp_path / "large.ndjson").write_bytes(b" " * ((1 << 20) + 1))
    tab = tabs(service)
    page = tab.open("/audit")
    page.locator("#audit-file").set_input_files(tmp_path / "large.ndjson")
    expect(page.get_by_text("The file is larger than 1")).to_be_visible()
    # The server does not rely on the browser for it.
    status = page.evaluate(
        """async () => (await fetch(
            `/console/files/${document.getElementById('audit-file').dataset.ticket}?name=x`,
            {method: 'POST', body: new Blob([new Uint8Array((1 << 20) + 1)])})).status"""
    )
    assert status == 413
    guess = "fetch('/console/files/guess', {method: 'POST'}).then((answer) => answer.status)"
    assert page.evaluate(guess) == 404
    tab.said.clear()  # the browser's own words about both
