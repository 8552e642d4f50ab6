"""A real browser, and the real service with its console in it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import CHROMIUM, FLAGS, PATIENCE_MS
from service import Service, token


# For a module: as long as it is driven, no other test could run an event loop of its own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        words = "there is no chromium; install it with: apt-get install -y chromium"
        if os.environ.get("ZVEIL_NEEDS_BROWSER"):
            pytest.fail(words)
        pytest.skip(words)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


class Tab:
    """A page of its own, with all that it asked for and complained about."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.url = url
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(PATIENCE_MS)
        self.page = self.context.new_page()
        self.asked: list[str] = []
        self.said: list[str] = []
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.page.on("websocket", lambda socket: self.asked.append(socket.url))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on(
            "console",
            lambda message: self.said.append(message.text) if message.type == "error" else None,
        )

    def open(self, path: str = "/") -> Any:
        self.page.goto(self.url + path)
        return self.page

    def close(self) -> None:
        self.context.close()

    def check(self) -> None:
        """Nothing came from elsewhere, and nothing was complained about."""
        here = (self.url, self.url.replace("http", "ws", 1), "data:", "blob:")
        assert not [url for url in self.asked if not url.startswith(here)]
        assert not self.said


@pytest.fixture
def tabs(browser: Any) -> Iterator[Any]:
    """Opens tabs, and looks in the end what they asked for."""
    opened: list[Tab] = []

    def make(service: Service, **options: Any) -> Tab:
        opened.append(Tab(browser, service.url, **options))
        return opened[-1]

    yield make
    for tab in opened:
        tab.close()
        tab.check()


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of released files."""
    return tmp_path_factory.mktemp("released")


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the service may put what is not to stay."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="session")
def service(shelf: Path, scratch: Path) -> Iterator[Service]:
    """A service without tokens."""
    options = ("--released", shelf, "--upload", "1MiB")
    with Service(*options, console=True, environment={"TMPDIR": str(scratch)}) as running:
        yield running


@pytest.fixture(scope="session")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Tokens, and the file that they are in."""
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    made = {"reader": token(file, "reader", "read"), "writer": token(file, "writer", "write")}
    return made | {"file": str(file)}


@pytest.fixture(scope="session")
def locked(secrets: dict[str, str]) -> Iterator[Service]:
    """A service with tokens."""
    with Service("--tokens", secrets["file"], console=True) as running:
        yield running
