"""A real browser for pages, and a watch on what they do in it."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HOSTILE = (
    "<img src=x onerror=window.hacked=1>",
    "\"><svg onload='window.hacked=1'>",
    "a & b &lt; ' \" c",
)
"""Names that try to become markup; each may be the name of a folder."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium. Without one the test is skipped or, where DMT_BROWSER=required, fails."""
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        if os.environ.get("DMT_BROWSER") == "required":
            pytest.fail("there is no Chromium, and DMT_BROWSER=required wants one")
        pytest.skip("there is no Chromium here to open pages in; install chromium to run this")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=list(SWITCHES))
        yield chromium
        chromium.close()


@dataclass
class Seen:
    """An open page, what it asked for, what it complained about, and why requests of it failed."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    refused: list[str | None] = field(default_factory=list)

    def require_peace(self, file: Path) -> None:
        """No error, nothing asked for but the file, nothing executed that a name brought along."""
        assert self.complaints == []
        assert {url for url in self.requests if not url.startswith("data:")} == {file.as_uri()}
        assert self.page.evaluate("window.hacked") is None
        assert self.page.locator("img:not([src^='data:']), script[src], link, iframe, object").count() == 0

    def require_width(self, width: int) -> None:
        """At this width nothing has to be scrolled sideways, but what scrolls within itself."""
        self.page.set_viewport_size({"width": width, "height": 800})
        assert self.page.evaluate("document.documentElement.scrollWidth") <= width

    def column(self, table: int, column: int) -> list[str]:
        """The cells of a column from top to bottom."""
        rows = self.page.locator("table").nth(table).locator("tbody tr")
        return [rows.nth(row).locator("td").nth(column).inner_text() for row in range(rows.count())]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Seen]]:
    """Opens files; options are those of a browser's context."""
    contexts = []

    def opened(file: Path, **options: object) -> Seen:
        context = browser.new_context(**options)  # type: ignore[arg-type]
        contexts.append(context)
        seen = Seen(context.new_page())
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.on("requestfailed", lambda request: seen.refused.append(request.failure))
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.page.on(
            "console", lambda said: seen.complaints.append(said.text) if said.type in ("error", "warning") else None
        )
        seen.page.goto(file.as_uri())
        return seen

    yield opened
    for context in contexts:
        context.close()
