"""Who gets in: tokens, sessions, and requests of other sites."""

import base64
import os
import re
import signal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect
from service import Answer, Service, token

FORM = "application/x-www-form-urlencoded"
SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"


def log_in(service: Service, secret: str, **headers: str) -> Answer:
    given = {"Origin": service.url} | headers
    body = urlencode({"token": secret}).encode()
    return service.ask("POST", "/login", body, kind=FORM, **given)


def shake(service: Service, **headers: str) -> int:
    """Ask for a socket, and give the status."""
    given = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
    } | headers
    host = given.pop("Host", service.url.removeprefix("http://"))
    lines = [f"GET {SOCKET} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in given.items()]
    with service.connect() as client:
        client.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(client.recv(100).split()[1])


def cookie(answer: Answer) -> str:
    return answer.headers["set-cookie"].split(";")[0]


def test_logging_in_and_out_in_the_browser(
    tabs: Any, locked: Service, secrets: dict[str, str]
) -> None:
    tab = tabs(locked)
    page = tab.open("/plan")
    assert page.url == f"{locked.url}/login"
    for secret, told in (
        ("zveil_wrong", "This token is not known here."),
        (secrets["writer"], "This token may not read"),
    ):
        page.get_by_label("Token").fill(secret)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_contain_text(told)
    tab.said.clear()  # the browser's own words about 401 and 403
    page.get_by_label("Token").fill(secrets["reader"])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Live")).to_be_visible()
    expect(page.locator("#first-event")).to_contain_text("Authorization: Bearer $TOKEN")
    assert secrets["reader"] not in page.content()
    (held,) = tab.context.cookies()
    assert (held["httpOnly"], held["sameSite"]) == (True, "Strict")
    assert secrets["reader"] not in held["value"]

    # Another tab of the same login is cut off too.
    other = tab.context.new_page()
    other.goto(f"{locked.url}/audit")
    expect(other.get_by_role("heading", name="Audit")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    other.wait_for_url(f"{locked.url}/login")
    stale = {"Cookie": f"{held['name']}={held['value']}"}
    assert locked.ask("GET", "/", kind=None, **stale).status == 303
    tab.said.clear()


def test_the_login_fits_a_phone_and_runs_no_script(tabs: Any, locked: Service) -> None:
    page = tabs(locked, viewport={"width": 320, "height": 600}).open("/login")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.locator("script").count() == 0
    answer = locked.ask("GET", "/login", kind=None)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/plan",
        "/audit",
        "/console/session",
        "/console/console.js",
        "/_nicegui/x",
        "/_nicegui_ws/socket.io/",
    ],
)
def test_nothing_without_a_login(locked: Service, secrets: dict[str, str], path: str) -> None:
    answer = locked.ask("GET", path, kind=None)
    assert (answer.status, answer.headers["location"]) == (303, "/login")
    # The token itself opens no page: a browser would send it wherever it is asked to.
    assert locked.ask("GET", path, kind=None, token=secrets["reader"]).status == 303
    assert locked.ask("GET", path, kind=None, Cookie="zveil-session=guess").status == 303


def test_what_is_sent_by_other_sites_is_refused(locked: Service, secrets: dict[str, str]) -> None:
    secret = secrets["reader"]
    assert log_in(locked, secret).status == 303
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        answer = log_in(locked, secret, **headers)
        assert answer.status == 403
        assert "set-cookie" not in answer.headers
    held = {"Cookie": cookie(log_in(locked, secret))}
    for path in ("/logout", "/console/files/x"):
        answer = locked.ask("POST", path, b"", kind=None, Origin="http://evil.example", **held)
        assert answer.status == 403
    assert locked.ask("GET", "/console/session", kind=None, **held).status == 204


def test_sockets_of_other_sites_are_refused(
    locked: Service, service: Service, secrets: dict[str, str]
) -> None:
    held = {"Cookie": cookie(log_in(locked, secrets["reader"]))}
    assert shake(locked, Origin=locked.url, **held) == 101
    assert shake(locked, Origin=locked.url) == 403
    assert shake(locked, **held) == 403
    assert shake(locked, Origin="http://evil.example", **held) == 403
    # Without tokens too; and a name of one's own that leads here is no way in.
    assert shake(service, Origin=service.url) == 101
    assert shake(service, Origin="http://evil.example") == 403
    assert shake(service, Origin="http://evil.example", Host="evil.example") == 403
    assert service.ask("GET", "/", kind=None, Host="evil.example").status == 421


def test_wrong_tokens_are_few(secrets: dict[str, str]) -> None:
    with Service("--tokens", secrets["file"], console=True) as service:
        assert [log_in(service, f"zveil_{n}").status for n in range(10)] == [401] * 10
        answer = log_in(service, secrets["reader"])
        assert answer.status == 429
        assert 0 < int(answer.headers["retry-after"]) <= 300
        assert b"Too many wrong tokens" in answer.body
        # Events go on.
        event = b'{"ts": 1767258000, "uid": "a", "host": "b"}'
        assert service.post(event, token=secrets["writer"]).status == 202


def test_a_token_that_is_taken_away_ends_its_sessions(tmp_path: Path) -> None:
    file, path = tmp_path / "tokens", "/console/session"
    stays, goes = token(file, "stays", "read"), token(file, "goes", "read")
    with Service("--tokens", file, console=True) as service:
        held = [{"Cookie": cookie(log_in(service, each))} for each in (stays, goes)]
        statuses = [service.ask("GET", path, kind=None, **each).status for each in held]
        assert statuses == [204, 204]
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(line for line in lines if not line.startswith("goes ")))
        service.process.send_signal(signal.SIGHUP)
        service.wait_for("tokens read")
        statuses = [service.ask("GET", path, kind=None, **each).status for each in held]
        assert statuses == [204, 303]


def test_every_page_has_its_policy_of_contents(service: Service) -> None:
    nonces = set()
    for path in ("/", "/plan", "/audit"):
        answer = service.ask("GET", path, kind=None)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "connect-src 'self'" in policy
        assert "'unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]
        (nonce,) = re.findall(r"'nonce-([\w-]+)'", policy)
        nonces.add(nonce)
        scripts = re.findall(rb"<script[^>]*>", answer.body)
        assert len(scripts) > 3
        assert all(f'nonce="{nonce}"'.encode() in each for each in scripts)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
    assert len(nonces) == 3


def test_other_paths_are_the_services(service: Service) -> None:
    assert service.ask("GET", "/v1/observations", kind=None).kind == "method"
    assert service.ask("GET", "/nothing", kind=None).kind == "not-found"
    assert service.ask("GET", "/console/../etc/passwd", kind=None).kind == "not-found"


def test_the_log_has_no_page_in_it(service: Service) -> None:
    service.ask("GET", "/plan?who=ada", kind=None)
    assert not any("ada" in line for line in service.spoken)
